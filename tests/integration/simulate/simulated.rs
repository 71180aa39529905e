//! Random pipelines, and what every timeline must obey.

use std::collections::BTreeMap;

use plantui::{
    schedule::ActionKind,
    simulate::{
        Event, EventKind, LinkModel, Pipeline, PipelineStage, Schedule, SimulatorSettings, Timeline, Transfer,
        critical_path,
    },
};

/// Deterministic pseudo-random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// A time between 0 and 10 seconds, often a whole number so that ties happen.
    pub(crate) fn time(&mut self) -> f64 {
        if self.below(2) == 0 { self.below(10) as f64 } else { self.below(1 << 30) as f64 / f64::from(1 << 30) * 10.0 }
    }
}

pub(crate) fn stage(forward_s: f64, backward_s: f64) -> PipelineStage {
    PipelineStage {
        forward_s,
        backward_s,
        replicas: 1,
        devices: 1,
        fixed_bytes: 10.0,
        activation_bytes: 3.0,
        ..PipelineStage::default()
    }
}

pub(crate) fn transfer(from: usize, to: usize, seconds: f64) -> Transfer {
    Transfer { from, to, seconds, bytes: seconds * 1e9 }
}

pub(crate) fn chain(stages: Vec<PipelineStage>, seconds: &[f64], microbatches: u32) -> Pipeline {
    let transfers = seconds.iter().enumerate().map(|(i, &s)| transfer(i, i + 1, s)).collect();
    Pipeline { stages, transfers, microbatches, ..Pipeline::default() }
}

/// A pipeline with replicas, skip edges and stages that nothing joins; or, every other time, a chain that all schedules
/// can run.
pub(crate) fn random_pipeline(random: &mut Random) -> Pipeline {
    let count = 1 + random.below(6) as usize;
    let plain = random.below(2) == 0;
    let equal = 1 + random.below(3) as u32;
    let mut stages: Vec<PipelineStage> = (0..count)
        .map(|_| PipelineStage {
            forward_s: random.time(),
            backward_s: random.time(),
            replicas: if plain { equal } else { 1 + random.below(4) as u32 },
            devices: 1 + random.below(3) as u32,
            all_reduce_s: if random.below(2) == 0 { random.time() } else { 0.0 },
            fixed_bytes: random.below(100) as f64,
            activation_bytes: random.below(100) as f64,
            ..PipelineStage::default()
        })
        .collect();
    for stage in stages.iter_mut().filter(|_| random.below(3) == 0) {
        stage.recompute_s = stage.backward_s / 4.0;
    }
    let mut transfers = vec![];
    for from in 0..count {
        for to in from + 1..count {
            if if plain { to == from + 1 } else { random.below(if to == from + 1 { 10 } else { 3 }) > 0 } {
                transfers.push(transfer(from, to, random.time() / 2.0));
            }
        }
    }
    let group = if plain { count as u64 * u64::from(equal) } else { 1 };
    let microbatches = (random.below(40) / group * group) as u32;
    Pipeline { stages, transfers, microbatches, ..Pipeline::default() }
}

/// Settings of all kinds.
pub(crate) fn random_settings(random: &mut Random) -> SimulatorSettings {
    SimulatorSettings {
        virtual_stages: 1 + random.below(4) as u32,
        extra_warm_up: [None, Some(0), Some(3)][random.below(3) as usize],
        weight_gradient_share: random.below(5) as f64 / 4.0,
        overlap: random.below(2) == 0,
        links: LinkModel::ALL[random.below(3) as usize],
        buckets: 1 + random.below(4) as u32,
        optimizer_step_s: if random.below(2) == 0 { random.time() } else { 0.0 },
        ..SimulatorSettings::default()
    }
}

pub(crate) fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-11 * a.abs().max(b.abs()).max(1e-3)
}

/// Parts of the model on each device.
fn parts(pipeline: &Pipeline, schedule: Schedule) -> usize {
    match schedule {
        Schedule::Interleaved | Schedule::InterleavedZeroBubble => pipeline.settings.virtual_stages as usize,
        Schedule::ZeroBubbleV => 2,
        _ => 1,
    }
}

/// Which (stage, part) feeds which: of a chain in parts, in the order of the model.
fn joined(pipeline: &Pipeline, schedule: Schedule) -> Vec<[(usize, usize); 2]> {
    let (stages, parts) = (pipeline.stages.len(), parts(pipeline, schedule));
    if parts == 1 && !schedule.has_free_parts() {
        return pipeline.transfers.iter().map(|t| [(t.from, 0), (t.to, 0)]).collect();
    }
    let place = |k: usize| match schedule {
        Schedule::ZeroBubbleV if k >= stages => (2 * stages - 1 - k, 1),
        _ => (k % stages, k / stages),
    };
    (1..stages * parts).map(|k| [place(k - 1), place(k)]).collect()
}

type Key = (EventKind, usize, usize, u32);

/// Replays a complete timeline: everything happened once, for as long as it takes, one thing at a time on a resource,
/// and not before what it needs.
pub(crate) fn assert_sound(pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline) {
    if schedule.is_listed() {
        return assert_follows_list(pipeline, schedule, timeline);
    }
    let seen = assert_lanes(pipeline, schedule, timeline);
    let microbatches = pipeline.microbatches;
    let splits = schedule.splits_backward();
    let ended = |kind, (stage, part), m| seen[&(kind, stage, part, m)].end_s;
    let backward_starts = |(stage, part): (usize, usize), m| {
        let first = seen.get(&(EventKind::Recompute, stage, part, m));
        first.or(seen.get(&(EventKind::Backward, stage, part, m))).unwrap().start_s
    };
    let places = || (0..pipeline.stages.len()).flat_map(|s| (0..parts(pipeline, schedule)).map(move |part| (s, part)));
    for m in 0..microbatches {
        for place in places().filter(|_| schedule.has_backward()) {
            let backward = &seen[&(EventKind::Backward, place.0, place.1, m)];
            assert!(backward_starts(place, m) >= ended(EventKind::Forward, place, m));
            if splits {
                assert!(seen[&(EventKind::WeightGradient, place.0, place.1, m)].start_s >= backward.end_s);
            }
        }
        for [a, b] in joined(pipeline, schedule) {
            let (act, grad) = (
                EventKind::SendActivation { to: b.0 as u32, part: b.1 as u32 },
                EventKind::SendGradient { to: a.0 as u32, part: a.1 as u32 },
            );
            let forward = &seen[&(EventKind::Forward, b.0, b.1, m)];
            if a.0 == b.0 {
                assert!(forward.start_s >= ended(EventKind::Forward, a, m));
            } else {
                assert!(seen[&(act, a.0, a.1, m)].start_s >= ended(EventKind::Forward, a, m));
                assert!(forward.start_s >= ended(act, a, m));
            }
            if schedule.has_backward() && a.0 == b.0 {
                assert!(backward_starts(a, m) >= ended(EventKind::Backward, b, m));
            } else if schedule.has_backward() {
                assert!(seen[&(grad, b.0, b.1, m)].start_s >= ended(EventKind::Backward, b, m));
                assert!(backward_starts(a, m) >= ended(grad, b, m));
            }
        }
    }
    let (per_place, per_join) = match (schedule.has_backward(), splits) {
        (false, _) => (1, 1),
        (true, false) => (2, 2),
        (true, true) => (3, 2),
    };
    let joins = joined(pipeline, schedule).iter().filter(|[a, b]| a.0 != b.0).count();
    let computed = timeline
        .events
        .iter()
        .filter(|e| !matches!(e.kind, EventKind::AllReduce | EventKind::OptimizerStep | EventKind::Recompute));
    let expected = (per_place * places().count() + per_join * joins) * microbatches as usize;
    assert_eq!(computed.count(), expected, "{schedule:?}");
    assert_after_batch(pipeline, schedule, timeline);
    assert_eq!(timeline.iteration_s, timeline.events.iter().map(|e| e.end_s).fold(0.0, f64::max));
    assert!((0.0..=1.0).contains(&timeline.idle));
    for (s, stage) in pipeline.stages.iter().enumerate() {
        assert_memory(pipeline, schedule, timeline, s);
        let lane = timeline.row(s, 0).iter().filter(|e| e.kind.lane() == 0);
        let compute: f64 = lane.map(|e| e.end_s - e.start_s).sum();
        assert!(close(compute, timeline.busy_s[s]) || compute < 1e-9, "{compute} {}", timeline.busy_s[s]);
        assert_eq!(timeline.replicas[s], stage.replicas);
    }
    assert_contention(pipeline, timeline);
    assert_path(pipeline, schedule, timeline);
}

/// Replays a complete timeline of a list of actions: every rank runs its own in their order, each for as long as it
/// takes and not before what it needs, and pairs begin together.
fn assert_follows_list(pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline) {
    let list = pipeline.explicit(schedule).unwrap();
    let (chunks, slices) = (list.chunks(), list.slices());
    let copies = chunks.windows(2).any(|pair| pair[0].stage == pair[1].stage);
    let of_rank = |rank: usize| chunks.iter().filter(move |chunk| chunk.rank == rank);
    let share = pipeline.settings.weight_gradient_share;
    // Ends and starts of passes: forward or not, stage of the model, microbatch.
    let (mut ends, mut starts) = (BTreeMap::new(), BTreeMap::new());
    for (rank, steps) in list.ranks.iter().enumerate() {
        let replicas = pipeline.stages[rank].replicas;
        for replica in 0..replicas {
            let compute = |e: &&Event| e.kind.lane() == 0 && e.kind != EventKind::OptimizerStep;
            let mut row = timeline.row(rank, replica).iter().filter(compute);
            let mut free = 0.0;
            for step in steps {
                let passes: Vec<_> = step.actions().collect();
                let mut taken = vec![];
                for action in &passes {
                    let parts = if copies { 1 } else { of_rank(rank).count() as u32 } * slices;
                    let stage = &pipeline.stages[if copies { action.stage as usize } else { rank }];
                    let whole = stage.backward_s - stage.recompute_s;
                    let (kind, recompute, seconds) = match action.kind {
                        ActionKind::Forward => (EventKind::Forward, 0.0, stage.forward_s),
                        ActionKind::Backward => (EventKind::Backward, stage.recompute_s, whole),
                        ActionKind::InputGradient => (EventKind::Backward, stage.recompute_s, whole * (1.0 - share)),
                        ActionKind::WeightGradient => (EventKind::WeightGradient, 0.0, whole * share),
                    };
                    let begun = row.clone().next().unwrap();
                    if recompute > 0.0 {
                        let event = row.next().unwrap();
                        assert_eq!(event.kind, EventKind::Recompute, "{schedule:?} {action:?}");
                        assert!(
                            (event.end_s - event.start_s - recompute / f64::from(parts)).abs()
                                <= 1e-12 * event.end_s.max(1.0)
                        );
                    }
                    let event = row.next().unwrap();
                    let part = of_rank(rank).position(|chunk| chunk.stage == action.stage).unwrap() as u32;
                    let microbatch = (action.microbatch * slices + action.slice) * replicas + replica;
                    assert_eq!((event.kind, event.part, event.microbatch), (kind, part, microbatch), "{schedule:?}");
                    let took = event.end_s - event.start_s;
                    let expected = seconds / f64::from(parts);
                    assert!(
                        (took - expected).abs() <= 1e-12 * event.end_s.max(1.0),
                        "{schedule:?} {event:?} {expected}"
                    );
                    assert!(begun.start_s >= free, "{schedule:?} {begun:?}");
                    free = event.end_s;
                    taken.push((begun.start_s, event.kind, (action.stage, microbatch)));
                }
                // Both passes of a pair begin with the first and end with the second.
                for (_, kind, place) in &taken {
                    if *kind != EventKind::WeightGradient {
                        let forward = *kind == EventKind::Forward;
                        ends.insert((forward, *place), free);
                        starts.insert((forward, *place), taken[0].0);
                    }
                }
            }
            assert_eq!(row.next(), None);
        }
    }
    let sends: BTreeMap<_, _> = timeline
        .events
        .iter()
        .filter_map(|e| {
            let (to, part) = e.receiver()?;
            let [from, to] = [(e.stage, e.part), (to, part)]
                .map(|(rank, part)| of_rank(rank as usize).nth(part as usize).unwrap().stage);
            Some(((from < to, (to, e.microbatch)), e))
        })
        .collect();
    for (&(forward, (stage, microbatch)), &start) in &starts {
        assert!(forward || start >= ends[&(true, (stage, microbatch))]);
        let source = if forward { stage.checked_sub(1) } else { Some(stage + 1) };
        let Some(made) = source.and_then(|source| ends.get(&(forward, (source, microbatch)))) else { continue };
        match sends.get(&(forward, (stage, microbatch))) {
            Some(sent) => assert!(sent.start_s >= *made && start >= sent.end_s, "{schedule:?} {sent:?} {made} {start}"),
            None => assert!(start >= *made),
        }
    }
    for (rank, stage) in pipeline.stages.iter().enumerate() {
        let made = |e: &&Event| e.stage as usize == rank && e.kind.lane() == 0 && e.kind != EventKind::OptimizerStep;
        let made = timeline.events.iter().filter(made).map(|e| e.end_s).fold(0.0, f64::max);
        let reduces = || timeline.events.iter().filter(|e| e.stage as usize == rank && e.kind == EventKind::AllReduce);
        let total: f64 = reduces().map(|e| e.end_s - e.start_s).sum();
        assert!(pipeline.microbatches == 0 || close(total, stage.all_reduce_s) || stage.replicas == 1, "{total}");
        assert!(reduces().next_back().is_none_or(|last| last.end_s >= made));
        let steps = &timeline.memory[rank];
        assert!(steps[0].0 == 0.0 && steps.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(steps[0].1.min(steps.last().unwrap().1), steps.last().unwrap().1);
        let compute: f64 =
            timeline.row(rank, 0).iter().filter(|e| e.kind.lane() == 0).map(|e| e.end_s - e.start_s).sum();
        assert!(
            close(compute, timeline.busy_s[rank]) || compute < 1e-9,
            "{schedule:?} {rank} {compute} {}",
            timeline.busy_s[rank]
        );
    }
    assert_eq!(timeline.iteration_s, timeline.events.iter().map(|e| e.end_s).fold(0.0, f64::max));
    assert!((0.0..=1.0).contains(&timeline.idle));
    assert_contention(pipeline, timeline);
    assert_path(pipeline, schedule, timeline);
}

/// Order, durations, nothing twice, nothing at the same time on one resource.
fn assert_lanes<'a>(pipeline: &Pipeline, schedule: Schedule, timeline: &'a Timeline) -> BTreeMap<Key, &'a Event> {
    let key = |e: &Event| (e.stage, e.replica, e.kind.lane());
    assert!(timeline.events.is_sorted_by(|a, b| key(a).cmp(&key(b)).then(a.start_s.total_cmp(&b.start_s)).is_le()));
    for pair in timeline.events.windows(2).filter(|pair| key(&pair[0]) == key(&pair[1])) {
        assert!(pair[0].end_s <= pair[1].start_s, "two things at once: {pair:?}");
    }
    let parts = parts(pipeline, schedule) as f64;
    let share = pipeline.settings.weight_gradient_share;
    let dearest = pipeline.transfers.iter().map(|t| t.seconds).fold(0.0, f64::max);
    let mut seen: BTreeMap<Key, &Event> = BTreeMap::new();
    for event in &timeline.events {
        let key = (event.kind, event.stage as usize, event.part as usize, event.microbatch);
        if !matches!(event.kind, EventKind::OptimizerStep) {
            assert!(seen.insert(key, event).is_none(), "twice: {event:?}");
        }
        let stage = &pipeline.stages[event.stage as usize];
        let link = |to: u32| {
            let pair = (event.stage.min(to) as usize, event.stage.max(to) as usize);
            pipeline.transfers.iter().find(|t| (t.from, t.to) == pair).map_or(dearest, |t| t.seconds)
        };
        let whole = stage.backward_s - stage.recompute_s;
        let seconds = match event.kind {
            EventKind::Forward => stage.forward_s / parts,
            EventKind::Recompute => stage.recompute_s / parts,
            EventKind::Backward if schedule.splits_backward() => (1.0 - share) * whole / parts,
            EventKind::Backward => whole / parts,
            EventKind::WeightGradient => share * whole / parts,
            EventKind::SendActivation { to, .. } | EventKind::SendGradient { to, .. } => link(to),
            EventKind::AllReduce | EventKind::OptimizerStep => continue,
            EventKind::ToHost | EventKind::FromHost => panic!("a batch has no {event:?}"),
        };
        let took = event.end_s - event.start_s;
        let shared = pipeline.settings.links == LinkModel::Shared && (1..=2).contains(&event.kind.lane());
        let exact = (took - seconds).abs() <= 1e-12 * event.end_s.max(1.0);
        assert!(exact || (shared && took > seconds), "{event:?} is not {seconds}");
        assert_eq!(event.replica, event.microbatch % stage.replicas);
    }
    seen
}

/// All-reduces and optimizer steps.
fn assert_after_batch(pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline) {
    let of =
        |s: usize, kind: EventKind| timeline.events.iter().filter(move |e| e.stage as usize == s && e.kind == kind);
    let settings = &pipeline.settings;
    let runs = schedule.has_backward() && pipeline.microbatches > 0;
    let gradients = if schedule.splits_backward() { EventKind::WeightGradient } else { EventKind::Backward };
    for (s, stage) in pipeline.stages.iter().enumerate() {
        let reduces: Vec<&Event> = of(s, EventKind::AllReduce).collect();
        let total: f64 = reduces.iter().map(|e| e.end_s - e.start_s).sum();
        let made = of(s, gradients).map(|e| e.end_s).fold(0.0, f64::max);
        if !runs || stage.all_reduce_s == 0.0 {
            assert!(reduces.is_empty());
        } else {
            assert!(close(total, stage.all_reduce_s), "{total}");
            let overlapped = settings.overlap && settings.buckets > 1;
            let count = if overlapped { settings.buckets as usize * parts(pipeline, schedule) } else { 1 };
            assert_eq!(reduces.len(), count);
            if !overlapped {
                assert!(reduces[0].start_s >= made);
            }
            // The last bucket has gradients that the last computation made.
            assert!(reduces[count - 1].start_s >= made, "{reduces:?} {made}");
        }
        let steps: Vec<&Event> = of(s, EventKind::OptimizerStep).collect();
        let stepping = runs && settings.optimizer_step_s > 0.0;
        assert_eq!(steps.len(), if stepping { stage.replicas as usize } else { 0 });
        for step in steps {
            assert!(close(step.end_s - step.start_s, settings.optimizer_step_s));
            assert!(reduces.iter().all(|e| e.end_s <= step.start_s));
        }
    }
}

/// Devices that cannot do two things at once do not; links carry what they can.
fn assert_contention(pipeline: &Pipeline, timeline: &Timeline) {
    let sends: Vec<(&Event, u32)> = timeline.events.iter().filter_map(|e| Some((e, e.receiver()?.0))).collect();
    let apart = |mut spans: Vec<(f64, f64)>| {
        spans.retain(|span| span.1 > span.0);
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{spans:?}");
    };
    if !pipeline.settings.overlap {
        let mut rows: BTreeMap<(u32, u32), Vec<(f64, f64)>> = BTreeMap::new();
        for event in timeline.events.iter().filter(|e| e.kind.lane() < 3) {
            rows.entry((event.stage, event.replica)).or_default().push((event.start_s, event.end_s));
        }
        for (event, to) in &sends {
            let replica = event.microbatch % timeline.replicas[*to as usize];
            rows.entry((*to, replica)).or_default().push((event.start_s, event.end_s));
        }
        rows.into_values().for_each(apart);
    }
    let mut links: BTreeMap<(u32, u32), Vec<(f64, f64)>> = BTreeMap::new();
    sends.iter().for_each(|(e, to)| links.entry((e.stage, *to)).or_default().push((e.start_s, e.end_s)));
    for link in &timeline.links {
        let spans = links.get(&(link.from as u32, link.to as u32)).cloned().unwrap_or_default();
        match pipeline.settings.links {
            LinkModel::Private => {}
            LinkModel::Exclusive => apart(spans),
            LinkModel::Shared => {
                // The link is never idle while somebody sends, and never carries more than it can.
                let (mut union, mut reached) = (0.0, 0.0f64);
                let mut sorted = spans;
                sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
                for (from, to) in sorted {
                    union += (to - from.max(reached)).max(0.0);
                    reached = reached.max(to);
                }
                assert!((union - link.busy_s).abs() <= 1e-9 * union.max(1e-3), "{union} {}", link.busy_s);
            }
        }
    }
}

/// In flight never above Piper's y, the figures agree with the events, and every replica drains.
fn assert_memory(pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline, s: usize) {
    let stage = &pipeline.stages[s];
    let suffix: u32 = pipeline.stages[s..].iter().map(|stage| stage.replicas).sum();
    let own = pipeline.microbatches.div_ceil(stage.replicas);
    let bytes = |held: f64| stage.fixed_bytes + stage.activation_bytes * held;
    let parts = parts(pipeline, schedule) as f64;
    let release = match schedule {
        Schedule::Inference => EventKind::Forward,
        _ if schedule.splits_backward() => EventKind::WeightGradient,
        _ => EventKind::Backward,
    };
    let mut most = 0;
    for replica in 0..stage.replicas {
        let mut in_flight = 0;
        for event in timeline.row(s, replica) {
            in_flight += i32::from(event.kind == EventKind::Forward);
            most = most.max(in_flight);
            in_flight -= i32::from(event.kind == release);
        }
        assert_eq!(in_flight, 0);
    }
    let peak = timeline.peak_memory_bytes[s];
    assert!(close(peak, bytes(f64::from(most) / parts)) || peak < 1e-9, "{schedule:?} {peak} {most}");
    match schedule {
        Schedule::OneForwardOneBackward => assert_eq!(peak, bytes(f64::from(suffix.div_ceil(stage.replicas).min(own)))),
        Schedule::GPipe => assert_eq!(peak, bytes(f64::from(own))),
        Schedule::Inference => assert_eq!(peak, bytes(f64::from(own.min(1)))),
        _ => {}
    }
    let parted: f64 = timeline.peak_parts[s].named().iter().map(|part| part.1).sum();
    assert!(close(parted, peak) || peak < 1e-9);
    let steps = &timeline.memory[s];
    assert_eq!(steps[0].0, 0.0);
    assert!(steps.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(steps.last().unwrap().1, stage.fixed_bytes);
    let highest = steps.iter().map(|step| step.1).fold(0.0, f64::max);
    assert!(highest <= peak);
    if stage.forward_s.min(stage.backward_s * (1.0 - pipeline.settings.weight_gradient_share)) > 0.0 {
        assert!(close(highest, peak) || peak < 1e-9, "{schedule:?} {highest} {peak}");
    }
}

/// The critical path is a chain from the beginning to the end without a hole, and its shares are its length.
fn assert_path(pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline) {
    let path = critical_path(pipeline, schedule, timeline);
    let sum: f64 = path.shares.iter().map(|share| share.2).sum();
    assert_eq!(path.from_s, 0.0, "{schedule:?} {pipeline:?}");
    assert!(close(sum, timeline.iteration_s) || timeline.iteration_s < 1e-9, "{sum} {schedule:?} {pipeline:?}");
    for pair in path.events.windows(2) {
        let (a, b) = (&timeline.events[pair[0]], &timeline.events[pair[1]]);
        let bucket = b.kind == EventKind::AllReduce && a.start_s < b.start_s && b.start_s < a.end_s;
        assert!(a.end_s == b.start_s || bucket, "{a:?} {b:?}");
    }
}

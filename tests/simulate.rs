//! Facts that hold for every simulated schedule.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use plantui::{
    cluster::{Limits, Overrides},
    planner::{self, Options, Problem, Search},
    simulate::{
        Event, EventKind, MOST_EVENTS, Pipeline, PipelineStage, Schedule, Settings, Timeline, Transfer, simulate,
    },
    workload::load,
};

/// Deterministic pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// A time between 0 and 10 seconds, often a whole number so that ties happen.
    fn time(&mut self) -> f64 {
        if self.below(2) == 0 { self.below(10) as f64 } else { self.below(1 << 30) as f64 / f64::from(1 << 30) * 10.0 }
    }
}

fn stage(forward_s: f64, backward_s: f64) -> PipelineStage {
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

fn transfer(from: usize, to: usize, seconds: f64) -> Transfer {
    Transfer { from, to, seconds, bytes: seconds * 1e9 }
}

fn chain(stages: Vec<PipelineStage>, seconds: &[f64], microbatches: u32) -> Pipeline {
    let transfers = seconds.iter().enumerate().map(|(i, &s)| transfer(i, i + 1, s)).collect();
    Pipeline { stages, transfers, microbatches, ..Pipeline::default() }
}

/// A pipeline with replicas, skip edges and stages that nothing joins.
fn random_pipeline(random: &mut Random) -> Pipeline {
    let count = 1 + random.below(6) as usize;
    let stages = (0..count)
        .map(|_| PipelineStage {
            forward_s: random.time(),
            backward_s: random.time(),
            replicas: 1 + random.below(4) as u32,
            devices: 1 + random.below(3) as u32,
            all_reduce_s: if random.below(2) == 0 { random.time() } else { 0.0 },
            fixed_bytes: random.below(100) as f64,
            activation_bytes: random.below(100) as f64,
            warm_up: None,
        })
        .collect();
    let mut transfers = vec![];
    for from in 0..count {
        for to in from + 1..count {
            if random.below(if to == from + 1 { 10 } else { 3 }) > 0 {
                transfers.push(transfer(from, to, random.time() / 2.0));
            }
        }
    }
    Pipeline { stages, transfers, microbatches: random.below(40) as u32, ..Pipeline::default() }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-11 * a.abs().max(b.abs()).max(1e-3)
}

fn lane(event: &Event) -> u8 {
    match event.kind {
        EventKind::Forward | EventKind::Backward => 0,
        EventKind::SendActivation { .. } | EventKind::ToHost => 1,
        EventKind::SendGradient { .. } | EventKind::FromHost => 2,
        EventKind::AllReduce => 3,
    }
}

/// Replays a complete timeline: everything happened once, for as long as it takes, one thing at a time on a resource,
/// and not before what it needs.
fn assert_sound(pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline) {
    let key = |e: &Event| (e.stage, e.replica, lane(e));
    assert!(timeline.events.is_sorted_by(|a, b| key(a).cmp(&key(b)).then(a.start_s.total_cmp(&b.start_s)).is_le()));
    for pair in timeline.events.windows(2).filter(|pair| key(&pair[0]) == key(&pair[1])) {
        assert!(pair[0].end_s <= pair[1].start_s, "two things at once: {pair:?}");
    }
    let mut seen: BTreeMap<(EventKind, u32, u32), &Event> = BTreeMap::new();
    for event in &timeline.events {
        assert!(seen.insert((event.kind, event.stage, event.microbatch), event).is_none(), "twice: {event:?}");
        let stage = &pipeline.stages[event.stage as usize];
        let (a, b) = (event.stage as usize, |to: u32| to as usize);
        let link = |from, to| pipeline.transfers.iter().find(|t| (t.from, t.to) == (from, to)).unwrap().seconds;
        let seconds = match event.kind {
            EventKind::Forward => stage.forward_s,
            EventKind::Backward => stage.backward_s,
            EventKind::SendActivation { to } => link(a, b(to)),
            EventKind::SendGradient { to } => link(b(to), a),
            EventKind::AllReduce => stage.all_reduce_s,
            EventKind::ToHost | EventKind::FromHost => panic!("a batch has no {event:?}"),
        };
        assert!(close(event.end_s - event.start_s, seconds) || seconds < 1e-9, "{event:?} is not {seconds}");
        if event.kind != EventKind::AllReduce {
            assert_eq!(event.replica, event.microbatch % stage.replicas);
        }
    }
    let ended = |kind, stage: usize, m| seen[&(kind, stage as u32, m)].end_s;
    let started = |kind, stage: usize, m| seen[&(kind, stage as u32, m)].start_s;
    for m in 0..pipeline.microbatches {
        for s in 0..pipeline.stages.len() {
            assert!(started(EventKind::Backward, s, m) >= ended(EventKind::Forward, s, m));
        }
        for t in &pipeline.transfers {
            let (act, grad) =
                (EventKind::SendActivation { to: t.to as u32 }, EventKind::SendGradient { to: t.from as u32 });
            assert!(started(act, t.from, m) >= ended(EventKind::Forward, t.from, m));
            assert!(started(EventKind::Forward, t.to, m) >= ended(act, t.from, m));
            assert!(started(grad, t.to, m) >= ended(EventKind::Backward, t.to, m));
            assert!(started(EventKind::Backward, t.from, m) >= ended(grad, t.to, m));
        }
    }
    let reduces = pipeline.stages.iter().filter(|s| s.all_reduce_s > 0.0 && pipeline.microbatches > 0).count();
    let per_microbatch = 2 * (pipeline.stages.len() + pipeline.transfers.len());
    assert_eq!(timeline.events.len(), per_microbatch * pipeline.microbatches as usize + reduces);
    for event in timeline.events.iter().filter(|e| e.kind == EventKind::AllReduce) {
        assert!(
            (0..pipeline.microbatches).all(|m| ended(EventKind::Backward, event.stage as usize, m) <= event.start_s)
        );
    }
    assert_eq!(timeline.iteration_s, timeline.events.iter().map(|e| e.end_s).fold(0.0, f64::max));
    assert!((0.0..=1.0).contains(&timeline.bubble));
    for (s, stage) in pipeline.stages.iter().enumerate() {
        assert_memory(pipeline, schedule, timeline, s);
        let compute: f64 = timeline.row(s, 0).iter().filter(|e| lane(e) == 0).map(|e| e.end_s - e.start_s).sum();
        assert!(close(compute, timeline.busy_s[s]) || compute < 1e-9, "{compute} {}", timeline.busy_s[s]);
        assert_eq!(timeline.replicas[s], stage.replicas);
    }
}

/// In flight never above Piper's y, the figures agree with the events, and every replica drains.
fn assert_memory(pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline, s: usize) {
    let stage = &pipeline.stages[s];
    let suffix: u32 = pipeline.stages[s..].iter().map(|stage| stage.replicas).sum();
    let own = pipeline.microbatches.div_ceil(stage.replicas);
    let most = match schedule {
        Schedule::OneForwardOneBackward => suffix.div_ceil(stage.replicas).min(own),
        Schedule::GPipe | Schedule::SingleSample => own,
    };
    assert_eq!(timeline.peak_memory_bytes[s], stage.fixed_bytes + stage.activation_bytes * f64::from(most));
    let steps = &timeline.memory[s];
    assert_eq!(steps[0].0, 0.0);
    assert!(steps.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(steps.last().unwrap().1, stage.fixed_bytes);
    let highest = steps.iter().map(|step| step.1).fold(0.0, f64::max);
    if stage.forward_s + stage.backward_s > 0.0 {
        assert_eq!(highest, timeline.peak_memory_bytes[s]);
    }
    for replica in 0..stage.replicas {
        let mut in_flight = 0;
        for event in timeline.row(s, replica) {
            match event.kind {
                EventKind::Forward => in_flight += 1,
                EventKind::Backward => in_flight -= 1,
                _ => {}
            }
            assert!(in_flight <= most);
        }
        assert_eq!(in_flight, 0);
    }
}

#[test]
fn random_pipelines_are_sound() {
    let mut random = Random(11);
    for _ in 0..600 {
        let pipeline = random_pipeline(&mut random);
        for schedule in Schedule::ALL {
            assert_sound(&pipeline, schedule, &simulate(&pipeline, schedule));
        }
    }
}

#[test]
fn gpipe_without_communication_has_a_closed_form() {
    let mut random = Random(3);
    for _ in 0..300 {
        let stages: Vec<PipelineStage> = (0..=random.below(8)).map(|_| stage(random.time(), random.time())).collect();
        let m = 1 + random.below(30) as u32;
        let sum: f64 = stages.iter().map(|s| s.forward_s + s.backward_s).sum();
        let longest = |time: fn(&PipelineStage) -> f64| stages.iter().map(time).fold(0.0, f64::max);
        let expected = sum + f64::from(m - 1) * (longest(|s| s.forward_s) + longest(|s| s.backward_s));
        let links = vec![0.0; stages.len() - 1];
        let timeline = simulate(&chain(stages, &links, m), Schedule::GPipe);
        assert!(close(timeline.iteration_s, expected), "{} {expected}", timeline.iteration_s);
    }
}

#[test]
fn uniform_stages_have_the_textbook_time_and_bubble() {
    for schedule in Schedule::ALL {
        for (s, m) in [(1, 1), (1, 7), (4, 1), (4, 3), (4, 64), (9, 20)] {
            let pipeline = chain(vec![stage(0.5, 1.25); s as usize], &vec![0.0; s as usize - 1], m);
            let timeline = simulate(&pipeline, schedule);
            assert_eq!(timeline.iteration_s, f64::from(m + s - 1) * 1.75, "{schedule:?} {s} {m}");
            assert!(close(timeline.bubble, f64::from(s - 1) / f64::from(m + s - 1)));
            assert!(close(timeline.samples_per_s, f64::from(m) / timeline.iteration_s));
        }
    }
}

#[test]
fn latency_is_not_hidden_by_one_forward_one_backward() {
    // Four stages of 2 + 4 seconds and transfers of 1: four microbatches in flight at the first stage go round in 30
    // seconds, so the batch needs 7.5 seconds a microbatch although every stage works only 6.
    let pipeline = |m| chain(vec![stage(2.0, 4.0); 4], &[1.0; 3], m);
    let time = |m, schedule| simulate(&pipeline(m), schedule).iteration_s;
    assert_eq!(time(64, Schedule::OneForwardOneBackward), 502.0);
    assert_eq!(time(64, Schedule::GPipe), 408.0);
    let one = Schedule::OneForwardOneBackward;
    assert_eq!((time(128, one) - time(64, one)) / 64.0, 7.5);
}

#[test]
fn no_schedule_beats_the_lower_bound() {
    let mut random = Random(5);
    for _ in 0..300 {
        let count = 1 + random.below(6) as usize;
        let stages: Vec<PipelineStage> = (0..count).map(|_| stage(random.time(), random.time())).collect();
        let links: Vec<f64> = (1..count).map(|_| random.time()).collect();
        let m = 1 + random.below(30) as u32;
        let pipeline = chain(stages, &links, m);
        for schedule in Schedule::ALL {
            let iteration_s = simulate(&pipeline, schedule).iteration_s;
            let mut before = 0.0;
            for (s, stage) in pipeline.stages.iter().enumerate() {
                let own = stage.forward_s + stage.backward_s;
                let bound = f64::from(m) * own + before;
                assert!(iteration_s >= bound * (1.0 - 1e-11), "{iteration_s} {bound}");
                before += own + 2.0 * links.get(s).copied().unwrap_or(0.0);
            }
        }
    }
}

#[test]
fn nothing_gets_faster_when_something_gets_slower() {
    let mut random = Random(17);
    for _ in 0..400 {
        let pipeline = random_pipeline(&mut random);
        let mut slower = pipeline.clone();
        let s = random.below(slower.stages.len() as u64) as usize;
        match random.below(4) {
            0 => slower.stages[s].forward_s += random.time(),
            1 => slower.stages[s].backward_s += random.time(),
            2 => slower.stages[s].all_reduce_s += random.time(),
            _ => slower.transfers.iter_mut().for_each(|t| t.seconds += 0.5),
        }
        for schedule in Schedule::ALL {
            let (before, after) = (simulate(&pipeline, schedule), simulate(&slower, schedule));
            assert!(after.iteration_s >= before.iteration_s * (1.0 - 1e-11));
        }
    }
}

#[test]
fn empty_and_timeless_pipelines_are_harmless() {
    let broken = PipelineStage { forward_s: f64::NAN, backward_s: -1.0, ..PipelineStage::default() };
    let pipelines = [
        Pipeline::default(),
        Pipeline { microbatches: 5, ..Pipeline::default() },
        chain(vec![stage(1.0, 2.0); 2], &[1.0], 0),
        chain(vec![stage(0.0, 0.0); 3], &[0.0; 2], 4),
        chain(vec![broken; 2], &[f64::INFINITY], 4),
        Pipeline {
            transfers: vec![transfer(1, 0, 1.0), transfer(0, 9, 1.0)],
            ..chain(vec![stage(1.0, 1.0); 2], &[], 2)
        },
    ];
    for pipeline in &pipelines {
        for schedule in Schedule::ALL {
            let timeline = simulate(pipeline, schedule);
            assert!(timeline.iteration_s.is_finite() && timeline.bubble.is_finite());
            assert!(timeline.samples_per_s.is_finite() && timeline.peak_memory().is_finite());
        }
    }
}

#[test]
fn batches_too_long_to_draw_are_still_exact() {
    let m = 1_000_000;
    let pipeline = chain(vec![stage(2.0, 4.0); 4], &[1.0; 3], m);
    let timeline = simulate(&pipeline, Schedule::OneForwardOneBackward);
    assert_eq!(timeline.iteration_s, 502.0 + 7.5 * f64::from(m - 64));
    assert_eq!(timeline.busy_s[0], 6e6);
    assert_eq!(timeline.peak_memory_bytes, [22.0, 19.0, 16.0, 13.0]);
    assert!(timeline.events.len() <= MOST_EVENTS);
    let left_out = timeline.left_out.clone().unwrap();
    assert_eq!(left_out.start, m - left_out.end);
    for (s, steps) in timeline.memory.iter().enumerate() {
        assert_eq!(steps.iter().map(|step| step.1).fold(0.0, f64::max), timeline.peak_memory_bytes[s]);
        assert!(steps.is_sorted_by(|a, b| a.0 < b.0) && steps.last().unwrap().1 == 10.0);
        let forwards: Vec<u32> =
            timeline.row(s, 0).iter().filter(|e| e.kind == EventKind::Forward).map(|e| e.microbatch).collect();
        assert!(forwards.into_iter().eq((0..left_out.start).chain(left_out.end..m)));
    }
    let last = timeline.events.iter().map(|e| e.end_s).fold(0.0, f64::max);
    assert_eq!(last, timeline.iteration_s);
    let apart = chain(vec![stage(2.0, 4.0), stage(3.0, 1.0), stage(1.0, 5.0)], &[0.0; 2], m);
    let timeline = simulate(&apart, Schedule::GPipe);
    assert_eq!(timeline.iteration_s, 16.0 + f64::from(m - 1) * 8.0);
    assert_eq!(timeline.peak_memory(), 10.0 + 3.0 * f64::from(m));
}

/// BERT-32 as published, planned by Piper: what the simulator makes of it agrees with the check.
#[test]
fn published_bert_plans_simulate_as_checked() {
    let Some(folder) = std::env::var_os("PLANTUI_REFERENCE") else {
        println!("skipped published_bert_plans_simulate_as_checked: PLANTUI_REFERENCE is not set");
        return;
    };
    let file = Path::new(&folder).join("piper/inputs/bert32a100.json");
    let workload = Arc::new(load(&file).unwrap());
    let planner = planner::find("piper").unwrap();
    for (devices, memory_gib) in [(8, 80.0), (64, 8.0), (512, 8.0)] {
        let overrides = Overrides {
            devices: Some(devices),
            memory_bytes: Some(memory_gib * f64::from(1 << 30)),
            ..Overrides::default()
        };
        let limits = Limits::resolve(&workload, &overrides).unwrap();
        let options = Options::defaults(planner.options());
        let problem = Problem { workload: workload.clone(), limits, options };
        let (outcome, score) = planner::run(planner, &problem, &Search::default());
        let (plan, score) = (outcome.plan.unwrap(), score.unwrap());
        let pipeline = Pipeline::from_plan(&workload, &limits, &plan, &Settings::default());
        for schedule in Schedule::ALL {
            let timeline = simulate(&pipeline, schedule);
            assert_sound(&pipeline, schedule, &timeline);
            let compute = score.stages.iter().map(|s| s.compute_s).fold(0.0, f64::max);
            assert!(timeline.iteration_s >= compute * f64::from(limits.microbatches) * (1.0 - 1e-9));
            if schedule == Schedule::OneForwardOneBackward {
                assert!(close(timeline.peak_memory(), score.peak_memory_bytes()));
            }
            println!(
                "{devices} devices, {memory_gib} GiB, {} stages, {}: planned {} s a batch, {}",
                plan.stages.len(),
                schedule.name(),
                score.slowest_s * f64::from(limits.microbatches),
                timeline.summary()
            );
        }
    }
}

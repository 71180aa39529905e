//! Builds the timeline from a run's records: events by row, the all-reduce and the optimizer step after it, memory,
//! figures.

use super::{
    explicit,
    memory::{self, ListedMemory},
    memory_parts::MemoryParts,
    order::{Computation, ComputationOrder},
    pipeline::{Pipeline, sound},
    program::{Program, TickScale},
    run::Record,
    timeline::{Event, EventKind, LinkUse, Timeline},
};
use crate::plan::Schedule;

/// Records by worker and resource, each in order of time.
pub(super) struct Lanes {
    /// Compute, activations sent, gradients sent.
    lanes: Vec<[Vec<Record<i64>>; 3]>,
    /// By worker, then part of the model on it: its last operation on gradients.
    last: Vec<Vec<Option<(i64, i64)>>>,
    makes_gradients: &'static [EventKind],
    /// By chunk: its part of its stage.
    parts: Vec<u32>,
}

impl Lanes {
    pub(super) fn new(program: &Program, schedule: Schedule) -> Self {
        let makes_gradients: &[EventKind] = match schedule {
            _ if schedule.is_listed() => &[EventKind::WeightGradient, EventKind::Backward],
            _ if schedule.splits_backward() => &[EventKind::WeightGradient],
            _ => &[EventKind::Backward],
        };
        Lanes {
            lanes: vec![[const { vec![] }; 3]; program.workers.len()],
            last: vec![vec![None; program.parts()]; program.workers.len()],
            makes_gradients,
            parts: program.chunks.iter().map(|chunk| chunk.part).collect(),
        }
    }

    pub(super) fn push(&mut self, record: Record<i64>) {
        let lane = match record.kind {
            EventKind::SendActivation { .. } => 1,
            EventKind::SendGradient { .. } => 2,
            _ => 0,
        };
        if self.makes_gradients.contains(&record.kind) {
            let part = self.parts[record.chunk as usize] as usize;
            self.last[record.worker][part] = Some((record.start, record.end));
        }
        self.lanes[record.worker][lane].push(record);
    }

    /// Time at which a worker has finished computing and, without overlap, sending.
    fn done(&self, worker: usize, overlap: bool) -> i64 {
        let lanes = &self.lanes[worker][..if overlap { 1 } else { 3 }];
        lanes.iter().filter_map(|lane| lane.last()).map(|record| record.end).fold(0, i64::max)
    }
}

/// Timeline of a finished run.
pub(super) fn timeline(
    pipeline: &Pipeline,
    schedule: Schedule,
    program: &Program,
    clock: &TickScale,
    lanes: &Lanes,
) -> Timeline {
    let mut timeline =
        Timeline { replicas: program.groups.iter().map(|g| g.replicas).collect(), ..Timeline::default() };
    timeline.events.reserve(lanes.lanes.iter().flatten().map(Vec::len).sum());
    let step = if schedule.has_backward() && program.microbatches > 0 {
        clock.ticks(pipeline.settings.optimizer_step_s)
    } else {
        0
    };
    let mut last = 0;
    let event = |stage: u32, replica: u32, kind: EventKind, number: u32, start: i64, end: i64| Event {
        start_s: clock.seconds(start),
        end_s: clock.seconds(end),
        stage,
        replica,
        microbatch: number,
        part: 0,
        kind,
    };
    for (stage, group) in program.groups.iter().enumerate() {
        let workers = group.first_worker..group.first_worker + group.replicas as usize;
        let reduces = all_reduces(pipeline, schedule, program, clock, lanes, stage);
        let reduced = reduces.last().map(|reduce| reduce.1);
        for worker in workers {
            let replica = (worker - group.first_worker) as u32;
            let free = lanes.lanes[worker].each_ref().map(|lane| lane.last().map_or(0, |record| record.end));
            last = free.into_iter().fold(last, i64::max);
            let stage_number = stage as u32;
            for (number, lane) in lanes.lanes[worker].iter().enumerate() {
                for record in lane {
                    let part = program.chunks[record.chunk as usize].part;
                    let plain = event(stage_number, replica, record.kind, record.microbatch, record.start, record.end);
                    let mut start = record.start;
                    let recompute = program.chunks[record.chunk as usize].recompute;
                    if record.kind == EventKind::Backward && recompute > 0 {
                        start += recompute;
                        let kind = EventKind::Recompute;
                        let (m, from) = (record.microbatch, record.start);
                        timeline.events.push(Event { part, ..event(stage_number, replica, kind, m, from, start) });
                    }
                    timeline.events.push(Event { start_s: clock.seconds(start), part, ..plain });
                }
                if number == 0 && step > 0 {
                    let start = lanes.done(worker, pipeline.settings.overlap).max(reduced.unwrap_or(0));
                    last = last.max(start + step);
                    timeline.events.push(event(
                        stage_number,
                        replica,
                        EventKind::OptimizerStep,
                        0,
                        start,
                        start + step,
                    ));
                }
            }
            if replica == 0 {
                for (number, &(start, end)) in (0..).zip(&reduces) {
                    last = last.max(end);
                    timeline.events.push(event(stage_number, 0, EventKind::AllReduce, number, start, end));
                }
            }
        }
    }
    timeline.iteration_s = clock.seconds(last);
    summarise(pipeline, schedule, program, clock, lanes, &mut timeline);
    timeline
}

/// Intervals of a stage's all-reduces: one after the last operation on its gradients; or one per bucket, each as soon
/// as that operation has come far enough on every replica. Without overlap a device reduces afterwards.
fn all_reduces(
    pipeline: &Pipeline,
    schedule: Schedule,
    program: &Program,
    clock: &TickScale,
    lanes: &Lanes,
    stage: usize,
) -> Vec<(i64, i64)> {
    let ticks = clock.ticks(pipeline.stages[stage].all_reduce_s);
    if ticks == 0 || program.microbatches == 0 || !schedule.has_backward() {
        return vec![];
    }
    let group = &program.groups[stage];
    let workers = || group.first_worker..group.first_worker + group.replicas as usize;
    let settings = &pipeline.settings;
    if settings.buckets <= 1 || !settings.overlap {
        let start = workers().map(|worker| lanes.done(worker, settings.overlap)).fold(0, i64::max);
        return vec![(start, start + ticks)];
    }
    let buckets = i64::from(settings.buckets);
    let parts = program.parts();
    let mut ready = vec![];
    for part in 0..parts {
        let Some(chunk) = program.part_of(stage, part) else { continue };
        // Recomputation produces no gradients yet.
        let recompute = if schedule.splits_backward() { 0 } else { chunk.recompute };
        for bucket in 1..=buckets {
            let done = workers().filter_map(|worker| lanes.last[worker][part]).map(|(start, end)| {
                let start = start + recompute;
                end - (i128::from(end - start) * i128::from(buckets - bucket) / i128::from(buckets)) as i64
            });
            ready.push(done.fold(0, i64::max));
        }
    }
    ready.sort_unstable();
    let (mut free, mut begun) = (0, 0);
    let count = ready.len() as i64;
    let reduces = ready.iter().zip(1..).map(|(&ready, number): (_, i64)| {
        let until = (i128::from(ticks) * i128::from(number) / i128::from(count)) as i64;
        let start = ready.max(free);
        free = start + until - begun;
        begun = until;
        (start, free)
    });
    reduces.collect()
}

/// Computes the figures that follow from the events and durations.
fn summarise(
    pipeline: &Pipeline,
    schedule: Schedule,
    program: &Program,
    clock: &TickScale,
    lanes: &Lanes,
    timeline: &mut Timeline,
) {
    let microbatches = f64::from(pipeline.microbatches);
    let (mut busy, mut devices) = (0.0, 0.0);
    for (index, stage) in pipeline.stages.iter().enumerate() {
        let group = &program.groups[index];
        let first = group.first_worker;
        let own = f64::from(program.microbatches.div_ceil(group.replicas));
        let mut one = sound(stage.forward_s);
        let mut step = 0.0;
        if schedule.has_backward() {
            one += sound(stage.backward_s);
            step = if microbatches > 0.0 { sound(pipeline.settings.optimizer_step_s) } else { 0.0 };
        }
        let order = program.order(first);
        let width = f64::from(stage.devices.max(1));
        devices += width * f64::from(group.replicas);
        if schedule.is_listed() {
            // Pairs are in the order with the time that they take.
            let own = clock.seconds(order_ticks(program, order)) + step;
            timeline.busy_s.push(own);
            busy += width * f64::from(group.replicas) * own;
            let held = explicit::held_stage(pipeline, program, index);
            let fixed = held.fixed_bytes;
            let most = ListedMemory::new(program, order).most();
            timeline.peak_memory_bytes.push(fixed + most);
            timeline.peak_parts.push(MemoryParts::of(&held, most));
            timeline.memory.push(ListedMemory::new(program, order).steps(fixed, clock, &lanes.lanes[first][0]));
            continue;
        }
        let step = step - pipeline.saved_s(schedule, index);
        timeline.busy_s.push(own * one + step);
        busy += width * (microbatches * one + f64::from(group.replicas) * step);
        let parts = program.parts() as f64;
        let activations = stage.activation_bytes * order.most_held() as f64 / parts;
        timeline.peak_memory_bytes.push(stage.fixed_bytes + activations);
        timeline.peak_parts.push(MemoryParts::of(stage, activations));
        timeline.memory.push(memory::steps(stage, order, program.parts(), clock, &lanes.lanes[first][0]));
    }
    if timeline.iteration_s > 0.0 {
        let samples = if pipeline.samples > 0.0 { pipeline.samples } else { 1.0 };
        timeline.samples_per_s = samples * microbatches / timeline.iteration_s;
        timeline.idle = (1.0 - busy / (timeline.iteration_s * devices)).clamp(0.0, 1.0);
    }
    timeline.links = links(pipeline, program, clock);
}

/// Duration of all operations of an order.
fn order_ticks(program: &Program, order: &ComputationOrder) -> i64 {
    let one = |index| {
        let Computation { work, chunk, paired, .. } = order.at(index);
        program.chunks[chunk as usize].pass(work, paired)
    };
    (0..order.len).map(one).sum()
}

/// Traffic of every link, from the sends of the program.
fn links(pipeline: &Pipeline, program: &Program, clock: &TickScale) -> Vec<LinkUse> {
    let mut links: std::collections::BTreeMap<(u32, u32), LinkUse> = std::collections::BTreeMap::new();
    // Of two copies of the model, each takes one half of the microbatches.
    let share = if program.copies { 0.5 } else { 1.0 };
    let microbatches = share * f64::from(pipeline.microbatches);
    for chunk in &program.chunks {
        let within = pipeline.stages[chunk.stage as usize].sends_s;
        let activations = chunk.activations.iter().map(|send| (send, within[0]));
        let sends = activations.chain(chunk.gradients.iter().map(|send| (send, within[1])));
        for (send, within_s) in sends.filter(|(send, _)| !send.local) {
            let (from, to) = (chunk.stage as usize, send.stage as usize);
            let pair = (from.min(to), from.max(to));
            let known = pipeline.sends().find(|t| (t.from, t.to) == pair);
            // The transfer from the last stage back to the first is not a transfer of the plan.
            let dearest = || pipeline.sends().map(|t| t.bytes).fold(0.0, f64::max);
            let bytes = known.map_or_else(dearest, |t| t.bytes);
            let link = links.entry((chunk.stage, send.stage)).or_insert(LinkUse { from, to, ..LinkUse::default() });
            link.busy_s += share * program.all_ticks(*send) * clock.tick_s();
            link.busy_s += microbatches * within_s;
            link.bytes += microbatches * bytes;
        }
    }
    links.into_values().collect()
}

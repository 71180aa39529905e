//! Plays a schedule on a pipeline and makes the timeline.
//!
//! `O(events)` time and memory, for at most [`MOST_EVENTS`] events: of longer batches the beginning and the end are
//! kept, and the middle is passed over by [`fast_forward`], with the same result. The surprising decision: time is
//! counted in whole ticks of a power of two of a second, chosen so that the whole batch run one operation after another
//! is below 2⁶¹ ticks. Sums are exact, nothing overlaps by a rounding error, equal durations stay equal; a duration is
//! off by at most half a tick.

use super::{
    Event, EventKind, Pipeline, PipelineStage, Schedule, Timeline, fast_forward,
    run::{Program, Record, Run, Send, StageProgram},
    sequence, single_sample,
};

/// Events that a timeline keeps at the most, but for the all-reduces (about 40 MB).
pub const MOST_EVENTS: usize = 1 << 20;

/// Plays a schedule. Durations that are negative or not finite count as 0, as do transfers that do not lead to a later
/// stage.
pub fn simulate(pipeline: &Pipeline, schedule: Schedule) -> Timeline {
    if pipeline.stages.is_empty() {
        return Timeline::default();
    }
    if let Some(run) = &pipeline.single_sample {
        return single_sample::play(pipeline, run);
    }
    if !pipeline.steps.is_empty() {
        return sequence::play(pipeline);
    }
    let clock = Clock::of(pipeline);
    let program = program(pipeline, schedule, &clock);
    let mut lanes = Lanes::new(&program);
    let drawn = drawn(&program);
    let run = fast_forward::play(&program, schedule, drawn, |record| lanes.push(&record));
    let mut timeline = timeline(pipeline, &program, &clock, &run, lanes);
    let left_out = drawn..program.microbatches.saturating_sub(drawn);
    timeline.left_out = Some(left_out).filter(|range| !range.is_empty());
    timeline
}

/// Microbatches whose events are kept at either end of the batch; all of them if the events are not too many.
fn drawn(program: &Program) -> u32 {
    let sends: usize = program.stages.iter().map(|s| s.activations.len() + s.gradients.len()).sum();
    let events = 2 * program.stages.len() + sends;
    if events.saturating_mul(program.microbatches as usize) <= MOST_EVENTS {
        program.microbatches
    } else {
        (MOST_EVENTS / 2 / events).max(1) as u32
    }
}

/// A duration as it counts.
fn sound(seconds: f64) -> f64 {
    if seconds.is_finite() { seconds.max(0.0) } else { 0.0 }
}

/// Seconds to ticks and back.
struct Clock {
    ticks_per_s: f64,
}

impl Clock {
    /// The finest clock on which the pipeline's work, one thing after another, takes less than 2⁶¹ ticks.
    fn of(pipeline: &Pipeline) -> Self {
        let m = f64::from(pipeline.microbatches);
        let compute: f64 = pipeline.stages.iter().map(|s| m * (sound(s.forward_s) + sound(s.backward_s))).sum();
        let reduce: f64 = pipeline.stages.iter().map(|s| sound(s.all_reduce_s)).sum();
        let transfers: f64 = pipeline.transfers.iter().map(|t| 2.0 * m * sound(t.seconds)).sum();
        let total = compute + reduce + transfers;
        let exponent = if total > 0.0 { 60.0 - total.log2().ceil() } else { 0.0 };
        Clock { ticks_per_s: 2f64.powi(exponent.clamp(-1000.0, 1000.0) as i32) }
    }

    fn ticks(&self, seconds: f64) -> i64 {
        (sound(seconds) * self.ticks_per_s).round() as i64
    }

    fn seconds(&self, ticks: i64) -> f64 {
        ticks as f64 / self.ticks_per_s
    }
}

/// Puts times, orders and transfers into the form that a run reads.
fn program(pipeline: &Pipeline, schedule: Schedule, clock: &Clock) -> Program {
    let mut stages = Vec::with_capacity(pipeline.stages.len());
    let mut workers = vec![];
    for (index, stage) in pipeline.stages.iter().enumerate() {
        let replicas = stage.replicas.max(1);
        let warm_up = match schedule {
            Schedule::OneForwardOneBackward => pipeline.warm_up(index),
            Schedule::GPipe | Schedule::SingleSample => u32::MAX,
        };
        stages.push(StageProgram {
            forward: clock.ticks(stage.forward_s),
            backward: clock.ticks(stage.backward_s),
            replicas,
            warm_up,
            activations: vec![],
            gradients: vec![],
            first_worker: workers.len(),
        });
        workers.extend((0..replicas).map(|replica| (index as u32, replica)));
    }
    for transfer in pipeline.transfers.iter().filter(|t| t.from < t.to && t.to < pipeline.stages.len()) {
        let ticks = clock.ticks(transfer.seconds);
        stages[transfer.from].activations.push(Send { to: transfer.to as u32, ticks });
        stages[transfer.to].gradients.push(Send { to: transfer.from as u32, ticks });
    }
    for stage in &mut stages {
        // To the nearest stage first: it is the one that can go on soonest.
        stage.activations.sort_by_key(|send| send.to);
        stage.gradients.sort_by_key(|send| std::cmp::Reverse(send.to));
    }
    Program { stages, microbatches: pipeline.microbatches, workers }
}

/// Records by worker and resource, each in order of time.
struct Lanes {
    lanes: Vec<[Vec<Record<i64>>; 3]>,
}

impl Lanes {
    fn new(program: &Program) -> Self {
        Lanes { lanes: vec![[const { vec![] }; 3]; program.workers.len()] }
    }

    fn push(&mut self, record: &Record<i64>) {
        let lane = match record.kind {
            EventKind::Forward | EventKind::Backward => 0,
            EventKind::SendActivation { .. } => 1,
            EventKind::SendGradient { .. } | EventKind::AllReduce => 2,
            // Of single samples, which are not run here.
            EventKind::ToHost | EventKind::FromHost => return,
        };
        self.lanes[record.worker][lane].push(*record);
    }
}

/// The timeline of a finished run.
fn timeline(pipeline: &Pipeline, program: &Program, clock: &Clock, run: &Run<i64>, lanes: Lanes) -> Timeline {
    let mut timeline =
        Timeline { replicas: program.stages.iter().map(|s| s.replicas).collect(), ..Timeline::default() };
    let mut last = 0;
    for (worker, lanes) in lanes.lanes.into_iter().enumerate() {
        let (stage, replica) = program.workers[worker];
        for record in lanes.into_iter().flatten() {
            timeline.events.push(Event {
                start_s: clock.seconds(record.start),
                end_s: clock.seconds(record.end),
                stage,
                replica,
                microbatch: record.microbatch,
                kind: record.kind,
            });
        }
        last = run.workers[worker].free.into_iter().fold(last, i64::max);
        let all_reduce = clock.ticks(pipeline.stages[stage as usize].all_reduce_s);
        if replica == 0 && all_reduce > 0 && program.microbatches > 0 {
            let replicas = program.stages[stage as usize].replicas as usize;
            let start = (worker..worker + replicas).map(|w| run.workers[w].free[0]).fold(0, i64::max);
            last = last.max(start + all_reduce);
            timeline.events.push(Event {
                start_s: clock.seconds(start),
                end_s: clock.seconds(start + all_reduce),
                stage,
                replica,
                microbatch: 0,
                kind: EventKind::AllReduce,
            });
        }
    }
    timeline.iteration_s = clock.seconds(last);
    summarise(pipeline, program, &mut timeline);
    timeline
}

/// Fills in what follows from the events and the durations.
fn summarise(pipeline: &Pipeline, program: &Program, timeline: &mut Timeline) {
    let microbatches = f64::from(program.microbatches);
    let (mut busy, mut devices) = (0.0, 0.0);
    for (index, stage) in pipeline.stages.iter().enumerate() {
        let first = program.stages[index].first_worker;
        let replicas = program.stages[index].replicas;
        let own = program.own(first);
        let one = sound(stage.forward_s) + sound(stage.backward_s);
        timeline.busy_s.push(f64::from(own) * one);
        let width = f64::from(stage.devices.max(1));
        busy += width * microbatches * one;
        devices += width * f64::from(replicas);
        let in_flight = own.min(program.stages[index].warm_up.saturating_add(1));
        timeline.peak_memory_bytes.push(stage.fixed_bytes + stage.activation_bytes * f64::from(in_flight));
        let steps = memory_steps(stage, &program.stages[index], own, timeline.row(index, 0));
        timeline.memory.push(steps);
    }
    if timeline.iteration_s > 0.0 {
        let samples = if pipeline.samples > 0.0 { pipeline.samples } else { 1.0 };
        timeline.samples_per_s = samples * microbatches / timeline.iteration_s;
        timeline.bubble = (1.0 - busy / (timeline.iteration_s * devices)).clamp(0.0, 1.0);
    }
}

/// Memory over time on a device of the first replica: no other replica has more microbatches, and all keep equally many
/// in flight. How many those are follows from the schedule alone, so events may be missing from the row.
fn memory_steps(stage: &PipelineStage, program: &StageProgram, own: u32, row: &[Event]) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64)> = vec![(0.0, stage.fixed_bytes)];
    for event in row {
        let index = event.microbatch / program.replicas;
        let (time, in_flight) = match event.kind {
            EventKind::Forward => (event.start_s, index + 1 - index.saturating_sub(program.warm_up)),
            EventKind::Backward => (event.end_s, own.min(program.warm_up.saturating_add(index + 1)) - (index + 1)),
            _ => continue,
        };
        let bytes = stage.fixed_bytes + stage.activation_bytes * f64::from(in_flight);
        match steps.last_mut() {
            Some(step) if step.0 == time => step.1 = bytes,
            _ => steps.push((time, bytes)),
        }
    }
    steps
}

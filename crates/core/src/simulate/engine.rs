//! Runs a schedule on a pipeline and builds the timeline.
//!
//! If the schedule fixes the order of every resource, a run is a longest-path computation ([`super::run`]), and the
//! middle of a long batch is skipped exactly ([`super::fast_forward`]). If transfers wait for links or devices, the
//! order depends on time. Events are then simulated by the clock ([`super::contention`]), with leaps if the state
//! recurs ([`super::recurrence`]). Both take `O(events)` time, except for the clock's queue, and memory for at most
//! [`MOST_EVENTS`] events.

use std::time::Duration;

use super::{
    assemble::{self, Lanes},
    contention, fast_forward,
    patience::Patience,
    pipeline::Pipeline,
    program::{Program, TickScale},
    sequence, single_sample,
    timeline::Timeline,
};
use crate::plan::Schedule;

/// Minimum time that a simulation may take, regardless of the remaining deadline.
pub const LEAST_TIME: Duration = Duration::from_secs(1);

/// Maximum number of events that a timeline keeps, without all-reduces and optimizer steps (about 40 MB).
pub const MOST_EVENTS: usize = 1 << 20;

/// Simulates a schedule. Negative or non-finite durations count as 0, as do transfers that do not lead to a later
/// stage. A refused schedule ([`Pipeline::refusal`]) gives an empty timeline.
pub fn simulate(pipeline: &Pipeline, schedule: Schedule) -> Timeline {
    simulate_unless(pipeline, schedule, &|| false).unwrap_or_default()
}

/// Like [`simulate`], but stops with `None` when `stopped` returns true. It is polled every few thousand events, so a
/// shorter run is never stopped.
pub fn simulate_unless(pipeline: &Pipeline, schedule: Schedule, stopped: &dyn Fn() -> bool) -> Option<Timeline> {
    simulated(pipeline, schedule, MOST_EVENTS, stopped)
}

/// Iteration time in seconds: like [`simulate_unless`], but hardly any events are kept.
pub fn length_unless(pipeline: &Pipeline, schedule: Schedule, stopped: &dyn Fn() -> bool) -> Option<f64> {
    simulated(pipeline, schedule, 0, stopped).map(|timeline| timeline.iteration_s)
}

fn simulated(
    pipeline: &Pipeline,
    schedule: Schedule,
    most_events: usize,
    stopped: &dyn Fn() -> bool,
) -> Option<Timeline> {
    if pipeline.stages.is_empty() {
        return Some(Timeline::default());
    }
    if let Some(run) = &pipeline.single_sample {
        return Some(single_sample::simulate(pipeline, run));
    }
    if !pipeline.steps.is_empty() {
        return Some(sequence::simulate(pipeline));
    }
    if pipeline.refusal(schedule).is_some() {
        return Some(Timeline::default());
    }
    let clock = TickScale::of(pipeline);
    let program = Program::new(pipeline, schedule, &clock);
    let drawn = drawn(&program, schedule, most_events);
    let mut lanes = Lanes::new(&program, schedule);
    let patience = &mut Patience::new(stopped);
    if pipeline.settings.contended() {
        contention::simulate(pipeline, &program, drawn, patience, |record| lanes.push(record))?;
    } else {
        fast_forward::simulate(&program, drawn, patience, |record| lanes.push(record))?;
    }
    let mut timeline = assemble::timeline(pipeline, schedule, &program, &clock, &lanes);
    let left_out = drawn..program.microbatches.saturating_sub(drawn);
    timeline.left_out = Some(left_out).filter(|range| !range.is_empty());
    Some(timeline)
}

/// Number of microbatches whose events are kept at either end of the batch; all of them if the events are few enough.
fn drawn(program: &Program, schedule: Schedule, most_events: usize) -> u32 {
    let one = |chunk: &super::program::Chunk| {
        let recompute = usize::from(chunk.recompute > 0);
        let compute = if schedule.splits_backward() { 3 } else { 2 };
        compute + recompute + chunk.activations.len() + chunk.gradients.len()
    };
    let events: usize = program.chunks.iter().map(one).sum();
    if events.saturating_mul(program.microbatches as usize) <= most_events {
        program.microbatches
    } else {
        // The last microbatch of every replica determines when the replica is done.
        let replicas = program.groups.iter().map(|group| group.replicas).max().unwrap_or(1);
        ((most_events / 2 / events) as u32).max(replicas)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::simulate::{LinkModel, PipelineStage, SimulatorSettings, Transfer};

    #[test]
    fn a_length_without_events_is_that_with_them() {
        for (replicas, microbatches) in [(&[8, 15, 4, 12, 5][..], 960), (&[1, 1, 1], 500), (&[16, 5, 4, 4, 1], 1920)] {
            let stage = |&replicas: &u32| PipelineStage {
                forward_s: 1.0 + f64::from(replicas),
                backward_s: 2.0 * f64::from(replicas),
                replicas,
                all_reduce_s: 0.25,
                ..PipelineStage::default()
            };
            let transfer = |from| Transfer { from, to: from + 1, seconds: 0.125, bytes: 1.0 };
            let pipeline = Pipeline {
                stages: replicas.iter().map(stage).collect(),
                transfers: (0..replicas.len() - 1).map(transfer).collect(),
                microbatches,
                ..Pipeline::default()
            };
            for schedule in [Schedule::OneForwardOneBackward, Schedule::GPipe, Schedule::ZeroBubbleH1] {
                let whole = simulate(&pipeline, schedule).iteration_s;
                assert_eq!(length_unless(&pipeline, schedule, &|| false), Some(whole), "{replicas:?} {schedule:?}");
            }
        }
    }

    #[test]
    fn a_long_run_is_given_up_when_nobody_waits_for_it() {
        let stage = PipelineStage { forward_s: 1.0, backward_s: 2.0, ..PipelineStage::default() };
        let mut pipeline = Pipeline {
            stages: vec![stage; 2],
            transfers: vec![Transfer { from: 0, to: 1, seconds: 0.5, bytes: 1.0 }],
            microbatches: 10_000,
            settings: SimulatorSettings { links: LinkModel::Shared, ..SimulatorSettings::default() },
            ..Pipeline::default()
        };
        let asked = Cell::new(0);
        let stopped = |at: u32| {
            asked.set(0);
            let stop = || {
                asked.set(asked.get() + 1);
                asked.get() >= at
            };
            simulate_unless(&pipeline, Schedule::GPipe, &stop)
        };
        assert_eq!(stopped(2), None);
        assert_eq!(asked.get(), 2, "nothing goes on after that");
        assert_eq!(stopped(u32::MAX), Some(simulate(&pipeline, Schedule::GPipe)));
        assert!(asked.get() > 2);
        // Without contention as well.
        pipeline.settings.links = LinkModel::Private;
        assert_eq!(simulate_unless(&pipeline, Schedule::GPipe, &|| true), None);
        // What takes no time to speak of is not asked about.
        pipeline.microbatches = 1000;
        assert!(simulate_unless(&pipeline, Schedule::GPipe, &|| true).is_some());
    }
}

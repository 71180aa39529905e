//! Plays a schedule on a pipeline and makes the timeline.
//!
//! Where every resource serves in an order that the schedule fixes, a run is a longest-path computation ([`super::run`]),
//! and of long batches the middle is passed over exactly ([`super::fast_forward`]). Where transfers wait for links or for
//! devices, order depends on time and events are played by the clock ([`super::contention`]). Either way `O(events)` time
//! but for the clock's queue, and memory for at most [`MOST_EVENTS`] events.

use super::{
    Pipeline, Schedule, Timeline,
    assemble::{self, Lanes},
    contention, fast_forward,
    program::{Clock, Program},
    sequence, single_sample,
};

/// Events that a timeline keeps at the most, but for the all-reduces and optimizer steps (about 40 MB).
pub const MOST_EVENTS: usize = 1 << 20;

/// Plays a schedule. Durations that are negative or not finite count as 0, as do transfers that do not lead to a later
/// stage. A schedule that the pipeline refuses ([`Pipeline::refusal`]) leaves an empty timeline.
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
    if pipeline.refusal(schedule).is_some() {
        return Timeline::default();
    }
    let clock = Clock::of(pipeline);
    let program = Program::new(pipeline, schedule, &clock);
    let drawn = drawn(&program, schedule);
    let mut lanes = Lanes::new(&program, schedule);
    if pipeline.settings.contended() {
        let gap = drawn..program.microbatches.saturating_sub(drawn);
        contention::play(pipeline, &program, |record| {
            if !gap.contains(&record.microbatch) {
                lanes.push(record);
            }
        });
    } else {
        fast_forward::play(&program, drawn, |record| lanes.push(record));
    }
    let mut timeline = assemble::timeline(pipeline, schedule, &program, &clock, &lanes);
    let left_out = drawn..program.microbatches.saturating_sub(drawn);
    timeline.left_out = Some(left_out).filter(|range| !range.is_empty());
    timeline
}

/// Microbatches whose events are kept at either end of the batch; all of them if the events are not too many.
fn drawn(program: &Program, schedule: Schedule) -> u32 {
    let one = |chunk: &super::program::Chunk| {
        let recompute = usize::from(chunk.recompute > 0);
        let compute = if schedule.splits_backward() { 3 } else { 2 };
        compute + recompute + chunk.activations.len() + chunk.gradients.len()
    };
    let events: usize = program.chunks.iter().map(one).sum();
    if events.saturating_mul(program.microbatches as usize) <= MOST_EVENTS {
        program.microbatches
    } else {
        (MOST_EVENTS / 2 / events).max(1) as u32
    }
}

//! Timeline of operators that all devices run together: forward in order, backward in reverse.
//!
//! Nothing overlaps, so there is nothing to schedule. `O(operators)`.

use super::{
    memory_parts::MemoryParts,
    pipeline::Pipeline,
    timeline::{Event, EventKind, Timeline},
};

/// Runs the steps of a pipeline of one stage.
pub(super) fn simulate(pipeline: &Pipeline) -> Timeline {
    let mut events = Vec::with_capacity(2 * pipeline.steps.len());
    let mut now = 0.0;
    let numbered = || (0..).zip(&pipeline.steps);
    let forward = numbered().map(|(at, step)| (at, EventKind::Forward, step.forward_s));
    let backward = numbered().collect::<Vec<_>>().into_iter().rev();
    for (microbatch, kind, seconds) in
        forward.chain(backward.map(|(at, step)| (at, EventKind::Backward, step.backward_s)))
    {
        let end_s = now + if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
        events.push(Event { start_s: now, end_s, stage: 0, replica: 0, microbatch, part: 0, kind });
        now = end_s;
    }
    let bytes = pipeline.stages.first().map_or(0.0, |stage| stage.fixed_bytes);
    Timeline {
        events,
        left_out: None,
        replicas: vec![1],
        iteration_s: now,
        samples_per_s: if now > 0.0 { pipeline.samples.max(1.0) / now } else { 0.0 },
        idle: 0.0,
        busy_s: vec![now],
        memory: vec![vec![(0.0, bytes)]],
        peak_memory_bytes: vec![bytes],
        peak_parts: pipeline.stages.first().map(|stage| MemoryParts::of(stage, 0.0)).into_iter().collect(),
        links: vec![],
    }
}

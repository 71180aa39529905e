//! Timeline of a latency plan: one sample alone.
//!
//! No schedule is needed: [`SingleSample`] has the start of each part, and a part receives, computes and sends in this
//! order. A row of the timeline is a stage. Parts of a stage may overlap: CPU nodes do, and so may pieces of an
//! accelerator under the published evaluation. They get rows of their own, like the replicas of a pipeline's stage:
//! each goes to the first free row. `O(p log p + p r)` for `p` parts on at most `r` rows of a stage.

use super::{
    memory_parts::MemoryParts,
    pipeline::Pipeline,
    sample_run::{SampleRun, by_time},
    timeline::{Event, EventKind, Timeline},
};
use crate::workload::placement::SECONDS;

/// Timeline of a sample's run.
pub(super) fn simulate(pipeline: &Pipeline, run: &SampleRun) -> Timeline {
    let mut timeline = Timeline {
        replicas: pipeline.stages.iter().map(|stage| stage.replicas).collect(),
        iteration_s: run.sample.latency * SECONDS,
        peak_memory_bytes: pipeline.stages.iter().map(|stage| stage.fixed_bytes).collect(),
        peak_parts: pipeline.stages.iter().map(|stage| MemoryParts::of(stage, 0.0)).collect(),
        memory: pipeline.stages.iter().map(|stage| vec![(0.0, stage.fixed_bytes)]).collect(),
        ..Timeline::default()
    };
    // Sorted by stage, row, resource, and then time.
    let mut events: Vec<((u32, u32, u8), Event)> = vec![];
    for index in by_time(&run.sample.parts) {
        let part = &run.sample.parts[index];
        let cost = part.cost();
        let (arrived, computed) = (part.start + cost.receive, part.start + cost.receive + cost.compute);
        let (stage, replica) = (part.stage as u32, run.rows[index]);
        for (rank, kind, from, to) in [
            (0, EventKind::Forward, arrived, computed),
            (1, EventKind::ToHost, computed, part.finish()),
            (2, EventKind::FromHost, part.start, arrived),
        ] {
            if rank == 0 || to > from {
                let (start_s, end_s, microbatch) = (from * SECONDS, to * SECONDS, index as u32);
                events.push((
                    (stage, replica, rank),
                    Event { start_s, end_s, stage, replica, microbatch, part: 0, kind },
                ));
            }
        }
    }
    events.sort_by_key(|(key, _)| *key);
    timeline.events = events.into_iter().map(|(_, event)| event).collect();
    summarise(pipeline, run, &mut timeline);
    timeline
}

/// Computes the figures that follow from the events.
fn summarise(pipeline: &Pipeline, run: &SampleRun, timeline: &mut Timeline) {
    let mut busy = 0.0;
    for (index, stage) in pipeline.stages.iter().enumerate() {
        let of_row = |row| -> f64 {
            let computed = timeline.row(index, row).iter().filter(|event| event.kind == EventKind::Forward);
            computed.map(|event| event.end_s - event.start_s).sum()
        };
        let rows: Vec<f64> = (0..stage.replicas).map(of_row).collect();
        busy += if run.cpus[index] { 0.0 } else { rows.iter().sum() };
        timeline.busy_s.push(rows.into_iter().fold(0.0, f64::max));
    }
    if timeline.iteration_s > 0.0 {
        timeline.samples_per_s = 1.0 / timeline.iteration_s;
    }
    let paid = timeline.iteration_s * run.accelerators as f64;
    if paid > 0.0 {
        timeline.idle = (1.0 - busy / paid).clamp(0.0, 1.0);
    }
}

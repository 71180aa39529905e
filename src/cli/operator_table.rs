//! Report table for operators that are split over one set of devices.
//!
//! ```text
//! step    operators                         split     time      compute  edges  sync  idle devices
//!   1  encoder embedding                  l=4 v=8   31.2 ms     52.0%   0.0%  48.0%             0
//!   2  encoder positions .. loss x202        b=32   ..
//! ```
//!
//! Consecutive operators with the same split share a row.

use super::report::{line, table};
use crate::{
    family,
    plan::{NodeScore, Score, Stage},
    units,
    workload::Workload,
};

/// Devices that an operator leaves idle.
fn idle(workload: &Workload, stage: &Stage, at: usize) -> u32 {
    let operator = family::of(workload).operator(stage.nodes[at]);
    let split = operator.zip(stage.choices[at].split());
    let splits = split.and_then(|(operator, split)| operator.degrees(split).ok()).unwrap_or_default();
    let used = splits.iter().fold(1u32, |used, &split| used.saturating_mul(split));
    stage.device_count().saturating_sub(used)
}

/// Appends the table of splits.
pub(super) fn operators(text: &mut String, workload: &Workload, stage: &Stage, score: &Score) {
    let Some(scored) = score.stages.first() else { return };
    line(text, format_args!(""));
    let head =
        ["  operators", "time", "compute", "transfers", "all-reduce", "idle devices", "memory", "split", "names"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for run in stage.runs_of_a_choice() {
        let costs = &scored.nodes[run.clone()];
        let sum = |part: fn(&NodeScore) -> f64| costs.iter().map(part).sum::<f64>();
        let (compute, edges, sync) = (sum(|n| n.compute_s), sum(|n| n.communication_s), sum(|n| n.sync_s));
        let time = compute + edges + sync;
        let share = |part: f64| units::percent(if time > 0.0 { part / time } else { 0.0 });
        let name = |at: usize| workload.nodes[stage.nodes[at]].label();
        let names =
            if run.len() == 1 { name(run.start) } else { format!("{} .. {}", name(run.start), name(run.end - 1)) };
        rows.push(vec![
            run.len().to_string(),
            units::seconds(time),
            share(compute),
            share(edges),
            share(sync),
            idle(workload, stage, run.start).to_string(),
            units::bytes(sum(|n| n.memory_bytes)),
            stage.choices[run.start].to_string(),
            names,
        ]);
    }
    table(text, &rows);
}

//! Table of a plan on several kinds of devices: a row for each stage, with its kind and that kind's memory.
//!
//! ```text
//! 2 stages of 8 replicas, 16 microbatches of 1 sequence, on 16 of 16 h100, 32 of 32 a100-80
//!
//! stage  on       DP x TP  layers  forward  backward  transfers    memory  of its device  in flight  recompute
//!     1  h100       8 x 2      20     ..
//! ```

use super::report::{line, names, table};
use crate::{
    cluster::Limits,
    family,
    plan::{Plan, Score},
    units,
    workload::Workload,
};

/// Appends the lines about the plan and the table of its stages. `limiting` stages are marked.
pub(super) fn stages(
    text: &mut String,
    workload: &Workload,
    limits: &Limits,
    plan: &Plan,
    score: &Score,
    limiting: &[usize],
) {
    let family = family::of(workload);
    for fact in family.plan_facts(workload, limits, plan) {
        line(text, format_args!("{fact}"));
    }
    line(text, format_args!(""));
    let head = [
        "  stage",
        "on",
        "DP x TP",
        "layers",
        "forward",
        "backward",
        "transfers",
        "memory",
        "of its device",
        "in flight",
        "recompute",
        "",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (index, (stage, scored)) in plan.stages.iter().zip(&score.stages).enumerate() {
        let mark = if limiting.contains(&index) { "*" } else { "" };
        let limit = family.memory_limit(limits, stage);
        let both = scored.compute_s + scored.communication_s;
        rows.push(vec![
            format!("{mark} {:>5}", index + 1),
            family.stage_kind(stage).unwrap_or_default().into(),
            format!("{} x {}", stage.data_parallel, stage.tensor_parallel),
            stage.nodes.len().to_string(),
            units::seconds(scored.compute_s - scored.backward_compute_s),
            units::seconds(scored.backward_compute_s),
            units::percent(if both > 0.0 { scored.communication_s / both } else { 0.0 }),
            units::bytes_beside(scored.memory_bytes, limit),
            format!("{} of {}", units::percent(scored.memory_bytes / limit), units::bytes_exact(limit)),
            scored.in_flight.to_string(),
            format!("{} of {}", stage.recomputed(), stage.nodes.len()),
            names(workload, stage),
        ]);
    }
    table(text, &rows);
}

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
    family::{self, mixed::layout},
    plan::{Plan, Score},
    planner::Outcome,
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

/// Appends the plans that are cheaper the slower they are, if the kinds have prices.
pub(super) fn cheaper(text: &mut String, workload: &Workload, limits: &Limits, outcome: &Outcome) {
    let Some(profile) = workload.mixed().filter(|_| outcome.alternatives.len() > 1) else { return };
    let mut rows =
        vec![["iteration", "slower", "cost", "cheaper", "an hour", "devices", "stages"].map(String::from).to_vec()];
    let best_s = outcome.alternatives[0].value;
    let mut first = None;
    for other in &outcome.alternatives {
        let Ok(pipeline) = layout::pipeline(profile, limits, &other.plan) else { continue };
        let priced = pipeline.cost(profile, other.value).zip(pipeline.price_per_hour(profile));
        let Some((cost, per_hour)) = priced else { continue };
        let most = *first.get_or_insert(cost);
        let taken = pipeline.devices(profile.kinds.len()).into_iter().zip(&profile.kinds);
        let taken = taken.filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{count} {}", kind.id));
        rows.push(vec![
            units::seconds(other.value),
            units::percent(other.value / best_s - 1.0),
            units::number(cost),
            units::percent(1.0 - cost / most),
            units::money(per_hour),
            taken.collect::<Vec<_>>().join(", "),
            other.plan.stages.len().to_string(),
        ]);
    }
    line(text, format_args!(""));
    line(
        text,
        format_args!(
            "cheaper, if it may take longer: within 1% of the cheapest for at most 1.1, 1.25, 1.5, 2, 3 times the time, and any"
        ),
    );
    table(text, &rows);
}

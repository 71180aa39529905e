//! Table of a training plan: its configuration and results, a row for each stage, and alternatives.
//!
//! ```text
//! tp=4,pp=4,vp=5,cp=1,ep=1,dp=4,mbs=1
//! 912 tokens/s per device   440 TFLOP/s   MFU 44.5%   HFU 44.5%
//! off by 1.6% on 57 such published runs, 4.8% at worst: dense decoders, ..
//!
//! stage  layers  forward  backward  exposed transfers  in flight    memory  of 80 GiB  recompute
//!     1      20     ..
//! ```

use super::report::{line, table};
use crate::{
    cluster::Limits,
    family,
    plan::{Plan, Score},
    planner::Outcome,
    units,
    workload::Workload,
};

/// Appends the lines about the plan and the table of its stages.
pub(super) fn stages(text: &mut String, workload: &Workload, limits: &Limits, plan: &Plan, score: &Score) {
    let family = family::of(workload);
    for fact in family.plan_facts(workload, limits, plan) {
        line(text, format_args!("{fact}"));
    }
    line(text, format_args!(""));
    let of_limit = format!("of {}", units::bytes_exact(limits.memory_limit()));
    let head = [
        "  stage",
        "layers",
        "forward",
        "backward",
        "transfers",
        "in flight",
        "memory",
        &of_limit,
        "recompute",
        "DP x CP x TP",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    let bottleneck = score.bottleneck();
    let context = plan.configuration().map_or(1, |configuration| configuration.layout.context);
    for (index, (stage, scored)) in plan.stages.iter().zip(&score.stages).enumerate() {
        let layers = stage.nodes.iter().filter(|&&node| family.is_layer(node)).count();
        let again = stage.recomputed();
        let mark = if bottleneck == Some(index) { "*" } else { "" };
        let both = scored.compute_s + scored.communication_s;
        rows.push(vec![
            format!("{mark} {:>5}", index + 1),
            layers.to_string(),
            units::seconds(both - scored.backward_s),
            units::seconds(scored.backward_s),
            units::percent(scored.communication_s / both),
            scored.in_flight.to_string(),
            units::bytes_beside(scored.memory_bytes, limits.memory_limit()),
            units::percent(scored.memory_bytes / limits.memory_limit()),
            format!("{again} of {layers}"),
            format!("{} x {context} x {}", stage.data_parallel / context, stage.tensor_parallel),
        ]);
    }
    table(text, &rows);
}

/// Appends the alternatives, the fastest first.
pub(super) fn alternatives(text: &mut String, workload: &Workload, limits: &Limits, outcome: &Outcome) {
    if !family::of(workload).plans_are_configurations() || outcome.alternatives.len() < 2 {
        return;
    }
    line(text, format_args!(""));
    let mut rows = vec![["iteration", "slower", "memory", "of limit", "layout"].map(String::from).to_vec()];
    let best = outcome.alternatives[0].value;
    for other in &outcome.alternatives {
        let configuration = other.plan.configuration().map(ToString::to_string).unwrap_or_default();
        rows.push(vec![
            units::seconds(other.value),
            units::percent(other.value / best - 1.0),
            units::bytes_beside(other.memory_bytes, limits.memory_limit()),
            units::percent(other.memory_bytes / limits.memory_limit()),
            configuration,
        ]);
    }
    table(text, &rows);
}

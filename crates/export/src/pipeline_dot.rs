//! Plan of stages for Graphviz: a cluster for each stage, with its nodes.
//!
//! A cluster shows the stage's degrees, time and memory. A node shows its name, mode and time; its colour is stronger
//! the longer it takes. Edges that leave a stage are bold. Stages may share a device, but not a node. `O(nodes +
//! edges)`.

use std::fmt::Write;

use super::operator_dot::escaped;
use plantui_core::{
    plan::{Plan, Score},
    units,
    workload::Workload,
};

/// Graph in the DOT language. The score must belong to the plan.
pub(crate) fn to_dot(workload: &Workload, plan: &Plan, score: &Score) -> String {
    let mut text = format!(
        "digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=box, style=filled, fontname=monospace];\n",
        escaped(&workload.name)
    );
    let mut stage_of = vec![None; workload.nodes.len()];
    let scored = |stage: usize, place: usize| score.stages.get(stage)?.nodes.get(place).copied();
    let seconds = |stage: usize, place: usize| {
        scored(stage, place).map_or(0.0, |node| node.compute_s + node.communication_s + node.sync_s)
    };
    let all = plan.stages.iter().enumerate().flat_map(|(i, stage)| (0..stage.nodes.len()).map(move |at| (i, at)));
    let longest = all.map(|(stage, at)| seconds(stage, at)).fold(f64::MIN_POSITIVE, f64::max);
    let mut line =
        |content: std::fmt::Arguments<'_>| writeln!(text, "  {content}").expect("a string takes every write");
    for (i, stage) in plan.stages.iter().enumerate() {
        line(format_args!("subgraph cluster_{} {{", i + 1));
        let cost = score.stages.get(i);
        let time = cost.map_or(0.0, |cost| cost.compute_s + cost.communication_s + cost.sync_s);
        let memory = cost.map_or(0.0, |cost| cost.memory_bytes);
        line(format_args!(
            "  label=\"stage {}: {} x {}\\n{}, {}\"; fontname=monospace;",
            i + 1,
            stage.data_parallel,
            stage.tensor_parallel,
            units::seconds(time),
            units::bytes(memory),
        ));
        for (at, &node) in stage.nodes.iter().enumerate() {
            stage_of[node.index()] = Some(i);
            let choice = stage.choices.get(at).map(ToString::to_string).unwrap_or_default();
            let label = format!(
                "{}\\n{} {}",
                escaped(&workload.nodes[node].label()),
                escaped(&choice),
                units::seconds(seconds(i, at)),
            );
            let shade = seconds(i, at) / longest;
            line(format_args!("  n{node} [label=\"{label}\", fillcolor=\"0.08 {shade:.3} 1.0\"];"));
        }
        line(format_args!("}}"));
    }
    for (from, to) in workload.edges() {
        let crosses = stage_of[from.index()] != stage_of[to.index()];
        line(format_args!("n{from} -> n{to}{};", if crosses { " [style=bold]" } else { "" }));
    }
    text + "}\n"
}

//! Operator graph with its splits for Graphviz.
//!
//! A node shows its name, kind, split and time; its colour is stronger the longer it takes. An edge shows the shapes of
//! its tensors. `O(nodes + edges)`.

use std::fmt::Write;

use plantui_core::{
    family,
    plan::{Plan, Score},
    text::is_hostile,
    units,
    workload::Workload,
};

/// Graph of an operator workload in the DOT language; `None` for other workloads. The score must belong to the plan.
pub fn to_dot(workload: &Workload, plan: &Plan, score: &Score) -> Option<String> {
    let family = family::of(workload);
    if !family.nodes_are_operators() {
        return None;
    }
    let mut text =
        format!("digraph \"{}\" {{\n  node [shape=box, style=filled, fontname=monospace];\n", escaped(&workload.name));
    let (Some(stage), Some(scored)) = (plan.stages.first(), score.stages.first()) else {
        return Some(text + "}\n");
    };
    let seconds =
        |at: usize| scored.nodes.get(at).map_or(0.0, |node| node.compute_s + node.sync_s + node.communication_s);
    let longest = (0..stage.nodes.len()).map(seconds).fold(f64::MIN_POSITIVE, f64::max);
    let mut line =
        |content: std::fmt::Arguments<'_>| writeln!(text, "  {content}").expect("a string takes every write");
    for (at, (&node, choice)) in stage.nodes.iter().zip(&stage.choices).enumerate() {
        let Some(operator) = family.operator(node) else { continue };
        let label = format!(
            "{}\\n{}: {}\\n{}",
            escaped(&workload.nodes[node].label()),
            operator.kind_name(),
            escaped(&choice.to_string()),
            units::seconds(seconds(at)),
        );
        let shade = seconds(at) / longest;
        line(format_args!("n{node} [label=\"{label}\", fillcolor=\"0.08 {shade:.3} 1.0\"];"));
    }
    for link in family.operator_links() {
        let Some(consumer) = family.operator(link.consumer) else { continue };
        let shapes: Vec<String> = link
            .slots
            .iter()
            .map(|&slot| consumer.inputs[slot].tensor.shape.iter().map(u64::to_string))
            .map(|extents| extents.collect::<Vec<_>>().join("x"))
            .collect();
        line(format_args!("n{} -> n{} [label=\"{}\"];", link.producer, link.consumer, shapes.join("\\n")));
    }
    Some(text + "}\n")
}

/// Text for use within double quotes.
pub(super) fn escaped(text: &str) -> String {
    text.chars()
        .filter(|c| !is_hostile(*c))
        .flat_map(|c| if c == '"' || c == '\\' { vec!['\\', c] } else { vec![c] })
        .collect()
}

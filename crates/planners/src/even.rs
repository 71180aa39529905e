//! Plans that exist before a converted workload is searched: stages of about equal work or memory along one order of
//! the network, one device each.
//!
//! Cuts lie where the conversion allows them. The plans hold the original's nodes and have the value that
//! [`family::check()`] finds for the original. So a search that is stopped, or whose plan is invalid on the original,
//! still returns a plan. Numbers of stages are all devices, half of them, a quarter and so on. Networks with less than
//! [`LARGE`] nodes get no such plan. `O(log devices)` checks, each `O(nodes + edges)`.

use super::{OptionValue, Problem, Search};
use plantui_core::{
    family,
    plan::{Plan, Stage},
    workload::{Choice, NodeIndex, Workload, convert::Conversion},
};

/// Smaller networks are searched without a noticeable wait.
const LARGE: usize = 1_000;

/// Returns the best of these plans and publishes it; `None` if none is valid, or if the user stopped the search.
pub(super) fn best(
    Problem { workload: original, limits, options }: &Problem,
    conversion: &Conversion,
    search: &Search,
) -> Option<(f64, Plan)> {
    if original.nodes.len() < LARGE {
        return None;
    }
    let (converted, members) = (&conversion.workload, &conversion.members);
    let order: Vec<NodeIndex> = converted.dag.stack_order().into_iter().map(NodeIndex::from).collect();
    let [seconds, bytes] = weights(converted);
    let devices = (limits.devices as usize).min(order.len());
    let counts: Vec<usize> = match options.get("stages") {
        Some(OptionValue::Number(asked)) if asked > 0.0 => vec![asked as usize],
        _ => std::iter::successors(Some(devices), |&count| (count > 1).then_some(count / 2)).collect(),
    };
    let mut found: Option<(f64, Plan)> = None;
    for count in counts.into_iter().filter(|count| (1..=devices).contains(count)) {
        for weights in [&seconds, &bytes] {
            // The first plan is made even after the deadline.
            if search.cancelled() && (found.is_some() || !search.deadline_passed()) {
                return found;
            }
            let stages = stages(&order, weights, count);
            let plan = carried_back(original, (members, &conversion.choices), stages);
            let score = family::check(original, limits, &plan);
            if !score.is_valid() {
                continue;
            }
            search.improve(score.value, &plan);
            if found.as_ref().is_none_or(|(known, _)| plan.measure.is_better(score.value, *known)) {
                found = Some((score.value, plan));
            }
        }
    }
    found
}

/// Work and memory of every node.
fn weights(workload: &Workload) -> [Vec<f64>; 2] {
    let family = family::of(workload);
    let (seconds, bytes) = workload.indices().map(|node| family.work_and_memory(node)).unzip();
    [seconds, bytes]
}

/// Splits the order into runs with about equal sums. Returns fewer than `count` runs if a node outweighs an equal part.
fn stages<'o>(order: &'o [NodeIndex], weights: &[f64], count: usize) -> Vec<&'o [NodeIndex]> {
    let weight = |node: NodeIndex| weights[node.index()];
    let total: f64 = order.iter().map(|&v| weight(v)).sum();
    let (mut stages, mut from, mut before) = (vec![], 0, 0.0);
    let mut own = 0;
    for (at, &v) in order.iter().enumerate() {
        let middle = before + weight(v) / 2.0;
        let share = if total > 0.0 { middle / total } else { at as f64 / order.len() as f64 };
        let stage = ((share * count as f64) as usize).min(count - 1);
        if stage != own && at > from {
            stages.push(&order[from..at]);
            from = at;
        }
        own = stage;
        before += weight(v);
    }
    stages.push(&order[from..]);
    stages
}

/// Returns the plan of the original with these stages of converted nodes, in the same order, one device each. Every
/// converted node has members, and every member has a choice.
pub(super) fn carried_back<'s>(
    original: &Workload,
    (members, choices): (&[Vec<NodeIndex>], &[Choice]),
    stages: impl IntoIterator<Item = &'s [NodeIndex]>,
) -> Plan {
    let stage = |new: &[NodeIndex]| {
        let mut nodes: Vec<NodeIndex> = new.iter().flat_map(|node| members[node.index()].iter().copied()).collect();
        nodes.sort_unstable();
        Stage {
            choices: nodes.iter().map(|node| choices[node.index()].clone()).collect(),
            nodes,
            data_parallel: 1,
            tensor_parallel: 1,
            devices: vec![],
        }
    };
    let stages = stages.into_iter().map(stage).collect();
    Plan { stages, measure: family::measure(original), ..Plan::default() }.with_consecutive_devices()
}

//! The paper's baselines: everything on one accelerator, and an expert's split.
//!
//! Both ignore the memory of an accelerator; a note says when it is exceeded.

use std::collections::BTreeMap;

use super::{DeviceKind, PlacementLimits, PlacementResult, Split};
use crate::Status;
use plantui_core::{
    graph::Dag,
    workload::{Node, placement::PlacementProfile},
};

/// Everything on one accelerator, which then has no transfers.
pub fn one_accelerator(dag: &Dag, profile: &PlacementProfile, limits: &PlacementLimits) -> PlacementResult {
    if limits.accelerators == 0 {
        return PlacementResult::without(Status::Infeasible);
    }
    let split = Split::from_stages([(DeviceKind::Accelerator, (0..dag.len()).collect())]);
    scored(dag, profile, limits, split)
}

/// An expert's split. It may name only nodes of the forward pass: a node that it does not name is on the device of the
/// named nodes of its colour class. All CPUs count as one device.
///
/// # Errors
/// A sentence on the node or class that has no device or several.
pub fn expert(
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &PlacementLimits,
    named: &Split,
    nodes: &[Node],
) -> Result<PlacementResult, String> {
    // Device 0 holds the CPUs; then come the non-empty accelerators.
    let mut stages = vec![(DeviceKind::Cpu, vec![])];
    let mut device_of: Vec<Option<usize>> = vec![None; dag.len()];
    for device in named.devices.iter().filter(|device| !device.nodes.is_empty()) {
        let d = match device.kind {
            DeviceKind::Cpu => 0,
            DeviceKind::Accelerator => {
                stages.push((DeviceKind::Accelerator, vec![]));
                stages.len() - 1
            }
        };
        for &node in &device.nodes {
            device_of[node] = Some(d);
        }
    }
    if stages.len() - 1 > limits.accelerators as usize {
        let (used, most) = (stages.len() - 1, limits.accelerators);
        return Err(format!("the split uses {used} accelerators, {most} are allowed: allow more"));
    }
    let mut of_class: BTreeMap<i64, usize> = BTreeMap::new();
    for (node, cost) in profile.nodes.iter().enumerate() {
        if let (Some(d), Some(colour)) = (device_of[node], cost.colour_class)
            && *of_class.entry(colour).or_insert(d) != d
        {
            return Err(format!(
                "the split separates colour class {colour} at node {}: put the whole class on one device",
                nodes[node].id
            ));
        }
    }
    for (node, cost) in profile.nodes.iter().enumerate() {
        let with_class = || cost.colour_class.and_then(|colour| of_class.get(&colour).copied());
        let Some(d) = device_of[node].or_else(with_class) else {
            return Err(format!(
                "the split lists neither node {} nor another node of its colour class: add it to a device",
                nodes[node].id
            ));
        };
        stages[d].1.push(node);
    }
    stages.retain(|(_, members)| !members.is_empty());
    Ok(scored(dag, profile, limits, Split::from_stages(stages)))
}

/// A given split, as a result.
pub(super) fn scored(dag: &Dag, profile: &PlacementProfile, limits: &PlacementLimits, split: Split) -> PlacementResult {
    let score = split.score(dag, profile);
    let over = score.over_memory(&split, limits.memory_bytes).count();
    let incapable: usize = score.loads.iter().map(|load| load.unsupported).sum();
    let mut notes = vec![];
    if over > 0 {
        notes.push(format!("{over} accelerators exceed their memory: this baseline ignores memory"));
    }
    if incapable > 0 {
        notes.push(format!("{incapable} nodes are on an accelerator that cannot run them: this baseline ignores that"));
    }
    let (max_load, split) = (Some(score.max_load), Some(split));
    PlacementResult { max_load, split, notes, ..PlacementResult::without(Status::Feasible) }
}

//! Transfers between split operators, and operators that leave devices idle.
//!
//! Computed from workload, limits and plan alone, by the formulas of the check. `O(operators · dimensions)`.

use super::check;
use crate::{
    cluster::Limits,
    plan::{Measure, Plan},
    workload::{NodeIndex, Workload},
};

/// Tensor that one operator passes to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TensorTransfer {
    /// Node that writes it.
    pub from: NodeIndex,
    /// Node that reads it.
    pub to: NodeIndex,
    /// Seconds per step to move it on each device, gradients included.
    pub seconds: f64,
}

/// Operator with fewer pieces than devices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleOperator {
    /// Node of the operator.
    pub node: NodeIndex,
    /// Number of pieces, which is the number of devices that work on it.
    pub pieces: f64,
    /// Seconds that the other devices wait for it.
    pub seconds: f64,
}

/// Use of devices and links by a plan's operators.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorUse {
    /// Devices of the plan.
    pub devices: u32,
    /// Seconds per step.
    pub step_s: f64,
    /// Tensors between operators, the costliest first.
    pub edges: Vec<TensorTransfer>,
    /// Operators that leave devices idle, the longest waits first.
    pub idle: Vec<IdleOperator>,
}

/// Use of a valid plan of split operators; else `None`.
pub fn of(workload: &Workload, limits: &Limits, plan: &Plan) -> Option<OperatorUse> {
    let (Some(profile), Measure::OperatorCost(rules), [stage]) =
        (workload.operators(), plan.measure, plan.stages.as_slice())
    else {
        return None;
    };
    let score = crate::family::check(workload, limits, plan);
    let scored = score.is_valid().then(|| score.stages.first()).flatten()?;
    let mut splits = vec![None; profile.operators.len()];
    for (&node, choice) in stage.nodes.iter().zip(&stage.choices) {
        let degrees = profile.operators[node].degrees(choice.split()?).ok()?;
        splits[node.index()] = Some(degrees.into_iter().map(f64::from).collect::<Vec<f64>>());
    }
    let devices = stage.device_count();
    let mut edges: Vec<TensorTransfer> = vec![];
    let mut idle = vec![];
    for (&node, costs) in stage.nodes.iter().zip(&scored.nodes) {
        for (from, words) in check::received(profile, node, &splits, rules) {
            let seconds = words * check::word_operations(limits) / limits.flops();
            match edges.iter_mut().find(|edge| (edge.from, edge.to) == (from, node)) {
                Some(same) => same.seconds += seconds,
                None => edges.push(TensorTransfer { from, to: node, seconds }),
            }
        }
        let pieces: f64 = splits[node.index()].as_ref()?.iter().product();
        if pieces < f64::from(devices) {
            idle.push(IdleOperator { node, pieces, seconds: costs.compute_s });
        }
    }
    edges.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    idle.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    Some(OperatorUse { devices, step_s: scored.load_s, edges, idle })
}

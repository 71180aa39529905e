//! Rules that plans of all or several families keep: every node in one stage, degrees, devices.
//!
//! `O(nodes + devices log devices)`.

use std::cell::OnceCell;

use rustc_hash::FxHashSet;

use super::CheckContext;
use crate::{
    cluster::Limits,
    family,
    plan::{Plan, Score, Violation},
    workload::{Node, NodeIndex, Workload},
};

/// Checks and scores a plan under the limits. Measures the claims of a planner, a file or a hand edit from the workload
/// alone.
pub fn check(workload: &Workload, limits: &Limits, plan: &Plan) -> Score {
    let mut score = Score { measure: plan.measure, ..Score::default() };
    if plan.stages.is_empty() {
        score.violations.push(Violation::Empty);
        return score;
    }
    let labels = Labels { nodes: &workload.nodes, repeated: OnceCell::new() };
    let stage_of = assignment(&labels, plan, &mut score.violations);
    let checked = CheckContext { workload, limits, plan, stage_of: &stage_of, labels: &labels };
    family::of(workload).check(&checked, &mut score);
    score
}

/// Labels of nodes in violations: the name, with the id if several nodes have the name.
pub(super) struct Labels<'a> {
    pub(super) nodes: &'a [Node],
    /// Names that several nodes have. Collected only after a violation, since planners check every plan.
    repeated: OnceCell<FxHashSet<&'a str>>,
}

impl Labels<'_> {
    pub(super) fn of(&self, node: NodeIndex) -> String {
        let repeated = self.repeated.get_or_init(|| {
            let mut seen = FxHashSet::default();
            self.nodes.iter().filter_map(|node| node.name.as_deref()).filter(|name| !seen.insert(*name)).collect()
        });
        let Node { id, name } = &self.nodes[node.index()];
        match name {
            Some(name) if repeated.contains(name.as_str()) => format!("{name} (node {id})"),
            _ => self.nodes[node.index()].label(),
        }
    }
}

/// Stage of every node. Reports missing, unknown and repeated nodes.
pub(super) fn assignment(labels: &Labels<'_>, plan: &Plan, violations: &mut Vec<Violation>) -> Vec<Option<usize>> {
    let mut stage_of = vec![None; labels.nodes.len()];
    for (i, stage) in plan.stages.iter().enumerate() {
        if stage.choices.len() != stage.nodes.len() {
            violations.push(Violation::ChoiceCount {
                stage: i + 1,
                nodes: stage.nodes.len(),
                choices: stage.choices.len(),
            });
        }
        for &node in &stage.nodes {
            match stage_of.get_mut(node.index()) {
                None => violations.push(Violation::UnknownNode { node, stage: i + 1 }),
                Some(Some(_)) => {
                    violations.push(Violation::Repeated { node: labels.of(node), stage: i + 1 });
                }
                Some(slot) => *slot = Some(i),
            }
        }
    }
    for (node, stage) in NodeIndex::first(stage_of.len()).zip(&stage_of) {
        if stage.is_none() {
            violations.push(Violation::Unassigned { node: labels.of(node) });
        }
    }
    stage_of
}

/// Rules about degrees, microbatches and devices.
pub(super) fn degrees(limits: &Limits, plan: &Plan, violations: &mut Vec<Violation>) {
    let mut replicas: u32 = 0;
    let mut taken = std::collections::BTreeMap::new();
    for (i, stage) in plan.stages.iter().enumerate() {
        let (d, t) = (stage.data_parallel, stage.tensor_parallel);
        if d == 0 || t == 0 {
            violations.push(Violation::ZeroDegree { stage: i + 1 });
            continue;
        }
        if !limits.microbatches.is_multiple_of(d) {
            violations.push(Violation::Indivisible {
                stage: i + 1,
                data_parallel: d,
                microbatches: limits.microbatches,
            });
        }
        replicas = replicas.saturating_add(d);
        if !stage.devices.is_empty() && stage.devices.len() != stage.device_count() as usize {
            let problem = format!("lists {} devices for {d} x {t}", stage.devices.len());
            violations.push(Violation::DeviceList { stage: i + 1, problem });
        }
        // If the plan needs more devices than exist, only that is reported.
        if plan.devices_used() <= limits.devices
            && let Some(missing) = stage.devices.iter().find(|&&device| device >= limits.devices)
        {
            let problem = format!("device {missing} does not exist: there are {}, counted from 0", limits.devices);
            violations.push(Violation::DeviceList { stage: i + 1, problem });
        }
        for &device in &stage.devices {
            if let Some(first) = taken.insert(device, i) {
                let problem = format!("device {device} is already used by stage {}", first + 1);
                violations.push(Violation::DeviceList { stage: i + 1, problem });
            }
        }
    }
    if replicas > limits.microbatches {
        violations.push(Violation::TooManyReplicas { replicas, microbatches: limits.microbatches });
    }
    if plan.devices_used() > limits.devices {
        violations.push(Violation::TooManyDevices { used: plan.devices_used(), devices: limits.devices });
    }
}

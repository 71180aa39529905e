//! Rule for costs so far above the usual that they mean "never" or have a wrong unit. `O(costs · log costs)` time.
//!
//! A cost is compared with the median, not with the minimum. Published profiles send some scalars in a millionth of the
//! time of a node, which misleads no planner.

use super::{Findings, Severity};
use crate::{
    units,
    workload::{
        layer_profile::LayerProfile, node_index::NodeIndex, piper::PiperProfile, placement::PlacementProfile,
        profiled::Workload,
    },
};

/// Maximum ratio of a cost to the usual cost.
const FAR: f64 = 1e7;
const RULE: &str = "far-apart";
const WHY: &str = "if it means `never`, plans keep away from it as long as they can, but where they cannot it alone decides and \
                   all else counts for nothing; if it does not, it is of another unit";

/// Device placement: times and transfers add up, so all are compared with the usual compute time of a node.
pub(super) fn placement(profile: &PlacementProfile, findings: &mut Findings) {
    let nodes = || NodeIndex::enumerate(&profile.nodes);
    let times = median(nodes().map(|(_, node)| node.accelerator_time));
    let Some(usual) = times.or_else(|| median(nodes().flat_map(|(_, node)| [node.cpu_time, node.transfer]))) else {
        return;
    };
    let show = |ms: f64| format!("{} ms", units::number(ms));
    let whose = if times.is_some() { "a node usually takes" } else { "is usual" };
    let usually = format!("the {} that {whose}", show(usual));
    far("time on an accelerator", nodes().map(|(v, node)| (v, node.accelerator_time)), usual, &usually, show, findings);
    far("time on a CPU", nodes().map(|(v, node)| (v, node.cpu_time)), usual, &usually, show, findings);
    far("sending its output", nodes().map(|(v, node)| (v, node.transfer)), usual, &usually, show, findings);
}

/// Piper's profile: each figure is compared with others of its kind.
pub(super) fn piper(workload: &Workload, profile: &PiperProfile, findings: &mut Findings) {
    let modes = || {
        let nodes = NodeIndex::enumerate(&profile.nodes);
        nodes.flat_map(|(v, node)| node.degrees.iter().flat_map(move |d| d.modes.iter().map(move |mode| (v, mode))))
    };
    let edges = || workload.edges().zip(&profile.edge_bytes).map(|((from, _), &bytes)| (from, bytes));
    // Findings need ascending nodes, and edges are in file order.
    let mut sent: Vec<(NodeIndex, f64)> = edges().collect();
    sent.sort_by_key(|&(node, _)| node);
    alike("time of a mode", modes().map(|(v, mode)| (v, mode.time_s)).collect(), units::seconds, findings);
    alike("size of its parameters", modes().map(|(v, mode)| (v, mode.parameters)).collect(), units::bytes, findings);
    alike("size of an edge out of it", sent, units::bytes, findings);
}

/// Layer-wise profiles: each figure is compared with others of its kind.
pub(super) fn layers(profile: &LayerProfile, findings: &mut Findings) {
    let nodes = || NodeIndex::enumerate(&profile.nodes);
    alike("time", nodes().map(|(v, node)| (v, node.seconds())).collect(), units::seconds, findings);
    alike("size of its outputs", nodes().map(|(v, node)| (v, node.activation())).collect(), units::bytes, findings);
    let parameters = nodes().map(|(v, node)| (v, node.parameter_bytes)).collect();
    alike("size of its parameters", parameters, units::bytes, findings);
}

/// Compares costs of one kind with their median.
fn alike(kind: &str, costs: Vec<(NodeIndex, f64)>, show: impl Fn(f64) -> String, findings: &mut Findings) {
    let Some(usual) = median(costs.iter().map(|&(_, cost)| cost)) else { return };
    let usually = format!("the usual {}", show(usual));
    far(kind, costs.into_iter(), usual, &usually, show, findings);
}

/// Lower median of the values above 0.
fn median(costs: impl Iterator<Item = f64>) -> Option<f64> {
    let mut costs: Vec<f64> = costs.filter(|&cost| cost > 0.0).collect();
    costs.sort_by(f64::total_cmp);
    costs.get(costs.len().checked_sub(1)? / 2).copied()
}

/// Reports costs that are too far above the usual. Nodes must be in ascending order.
fn far(
    kind: &str,
    costs: impl Iterator<Item = (NodeIndex, f64)>,
    usual: f64,
    usually: &str,
    show: impl Fn(f64) -> String,
    findings: &mut Findings,
) {
    let (mut nodes, mut most) = (vec![], 0.0);
    for (node, cost) in costs.filter(|&(_, cost)| cost > FAR * usual) {
        if nodes.last() != Some(&node) {
            nodes.push(node);
        }
        most = f64::max(most, cost);
    }
    if nodes.is_empty() {
        return;
    }
    let what = format!("{kind} is up to {}, {:.1e} times {usually}", show(most), most / usual);
    findings.add(RULE, Severity::Warning, &nodes, what, WHY);
}

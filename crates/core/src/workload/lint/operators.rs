//! Findings about operator graphs.

use super::{Findings, Severity};
use crate::workload::{node_index::NodeIndex, operators::OperatorProfile, profiled::Workload};

/// Applies all rules.
pub(super) fn lint(workload: &Workload, profile: &OperatorProfile, findings: &mut Findings) {
    let dag = &workload.dag;
    let alone = |v: usize| dag.len() > 1 && dag.in_degree(v) == 0 && dag.out_degree(v) == 0;
    let alone: Vec<NodeIndex> = workload.indices().filter(|v| alone(v.index())).collect();
    if !alone.is_empty() {
        findings.add(
            "lonely-operator",
            Severity::Warning,
            &alone,
            "reads from no operator and is read by none".into(),
            "it is split without regard to the others; a missing input looks like that",
        );
    }
    // True if no degree divides the extent and leaves at least `cutoff` elements.
    let whole = |extent: u64| {
        let most = extent / u64::from(profile.cutoff);
        (2..=most.min(u64::from(MOST_WAYS))).all(|ways| !extent.is_multiple_of(ways))
    };
    let unsplit: Vec<NodeIndex> = workload
        .indices()
        .filter(|&v| profile.operators[v].dims.iter().all(|dim| !dim.splittable || whole(dim.extent)))
        .collect();
    if !unsplit.is_empty() {
        findings.add(
            "unsplittable-operator",
            Severity::Warning,
            &unsplit,
            format!("has no dimension that can be split and leave {} elements", profile.cutoff),
            "it runs on one device whatever the plan, and all others wait",
        );
    }
}

/// Maximum degree that is tried: no plan uses more devices.
const MOST_WAYS: u32 = 10_000;

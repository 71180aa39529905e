//! Findings about a profile that follows its format but will mislead a planner.
//!
//! [`lint`] returns one [`Finding`] per rule and wording, with all nodes that share it, worst first. Each family of
//! profiles has its rules in one file; most come from published profiles. A rule uses only the profile, never names, so
//! it also holds for unknown networks.

mod layers;
mod operators;
mod piper;
mod placement;
mod spread;

use std::fmt;

use rustc_hash::FxHashMap;

use super::{
    node_index::NodeIndex,
    profiled::{Profile, Workload},
};

/// Severity of a finding; the first is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// No plan can exist, or a plan will not behave as stated.
    Error,
    /// A planner will probably be misled.
    Warning,
    /// Useful when the numbers are read.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        })
    }
}

/// Finding about one node, several nodes, or the whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Id of the rule, for scripts: `swapped-sizes`.
    pub rule: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Nodes concerned, ascending; empty for the whole file.
    pub nodes: Vec<NodeIndex>,
    /// Problem found.
    pub what: String,
    /// Consequence for a planner.
    pub why: &'static str,
}

impl Finding {
    /// Nodes in words: `Pooler (node 36)`, `31 nodes: 5-35`, `the file`.
    pub fn subject(&self, workload: &Workload) -> String {
        match self.nodes.as_slice() {
            [] => "the file".into(),
            [node] => match &workload.nodes[*node].name {
                Some(name) => format!("{name} (node {})", workload.nodes[*node].id),
                None => workload.nodes[*node].label(),
            },
            nodes => {
                let mut ranges: Vec<(i64, i64)> = vec![];
                for id in nodes.iter().map(|&node| workload.nodes[node].id.0) {
                    match ranges.last_mut() {
                        Some((_, end)) if *end + 1 == id => *end = id,
                        _ => ranges.push((id, id)),
                    }
                }
                let shown = ranges
                    .iter()
                    .take(8)
                    .map(|&(start, end)| if start == end { start.to_string() } else { format!("{start}-{end}") });
                let shown: Vec<String> = shown.collect();
                let more = if ranges.len() > 8 { ", .." } else { "" };
                format!("{} nodes: {}{more}", nodes.len(), shown.join(", "))
            }
        }
    }
}

/// All findings, worst first, then in the order of the rules.
pub fn lint(workload: &Workload) -> Vec<Finding> {
    let mut findings = Findings::default();
    match &workload.profile {
        Profile::Piper(profile) => piper::lint(workload, profile, &mut findings),
        Profile::Placement(profile) => placement::lint(workload, profile, &mut findings),
        Profile::Layers(profile) => layers::lint(workload, profile, &mut findings),
        Profile::Operators(profile) => operators::lint(workload, profile, &mut findings),
        // A model's sizes, and tables by kind, were checked when they were read.
        Profile::Training(_) | Profile::Mixed(_) => {}
    }
    findings.list.sort_by_key(|finding| finding.severity);
    findings.list
}

/// Collects findings and merges equal ones. Nodes must come in ascending order.
#[derive(Default)]
struct Findings {
    list: Vec<Finding>,
    by_wording: FxHashMap<(&'static str, String), usize>,
}

impl Findings {
    fn add(&mut self, rule: &'static str, severity: Severity, nodes: &[NodeIndex], what: String, why: &'static str) {
        let next = self.list.len();
        let at = *self.by_wording.entry((rule, what.clone())).or_insert(next);
        if at == next {
            self.list.push(Finding { rule, severity, nodes: vec![], what, why });
        }
        let merged = &mut self.list[at].nodes;
        merged.extend(nodes.iter().filter(|&&node| merged.last() != Some(&node)).copied().collect::<Vec<_>>());
    }
}

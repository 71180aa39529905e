//! Findings about a profile that will mislead a planner although every rule of its format is kept.
//!
//! Each rule was met in a published profile. [`lint`] returns one [`Finding`] per rule and wording, with all nodes that
//! share it; worst first. `O(nodes · modes² + edges)` time. The surprising decision: a rule looks at the profile alone,
//! never at names, so it also holds for networks nobody thought of.

use std::fmt;

use rustc_hash::FxHashMap;

use super::{
    Workload,
    piper::{Mode, PiperProfile},
};
use crate::units;

/// How much a finding matters; the first is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// No plan can exist, or a plan will not be what it says.
    Error,
    /// A planner will probably be misled.
    Warning,
    /// Worth knowing when the numbers are read.
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

/// One finding, over one node, several, or the file as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule, for scripts: `swapped-sizes`.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Indices of the nodes it is about, ascending; empty for the file as a whole.
    pub nodes: Vec<usize>,
    /// What was found.
    pub what: String,
    /// Why it matters to a planner.
    pub why: &'static str,
}

impl Finding {
    /// The nodes in words: `Pooler (node 36)`, `31 nodes: 5-35`, `the file`.
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
    let Some(profile) = workload.piper() else { return vec![] };
    let mut findings = Findings::default();
    memory_too_large(workload, profile, &mut findings);
    swapped_sizes(workload, profile, &mut findings);
    milliseconds(workload, profile, &mut findings);
    state_and_counts(profile, &mut findings);
    for (node, node_profile) in profile.nodes.iter().enumerate() {
        for degree in &node_profile.degrees {
            modes(node, degree.degree, &degree.modes, &mut findings);
        }
    }
    degrees(profile, &mut findings);
    shared_tensors(workload, profile, &mut findings);
    findings.list.sort_by_key(|finding| finding.severity);
    findings.list
}

/// Findings under way: equal ones are merged. Nodes must come in ascending order.
#[derive(Default)]
struct Findings {
    list: Vec<Finding>,
    by_wording: FxHashMap<(&'static str, String), usize>,
}

impl Findings {
    fn add(&mut self, rule: &'static str, severity: Severity, nodes: &[usize], what: String, why: &'static str) {
        let next = self.list.len();
        let at = *self.by_wording.entry((rule, what.clone())).or_insert(next);
        if at == next {
            self.list.push(Finding { rule, severity, nodes: vec![], what, why });
        }
        let merged = &mut self.list[at].nodes;
        merged.extend(nodes.iter().filter(|&&node| merged.last() != Some(&node)).copied().collect::<Vec<_>>());
    }
}

/// A node that cannot be held by any device: its least memory over degrees and modes, one microbatch in flight.
fn memory_too_large(workload: &Workload, profile: &PiperProfile, findings: &mut Findings) {
    let Some(limit) = workload.limits.memory_bytes else { return };
    let mut too_large: Vec<(usize, f64)> = vec![];
    for (node, node_profile) in profile.nodes.iter().enumerate() {
        let modes = node_profile.degrees.iter().flat_map(|degree| &degree.modes);
        let least = modes.map(|mode| mode.memory_a + mode.memory_b).fold(f64::INFINITY, f64::min);
        if least > limit {
            too_large.push((node, least));
        }
    }
    let Some(most) = too_large.iter().map(|(_, least)| *least).reduce(f64::max) else { return };
    let nodes: Vec<usize> = too_large.iter().map(|(node, _)| *node).collect();
    let what = format!(
        "needs up to {} on every device even at its smallest, more than the file's limit of {}",
        units::bytes(most),
        units::bytes_exact(limit)
    );
    findings.add(
        "memory-too-large",
        Severity::Error,
        &nodes,
        what,
        "no plan exists at this limit, whatever the number of devices",
    );
}

/// A node whose edge from an input tensor carries not that tensor's bytes, while another of its edges does.
fn swapped_sizes(workload: &Workload, profile: &PiperProfile, findings: &mut Findings) {
    let dag = &workload.dag;
    let first = |node: usize| &profile.nodes[node].degrees[0].modes[0];
    let mut nodes = vec![];
    for node in 0..dag.len() {
        let edges: Vec<usize> = dag.in_edges(node).iter().map(|&edge| edge as usize).collect();
        // Positions within the node's incoming edges whose source is a bare tensor, with that tensor's bytes.
        let tensors = edges.iter().enumerate().filter_map(|(slot, &edge)| {
            let source = dag.edges()[edge].0 as usize;
            let mode = first(source);
            let bare =
                dag.in_degree(source) == 0 && mode.time_s == 0.0 && mode.parameters == 0.0 && mode.memory_a > 0.0;
            bare.then_some((slot, mode.memory_a))
        });
        let swapped = tensors.into_iter().any(|(slot, bytes)| {
            let elsewhere = |values: &dyn Fn(usize) -> f64| {
                let own = values(slot);
                own > 0.0 && own != bytes && (0..edges.len()).any(|other| other != slot && values(other) == bytes)
            };
            let modes = profile.nodes[node].degrees.iter().flat_map(|degree| &degree.modes);
            elsewhere(&|slot| profile.edge_bytes[edges[slot]])
                || modes.into_iter().any(|mode| elsewhere(&|slot| mode.sync_in[slot]))
        });
        if swapped {
            nodes.push(node);
        }
    }
    if !nodes.is_empty() {
        findings.add(
            "swapped-sizes",
            Severity::Warning,
            &nodes,
            "sizes of two incoming edges look exchanged: an input tensor's edge carries other bytes than the tensor has, and \
             another edge carries exactly those"
                .into(),
            "stage borders are charged with the wrong tensor, so cuts move away from where they are cheap",
        );
    }
}

/// Activations that a second of compute produces, below which times cannot be seconds of an accelerator.
const LEAST_ACTIVATION_BYTES_PER_SECOND: f64 = 100e6;
/// Share of all compute that sending every edge once would take, below which communication is next to nothing.
const LEAST_COMMUNICATION_SHARE: f64 = 0.01;

/// Times a thousand times too large for the activations they produce and the bytes they send.
fn milliseconds(workload: &Workload, profile: &PiperProfile, findings: &mut Findings) {
    let first = |f: &dyn Fn(&Mode) -> f64| profile.nodes.iter().map(|node| f(&node.degrees[0].modes[0])).sum::<f64>();
    let (time, kept) = (first(&|mode| mode.time_s), first(&|mode| mode.memory_a));
    let share = workload
        .limits
        .bandwidth_bytes_per_s
        .map(|bandwidth| 2.0 * profile.edge_bytes.iter().sum::<f64>() / bandwidth / time)
        .filter(|_| !profile.edge_bytes.is_empty());
    if time <= 0.0
        || kept <= 0.0
        || kept / time >= LEAST_ACTIVATION_BYTES_PER_SECOND
        || share.is_some_and(|share| share >= LEAST_COMMUNICATION_SHARE)
    {
        return;
    }
    let sent = share.map_or(String::new(), |share| format!("; sending every edge takes {:.2}% of that", share * 100.0));
    findings.add(
        "milliseconds",
        Severity::Warning,
        &[],
        format!(
            "compute adds up to {} a microbatch for {} of activations{sent}: the times look like milliseconds",
            units::seconds(time),
            units::bytes(kept)
        ),
        "times are read as seconds: communication then counts about a thousand times too little beside compute",
    );
}

/// Nodes with parameters but no time; state too small to train; parameters that are counted, not weighed.
fn state_and_counts(profile: &PiperProfile, findings: &mut Findings) {
    let mut ratios: Vec<(usize, f64)> = vec![];
    let mut idle = vec![];
    for (node, node_profile) in profile.nodes.iter().enumerate() {
        let modes = &node_profile.degrees[0].modes;
        if modes[0].parameters > 0.0 {
            let state = modes.iter().map(|mode| mode.memory_b).fold(f64::INFINITY, f64::min);
            ratios.push((node, state / modes[0].parameters));
        }
        let any = |f: &dyn Fn(&Mode) -> bool| node_profile.degrees.iter().flat_map(|d| &d.modes).any(f);
        if any(&|mode| mode.parameters > 0.0 && mode.time_s == 0.0) {
            idle.push(node);
        }
    }
    if !idle.is_empty() {
        findings.add(
            "zero-time",
            Severity::Warning,
            &idle,
            "has parameters but takes no time".into(),
            "work that costs nothing is put anywhere: the real stage is slower than planned",
        );
    }
    let without: Vec<usize> = ratios.iter().filter(|(_, ratio)| *ratio <= 4.0).map(|(node, _)| *node).collect();
    if !without.is_empty() {
        let range = |pick: fn(f64, f64) -> f64| {
            ratios.iter().map(|(_, ratio)| *ratio).filter(|ratio| *ratio <= 4.0).reduce(pick).unwrap_or_default()
        };
        let (least, most) = (units::number(range(f64::min)), units::number(range(f64::max)));
        let bytes = if least == most { least } else { format!("{least} to {most}") };
        findings.add(
            "no-optimizer-state",
            Severity::Warning,
            &without,
            format!("memory that does not depend on microbatches is {bytes} bytes per unit of parameterSize: weights without optimizer state"),
            "training with mixed-precision Adam needs 16 to 18 bytes per parameter: plans that fit here may not fit there",
        );
    }
    let Some(&(_, ratio)) = ratios.first() else { return };
    let same = ratios.iter().all(|(_, other)| (other - ratio).abs() <= 1e-6 * ratio);
    if let Some(whole) =
        [2.0, 4.0, 16.0, 18.0].into_iter().find(|whole: &f64| same && (ratio / whole - 1.0).abs() < 1e-6)
    {
        findings.add(
            "element-counts",
            Severity::Note,
            &[],
            format!("memory per unit of parameterSize is exactly {whole} bytes everywhere: parameterSize counts elements, not bytes"),
            "4(d-1)/d of it, the cost of keeping replicas equal, is then a ring all-reduce of 2-byte gradients; with 4-byte \
             gradients it is half of what it should be",
        );
    }
}

/// Modes of one node and degree that no planner has a reason to choose.
fn modes(node: usize, degree: u32, modes: &[Mode], findings: &mut Findings) {
    let parts = |mode: &Mode| [mode.time_s, mode.parameters, mode.memory_a, mode.memory_a + mode.memory_b];
    let no_worse = |better: &Mode, worse: &Mode| {
        let sync = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a <= b);
        parts(better).iter().zip(parts(worse)).all(|(a, b)| *a <= b)
            && sync(&better.sync_in, &worse.sync_in)
            && sync(&better.sync_out, &worse.sync_out)
    };
    for (j, mode) in modes.iter().enumerate() {
        // Among modes that cost the same the first is preferred, as planners do.
        let better = modes
            .iter()
            .enumerate()
            .find(|&(i, other)| i != j && no_worse(other, mode) && (i < j || !no_worse(mode, other)));
        let Some((_, better)) = better else { continue };
        if no_worse(mode, better) {
            findings.add(
                "identical-modes",
                Severity::Note,
                &[node],
                format!("mode `{}` costs the same as `{}`", mode.id, better.id),
                "the choice between them means nothing at this node; planners keep the first",
            );
        } else {
            findings.add(
                "dominated-mode",
                Severity::Warning,
                &[node],
                format!(
                    "at degree {degree} mode `{}` is no faster and no smaller than `{}`, however many microbatches are in flight",
                    mode.id, better.id
                ),
                "no plan gains by it: if it should save memory or time, its figures are wrong",
            );
        }
    }
}

/// Degrees that are missing, offered by some nodes only, or slower than smaller ones.
fn degrees(profile: &PiperProfile, findings: &mut Findings) {
    let without = |t: u32| -> Vec<usize> {
        (0..profile.nodes.len()).filter(|&node| profile.nodes[node].modes(t).is_none()).collect()
    };
    let missing = without(1);
    if !missing.is_empty() {
        findings.add(
            "no-degree-1",
            Severity::Warning,
            &missing,
            "has no mode at tensor degree 1".into(),
            "a stage with it cannot run on single devices, and plans without tensor parallelism do not exist",
        );
    }
    for t in profile.degrees().into_iter().filter(|&t| t > 1) {
        let lacking = without(t);
        if !lacking.is_empty() {
            findings.add(
                "partial-degree",
                Severity::Note,
                &lacking,
                format!("does not offer tensor degree {t}, which other nodes do"),
                "all nodes of a stage share one degree: this one forbids the degree for every stage that contains it",
            );
        }
    }
    for (node, node_profile) in profile.nodes.iter().enumerate() {
        let rises = node_profile.degrees.windows(2).any(|pair| {
            pair[1]
                .modes
                .iter()
                .any(|mode| pair[0].modes.iter().any(|smaller| smaller.id == mode.id && mode.time_s > smaller.time_s))
        });
        if rises {
            findings.add(
                "time-rises",
                Severity::Note,
                &[node],
                "takes longer at a higher tensor degree than at a lower one".into(),
                "sharing it among more devices makes it slower: stages that contain it avoid high degrees",
            );
        }
    }
}

/// One tensor read by several nodes: every edge is charged on its own.
fn shared_tensors(workload: &Workload, profile: &PiperProfile, findings: &mut Findings) {
    let dag = &workload.dag;
    // A branch or a skip connection is ordinary; a tensor that many nodes read distorts every cut.
    let (mut branches, mut shared) = (vec![], vec![]);
    let (mut most_readers, mut most_bytes) = (0, 0.0f64);
    for node in 0..dag.len() {
        let bytes: Vec<f64> = dag.out_edges(node).iter().map(|&edge| profile.edge_bytes[edge as usize]).collect();
        if bytes.len() < 2 || bytes[0] == 0.0 || bytes.iter().any(|&b| b != bytes[0]) {
            continue;
        }
        if bytes.len() == 2 {
            branches.push(node);
        } else {
            shared.push(node);
            (most_readers, most_bytes) = (most_readers.max(bytes.len()), most_bytes.max(bytes[0]));
        }
    }
    let why = "each edge that leaves the stage is charged on its own, although one transfer per stage would do";
    if !shared.is_empty() {
        let what = format!("sends one tensor (up to {}) to up to {most_readers} nodes", units::bytes(most_bytes));
        findings.add("shared-tensor", Severity::Warning, &shared, what, why);
    }
    if !branches.is_empty() {
        findings.add("shared-tensor", Severity::Note, &branches, "sends one tensor to 2 nodes".into(), why);
    }
}

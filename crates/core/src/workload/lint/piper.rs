//! Rules for Piper's profile. `O(nodes · modes² + edges)` time.

use super::{Findings, Severity, spread};
use crate::{
    units,
    workload::{
        node_index::NodeIndex,
        piper::{Mode, PROFILER, PiperProfile},
        profiled::Workload,
    },
};

/// Applies all rules, in display order for equal severity.
pub(super) fn lint(workload: &Workload, profile: &PiperProfile, findings: &mut Findings) {
    memory_too_large(workload, profile, findings);
    swapped_sizes(workload, profile, findings);
    // A file of our profiler has the right units.
    let measured = workload.provenance.as_ref().is_some_and(|made| made.made_by.starts_with(PROFILER));
    if !measured {
        milliseconds(workload, profile, findings);
    }
    state_and_counts(profile, measured, findings);
    for (node, node_profile) in NodeIndex::enumerate(&profile.nodes) {
        for degree in &node_profile.degrees {
            modes(node, &degree.modes, findings);
        }
    }
    degrees(profile, findings);
    shared_tensors(workload, profile, findings);
    spread::piper(workload, profile, findings);
}

/// Finds nodes that fit on no device: minimum memory over degrees and modes, with one microbatch in flight.
fn memory_too_large(workload: &Workload, profile: &PiperProfile, findings: &mut Findings) {
    let Some(limit) = workload.limits.memory_bytes() else { return };
    let mut too_large: Vec<(NodeIndex, f64)> = vec![];
    for (node, node_profile) in NodeIndex::enumerate(&profile.nodes) {
        let modes = node_profile.degrees.iter().flat_map(|degree| &degree.modes);
        let least = modes.map(|mode| mode.memory_a + mode.memory_b).fold(f64::INFINITY, f64::min);
        if least > limit {
            too_large.push((node, least));
        }
    }
    let Some(most) = too_large.iter().map(|(_, least)| *least).reduce(f64::max) else { return };
    let nodes: Vec<NodeIndex> = too_large.iter().map(|(node, _)| *node).collect();
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

/// Finds nodes whose edge from an input tensor carries other bytes than the tensor has, while another edge carries
/// exactly those.
fn swapped_sizes(workload: &Workload, profile: &PiperProfile, findings: &mut Findings) {
    let dag = &workload.dag;
    let first = |node: NodeIndex| &profile.nodes[node].degrees[0].modes[0];
    let mut nodes = vec![];
    for node in workload.indices() {
        let edges: Vec<usize> = dag.in_edges(node.index()).iter().map(|&edge| edge as usize).collect();
        // Incoming edges whose source is a bare tensor, with that tensor's bytes.
        let tensors = edges.iter().enumerate().filter_map(|(slot, &edge)| {
            let (source, _) = workload.edge(edge);
            let mode = first(source);
            let bare = dag.in_degree(source.index()) == 0
                && mode.time_s == 0.0
                && mode.parameters == 0.0
                && mode.memory_a > 0.0;
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

/// Minimum activation bytes per second of compute. Below it, times cannot be seconds on an accelerator.
const LEAST_ACTIVATION_BYTES_PER_SECOND: f64 = 100e6;
/// Minimum ratio of the time to send every edge, forward and back, to all compute. Below it, communication is
/// negligible.
const LEAST_COMMUNICATION_SHARE: f64 = 0.01;

/// Finds times that are a thousand times too large for the activations they produce and the bytes they send.
fn milliseconds(workload: &Workload, profile: &PiperProfile, findings: &mut Findings) {
    let first = |f: &dyn Fn(&Mode) -> f64| profile.nodes.iter().map(|node| f(&node.degrees[0].modes[0])).sum::<f64>();
    let (time, kept) = (first(&|mode| mode.time_s), first(&|mode| mode.memory_a));
    let share = workload
        .limits
        .bandwidth_bytes_per_s()
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

/// Finds parameters without time, state too small to train, and parameters that are counted in elements.
fn state_and_counts(profile: &PiperProfile, measured: bool, findings: &mut Findings) {
    let mut ratios: Vec<(NodeIndex, f64)> = vec![];
    let mut idle = vec![];
    for (node, node_profile) in NodeIndex::enumerate(&profile.nodes) {
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
    if measured {
        return;
    }
    let without: Vec<NodeIndex> = ratios.iter().filter(|(_, ratio)| *ratio <= 4.0).map(|(node, _)| *node).collect();
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

/// Finds modes that another mode of the same node and degree dominates or equals.
fn modes(node: NodeIndex, modes: &[Mode], findings: &mut Findings) {
    let parts = |mode: &Mode| [mode.time_s, mode.parameters, mode.memory_a, mode.memory_a + mode.memory_b];
    let no_worse = |better: &Mode, worse: &Mode| {
        let sync = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a <= b);
        parts(better).iter().zip(parts(worse)).all(|(a, b)| *a <= b)
            && sync(&better.sync_in, &worse.sync_in)
            && sync(&better.sync_out, &worse.sync_out)
    };
    for (j, mode) in modes.iter().enumerate() {
        // Among equal modes the first is preferred, as in planners.
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
                    "mode `{}` is no faster and no smaller than `{}`, however many microbatches are in flight",
                    mode.id, better.id
                ),
                "no plan gains by it: if it should save memory or time, its figures are wrong",
            );
        }
    }
}

/// Finds degrees that are missing, supported only by some nodes, or slower than smaller ones.
fn degrees(profile: &PiperProfile, findings: &mut Findings) {
    let without = |t: u32| -> Vec<NodeIndex> {
        let lacking = NodeIndex::enumerate(&profile.nodes).filter(|(_, node)| node.modes(t).is_none());
        lacking.map(|(node, _)| node).collect()
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
    for (node, node_profile) in NodeIndex::enumerate(&profile.nodes) {
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

/// Finds tensors that several nodes read: every edge is charged separately.
fn shared_tensors(workload: &Workload, profile: &PiperProfile, findings: &mut Findings) {
    // A branch or a skip connection is ordinary. A tensor with many readers distorts every cut.
    let (mut branches, mut shared) = (vec![], vec![]);
    let (mut most_readers, mut most_bytes) = (0, 0.0f64);
    for node in workload.indices() {
        let out = workload.dag.out_edges(node.index()).iter();
        let mut bytes: Vec<f64> = out.map(|&edge| profile.edge_bytes[edge as usize]).collect();
        bytes.retain(|&b| b > 0.0);
        bytes.sort_unstable_by(f64::total_cmp);
        // The largest group of edges with the same number of bytes is taken as one tensor.
        let Some(group) = bytes.chunk_by(|a, b| a == b).max_by_key(|group| group.len()) else { continue };
        match group.len() {
            0 | 1 => {}
            2 => branches.push(node),
            readers => {
                shared.push(node);
                (most_readers, most_bytes) = (most_readers.max(readers), most_bytes.max(group[0]));
            }
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

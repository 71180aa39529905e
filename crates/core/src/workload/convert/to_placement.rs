//! Converts Piper's profile to a device placement: one mode per node at tensor degree 1, every node on one accelerator.

use super::{Conversion, ConversionError, with_profile};
use crate::{
    cluster::{GivenLimits, LimitKind},
    units,
    workload::{
        self,
        choice::Choice,
        formats::WorkloadFormat,
        piper::VANILLA,
        placement::{PlacementNode, PlacementProfile, SECONDS},
        profiled::{Profile, Workload},
    },
};

/// Rule for the mode of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeRule {
    /// Mode that keeps every activation, or the first one if no mode is known to.
    Keeping,
    /// Mode that needs the least memory.
    Smallest,
}

/// Converts a workload with Piper's profile to a device placement. `in_flight` is the assumed number of microbatches
/// whose activations a device holds; `bandwidth` (bytes per second) turns bytes into times.
///
/// A tensor crosses a stage border in Piper once forward and its gradient once back, and both stages pay for both. A
/// transfer is therefore `2 · bytes / bandwidth`, paid by its sender and its receiver.
///
/// # Errors
/// A reason that a user can act on: the workload has another profile, or a node has no mode at degree 1.
// Long: one pass over nodes and edges, which share their sums.
pub fn to_placement(
    workload: &Workload,
    mode: ModeRule,
    in_flight: u32,
    bandwidth: f64,
) -> Result<Conversion, ConversionError> {
    let profile = workload.piper().ok_or(ConversionError::NoDegrees)?;
    let dag = &workload.dag;
    let memory = |mode: &workload::Mode| mode.memory_a * f64::from(in_flight) + mode.memory_b;
    let mut modes: Vec<&workload::Mode> = vec![];
    for (node, costs) in profile.nodes.iter().enumerate() {
        let offered =
            costs.modes(1).ok_or_else(|| ConversionError::NoPlainMode(workload.nodes[node].label().to_string()))?;
        let taken = match mode {
            ModeRule::Keeping => offered.iter().find(|mode| mode.id == VANILLA),
            ModeRule::Smallest => offered.iter().min_by(|a, b| memory(a).total_cmp(&memory(b))),
        };
        modes.push(taken.unwrap_or(&offered[0]));
    }
    let mut uneven = false;
    let mut gathers = false;
    let node = |(v, mode): (usize, &&workload::Mode)| {
        let bytes = || dag.out_edges(v).iter().map(|&edge| profile.edge_bytes[edge as usize]);
        let most = bytes().fold(0.0, f64::max);
        uneven |= bytes().any(|b| b != most);
        gathers |= mode.sync_in.iter().chain(&mode.sync_out).any(|&b| b > 0.0);
        PlacementNode {
            cpu_time: mode.time_s / SECONDS,
            accelerator_time: mode.time_s / SECONDS,
            supported: true,
            backward: false,
            size_bytes: memory(mode),
            colour_class: None,
            layer: None,
            transfer: 2.0 * most / bandwidth / SECONDS,
        }
    };
    let nodes: Vec<PlacementNode> = modes.iter().enumerate().map(node).collect();
    let mut assumptions = vec![
        format!(
            "Converted from Piper's profile: every node runs at tensor degree 1 in the mode that {} ({}), forward and \
             backward together.",
            match mode {
                ModeRule::Keeping => "keeps all activations",
                ModeRule::Smallest => "needs least memory",
            },
            in_words(&modes)
        ),
        format!(
            "A device holds the activations of {in_flight} {}.",
            if in_flight == 1 { "microbatch" } else { "microbatches" }
        ),
        format!(
            "A transfer takes twice its bytes (activation and gradient) at {}; a node sends one tensor, once, however many \
             nodes of another device read it.",
            units::bandwidth_exact(bandwidth)
        ),
        "There is no CPU to run nodes: the profile tells no times on one, so cpuLatency repeats the accelerator's."
            .into(),
    ];
    if uneven {
        assumptions.push("Where the edges out of a node carry different sizes, the largest counts.".into());
    }
    if gathers {
        assumptions.push("Bytes for gathering tensors at stage borders are left out.".into());
    }
    Ok(Conversion {
        members: workload.indices().map(|node| vec![node]).collect(),
        choices: modes.iter().map(|mode| Choice::Mode(mode.id.clone())).collect(),
        workload: with_profile(
            workload,
            WorkloadFormat::Placement,
            Profile::Placement(PlacementProfile::from(nodes)),
            GivenLimits::default()
                .maybe(LimitKind::Devices, workload.limits.devices())
                .with(LimitKind::Cpus, 0)
                .maybe(LimitKind::Memory, workload.limits.memory_bytes()),
        ),
        assumptions,
    })
}

/// Modes in use, each once, in order of appearance.
fn in_words(modes: &[&workload::Mode]) -> String {
    let mut ids: Vec<&str> = vec![];
    for mode in modes {
        if !ids.contains(&mode.id.as_str()) {
            ids.push(&mode.id);
        }
    }
    let shown: Vec<String> = ids.iter().take(4).map(|id| format!("`{id}`")).collect();
    let more = if ids.len() > 4 { ", .." } else { "" };
    format!("{}{more}", shown.join(", "))
}

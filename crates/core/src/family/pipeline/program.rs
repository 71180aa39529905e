//! Converts a plan whose nodes have modes to the simulator's input.
//!
//! The costs are those of Piper's cost model (Tarnawski et al., NeurIPS 2021, section 4), converted back to events. If
//! the objective charges a stage `p / d` of compute per sample, here one of `d` replicas computes for `p` seconds. If
//! it charges both ends of an edge for both directions, here the edge is one transfer forward and one back.
//! `O(nodes + edges)` time and memory.

use std::collections::BTreeMap;

use crate::{
    cluster::Limits,
    family::program::total,
    plan::Plan,
    simulate::{LinkModel, Pipeline, PipelineStage, SimulatorSettings, Transfer},
    units,
    workload::{
        Mode, Workload,
        piper::{PiperProfile, VANILLA},
    },
};

/// Pipeline of a plan whose nodes have modes.
pub(crate) fn pipeline(
    workload: &Workload,
    profile: &PiperProfile,
    limits: &Limits,
    plan: &Plan,
    settings: &SimulatorSettings,
) -> Pipeline {
    let bandwidth = limits.bandwidth();
    let mut told = Assumptions::default();
    // Stage and chosen mode of every node.
    let mut placed: Vec<Option<(usize, &Mode)>> = vec![None; workload.nodes.len()];
    let mut stages = Vec::with_capacity(plan.stages.len());
    for (index, planned) in plan.stages.iter().enumerate() {
        let mut stage = PipelineStage {
            replicas: planned.data_parallel.max(1),
            devices: planned.tensor_parallel.max(1),
            ..PipelineStage::default()
        };
        let (mut forward, mut backward, mut recompute) = (vec![], vec![], vec![]);
        let mut parameters = vec![];
        for (&node, choice) in planned.nodes.iter().zip(&planned.choices) {
            let modes =
                profile.nodes.get(node.index()).and_then(|n| n.modes(planned.tensor_parallel)).unwrap_or_default();
            let Some(mode) = modes.iter().find(|m| choice.is_mode(&m.id)) else { continue };
            let forward_s = forward_time(mode, modes, settings, &mut told);
            let plain = plain(mode, modes);
            forward.push(forward_s);
            backward.push(mode.time_s - forward_s);
            recompute.push((mode.time_s - plain.time_s).clamp(0.0, mode.time_s - forward_s));
            stage.fixed_bytes += mode.memory_b;
            // A recomputing mode keeps extra memory as buffers for recomputation.
            stage.parts.buffers += (mode.memory_b - plain.memory_b).max(0.0);
            stage.activation_bytes += mode.memory_a;
            parameters.push(mode.parameters);
            placed[node.index()] = Some((index, mode));
        }
        [stage.forward_s, stage.backward_s, stage.recompute_s] = [forward, backward, recompute].map(total);
        let d = f64::from(stage.replicas);
        let parameters = total(parameters);
        stage.all_reduce_s = 4.0 * (d - 1.0) * parameters / d / bandwidth;
        // A ring moves 2 (d−1)/d of the bytes: Piper's model counts each parameter twice.
        stage.gradient_bytes = 2.0 * parameters;
        stages.push(stage);
    }
    let transfers = transfers(workload, &profile.edge_bytes, &placed, bandwidth);
    let mut notes = told.notes(&stages, settings);
    if !transfers.is_empty() {
        notes.push(transfer_note(settings));
    }
    Pipeline {
        stages,
        transfers,
        microbatches: limits.microbatches,
        notes,
        assumes_forward_share: told.from_share,
        ..Pipeline::default()
    }
}

/// Mode without recomputation.
fn plain<'a>(mode: &'a Mode, modes: &'a [Mode]) -> &'a Mode {
    let fastest = modes.iter().min_by(|a, b| a.time_s.total_cmp(&b.time_s)).unwrap_or(mode);
    modes.iter().find(|m| m.id == VANILLA).unwrap_or(fastest)
}

/// Forward part of a mode's time. Time in excess of the node's plain mode is recomputation, which belongs to the
/// backward pass.
fn forward_time(mode: &Mode, modes: &[Mode], settings: &SimulatorSettings, told: &mut Assumptions) -> f64 {
    let plain = plain(mode, modes);
    told.recomputed |= mode.time_s > plain.time_s;
    if let Some(forward_s) = mode.forward_s.or(plain.forward_s) {
        told.from_profile = true;
        return forward_s.clamp(0.0, mode.time_s);
    }
    told.from_share = true;
    (settings.forward_share.clamp(0.0, 1.0) * plain.time_s).min(mode.time_s)
}

/// One transfer for each pair of stages that share an edge, by pair. An edge carries its own bytes and the larger of
/// both ends' bytes for gathering the tensor.
fn transfers(
    workload: &Workload,
    edge_bytes: &[f64],
    placed: &[Option<(usize, &Mode)>],
    bandwidth: f64,
) -> Vec<Transfer> {
    let dag = &workload.dag;
    let arriving = dag.places_of_arrival();
    let mut bytes_of: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for source in 0..dag.len() {
        for (slot, &edge) in dag.out_edges(source).iter().enumerate() {
            let destination = dag.edges()[edge as usize].1 as usize;
            let (Some((from, producer)), Some((to, consumer))) = (placed[source], placed[destination]) else {
                continue;
            };
            if from >= to {
                continue;
            }
            let gathered = consumer.sync_in[arriving[edge as usize]].max(producer.sync_out[slot]);
            bytes_of.entry((from, to)).or_default().push(edge_bytes[edge as usize] + gathered);
        }
    }
    let transfer = |((from, to), parts): ((usize, usize), Vec<f64>)| {
        let bytes = total(parts);
        Transfer { from, to, seconds: bytes / bandwidth, bytes }
    };
    bytes_of.into_iter().map(transfer).collect()
}

/// Assumptions made about the nodes.
#[derive(Debug, Default)]
struct Assumptions {
    from_profile: bool,
    from_share: bool,
    recomputed: bool,
}

impl Assumptions {
    fn notes(&self, stages: &[PipelineStage], settings: &SimulatorSettings) -> Vec<String> {
        let mut notes = vec![];
        if self.from_share {
            let share = units::percent(settings.forward_share.clamp(0.0, 1.0));
            let which = if self.from_profile { "where the profile has only the sum" } else { "of every node" };
            notes.push(format!("the forward pass is assumed to take {share} of forward plus backward time {which}"));
        }
        if self.recomputed {
            notes.push("the extra time of a recomputing mode is part of the backward pass".into());
        }
        if stages.iter().any(|s| s.replicas > 1) {
            notes.push("microbatch m runs on replica m mod d of a stage".into());
            notes.push(
                "a stage's d replicas all-reduce 4 (d - 1) / d times its parameters once per iteration, after the \
                last backward pass"
                    .into(),
            );
        }
        if stages.iter().any(|s| s.devices > 1) {
            notes.push("communication of tensor parallelism inside a stage is part of its compute time".into());
        }
        notes
    }
}

/// Transfers in words.
fn transfer_note(settings: &SimulatorSettings) -> String {
    let how = match (settings.overlap, settings.links) {
        (true, LinkModel::Private) => "each at the full bandwidth, and receives without limit",
        (true, _) => "as far as the links allow",
        (false, _) => {
            "while neither sender nor receiver computes; ties go to the earlier stage, then the earlier microbatch"
        }
    };
    let overlap =
        if settings.overlap { "transfers overlap with compute" } else { "transfers do not overlap with compute" };
    format!("{overlap}: a replica sends its activations one after another, and its gradients one after another, {how}")
}

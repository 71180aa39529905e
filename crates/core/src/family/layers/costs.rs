//! Costs of the stages of a plan over a layer-wise profile, computed only from their nodes.
//!
//! All devices of a stage compute one microbatch together, each on its part of the samples (Fan et al., PPoPP 2021,
//! section 3). A cut sends every output that a later stage needs, once, and stages pass it on.
//! `O(nodes + edges + stages)`.

use crate::{
    cluster::Limits,
    plan::{Length, Plan, SpeedupModel},
    workload::{
        LayerProfile, Workload,
        states::{self, ExactSum},
    },
};

/// Costs of one stage.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LayerStage {
    /// Forward of one microbatch on all devices of the stage together, seconds.
    pub forward_s: f64,
    /// Backward of one microbatch, recomputation included, seconds.
    pub backward_s: f64,
    /// Part of the backward that recomputes activations, seconds.
    pub recompute_s: f64,
    /// All-reduce of the stage's gradients, once per batch, seconds.
    pub all_reduce_s: f64,
    /// Time to send one microbatch's outputs to the next stage, or the gradients back, seconds each way.
    pub send_s: f64,
    /// Bytes of one microbatch's outputs to the next stage.
    pub send_bytes: f64,
    /// Bytes of the stage's parameters; the gradients have as many.
    pub parameter_bytes: f64,
    /// Bytes of weights, gradients and optimizer state on each device.
    pub weight_bytes: f64,
    /// Bytes on each device per microbatch in flight.
    pub activation_bytes: f64,
    /// Bytes on each device that a recomputing stage needs once, for the current microbatch.
    pub working_bytes: f64,
    /// Microbatches in flight.
    pub in_flight: u32,
    /// By position in the stage's node list: seconds of forward and backward of the whole batch on one device.
    pub node_s: Vec<f64>,
}

/// Number of microbatches in the batch of a plan.
pub fn microbatches(model: &SpeedupModel, limits: &Limits, plan: &Plan) -> u32 {
    match model.length {
        Length::Published { pipelines, .. } => model.microbatches(limits.samples(), pipelines),
        Length::Synchronous { whole_samples: false } => model.microbatches(limits.samples(), 1),
        Length::Synchronous { whole_samples: true } => {
            let widest = plan.stages.iter().map(crate::plan::Stage::device_count).max().unwrap_or(1);
            model.microbatches(limits.samples(), widest)
        }
    }
    .max(1)
}

/// Microbatches in flight on a stage with `after` stages behind it. They keep it busy while one microbatch passes all
/// later stages and links and returns (the paper's second warm-up policy).
fn in_flight(after: usize, microbatches: u32) -> u32 {
    u32::try_from(2 * after + 1).unwrap_or(u32::MAX).min(microbatches)
}

/// Costs of every stage.
pub fn stages(
    workload: &Workload,
    profile: &LayerProfile,
    limits: &Limits,
    plan: &Plan,
    model: &SpeedupModel,
) -> Vec<LayerStage> {
    let kept = states::planned_nodes(workload);
    let microbatches = microbatches(model, limits, plan);
    let m = f64::from(microbatches);
    let scale = model.scale(limits.samples());
    let all: f64 = (0..kept.len()).filter(|&v| kept[v]).map(|v| profile.nodes[v].activation()).sum();
    let per_sample = match model.peak_activation_per_sample {
        given if given > 0.0 => given,
        _ => all / f64::from(model.profile_batch.max(1)),
    };
    let mut stage_of = vec![usize::MAX; workload.nodes.len()];
    for (i, stage) in plan.stages.iter().enumerate() {
        stage.nodes.iter().map(|v| v.index()).filter(|&v| v < kept.len()).for_each(|v| stage_of[v] = i);
    }
    let cut = cut_bytes(workload, profile, &kept, &stage_of, plan.stages.len());
    let samples = f64::from(limits.samples()) / m;
    let mut costs = Vec::with_capacity(plan.stages.len());
    for (i, stage) in plan.stages.iter().enumerate() {
        let d = f64::from(stage.device_count().max(1));
        let mut cost =
            LayerStage { in_flight: in_flight(plan.stages.len() - 1 - i, microbatches), ..LayerStage::default() };
        let (mut parameters, mut outputs, mut recomputed) = (0.0, 0.0, false);
        for (&v, choice) in stage.nodes.iter().zip(&stage.choices) {
            let Some(node) = profile.nodes.get(v.index()).filter(|_| kept[v.index()]) else {
                cost.node_s.push(0.0);
                continue;
            };
            let (forward_s, backward_s) = (node.forward_ms / 1000.0, node.backward_ms / 1000.0);
            cost.forward_s += forward_s;
            cost.backward_s += backward_s;
            if choice.recomputes() {
                cost.backward_s += forward_s;
                cost.recompute_s += forward_s;
                recomputed = true;
            }
            parameters += node.parameter_bytes;
            outputs += node.activation();
            cost.node_s.push((forward_s + backward_s) * scale);
        }
        cost.forward_s *= scale / m / d;
        cost.backward_s *= scale / m / d;
        cost.recompute_s *= scale / m / d;
        cost.all_reduce_s = model.links.all_reduce_s(&limits.machines, &stage.devices, parameters);
        cost.parameter_bytes = parameters;
        cost.weight_bytes = model.optimizer_memory_scaling * parameters;
        let share = if all > 0.0 { outputs / all } else { 0.0 };
        let activations = share * per_sample * samples / d;
        if recomputed {
            // The stage's input is kept for every microbatch, the rest for one at a time.
            let incoming = if i > 0 { cut[i - 1] * scale / m } else { 0.0 };
            cost.activation_bytes = incoming / d;
            cost.working_bytes = activations;
        } else {
            cost.activation_bytes = activations;
        }
        if let Some(next) = plan.stages.get(i + 1) {
            cost.send_bytes = cut[i] * scale / m;
            cost.send_s = model.links.transfer_s(&limits.machines, &stage.devices, &next.devices, cost.send_bytes);
        }
        costs.push(cost);
    }
    costs
}

/// By stage: bytes of the profiled batch that are needed after it.
fn cut_bytes(
    workload: &Workload,
    profile: &LayerProfile,
    planned: &[bool],
    stage_of: &[usize],
    stages: usize,
) -> Vec<f64> {
    // By stage: bytes needed after it for the first time, and bytes no longer needed.
    let mut changes: Vec<Vec<f64>> = vec![vec![]; stages + 1];
    for u in (0..planned.len()).filter(|&u| planned[u] && stage_of[u] != usize::MAX) {
        let own = stage_of[u];
        let needed =
            workload.dag.successors(u).filter(|&w| planned[w] && stage_of[w] != usize::MAX).map(|w| stage_of[w]).max();
        if let Some(needed) = needed.filter(|&needed| needed > own) {
            changes[own].push(profile.nodes[u].activation());
            changes[needed].push(-profile.nodes[u].activation());
        }
    }
    let mut now = ExactSum::default();
    let after = |changes: &Vec<f64>| {
        changes.iter().for_each(|&bytes| now.add(bytes));
        now.value()
    };
    changes.iter().take(stages).map(after).collect()
}

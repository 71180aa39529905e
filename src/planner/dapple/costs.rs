//! What a stage costs, by the positions between which it lies.
//!
//! A position is a place where the network may be cut: after some layers, before the others. Everything is a difference of
//! prefix sums, so the cost of any stage on any number of devices takes `O(1)`.

use crate::{
    cluster::Limits,
    plan::{SpeedupModel, layer_costs},
    workload::{
        LayerProfile, Workload,
        states::{self, States},
    },
};

/// Costs over positions `0..=cuts`; position 0 is the network's beginning.
#[derive(Debug, Clone)]
pub(super) struct Costs {
    /// The last state before each position; position 0 has none.
    pub(super) last_state: Vec<usize>,
    /// Forward seconds of the whole batch on one device, up to each position.
    forward_s: Vec<f64>,
    /// The same of the backward pass.
    backward_s: Vec<f64>,
    parameter_bytes: Vec<f64>,
    /// Activation bytes of one microbatch.
    activation_bytes: Vec<f64>,
    /// Bytes of one microbatch's outputs that are needed after a position.
    pub(super) cut_bytes: Vec<f64>,
    /// Microbatches, M.
    pub(super) microbatches: u32,
    memory_bytes: f64,
    optimizer_memory_scaling: f64,
}

/// When a stage gives up its activations and computes them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recompute {
    Never,
    /// Where it would not fit otherwise.
    Auto,
    Always,
}

/// One microbatch through a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StageTime {
    pub(super) forward_s: f64,
    pub(super) backward_s: f64,
    pub(super) recompute: bool,
}

impl Costs {
    /// The costs of a problem cut into this many microbatches.
    pub(super) fn new(
        workload: &Workload,
        profile: &LayerProfile,
        states: &States,
        limits: &Limits,
        model: &SpeedupModel,
        microbatches: u32,
    ) -> Self {
        let kept = states::kept(workload);
        let n = workload.nodes.len();
        let (scale, m) = (model.scale(limits.batch), f64::from(microbatches));
        let mut costs = Costs {
            last_state: vec![0],
            forward_s: vec![0.0],
            backward_s: vec![0.0],
            parameter_bytes: vec![0.0],
            activation_bytes: vec![0.0],
            cut_bytes: vec![0.0],
            microbatches,
            memory_bytes: limits.memory_bytes,
            optimizer_memory_scaling: model.optimizer_memory_scaling,
        };
        let all: f64 = (0..n).filter(|&v| kept[v]).map(|v| profile.nodes[v].activation()).sum();
        let per_sample = match model.peak_activation_per_sample {
            given if given > 0.0 => given,
            _ => all / f64::from(model.profile_batch),
        };
        let held = if all > 0.0 { per_sample * f64::from(limits.batch) / m / all } else { 0.0 };
        let mut done = vec![false; n];
        let (mut forward, mut backward, mut parameters, mut activations) = (0.0, 0.0, 0.0, 0.0);
        for (state, members) in states.members.iter().enumerate() {
            for &v in members {
                done[v] = true;
            }
            let planned: Vec<usize> = members.iter().copied().filter(|&v| kept[v]).collect();
            for &v in &planned {
                let node = &profile.nodes[v];
                forward += node.forward_ms / 1000.0 * scale;
                backward += node.backward_ms / 1000.0 * scale;
                parameters += node.parameter_bytes;
                activations += node.activation() * held;
            }
            if planned.is_empty() && costs.last_state.len() > 1 {
                // Nothing new: the cut before it is the same.
                if let Some(last) = costs.last_state.last_mut() {
                    *last = state;
                }
                continue;
            }
            let needed = |&u: &usize| done[u] && kept[u] && workload.dag.successors(u).any(|w| kept[w] && !done[w]);
            let cut: f64 = (0..n).filter(needed).map(|u| profile.nodes[u].activation()).sum();
            costs.last_state.push(state);
            costs.forward_s.push(forward);
            costs.backward_s.push(backward);
            costs.parameter_bytes.push(parameters);
            costs.activation_bytes.push(activations);
            costs.cut_bytes.push(cut * scale / m);
        }
        costs
    }

    /// The last position: the network's end.
    pub(super) fn end(&self) -> usize {
        self.last_state.len() - 1
    }

    /// Forward and backward seconds of the whole batch between two positions on one device.
    pub(super) fn compute_s(&self, from: usize, to: usize) -> f64 {
        self.forward_s[to] - self.forward_s[from] + self.backward_s[to] - self.backward_s[from]
    }

    /// Forward seconds of the whole batch up to a position on one device.
    pub(super) fn forward_up_to(&self, to: usize) -> f64 {
        self.forward_s[to]
    }

    /// Bytes of parameters between two positions.
    pub(super) fn parameters(&self, from: usize, to: usize) -> f64 {
        self.parameter_bytes[to] - self.parameter_bytes[from]
    }

    /// The time of a stage with `after` stages behind it, if its memory suffices.
    pub(super) fn stage(
        &self,
        from: usize,
        to: usize,
        devices: u32,
        after: usize,
        recompute: Recompute,
    ) -> Option<StageTime> {
        let share = f64::from(self.microbatches) * f64::from(devices);
        let forward_s = (self.forward_s[to] - self.forward_s[from]) / share;
        let backward_s = (self.backward_s[to] - self.backward_s[from]) / share;
        if recompute != Recompute::Always && self.memory(from, to, devices, after, false) <= self.memory_bytes {
            return Some(StageTime { forward_s, backward_s, recompute: false });
        }
        let again = recompute != Recompute::Never && self.memory(from, to, devices, after, true) <= self.memory_bytes;
        again.then_some(StageTime { forward_s, backward_s: backward_s + forward_s, recompute: true })
    }

    /// Bytes on each device of a stage.
    pub(super) fn memory(&self, from: usize, to: usize, devices: u32, after: usize, recompute: bool) -> f64 {
        let d = f64::from(devices);
        let weights = self.optimizer_memory_scaling * self.parameters(from, to);
        let in_flight = f64::from(layer_costs::in_flight(after, self.microbatches));
        let own = (self.activation_bytes[to] - self.activation_bytes[from]) / d;
        if recompute {
            let incoming = if from > 0 { self.cut_bytes[from] / d } else { 0.0 };
            weights + own + incoming * in_flight
        } else {
            weights + own * in_flight
        }
    }

    /// Whether memory can stand in no stage's way, whatever is in flight.
    pub(super) fn memory_is_plenty(&self, devices: u32) -> bool {
        self.memory(0, self.end(), 1, devices as usize, false) <= self.memory_bytes
    }
}

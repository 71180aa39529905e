//! Iteration time of stages on several kinds of devices, in closed form.
//!
//! Stages are in a row. Each is on one kind with one tensor degree, and all have the same number of replicas. Of `m`
//! microbatches, the first passes through all stages, and each other follows after the slowest stage's compute and
//! transfers, or after the time that the busiest link needs for it. The slowest gradient reduction and optimizer step
//! end the iteration: `(m − 1) · max (compute + transfers, link) + Σ (compute + transfers) + max (update + reduction)`
//! (after the simulator of Sailor, SOSP 2025, whose own rules are [`TimeRule::Sailor`]). An iteration of `T` seconds
//! costs `T / 3600 · Σ price of a device for an hour + Σ bytes between stages · price of a byte`. `O(stages + layers)`.

use std::ops::Range;

use crate::workload::mixed::{LayerMode, MixedProfile, TimeRule};

/// Seconds of an hour.
pub const HOUR: f64 = 3600.0;

/// Stage on one kind of device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindStage {
    /// Layers, by index.
    pub layers: Range<usize>,
    /// Index of the kind.
    pub kind: usize,
    /// Tensor degree, t.
    pub tensor: u32,
    /// True if its layers recompute their activations.
    pub recompute: bool,
}

/// Stages with their replicas and microbatches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindPipeline {
    /// Stages in order.
    pub stages: Vec<KindStage>,
    /// Replicas of every stage, d.
    pub data: u32,
    /// Sequences of a microbatch.
    pub micro_batch: u32,
    /// Sequences of an iteration.
    pub batch: u32,
}

/// Costs of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct KindStageCost {
    /// Forward pass of a microbatch, seconds.
    pub forward_s: f64,
    /// Backward pass of a microbatch, seconds.
    pub backward_s: f64,
    /// Activations to the next stage for a microbatch, seconds.
    pub activations_s: f64,
    /// Gradients to the stage before for a microbatch, seconds.
    pub gradients_s: f64,
    /// Time that the busier of its links needs for a microbatch, hidden or not, seconds.
    pub link_s: f64,
    /// Reduction of the gradients of an iteration, seconds.
    pub reduction_s: f64,
    /// Optimizer step, seconds.
    pub update_s: f64,
    /// State of the layers on a device, bytes.
    pub state_bytes: f64,
    /// Activations of a microbatch on a device, bytes.
    pub activation_bytes: f64,
    /// Bytes of a device that no layer may use.
    pub reserve_bytes: f64,
    /// Microbatches in flight.
    pub in_flight: u32,
}

impl KindStageCost {
    /// Compute and transfers of a microbatch, seconds.
    pub fn slot_s(&self) -> f64 {
        self.forward_s + self.backward_s + self.activations_s + self.gradients_s
    }

    /// Time from one microbatch to the next, seconds: that of the stage, or of its busier link.
    pub fn period_s(&self) -> f64 {
        self.slot_s().max(self.link_s)
    }

    /// Memory of a device, bytes.
    pub fn memory_bytes(&self) -> f64 {
        self.reserve_bytes + self.state_bytes + self.activation_bytes * f64::from(self.in_flight)
    }
}

/// Sequences of an iteration, those that fill the last microbatch included.
pub fn sequences(microbatches: u32, micro_batch: u32, data: u32) -> f64 {
    f64::from(microbatches) * f64::from(micro_batch) * f64::from(data)
}

impl KindPipeline {
    /// Microbatches of a replica in an iteration.
    pub fn microbatches(&self) -> u32 {
        self.batch.div_ceil(self.micro_batch.saturating_mul(self.data).max(1))
    }

    /// Costs of every stage. `None` if the profile lacks a kind with a tensor degree and this micro-batch.
    pub fn costs(&self, profile: &MixedProfile) -> Option<Vec<KindStageCost>> {
        let count = self.stages.len();
        let sender = |stage: &KindStage| (stage.kind, stage.tensor);
        let sent = |layer: usize| profile.output_bytes[layer] * f64::from(self.micro_batch);
        let cost = |(index, stage): (usize, &KindStage)| {
            let mode = LayerMode { micro_batch: self.micro_batch, recompute: stage.recompute };
            let own = profile.costs(stage.kind, stage.tensor, mode)?;
            let mut cost = KindStageCost {
                reserve_bytes: own.reserve_bytes,
                in_flight: (count - index) as u32,
                ..KindStageCost::default()
            };
            let layers = own.layers.get(stage.layers.clone()).filter(|layers| !layers.is_empty())?;
            for layer in layers {
                cost.forward_s += layer.forward_s;
                cost.backward_s += layer.backward_s;
                cost.state_bytes += layer.state_bytes.on(self.data);
                cost.update_s += layer.update_s.on(self.data);
                cost.activation_bytes += layer.activation_bytes;
            }
            if profile.rule == TimeRule::Sailor {
                cost.update_s = layers[0].update_s.on(self.data);
            }
            let [activations, gradients] = profile.rule.factors(index, count);
            let to =
                |other: usize, bytes: f64| profile.links.seconds(bytes, sender(stage), sender(&self.stages[other]));
            if activations > 0.0 {
                cost.activations_s = activations * to(index + 1, sent(stage.layers.end - 1));
            }
            if gradients > 0.0 {
                cost.gradients_s = gradients * to(index - 1, sent(profile.rule.sends_back(stage.layers.start)));
            }
            cost.link_s = cost.activations_s.max(cost.gradients_s) / profile.exposed;
            let bytes: f64 = profile.gradient_bytes[stage.layers.clone()].iter().sum();
            cost.reduction_s = profile.links.all_reduce_s(bytes / f64::from(stage.tensor), sender(stage), self.data);
            Some(cost)
        };
        self.stages.iter().enumerate().map(cost).collect()
    }

    /// Iteration time from the costs of the stages, seconds.
    pub fn iteration_s(&self, profile: &MixedProfile, costs: &[KindStageCost]) -> f64 {
        let most = |of: fn(&KindStageCost) -> f64| costs.iter().map(of).fold(0.0, f64::max);
        let repeated = f64::from(self.microbatches()) - 1.0;
        let through: f64 = costs.iter().map(KindStageCost::slot_s).sum();
        let end = match profile.rule {
            TimeRule::Stages => most(|cost| cost.update_s + cost.reduction_s),
            TimeRule::Sailor => most(|cost| cost.update_s) + most(|cost| cost.reduction_s),
        };
        let devices = self.devices(profile.kinds.len()).iter().sum();
        profile.whole_s(repeated * most(KindStageCost::period_s) + through + end, devices)
    }

    /// Devices of each kind that the stages take.
    pub fn devices(&self, kinds: usize) -> Vec<u64> {
        let mut taken = vec![0; kinds];
        for stage in &self.stages {
            taken[stage.kind] += u64::from(self.data) * u64::from(stage.tensor);
        }
        taken
    }

    /// Price of the devices that the stages take, for an hour; `None` without the price of one.
    pub fn price_per_hour(&self, profile: &MixedProfile) -> Option<f64> {
        let taken = self.devices(profile.kinds.len());
        let of_kind = |(kind, &count): (usize, &u64)| match count {
            0 => Some(0.0),
            _ => profile.kinds[kind].price_per_hour.map(|price| price * count as f64),
        };
        taken.iter().enumerate().map(of_kind).sum()
    }

    /// Cost of an iteration's activations and gradients between the stages.
    pub fn traffic_cost(&self, profile: &MixedProfile) -> f64 {
        let of_sequence =
            |ends: &[KindStage]| profile.traffic_cost_per_sequence(ends[0].kind, ends[1].kind, ends[0].layers.end);
        sequences(self.microbatches(), self.micro_batch, self.data)
            * self.stages.windows(2).map(of_sequence).fold(0.0, |sum, cost| sum + cost)
    }

    /// True if all stages have one tensor degree and one rule of recomputation, as engines need.
    pub fn is_uniform(&self) -> bool {
        self.stages.iter().all(|stage| {
            let first = &self.stages[0];
            stage.tensor == first.tensor && stage.recompute == first.recompute
        })
    }

    /// Iteration time, seconds, and cost of an iteration if its devices have prices. `None` if the profile lacks a kind
    /// with a tensor degree and this micro-batch.
    pub fn time_and_cost(&self, profile: &MixedProfile) -> Option<(f64, Option<f64>)> {
        let seconds = self.iteration_s(profile, &self.costs(profile)?);
        Some((seconds, self.cost(profile, seconds)))
    }

    /// Cost of an iteration of `seconds`, its traffic included; `None` without the price of a device that the stages take.
    pub fn cost(&self, profile: &MixedProfile, seconds: f64) -> Option<f64> {
        self.price_per_hour(profile).map(|per_hour| per_hour * seconds / HOUR + self.traffic_cost(profile))
    }
}

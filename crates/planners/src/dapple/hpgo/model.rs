//! Problem of the published planner: costs of ranges of states, scaled to the whole batch.

use plantui_core::{
    cluster::{Links, Machines},
    plan::SpeedupModel,
    workload::states::States,
};

/// Faults of the published planner that change its results. A fault is kept if its flag is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// The parameters of every stage except the last include the first state of the next stage. So does the compute in
    /// the event estimate.
    pub boundary_parameters: bool,
    /// The fill time of the pipeline ignores the replication of stages.
    pub undivided_fill: bool,
    /// A bipartition's cut counts one direction, a straight pipeline's cut two.
    pub one_way_cut: bool,
    /// Bipartitions cut anywhere in the list of states, even between states on parallel branches.
    pub any_cut: bool,
    /// The forward times that hide an all-reduce belong to the layer at the other end of the network.
    pub mirrored_forward: bool,
    /// Forward and backward are each half of a layer's time, whatever the profile contains.
    pub even_halves: bool,
    /// Plans ignore memory.
    pub memory_unchecked: bool,
}

impl Faults {
    /// All faults kept, as published.
    pub const KEPT: Faults = Faults {
        boundary_parameters: true,
        undivided_fill: true,
        one_way_cut: true,
        any_cut: true,
        mirrored_forward: true,
        even_halves: true,
        memory_unchecked: true,
    };
}

/// Costs by state, for the whole batch on one device.
#[derive(Debug, Clone)]
pub struct HpgoModel<'a> {
    states: &'a States,
    /// Batch divided by profiled batch.
    pub scale: f64,
    /// Samples in the batch.
    pub batch: u32,
    /// Machines and their devices.
    pub machines: Machines,
    /// Number of devices, n.
    pub devices: u32,
    /// Memory per device, bytes.
    pub memory_bytes: f64,
    /// Parameters of the speed-up.
    pub speedup: SpeedupModel,
    /// Faults that are kept.
    pub faults: Faults,
}

impl<'a> HpgoModel<'a> {
    /// Creates the costs of a profile's states for one problem.
    pub fn new(
        states: &'a States,
        machines: Machines,
        batch: u32,
        memory_bytes: f64,
        speedup: SpeedupModel,
        faults: Faults,
    ) -> Self {
        let (scale, devices) = (speedup.scale(batch), machines.devices());
        HpgoModel { states, scale, batch, machines, devices, memory_bytes, speedup, faults }
    }

    /// Bandwidths of the links.
    pub fn links(&self) -> &Links {
        &self.speedup.links
    }

    /// Number of states, L.
    pub fn states(&self) -> usize {
        self.states.len()
    }

    /// States before state `j`, in descending order.
    pub fn before_backwards(&self, j: usize) -> impl Iterator<Item = usize> + '_ {
        self.states.before(j).rev()
    }

    /// True if each state covers the state before it.
    pub fn is_chain(&self) -> bool {
        self.states.is_chain()
    }

    /// True if the network can be cut after state `l`: `l` depends on everything that earlier states cover.
    pub fn can_cut_after(&self, l: usize) -> bool {
        self.states.is_cut(l)
    }

    /// Seconds of the states `from..=to`; can be negative if states branch.
    pub fn compute_s(&self, from: usize, to: usize) -> f64 {
        self.states.compute_between(from, to) * self.scale
    }

    /// Forward seconds of the states `from..=to`.
    pub fn forward_s(&self, from: usize, to: usize) -> f64 {
        self.states.forward_between(from, to) * self.scale
    }

    /// Parameter bytes of the states `from..=to`.
    pub fn parameter_bytes(&self, from: usize, to: usize) -> f64 {
        self.states.parameters_between(from, to)
    }

    /// Fraction of the network's activations in the states `from..=to`.
    pub fn activation_share(&self, from: usize, to: usize) -> f64 {
        let all = self.states.activation_bytes[self.states() - 1];
        if all > 0.0 { self.states.activations_between(from, to) / all } else { 0.0 }
    }

    /// Bytes of the whole batch sent over a cut after state `l`.
    pub fn output_bytes(&self, l: usize) -> f64 {
        self.states.output_bytes[l] * self.scale
    }

    /// Seconds of the whole network.
    pub fn total_s(&self) -> f64 {
        self.compute_s(0, self.states() - 1)
    }

    /// Bytes of all parameters.
    pub fn total_parameters(&self) -> f64 {
        self.parameter_bytes(0, self.states() - 1)
    }

    /// Activation bytes of the whole network per sample: the given value, else the sum of all outputs.
    pub fn activation_per_sample(&self) -> f64 {
        match self.speedup.peak_activation_per_sample {
            given if given > 0.0 => given,
            _ => self.states.activation_bytes[self.states() - 1] / f64::from(self.speedup.profile_batch),
        }
    }
}

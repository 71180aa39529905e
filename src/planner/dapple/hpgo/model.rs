//! A problem as the published planner sees it: costs of ranges of states, scaled to the whole batch.

use crate::{
    cluster::{Links, Machines},
    plan::SpeedupModel,
    workload::states::States,
};

/// Faults of the published planner that change what it computes; each is kept where its flag is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// The parameters (and in the event estimate the compute) of a stage that is not the last count the first state of
    /// the next stage too.
    pub boundary_parameters: bool,
    /// The fill of the pipeline ignores that stages are replicated.
    pub undivided_fill: bool,
    /// A bipartition's cut counts one direction, where a straight pipeline's counts two.
    pub one_way_cut: bool,
    /// Bipartitions cut anywhere in the list of states, also between states of which neither leads to the other.
    pub any_cut: bool,
    /// Forward times that hide an all-reduce are those of the layer at the other end of the network.
    pub mirrored_forward: bool,
    /// Forward and backward are half of a layer's time each, whatever the profile says.
    pub even_halves: bool,
    /// Plans are made without a look at memory.
    pub memory_unchecked: bool,
}

impl Faults {
    /// As published.
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

/// Costs over states, for the whole batch on one device.
#[derive(Debug, Clone)]
pub struct HpgoModel<'a> {
    states: &'a States,
    /// Batch over profiled batch.
    pub scale: f64,
    /// Samples in the batch.
    pub batch: u32,
    /// Devices in their machines.
    pub machines: Machines,
    /// Number of devices, n.
    pub devices: u32,
    /// Bytes of memory per device.
    pub memory_bytes: f64,
    /// What the speed-up depends on.
    pub speedup: SpeedupModel,
    /// Which faults are kept.
    pub faults: Faults,
}

impl<'a> HpgoModel<'a> {
    /// The costs of a profile's states for one problem.
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

    /// Speeds of the links.
    pub fn links(&self) -> &Links {
        &self.speedup.links
    }

    /// Number of states, L.
    pub fn states(&self) -> usize {
        self.states.len()
    }

    /// States that come before state `j`, descending.
    pub fn before_backwards(&self, j: usize) -> impl Iterator<Item = usize> + '_ {
        self.states.before(j).rev()
    }

    /// Whether each state covers all that its neighbour before it covers.
    pub fn is_chain(&self) -> bool {
        self.states.is_chain()
    }

    /// Whether the network can be cut after state `l`: all that earlier states cover is needed by it.
    pub fn can_cut_after(&self, l: usize) -> bool {
        self.states.is_cut(l)
    }

    /// Seconds of the states `from..=to`; negative for some ranges where states branch.
    pub fn compute_s(&self, from: usize, to: usize) -> f64 {
        self.states.compute_between(from, to) * self.scale
    }

    /// Seconds of the states' forward pass.
    pub fn forward_s(&self, from: usize, to: usize) -> f64 {
        self.states.forward_between(from, to) * self.scale
    }

    /// Bytes of the states' parameters.
    pub fn parameter_bytes(&self, from: usize, to: usize) -> f64 {
        self.states.parameters_between(from, to)
    }

    /// Share of the network's activations that the states hold.
    pub fn activation_share(&self, from: usize, to: usize) -> f64 {
        let all = self.states.activation_bytes[self.states() - 1];
        if all > 0.0 { self.states.activations_between(from, to) / all } else { 0.0 }
    }

    /// Bytes of the whole batch that a cut after state `l` sends.
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

    /// Bytes of activations of the whole network for one sample: as given, else the sum of all outputs.
    pub fn activation_per_sample(&self) -> f64 {
        match self.speedup.peak_activation_per_sample {
            given if given > 0.0 => given,
            _ => self.states.activation_bytes[self.states() - 1] / f64::from(self.speedup.profile_batch),
        }
    }
}

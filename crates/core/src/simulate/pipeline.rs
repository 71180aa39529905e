//! Input of the simulator: stages with times, transfers between them, memory. Each family builds it from a plan.

use super::{memory_parts::MemoryParts, sample_run::SampleRun, settings::SimulatorSettings, wires::ReplicaRoutes};
use crate::workload::NodeIndex;

/// Valid duration: 0 if negative or not finite.
pub(super) fn sound(seconds: f64) -> f64 {
    if seconds.is_finite() { seconds.max(0.0) } else { 0.0 }
}

/// One stage of the pipeline, for one of its replicas.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineStage {
    /// Forward of one microbatch on one replica, seconds.
    pub forward_s: f64,
    /// Backward of one microbatch on one replica, recomputation included, seconds.
    pub backward_s: f64,
    /// Part of the backward that recomputes activations, seconds.
    pub recompute_s: f64,
    /// Time that one transfer to the next stage and one to the stage before keep their links busy, seconds, if the passes
    /// include the transfers: those have no time of their own then.
    pub sends_s: [f64; 2],
    /// Part of the backward that is the gradient of the weights, seconds. `None`: the fraction in the settings.
    pub weight_gradient_s: Option<f64>,
    /// Part of forward and backward that is saved if they run side by side, of two microbatches, seconds; above 0, the
    /// schedule pairs them between warm-up and drain.
    pub paired_saving_s: f64,
    /// The same for a schedule that lists its pairs, whether or not the plan's own pairs passes, seconds.
    pub listed_saving_s: f64,
    /// Number of replicas. Microbatch m runs on replica m mod replicas.
    pub replicas: u32,
    /// Number of devices that work on one replica in lockstep (the tensor-parallel degree); 0 counts as 1.
    pub devices: u32,
    /// Gradient all-reduce of the whole batch, seconds; 0 for one replica.
    pub all_reduce_s: f64,
    /// Bytes of gradients that each device contributes to the all-reduce.
    pub gradient_bytes: f64,
    /// Bytes on each device that do not depend on microbatches in flight.
    pub fixed_bytes: f64,
    /// Known parts of the fixed bytes: weights, gradients, optimizer state and buffers. Its `state` and `activations`
    /// are not read.
    pub parts: MemoryParts,
    /// Bytes on each device per microbatch in flight.
    pub activation_bytes: f64,
    /// Forwards before the first backward under 1F1B, if the plan sets them. They must decrease from stage to stage,
    /// and such stages have one replica.
    pub warm_up: Option<u32>,
}

/// Data sent from one stage to a later one in the forward pass, and back as gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer {
    /// Earlier stage.
    pub from: usize,
    /// Later stage.
    pub to: usize,
    /// Time of one microbatch's activations, and of its gradients, seconds.
    pub seconds: f64,
    /// Bytes of one microbatch's activations, and of its gradients.
    pub bytes: f64,
}

/// One operator of a stage that runs its operators once, in sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperatorTimes {
    /// Index of the operator.
    pub node: NodeIndex,
    /// Duration of the forward pass with all it waits for, seconds.
    pub forward_s: f64,
    /// Duration of the backward pass with all it waits for, seconds.
    pub backward_s: f64,
}

/// Input of a simulation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pipeline {
    /// Stages in order.
    pub stages: Vec<PipelineStage>,
    /// Transfers between stages; at most one per pair.
    pub transfers: Vec<Transfer>,
    /// Microbatches in the batch.
    pub microbatches: u32,
    /// Samples in a microbatch; 0 if a microbatch counts as one.
    pub samples: f64,
    /// Operators that make up the time of a single stage with a single microbatch; else empty. Their events carry the
    /// position in this list as the microbatch.
    pub steps: Vec<OperatorTimes>,
    /// Assumptions.
    pub notes: Vec<String>,
    /// True if the devices of a stage work on each microbatch together, each on its part of the samples. Else each
    /// replica takes a microbatch, and its devices split the tensors.
    pub samples_are_split: bool,
    /// Settings of the simulation.
    pub settings: SimulatorSettings,
    /// True if [`SimulatorSettings::forward_share`] splits the time of any node, because the profile gives one time for
    /// both passes.
    pub assumes_forward_share: bool,
    /// By stage, then device: the machine that holds it. Empty if the plan is not mapped to machines.
    pub machines: Vec<Vec<u32>>,
    /// Transfers between replicas if the parts are mapped to a topology; else the transfers' own seconds hold for all
    /// replicas.
    pub wires: ReplicaRoutes,
    /// True if 1F1B of this pipeline is interleaved, over the virtual stages of its settings.
    pub interleaved: bool,
    /// True if its durations include all transfers, so that they are not recomputed from the routes' bandwidths.
    pub routed: bool,
    /// True if stages are on devices of several kinds.
    pub on_kinds: bool,
    /// Run of the one sample of a latency plan, which no schedule changes. There are then no transfers between stages,
    /// since tensors go through the host, and a stage's replicas are the rows that its parts need.
    pub single_sample: Option<SampleRun>,
}

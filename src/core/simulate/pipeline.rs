//! What is simulated: stages with times, transfers between them, memory; how a plan becomes one is its family's to say.

use super::{MemoryParts, SimulatorSettings, single_sample::SampleRun, wires::Wires};
use crate::workload::NodeIndex;

/// One stage of the pipeline, as one of its replicas sees it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineStage {
    /// Forward of one microbatch on one replica, seconds.
    pub forward_s: f64,
    /// Backward of one microbatch on one replica, recomputation included, seconds.
    pub backward_s: f64,
    /// The part of the backward that computes activations again, seconds.
    pub recompute_s: f64,
    /// The part of the backward that is the gradient of the weights, seconds; `None`: the share that the settings say.
    pub weight_gradient_s: Option<f64>,
    /// Replicas; microbatch m runs on replica m mod replicas.
    pub replicas: u32,
    /// Devices that work on one replica in lockstep (the tensor-parallel degree); 0 counts as 1.
    pub devices: u32,
    /// Gradient all-reduce of the whole batch, seconds; 0 for one replica.
    pub all_reduce_s: f64,
    /// Bytes of gradients that each replica's device brings into it.
    pub gradient_bytes: f64,
    /// Bytes on each device whatever is in flight.
    pub fixed_bytes: f64,
    /// What is known of the fixed bytes: their weights, gradients, optimizer state and buffers. `state` and `activations` of
    /// it are not read.
    pub parts: MemoryParts,
    /// Bytes on each device for every microbatch in flight.
    pub activation_bytes: f64,
    /// Forwards before the first backward under 1F1B, where the plan says; must fall from stage to stage, and stages with it
    /// have one replica.
    pub warm_up: Option<u32>,
}

/// Data that goes from one stage to a later one in the forward pass, and back as gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer {
    /// The earlier stage.
    pub from: usize,
    /// The later stage.
    pub to: usize,
    /// Time of one microbatch's activations, and of its gradients, seconds.
    pub seconds: f64,
    /// Bytes of one microbatch's activations, and of its gradients.
    pub bytes: f64,
}

/// One operator of a stage that works through its operators once, one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Which one.
    pub node: NodeIndex,
    /// Its forward pass with all it waits for, seconds.
    pub forward_s: f64,
    /// Its backward pass with all it waits for, seconds.
    pub backward_s: f64,
}

/// What is simulated.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pipeline {
    /// Stages in order.
    pub stages: Vec<PipelineStage>,
    /// Transfers between stages; at most one for each pair.
    pub transfers: Vec<Transfer>,
    /// Microbatches in the batch.
    pub microbatches: u32,
    /// Samples in a microbatch; 0 where a microbatch counts as one.
    pub samples: f64,
    /// Where there is one stage and one microbatch, the operators that make up its time; else empty. Their events carry the
    /// position in this list for a microbatch.
    pub steps: Vec<Step>,
    /// What was assumed.
    pub notes: Vec<String>,
    /// Whether the devices of a stage work on each microbatch together, each on its share of the samples; else each replica
    /// takes a microbatch, and its devices split the tensors.
    pub samples_are_split: bool,
    /// How it is simulated.
    pub settings: SimulatorSettings,
    /// Whether [`SimulatorSettings::forward_share`] parts the time of any node: the profile gives one time for both passes.
    pub assumes_forward_share: bool,
    /// By stage, then device: the machine that holds it. Empty where the plan is not laid out over machines.
    pub machines: Vec<Vec<u32>>,
    /// What goes between replicas where its parts sit on a topology; else the transfers' own seconds hold, for all alike.
    pub wires: Wires,
    /// Whether 1F1B of this pipeline is interleaved, over the virtual stages of its settings.
    pub interleaved: bool,
    /// Whether its durations hold all that is sent, so that they are not made anew from what routes attain.
    pub routed: bool,
    /// Of a plan for latency: the run of its one sample, which no schedule changes. Then there are no transfers between
    /// stages, since tensors go through the host, and the replicas of a stage are the rows that its parts need.
    pub single_sample: Option<SampleRun>,
}

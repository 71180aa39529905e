//! From a plan to what is simulated.
use crate::{cluster::Limits, plan::Plan, workload::Workload};

/// What the simulation assumes where plan and profile are silent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Share of a node's time that is forward, where the profile does not tell; 1/3 by default (backward twice forward).
    pub forward_share: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { forward_share: 1.0 / 3.0 }
    }
}

/// One stage of the pipeline, as one of its replicas sees it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineStage {
    /// Forward of one microbatch on one replica, seconds.
    pub forward_s: f64,
    /// Backward of one microbatch on one replica, recomputation included, seconds.
    pub backward_s: f64,
    /// Replicas; microbatch m runs on replica m mod replicas.
    pub replicas: u32,
    /// Gradient all-reduce of the whole batch, seconds; 0 for one replica.
    pub all_reduce_s: f64,
    /// Bytes on each device whatever is in flight.
    pub fixed_bytes: f64,
    /// Bytes on each device for every microbatch in flight.
    pub activation_bytes: f64,
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
    /// What was assumed.
    pub notes: Vec<String>,
}

impl Pipeline {
    /// The pipeline of a valid plan (one that [`crate::plan::check`] accepts).
    pub fn from_plan(_workload: &Workload, _limits: &Limits, _plan: &Plan, _settings: &Settings) -> Pipeline {
        Pipeline::default()
    }
}

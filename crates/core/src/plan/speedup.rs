//! Parameters of the speed-up of a pipeline over machines, in addition to workload, limits and plan.
//!
//! Speed-up is the time of one device for the whole batch, without a memory limit, over the time of the plan. The
//! plan's time is the length that DAPPLE's published planner computes, or the length of the synchronous pipeline (the
//! paper's formula): see [`Length`].

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::{Links, PUBLISHED_LINKS};

/// Formula for the time of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// Synchronous pipeline around its pivot stage, with transfers as stages of their own.
    Synchronous {
        /// True if every device must get whole samples of a microbatch.
        whole_samples: bool,
    },
    /// Estimate by which the published planner ranks its plans.
    Published {
        /// Number of equal pipelines side by side.
        pipelines: u32,
        /// True if a cut's bytes count in both directions.
        two_way: bool,
        /// True if a stage's all-reduce also counts the first state of the next stage.
        boundary_parameters: bool,
        /// True if the warm-up ignores the replication of stages.
        undivided_fill: bool,
        /// True if memory is not checked.
        memory_unchecked: bool,
    },
}

/// Parameters of a speed-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedupModel {
    /// Samples in the batch that was profiled.
    pub profile_batch: u32,
    /// Minimum number of samples in a microbatch.
    pub micro_batch: u32,
    /// Bytes of weights, gradients and optimizer state per byte of parameters.
    pub optimizer_memory_scaling: f64,
    /// Bytes of the whole network's activations per sample; 0: the sum of all outputs in the profile.
    pub peak_activation_per_sample: f64,
    /// Bandwidths of the links.
    pub links: Links,
    /// True if the network is cut along one order of its layers.
    pub linear: bool,
    /// Formula for the time of a batch.
    pub length: Length,
}

impl Default for SpeedupModel {
    fn default() -> Self {
        SpeedupModel {
            profile_batch: 1,
            micro_batch: 1,
            optimizer_memory_scaling: 1.0,
            peak_activation_per_sample: 0.0,
            links: PUBLISHED_LINKS,
            linear: false,
            length: Length::Synchronous { whole_samples: false },
        }
    }
}

impl SpeedupModel {
    /// Builds the model from a planner's options in the plan JSON, for a profile of `profile_batch` samples. A missing
    /// or out-of-range option keeps its default. In the latter case the plan's value then differs from the file's.
    pub fn from_options(options: &BTreeMap<String, Value>, profile_batch: u32) -> Self {
        let number = |name: &str, default: f64, least: f64| {
            let value = options.get(name).and_then(Value::as_f64);
            value.filter(|value| value.is_finite() && *value >= least && *value <= 1e30).unwrap_or(default)
        };
        let flag = |name: &str, default: bool| options.get(name).and_then(Value::as_bool).unwrap_or(default);
        let positive = f64::MIN_POSITIVE;
        let length = match options.get("pipelines").and_then(Value::as_u64) {
            None => Length::Synchronous { whole_samples: flag("whole_samples", false) },
            Some(pipelines) => Length::Published {
                pipelines: u32::try_from(pipelines).unwrap_or(u32::MAX).max(1),
                two_way: flag("two_way", true),
                boundary_parameters: flag("boundary_parameters", true),
                undivided_fill: flag("undivided_fill", true),
                memory_unchecked: flag("memory_unchecked", true),
            },
        };
        SpeedupModel {
            profile_batch,
            micro_batch: number("micro_batch", 1.0, 1.0) as u32,
            optimizer_memory_scaling: number("optimizer_memory_scaling", 1.0, 0.0),
            peak_activation_per_sample: number("peak_activation_per_sample", 0.0, 0.0),
            links: Links {
                in_machine: number("nvlink_bandwidth", PUBLISHED_LINKS.in_machine, positive),
                between_machines: number("ethernet_bandwidth", PUBLISHED_LINKS.between_machines, positive),
                all_reduce: number("all_reduce_bandwidth", PUBLISHED_LINKS.all_reduce, positive),
            },
            linear: options.get("states").and_then(Value::as_str) == Some("order"),
            length,
        }
    }

    /// Parameters that the planner's options do not determine, as in the plan JSON's objective.
    pub fn parameters(&self) -> BTreeMap<String, Value> {
        // States that `auto` selected.
        let mut pairs = if self.linear { vec![("states", json!("order"))] } else { vec![] };
        let published = match self.length {
            Length::Synchronous { .. } => None,
            Length::Published { pipelines, two_way, boundary_parameters, undivided_fill, memory_unchecked } => Some([
                ("pipelines", json!(pipelines)),
                ("two_way", json!(two_way)),
                ("boundary_parameters", json!(boundary_parameters)),
                ("undivided_fill", json!(undivided_fill)),
                ("memory_unchecked", json!(memory_unchecked)),
            ]),
        };
        pairs.extend(published.into_iter().flatten());
        pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    /// Samples of the batch over profiled samples: the factor for the profile's times and activations.
    pub fn scale(&self, batch: u32) -> f64 {
        f64::from(batch) / f64::from(self.profile_batch.max(1))
    }

    /// Microbatches per pipeline, for `pipelines` pipelines side by side.
    pub fn microbatches(&self, batch: u32, pipelines: u32) -> u32 {
        batch / pipelines.max(1) / self.micro_batch.max(1)
    }
}

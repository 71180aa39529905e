//! What the speed-up of a pipeline over machines depends on beside workload, limits and plan.
//!
//! A speed-up is the time one device would take for the whole batch, without any limit on its memory, over the time the
//! plan takes. The plan's time is either the length that DAPPLE's published planner computes or the length of the
//! synchronous pipeline (the paper's formula): see [`Length`].

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::{Links, PUBLISHED_LINKS};

/// How the time of a batch is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// The synchronous pipeline around its pivot stage, transfers as stages of their own.
    Synchronous {
        /// Whether every device must be given whole samples of a microbatch.
        whole_samples: bool,
    },
    /// The estimate by which the published planner ranks its plans.
    Published {
        /// Equal pipelines side by side.
        pipelines: u32,
        /// Whether a cut's bytes count in both directions.
        two_way: bool,
        /// Whether the all-reduce of a stage counts the first state of the next stage too.
        boundary_parameters: bool,
        /// Whether the filling of the pipeline ignores that stages are replicated.
        undivided_fill: bool,
        /// Whether memory is not looked at.
        memory_unchecked: bool,
    },
}

/// What a speed-up is computed from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedupModel {
    /// Samples in the batch that was profiled.
    pub profile_batch: u32,
    /// Samples in a microbatch, at least.
    pub micro_batch: u32,
    /// Bytes of weights, gradients and optimizer state for each byte of parameters.
    pub optimizer_memory_scaling: f64,
    /// Bytes of activations of the whole network for each sample; 0: the sum of all outputs in the profile.
    pub peak_activation_per_sample: f64,
    /// Speeds of the links.
    pub links: Links,
    /// Whether the network is cut along one order of its layers.
    pub linear: bool,
    /// How the time of a batch is computed.
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
    /// The model that a planner's options, as the plan JSON carries them, ask for, of a profile of so many samples. What is missing
    /// keeps its default, and so does what is out of range: such a plan is then worth something else than it says.
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

    /// What the options of a planner do not tell, as the plan JSON carries it with the objective.
    pub fn parameters(&self) -> BTreeMap<String, Value> {
        // Which states `auto` came to.
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

    /// Samples of the batch over those that were profiled: what the profile's times and activations are multiplied by.
    pub fn scale(&self, batch: u32) -> f64 {
        f64::from(batch) / f64::from(self.profile_batch.max(1))
    }

    /// Microbatches of each of `pipelines` pipelines side by side.
    pub fn microbatches(&self, batch: u32, pipelines: u32) -> u32 {
        batch / pipelines.max(1) / self.micro_batch.max(1)
    }
}

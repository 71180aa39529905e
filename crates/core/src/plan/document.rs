//! Plan JSON, schema `plantui.plan/1`, for export and import.
//!
//! Fields may be added, never renamed. Node ids are those of the workload's file. A document needs only `schema` and
//! `stages`. Everything else is optional, so that scripts need not repeat known facts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use super::execution::ExecutionPart;

use super::{Plan, Stage, configuration::ConfigurationPart, score::Score};
use crate::{
    cluster::{GivenLimits, LimitKind, Limits},
    source::LoadError,
    units::{self, exact_number},
    workload::{NodeId, Recipe, TrainingProfile, Workload, training},
};

/// Schema of this version.
pub const SCHEMA: &str = "plantui.plan/1";

/// Plan document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Workload of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadPart>,
    /// Planner with its options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<PlannerPart>,
    /// Limits of the plan. An absent limit is taken from the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<GivenLimits>,
    /// `optimal`, `feasible`, `infeasible` or `cancelled`.
    #[serde(default)]
    pub status: Option<String>,
    /// Objective of the planner and its value.
    #[serde(default)]
    pub objective: Option<ObjectivePart>,
    /// Proven lower bound on the objective.
    #[serde(default)]
    pub lower_bound: Option<f64>,
    /// Search space that status and bound refer to, if it is not all plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven_among: Option<String>,
    /// Stages, first to last.
    pub stages: Vec<StagePart>,
    /// Training configuration, for a training workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ConfigurationPart>,
    /// Best configurations found, and the Pareto-optimal ones in time and memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<ConfigurationPart>,
    /// Plans on several kinds of devices that are cheaper the slower they are, the fastest first, if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cheaper: Vec<CheaperPart>,
    /// Prediction for the configuration, in the field's figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<PredictionPart>,
    /// Days and cost of a training on several kinds of devices, if a number of tokens or failures were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostPart>,
    /// Split of every operator, for an operator workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<OperatorPart>,
    /// Mapping of the plan's parts onto a topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<MappingPart>,
    /// Id of the schedule that the plan was made for, such as `1f1b` or `interleaved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Number of model parts on each device, if the schedule interleaves them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_stages: Option<u32>,
    /// Warm-up rule that the plan was made for: `published` or `cumulative`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<String>,
    /// Simulation of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<SimulationPart>,
    /// Reason why there is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infeasible: Option<InfeasiblePart>,
    /// Statistics of the run by name.
    #[serde(default)]
    pub stats: BTreeMap<String, f64>,
    /// Assumptions.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Plan that is cheaper than faster ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheaperPart {
    /// Planned iteration time, seconds.
    pub iteration_s: f64,
    /// Cost of an iteration.
    pub cost: f64,
    /// Price of its devices for an hour.
    pub price_per_hour: f64,
    /// Stages, first to last.
    pub stages: Vec<StagePart>,
}

/// Prediction for a training plan: rates of the simulated iteration, and the error of such predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PredictionPart {
    /// Tokens of the batch per second.
    pub tokens_per_s: f64,
    /// Tokens of the batch per second and device.
    pub tokens_per_s_per_device: f64,
    /// Operations that the model needs, per second and device.
    pub model_flops_per_s_per_device: f64,
    /// The model's operations as a fraction of the peak, 0 to 1.
    pub mfu: f64,
    /// Like `mfu`, but includes recomputed operations.
    pub hfu: f64,
    /// Comparable published runs; `null` if there are none.
    pub trust: Option<TrustPart>,
    /// Differences from all published runs, a phrase each. Empty if there are comparable runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
    /// Result of the memory check: `yes` if it fits with the memory model's error added, `close` if only without.
    #[serde(default)]
    pub fits: String,
    /// Reason why the utilisation is implausible, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implausible: Option<String>,
    /// Days and cost, if a price or a number of tokens was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostPart>,
}

/// Days and cost of a training on some devices.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostPart {
    /// Days of training, if the number of tokens is given.
    pub days: Option<f64>,
    /// Cost of a billion tokens, if the price is given.
    #[serde(rename = "per_billion_tokens")]
    pub per_billion: Option<f64>,
    /// Cost of the training, if both are given.
    pub total: Option<f64>,
    /// Share of the time that trains, if failures are given. Days and costs count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput: Option<f64>,
    /// Time between two checkpoints with the largest goodput, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_every_s: Option<f64>,
    /// Price of the plan's devices for an hour, for devices of several kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_hour: Option<f64>,
    /// Cost of a simulated iteration with its traffic, without failures, for devices of several kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_iteration: Option<f64>,
}

impl CostPart {
    /// Days and cost at a rate of tokens on some devices, for a price of a device and hour and a number of tokens to train
    /// on. `None` if neither is given.
    pub fn of(price: Option<f64>, tokens: Option<f64>, tokens_per_s: f64, devices: u64) -> Option<Self> {
        let days = tokens.map(|tokens| tokens / tokens_per_s / 86_400.0);
        let per_s = price.map(|price| price * devices as f64 / 3600.0);
        let per_billion = per_s.map(|per_s| per_s * 1e9 / tokens_per_s);
        let total = days.zip(per_s).map(|(days, per_s)| days * 86_400.0 * per_s);
        (days.is_some() || per_billion.is_some()).then_some(CostPart {
            days,
            per_billion,
            total,
            ..CostPart::default()
        })
    }
}

/// Published runs that a prediction was compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrustPart {
    /// Common properties of the runs.
    pub class: String,
    /// Number of runs.
    pub runs: u32,
    /// Mean relative error of the iteration time.
    pub mean_error: f64,
    /// Largest relative error of the iteration time.
    pub worst_error: f64,
    /// Nine of ten runs are at most this far off, relative.
    #[serde(default)]
    pub band: f64,
}

/// Workload of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadPart {
    /// Name of the workload.
    pub name: String,
    /// File it was read from; absent for standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Format of the file.
    pub format: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of edges.
    pub edges: usize,
    /// Batch size of the profile's times, in samples, if the times are those of a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_batch: Option<u32>,
    /// Structure and execution of the network, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
    /// Training settings, for a training workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingPart>,
    /// Kinds of devices, if there are several. Devices are numbered kind by kind in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindPart>,
}

/// Kind of device with its number of devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindPart {
    /// Name of the kind.
    pub id: String,
    /// Devices that a plan may use.
    pub devices: u32,
    /// Price of a device for an hour, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<f64>,
}

/// Training settings of a training workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingPart {
    /// Hardware.
    pub hardware: String,
    /// Generation of the user's own hardware, whose figures are then all listed; absent for a preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// Sequence length in tokens.
    pub sequence_length: u64,
    /// Number format of matrix products.
    pub precision: String,
    /// Settings profile.
    pub stack: String,
    /// All settings by name, as text.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Hardware figures by name that differ from the data sheet: links of a topology, or a file's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
    /// Constants by name that differ from the shipped ones: a calibration's, or a file's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, f64>,
    /// Sources of changed figures and constants, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl From<&TrainingProfile> for TrainingPart {
    fn from(profile: &TrainingProfile) -> Self {
        let setting = |(name, _): &(&str, &str)| ((*name).to_string(), profile.settings.text(name));
        let sheet = training::hardware::all()
            .iter()
            .find(|own| own.id == profile.accelerator.id)
            .map(training::Accelerator::named);
        let changed =
            profile.accelerator.named().into_iter().filter(|own| !sheet.as_ref().is_some_and(|all| all.contains(own)));
        let shipped = training::Constants::shipped(profile.accelerator.generation, profile.stack).named();
        let fitted = profile.constants.named().into_iter().filter(|own| !shipped.contains(own));
        TrainingPart {
            figures: changed.filter_map(|(name, figure)| Some((name.to_string(), figure?))).collect(),
            constants: fitted.map(|(name, value)| (name.to_string(), value)).collect(),
            remarks: profile.remarks.clone(),
            generation: sheet.is_none().then(|| profile.accelerator.generation.id().into()),
            hardware: profile.accelerator.id.into(),
            sequence_length: profile.sequence,
            precision: profile.precision.id().into(),
            stack: profile.stack.id().into(),
            settings: training::TrainingSettings::NAMES.iter().map(setting).collect(),
        }
    }
}

/// Planner of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannerPart {
    /// Id of the planner.
    pub id: String,
    /// Options of the planner.
    #[serde(default)]
    pub options: BTreeMap<String, serde_json::Value>,
}

/// Objective and its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectivePart {
    /// Name of the objective, such as `time_per_sample`.
    pub name: String,
    /// Value of the objective.
    pub value: f64,
    /// Unit of the value, such as `s`.
    pub unit: String,
    /// Parameters of the objective in addition to limits and options.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, serde_json::Value>,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StagePart {
    /// Ids of the stage's nodes.
    pub nodes: Vec<NodeId>,
    /// Replicas.
    pub data_parallel: u32,
    /// Tensor-parallel degree.
    pub tensor_parallel: u32,
    /// Devices, replica by replica.
    #[serde(default)]
    pub devices: Vec<u32>,
    /// Mode of every node, by id.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub choices: serde_json::Map<String, serde_json::Value>,
    /// Last state of the stage, for plans over the states of a layer-wise profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_state: Option<u32>,
    /// Compute, seconds per sample.
    #[serde(default)]
    pub compute_s: f64,
    /// Transfer of tensors across the stage's borders, seconds per sample.
    #[serde(default)]
    pub communication_s: f64,
    /// Gradient all-reduce, seconds per sample.
    #[serde(default)]
    pub sync_s: f64,
    /// Memory per device.
    #[serde(default)]
    pub memory_bytes: f64,
}

/// Split of one operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperatorPart {
    /// Id of the operator.
    pub node: NodeId,
    /// Ways by dimension, in the order of the iteration space.
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, u32>"))]
    pub splits: serde_json::Map<String, serde_json::Value>,
}

/// Devices of a plan's parts on a topology: stage by stage, replica by replica, shard by shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MappingPart {
    /// Name of the topology.
    pub topology: String,
    /// File of the topology, if it is not a built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Method that found the mapping.
    pub method: String,
    /// Device of every part.
    pub devices: Vec<u32>,
    /// Names of the devices in the topology.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Seconds of communication per microbatch at the bottleneck.
    pub communication_s: f64,
    /// Pair, ring or link of the bottleneck; absent if nothing is sent.
    #[serde(default)]
    pub bottleneck: Option<String>,
    /// Bandwidth of the bottleneck, bytes per second.
    #[serde(default)]
    pub bottleneck_bytes_per_s: Option<f64>,
    /// Lower bound on the seconds of every mapping.
    pub lower_bound_s: f64,
    /// True if no mapping takes less.
    pub proved: bool,
    /// Seconds per iteration, simulated on the topology's routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration_s: Option<f64>,
    /// Assumptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl MappingPart {
    /// Bottleneck in words: `3.2 ms of communication a microbatch, most at gpu0 - gpu3 (50 GB/s), proven the least`.
    pub fn summary(&self) -> String {
        let at = self.bottleneck.as_ref().zip(self.bottleneck_bytes_per_s);
        let at = at.map(|(place, width)| format!(", most at {place} ({})", units::bandwidth_exact(width)));
        let how = if self.proved { "proven optimal" } else { "not proven optimal" };
        format!(
            "{} of communication per microbatch{}, {how}",
            units::seconds(self.communication_s),
            at.unwrap_or_default()
        )
    }
}

/// Simulation of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SimulationPart {
    /// Id of the simulated schedule, such as `1f1b` or `gpipe`.
    pub schedule: String,
    /// Time of one iteration, seconds.
    pub iteration_s: f64,
    /// Samples per second; microbatches per second if the number of samples is not known.
    pub samples_per_s: f64,
    /// Fraction of device time that is idle, 0 to 1.
    #[serde(rename = "bubble")]
    pub idle: f64,
    /// Peak memory over all devices, bytes.
    pub peak_memory_bytes: f64,
    /// Assumptions other than the defaults, by name, as text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// Reason why there is no plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InfeasiblePart {
    /// Limits that prevent a plan.
    pub limits: Vec<String>,
    /// Smallest memory per device that would suffice, with everything else unchanged.
    pub smallest_memory_bytes: Option<f64>,
    /// Fewest devices that would suffice, with everything else unchanged.
    pub fewest_devices: Option<u32>,
    /// Explanation in words.
    pub explanation: String,
}

/// Limits of a plan as its document has them. Microbatches and bandwidth appear only if `kinds` contains them.
pub fn limits_part(limits: &Limits, kinds: &[LimitKind]) -> GivenLimits {
    let mut part = GivenLimits::from(limits);
    for kind in [LimitKind::Microbatches, LimitKind::Bandwidth] {
        part.set(kind, part.get(kind).filter(|_| kinds.contains(&kind)));
    }
    part.set(LimitKind::Cpus, part.get(LimitKind::Cpus).filter(|&cpus| cpus > 0.0));
    part.set(LimitKind::Memory, part.get(LimitKind::Memory).filter(|bytes| bytes.is_finite()));
    part
}

/// Value of a limit in a document. JSON has no infinity, so the largest number stands for an unlimited value.
pub fn limit_value(kind: LimitKind, value: f64) -> f64 {
    value.min(if kind == LimitKind::Memory { f64::MAX } else { units::LARGEST })
}

/// Refuses impossible limit values. Names the file and the field.
///
/// # Errors
/// [`LoadError`] for the first wrong value.
pub fn validate_limits(limits: &GivenLimits, source: &str) -> Result<(), LoadError> {
    let (counts, sizes): (Vec<LimitKind>, Vec<LimitKind>) = limits.given().partition(|kind| kind.is_count());
    for kind in counts.into_iter().chain(sizes) {
        let value = limits.get(kind).unwrap_or_default();
        let problem = match kind.counted_in() {
            Some((least, most)) if !(f64::from(least)..=f64::from(most)).contains(&value) => {
                format!("is {value}, must be a whole number from {least} to {most}")
            }
            None if !(value > 0.0 && value <= units::LARGEST) => {
                format!("is {}, must be a positive number of at most 1e30", exact_number(value))
            }
            _ => continue,
        };
        return Err(LoadError::at(source, format!("limits.{}", kind.field()), problem, ""));
    }
    Ok(())
}

/// Stages of a plan with their scores, as in the document.
pub fn stage_parts(workload: &Workload, plan: &Plan, score: Option<&Score>) -> Vec<StagePart> {
    let part = |(i, stage): (usize, &Stage)| {
        let scored = score.and_then(|s| s.stages.get(i)).cloned().unwrap_or_default();
        let ids = stage.nodes.iter().map(|&v| workload.nodes[v].id);
        let choices = ids
            .clone()
            .map(|id| id.to_string())
            .zip(stage.choices.iter().map(|choice| choice.to_string().into()))
            .collect();
        StagePart {
            nodes: ids.collect(),
            data_parallel: stage.data_parallel,
            tensor_parallel: stage.tensor_parallel,
            devices: stage.devices.clone(),
            choices,
            last_state: plan.last_states().and_then(|last| last.get(i).copied()),
            compute_s: scored.compute_s,
            communication_s: scored.communication_s,
            sync_s: scored.sync_s,
            memory_bytes: scored.memory_bytes,
        }
    };
    plan.stages.iter().enumerate().map(part).collect()
}

//! The plan JSON, schema `plantui.plan/1`: how a plan leaves plantui and comes back.
//!
//! Fields may be added, never renamed. Node ids are those of the workload's file. Reading accepts any document that has
//! `schema` and `stages`; everything else is optional, so that plans written by scripts need not repeat what is known.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use super::execution::ExecutionPart;

use super::{Plan, Score, Stage, configuration::ConfigurationPart};
use crate::{
    cluster::{GivenLimits, LimitKind, Limits},
    source::LoadError,
    units::{self, exact_number},
    workload::{NodeId, Recipe, TrainingProfile, Workload, training},
};

/// The schema this version writes.
pub const SCHEMA: &str = "plantui.plan/1";

/// A whole plan document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// What was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadPart>,
    /// Who planned it, with which options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<PlannerPart>,
    /// Under which limits; what is absent is left to the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<GivenLimits>,
    /// `optimal`, `feasible`, `infeasible` or `cancelled`.
    #[serde(default)]
    pub status: Option<String>,
    /// What the planner minimised, and what it reached.
    #[serde(default)]
    pub objective: Option<ObjectivePart>,
    /// Proven lower bound on the objective.
    #[serde(default)]
    pub lower_bound: Option<f64>,
    /// The plans that status and bound speak of, where those are not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven_among: Option<String>,
    /// The stages, first to last.
    pub stages: Vec<StagePart>,
    /// How the model is trained, where that is what was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ConfigurationPart>,
    /// The best configurations found, and those that no other is both faster and smaller than.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<ConfigurationPart>,
    /// What is predicted of that, in the field's figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<PredictionPart>,
    /// How every operator is split, where operators are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<OperatorPart>,
    /// Where its parts sit on a topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<MappingPart>,
    /// Id of the schedule that the plan was made for, such as `1f1b` or `interleaved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Parts of the model on each device, where the schedule interleaves them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_stages: Option<u32>,
    /// Rule of the warm-up that it was made for: `published` or `cumulative`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<String>,
    /// The plan in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<SimulationPart>,
    /// Why there is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infeasible: Option<InfeasiblePart>,
    /// What the run cost; named figures.
    #[serde(default)]
    pub stats: BTreeMap<String, f64>,
    /// What was assumed.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What is predicted of a training plan: rates of the simulated iteration, and how far such predictions were off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictionPart {
    /// Tokens of the batch per second.
    pub tokens_per_s: f64,
    /// The same for each device.
    pub tokens_per_s_per_device: f64,
    /// Operations that the model needs, per second and device.
    pub model_flops_per_s_per_device: f64,
    /// Those as a share of the peak, 0 to 1.
    pub mfu: f64,
    /// The same with what is computed again.
    pub hfu: f64,
    /// The published runs that are like this one; `null` where there are none.
    pub trust: Option<TrustPart>,
    /// How it differs from all published runs, a phrase each; empty where there are runs like it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
    /// Whether it fits: `yes` with the error of the memory model, `close` without.
    #[serde(default)]
    pub fits: String,
    /// Why its utilisation cannot be, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implausible: Option<String>,
}

/// Published runs that a prediction was held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrustPart {
    /// What they have in common.
    pub class: String,
    /// How many they are.
    pub runs: u32,
    /// Mean error of the time of an iteration, relative.
    pub mean_error: f64,
    /// The largest.
    pub worst_error: f64,
}

/// The workload a plan belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadPart {
    /// Its name.
    pub name: String,
    /// Where it was read from; absent for standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its format.
    pub format: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of edges.
    pub edges: usize,
    /// Samples of the batch that its times were taken to be measured with, where they are of a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_batch: Option<u32>,
    /// How the network is built and run, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<Recipe>,
    /// How its model is trained, where that is what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingPart>,
}

/// How a training workload's model is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingPart {
    /// What it runs on.
    pub hardware: String,
    /// Tokens in a sequence.
    pub sequence_length: u64,
    /// The number format of products.
    pub precision: String,
    /// The profile of the settings.
    pub stack: String,
    /// All settings by name, as text.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Figures of the hardware by name, as far as they are not those of its data sheet: links of a topology, a file's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
    /// Constants by name, as far as they are not the shipped ones: a calibration's, a file's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, f64>,
    /// Where changed figures and constants come from, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl From<&TrainingProfile> for TrainingPart {
    fn from(profile: &TrainingProfile) -> Self {
        let setting = |(name, _): &(&str, &str)| ((*name).to_string(), profile.settings.text(name));
        let sheet = training::hardware::find(profile.accelerator.id).map(training::Accelerator::named);
        let changed = profile.accelerator.named().into_iter().filter(|own| !sheet.is_some_and(|all| all.contains(own)));
        let shipped = training::Constants::shipped(profile.accelerator.generation).named();
        let fitted = profile.constants.named().into_iter().filter(|own| !shipped.contains(own));
        TrainingPart {
            figures: changed.filter_map(|(name, figure)| Some((name.to_string(), figure?))).collect(),
            constants: fitted.map(|(name, value)| (name.to_string(), value)).collect(),
            remarks: profile.remarks.clone(),
            hardware: profile.accelerator.id.into(),
            sequence_length: profile.sequence,
            precision: profile.precision.id().into(),
            stack: profile.stack.id().into(),
            settings: training::TrainingSettings::NAMES.iter().map(setting).collect(),
        }
    }
}

/// The planner of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannerPart {
    /// Its id.
    pub id: String,
    /// Its options.
    #[serde(default)]
    pub options: BTreeMap<String, serde_json::Value>,
}

/// An objective and its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectivePart {
    /// Its name, such as `time_per_sample`.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit, such as `s`.
    pub unit: String,
    /// What it depends on beside limits and options.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, serde_json::Value>,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StagePart {
    /// Ids of its nodes.
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
    pub choices: serde_json::Map<String, serde_json::Value>,
    /// For plans over the states of a layer-wise profile: the last state of the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_state: Option<u32>,
    /// Compute, seconds per sample.
    #[serde(default)]
    pub compute_s: f64,
    /// Tensors across the stage's borders, seconds per sample.
    #[serde(default)]
    pub communication_s: f64,
    /// Gradient all-reduce, seconds per sample.
    #[serde(default)]
    pub sync_s: f64,
    /// Memory per device.
    #[serde(default)]
    pub memory_bytes: f64,
}

/// How one operator is split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperatorPart {
    /// Its id.
    pub node: NodeId,
    /// Ways by dimension, in the order of its iteration space.
    pub splits: serde_json::Map<String, serde_json::Value>,
}

/// Where the parts of a plan sit on a topology: stage by stage, replica by replica, shard by shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MappingPart {
    /// Name of the topology.
    pub topology: String,
    /// The file that it was read from, where it is none that has a name of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How it was found.
    pub method: String,
    /// The device of every part.
    pub devices: Vec<u32>,
    /// Their names in the topology.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Seconds of communication a microbatch at the bottleneck.
    pub communication_s: f64,
    /// The pair, ring or link where that is; absent where nothing is sent.
    #[serde(default)]
    pub bottleneck: Option<String>,
    /// Its bytes per second.
    #[serde(default)]
    pub bottleneck_bytes_per_s: Option<f64>,
    /// Seconds that every mapping takes at least.
    pub lower_bound_s: f64,
    /// Whether no mapping takes less.
    pub proved: bool,
    /// Seconds of a batch, simulated on the topology's routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration_s: Option<f64>,
    /// What was assumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl MappingPart {
    /// What limits it, in words: `3.2 ms of communication a microbatch, most at gpu0 - gpu3 (50 GB/s), proven the least`.
    pub fn told(&self) -> String {
        let at = self.bottleneck.as_ref().zip(self.bottleneck_bytes_per_s);
        let at = at.map(|(place, width)| format!(", most at {place} ({})", units::bandwidth_exact(width)));
        let how = if self.proved { "proven the least" } else { "not proven the least" };
        format!(
            "{} of communication a microbatch{}, {how}",
            units::seconds(self.communication_s),
            at.unwrap_or_default()
        )
    }
}

/// What the simulator says of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulationPart {
    /// Schedule simulated: `1f1b` or `gpipe`.
    pub schedule: String,
    /// Time of one batch, seconds.
    pub iteration_s: f64,
    /// Microbatches per second.
    pub samples_per_s: f64,
    /// Share of device time that is idle, 0 to 1.
    pub bubble: f64,
    /// The most memory in use on any device, bytes.
    pub peak_memory_bytes: f64,
    /// What was assumed otherwise than by default, by name, as text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InfeasiblePart {
    /// The limits that stand in the way.
    pub limits: Vec<String>,
    /// The smallest memory per device that would do, with everything else unchanged.
    pub smallest_memory_bytes: Option<f64>,
    /// The fewest devices that would do, with everything else unchanged.
    pub fewest_devices: Option<u32>,
    /// The story in words.
    pub explanation: String,
}

/// The limits of a plan as its document has them: only what plans are limited by, of these kinds.
pub fn limits_part(limits: &Limits, kinds: &[LimitKind]) -> GivenLimits {
    let mut part = GivenLimits::from(limits);
    for kind in [LimitKind::Microbatches, LimitKind::Bandwidth] {
        part.set(kind, part.get(kind).filter(|_| kinds.contains(&kind)));
    }
    part.set(LimitKind::Cpus, part.get(LimitKind::Cpus).filter(|&cpus| cpus > 0.0));
    part.set(LimitKind::Memory, part.get(LimitKind::Memory).filter(|bytes| bytes.is_finite()));
    part
}

/// A value of a limit as documents have it: JSON has no infinite number, so a largest one stands for what does not limit.
pub fn limit_value(kind: LimitKind, value: f64) -> f64 {
    value.min(if kind == LimitKind::Memory { f64::MAX } else { units::LARGEST })
}

/// Refuses values that no limit can have, naming the file and the field.
///
/// # Errors
/// [`LoadError`] for the first of them.
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

/// The stages of a plan with their scores, as the document carries them.
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

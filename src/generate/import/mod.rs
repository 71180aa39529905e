//! What runs today, read from an engine's own configuration: the model, how it is cut, and how it is run.
//!
//! [`read`] takes Megatron-LM's arguments (a shell script, or the dump at the top of a log), torchtitan's job (TOML, flags
//! or a Python registry), DeepSpeed's configuration (JSON, or a Python file with a pipeline module), the configuration of
//! Hugging Face's `TrainingArguments` or accelerate as far as it names parallelism, and Galvatron's strategy. Files are not
//! run: `facts` lists the names and values that stand in them, [`Configuration`] is what they mean, [`plan`] is the plan
//! over a workload, [`workload`] makes one where the file tells the model's sizes. What `export` writes comes back as the
//! same plan. Linear in the text.
//!
//! Followed: Megatron-LM's `arguments.py` (core 0.20), torchtitan 0.3's `JobConfig`, DeepSpeed 0.19's configuration JSON,
//! transformers' `TrainingArguments`, accelerate's `MegatronLMPlugin`, Galvatron 2.4.1's strategy JSON.

mod configuration;
pub(crate) mod facts;
mod model;
mod plan;
mod reader;
mod stages;

use std::collections::BTreeSet;

use super::{GenerateError, GenerateSettings, ModelConfig, StateBytes, TrainedSettings, generate};
use crate::{
    cluster::{Limits, hardware::Hardware},
    family,
    source::LoadError,
    workload::{
        Recipe, TrainingProfile, Workload,
        recipe::Precision,
        training::{self, Accelerator, AttentionKernel, Model},
    },
};

pub use configuration::{Configuration, Engine, Recompute, Splits, read};
pub use plan::plan;

/// Bytes of state with gradients in 16 bits: weights, gradients, and 32-bit weights and moments.
const SIXTEEN_BIT_GRADIENTS: f64 = 16.0;
/// The same with gradients in 32 bits beside.
const MEGATRON_STATE: f64 = 18.0;
/// Weights, gradients and two moments, all in 32 bits.
const FULL_PRECISION: f64 = 16.0;

/// The text of a workload for the model that the configuration runs, on this hardware, in the way it is run.
///
/// # Errors
/// [`GenerateError`] if the file does not tell the model, or a size does not suit.
pub fn workload(
    configuration: &Configuration,
    hardware: &Hardware,
    source: &str,
    command_line: &str,
) -> Result<String, GenerateError> {
    let Some(model) = &configuration.model else {
        let repair = "give the model with --model, or a workload of it with --for";
        let problem = format!("does not tell the model's sizes, as {} do", configuration.engine.with_sizes());
        return Err(LoadError::file(source, problem, repair).into());
    };
    // Where the machine's constants of training are known and the numbers are of 16 bits, times are those of real training.
    if configuration.precision != Some(Precision::Fp32)
        && let Some(accelerator) = training::hardware::find(hardware.id)
    {
        return trained(configuration, model, *accelerator, command_line);
    }
    let mut settings = GenerateSettings::defaults(model, hardware);
    if let Some(length) = configuration.sequence_length {
        settings.sequence_length = length.into();
    }
    settings.micro_batch = configuration.micro_batch.into();
    settings.sequence_parallel = configuration.sequence_parallel;
    settings.keep_attention_scores = configuration.keeps_attention_scores;
    settings.state = match (configuration.distributed_optimizer, configuration.precision) {
        (true, _) if configuration.data > 1 => StateBytes::Distributed(configuration.data),
        (_, Some(Precision::Fp32)) => StateBytes::Fixed(FULL_PRECISION),
        _ if configuration.gradients_in_16_bits => StateBytes::Fixed(SIXTEEN_BIT_GRADIENTS),
        _ => StateBytes::Fixed(MEGATRON_STATE),
    };
    if configuration.precision == Some(Precision::Fp32) {
        settings.element_bytes = 4;
    }
    if !settings.tensor_degrees.contains(&configuration.tensor) {
        settings.tensor_degrees.push(configuration.tensor);
        settings.tensor_degrees.sort_unstable();
    }
    settings.limits.devices = configuration.devices();
    settings.limits.microbatches = configuration.microbatches;
    generate(model, hardware, &settings, command_line)
}

/// The same with the times and memory of real training.
fn trained(
    configuration: &Configuration,
    model: &ModelConfig,
    accelerator: Accelerator,
    command_line: &str,
) -> Result<String, GenerateError> {
    let mut profile = TrainingProfile::new(Model::from(model), accelerator);
    if let Some(length) = configuration.sequence_length {
        profile.sequence = length.into();
    }
    profile.settings.sequence_parallel = configuration.sequence_parallel;
    profile.settings.tp_overlap = configuration.tensor_overlap && configuration.sequence_parallel;
    profile.settings.gradient_bytes = if configuration.gradients_in_16_bits { 2 } else { 4 };
    if configuration.keeps_attention_scores {
        profile.settings.attention = AttentionKernel::Unfused;
    }
    let own = configuration.tensor;
    let usual = [1, 2, 4, 8].into_iter().filter(|&degree| model.refuses_degree(degree).is_none());
    let degrees: BTreeSet<u32> = usual.chain([own]).collect();
    let usual = TrainedSettings::usual(&profile);
    let settings = TrainedSettings {
        micro_batch: configuration.micro_batch,
        tensor_degrees: Some(degrees.into_iter().collect()),
        optimizer_shards: if configuration.distributed_optimizer { configuration.data.max(1) } else { 1 },
        limits: Limits { devices: configuration.devices(), microbatches: configuration.microbatches, ..usual.limits },
    };
    super::trained(&profile, &settings, command_line)
}

/// What the configuration tells of how the network is run, for exports of a plan over another workload.
pub fn recipe(configuration: &Configuration) -> Recipe {
    Recipe {
        micro_batch: Some(configuration.micro_batch),
        sequence_length: configuration.sequence_length,
        precision: configuration.precision,
        sequence_parallel: Some(configuration.sequence_parallel),
        optimizer_shards: configuration.distributed_optimizer.then_some(configuration.data),
        ..Recipe::default()
    }
}

/// Whether a workload is one that such a plan can be over.
pub fn suits(workload: &Workload) -> bool {
    !family::of(workload).tensor_degrees().is_empty()
}

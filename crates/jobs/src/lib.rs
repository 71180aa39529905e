//! Import of a job from an engine's own configuration: the model, its split, and its settings.
//!
//! [`read`] accepts these files:
//!
//! * Megatron-LM's arguments: a shell script, or the dump at the top of a log;
//! * torchtitan's job: TOML, flags or a Python registry;
//! * DeepSpeed's configuration: JSON, or a Python file with a pipeline module;
//! * the parallelism settings of Hugging Face's `TrainingArguments` or accelerate;
//! * Galvatron's strategy.
//!
//! Files are not executed: `facts` lists their names and values, and [`JobConfiguration`] is their meaning. [`plan`] is
//! the plan over a workload. [`workload`] makes a workload if the file states the model's sizes. A file written by
//! `export` gives the same plan again. Linear in the text.
//!
//! Sources: Megatron-LM's `arguments.py` (core 0.20), torchtitan 0.3's `JobConfig`, DeepSpeed 0.19's configuration
//! JSON, transformers' `TrainingArguments`, accelerate's `MegatronLMPlugin`, Galvatron 2.4.1's strategy JSON.

#![forbid(unsafe_code)]

mod configuration;
pub(crate) mod facts;
mod model;
mod plan;
mod reader;
mod stages;

use std::collections::BTreeSet;

use plantui_core::{
    cluster::{Limits, hardware::Hardware},
    family,
    source::LoadError,
    workload::{
        Recipe, TrainingProfile, Workload,
        recipe::Precision,
        training::{self, Accelerator, AttentionKernel, Model},
    },
};
use plantui_study::generate::{
    self, GenerateError, GenerateSettings, ModelConfig, StateBytes, TrainedSettings, generate,
};

pub use configuration::{JobConfiguration, JobFormat, PipelineSplit, RecomputedLayers, read};
pub use plan::plan;

/// Bytes of state with gradients in 16 bits: weights, gradients, and 32-bit weights and moments.
const SIXTEEN_BIT_GRADIENTS: f64 = 16.0;
/// The same plus gradients in 32 bits.
const MEGATRON_STATE: f64 = 18.0;
/// Weights, gradients and two moments, all in 32 bits.
const FULL_PRECISION: f64 = 16.0;

/// Text of a workload for the configuration's model and settings on this hardware.
///
/// # Errors
/// [`GenerateError`] if the file does not state the model, or a size does not suit.
pub fn workload(
    configuration: &JobConfiguration,
    hardware: &Hardware,
    source: &str,
    command_line: &str,
) -> Result<String, GenerateError> {
    let Some(model) = &configuration.model else {
        let repair = "give the model with --model, or a workload of it with --for";
        let problem = format!("does not state the model's sizes, unlike {}", configuration.engine.with_sizes());
        return Err(LoadError::file(source, problem, repair).into());
    };
    // Times of real training, if the hardware has training constants and the precision is 16 bits.
    if configuration.precision != Some(Precision::Fp32)
        && let Some(accelerator) = training::hardware::find(hardware.id)
    {
        return trained(configuration, model, accelerator, command_line);
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
    configuration: &JobConfiguration,
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
    generate::trained(&profile, &settings, command_line)
}

/// Recipe of the configuration, for exports of a plan over another workload.
pub fn recipe(configuration: &JobConfiguration) -> Recipe {
    Recipe {
        micro_batch: Some(configuration.micro_batch),
        sequence_length: configuration.sequence_length,
        precision: configuration.precision,
        sequence_parallel: Some(configuration.sequence_parallel),
        optimizer_shards: configuration.distributed_optimizer.then_some(configuration.data),
        ..Recipe::default()
    }
}

/// True if a workload supports such plans.
pub fn suits(workload: &Workload) -> bool {
    !family::of(workload).tensor_degrees().is_empty()
}

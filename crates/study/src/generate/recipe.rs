//! Recipe of a generated workload: the facts of its settings and model that training engines need.

use super::{GenerateSettings, ModelConfig, StateBytes, operators::OperatorSettings};
use plantui_core::{
    cluster::hardware::Hardware,
    workload::{
        recipe::{ModelShape, Precision, Recipe},
        training::Model,
    },
};

/// Hardware whose 16-bit matrix units do not support bf16.
const WITHOUT_BF16: &str = "v100";

/// Recipe of a profile by tensor degree.
pub(super) fn of(model: &ModelConfig, hardware: &Hardware, settings: &GenerateSettings) -> Recipe {
    Recipe {
        sequence_parallel: Some(settings.sequence_parallel),
        ..recipe(
            model,
            (settings.micro_batch, settings.sequence_length),
            precision(hardware, settings.element_bytes),
            settings.keep_attention_scores,
            settings.state,
        )
    }
}

/// Recipe of a transformer's operators.
pub(super) fn of_operators(model: &ModelConfig, hardware: &Hardware, settings: &OperatorSettings) -> Recipe {
    recipe(
        model,
        (settings.micro_batch, settings.sequence_length),
        precision(hardware, settings.element_bytes),
        settings.keep_attention_scores,
        settings.state,
    )
}

fn recipe(
    model: &ModelConfig,
    (micro_batch, sequence_length): (u64, u64),
    precision: Option<Precision>,
    keeps_attention_scores: bool,
    state: StateBytes,
) -> Recipe {
    Recipe {
        micro_batch: u32::try_from(micro_batch).ok(),
        sequence_length: u32::try_from(sequence_length).ok(),
        precision,
        sequence_parallel: None,
        tensor_overlap: None,
        keeps_attention_scores: Some(keeps_attention_scores),
        state_bytes_per_parameter: Some(state.per_parameter()),
        optimizer_shards: match state {
            StateBytes::Distributed(replicas) => Some(replicas.max(1)),
            StateBytes::Fixed(_) => None,
        },
        model: ModelShape::of(&Model::from(model)),
    }
}

/// Precision of elements of this many bytes; `None` for 8 bits, which have several formats.
fn precision(hardware: &Hardware, element_bytes: u32) -> Option<Precision> {
    match element_bytes {
        2 if hardware.id == WITHOUT_BF16 => Some(Precision::Fp16),
        2 => Some(Precision::Bf16),
        4 => Some(Precision::Fp32),
        _ => None,
    }
}

//! Workload from a model configuration and a hardware preset, by one of two cost models.
//!
//! [`trained`] takes times and memory from the model of real training, which published runs confirm. [`generate`] takes
//! a [`ModelConfig`] (a [`preset`], or a Hugging Face `config.json` through [`from_hugging_face`]), a [`Hardware`]
//! preset and [`GenerateSettings`]. It returns the text of a Piper workload whose fields state how it was made and the
//! assumptions. The formulas are in `cost.rs` with their sources. `O(layers · degrees)` time and memory. Equal
//! arguments give equal bytes, so a file can be reproduced from its `provenance`.
//!
//! [`generate`] counts elements in `parameterSize`, as the published profiles do: the planner's `4(d − 1)/d` of it is
//! then the volume of a ring all-reduce of 2-byte gradients.

mod assumptions;
mod cost;
pub mod galvatron;
pub mod networks;
pub mod operators;
mod recipe;
mod settings;
mod sketch;
mod tiny;
mod trained;

use thiserror::Error;

use plantui_core::{cluster::hardware::Hardware, source::LoadError};

pub use operators::BRANCHING_CNN;
pub use plantui_core::workload::model::{Biases, Head, Mlp, ModelConfig, Norm, from_hugging_face, preset, presets};
pub use settings::{
    ActivationBytes, GenerateSettings, PUBLISHED_ACTIVATION, StateBytes, TENSOR_OVERHEAD, TensorOverhead, WorkingSet,
};
pub use trained::{TrainedSettings, trained};

/// Name of the generated hand-made example.
pub const TINY_BRANCH: &str = "tiny-branch";

/// Reason why no workload could be generated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GenerateError {
    /// The model's configuration is refused.
    #[error(transparent)]
    Config(#[from] LoadError),
    /// A setting does not suit the model or another setting.
    #[error("{flag}: {problem}")]
    Setting {
        /// Flag that gives the setting.
        flag: &'static str,
        /// Problem and repair.
        problem: String,
    },
}

/// Text of a Piper workload for `model` on `hardware`. `command_line` becomes its `provenance`: the command that
/// reproduces the file.
///
/// # Errors
/// [`GenerateError::Setting`] if a setting does not suit the model.
pub fn generate(
    model: &ModelConfig,
    hardware: &Hardware,
    settings: &GenerateSettings,
    command_line: &str,
) -> Result<String, GenerateError> {
    settings.validate(model)?;
    let costs = cost::CostModel { model, hardware, settings };
    let mut limits = settings.limits.clone();
    if settings.working_set == WorkingSet::OneLayer {
        let live = costs.layer_activation_bytes(1).round();
        limits.memory_bytes = limits.memory_bytes.map(|bytes| bytes - live);
        if limits.memory_limit() < 1.0 {
            return Err(GenerateError::Setting {
                flag: "--working-set",
                problem: format!(
                    "recomputing one layer needs {}, more than a device has; take a smaller micro-batch or sequence",
                    plantui_core::units::bytes(live)
                ),
            });
        }
    }
    let (nodes, edges) = sketch::transformer(&costs);
    let assumptions = assumptions::sentences(&costs);
    let recipe = Some(recipe::of(model, hardware, settings));
    Ok(sketch::Sketch { nodes, edges, limits, provenance: command_line.into(), assumptions, recipe, gathered: None }
        .text())
}

/// Text of a workload of six nodes with a branch, in round numbers.
pub fn tiny_branch(command_line: &str) -> String {
    tiny::sketch(command_line).text()
}

/// True if a model is inferred from the published BERT profile; the profile's settings are then the defaults.
pub fn follows_published_profile(model: &ModelConfig) -> bool {
    ["bert-32", "bert-96"].iter().any(|name| preset(name).as_ref() == Some(model))
}

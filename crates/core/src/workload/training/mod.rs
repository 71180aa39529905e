//! Profile of real training: a model and its training settings, not a table of times.
//!
//! A [`Model`] (read from a Hugging Face `config.json`, a preset or a [published] name) runs on [`Accelerator`]s with
//! the [`TrainingSettings`] of a training engine. [`crate::family::training`] derives its costs for every degree,
//! micro-batch size and precision.

pub mod adapter;
mod bounds;
mod config;
pub mod constants;
pub mod expert_settings;
pub mod hardware;
pub mod mixer;
pub(crate) mod model;
mod profile;
pub mod published;
pub mod recompute;
pub mod run;
pub mod settings;

pub use adapter::Adapter;
pub use config::{from_hugging_face, read_like};
pub use constants::Constants;
pub use expert_settings::{Dispatcher, ExpertOverlap, Imbalance, Release};
pub use hardware::Accelerator;
pub use mixer::Mixer;
pub use model::{Attention, Details, Ends, Experts, FeedForward, LayerKind, Model, Projection, Span};
pub use profile::TrainingProfile;
pub use run::{
    AttentionKernel, ContextStyle, Layout, Modules, Recompute, Stack, TrainingPrecision, TrainingRun, TrainingSettings,
    ZeroBubble,
};

//! Transformers by their sizes: presets, and Hugging Face's `config.json` of dense models.
//!
//! Generated workloads and training costs are derived from them.

mod config;
pub(crate) mod hugging_face;
mod presets;

pub use config::{Biases, Head, Mlp, ModelConfig, Norm};
pub use hugging_face::from_hugging_face;
pub use presets::{preset, presets};

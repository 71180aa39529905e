//! Transformers by their sizes: presets, and Hugging Face's `config.json` of dense models.
//!
//! What workloads are generated from, and what training costs are derived from.

mod config;
pub(crate) mod hugging_face;
mod presets;

pub use config::{Biases, Head, Mlp, ModelConfig, Norm};
pub use hugging_face::from_hugging_face;
pub use presets::{preset, presets};

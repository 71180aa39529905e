//! Workload to plan: a profiled neural network as a graph of operators or layers.
//!
//! A [`Workload`] keeps exactly what its file says. The file's format determines its [`Profile`]. A conversion between
//! profiles is always an explicit function that states its assumptions. Loading validates everything once ([`load`],
//! [`formats`]), so planners never see a cycle, a NaN or an unknown id.
//!
//! Units: bytes and seconds as `f64`, exactly as in the files.

mod choice;
mod colour;
pub mod convert;
mod fingerprint;
pub mod formats;
pub(crate) mod layer_profile;
pub mod layering;
pub mod lint;
pub mod mixed;
pub mod model;
mod model_shape;
mod node;
mod node_index;
pub mod operators;
pub mod piper;
pub mod placement;
mod profiled;
pub mod recipe;
pub mod sailor;
pub mod states;
pub mod training;

pub use crate::source::LoadError;
pub use choice::Choice;
pub use formats::{WorkloadFormat, load, load_bytes, load_reader};
pub use layer_profile::{Batch, LayerNode, LayerProfile};
pub use mixed::MixedProfile;
pub use node::{Node, NodeId};
pub use node_index::{NodeIndex, NodeRow};
pub use operators::{Operator, OperatorProfile};
pub use piper::{DegreeProfile, Mode, PiperProfile};
pub use placement::{PlacementNode, PlacementProfile};
pub use profiled::{Profile, Provenance, Workload};
pub use recipe::Recipe;
pub use training::TrainingProfile;

/// Source of the built-in workload.
pub const BUILTIN: &str = "built-in";

/// Workload that the program starts with: BERT-32 on A100s, made by `plantui generate`.
///
/// # Panics
/// Never: the file is compiled in, and tests load it.
pub fn builtin() -> Workload {
    let bytes = include_bytes!("builtin.json");
    load_bytes(bytes, BUILTIN, "bert32a100").expect("the built-in workload is valid")
}

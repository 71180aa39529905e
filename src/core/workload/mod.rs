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
pub mod model;
mod model_shape;
mod node_index;
pub mod operators;
pub mod piper;
pub mod placement;
pub mod recipe;
pub mod states;
pub mod training;

use std::fmt;

use rustc_hash::FxHashMap;

use crate::{cluster::GivenLimits, graph::Dag};

pub use crate::source::LoadError;
pub use choice::Choice;
pub use formats::{Format, load, load_bytes, load_reader};
pub use layer_profile::{Batch, LayerNode, LayerProfile};
pub use node_index::{NodeIndex, NodeRow};
pub use operators::{Operator, OperatorProfile};
pub use piper::{DegreeProfile, Mode, PiperProfile};
pub use placement::{PlacementNode, PlacementProfile};
pub use recipe::Recipe;
pub use training::TrainingProfile;

/// Id of a node as written in its file. Its position in the workload is its [`NodeIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub i64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Vertex of the workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Id in the file.
    pub id: NodeId,
    /// Name in the file, stripped of control characters.
    pub name: Option<String>,
}

impl Node {
    /// Name, or the id if there is no name.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("node {}", self.id))
    }

    /// Name after the id, which distinguishes nodes of one name: `#3 Embedding`.
    pub fn numbered(&self) -> String {
        self.name.as_ref().map_or_else(|| self.label(), |name| format!("#{} {name}", self.id))
    }
}

/// Costs of all nodes, by the format of the workload's file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Profile {
    /// Times and memory by tensor-parallel degree and mode (Piper).
    Piper(PiperProfile),
    /// Times on accelerators and CPUs, sizes and transfers (device placement).
    Placement(PlacementProfile),
    /// Operators with iteration spaces (PaSE).
    Operators(OperatorProfile),
    /// Forward and backward times, activations and parameters of layers (PipeDream, DAPPLE).
    Layers(LayerProfile),
    /// A model and its training settings.
    Training(Box<TrainingProfile>),
}

/// Origin of a generated workload, as its file states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// Command that made it.
    pub made_by: String,
    /// Assumptions of that command, a sentence each.
    pub assumptions: Vec<String>,
}

/// A validated workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Short name: the file's stem.
    pub name: String,
    /// Source as shown in messages: a path, `-` or `built-in`.
    pub source: String,
    /// Format of the source.
    pub format: Format,
    /// Nodes in file order.
    pub nodes: Vec<Node>,
    /// Edges in file order. A vertex is the position of a node; [`Workload::edges`] gives both ends as nodes.
    pub dag: Dag,
    /// Costs.
    pub profile: Profile,
    /// Limits from the file.
    pub limits: GivenLimits,
    /// Origin of a generated workload, if the file states it.
    pub provenance: Option<Provenance>,
    /// Build and run settings of the network, if the file states them.
    pub recipe: Option<Recipe>,
    /// JSON paths of fields that no reader of this format supports; kept only for display.
    pub unknown_fields: Vec<String>,
}

/// Source of the built-in workload.
pub const BUILTIN: &str = "built-in";

/// Workload that the program starts with: BERT-32 on A100s, made by `plantui generate`.
///
/// # Panics
/// Never: the file is compiled in, and tests load it.
pub fn builtin() -> Workload {
    let bytes = include_bytes!("../../../inputs/bert32a100.json");
    load_bytes(bytes, BUILTIN, "bert32a100").expect("the built-in workload is valid")
}

impl Workload {
    /// Piper profile, if the workload has one.
    pub fn piper(&self) -> Option<&PiperProfile> {
        match &self.profile {
            Profile::Piper(profile) => Some(profile),
            _ => None,
        }
    }

    /// Device-placement profile, if the workload has one.
    pub fn placement(&self) -> Option<&PlacementProfile> {
        match &self.profile {
            Profile::Placement(profile) => Some(profile),
            _ => None,
        }
    }

    /// Layer-wise profile, if the workload has one.
    pub fn layers(&self) -> Option<&LayerProfile> {
        match &self.profile {
            Profile::Layers(profile) => Some(profile),
            _ => None,
        }
    }

    /// Operator graph, if the workload has one.
    pub fn operators(&self) -> Option<&OperatorProfile> {
        match &self.profile {
            Profile::Operators(profile) => Some(profile),
            _ => None,
        }
    }

    /// Model to train, if the workload has one.
    pub fn training(&self) -> Option<&TrainingProfile> {
        match &self.profile {
            Profile::Training(profile) => Some(profile),
            _ => None,
        }
    }

    /// Node with this id. `O(nodes)`.
    pub fn index_of(&self, id: NodeId) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| node.id == id).map(NodeIndex::new)
    }

    /// All nodes, by their ids.
    pub(crate) fn by_id(&self) -> FxHashMap<NodeId, NodeIndex> {
        self.nodes.iter().enumerate().map(|(at, node)| (node.id, NodeIndex::new(at))).collect()
    }

    /// Number of parameters at tensor degree 1; 0 if the profile does not state it. Piper's files give it as
    /// `parameterSize`. If the recipe gives the bytes of state per parameter, the number follows from those. In such
    /// files, `parameterSize` is set so that the bytes that replicas exchange are right.
    pub fn parameters(&self) -> f64 {
        match &self.profile {
            Profile::Piper(profile) => {
                let kept = self.recipe.as_ref().and_then(|recipe| recipe.state_bytes_per_parameter);
                let whole = profile.nodes.iter().filter_map(|node| node.degrees.first()).map(|degree| &degree.modes[0]);
                match kept.filter(|&bytes| bytes > 0.0) {
                    Some(bytes) => whole.map(|mode| mode.memory_b).sum::<f64>() / bytes,
                    None => whole.map(|mode| mode.parameters).sum(),
                }
            }
            Profile::Operators(profile) => profile.operators.iter().map(Operator::parameters).sum(),
            Profile::Training(profile) => profile.model.parameters() as f64,
            // Layer profiles give bytes, but not the bytes of one parameter.
            Profile::Layers(_) | Profile::Placement(_) => 0.0,
        }
    }
}

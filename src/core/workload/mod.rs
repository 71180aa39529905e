//! What is planned: a profiled neural network as a graph of operators or layers.
//!
//! A [`Workload`] keeps exactly what its file says. The file's format decides which [`Profile`] it carries; turning one
//! profile into another is always an explicit function that says what it assumes. Loading validates everything once
//! ([`load`], [`formats`]), so that planners never meet a cycle, a NaN or an unknown id.
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

/// A node's id as written in its file; where the node stands in the workload is its [`NodeIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub i64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One vertex of the workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Id in the file.
    pub id: NodeId,
    /// Name in the file, stripped of control characters.
    pub name: Option<String>,
}

impl Node {
    /// The name, or the id where there is none.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("node {}", self.id))
    }

    /// The name after the id, which alone tells nodes of one name apart: `#3 Embedding`.
    pub fn numbered(&self) -> String {
        self.name.as_ref().map_or_else(|| self.label(), |name| format!("#{} {name}", self.id))
    }
}

/// What is known of every node's cost, by the format the workload came in.
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
    /// A model and how it is trained.
    Training(Box<TrainingProfile>),
}

/// How a generated workload says it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The command that made it.
    pub made_by: String,
    /// What that command assumed, a sentence each.
    pub assumptions: Vec<String>,
}

/// A validated workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Short name: the file's stem.
    pub name: String,
    /// Where it came from, as shown in messages: a path, `-` or `built-in`.
    pub source: String,
    /// The format it was read from.
    pub format: Format,
    /// Nodes in file order.
    pub nodes: Vec<Node>,
    /// Edges in file order; a vertex is the position of a node, and [`Workload::edges`] gives both ends as nodes.
    pub dag: Dag,
    /// Costs.
    pub profile: Profile,
    /// Limits the file states.
    pub limits: GivenLimits,
    /// How the file says it was made, if it says so.
    pub provenance: Option<Provenance>,
    /// How the network is built and run, if the file says so.
    pub recipe: Option<Recipe>,
    /// Fields that no reader of this format knows, by JSON path; kept only to be shown.
    pub unknown_fields: Vec<String>,
}

/// Where the built-in workload says it came from.
pub const BUILTIN: &str = "built-in";

/// The workload the program starts with: BERT-32 on A100s, made by `plantui generate`.
///
/// # Panics
/// Never: the file is compiled in, and tests load it.
pub fn builtin() -> Workload {
    let bytes = include_bytes!("../../../inputs/bert32a100.json");
    load_bytes(bytes, BUILTIN, "bert32a100").expect("the built-in workload is valid")
}

impl Workload {
    /// The Piper profile, if that is what the workload carries.
    pub fn piper(&self) -> Option<&PiperProfile> {
        match &self.profile {
            Profile::Piper(profile) => Some(profile),
            _ => None,
        }
    }

    /// The device-placement profile, if that is what the workload carries.
    pub fn placement(&self) -> Option<&PlacementProfile> {
        match &self.profile {
            Profile::Placement(profile) => Some(profile),
            _ => None,
        }
    }

    /// The layer-wise profile, if that is what the workload carries.
    pub fn layers(&self) -> Option<&LayerProfile> {
        match &self.profile {
            Profile::Layers(profile) => Some(profile),
            _ => None,
        }
    }

    /// The operator graph, if that is what the workload carries.
    pub fn operators(&self) -> Option<&OperatorProfile> {
        match &self.profile {
            Profile::Operators(profile) => Some(profile),
            _ => None,
        }
    }

    /// The model to be trained, if that is what the workload carries.
    pub fn training(&self) -> Option<&TrainingProfile> {
        match &self.profile {
            Profile::Training(profile) => Some(profile),
            _ => None,
        }
    }

    /// The node with this id. `O(nodes)`.
    pub fn index_of(&self, id: NodeId) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| node.id == id).map(NodeIndex::new)
    }

    /// All nodes by their ids.
    pub(crate) fn by_id(&self) -> FxHashMap<NodeId, NodeIndex> {
        self.nodes.iter().enumerate().map(|(at, node)| (node.id, NodeIndex::new(at))).collect()
    }

    /// Parameters at tensor degree 1, in elements; 0 where the profile does not tell. Piper's files count them as
    /// `parameterSize`, but for those whose recipe says how many bytes are kept for one: there `parameterSize` is what
    /// makes the bytes that replicas exchange come out.
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
            // Layer profiles tell bytes, and not of how many each is made.
            Profile::Layers(_) | Profile::Placement(_) => 0.0,
        }
    }
}

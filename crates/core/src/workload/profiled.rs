//! The workload itself: nodes, edges, costs, limits and origin.

use rustc_hash::FxHashMap;

use super::{
    formats::format::WorkloadFormat,
    layer_profile::LayerProfile,
    mixed::MixedProfile,
    node::{Node, NodeId},
    node_index::NodeIndex,
    operators::{Operator, OperatorProfile},
    piper::PiperProfile,
    placement::PlacementProfile,
    recipe::Recipe,
    training::TrainingProfile,
};
use crate::{cluster::GivenLimits, graph::Dag};

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
    /// Costs of a chain of layers on several kinds of devices (Sailor).
    Mixed(Box<MixedProfile>),
}

/// Origin of a generated workload, as its file states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// Command that made it.
    pub made_by: String,
    /// Assumptions of that command, a sentence each.
    pub assumptions: Vec<String>,
}

/// A validated workload: the nodes of a network, its edges, and their costs.
///
/// ```
/// use plantui_core::{family, workload};
///
/// let bert = workload::builtin();
/// assert_eq!((bert.nodes.len(), bert.dag.edges().len()), (37, 67));
/// assert_eq!(family::of(&bert).size(&bert), ["37 layers", "67 edges"]);
///
/// let text = r#"{"maxFPGAs": 2, "maxCPUs": 0, "maxSizePerFPGA": 8, "edges": [],
///     "nodes": [{"id": 0, "supportedOnFpga": 1, "cpuLatency": 1, "fpgaLatency": 1, "size": 4, "isBackwardNode": 0}]}"#;
/// let placement = workload::load_bytes(text.as_bytes(), "example.json", "example")?;
/// assert_eq!(placement.nodes.len(), 1);
/// # Ok::<(), plantui_core::source::LoadError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Short name: the file's stem.
    pub name: String,
    /// Source as shown in messages: a path, `-` or `built-in`.
    pub source: String,
    /// Format of the source.
    pub format: WorkloadFormat,
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

    /// Costs on several kinds of devices, if the workload has them.
    pub fn mixed(&self) -> Option<&MixedProfile> {
        match &self.profile {
            Profile::Mixed(profile) => Some(profile),
            _ => None,
        }
    }

    /// Node at this index. `None` if there is no such node, which a plan that was not checked may name.
    pub fn node(&self, node: NodeIndex) -> Option<&Node> {
        self.nodes.get(node.index())
    }

    /// All nodes, in file order.
    pub fn indices(&self) -> impl DoubleEndedIterator<Item = NodeIndex> + ExactSizeIterator + Clone + use<> {
        NodeIndex::first(self.nodes.len())
    }

    /// Ends of an edge: producer, consumer.
    pub fn edge(&self, edge: usize) -> (NodeIndex, NodeIndex) {
        let (from, to) = self.dag.edges()[edge];
        (from.into(), to.into())
    }

    /// Ends of all edges, in file order.
    pub fn edges(&self) -> impl ExactSizeIterator<Item = (NodeIndex, NodeIndex)> + '_ {
        self.dag.edges().iter().map(|&(from, to)| (from.into(), to.into()))
    }

    /// All nodes in a breadth-first topological order.
    pub fn topological_order(&self) -> impl DoubleEndedIterator<Item = NodeIndex> + '_ {
        self.dag.topological_order().iter().map(|&node| node.into())
    }

    /// Nodes that read this one's output, one entry per edge.
    pub fn successors(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.dag.successors(node.index()).map(NodeIndex::new)
    }

    /// Nodes that this one reads from, one entry per edge.
    pub fn predecessors(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.dag.predecessors(node.index()).map(NodeIndex::new)
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
            Profile::Mixed(profile) => profile.parameters().unwrap_or(0.0),
        }
    }
}

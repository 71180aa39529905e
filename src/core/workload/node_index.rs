//! Where a node stands in its workload: what plans, families and the screen hand each other instead of a bare number.
//!
//! Planners search over plain numbers and convert where a plan leaves them ([`NodeIndex::list`]).

use std::{fmt, ops::Index};

use super::{LayerNode, Node, Operator, PlacementNode, Workload, piper::NodeProfile};

/// The position of a node in [`Workload::nodes`], which is file order; [`super::NodeId`] is its id in the file. What is by
/// node — nodes, the rows of a profile — is indexed by it, what is by place within a stage is not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct NodeIndex(usize);

impl NodeIndex {
    /// The node at this position.
    pub const fn new(index: usize) -> Self {
        NodeIndex(index)
    }

    /// The position as a number, for graphs and for arrays of one's own that are by node.
    pub const fn index(self) -> usize {
        self.0
    }

    /// The first so many nodes, in order.
    pub fn first(count: usize) -> impl DoubleEndedIterator<Item = NodeIndex> + ExactSizeIterator + Clone {
        (0..count).map(NodeIndex)
    }

    /// The nodes at these positions, in the same order.
    pub fn list(indices: impl IntoIterator<Item = usize>) -> Vec<NodeIndex> {
        indices.into_iter().map(NodeIndex).collect()
    }

    /// What there is of each node, with the node.
    pub fn enumerate<R: NodeRow>(rows: &[R]) -> impl DoubleEndedIterator<Item = (NodeIndex, &R)> + ExactSizeIterator {
        rows.iter().enumerate().map(|(index, row)| (NodeIndex(index), row))
    }
}

/// From a vertex of the workload's graph.
impl From<u32> for NodeIndex {
    fn from(vertex: u32) -> Self {
        NodeIndex(vertex as usize)
    }
}

impl fmt::Display for NodeIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number alone: fingerprints are made of it.
impl fmt::Debug for NodeIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What there is one of for each node, in their order.
pub trait NodeRow {}

impl NodeRow for Node {}
impl NodeRow for NodeProfile {}
impl NodeRow for PlacementNode {}
impl NodeRow for LayerNode {}
impl NodeRow for Operator {}

impl<R: NodeRow> Index<NodeIndex> for Vec<R> {
    type Output = R;

    fn index(&self, node: NodeIndex) -> &R {
        &self[node.0]
    }
}

impl Workload {
    /// The node there; a plan that was not checked may name one that is none.
    pub fn node(&self, node: NodeIndex) -> Option<&Node> {
        self.nodes.get(node.0)
    }

    /// All nodes, in file order.
    pub fn indices(&self) -> impl DoubleEndedIterator<Item = NodeIndex> + ExactSizeIterator + Clone + use<> {
        NodeIndex::first(self.nodes.len())
    }

    /// The ends of an edge: the node that produces, the one that reads.
    pub fn edge(&self, edge: usize) -> (NodeIndex, NodeIndex) {
        let (from, to) = self.dag.edges()[edge];
        (from.into(), to.into())
    }

    /// The ends of all edges, in file order.
    pub fn edges(&self) -> impl ExactSizeIterator<Item = (NodeIndex, NodeIndex)> + '_ {
        self.dag.edges().iter().map(|&(from, to)| (from.into(), to.into()))
    }

    /// All nodes in a breadth-first topological order.
    pub fn topological_order(&self) -> impl DoubleEndedIterator<Item = NodeIndex> + '_ {
        self.dag.topological_order().iter().map(|&node| node.into())
    }

    /// The nodes that read what this one produces, an entry for each edge.
    pub fn successors(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.dag.successors(node.0).map(NodeIndex)
    }

    /// The nodes that this one reads from, an entry for each edge.
    pub fn predecessors(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.dag.predecessors(node.0).map(NodeIndex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;

    #[test]
    fn nodes_are_found_by_their_position_and_told_as_its_number() {
        let workload = builtin();
        assert_eq!(workload.indices().len(), workload.nodes.len());
        assert!(workload.indices().all(|node| workload.index_of(workload.nodes[node].id) == Some(node)));
        let node = NodeIndex::new(17);
        assert_eq!((node.to_string(), format!("{node:?}"), node.index()), ("17".into(), "17".into(), 17));
        assert_eq!(serde_json::to_string(&[node, NodeIndex::from(3u32)]).unwrap(), "[17,3]");
        assert_eq!(serde_json::from_str::<NodeIndex>("17").unwrap(), node);
    }

    #[test]
    fn edges_lead_from_those_that_produce_to_those_that_read() {
        let workload = builtin();
        for (at, (from, to)) in workload.edges().enumerate() {
            assert_eq!(workload.edge(at), (from, to));
            assert!(workload.successors(from).any(|node| node == to));
            assert!(workload.predecessors(to).any(|node| node == from));
        }
        assert_eq!(workload.topological_order().count(), workload.nodes.len());
    }
}

//! Position of a node in its workload, as a type of its own. Plans, families and the screen use it in place of a
//! number.
//!
//! Planners search over plain numbers and convert them when they build a plan ([`NodeIndex::list`]).

use std::{fmt, ops::Index};

/// Position of a node in [`super::Workload::nodes`], in file order; [`super::NodeId`] is its id in the file. It indexes arrays
/// with one entry per node, such as the rows of a profile. It does not index positions within a stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct NodeIndex(usize);

impl NodeIndex {
    /// Node at this position.
    pub const fn new(index: usize) -> Self {
        NodeIndex(index)
    }

    /// Position as a number, for graphs and other arrays with one entry per node.
    pub const fn index(self) -> usize {
        self.0
    }

    /// First `count` nodes, in order.
    pub fn first(count: usize) -> impl DoubleEndedIterator<Item = NodeIndex> + ExactSizeIterator + Clone {
        (0..count).map(NodeIndex)
    }

    /// Nodes at these positions, in the same order.
    pub fn list(indices: impl IntoIterator<Item = usize>) -> Vec<NodeIndex> {
        indices.into_iter().map(NodeIndex).collect()
    }

    /// Rows with the node of each.
    pub fn enumerate<R: NodeRow>(rows: &[R]) -> impl DoubleEndedIterator<Item = (NodeIndex, &R)> + ExactSizeIterator {
        rows.iter().enumerate().map(|(index, row)| (NodeIndex(index), row))
    }
}

/// Converts a vertex of the workload's graph.
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

/// Prints the number alone: fingerprints are made of this text.
impl fmt::Debug for NodeIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Marks types that arrays hold once per node, in file order.
pub trait NodeRow {}

impl<R: NodeRow> Index<NodeIndex> for Vec<R> {
    type Output = R;

    fn index(&self, node: NodeIndex) -> &R {
        &self[node.0]
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

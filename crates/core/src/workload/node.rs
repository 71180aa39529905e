//! Node of a workload, and its id in the file.

use super::node_index::NodeRow;
use std::fmt;

/// Id of a node as written in its file. Its position in the workload is its [`super::NodeIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

impl NodeRow for Node {}

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

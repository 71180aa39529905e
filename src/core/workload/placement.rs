//! The profile of device placement: for every node its time on an accelerator and on a CPU, its size, and what sending
//! its output over the host link costs (Tarnawski et al., *Efficient Algorithms for Device Placement of DNN Graph
//! Operators*, NeurIPS 2020).
//!
//! Times and transfer costs share one unit, which the files do not name (their authors' are milliseconds); sizes are
//! bytes.

use super::NodeIndex;

/// The choice of a node that runs on an accelerator.
pub const ACCELERATOR: &str = "accelerator";
/// The choice of a node that runs on a CPU.
pub const CPU: &str = "cpu";
/// Seconds in the files' unit of time, taken as milliseconds.
pub const SECONDS: f64 = 1e-3;

/// What one node costs.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementNode {
    /// Time on a CPU.
    pub cpu_time: f64,
    /// Time on an accelerator.
    pub accelerator_time: f64,
    /// Whether an accelerator can run it.
    pub supported: bool,
    /// Whether it belongs to the backward pass.
    pub backward: bool,
    /// Memory on an accelerator, bytes.
    pub size_bytes: f64,
    /// Nodes of one class share a device; `None`: a class of its own.
    pub colour_class: Option<i64>,
    /// The layer it belongs to, where the file says.
    pub layer: Option<i64>,
    /// Time to send its output over the link between accelerator and host, once; 0 without outgoing edges.
    pub transfer: f64,
}

impl PlacementNode {
    /// Time on a CPU, or on an accelerator.
    pub fn compute(&self, on_cpu: bool) -> f64 {
        if on_cpu { self.cpu_time } else { self.accelerator_time }
    }
}

/// The whole profile, by node index.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementProfile {
    /// By node index.
    pub nodes: Vec<PlacementNode>,
    /// Nodes whose outgoing edges state transfers that are not quite the same, ascending; the first edge's counts.
    pub uneven_transfers: Vec<NodeIndex>,
    /// Nodes with edges that the file states more than once, ascending; each counts once.
    pub repeated_edges: Vec<NodeIndex>,
}

impl From<Vec<PlacementNode>> for PlacementProfile {
    fn from(nodes: Vec<PlacementNode>) -> Self {
        PlacementProfile { nodes, uneven_transfers: vec![], repeated_edges: vec![] }
    }
}

//! Profile of device placement: per node its time on an accelerator and on a CPU, its size, and the cost to send its
//! output over the host link. Source: Tarnawski et al., *Efficient Algorithms for Device Placement of DNN Graph
//! Operators*, NeurIPS 2020.
//!
//! Times and transfer costs share one unit, which the files do not name (the authors' files use milliseconds). Sizes
//! are bytes.

use super::node_index::{NodeIndex, NodeRow};

/// Choice of a node that runs on an accelerator.
pub const ACCELERATOR: &str = "accelerator";
/// Choice of a node that runs on a CPU.
pub const CPU: &str = "cpu";
/// Seconds per unit of time of the files, which is assumed to be a millisecond.
pub const SECONDS: f64 = 1e-3;

/// Costs of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementNode {
    /// Time on a CPU.
    pub cpu_time: f64,
    /// Time on an accelerator.
    pub accelerator_time: f64,
    /// True if an accelerator can run it.
    pub supported: bool,
    /// True if it belongs to the backward pass.
    pub backward: bool,
    /// Memory on an accelerator, bytes.
    pub size_bytes: f64,
    /// Nodes of one class share a device. `None`: the node is a class of its own.
    pub colour_class: Option<i64>,
    /// Layer of the node, if the file states it.
    pub layer: Option<i64>,
    /// Time to send its output once over the link between accelerator and host; 0 without outgoing edges.
    pub transfer: f64,
}

impl NodeRow for PlacementNode {}

impl PlacementNode {
    /// Compute time on a CPU or on an accelerator.
    pub fn compute(&self, on_cpu: bool) -> f64 {
        if on_cpu { self.cpu_time } else { self.accelerator_time }
    }
}

/// Kind of accelerators, where they are not all alike.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceleratorKind {
    /// Name, such as `a100`.
    pub id: String,
    /// Number of accelerators.
    pub count: u32,
    /// Speed: a node takes its time on an accelerator divided by it. Transfers take their time on every kind.
    pub speed: f64,
    /// Maximum sum of sizes on one accelerator, bytes.
    pub memory_bytes: f64,
}

/// Whole profile, by node index.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementProfile {
    /// Kinds of accelerators, numbered one after the other; empty if all are alike.
    pub kinds: Vec<AcceleratorKind>,
    /// Costs by node index.
    pub nodes: Vec<PlacementNode>,
    /// Nodes whose outgoing edges state slightly different transfers, ascending. The first edge counts.
    pub uneven_transfers: Vec<NodeIndex>,
    /// Nodes with edges that the file states more than once, ascending. Each edge counts once.
    pub repeated_edges: Vec<NodeIndex>,
}

impl From<Vec<PlacementNode>> for PlacementProfile {
    fn from(nodes: Vec<PlacementNode>) -> Self {
        PlacementProfile { kinds: vec![], nodes, uneven_transfers: vec![], repeated_edges: vec![] }
    }
}

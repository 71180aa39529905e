//! Choices that the nodes of a workload offer a plan: tensor degrees and modes, dimensions to split, and their
//! approximate work and memory.

use crate::workload::{Choice, NodeIndex, Operator, Workload, operators::OperatorEdge};

/// Choices of nodes. The defaults offer none.
pub trait NodeOffers {
    /// All tensor degrees that some node has times for, ascending. Empty if nodes have no times by tensor degree.
    fn tensor_degrees(&self) -> Vec<u32> {
        vec![]
    }

    /// True if a node runs at a tensor degree. Always true if there are no times by tensor degree.
    fn offers_degree(&self, node: NodeIndex, degree: u32) -> bool {
        let _ = (node, degree);
        true
    }

    /// First mode of a node at a tensor degree that recomputes activations, or does not, as requested. If it has no
    /// such mode, its first mode; `None` if it has no times at that degree.
    fn mode_at(&self, node: NodeIndex, degree: u32, recomputes: bool) -> Option<Choice> {
        let _ = (node, degree, recomputes);
        None
    }

    /// True if a node takes no time at a tensor degree, in any of its modes. It may then be on any stage.
    fn takes_no_time(&self, node: NodeIndex, degree: u32) -> bool {
        let _ = (node, degree);
        false
    }

    /// Extends the nodes of the workload, which is of this family, to every tensor degree up to `devices` that any of
    /// them offers. Missing degrees are filled in as if split perfectly. `None` if none is missing.
    fn with_every_degree(&self, workload: &Workload, devices: u32) -> Option<Workload> {
        let _ = (workload, devices);
        None
    }

    /// True if nodes are operators. Each of them then has an [`Self::operator`].
    fn nodes_are_operators(&self) -> bool {
        false
    }

    /// Operator of a node, if nodes have dimensions that can be split.
    fn operator(&self, node: NodeIndex) -> Option<&Operator> {
        let _ = node;
        None
    }

    /// Tensors between operators, by pair.
    fn operator_links(&self) -> Vec<OperatorEdge> {
        vec![]
    }

    /// Approximate work and memory of a node: seconds and bytes. Equal for all nodes if the profile has no times.
    fn work_and_memory(&self, node: NodeIndex) -> (f64, f64) {
        let _ = node;
        (1.0, 1.0)
    }
}

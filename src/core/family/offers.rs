//! What the nodes of a workload offer a plan: tensor degrees and modes, dimensions to split, and about how much work and
//! memory they bring to a stage.

use crate::workload::{Choice, NodeIndex, Operator, Workload, operators::Link};

/// What nodes offer. Where a family's nodes have nothing of the kind, none is offered.
pub trait Offers {
    /// Every tensor degree that some node has times for, ascending; empty where nodes have no times by tensor degree.
    fn tensor_degrees(&self) -> Vec<u32> {
        vec![]
    }

    /// Whether a node runs at a tensor degree: where there are no times by tensor degree, nothing says that it does not.
    fn offers_degree(&self, node: NodeIndex, degree: u32) -> bool {
        let _ = (node, degree);
        true
    }

    /// The first mode of a node at a tensor degree that computes activations again, or does not, as asked; its first of all
    /// where it has no such mode, `None` where it has no times at that degree.
    fn mode_at(&self, node: NodeIndex, degree: u32, recomputes: bool) -> Option<Choice> {
        let _ = (node, degree, recomputes);
        None
    }

    /// Whether a node takes no time at a tensor degree, in any of its modes: then it may be anywhere.
    fn takes_no_time(&self, node: NodeIndex, degree: u32) -> bool {
        let _ = (node, degree);
        false
    }

    /// The workload, which is of this family, with nodes that offer every tensor degree up to `devices` that any of them
    /// offers, those that they lack as if split perfectly; `None` where none is missing.
    fn with_every_degree(&self, workload: &Workload, devices: u32) -> Option<Workload> {
        let _ = (workload, devices);
        None
    }

    /// Whether nodes are operators: then [`Self::operator`] knows each of them.
    fn nodes_are_operators(&self) -> bool {
        false
    }

    /// The operator that a node is, where nodes have dimensions that can be split.
    fn operator(&self, node: NodeIndex) -> Option<&Operator> {
        let _ = node;
        None
    }

    /// The tensors between such operators, by pair.
    fn operator_links(&self) -> Vec<Link> {
        vec![]
    }

    /// About how much a node brings to a stage: seconds and bytes; the same of all nodes where the profile has no times.
    fn work_and_memory(&self, node: NodeIndex) -> (f64, f64) {
        let _ = node;
        (1.0, 1.0)
    }
}

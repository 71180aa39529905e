//! Choices of operators: dimensions to split.

use crate::{
    family::offers::NodeOffers,
    workload::{NodeIndex, Operator, OperatorProfile, operators::OperatorEdge},
};

impl NodeOffers for OperatorProfile {
    fn nodes_are_operators(&self) -> bool {
        true
    }

    fn operator(&self, node: NodeIndex) -> Option<&Operator> {
        self.operators.get(node.index())
    }

    fn operator_links(&self) -> Vec<OperatorEdge> {
        self.links()
    }
}

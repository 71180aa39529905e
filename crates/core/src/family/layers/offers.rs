//! Choices of layers with forward and backward times: they are not split.

use crate::{
    family::offers::NodeOffers,
    workload::{LayerProfile, NodeIndex},
};

impl NodeOffers for LayerProfile {
    fn work_and_memory(&self, node: NodeIndex) -> (f64, f64) {
        let cost = &self.nodes[node];
        (cost.seconds(), cost.parameter_bytes + cost.activation())
    }
}

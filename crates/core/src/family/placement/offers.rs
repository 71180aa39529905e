//! Choices of nodes in a device placement: they are not split, and run on either kind of device.

use crate::{
    family::offers::NodeOffers,
    workload::{NodeIndex, PlacementProfile},
};

impl NodeOffers for PlacementProfile {
    fn work_and_memory(&self, node: NodeIndex) -> (f64, f64) {
        (self.nodes[node].accelerator_time, self.nodes[node].size_bytes)
    }
}

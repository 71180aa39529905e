//! Topology with the file that it came from.

use std::sync::Arc;

use super::graph::Topology;

/// Topology that plans run on.
#[derive(Debug, Clone)]
pub struct PlanTopology {
    /// The topology.
    pub topology: Arc<Topology>,
    /// File that it was read from, as the user wrote it. `None` for a preset, whose name identifies it.
    pub file: Option<String>,
}

impl PartialEq for PlanTopology {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file && (Arc::ptr_eq(&self.topology, &other.topology) || self.topology == other.topology)
    }
}

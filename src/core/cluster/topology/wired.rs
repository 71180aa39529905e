//! A topology with what it is found by again.

use std::sync::Arc;

use super::Topology;

/// A topology that plans run on.
#[derive(Debug, Clone)]
pub struct Wired {
    /// The topology.
    pub topology: Arc<Topology>,
    /// The file it was read from, as it was asked for; `None` for a preset, whose name says it all.
    pub file: Option<String>,
}

impl PartialEq for Wired {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file && (Arc::ptr_eq(&self.topology, &other.topology) || self.topology == other.topology)
    }
}

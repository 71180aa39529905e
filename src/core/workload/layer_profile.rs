//! The layer-wise profile of PipeDream's profiler: for every node its forward and backward time on one batch, the bytes of
//! its output and of its parameters (Narayanan et al., SOSP 2019; the input of DAPPLE, Fan et al., PPoPP 2021).
//!
//! Kept as the file has it: milliseconds and bytes for a whole batch of profiled samples, whose size the file does not
//! tell. What DAPPLE plans over is derived from it in [`super::states`].

use std::fmt;

use super::{
    piper::{DegreeProfile, Mode, NodeProfile, PiperProfile, VANILLA},
    states::Found,
};
use crate::graph::Dag;

/// Seconds in the files' unit of time.
pub(crate) const MILLISECONDS: f64 = 1e-3;

/// What one node costs for one profiled batch.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerNode {
    /// Its id in the file, such as `node7`.
    pub id: String,
    /// Forward time, milliseconds.
    pub forward_ms: f64,
    /// Backward time, milliseconds.
    pub backward_ms: f64,
    /// Bytes of its outputs, one entry for each tensor; most files give one.
    pub activation_bytes: Vec<f64>,
    /// Bytes of its parameters, whatever the batch.
    pub parameter_bytes: f64,
    /// The pipeline stage that the file puts it on.
    pub stage: Option<u32>,
}

impl LayerNode {
    /// Bytes of all its outputs.
    pub fn activation(&self) -> f64 {
        self.activation_bytes.iter().sum()
    }

    /// Forward and backward time, seconds.
    pub fn seconds(&self) -> f64 {
        (self.forward_ms + self.backward_ms) * MILLISECONDS
    }
}

/// The whole profile, by node index.
#[derive(Clone, PartialEq)]
pub struct LayerProfile {
    /// By node index.
    pub nodes: Vec<LayerNode>,
    /// The states that were asked for.
    pub(super) found: Found,
}

/// As the nodes alone: a workload's fingerprint is made of it.
impl fmt::Debug for LayerProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerProfile").field("nodes", &self.nodes).finish()
    }
}

impl LayerProfile {
    /// Of what each node costs, by node index.
    pub fn new(nodes: Vec<LayerNode>) -> Self {
        LayerProfile { nodes, found: Found::default() }
    }

    /// The profile in Piper's terms, to be shown: one mode at tensor degree 1 with times in seconds for the profiled batch;
    /// an edge carries what its source puts out.
    pub fn as_modes(&self, dag: &Dag) -> PiperProfile {
        let node = |(v, cost): (usize, &LayerNode)| {
            let mode = Mode {
                id: VANILLA.into(),
                time_s: cost.seconds(),
                forward_s: Some(cost.forward_ms * MILLISECONDS),
                parameters: cost.parameter_bytes,
                memory_a: cost.activation(),
                memory_b: cost.parameter_bytes,
                sync_in: vec![0.0; dag.in_degree(v)],
                sync_out: vec![0.0; dag.out_degree(v)],
            };
            NodeProfile { degrees: vec![DegreeProfile { degree: 1, modes: vec![mode] }] }
        };
        PiperProfile {
            nodes: self.nodes.iter().enumerate().map(node).collect(),
            edge_bytes: dag.edges().iter().map(|&(u, _)| self.nodes[u as usize].activation()).collect(),
        }
    }
}

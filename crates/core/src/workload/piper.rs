//! Piper's profile: per node and tensor-parallel degree one or more modes (Tarnawski, Narayanan, Phanishayee, NeurIPS
//! 2021). A mode has time, parameters, memory and the bytes to gather its boundary tensors.
//!
//! Units: `time_s` is forward plus backward compute in seconds for one microbatch on `t` devices. Everything that
//! crosses an edge is in bytes per microbatch. Memory is `memory_a · y + memory_b` bytes with `y` microbatches in
//! flight. `parameters` is the file's `parameterSize`; the cost model uses it as bytes.

use super::node_index::NodeRow;

/// Execution mode of a node at one tensor-parallel degree.
#[derive(Debug, Clone, PartialEq)]
pub struct Mode {
    /// Id in the file, such as `vanilla` or `activation recomp`.
    pub id: String,
    /// Forward plus backward compute time, seconds per microbatch.
    pub time_s: f64,
    /// Forward part of `time_s`, if the profile separates it.
    pub forward_s: Option<f64>,
    /// `parameterSize` of the file.
    pub parameters: f64,
    /// Bytes per microbatch in flight.
    pub memory_a: f64,
    /// Bytes that do not depend on microbatches in flight.
    pub memory_b: f64,
    /// Extra bytes on each incoming edge that leaves the stage, in the order of [`crate::graph::Dag::in_edges`].
    /// (`syncTimeFw`, keyed by predecessor.)
    pub sync_in: Vec<f64>,
    /// Extra bytes on each outgoing edge that leaves the stage, in the order of [`crate::graph::Dag::out_edges`].
    /// (`syncTimeBw`, keyed by successor.)
    pub sync_out: Vec<f64>,
}

/// Modes of a node at one tensor-parallel degree; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct DegreeProfile {
    /// Tensor-parallel degree t.
    pub degree: u32,
    /// Modes in file order. Among equal modes the first is preferred.
    pub modes: Vec<Mode>,
}

/// Modes of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeProfile {
    /// Modes by ascending degree. Degrees that the node does not support are absent.
    pub degrees: Vec<DegreeProfile>,
}

impl NodeRow for NodeProfile {}

impl NodeProfile {
    /// Modes at degree `t`, if the node supports it.
    pub fn modes(&self, t: u32) -> Option<&[Mode]> {
        self.degrees.binary_search_by_key(&t, |d| d.degree).ok().map(|i| self.degrees[i].modes.as_slice())
    }
}

/// Whole profile, by node and edge index.
#[derive(Debug, Clone, PartialEq)]
pub struct PiperProfile {
    /// Modes by node index.
    pub nodes: Vec<NodeProfile>,
    /// `communicationCost` by edge index: bytes per microbatch.
    pub edge_bytes: Vec<f64>,
}

/// Published name of the mode that keeps every activation.
pub const VANILLA: &str = "vanilla";
/// Start of the provenance in files of plantui's profiler of PyTorch modules.
pub const PROFILER: &str = "python -m plantui.profile";
/// Published name of the mode that recomputes activations in the backward pass.
pub const RECOMPUTE: &str = "activation recomp";
/// True if a mode with this id recomputes activations, by the naming of the published files.
pub fn recomputes(id: &str) -> bool {
    id.to_ascii_lowercase().contains("recomp")
}

/// Published name of a transformer layer, by which the equal-partition baseline finds layers.
pub const TRANSFORMER_LAYER: &str = "ParallelTransformerLayer";

impl PiperProfile {
    /// Tensor-parallel degrees that at least one node supports, ascending.
    pub fn degrees(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.nodes.iter().flat_map(|n| n.degrees.iter().map(|d| d.degree)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// True if all nodes support a common tensor degree, so that all stages can use one.
    pub fn has_common_degree(&self) -> bool {
        self.degrees().into_iter().any(|t| self.nodes.iter().all(|node| node.modes(t).is_some()))
    }
}

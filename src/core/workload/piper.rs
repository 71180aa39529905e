//! Piper's profile: for every node, by tensor-parallel degree, one or more modes with time, parameters, memory and
//! what its boundary tensors cost to gather (Tarnawski, Narayanan, Phanishayee, NeurIPS 2021).
//!
//! Units: `time_s` is forward plus backward compute in seconds for one microbatch on `t` devices; everything that
//! crosses an edge is bytes per microbatch; memory in use is `memory_a · y + memory_b` bytes with `y` microbatches in
//! flight. `parameters` is what the file calls `parameterSize`: the cost model reads it as bytes.

/// One way to run a node at one tensor-parallel degree.
#[derive(Debug, Clone, PartialEq)]
pub struct Mode {
    /// Id in the file, such as `vanilla` or `activation recomp`.
    pub id: String,
    /// Forward plus backward compute, seconds per microbatch.
    pub time_s: f64,
    /// The forward part of `time_s`, where the profile tells it apart.
    pub forward_s: Option<f64>,
    /// `parameterSize` of the file.
    pub parameters: f64,
    /// Bytes per microbatch in flight.
    pub memory_a: f64,
    /// Bytes whatever is in flight.
    pub memory_b: f64,
    /// Extra bytes on each incoming edge that leaves the stage, in the order of [`crate::graph::Dag::in_edges`].
    /// (`syncTimeFw`, keyed by predecessor.)
    pub sync_in: Vec<f64>,
    /// Extra bytes on each outgoing edge that leaves the stage, in the order of [`crate::graph::Dag::out_edges`].
    /// (`syncTimeBw`, keyed by successor.)
    pub sync_out: Vec<f64>,
}

/// The modes a node offers at one tensor-parallel degree; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct DegreeProfile {
    /// Tensor-parallel degree t.
    pub degree: u32,
    /// Modes in file order: the first is preferred among equals.
    pub modes: Vec<Mode>,
}

/// What one node offers.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeProfile {
    /// By ascending degree; degrees that the node does not support are absent.
    pub degrees: Vec<DegreeProfile>,
}

impl NodeProfile {
    /// The modes at degree `t`, if the node supports it.
    pub fn modes(&self, t: u32) -> Option<&[Mode]> {
        self.degrees.binary_search_by_key(&t, |d| d.degree).ok().map(|i| self.degrees[i].modes.as_slice())
    }
}

/// The whole profile, by node and edge index.
#[derive(Debug, Clone, PartialEq)]
pub struct PiperProfile {
    /// By node index.
    pub nodes: Vec<NodeProfile>,
    /// `communicationCost` by edge index: bytes per microbatch.
    pub edge_bytes: Vec<f64>,
}

/// The published name of the mode that keeps every activation.
pub const VANILLA: &str = "vanilla";
/// What the provenance of a file begins with that our profiler of PyTorch modules wrote.
pub const PROFILER: &str = "python -m plantui.profile";
/// The published name of the mode that recomputes activations in the backward pass.
pub const RECOMPUTE: &str = "activation recomp";
/// Whether a mode of this name recomputes activations, as the published files name them.
pub fn recomputes(id: &str) -> bool {
    id.to_ascii_lowercase().contains("recomp")
}

/// The published name of a transformer layer, by which the equal-partition baseline knows one.
pub const TRANSFORMER_LAYER: &str = "ParallelTransformerLayer";

impl PiperProfile {
    /// Every tensor-parallel degree that some node offers, ascending.
    pub fn degrees(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.nodes.iter().flat_map(|n| n.degrees.iter().map(|d| d.degree)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether all nodes offer some tensor degree, so that one can be that of all stages.
    pub fn has_common_degree(&self) -> bool {
        self.degrees().into_iter().any(|t| self.nodes.iter().all(|node| node.modes(t).is_some()))
    }
}

//! Layer-wise profile of PipeDream's profiler (Narayanan et al., SOSP 2019), the input of DAPPLE (Fan et al., PPoPP
//! 2021). It gives per node the forward and backward time of one batch, and the bytes of its output and of its
//! parameters.
//!
//! Values stay as in the file: milliseconds and bytes for a whole batch of profiled samples. PipeDream's files do not
//! state the batch size; ours state it in a line of their own ([`super::formats::torch_graph`]). Otherwise the sizes of
//! inputs and outputs may show it ([`Batch`]); else the batch counts as one sample. [`super::states`] derives what
//! DAPPLE plans over.

use super::node_index::NodeRow;
use std::fmt;

use super::{
    piper::{DegreeProfile, Mode, NodeProfile, PiperProfile, VANILLA},
    states::StatesCache,
};
use crate::graph::Dag;

/// Seconds per unit of time of the files.
pub(crate) const MILLISECONDS: f64 = 1e-3;

/// Costs of one node for one profiled batch.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerNode {
    /// Id in the file, such as `node7`.
    pub id: String,
    /// Forward time, milliseconds.
    pub forward_ms: f64,
    /// Backward time, milliseconds.
    pub backward_ms: f64,
    /// Bytes of its outputs, one entry per tensor. Most files give one.
    pub activation_bytes: Vec<f64>,
    /// Bytes of its parameters, independent of the batch.
    pub parameter_bytes: f64,
    /// Pipeline stage in the file.
    pub stage: Option<u32>,
}

impl NodeRow for LayerNode {}

impl LayerNode {
    /// Bytes of all outputs.
    pub fn activation(&self) -> f64 {
        self.activation_bytes.iter().sum()
    }

    /// Forward plus backward time, seconds.
    pub fn seconds(&self) -> f64 {
        (self.forward_ms + self.backward_ms) * MILLISECONDS
    }
}

/// Number of samples that were profiled at once, and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    /// Stated by the file or the user.
    Stated(u32),
    /// Number of images, inferred from the sizes of the input and of linear layers' outputs.
    BySizes(u32),
    /// Not known. Holds the rows that each linear layer outputs, if all agree: samples, or samples times tokens per
    /// sample.
    Unknown(Option<u64>),
}

/// Whole profile, by node index.
#[derive(Clone, PartialEq)]
pub struct LayerProfile {
    /// Costs by node index.
    pub nodes: Vec<LayerNode>,
    /// Profiled batch.
    pub batch: Batch,
    /// Cache of the states computed so far.
    pub(super) states_cache: StatesCache,
}

/// Prints nodes and batch only: a workload's fingerprint is made of this text.
impl fmt::Debug for LayerProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_struct("LayerProfile");
        told.field("nodes", &self.nodes);
        if self.samples() > 1 {
            told.field("samples", &self.samples());
        }
        told.finish()
    }
}

/// Bytes per element of an output, as the profiler counts them.
const ELEMENT: f64 = 4.0;
/// Smallest image side that is accepted, pixels.
const LEAST_SIDE: f64 = 8.0;

impl LayerProfile {
    /// Profile with these costs, by node index, and an unknown batch.
    pub fn new(nodes: Vec<LayerNode>) -> Self {
        LayerProfile { nodes, batch: Batch::Unknown(None), states_cache: StatesCache::default() }
    }

    /// Same profile for a batch of `samples`.
    #[must_use]
    pub fn of_batch(self, samples: u32) -> Self {
        LayerProfile { batch: Batch::Stated(samples), ..self }
    }

    /// Same profile, with an unknown batch inferred from sizes. `names` are the names of the nodes.
    #[must_use]
    pub fn of_sizes(self, names: &[impl AsRef<str>]) -> Self {
        let batch = match self.batch {
            Batch::Unknown(_) => self.by_sizes(names),
            told => told,
        };
        LayerProfile { batch, ..self }
    }

    /// Samples in the profiled batch; 1 if unknown.
    pub fn samples(&self) -> u32 {
        match self.batch {
            Batch::Stated(samples) | Batch::BySizes(samples) => samples.max(1),
            Batch::Unknown(_) => 1,
        }
    }

    /// Batch inferred from sizes: the rows of all linear layers, if the input is that many square images of 1 or 3
    /// channels.
    fn by_sizes(&self, names: &[impl AsRef<str>]) -> Batch {
        let Some(rows) = self.rows(names) else { return Batch::Unknown(None) };
        let is_input = |name: &str| name == "Input" || name.starts_with("Input0") || name.starts_with("Input1");
        let inputs = self.nodes.iter().zip(names).filter(|(_, name)| is_input(name.as_ref()));
        let pixels = inputs.map(|(node, _)| node.activation()).sum::<f64>() / ELEMENT / rows as f64;
        let square = |channels: f64| {
            let side = (pixels / channels).sqrt().round();
            side >= LEAST_SIDE && side * side * channels == pixels
        };
        match u32::try_from(rows) {
            Ok(images) if square(3.0) || square(1.0) => Batch::BySizes(images),
            _ => Batch::Unknown(Some(rows)),
        }
    }

    /// Rows that each linear layer outputs: the samples of the batch, or samples times tokens per sample. Computed from
    /// names (`Linear(in_features=4096, out_features=1000)`) and output sizes in elements of 4 bytes. `None` if layers
    /// disagree.
    fn rows(&self, names: &[impl AsRef<str>]) -> Option<u64> {
        let width = |name: &str| -> Option<f64> {
            let digits = name.strip_prefix("Linear(")?.split_once("out_features=")?.1;
            let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<f64>().ok().filter(|width| *width >= 1.0)
        };
        let widths = names.iter().map(|name| width(name.as_ref()));
        let mut rows =
            self.nodes.iter().zip(widths).filter_map(|(node, width)| Some(node.activation() / ELEMENT / width?));
        let first = rows.next().filter(|first| *first >= 1.0 && first.fract() == 0.0)?;
        rows.all(|other| other == first).then_some(first as u64)
    }

    /// Profile in Piper's terms, for display: one mode at tensor degree 1 with times in seconds for the profiled batch.
    /// An edge carries its source's output.
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

//! The layer-wise profile of PipeDream's profiler: for every node its forward and backward time on one batch, the bytes of
//! its output and of its parameters (Narayanan et al., SOSP 2019; the input of DAPPLE, Fan et al., PPoPP 2021).
//!
//! Kept as the file has it: milliseconds and bytes for a whole batch of profiled samples. PipeDream's files do not tell how
//! many those are; ours do in a line of their own ([`super::formats::torch_graph`]). Where nothing tells, the sizes of inputs and
//! outputs may ([`Batch`]); else the batch is taken as one sample. What DAPPLE plans over is derived from it in [`super::states`].

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

/// How many samples were measured at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    /// The file or the user says it.
    Told(u32),
    /// Number of images, inferred from the sizes of the input and of linear layers' outputs.
    BySizes(u32),
    /// Nothing says it; the rows that all linear layers put out, where those are as many: samples, or those times the tokens of
    /// each.
    Unknown(Option<u64>),
}

/// The whole profile, by node index.
#[derive(Clone, PartialEq)]
pub struct LayerProfile {
    /// By node index.
    pub nodes: Vec<LayerNode>,
    /// The batch that was measured.
    pub batch: Batch,
    /// The states that were asked for.
    pub(super) found: Found,
}

/// As the nodes and the batch alone: a workload's fingerprint is made of it.
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

/// Bytes of an output's element, as the profiler counts them.
const ELEMENT: f64 = 4.0;
/// Smallest image side that is accepted.
const LEAST_SIDE: f64 = 8.0;

impl LayerProfile {
    /// Of what each node costs, by node index.
    pub fn new(nodes: Vec<LayerNode>) -> Self {
        LayerProfile { nodes, batch: Batch::Unknown(None), found: Found::default() }
    }

    /// The same of a batch of so many samples.
    #[must_use]
    pub fn of_batch(self, samples: u32) -> Self {
        LayerProfile { batch: Batch::Told(samples), ..self }
    }

    /// The same with the batch that the sizes say, where nobody does; of nodes with these names.
    #[must_use]
    pub fn of_sizes(self, names: &[impl AsRef<str>]) -> Self {
        let batch = match self.batch {
            Batch::Unknown(_) => self.by_sizes(names),
            told => told,
        };
        LayerProfile { batch, ..self }
    }

    /// Samples in the batch that was measured; 1 where that is not known.
    pub fn samples(&self) -> u32 {
        match self.batch {
            Batch::Told(samples) | Batch::BySizes(samples) => samples.max(1),
            Batch::Unknown(_) => 1,
        }
    }

    /// Rows of all linear layers, where the input is as many square images of one channel or three.
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

    /// Rows that all linear layers put out, told by their names (`Linear(in_features=4096, out_features=1000)`) and sizes in
    /// numbers of 4 bytes: the samples of the batch, or those times the tokens of each. `None` where they are not all alike.
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

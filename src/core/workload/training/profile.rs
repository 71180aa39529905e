//! A model with the way it is to be trained, as a workload: a chain of embedding, layers and head.

use super::{Accelerator, Constants, Layout, Model, Precision, Recompute, Run, Stack, TrainingSettings};
use crate::{
    cluster::{GivenLimits, LimitKind},
    graph::Dag,
    workload::{Format, Node, NodeId, NodeIndex, Profile, Workload},
};

/// The longest sequence that is taken where none is given.
const USUAL_SEQUENCE: u64 = 8192;

/// What is trained, on what, with which software.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingProfile {
    /// The model.
    pub model: Model,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// The number format of products.
    pub precision: Precision,
    /// The profile of the settings.
    pub stack: Stack,
    /// What the software does.
    pub settings: TrainingSettings,
    /// What it runs on.
    pub accelerator: Accelerator,
    /// What a run attains of the accelerator's data sheet.
    pub constants: Constants,
    /// What was changed of hardware or constants, and where that comes from, a sentence each.
    pub remarks: Vec<String>,
}

impl TrainingProfile {
    /// A model on an accelerator, everything else as usual.
    pub fn new(model: Model, accelerator: Accelerator) -> Self {
        let stack = Stack::default();
        TrainingProfile {
            sequence: model.longest_sequence.min(USUAL_SEQUENCE),
            model,
            precision: accelerator.usual_precision(),
            stack,
            settings: stack.settings(),
            constants: Constants::shipped(accelerator.generation),
            accelerator,
            remarks: vec![],
        }
    }

    /// Nodes of the workload: the layers, what stands before the first and what stands after the last.
    pub fn nodes(&self) -> usize {
        self.model.layers.len() + 2
    }

    /// The kind of layer that a node is; `None` for the two ends.
    pub fn layer_of(&self, node: NodeIndex) -> Option<usize> {
        node.index().checked_sub(1).filter(|&layer| layer < self.model.layers.len())
    }

    /// One sequence on one device, everything kept: what a node is by itself.
    pub fn alone(&self) -> Run {
        Run {
            layout: Layout::ONE,
            global_batch: 1,
            sequence: self.sequence,
            precision: self.precision,
            recompute: Recompute::None,
            stack: self.stack,
            settings: self.settings,
            layers: vec![],
            zero_bubble: None,
            links: None,
        }
    }

    /// The workload. `source` is how messages call its file.
    pub fn into_workload(self, name: &str, source: &str, format: Format, batch: Option<u32>) -> Workload {
        let count = self.nodes();
        let label = |node: usize| match node {
            0 => "embedding".to_string(),
            node if node + 1 == count => "head".into(),
            node => format!("layer {node}"),
        };
        let nodes = (0..count).map(|node| Node { id: NodeId(node as i64), name: Some(label(node)) }).collect();
        let edges: Vec<(u32, u32)> = (1..count as u32).map(|node| (node - 1, node)).collect();
        let limits = GivenLimits::default()
            .with(LimitKind::Memory, self.accelerator.memory_bytes)
            .maybe(LimitKind::Batch, batch);
        Workload {
            name: name.into(),
            source: source.into(),
            format,
            nodes,
            dag: Dag::new(count, edges).expect("a chain has no cycle"),
            profile: Profile::Training(Box::new(self)),
            limits,
            provenance: None,
            recipe: None,
            unknown_fields: vec![],
        }
    }
}

//! A model with its training settings, as a workload: a chain of embedding, layers and head.

use super::{
    constants::Constants,
    hardware::Accelerator,
    model::Model,
    run::{Layout, Recompute, Stack, TrainingPrecision, TrainingRun, TrainingSettings},
};
use crate::{
    cluster::{GivenLimits, LimitKind},
    graph::Dag,
    workload::{
        formats::format::WorkloadFormat,
        node::{Node, NodeId},
        node_index::NodeIndex,
        profiled::{Profile, Workload},
    },
};

/// Maximum of the default sequence length, tokens.
const USUAL_SEQUENCE: u64 = 8192;

/// Model to train, its hardware and its software.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingProfile {
    /// The model.
    pub model: Model,
    /// Tokens in a sequence.
    pub sequence: u64,
    /// Number format of matrix products.
    pub precision: TrainingPrecision,
    /// Software stack that the settings belong to.
    pub stack: Stack,
    /// Settings of the software.
    pub settings: TrainingSettings,
    /// Accelerator that it runs on.
    pub accelerator: Accelerator,
    /// Fractions of the accelerator's data sheet that a run attains.
    pub constants: Constants,
    /// Changes of hardware or constants, with their source, a sentence each.
    pub remarks: Vec<String>,
}

impl TrainingProfile {
    /// Profile of a model on an accelerator, with default settings.
    pub fn new(model: Model, accelerator: Accelerator) -> Self {
        let stack = Stack::default();
        TrainingProfile {
            sequence: model.longest_sequence.min(USUAL_SEQUENCE),
            model,
            precision: accelerator.usual_precision(),
            stack,
            settings: stack.settings(),
            constants: Constants::shipped(accelerator.generation, stack),
            accelerator,
            remarks: vec![],
        }
    }

    /// Moves the profile to an accelerator and a stack. Shipped constants follow; changed ones stay within a generation.
    pub fn move_to(&mut self, accelerator: Accelerator, stack: Stack) {
        let before = Constants::shipped(self.accelerator.generation, self.stack);
        let mut constants = Constants::shipped(accelerator.generation, stack);
        if accelerator.generation == self.accelerator.generation {
            let changed =
                self.constants.named().into_iter().zip(before.named()).filter(|(own, shipped)| own != shipped);
            for ((name, value), _) in changed {
                if let Some(constant) = constants.by_name(name) {
                    *constant = value;
                }
            }
        }
        (self.accelerator, self.stack, self.constants) = (accelerator, stack, constants);
    }

    /// Number of nodes of the workload: the layers, the embedding and the head.
    pub fn nodes(&self) -> usize {
        self.model.layers.len() + 2
    }

    /// Index of the layer of a node; `None` for the two ends.
    pub fn layer_of(&self, node: NodeIndex) -> Option<usize> {
        node.index().checked_sub(1).filter(|&layer| layer < self.model.layers.len())
    }

    /// Run of one sequence on one device without recomputation: the cost of a node by itself.
    pub fn alone(&self) -> TrainingRun {
        TrainingRun {
            layout: Layout::ONE,
            global_batch: 1,
            sequence: self.sequence,
            precision: self.precision,
            recompute: Recompute::None,
            stack: self.stack,
            settings: self.settings.clone(),
            layers: vec![],
            head_alone: false,
            zero_bubble: None,
            links: None,
        }
    }

    /// Converts the profile to a workload. `source` is its file's name in messages.
    pub fn into_workload(self, name: &str, source: &str, format: WorkloadFormat, batch: Option<u32>) -> Workload {
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

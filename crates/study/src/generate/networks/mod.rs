//! The five networks of PaSE's evaluation as operator graphs, with their sizes as settings.
//!
//! Operators, shapes and their order follow the published program at its defaults; other sizes follow the same rules.
//! `O(operators)`.

mod alexnet;
mod builder;
mod inception3;
mod resnet101;
mod rnnlm;
mod transformer;

use plantui_core::workload::operators::{Operator, OperatorProfile};

/// Network of PaSE's evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaseNetwork {
    /// Path of convolutions and dense layers.
    AlexNet,
    /// 33 residual blocks.
    ResNet101,
    /// Modules of parallel branches.
    Inception3,
    /// Recurrent language model.
    Rnnlm,
    /// Encoder and decoder with attention.
    Transformer,
}

/// Configurable size of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Size {
    /// Samples per batch.
    Batch,
    /// Rows and columns of the image.
    Image,
    /// Classes.
    Classes,
    /// Tokens per sequence.
    SequenceLength,
    /// Tokens in the vocabulary.
    Vocabulary,
    /// Features of a token.
    Hidden,
    /// Layers, counted separately for encoder and decoder.
    Layers,
    /// Attention heads.
    Heads,
    /// Features within a feed-forward layer.
    FeedForward,
}

/// Sizes of a network, which uses those of [`PaseNetwork::sizes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkSizes {
    /// As [`Size::Batch`].
    pub batch: u64,
    /// As [`Size::Image`].
    pub image: u64,
    /// As [`Size::Classes`].
    pub classes: u64,
    /// As [`Size::SequenceLength`].
    pub sequence_length: u64,
    /// As [`Size::Vocabulary`].
    pub vocabulary: u64,
    /// As [`Size::Hidden`].
    pub hidden: u64,
    /// As [`Size::Layers`].
    pub layers: u64,
    /// As [`Size::Heads`].
    pub heads: u64,
    /// As [`Size::FeedForward`].
    pub feed_forward: u64,
}

impl PaseNetwork {
    /// All networks.
    pub const ALL: [PaseNetwork; 5] = [
        PaseNetwork::AlexNet,
        PaseNetwork::ResNet101,
        PaseNetwork::Inception3,
        PaseNetwork::Rnnlm,
        PaseNetwork::Transformer,
    ];

    /// Id for the command line.
    pub fn id(self) -> &'static str {
        match self {
            PaseNetwork::AlexNet => "alexnet",
            PaseNetwork::ResNet101 => "resnet101",
            PaseNetwork::Inception3 => "inception3",
            PaseNetwork::Rnnlm => "rnnlm",
            PaseNetwork::Transformer => "transformer",
        }
    }

    /// Network with this id.
    pub fn find(id: &str) -> Option<PaseNetwork> {
        PaseNetwork::ALL.into_iter().find(|network| network.id() == id)
    }

    /// Fewest elements that a split may leave of a dimension, as published.
    pub fn cutoff(self) -> u32 {
        match self {
            PaseNetwork::AlexNet | PaseNetwork::ResNet101 | PaseNetwork::Inception3 => 4,
            PaseNetwork::Rnnlm | PaseNetwork::Transformer => 1,
        }
    }

    /// Sizes that can be configured.
    pub fn sizes(self) -> &'static [Size] {
        match self {
            PaseNetwork::AlexNet | PaseNetwork::ResNet101 | PaseNetwork::Inception3 => {
                &[Size::Batch, Size::Image, Size::Classes]
            }
            PaseNetwork::Rnnlm => &[Size::Batch, Size::SequenceLength, Size::Vocabulary, Size::Hidden, Size::Layers],
            PaseNetwork::Transformer => &[
                Size::Batch,
                Size::SequenceLength,
                Size::Vocabulary,
                Size::Hidden,
                Size::Layers,
                Size::Heads,
                Size::FeedForward,
            ],
        }
    }

    /// Published sizes.
    pub fn defaults(self) -> NetworkSizes {
        let sizes = NetworkSizes {
            batch: 128,
            image: 227,
            classes: 1000,
            sequence_length: 256,
            vocabulary: 50_000,
            hidden: 512,
            layers: 6,
            heads: 8,
            feed_forward: 2048,
        };
        match self {
            PaseNetwork::AlexNet => NetworkSizes { classes: 1024, ..sizes },
            PaseNetwork::Inception3 => NetworkSizes { image: 299, ..sizes },
            PaseNetwork::Rnnlm => NetworkSizes { vocabulary: 100_000, hidden: 2048, layers: 2, ..sizes },
            PaseNetwork::ResNet101 | PaseNetwork::Transformer => sizes,
        }
    }

    /// Builds the network: names and operators in the published order.
    ///
    /// # Errors
    /// The first operator that the sizes do not fit.
    pub fn build(self, sizes: &NetworkSizes) -> Result<(Vec<String>, OperatorProfile), String> {
        let build = match self {
            PaseNetwork::AlexNet => alexnet::build,
            PaseNetwork::ResNet101 => resnet101::build,
            PaseNetwork::Inception3 => inception3::build,
            PaseNetwork::Rnnlm => rnnlm::build,
            PaseNetwork::Transformer => transformer::build,
        };
        let builder::Builder { operators, names } = build(sizes)?;
        let operators: Vec<Operator> = operators;
        Ok((names, OperatorProfile { operators, cutoff: self.cutoff() }))
    }
}

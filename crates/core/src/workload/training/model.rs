//! A transformer as training needs it: sizes of its layers, which may be of several kinds, and of its two ends.
//!
//! Counts are exact and of elements. [`Model::parameters`] is the number that is published with the weights: it counts
//! a tied output projection once. Nothing here depends on how the model is run. `O(layers)` memory.

use serde::{Deserialize, Serialize};

use super::mixer::Mixer;
use crate::workload::{
    model::{Head, Mlp, ModelConfig, Norm},
    model_shape::NormKind,
};

/// Range of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// The whole sequence.
    Full,
    /// Window of this many tokens before each token.
    Window(u64),
    /// Chunks of this many tokens.
    Chunk(u64),
}

/// Projections around the attention core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// Heads in groups that share keys and values.
    Grouped {
        /// Number of query heads, a.
        heads: u64,
        /// Number of key-value heads, g; 0 if keys and values come from an earlier layer.
        key_value_heads: u64,
        /// Width of a head, d_h.
        head_size: u64,
    },
    /// DeepSeek's multi-head latent attention: keys and values come from a narrow latent state.
    Latent {
        /// Number of heads, a.
        heads: u64,
        /// Width of the queries' latent state; `None` if queries are projected directly.
        query_rank: Option<u64>,
        /// Width of the latent state of keys and values.
        key_value_rank: u64,
        /// Width of the part of a head with a rotary position.
        rope: u64,
        /// Width of the part of a head without a position.
        nope: u64,
        /// Width of a head's value.
        value: u64,
        /// Width of a head in elementwise kernels.
        head_size: u64,
    },
}

/// Experts of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Experts {
    /// Number of experts, E.
    pub count: u64,
    /// Number of experts that process each token.
    pub chosen: u64,
    /// Width of one expert.
    pub width: u64,
    /// Total width of the experts that process every token; 0 if there are none.
    pub shared_width: u64,
    /// True if the experts have a gate.
    pub gated: bool,
    /// Maximum number of expert groups (machines) per token, if the router limits it.
    pub node_limit: Option<u64>,
    /// Width to which tokens are projected before routed experts process them (LatentMoE); `None` for the hidden width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latent: Option<u64>,
}

impl Experts {
    /// Width of a token in the routed experts.
    pub fn token_width(&self, hidden: u64) -> u64 {
        self.latent.unwrap_or(hidden)
    }

    /// Elements of the projections to and from the latent width.
    pub fn projections(&self, hidden: u64) -> u64 {
        self.latent.map_or(0, |latent| 2 * latent * hidden)
    }
}

/// Feed-forward block of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FeedForward {
    /// One block for every token.
    Dense {
        /// Width, f.
        width: u64,
        /// True if it has a gate (three matrices instead of two).
        gated: bool,
    },
    /// Mixture of experts.
    Experts(Experts),
}

/// Kind of layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LayerKind {
    /// Attention; without heads if the layer has none.
    pub attention: Attention,
    /// State space, linear attention or convolution, beside the attention or in place of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixer: Option<Mixer>,
    /// Range of the attention.
    pub span: Span,
    /// True if a token attends only to earlier tokens.
    pub causal: bool,
    /// True if it also attends to an encoder's output.
    pub cross: bool,
    /// Feed-forward block.
    pub feed_forward: FeedForward,
    /// Elements of norms, biases and other vectors.
    pub vectors: u64,
}

/// Matrix from the last hidden state to the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Projection {
    /// No projection.
    None,
    /// The token embedding's matrix.
    Tied,
    /// A separate matrix.
    Own,
}

/// Modules before the first layer and after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// Rows of the token embedding, V; 0 if there is none.
    pub vocabulary: u64,
    /// Width of the token embedding: almost always the hidden width.
    pub token_width: u64,
    /// Rows of learned position embeddings; 0 if positions are computed.
    pub positions: u64,
    /// Elements before the first layer without the token embedding.
    pub before: u64,
    /// Elements after the last layer without the projection.
    pub after: u64,
    /// Output projection.
    pub projection: Projection,
}

/// Facts that engines need beside the sizes. No time and no memory depends on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Details {
    /// Kind of the norms; `None` if engines have no name for it.
    pub norm: Option<NormKind>,
    /// True if queries and keys, or latent states, have norms of their own.
    pub head_norm: bool,
    /// True if the projections of queries, keys and values have biases.
    pub query_key_value_bias: bool,
    /// True if the other matrices have biases.
    pub bias: bool,
    /// True if positions are slopes added to attention scores (ALiBi).
    pub slopes: bool,
}

/// Transformer that can be trained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Name in messages.
    pub name: String,
    /// Source of the sizes.
    pub source: String,
    /// Width of the hidden state, h.
    pub hidden: u64,
    /// Kinds of layers.
    pub kinds: Vec<LayerKind>,
    /// Index of the kind of each layer, in order.
    pub layers: Vec<u16>,
    /// Modules at both ends.
    pub ends: Ends,
    /// Norms, biases and positions, if the source states them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
    /// Number of layers that predict tokens beyond the next (multi-token prediction), each with a projection from two
    /// states. [`Model::parameters`] does not count them.
    pub prediction_layers: u32,
    /// True if it is trained with dropout on the hidden state.
    pub dropout: bool,
    /// Longest sequence that it supports.
    pub longest_sequence: u64,
    /// Caveats for a reader of its results.
    pub remarks: Vec<String>,
}

impl Attention {
    /// Number of query heads.
    pub fn heads(&self) -> u64 {
        match *self {
            Attention::Grouped { heads, .. } | Attention::Latent { heads, .. } => heads,
        }
    }

    /// Number of heads whose keys and values go through the attention core.
    pub fn key_value_heads(&self) -> u64 {
        match *self {
            Attention::Grouped { key_value_heads, .. } => key_value_heads,
            Attention::Latent { heads, .. } => heads,
        }
    }

    /// The attention under tensor degree `t`: ranks that share a key-value head each have a copy of it.
    #[must_use]
    pub fn replicated(&self, t: u32) -> Self {
        match *self {
            Attention::Grouped { heads, key_value_heads, head_size } if key_value_heads > 0 => {
                Attention::Grouped { heads, key_value_heads: key_value_heads.max(t.into()), head_size }
            }
            other => other,
        }
    }

    /// Width of a head.
    pub fn head_size(&self) -> u64 {
        match *self {
            Attention::Grouped { head_size, .. } | Attention::Latent { head_size, .. } => head_size,
        }
    }

    /// Widths of a query (and key) and of a value in the attention core.
    pub fn core_widths(&self) -> (u64, u64) {
        match *self {
            Attention::Grouped { head_size, .. } => (head_size, head_size),
            Attention::Latent { rope, nope, value, .. } => (nope + rope, value),
        }
    }

    /// Weight matrices, each with the dimension that tensor parallelism divides.
    pub fn matrices(&self, hidden: u64) -> Vec<WeightMatrix> {
        let columns = |outputs, inputs| WeightMatrix { outputs, inputs, split: MatrixSplit::Outputs };
        let rows = |outputs, inputs| WeightMatrix { outputs, inputs, split: MatrixSplit::Inputs };
        match *self {
            Attention::Grouped { heads: 0, .. } => vec![],
            Attention::Grouped { heads, key_value_heads, head_size } => {
                vec![columns((heads + 2 * key_value_heads) * head_size, hidden), rows(hidden, heads * head_size)]
            }
            Attention::Latent { heads, query_rank, key_value_rank, rope, nope, value, .. } => {
                let whole = |outputs, inputs| WeightMatrix { outputs, inputs, split: MatrixSplit::Not };
                let mut matrices = match query_rank {
                    Some(rank) => {
                        vec![whole(rank + key_value_rank + rope, hidden), columns(heads * (nope + rope), rank)]
                    }
                    None => vec![whole(key_value_rank + rope, hidden), columns(heads * (nope + rope), hidden)],
                };
                matrices.push(columns(heads * (nope + value), key_value_rank));
                matrices.push(rows(hidden, heads * value));
                matrices
            }
        }
    }

    fn parameters(&self, hidden: u64) -> u64 {
        self.matrices(hidden).iter().map(|matrix| matrix.outputs * matrix.inputs).sum()
    }
}

/// Dimension of a matrix that tensor parallelism divides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixSplit {
    /// Outputs (column parallel).
    Outputs,
    /// Inputs (row parallel).
    Inputs,
    /// None: every rank has the whole matrix.
    Not,
}

/// Weight matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightMatrix {
    /// Width of its output.
    pub outputs: u64,
    /// Width of its input.
    pub inputs: u64,
    /// Dimension that tensor parallelism divides.
    pub split: MatrixSplit,
}

impl WeightMatrix {
    /// Outputs and inputs on each of `t` ranks.
    pub fn on_rank(&self, t: f64) -> (f64, f64) {
        let (outputs, inputs) = (self.outputs as f64, self.inputs as f64);
        match self.split {
            MatrixSplit::Outputs => (outputs / t, inputs),
            MatrixSplit::Inputs => (outputs, inputs / t),
            MatrixSplit::Not => (outputs, inputs),
        }
    }
}

/// Number of matrices in a feed-forward block with or without a gate.
fn block_matrices(gated: bool) -> u64 {
    if gated { 3 } else { 2 }
}

impl LayerKind {
    /// Layer of a decoder: causal attention over the whole sequence, then a feed-forward block.
    pub fn decoder(attention: Attention, feed_forward: FeedForward, vectors: u64) -> Self {
        LayerKind { attention, mixer: None, span: Span::Full, causal: true, cross: false, feed_forward, vectors }
    }

    /// Attention without heads, of a layer that has none.
    pub const NO_ATTENTION: Attention = Attention::Grouped { heads: 0, key_value_heads: 0, head_size: 1 };

    /// Experts, if there are any.
    pub fn experts(&self) -> Option<&Experts> {
        match &self.feed_forward {
            FeedForward::Experts(experts) => Some(experts),
            FeedForward::Dense { .. } => None,
        }
    }

    /// Elements of a layer.
    pub fn parameters(&self, hidden: u64) -> u64 {
        self.shared_parameters(hidden) + self.expert_parameters(hidden)
    }

    /// Elements of the routed experts.
    pub fn expert_parameters(&self, hidden: u64) -> u64 {
        self.experts().map_or(0, |e| e.count * block_matrices(e.gated) * e.width * e.token_width(hidden))
    }

    /// Elements that process every token, vectors included.
    pub fn shared_parameters(&self, hidden: u64) -> u64 {
        let block = match self.feed_forward {
            FeedForward::Dense { width, gated } => block_matrices(gated) * width * hidden,
            FeedForward::Experts(e) => {
                block_matrices(e.gated) * e.shared_width * hidden + e.count * hidden + e.projections(hidden)
            }
        };
        let attention = self.attention.parameters(hidden) * (1 + u64::from(self.cross));
        attention + self.mixer.map_or(0, |mixer| mixer.parameters(hidden)) + block + self.vectors
    }

    /// Elements of the matrices that process one token.
    fn active_matrices(&self, hidden: u64) -> u64 {
        let chosen = self.experts().map_or(0, |e| e.chosen * block_matrices(e.gated) * e.width * e.token_width(hidden));
        self.shared_parameters(hidden) - self.vectors + chosen
    }

    /// Halves of the layer: attention or a mixer, and a feed-forward block. Most layers have both.
    pub fn halves(&self) -> [bool; 2] {
        let mixes = self.attention.heads() > 0 || self.mixer.is_some();
        [mixes, !matches!(self.feed_forward, FeedForward::Dense { width: 0, .. })]
    }

    /// Mean number of tokens that one token attends to, over a sequence.
    pub fn mean_span(&self, sequence: f64) -> f64 {
        let reach = match self.span {
            Span::Full => sequence,
            Span::Window(w) | Span::Chunk(w) => sequence.min(w as f64),
        };
        match (self.causal, self.span) {
            (true, Span::Window(_)) => reach - reach * reach / (2.0 * sequence),
            (true, _) => reach / 2.0,
            (false, _) => reach,
        }
    }
}

impl Model {
    /// Kind of a layer.
    pub fn kind(&self, layer: usize) -> &LayerKind {
        &self.kinds[usize::from(self.layers[layer])]
    }

    /// Total elements: a tied projection counts once, prediction layers do not count.
    pub fn parameters(&self) -> u64 {
        let layers: u64 = self.layers.iter().map(|&k| self.kinds[usize::from(k)].parameters(self.hidden)).sum();
        let ends = &self.ends;
        let table = ends.vocabulary * ends.token_width;
        layers + ends.before + ends.after + table * (1 + u64::from(ends.projection == Projection::Own))
    }

    /// Elements that process one token: all of them, unless there are experts.
    pub fn active_parameters(&self) -> u64 {
        let idle = |e: &Experts| (e.count - e.chosen) * block_matrices(e.gated) * e.width * e.token_width(self.hidden);
        let unused: u64 = self.layers.iter().filter_map(|&k| self.kinds[usize::from(k)].experts()).map(idle).sum();
        self.parameters() - unused
    }

    /// Floating-point operations of forward and backward for a sequence of this length, without recomputation. Six per
    /// matrix element and token, plus attention over the tokens that each token attends to.
    pub fn training_flops(&self, sequence: f64) -> f64 {
        self.flops(sequence, false)
    }

    /// The same with frozen weights, which have no gradients: four per matrix element and token.
    pub fn frozen_flops(&self, sequence: f64) -> f64 {
        self.flops(sequence, true)
    }

    fn flops(&self, sequence: f64, frozen: bool) -> f64 {
        let costs: Vec<f64> = self.kinds.iter().map(|kind| self.layer_flops(kind, sequence)).collect();
        let layers: f64 = self.layers.iter().map(|&k| costs[usize::from(k)]).sum();
        let head = match self.ends.projection {
            Projection::None => 0.0,
            _ => 2.0 * (self.ends.vocabulary * self.ends.token_width) as f64,
        };
        let predictions = f64::from(self.prediction_layers);
        let prediction = costs[usize::from(self.layers[self.layers.len() - 1])] / sequence
            + head
            + 4.0 * (self.hidden as f64).powi(2);
        let all = 3.0 * (layers + sequence * (head + predictions * prediction));
        if !frozen {
            return all;
        }
        let matrices =
            self.layers.iter().map(|&kind| self.kinds[usize::from(kind)].active_matrices(self.hidden) as f64);
        all - sequence * (2.0 * matrices.sum::<f64>() + head)
    }

    /// Floating-point operations of a layer's forward pass over a sequence.
    pub fn layer_flops(&self, kind: &LayerKind, sequence: f64) -> f64 {
        let (query, value) = kind.attention.core_widths();
        let cross = if kind.cross { sequence } else { 0.0 };
        let seen = kind.mean_span(sequence) + cross;
        let core = 2.0 * seen * (kind.attention.heads() * (query + value)) as f64;
        let core = core + kind.mixer.map_or(0.0, |mixer| mixer.core_flops());
        sequence * (2.0 * kind.active_matrices(self.hidden) as f64 + core)
    }

    /// True if any layer is a mixture of experts.
    pub fn has_experts(&self) -> bool {
        self.kinds.iter().any(|kind| kind.experts().is_some())
    }

    /// True if every layer is causal and without cross-attention, as in decoders.
    pub fn is_decoder(&self) -> bool {
        self.kinds.iter().all(|kind| kind.causal && !kind.cross)
    }

    /// Model of equal layers.
    pub fn uniform(name: &str, source: &str, hidden: u64, kind: LayerKind, count: usize, ends: Ends) -> Self {
        Model {
            name: name.into(),
            source: source.into(),
            hidden,
            kinds: vec![kind],
            layers: vec![0; count],
            ends,
            details: None,
            prediction_layers: 0,
            dropout: false,
            longest_sequence: 1 << 20,
            remarks: vec![],
        }
    }
}

impl From<&ModelConfig> for Model {
    fn from(config: &ModelConfig) -> Self {
        let h = config.hidden;
        let kind = LayerKind {
            attention: Attention::Grouped {
                heads: config.heads,
                key_value_heads: config.key_value_heads,
                head_size: config.head_size,
            },
            mixer: None,
            span: Span::Full,
            causal: !config.padding_mask,
            cross: false,
            feed_forward: FeedForward::Dense { width: config.mlp_width, gated: config.mlp == Mlp::Gated },
            vectors: 0,
        };
        // Both counts are exact below 2⁵³ elements.
        let vectors = (config.layer_parameters(1) as u64).saturating_sub(kind.parameters(h));
        let table = config.vocabulary * h;
        let (projection, in_head) = match config.head {
            Head::Pooler => (Projection::None, 0),
            Head::LanguageModel { tied } => (if tied { Projection::Tied } else { Projection::Own }, table),
            Head::MaskedLanguageModel => (Projection::Tied, table),
        };
        let ends = Ends {
            vocabulary: config.vocabulary,
            token_width: h,
            positions: config.positions,
            before: (config.embedding_parameters(1) as u64).saturating_sub(table),
            after: (config.head_parameters(1) as u64).saturating_sub(in_head),
            projection,
        };
        let kind = LayerKind { vectors, ..kind };
        let mut model = Model::uniform(&config.name, &config.source, h, kind, config.layers as usize, ends);
        model.longest_sequence = config.longest_sequence;
        model.details = Some(Details {
            norm: Some(match config.norm {
                Norm::Layer => NormKind::Layer,
                Norm::Rms => NormKind::Rms,
            }),
            head_norm: false,
            query_key_value_bias: config.biases.query_key_value,
            bias: config.biases.attention_output || config.biases.mlp,
            slopes: false,
        });
        model.dropout = config.norm == Norm::Layer && config.mlp == Mlp::Plain;
        model
    }
}

//! Shape of a transformer as engines need it: sizes, experts, norms, biases.
//!
//! A recipe states it ([`super::recipe`]). A fact that the source does not state stays open, and the engines' files ask
//! for it.

use serde::{Deserialize, Serialize};

use super::training::model::{Attention, FeedForward, LayerKind, Model, Projection, Span};

/// Kind of a normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NormKind {
    /// Scale and shift.
    Layer,
    /// Scale only.
    Rms,
}

/// Sizes of a transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelShape {
    /// Number of transformer layers.
    pub layers: u32,
    /// Width of the hidden state.
    pub hidden_size: u64,
    /// Number of attention heads.
    pub attention_heads: u64,
    /// Number of key-value heads; equal to `attention_heads` without grouped-query attention.
    pub key_value_heads: u64,
    /// Width of a head.
    pub head_size: u64,
    /// Width of the feed-forward block: of the dense layers if other layers have experts, of an expert if all layers
    /// do.
    pub feed_forward_size: u64,
    /// True if the feed-forward block has a gate, a third matrix.
    pub gated: bool,
    /// True if the projection onto the vocabulary uses the embedding's matrix.
    pub tied_embeddings: bool,
    /// Rows of the token embedding.
    pub vocabulary: u64,
    /// Longest sequence that the model supports.
    pub max_positions: u64,
    /// True if positions are learned; else they are computed (rotary, or `slopes`).
    pub learned_positions: bool,
    /// Kind of every norm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norm: Option<NormKind>,
    /// True if the projections of queries, keys and values have biases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_key_value_bias: Option<bool>,
    /// True if the other matrices have biases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias: Option<bool>,
    /// True if tokens attend to the whole sequence (an encoder such as BERT).
    pub bidirectional: bool,
    /// True if queries and keys, or latent states, have norms of their own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub head_norm: bool,
    /// True if positions are slopes added to attention scores (ALiBi).
    #[serde(default, skip_serializing_if = "is_false")]
    pub slopes: bool,
    /// Tokens in the attention window, if all layers have the same window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// True if layers differ in their attention. The sizes are then those of most layers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub mixed_attention: bool,
    /// Latent state of queries, keys and values, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latent: Option<LatentShape>,
    /// Experts, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<ExpertShape>,
}

/// Sizes of multi-head latent attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatentShape {
    /// Width of the queries' latent state; absent if queries are projected directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_rank: Option<u64>,
    /// Width of the latent state of keys and values.
    pub key_value_rank: u64,
    /// Width of the part of a head with a rotary position.
    pub rope: u64,
    /// Width of the part of a head without a position.
    pub nope: u64,
    /// Width of a head's value.
    pub value: u64,
}

/// Sizes of a mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExpertShape {
    /// Experts per layer.
    pub count: u64,
    /// Experts that process each token.
    pub chosen: u64,
    /// Width of one expert.
    pub feed_forward_size: u64,
    /// Total width of the experts that process every token; 0 if there are none.
    #[serde(default)]
    pub shared_feed_forward_size: u64,
    /// Layers with experts; absent if they follow no rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<ExpertLayers>,
}

/// Rule for the layers with experts: after `dense_first` dense layers, one layer in `every`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExpertLayers {
    /// Number of dense layers before the first layer with experts.
    pub dense_first: u32,
    /// Period of layers with experts from there on; 1 if all have experts.
    pub every: u32,
}

impl ExpertLayers {
    /// Rule by which every layer has experts.
    pub const ALL: ExpertLayers = ExpertLayers { dense_first: 0, every: 1 };

    /// True if the layer has experts.
    pub fn has(self, layer: usize) -> bool {
        layer
            .checked_sub(self.dense_first as usize)
            .is_some_and(|behind| behind.is_multiple_of(self.every.max(1) as usize))
    }
}

/// Used to write a field only if it is true.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl ModelShape {
    /// Shape of a model that can be trained. `None` if the model is not a sequence of similar text layers: encoders
    /// with decoders, and models of pictures.
    pub fn of(model: &Model) -> Option<Self> {
        if model.ends.vocabulary == 0 || model.kinds.iter().any(|kind| kind.cross || kind.mixer.is_some()) {
            return None;
        }
        let kind = model.kinds.get(commonest(model))?;
        let dense = model.kinds.iter().find_map(|kind| match kind.feed_forward {
            FeedForward::Dense { width, .. } => Some(width),
            FeedForward::Experts(_) => None,
        });
        let (width, gated) = match kind.feed_forward {
            FeedForward::Dense { width, gated } => (width, gated),
            FeedForward::Experts(experts) => (dense.unwrap_or(experts.width), experts.gated),
        };
        let alike =
            |other: &LayerKind| (other.attention, other.span, other.causal) == (kind.attention, kind.span, kind.causal);
        let mixed_attention = !model.kinds.iter().all(alike);
        let details = model.details;
        let (ends, attention) = (&model.ends, &kind.attention);
        Some(ModelShape {
            layers: u32::try_from(model.layers.len()).ok()?,
            hidden_size: model.hidden,
            attention_heads: attention.heads(),
            key_value_heads: attention.key_value_heads(),
            head_size: attention.head_size(),
            feed_forward_size: width,
            gated,
            tied_embeddings: ends.projection != Projection::Own,
            vocabulary: ends.vocabulary,
            max_positions: model.longest_sequence,
            learned_positions: ends.positions > 0,
            norm: details.and_then(|details| details.norm),
            query_key_value_bias: details.map(|details| details.query_key_value_bias),
            bias: details.map(|details| details.bias),
            bidirectional: !kind.causal,
            head_norm: details.is_some_and(|details| details.head_norm),
            slopes: details.is_some_and(|details| details.slopes),
            window: match kind.span {
                Span::Window(tokens) if !mixed_attention => Some(tokens),
                _ => None,
            },
            mixed_attention,
            latent: latent(attention),
            experts: experts(model, kind),
        })
    }

    /// Sizes by field name, to check that each is in range.
    pub(super) fn sizes(&self) -> Vec<(&'static str, Option<u64>)> {
        let (latent, experts) = (self.latent, self.experts);
        let layers = experts.and_then(|experts| experts.layers);
        vec![
            ("model.layers", Some(self.layers.into())),
            ("model.hidden_size", Some(self.hidden_size)),
            ("model.attention_heads", Some(self.attention_heads)),
            ("model.key_value_heads", Some(self.key_value_heads)),
            ("model.head_size", Some(self.head_size)),
            ("model.feed_forward_size", Some(self.feed_forward_size)),
            ("model.vocabulary", Some(self.vocabulary)),
            ("model.max_positions", Some(self.max_positions)),
            ("model.window", self.window),
            ("model.latent.query_rank", latent.and_then(|latent| latent.query_rank)),
            ("model.latent.key_value_rank", latent.map(|latent| latent.key_value_rank)),
            ("model.latent.rope", latent.map(|latent| latent.rope)),
            ("model.latent.nope", latent.map(|latent| latent.nope)),
            ("model.latent.value", latent.map(|latent| latent.value)),
            ("model.experts.count", experts.map(|experts| experts.count)),
            ("model.experts.chosen", experts.map(|experts| experts.chosen)),
            ("model.experts.feed_forward_size", experts.map(|experts| experts.feed_forward_size)),
            (
                "model.experts.shared_feed_forward_size",
                experts.map(|experts| experts.shared_feed_forward_size).filter(|&width| width > 0),
            ),
            ("model.experts.layers.every", layers.map(|layers| layers.every.into())),
        ]
    }
}

/// Most frequent kind of layer, among those with experts if there are any.
fn commonest(model: &Model) -> usize {
    let count = |kind: usize| model.layers.iter().filter(|&&own| usize::from(own) == kind).count();
    let routed = |kind: usize| model.kinds[kind].experts().is_some();
    (0..model.kinds.len()).rev().max_by_key(|&kind| (routed(kind), count(kind))).unwrap_or(0)
}

fn latent(attention: &Attention) -> Option<LatentShape> {
    match *attention {
        Attention::Grouped { .. } => None,
        Attention::Latent { query_rank, key_value_rank, rope, nope, value, .. } => {
            Some(LatentShape { query_rank, key_value_rank, rope, nope, value })
        }
    }
}

fn experts(model: &Model, kind: &LayerKind) -> Option<ExpertShape> {
    let own = kind.experts()?;
    let routed = |layer: usize| model.kind(layer).experts().is_some();
    let mut places = (0..model.layers.len()).filter(|&layer| routed(layer));
    let first = places.next()?;
    let every = places.next().map_or(1, |second| second - first);
    let rule = ExpertLayers { dense_first: u32::try_from(first).ok()?, every: u32::try_from(every).ok()? };
    let follows = (0..model.layers.len()).all(|layer| rule.has(layer) == routed(layer));
    Some(ExpertShape {
        count: own.count,
        chosen: own.chosen,
        feed_forward_size: own.width,
        shared_feed_forward_size: own.shared_width,
        layers: follows.then_some(rule),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{model::preset, training::published};

    fn of(name: &str) -> ModelShape {
        ModelShape::of(&published::find(name).unwrap()).unwrap()
    }

    #[test]
    fn mixtures_carry_their_experts() {
        let mixtral = of("mixtral-8x7b");
        let experts = mixtral.experts.unwrap();
        assert_eq!((experts.count, experts.chosen, experts.feed_forward_size), (8, 2, 14336));
        assert_eq!((experts.shared_feed_forward_size, experts.layers), (0, Some(ExpertLayers::ALL)));
        assert_eq!((mixtral.key_value_heads, mixtral.norm, mixtral.gated), (8, Some(NormKind::Rms), true));
        assert_eq!(
            (mixtral.tied_embeddings, mixtral.bias, mixtral.query_key_value_bias),
            (false, Some(false), Some(false))
        );
        let deepseek = of("deepseek-v3");
        assert_eq!(deepseek.experts.unwrap().layers, Some(ExpertLayers { dense_first: 3, every: 1 }));
        assert_eq!((deepseek.feed_forward_size, deepseek.latent.unwrap().key_value_rank), (18432, 512));
        let maverick = of("llama-4-maverick");
        assert_eq!(maverick.experts.unwrap().layers, Some(ExpertLayers { dense_first: 1, every: 2 }));
        assert!(maverick.mixed_attention && maverick.window.is_none());
    }

    #[test]
    fn every_published_text_model_tells_its_norms_and_biases() {
        for name in published::names() {
            let model = published::find(name).unwrap();
            let Some(shape) = ModelShape::of(&model) else {
                let odd = model.kinds.iter().any(|kind| kind.cross || kind.mixer.is_some());
                assert!(model.ends.vocabulary == 0 || odd, "{name}");
                continue;
            };
            assert!(shape.norm.is_some() || ["olmo-", "command-"].iter().any(|own| name.starts_with(own)), "{name}");
            assert!(shape.bias.is_some() && shape.query_key_value_bias.is_some(), "{name}");
            assert_eq!(shape.experts.is_some(), model.has_experts(), "{name}");
        }
    }

    #[test]
    fn a_preset_keeps_the_sizes_that_its_publication_gives() {
        let bert = ModelShape::of(&Model::from(&preset("bert-32").unwrap())).unwrap();
        assert_eq!((bert.norm, bert.bias, bert.bidirectional), (Some(NormKind::Layer), Some(true), true));
        assert!(bert.tied_embeddings && bert.learned_positions && bert.experts.is_none());
    }
}

//! Shared parts of the readers: dense decoders described by their differences, windows, dropout.

use serde_json::Value;

use super::super::model::{Attention, Details, Ends, FeedForward, LayerKind, Model, Projection, Span};
use crate::{
    source::error::LoadError,
    workload::{
        model::hugging_face::{HuggingFaceConfig, shown},
        model_shape::NormKind,
    },
};

/// Norms of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadNorm {
    /// No norms.
    None,
    /// One vector of a head's width for all query heads, and one for all key heads.
    Shared,
    /// Norm over all heads at once, or one vector per head: as wide as the projections.
    Whole,
}

/// Differences of a decoder's layer from Llama's.
#[derive(Debug, Clone, Copy)]
pub(super) struct DecoderShape {
    /// Elements of a norm per hidden unit: 1 is a scale, 2 a scale and a shift, 0 nothing.
    pub(super) norm_vectors: u64,
    /// Norms per layer.
    pub(super) norms: u64,
    pub(super) head_norm: HeadNorm,
    pub(super) query_key_value_bias: bool,
    pub(super) output_bias: bool,
    pub(super) block_bias: bool,
    pub(super) gated: bool,
    pub(super) tied: bool,
    /// True if the projection onto the vocabulary has a bias.
    pub(super) projection_bias: bool,
}

/// Shape of Llama's layers.
pub(super) const LLAMA: DecoderShape = DecoderShape {
    norm_vectors: 1,
    norms: 2,
    head_norm: HeadNorm::None,
    query_key_value_bias: false,
    output_bias: false,
    block_bias: false,
    gated: true,
    tied: false,
    projection_bias: false,
};

impl DecoderShape {
    /// Facts that engines need beside the sizes.
    pub(super) fn details(&self) -> Details {
        Details {
            norm: match self.norm_vectors {
                0 => None,
                1 => Some(NormKind::Rms),
                _ => Some(NormKind::Layer),
            },
            head_norm: self.head_norm != HeadNorm::None,
            query_key_value_bias: self.query_key_value_bias,
            bias: self.output_bias || self.block_bias,
            slopes: false,
        }
    }

    /// Elements of norms and biases around attention.
    pub(super) fn attention_vectors(&self, hidden: u64, attention: &Attention) -> u64 {
        let (heads, groups, size) = (attention.heads(), attention.key_value_heads(), attention.head_size());
        let norms = match self.head_norm {
            HeadNorm::None => 0,
            HeadNorm::Shared => 2 * size,
            HeadNorm::Whole => (heads + groups) * size,
        };
        let biases = if self.query_key_value_bias { (heads + 2 * groups) * size } else { 0 };
        norms + biases + if self.output_bias { hidden } else { 0 } + self.norms * self.norm_vectors * hidden
    }

    /// Elements of the biases of a dense block.
    pub(super) fn block_vectors(&self, hidden: u64, width: u64) -> u64 {
        if self.block_bias { width * (1 + u64::from(self.gated)) + hidden } else { 0 }
    }
}

/// Heads, key-value heads and head width under their usual field names.
pub(super) fn grouped(
    config: &HuggingFaceConfig<'_>,
    hidden: u64,
    head_size: Option<u64>,
) -> Result<Attention, LoadError> {
    let heads = config.required("num_attention_heads")?;
    let head_size = match config.size("head_dim")?.or(head_size) {
        Some(size) => size,
        None => config.head_size(hidden, heads, "num_attention_heads")?,
    };
    let key_value_heads = config.size("num_key_value_heads")?.unwrap_or(heads);
    Ok(Attention::Grouped { heads, key_value_heads, head_size })
}

/// Ends of a decoder with computed positions.
pub(super) fn ends(config: &HuggingFaceConfig<'_>, hidden: u64, shape: &DecoderShape) -> Result<Ends, LoadError> {
    let vocabulary = config.required("vocab_size")?;
    let tied = config.flag("tie_word_embeddings", shape.tied)?;
    Ok(Ends {
        vocabulary,
        token_width: hidden,
        positions: 0,
        before: 0,
        after: shape.norm_vectors * hidden + if shape.projection_bias { vocabulary } else { 0 },
        projection: if tied { Projection::Tied } else { Projection::Own },
    })
}

/// Decoder of equal dense layers with the usual field names.
pub(super) fn decoder(
    config: &HuggingFaceConfig<'_>,
    kind: &str,
    shape: &DecoderShape,
    head_size: Option<u64>,
) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let attention = grouped(config, hidden, head_size)?;
    let width = config.required("intermediate_size")?;
    let layer = LayerKind::decoder(
        attention,
        FeedForward::Dense { width, gated: shape.gated },
        shape.attention_vectors(hidden, &attention) + shape.block_vectors(hidden, width),
    );
    of_layers(config, kind, hidden, layer, ends(config, hidden, shape)?, shape)
}

/// Model of equal layers, with the number of layers from the file.
pub(super) fn of_layers(
    config: &HuggingFaceConfig<'_>,
    kind: &str,
    hidden: u64,
    layer: LayerKind,
    ends: Ends,
    shape: &DecoderShape,
) -> Result<Model, LoadError> {
    let layers = config.layers("num_hidden_layers")? as usize;
    let mut model = Model::uniform(&config.name(kind)?, config.source, hidden, layer, layers, ends);
    model.longest_sequence = config.size("max_position_embeddings")?.unwrap_or(2048);
    model.details = Some(shape.details());
    Ok(model)
}

/// Sets a window on the chosen layers.
pub(super) fn windows(model: &mut Model, window: u64, chosen: impl Fn(usize) -> bool) {
    respan(model, Span::Window(window), chosen);
}

/// Sets the attention span of the chosen layers. Expects that all layers are of one kind.
pub(super) fn respan(model: &mut Model, span: Span, chosen: impl Fn(usize) -> bool) {
    let near = LayerKind { span, ..model.kinds[0] };
    model.kinds.push(near);
    let index = (model.kinds.len() - 1) as u16;
    for (layer, kind) in model.layers.iter_mut().enumerate() {
        if chosen(layer) {
            *kind = index;
        }
    }
    drop_unused(model);
}

/// Removes kinds that no layer has.
pub(super) fn drop_unused(model: &mut Model) {
    let used: Vec<u16> = (0..model.kinds.len() as u16).filter(|kind| model.layers.contains(kind)).collect();
    model.kinds = used.iter().map(|&kind| model.kinds[usize::from(kind)]).collect();
    for layer in &mut model.layers {
        *layer = used.iter().position(|kind| kind == layer).unwrap_or(0) as u16;
    }
}

/// Sets windows on the layers that `layer_types` names, else on all layers except every `pattern`-th.
pub(super) fn sliding(
    config: &HuggingFaceConfig<'_>,
    model: &mut Model,
    pattern: Option<u64>,
) -> Result<(), LoadError> {
    let Some(window) = config.size("sliding_window")? else { return Ok(()) };
    if let Some(Value::Array(types)) = config.map.get("layer_types") {
        if types.len() != model.layers.len() {
            let problem = format!("names {} layers, but there are {}", types.len(), model.layers.len());
            return Err(config.error("layer_types", problem, "name every layer once"));
        }
        if let Some(odd) = types.iter().find(|t| !["sliding_attention", "full_attention"].iter().any(|n| *t == n)) {
            let problem = format!("has {}, which is not known", shown(odd));
            return Err(config.error("layer_types", problem, "known are sliding_attention and full_attention"));
        }
        windows(model, window, |layer| types[layer] == "sliding_attention");
    } else if let Some(pattern) = pattern {
        windows(model, window, |layer| !(layer as u64 + 1).is_multiple_of(pattern));
    }
    Ok(())
}

/// Count that may be 0; 0 if the field is absent.
pub(super) fn count(config: &HuggingFaceConfig<'_>, field: &str) -> u64 {
    config.map.get(field).and_then(Value::as_u64).unwrap_or(0).min(1 << 20)
}

/// Refuses fields that change the parameters and are not modelled, unless they have their usual value.
pub(super) fn usual(config: &HuggingFaceConfig<'_>, fields: &[(&str, Value)]) -> Result<(), LoadError> {
    for (field, usual) in fields {
        if let Some(own) = config.map.get(*field).filter(|own| !own.is_null() && *own != usual) {
            let problem = format!("is {}, which is not modelled", shown(own));
            return Err(config.error(field, problem, &format!("only {usual} is")));
        }
    }
    Ok(())
}

/// Size that a file may give for every layer: the number of a list whose numbers are equal, or the number itself.
pub(super) fn first(config: &HuggingFaceConfig<'_>, field: &str) -> Result<Option<u64>, LoadError> {
    match config.map.get(field) {
        Some(Value::Array(list)) => {
            let size = list.first().and_then(Value::as_u64).filter(|size| (1..=1 << 20).contains(size));
            match size.filter(|size| list.iter().all(|own| own.as_u64() == Some(*size))) {
                Some(size) => Ok(Some(size)),
                None => Err(config.error(field, "is a list of different numbers, which is not modelled", "")),
            }
        }
        _ => config.size(field),
    }
}

/// For every layer: true if `layer_types` has one of the names `yes`, false for one of `no`. Without the field, `usual`
/// decides.
pub(super) fn layer_types(
    config: &HuggingFaceConfig<'_>,
    model: &Model,
    yes: &[&str],
    no: &[&str],
    usual: impl Fn(usize) -> bool,
) -> Result<Vec<bool>, LoadError> {
    let layers = model.layers.len();
    let types = config.map.get("layer_types").or_else(|| config.map.get("layers_block_type"));
    let Some(Value::Array(types)) = types else { return Ok((0..layers).map(usual).collect()) };
    if types.len() != layers {
        let problem = format!("names {} layers, but there are {layers}", types.len());
        return Err(config.error("layer_types", problem, "name every layer once"));
    }
    let one = |own: &Value| match own.as_str() {
        Some(name) if yes.contains(&name) => Ok(true),
        Some(name) if no.contains(&name) => Ok(false),
        _ => {
            let known = format!("known are {}", yes.iter().chain(no).copied().collect::<Vec<_>>().join(", "));
            Err(config.error("layer_types", format!("has {}, which is not known", shown(own)), &known))
        }
    };
    types.iter().map(one).collect()
}

/// Fraction from 0 to 1, such as dropout.
pub(super) fn share(config: &HuggingFaceConfig<'_>, field: &str, default: f64) -> Result<f64, LoadError> {
    match config.map.get(field) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => value
            .as_f64()
            .filter(|share| (0.0..=1.0).contains(share))
            .ok_or_else(|| config.error(field, format!("is {}, must be a number from 0 to 1", shown(value)), "")),
    }
}

/// True if `architectures` names a class with one of these endings.
pub(super) fn is_class(config: &HuggingFaceConfig<'_>, endings: &[&str]) -> bool {
    config.map.get("architectures").and_then(Value::as_array).is_some_and(|list| {
        list.iter().filter_map(Value::as_str).any(|name| endings.iter().any(|ending| name.ends_with(ending)))
    })
}

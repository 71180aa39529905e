//! Mixtures of experts with grouped attention: Mixtral, Qwen, OLMoE, Granite, Phi, Llama 4, gpt-oss.

use serde_json::Value;

use super::{
    super::model::{Experts, FeedForward, LayerKind, Model, Span},
    decoders::dense_of,
    parts::{self, DecoderShape, HeadNorm, LLAMA},
};
use crate::{source::error::LoadError, workload::model::hugging_face::HuggingFaceConfig};

/// Reads Mixtral and similar models.
pub(super) fn mixture(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let bias = config.flag("attention_bias", kind == "phimoe")?;
    let own = DecoderShape { query_key_value_bias: bias, output_bias: bias, ..LLAMA };
    let shape = match kind {
        "qwen2_moe" => {
            DecoderShape { query_key_value_bias: config.flag("qkv_bias", true)?, output_bias: false, ..LLAMA }
        }
        "qwen3_moe" => DecoderShape { head_norm: HeadNorm::Shared, ..own },
        "olmoe" => DecoderShape { head_norm: HeadNorm::Whole, ..own },
        "phimoe" => DecoderShape { norm_vectors: 2, projection_bias: config.flag("lm_head_bias", true)?, ..own },
        _ => own,
    };
    let hidden = config.required("hidden_size")?;
    let attention = parts::grouped(config, hidden, (kind == "qwen3_moe").then_some(128))?;
    let count = match kind {
        "mixtral" | "granitemoe" | "phimoe" => config.required("num_local_experts")?,
        _ => config.required("num_experts")?,
    };
    let width = match kind {
        "qwen2_moe" | "qwen3_moe" => config.required("moe_intermediate_size")?,
        _ => config.required("intermediate_size")?,
    };
    let shared_width = match kind {
        "qwen2_moe" => config.required("shared_expert_intermediate_size")?,
        _ => 0,
    };
    let experts = Experts {
        count,
        chosen: config.required("num_experts_per_tok")?,
        width,
        shared_width,
        gated: true,
        node_limit: None,
        latent: None,
    };
    // Qwen 2 scales its shared expert by a gate with one output.
    let gate = if shared_width > 0 { hidden } else { 0 };
    let vectors = shape.attention_vectors(hidden, &attention);
    let layer = LayerKind::decoder(attention, FeedForward::Experts(experts), vectors + gate);
    let mut model = parts::of_layers(config, kind, hidden, layer, parts::ends(config, hidden, &shape)?, &shape)?;
    if matches!(kind, "qwen2_moe" | "qwen3_moe") {
        let step = config.size("decoder_sparse_step")?.unwrap_or(1) as usize;
        let listed = indices(config, "mlp_only_layers", model.layers.len())?.unwrap_or_default();
        let is_dense = |layer: usize| listed.contains(&layer) || !(layer + 1).is_multiple_of(step);
        if (0..model.layers.len()).any(is_dense) {
            let width = config.required("intermediate_size")?;
            with_dense(&mut model, &dense_of(&layer, width, vectors), is_dense);
        }
    }
    if matches!(kind, "mixtral" | "phimoe") {
        parts::sliding(config, &mut model, Some(u64::MAX))?;
    }
    Ok(model)
}

/// Makes the chosen layers dense.
pub(super) fn with_dense(model: &mut Model, dense: &LayerKind, is_dense: impl Fn(usize) -> bool) {
    model.kinds.push(*dense);
    let index = (model.kinds.len() - 1) as u16;
    model.layers.iter_mut().enumerate().filter(|(layer, _)| is_dense(*layer)).for_each(|(_, kind)| *kind = index);
    parts::drop_unused(model);
}

/// Reads a list of layer indices.
fn indices(config: &HuggingFaceConfig<'_>, field: &str, layers: usize) -> Result<Option<Vec<usize>>, LoadError> {
    let Some(value) = config.map.get(field).filter(|value| !value.is_null()) else { return Ok(None) };
    let refuse = || config.error(field, format!("is no list of layers from 0 to {}", layers - 1), "");
    let list = value.as_array().ok_or_else(refuse)?;
    let index = |value: &Value| value.as_u64().map(|v| v as usize).filter(|&v| v < layers).ok_or_else(refuse);
    list.iter().map(index).collect::<Result<_, _>>().map(Some)
}

/// Llama 4: a shared expert and routed experts in all or every other layer. Three of four layers attend within chunks.
pub(super) fn llama4(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let attention = parts::grouped(config, hidden, None)?;
    let width = config.required("intermediate_size")?;
    let bias = config.flag("attention_bias", false)?;
    let shape = DecoderShape { query_key_value_bias: bias, output_bias: bias, ..LLAMA };
    let vectors = shape.attention_vectors(hidden, &attention);
    let experts = Experts {
        count: config.required("num_local_experts")?,
        chosen: config.size("num_experts_per_tok")?.unwrap_or(1),
        width,
        shared_width: width,
        gated: true,
        node_limit: None,
        latent: None,
    };
    let routed = LayerKind::decoder(attention, FeedForward::Experts(experts), vectors);
    let mut model = parts::of_layers(config, kind, hidden, routed, parts::ends(config, hidden, &shape)?, &shape)?;
    let step = config.size("interleave_moe_layer_step")?.unwrap_or(1) as usize;
    let listed = indices(config, "moe_layers", model.layers.len())?;
    let is_routed = |layer: usize| match &listed {
        Some(list) => list.contains(&layer),
        None => (layer + 1).is_multiple_of(step),
    };
    let has_dense = (0..model.layers.len()).any(|layer| !is_routed(layer));
    let dense_width = if has_dense { config.required("intermediate_size_mlp")? } else { width };
    let dense = dense_of(&routed, dense_width, vectors);
    // Every fourth layer has no rotary position and attends to the whole sequence.
    let span = config.size("attention_chunk_size")?.map_or(Span::Full, Span::Chunk);
    let kinds = [routed, dense, LayerKind { span, ..routed }, LayerKind { span, ..dense }];
    model.kinds = kinds.to_vec();
    for (layer, kind) in model.layers.iter_mut().enumerate() {
        let near = !(layer + 1).is_multiple_of(4);
        *kind = 2 * u16::from(near) + u16::from(!is_routed(layer));
    }
    parts::drop_unused(&mut model);
    Ok(model)
}

/// gpt-oss: biases everywhere, a learned sink per head, a window in every other layer.
pub(super) fn gpt_oss(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let attention = parts::grouped(config, hidden, Some(64))?;
    let bias = config.flag("attention_bias", true)?;
    let shape = DecoderShape { query_key_value_bias: bias, output_bias: bias, ..LLAMA };
    let count = config.required("num_local_experts")?;
    let chosen = config.size("num_experts_per_tok")?.or(config.size("experts_per_token")?);
    let Some(chosen) = chosen else {
        return Err(config.error("num_experts_per_tok", "is missing", "add num_experts_per_tok, a whole number"));
    };
    let width = config.required("intermediate_size")?;
    let biases = count * (2 * width + hidden) + count;
    let layer = LayerKind::decoder(
        attention,
        FeedForward::Experts(Experts {
            count,
            chosen,
            width,
            shared_width: 0,
            gated: true,
            node_limit: None,
            latent: None,
        }),
        shape.attention_vectors(hidden, &attention) + attention.heads() + biases,
    );
    let mut model = parts::of_layers(config, kind, hidden, layer, parts::ends(config, hidden, &shape)?, &shape)?;
    parts::sliding(config, &mut model, Some(2))?;
    Ok(model)
}

//! DeepSeek V2 and V3 and similar models: latent attention, dense first layers, shared experts, limited routing.

use super::{
    super::model::{Attention, Experts, FeedForward, LayerKind, Model, Span},
    decoders::dense_of,
    experts::with_dense,
    parts::{self, DecoderShape, HeadNorm, LLAMA},
};
use crate::{source::error::LoadError, workload::model::hugging_face::HuggingFaceConfig};

/// Reads DeepSeek V2, V2-Lite, V3, R1 and Kimi K2.
pub(super) fn deepseek(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let (attention, query_rank, vectors) = attention(config, hidden)?;
    let count = config.required("n_routed_experts")?;
    let width = config.required("moe_intermediate_size")?;
    let shared = config.map.get("n_shared_experts").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let node_limit = node_limit(config)?;
    let experts = Experts {
        count,
        chosen: config.required("num_experts_per_tok")?,
        width,
        shared_width: shared.min(1 << 20) * width,
        gated: true,
        node_limit,
        latent: None,
    };
    // V3's router has a bias that balances the load.
    let balance = if kind == "deepseek_v2" { 0 } else { count };
    let routed = LayerKind::decoder(attention, FeedForward::Experts(experts), vectors + balance);
    // The latent states have norms.
    let shape = DecoderShape { head_norm: HeadNorm::Whole, ..LLAMA };
    let mut model = parts::of_layers(config, kind, hidden, routed, parts::ends(config, hidden, &shape)?, &shape)?;
    let first = parts::count(config, "first_k_dense_replace") as usize;
    let step = config.size("moe_layer_freq")?.unwrap_or(1) as usize;
    let is_dense = |layer: usize| layer < first || !layer.is_multiple_of(step);
    if (0..model.layers.len()).any(is_dense) {
        let width = config.required("intermediate_size")?;
        with_dense(&mut model, &dense_of(&routed, width, vectors), is_dense);
    }
    if kind == "deepseek_v32" {
        sparse(config, &mut model, query_rank)?;
    }
    predictions(config, &mut model)?;
    Ok(model)
}

/// Latent attention, the width from which its queries are projected, and the elements of the norms of its layer.
fn attention(config: &HuggingFaceConfig<'_>, hidden: u64) -> Result<(Attention, u64, u64), LoadError> {
    let query_rank = config.size("q_lora_rank")?;
    let key_value_rank = config.required("kv_lora_rank")?;
    let (rope, nope) = (config.required("qk_rope_head_dim")?, config.required("qk_nope_head_dim")?);
    let attention = Attention::Latent {
        heads: config.required("num_attention_heads")?,
        query_rank,
        key_value_rank,
        rope,
        nope,
        value: config.required("v_head_dim")?,
        head_size: rope + nope,
    };
    Ok((attention, query_rank.unwrap_or(hidden), 2 * hidden + query_rank.unwrap_or(0) + key_value_rank))
}

/// Sparse attention of DeepSeek V3.2: an indexer chooses the tokens that each token attends to.
fn sparse(config: &HuggingFaceConfig<'_>, model: &mut Model, query_rank: u64) -> Result<(), LoadError> {
    let (heads, width) = (config.required("index_n_heads")?, config.required("index_head_dim")?);
    let chosen = config.required("index_topk")?;
    let indexer = heads * width * query_rank + width * model.hidden + 2 * width + heads * model.hidden;
    for kind in &mut model.kinds {
        kind.vectors += indexer;
        kind.span = Span::Window(chosen);
    }
    let remark = format!("attention reads {chosen} chosen tokens; the indexer's parameters count, its time does not");
    model.remarks.push(remark);
    Ok(())
}

/// Maximum number of expert groups per token, if the router limits it.
pub(super) fn node_limit(config: &HuggingFaceConfig<'_>) -> Result<Option<u64>, LoadError> {
    Ok(match (config.size("n_group")?, config.size("topk_group")?) {
        (Some(groups), Some(limit)) if groups > 1 => Some(limit),
        _ => None,
    })
}

/// Sets the layers that predict further tokens.
pub(super) fn predictions(config: &HuggingFaceConfig<'_>, model: &mut Model) -> Result<(), LoadError> {
    let zero = config.map.get("num_nextn_predict_layers").and_then(serde_json::Value::as_u64) == Some(0);
    if !zero {
        model.prediction_layers = config.size("num_nextn_predict_layers")?.unwrap_or(0).min(64) as u32;
    }
    if model.prediction_layers > 0 {
        let remark = "layers that predict further tokens are trained too, beside the parameters counted";
        model.remarks.push(remark.into());
    }
    Ok(())
}

/// LongCat-Flash: two blocks of latent attention and a dense block in every layer; the experts run beside the first. Some
/// of the experts pass a token on as it is.
pub(super) fn longcat(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let (attention, _, vectors) = attention(config, hidden)?;
    let (routed, zero) = (config.required("n_routed_experts")?, parts::count(config, "zero_expert_num"));
    let chosen = config.required("moe_topk")?;
    let dense_width = config.required("ffn_hidden_size")?;
    let experts = Experts {
        count: routed,
        // A token meets as many real experts as chance gives.
        chosen: (chosen * routed).div_ceil(routed + zero).max(1),
        width: config.required("expert_ffn_hidden_size")?,
        shared_width: dense_width,
        gated: true,
        node_limit: None,
        latent: None,
    };
    let first = LayerKind::decoder(attention, FeedForward::Experts(experts), vectors + zero * hidden);
    let second = dense_of(&first, dense_width, vectors);
    let shape = DecoderShape { head_norm: HeadNorm::Whole, ..LLAMA };
    let mut map = config.map.clone();
    let layers = config.layers("num_layers")?;
    map.insert("num_hidden_layers".into(), (2 * layers).into());
    let config = &HuggingFaceConfig { map: &map, source: config.source };
    let mut model = parts::of_layers(config, kind, hidden, first, parts::ends(config, hidden, &shape)?, &shape)?;
    model.kinds.push(second);
    model.layers = (0..2 * layers as usize).map(|layer| (layer % 2) as u16).collect();
    model
        .remarks
        .push(format!("each of its {layers} layers counts as two: experts beside a dense block, and a dense block"));
    Ok(model)
}

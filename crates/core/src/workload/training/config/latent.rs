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
    let heads = config.required("num_attention_heads")?;
    let query_rank = config.size("q_lora_rank")?;
    let key_value_rank = config.required("kv_lora_rank")?;
    let (rope, nope) = (config.required("qk_rope_head_dim")?, config.required("qk_nope_head_dim")?);
    let attention = Attention::Latent {
        heads,
        query_rank,
        key_value_rank,
        rope,
        nope,
        value: config.required("v_head_dim")?,
        head_size: rope + nope,
    };
    let count = config.required("n_routed_experts")?;
    let width = config.required("moe_intermediate_size")?;
    let shared = config.map.get("n_shared_experts").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let node_limit = match (config.size("n_group")?, config.size("topk_group")?) {
        (Some(groups), Some(limit)) if groups > 1 => Some(limit),
        _ => None,
    };
    let experts = Experts {
        count,
        chosen: config.required("num_experts_per_tok")?,
        width,
        shared_width: shared.min(1 << 20) * width,
        gated: true,
        node_limit,
    };
    let vectors = 2 * hidden + query_rank.unwrap_or(0) + key_value_rank;
    // V3's router has a bias that balances the load.
    let balance = if kind == "deepseek_v2" { 0 } else { count };
    let routed = LayerKind {
        attention,
        span: Span::Full,
        causal: true,
        cross: false,
        feed_forward: FeedForward::Experts(experts),
        vectors: vectors + balance,
    };
    // The latent states have norms.
    let shape = DecoderShape { head_norm: HeadNorm::Whole, ..LLAMA };
    let mut model = parts::of_layers(config, kind, hidden, routed, parts::ends(config, hidden, &shape)?, &shape)?;
    let zero = |field: &str| config.map.get(field).and_then(serde_json::Value::as_u64) == Some(0);
    let first = match zero("first_k_dense_replace") {
        true => 0,
        false => config.size("first_k_dense_replace")?.unwrap_or(0) as usize,
    };
    let step = config.size("moe_layer_freq")?.unwrap_or(1) as usize;
    let is_dense = |layer: usize| layer < first || !layer.is_multiple_of(step);
    if (0..model.layers.len()).any(is_dense) {
        let width = config.required("intermediate_size")?;
        with_dense(&mut model, &dense_of(&routed, width, vectors), is_dense);
    }
    if !zero("num_nextn_predict_layers") {
        model.prediction_layers = config.size("num_nextn_predict_layers")?.unwrap_or(0).min(64) as u32;
    }
    if model.prediction_layers > 0 {
        let remark = "layers that predict further tokens are trained on the last stage, beside the parameters counted";
        model.remarks.push(remark.into());
    }
    Ok(model)
}

//! Dense decoders derived from Llama: Qwen 3, SmolLM 3, Granite, Phi-3 and 4, Gemma, OLMo, Nemotron, Cohere and others.

use super::{
    super::model::{Details, FeedForward, LayerKind, Model},
    parts::{self, DecoderShape, HeadNorm, LLAMA},
};
use crate::{source::error::LoadError, workload::model::hugging_face::HuggingFaceConfig};

/// Reads architectures that differ from Llama only in biases, norms or defaults.
pub(super) fn like_llama(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let bias = config.flag("attention_bias", false)?;
    let block_bias = config.flag("mlp_bias", false)?;
    let own = DecoderShape { query_key_value_bias: bias, output_bias: bias, block_bias, ..LLAMA };
    let (shape, head_size) = match kind {
        "qwen3" => (DecoderShape { head_norm: HeadNorm::Shared, ..own }, Some(128)),
        "smollm3" => (DecoderShape { tied: true, ..own }, None),
        "internlm2" => {
            let bias = config.flag("bias", false)?;
            (DecoderShape { query_key_value_bias: bias, output_bias: bias, ..own }, None)
        }
        "stablelm" => {
            let norms = if config.flag("use_parallel_residual", false)? { 1 } else { 2 };
            (
                DecoderShape {
                    norm_vectors: 2,
                    norms,
                    query_key_value_bias: config.flag("use_qkv_bias", false)?,
                    ..LLAMA
                },
                None,
            )
        }
        "starcoder2" => {
            let bias = config.flag("use_bias", true)?;
            let biases = DecoderShape { query_key_value_bias: bias, output_bias: bias, block_bias: bias, ..LLAMA };
            (DecoderShape { norm_vectors: 2, gated: false, tied: true, ..biases }, None)
        }
        // OLMo's norms have no weights.
        "olmo" => (DecoderShape { norm_vectors: 0, ..own }, None),
        _ => (own, None),
    };
    let mut model = parts::decoder(config, kind, &shape, head_size)?;
    if kind == "qwen3" && config.flag("use_sliding_window", false)? || kind == "starcoder2" {
        parts::sliding(config, &mut model, Some(u64::MAX))?;
    }
    Ok(model)
}

/// Phi-3 and Phi-4.
pub(super) fn phi3(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let mut model = parts::decoder(config, kind, &LLAMA, None)?;
    parts::sliding(config, &mut model, Some(u64::MAX))?;
    Ok(model)
}

/// Gemma 1, 2 and 3: wide heads, tied embeddings. From version 2 on, norms before and after each block, and windows.
pub(super) fn gemma(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    // Gemma 3's files omit fields with the library's default.
    let mut map = config.map.clone();
    if kind.starts_with("gemma3") {
        for (field, size) in [("num_attention_heads", 8), ("num_key_value_heads", 4), ("vocab_size", 262_208)] {
            map.entry(field).or_insert_with(|| size.into());
        }
    }
    let config = &HuggingFaceConfig { map: &map, source: config.source };
    let bias = config.flag("attention_bias", false)?;
    let own = DecoderShape { tied: true, query_key_value_bias: bias, output_bias: bias, ..LLAMA };
    let (shape, pattern) = match kind {
        "gemma" => (own, None),
        "gemma2" => (DecoderShape { norms: 4, ..own }, Some(2)),
        _ => {
            let pattern = config.size("sliding_window_pattern")?.unwrap_or(6);
            (DecoderShape { norms: 4, head_norm: HeadNorm::Shared, ..own }, Some(pattern))
        }
    };
    let mut model = parts::decoder(config, kind, &shape, Some(256))?;
    if kind != "gemma" {
        parts::sliding(config, &mut model, pattern)?;
    }
    Ok(model)
}

/// OLMo 2 and 3: norms after the blocks, and norms over all queries and all keys.
pub(super) fn olmo2(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let bias = config.flag("attention_bias", false)?;
    let shape = DecoderShape { head_norm: HeadNorm::Whole, query_key_value_bias: bias, output_bias: bias, ..LLAMA };
    let mut model = parts::decoder(config, kind, &shape, None)?;
    if kind == "olmo3" {
        parts::sliding(config, &mut model, Some(4))?;
    }
    Ok(model)
}

/// Nemotron: a plain block with squared ReLU, norms with a shift.
pub(super) fn nemotron(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let bias = config.flag("attention_bias", false)?;
    let block_bias = config.flag("mlp_bias", false)?;
    let biases = DecoderShape { query_key_value_bias: bias, output_bias: bias, block_bias, ..LLAMA };
    parts::decoder(config, kind, &DecoderShape { norm_vectors: 2, gated: false, ..biases }, None)
}

/// Command R and R+: attention and feed-forward block in parallel after one norm without a shift.
pub(super) fn cohere(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let bias = config.flag("attention_bias", false)?;
    let head_norm = match kind {
        "cohere" if config.flag("use_qk_norm", false)? => HeadNorm::Whole,
        _ => HeadNorm::None,
    };
    let biases = DecoderShape { query_key_value_bias: bias, output_bias: bias, ..LLAMA };
    let mut model = parts::decoder(config, kind, &DecoderShape { norms: 1, head_norm, tied: true, ..biases }, None)?;
    // The norm has no shift but subtracts the mean: engines have no name for this kind.
    model.details = model.details.map(|details| Details { norm: None, ..details });
    if kind == "cohere2" {
        let pattern = config.size("sliding_window_pattern")?.unwrap_or(4);
        parts::sliding(config, &mut model, Some(pattern))?;
    }
    Ok(model)
}

/// Dense variant of a kind of layer, for models that have both.
pub(super) fn dense_of(layer: &LayerKind, width: u64, vectors: u64) -> LayerKind {
    LayerKind { feed_forward: FeedForward::Dense { width, gated: true }, vectors, ..*layer }
}

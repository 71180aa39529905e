//! Decoders with field names of their own: OPT, BLOOM, Falcon, GPT-J, Phi-2.

use super::{
    super::model::{Attention, Details, FeedForward, LayerKind, Model, Span},
    parts::{self, DecoderShape, LLAMA},
};
use crate::{source::error::LoadError, workload::model::hugging_face::HuggingFaceConfig};

/// Shape of GPT's layers: biases everywhere, norms with a shift, a plain block.
const GPT: DecoderShape = DecoderShape {
    norm_vectors: 2,
    query_key_value_bias: true,
    output_bias: true,
    block_bias: true,
    gated: false,
    tied: true,
    ..LLAMA
};

fn dense(attention: Attention, hidden: u64, width: u64, shape: &DecoderShape) -> LayerKind {
    LayerKind {
        attention,
        mixer: None,
        span: Span::Full,
        causal: true,
        cross: false,
        feed_forward: FeedForward::Dense { width, gated: shape.gated },
        vectors: shape.attention_vectors(hidden, &attention) + shape.block_vectors(hidden, width),
    }
}

/// OPT: learned positions with two extra rows. The 350M model has narrower embeddings and no last norm.
pub(super) fn opt(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let bias = config.flag("enable_bias", true)?;
    let shape = DecoderShape { query_key_value_bias: bias, output_bias: bias, block_bias: bias, ..GPT };
    let attention = parts::grouped(config, hidden, None)?;
    let layer = dense(attention, hidden, config.required("ffn_dim")?, &shape);
    let positions = config.required("max_position_embeddings")?;
    let token_width = config.size("word_embed_proj_dim")?.unwrap_or(hidden);
    let mut ends = parts::ends(config, hidden, &shape)?;
    let projected = if token_width == hidden { 0 } else { token_width * hidden };
    ends.token_width = token_width;
    ends.positions = positions + 2;
    ends.before = (positions + 2) * hidden + projected;
    ends.after = projected;
    if config.flag("do_layer_norm_before", true)? && !config.flag("_remove_final_layer_norm", false)? {
        ends.after += 2 * hidden;
    }
    let mut model = parts::of_layers(config, kind, hidden, layer, ends, &shape)?;
    model.dropout = parts::share(config, "dropout", 0.1)? > 0.0;
    Ok(model)
}

/// BLOOM: a norm after the embedding, positions as slopes.
pub(super) fn bloom(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let either = |one: &str, other: &str| match config.size(one)? {
        Some(size) => Ok(size),
        None => config.required(other),
    };
    let hidden = either("hidden_size", "n_embed")?;
    let heads = either("n_head", "num_attention_heads")?;
    let head_size = config.head_size(hidden, heads, "n_head")?;
    let attention = Attention::Grouped { heads, key_value_heads: heads, head_size };
    let mut ends = parts::ends(config, hidden, &GPT)?;
    ends.before = 2 * hidden;
    let layers = if config.map.contains_key("n_layer") { "n_layer" } else { "num_hidden_layers" };
    let layer = dense(attention, hidden, 4 * hidden, &GPT);
    let count = config.layers(layers)? as usize;
    let mut model = Model::uniform(&config.name(kind)?, config.source, hidden, layer, count, ends);
    model.longest_sequence = config.size("seq_length")?.unwrap_or(2048);
    model.details = Some(Details { slopes: true, ..GPT.details() });
    model.dropout = parts::share(config, "hidden_dropout", 0.0)? > 0.0;
    Ok(model)
}

/// Falcon, both architectures: 7B with one key-value head; 40B, 180B and 11B with groups and one or two parallel norms.
pub(super) fn falcon(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let heads = match config.size("num_attention_heads")? {
        Some(heads) => heads,
        None => config.required("n_head")?,
    };
    let head_size = config.head_size(hidden, heads, "num_attention_heads")?;
    let new = config.flag("new_decoder_architecture", kind == "RefinedWeb")?;
    let key_value_heads = if new {
        match config.size("num_kv_heads")? {
            Some(groups) => groups,
            None => config.size("n_head_kv")?.unwrap_or(heads),
        }
    } else if config.flag("multi_query", true)? {
        1
    } else {
        heads
    };
    let parallel = config.flag("parallel_attn", true)?;
    let one = !new && parallel || new && config.size("num_ln_in_parallel_attn")? == Some(1);
    let bias = config.flag("bias", false)?;
    let shape = DecoderShape {
        norms: if one { 1 } else { 2 },
        query_key_value_bias: bias,
        output_bias: bias,
        block_bias: bias,
        ..GPT
    };
    let attention = Attention::Grouped { heads, key_value_heads, head_size };
    let width = config.size("ffn_hidden_size")?.unwrap_or(4 * hidden);
    let layers = if config.map.contains_key("n_layer") { "n_layer" } else { "num_hidden_layers" };
    let count = config.layers(layers)? as usize;
    let layer = dense(attention, hidden, width, &shape);
    let ends = parts::ends(config, hidden, &shape)?;
    let mut model = Model::uniform(&config.name(kind)?, config.source, hidden, layer, count, ends);
    model.longest_sequence = config.size("max_position_embeddings")?.unwrap_or(2048);
    model.dropout = parts::share(config, "hidden_dropout", 0.0)? > 0.0;
    model.details = Some(Details { slopes: config.flag("alibi", false)?, ..shape.details() });
    Ok(model)
}

/// GPT-J: attention without biases in parallel to a block with biases, after one norm; a projection with a bias.
pub(super) fn gptj(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("n_embd")?;
    let heads = config.required("n_head")?;
    let head_size = config.head_size(hidden, heads, "n_head")?;
    let shape = DecoderShape {
        norms: 1,
        query_key_value_bias: false,
        output_bias: false,
        tied: false,
        projection_bias: true,
        ..GPT
    };
    let width = config.size("n_inner")?.unwrap_or(4 * hidden);
    let layer = dense(Attention::Grouped { heads, key_value_heads: heads, head_size }, hidden, width, &shape);
    let ends = parts::ends(config, hidden, &shape)?;
    let count = config.layers("n_layer")? as usize;
    let mut model = Model::uniform(&config.name(kind)?, config.source, hidden, layer, count, ends);
    model.longest_sequence = config.size("n_positions")?.unwrap_or(2048);
    model.details = Some(shape.details());
    model.dropout = parts::share(config, "resid_pdrop", 0.0)? > 0.0;
    Ok(model)
}

/// Phi-1 and 2: attention and block in parallel after one norm, biases everywhere.
pub(super) fn phi(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let shape = DecoderShape { norms: 1, tied: false, projection_bias: true, ..GPT };
    let mut model = parts::decoder(config, kind, &shape, None)?;
    model.dropout = parts::share(config, "resid_pdrop", 0.0)? > 0.0;
    Ok(model)
}

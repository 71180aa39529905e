//! Encoders and encoder-decoders: RoBERTa and similar models, DistilBERT, ViT, T5.

use super::{
    super::model::{Attention, Ends, FeedForward, LayerKind, Model, Projection, Span},
    parts::{self, DecoderShape, LLAMA},
};
use crate::{source::error::LoadError, workload::model::hugging_face::HuggingFaceConfig};

/// Shape of BERT's layers.
const BERT: DecoderShape = DecoderShape {
    norm_vectors: 2,
    query_key_value_bias: true,
    output_bias: true,
    block_bias: true,
    gated: false,
    ..LLAMA
};

fn layer(attention: Attention, hidden: u64, width: u64, shape: &DecoderShape) -> LayerKind {
    LayerKind {
        attention,
        mixer: None,
        span: Span::Full,
        causal: false,
        cross: false,
        feed_forward: FeedForward::Dense { width, gated: shape.gated },
        vectors: shape.attention_vectors(hidden, &attention) + shape.block_vectors(hidden, width),
    }
}

/// RoBERTa, XLM-RoBERTa, CamemBERT: BERT with other positions and another head.
pub(super) fn roberta(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let attention = parts::grouped(config, hidden, None)?;
    let positions = config.required("max_position_embeddings")?;
    let types = config.size("type_vocab_size")?.unwrap_or(1);
    let vocabulary = config.required("vocab_size")?;
    let masked = parts::is_class(config, &["ForMaskedLM"]);
    let pool = hidden * hidden + hidden;
    let ends = Ends {
        vocabulary,
        token_width: hidden,
        positions,
        before: (positions + types) * hidden + 2 * hidden,
        after: if masked { pool + 2 * hidden + vocabulary } else { pool },
        projection: if masked { Projection::Tied } else { Projection::None },
    };
    let kind_of = layer(attention, hidden, config.required("intermediate_size")?, &BERT);
    let mut model = parts::of_layers(config, kind, hidden, kind_of, ends, &BERT)?;
    // The first two positions are for padding.
    model.longest_sequence = positions.saturating_sub(2).max(1);
    model.dropout = parts::share(config, "hidden_dropout_prob", 0.1)? > 0.0;
    Ok(model)
}

/// DistilBERT.
pub(super) fn distilbert(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("dim")?;
    let heads = config.required("n_heads")?;
    let head_size = config.head_size(hidden, heads, "n_heads")?;
    let attention = Attention::Grouped { heads, key_value_heads: heads, head_size };
    let positions = config.required("max_position_embeddings")?;
    let vocabulary = config.required("vocab_size")?;
    let masked = parts::is_class(config, &["ForMaskedLM"]);
    let ends = Ends {
        vocabulary,
        token_width: hidden,
        positions,
        before: positions * hidden + 2 * hidden,
        after: if masked { hidden * hidden + 3 * hidden + vocabulary } else { 0 },
        projection: if masked { Projection::Tied } else { Projection::None },
    };
    let kind_of = layer(attention, hidden, config.required("hidden_dim")?, &BERT);
    let count = config.layers("n_layers")? as usize;
    let mut model = Model::uniform(&config.name(kind)?, config.source, hidden, kind_of, count, ends);
    model.longest_sequence = positions;
    model.details = Some(BERT.details());
    model.dropout = parts::share(config, "dropout", 0.1)? > 0.0;
    Ok(model)
}

/// ViT: a sequence of patches after one class token.
pub(super) fn vit(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let attention = parts::grouped(config, hidden, None)?;
    let (image, patch) = (config.required("image_size")?, config.required("patch_size")?);
    if patch > image {
        return Err(config.error("patch_size", format!("is {patch}, more than image_size {image}"), "correct one"));
    }
    let channels = config.size("num_channels")?.unwrap_or(3);
    let sequence = (image / patch).pow(2) + 1;
    let bias = config.flag("qkv_bias", true)?;
    let classes = match config.map.get("id2label") {
        Some(serde_json::Value::Object(labels)) => labels.len() as u64,
        _ => config.size("num_labels")?.unwrap_or(2),
    };
    let pool = hidden * hidden + hidden;
    let classifies = parts::is_class(config, &["ForImageClassification"]);
    let ends = Ends {
        vocabulary: 0,
        token_width: hidden,
        positions: sequence,
        before: patch * patch * channels * hidden + hidden + hidden + sequence * hidden,
        after: 2 * hidden + if classifies { classes * (hidden + 1) } else { pool },
        projection: Projection::None,
    };
    let shape = DecoderShape { query_key_value_bias: bias, ..BERT };
    let kind_of = layer(attention, hidden, config.required("intermediate_size")?, &shape);
    let mut model = parts::of_layers(config, kind, hidden, kind_of, ends, &shape)?;
    model.longest_sequence = sequence;
    model.dropout = parts::share(config, "hidden_dropout_prob", 0.0)? > 0.0;
    Ok(model)
}

/// T5 and mT5: encoder layers, then decoder layers that also attend to the encoder's output.
pub(super) fn t5(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("d_model")?;
    let heads = config.required("num_heads")?;
    let attention = Attention::Grouped { heads, key_value_heads: heads, head_size: config.required("d_kv")? };
    let gated = match config.text("feed_forward_proj")? {
        None => kind == "mt5",
        Some("relu" | "gelu") => false,
        Some("gated-gelu") => true,
        Some(other) => {
            let problem = format!("is `{}`, which is not known", crate::text::printable(other));
            return Err(config.error("feed_forward_proj", problem, "known are relu, gelu and gated-gelu"));
        }
    };
    let width = config.required("d_ff")?;
    let shape = DecoderShape { gated, ..LLAMA };
    let encoder = layer(attention, hidden, width, &shape);
    let decoder = LayerKind { causal: true, cross: true, vectors: encoder.vectors + hidden, ..encoder };
    let layers = config.layers("num_layers")? as usize;
    let behind = match config.size("num_decoder_layers")? {
        Some(_) => config.layers("num_decoder_layers")? as usize,
        None => layers,
    };
    let buckets = config.size("relative_attention_num_buckets")?.unwrap_or(32);
    let tied = config.flag("tie_word_embeddings", true)?;
    let ends = Ends {
        vocabulary: config.required("vocab_size")?,
        token_width: hidden,
        positions: 0,
        // The first layer of each half has a table of relative positions, and each half ends with a norm.
        before: buckets * heads,
        after: buckets * heads + 2 * hidden,
        projection: if tied { Projection::Tied } else { Projection::Own },
    };
    let mut model = Model::uniform(&config.name(kind)?, config.source, hidden, encoder, layers, ends);
    model.kinds.push(decoder);
    model.layers.extend(std::iter::repeat_n(1, behind));
    model.details = Some(shape.details());
    model.longest_sequence = config.size("n_positions")?.unwrap_or(512);
    model.dropout = parts::share(config, "dropout_rate", 0.1)? > 0.0;
    model.remarks.push("encoder and decoder see sequences of the same length".into());
    Ok(model)
}

//! Decoders of 2025: dense ones that differ from Llama in norms and biases, and mixtures with shared experts.

use serde_json::Value;

use super::{
    super::{
        mixer::Mixer,
        model::{Attention, Experts, FeedForward, LayerKind, Model, Span},
    },
    decoders::dense_of,
    experts::with_dense,
    latent,
    parts::{self, DecoderShape, HeadNorm, LLAMA, count},
};
use crate::{source::error::LoadError, workload::model::hugging_face::HuggingFaceConfig};

/// Dense decoders: Seed-OSS, Hunyuan, Ernie 4.5, Arcee, EXAONE 4, GLM 4, Apertus, Ministral.
pub(super) fn dense(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let bias = config.flag("attention_bias", false)?;
    let block_bias = config.flag("mlp_bias", false)?;
    let own = DecoderShape { query_key_value_bias: bias, output_bias: bias, block_bias, ..LLAMA };
    let (shape, head_size) = match kind {
        "seed_oss" => {
            let query = config.flag("attention_bias", true)?;
            let output_bias = config.flag("attention_out_bias", false)?;
            (DecoderShape { query_key_value_bias: query, output_bias, ..own }, None)
        }
        "hunyuan_v1_dense" => (DecoderShape { head_norm: HeadNorm::Shared, ..own }, None),
        "ernie4_5" => {
            let bias = config.flag("use_bias", false)?;
            let biases = DecoderShape { query_key_value_bias: bias, output_bias: bias, block_bias: bias, ..LLAMA };
            (DecoderShape { tied: true, ..biases }, Some(128))
        }
        "arcee" => (DecoderShape { gated: false, ..own }, None),
        "exaone4" => (DecoderShape { head_norm: HeadNorm::Shared, ..LLAMA }, None),
        "glm" | "glm4" => {
            let norms = if kind == "glm" { 2 } else { 4 };
            (DecoderShape { norms, query_key_value_bias: bias, ..LLAMA }, Some(128))
        }
        "apertus" => (DecoderShape { gated: false, head_norm: HeadNorm::Shared, ..own }, None),
        _ => (own, None),
    };
    let mut model = parts::decoder(config, kind, &shape, head_size)?;
    match kind {
        // The activation function has two learned numbers.
        "apertus" => model.kinds[0].vectors += 2,
        "exaone4" => parts::sliding(config, &mut model, Some(4))?,
        "ministral" => parts::sliding(config, &mut model, Some(u64::MAX))?,
        _ => {}
    }
    Ok(model)
}

/// Gemma 3n: embeddings of every layer, four copies of the hidden state (AltUp), a low-rank path beside attention
/// (LAuReL), and last layers that take keys and values from earlier ones. The small matrices count as parameters and
/// take no time of their own.
pub(super) fn gemma3n(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let mut map = config.map.clone();
    for (field, usual) in [
        ("hidden_size_per_layer_input", 256),
        ("vocab_size_per_layer_input", 262_144),
        ("laurel_rank", 64),
        ("altup_num_inputs", 4),
        ("num_kv_shared_layers", 15),
    ] {
        map.entry(field).or_insert_with(|| usual.into());
    }
    if let Some(width) = parts::first(config, "intermediate_size")? {
        map.insert("intermediate_size".into(), width.into());
    }
    let config = &HuggingFaceConfig { map: &map, source: config.source };
    let hidden = config.required("hidden_size")?;
    let per_layer = config.required("hidden_size_per_layer_input")?;
    let rank = config.required("laurel_rank")?;
    let copies = config.required("altup_num_inputs")?;
    let shape = DecoderShape { tied: true, norms: 4, head_norm: HeadNorm::Shared, ..LLAMA };
    let mut model = parts::decoder(config, kind, &shape, Some(256))?;
    // AltUp: scale, router and its norm, corrections and predictions. LAuReL and the inputs of the layer, with norms.
    let altup = (2 + copies) * hidden + copies * copies + copies * copies * copies;
    let own = 2 * hidden * rank + hidden + 2 * hidden * per_layer + hidden;
    model.kinds[0].vectors += altup + own;
    let layers = model.layers.len() as u64;
    let rows = config.required("vocab_size_per_layer_input")?;
    model.ends.before += layers * per_layer * (rows + hidden) + per_layer + (copies - 1) * hidden * hidden;
    model.ends.after += (copies - 1) * hidden * hidden;
    let shared = count(config, "num_kv_shared_layers").min(layers) as usize;
    parts::sliding(config, &mut model, Some(5))?;
    let first = model.layers.len() - shared;
    for layer in first..model.layers.len() {
        let mut own = *model.kind(layer);
        if let Attention::Grouped { key_value_heads, head_size, .. } = &mut own.attention {
            // Neither keys and values nor the norm of keys.
            own.vectors -= *head_size;
            *key_value_heads = 0;
        }
        let known = model.kinds.iter().position(|kind| *kind == own);
        let index = known.unwrap_or_else(|| {
            model.kinds.push(own);
            model.kinds.len() - 1
        });
        model.layers[layer] = index as u16;
    }
    parts::drop_unused(&mut model);
    model
        .remarks
        .push("AltUp, LAuReL and the inputs of every layer count as parameters; their products are not timed".into());
    Ok(model)
}

/// Mixtures with shared experts after a few dense layers: GLM 4.5 and 4.6, MiniMax-M2, Ernie 4.5, Hunyuan, dots1, Ling.
pub(super) fn mixture(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let attention = parts::grouped(config, hidden, None)?;
    let bias = config.flag("attention_bias", false)?;
    let (shape, names) = match kind {
        "glm4_moe" => {
            let norm = if config.flag("use_qk_norm", false)? { HeadNorm::Shared } else { HeadNorm::None };
            (DecoderShape { query_key_value_bias: bias, head_norm: norm, ..LLAMA }, DEEPSEEK_NAMES)
        }
        "dots1" => {
            let biases = DecoderShape { query_key_value_bias: bias, output_bias: bias, ..LLAMA };
            (DecoderShape { head_norm: HeadNorm::Shared, ..biases }, DEEPSEEK_NAMES)
        }
        "minimax_m2" => {
            let norm = if config.flag("use_qk_norm", true)? { HeadNorm::Whole } else { HeadNorm::None };
            let names =
                ExpertNames { count: "num_local_experts", width: "intermediate_size", shared: "", ..DEEPSEEK_NAMES };
            (DecoderShape { head_norm: norm, ..LLAMA }, names)
        }
        "ernie4_5_moe" => {
            let bias = config.flag("use_bias", false)?;
            let shape = DecoderShape { query_key_value_bias: bias, output_bias: bias, tied: true, ..LLAMA };
            let names = ExpertNames {
                count: "moe_num_experts",
                chosen: "moe_k",
                shared: "moe_num_shared_experts",
                dense: "moe_layer_start_index",
                ..DEEPSEEK_NAMES
            };
            (shape, names)
        }
        "hunyuan_v1_moe" => {
            let biases = DecoderShape { query_key_value_bias: bias, output_bias: bias, ..LLAMA };
            let names = ExpertNames {
                count: "num_experts",
                chosen: "moe_topk",
                width: "intermediate_size",
                shared: "num_shared_expert",
                ..DEEPSEEK_NAMES
            };
            (DecoderShape { head_norm: HeadNorm::Shared, ..biases }, names)
        }
        _ => {
            let norm = if config.flag("use_qk_norm", false)? { HeadNorm::Shared } else { HeadNorm::None };
            let bias = config.flag("use_qkv_bias", false)?;
            let names = ExpertNames { count: "num_experts", shared: "num_shared_experts", ..DEEPSEEK_NAMES };
            (DecoderShape { query_key_value_bias: bias, head_norm: norm, ..LLAMA }, names)
        }
    };
    parts::usual(config, &[("moe_layer_interval", 1.into()), ("use_cla", false.into()), ("mlp_bias", false.into())])?;
    let last = config.map.get("moe_layer_end_index").and_then(Value::as_i64).unwrap_or(-1);
    if last >= 0 && last + 1 != i64::from(config.layers("num_hidden_layers")?) {
        let problem = format!("is {last}: dense layers after those with experts are not modelled");
        return Err(config.error("moe_layer_end_index", problem, ""));
    }
    let width = match parts::first(config, names.width)? {
        Some(width) => width,
        None => config.required(names.width)?,
    };
    let shared = match kind {
        "hunyuan_v1_moe" => parts::first(config, names.shared)?.unwrap_or(1),
        _ => count(config, names.shared),
    };
    let chosen = match parts::first(config, names.chosen)? {
        Some(chosen) => chosen,
        None => config.required(names.chosen)?,
    };
    let experts = Experts {
        count: config.required(names.count)?,
        chosen,
        width,
        shared_width: shared.min(1 << 10) * width,
        gated: true,
        node_limit: latent::node_limit(config)?,
        latent: None,
    };
    let vectors = shape.attention_vectors(hidden, &attention);
    // The bias that balances the load is a parameter of Ernie; elsewhere it is none.
    let balance = if kind == "ernie4_5_moe" { experts.count } else { 0 };
    let routed = LayerKind::decoder(attention, FeedForward::Experts(experts), vectors + balance);
    let mut model = parts::of_layers(config, kind, hidden, routed, parts::ends(config, hidden, &shape)?, &shape)?;
    let first = if names.dense.is_empty() { 0 } else { count(config, names.dense) as usize };
    if first > 0 {
        let width = config.required("intermediate_size")?;
        with_dense(&mut model, &dense_of(&routed, width, vectors), |layer| layer < first);
    }
    latent::predictions(config, &mut model)?;
    Ok(model)
}

/// Names of the fields of a mixture.
#[derive(Clone, Copy)]
struct ExpertNames {
    count: &'static str,
    chosen: &'static str,
    width: &'static str,
    shared: &'static str,
    /// Number of dense layers before the first with experts.
    dense: &'static str,
}

const DEEPSEEK_NAMES: ExpertNames = ExpertNames {
    count: "n_routed_experts",
    chosen: "num_experts_per_tok",
    width: "moe_intermediate_size",
    shared: "n_shared_experts",
    dense: "first_k_dense_replace",
};

/// Qwen 3 Next: three layers of gated DeltaNet, then one of attention with an output gate; experts in all.
pub(super) fn qwen3_next(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let none = Value::Array(vec![]);
    parts::usual(
        config,
        &[("decoder_sparse_step", 1.into()), ("mlp_only_layers", none), ("attention_bias", false.into())],
    )?;
    let hidden = config.required("hidden_size")?;
    let attention = parts::grouped(config, hidden, Some(256))?;
    let width = config.required("moe_intermediate_size")?;
    let experts = Experts {
        count: config.required("num_experts")?,
        chosen: config.required("num_experts_per_tok")?,
        width,
        shared_width: config.required("shared_expert_intermediate_size")?,
        gated: true,
        node_limit: None,
        latent: None,
    };
    let shape = DecoderShape { head_norm: HeadNorm::Shared, ..LLAMA };
    let full = LayerKind {
        attention,
        // Queries bring a gate for the output.
        mixer: Some(Mixer::gate(attention.heads() * attention.head_size())),
        span: Span::Full,
        causal: true,
        cross: false,
        feed_forward: FeedForward::Experts(experts),
        vectors: shape.attention_vectors(hidden, &attention) + hidden,
    };
    let (keys, values) = (config.required("linear_num_key_heads")?, config.required("linear_num_value_heads")?);
    let (key, value) = (config.required("linear_key_head_dim")?, config.required("linear_value_head_dim")?);
    let channels = 2 * keys * key + values * value;
    let delta = Mixer {
        entry: channels + values * value + 2 * values,
        exit: values * value,
        channels,
        heads: values,
        groups: keys,
        width: value,
        state: key,
        chunk: 64,
        ..Mixer::gate(0)
    };
    let kernel = config.size("linear_conv_kernel_dim")?.unwrap_or(4);
    // Convolution, decay and step of every head, norm of the output, two norms of the layer, gate of the shared expert.
    let vectors = kernel * channels + 2 * values + value + 2 * hidden + hidden;
    let linear = LayerKind { attention: LayerKind::NO_ATTENTION, mixer: Some(delta), vectors, ..full };
    let mut model = parts::of_layers(config, kind, hidden, full, parts::ends(config, hidden, &shape)?, &shape)?;
    model.kinds = vec![full, linear];
    let is_full =
        parts::layer_types(config, &model, &["full_attention"], &["linear_attention"], |layer| (layer + 1) % 4 == 0)?;
    model.layers = is_full.into_iter().map(|full| u16::from(!full)).collect();
    parts::drop_unused(&mut model);
    Ok(model)
}

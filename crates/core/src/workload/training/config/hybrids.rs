//! State-space models and their hybrids with attention: Mamba, Mamba 2, Jamba, Bamba, Granite 4, Nemotron-H, Falcon-H1,
//! LFM2.

use serde_json::Value;

use super::{
    super::{
        mixer::Mixer,
        model::{Attention, Experts, FeedForward, LayerKind, Model},
    },
    parts::{self, DecoderShape, HeadNorm, LLAMA, count},
};
use crate::{source::error::LoadError, workload::model::hugging_face::HuggingFaceConfig};

const NOTHING: FeedForward = FeedForward::Dense { width: 0, gated: false };

/// Layer with this attention, mixer and block.
fn layer(attention: Attention, mixer: Option<Mixer>, feed_forward: FeedForward, vectors: u64) -> LayerKind {
    LayerKind { mixer, ..LayerKind::decoder(attention, feed_forward, vectors) }
}

/// Mamba 2 mixer and the elements of its vectors: convolution, three numbers of every head, norm of the output.
fn mamba2(
    config: &HuggingFaceConfig<'_>,
    [heads, width, groups, state, kernel, chunk]: [&str; 6],
    normed: bool,
) -> Result<(Mixer, u64), LoadError> {
    let no = |field| (field, Value::Bool(false));
    parts::usual(config, &["mamba_proj_bias", "use_bias", "attention_bias", "mlp_bias", "projectors_bias"].map(no))?;
    let groups = config.size(groups)?.unwrap_or(1);
    let chunk = config.size(chunk)?.unwrap_or(256);
    let mixer = Mixer::mamba2(config.required(heads)?, config.required(width)?, groups, config.required(state)?, chunk);
    let kernel = config.size(kernel)?.unwrap_or(4);
    let bias = if config.flag("mamba_conv_bias", config.flag("use_conv_bias", true)?)? { 1 } else { 0 };
    let norm = if normed { mixer.exit } else { 0 };
    Ok((mixer, (kernel + bias) * mixer.channels + 3 * mixer.heads + norm))
}

const NAMES: [&str; 6] =
    ["mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv", "mamba_chunk_size"];

/// Mamba 1 mixer and the elements of its vectors; Jamba has norms for step and states.
fn mamba1(hidden: u64, [expand, state, rank, kernel]: [u64; 4], normed: bool) -> (Mixer, u64) {
    let inner = expand * hidden;
    let mixer = Mixer {
        entry: 2 * inner,
        exit: inner,
        inner: [[rank + 2 * state, inner], [inner, rank]],
        channels: inner,
        heads: inner,
        groups: 1,
        width: 1,
        state,
        chunk: 1,
    };
    // Convolution with bias, decay of every channel and state, skip, bias of the step.
    let vectors = (kernel + 1) * inner + inner * state + 2 * inner;
    (mixer, vectors + if normed { rank + 2 * state } else { 0 })
}

/// Mamba and Mamba 2: mixers alone.
pub(super) fn mamba(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let (mixer, vectors) = if kind == "mamba2" {
        mamba2(config, ["num_heads", "head_dim", "n_groups", "state_size", "conv_kernel", "chunk_size"], true)?
    } else {
        parts::usual(config, &[("use_bias", false.into()), ("use_conv_bias", true.into())])?;
        let rank = match config.map.get("time_step_rank") {
            Some(Value::Number(_)) => config.required("time_step_rank")?,
            _ => hidden.div_ceil(16),
        };
        let sizes = [
            config.size("expand")?.unwrap_or(2),
            config.size("state_size")?.unwrap_or(16),
            rank,
            config.size("conv_kernel")?.unwrap_or(4),
        ];
        mamba1(hidden, sizes, false)
    };
    let shape = DecoderShape { norms: 1, tied: kind == "mamba", ..LLAMA };
    let own = layer(LayerKind::NO_ATTENTION, Some(mixer), NOTHING, vectors + hidden);
    let mut model = parts::of_layers(config, kind, hidden, own, parts::ends(config, hidden, &shape)?, &shape)?;
    model.longest_sequence = 1 << 20;
    Ok(model)
}

/// Granite 4 hybrid and Bamba: Mamba 2 in most layers, attention in a few, a dense block or experts in all.
pub(super) fn granite(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let attention = parts::grouped(config, hidden, None)?;
    let (mixer, vectors) = mamba2(config, NAMES, true)?;
    let routed = count(config, "num_local_experts");
    let feed_forward = match (kind, routed) {
        ("bamba", _) => FeedForward::Dense { width: config.required("intermediate_size")?, gated: true },
        (_, 0) => FeedForward::Dense { width: config.required("shared_intermediate_size")?, gated: true },
        _ => FeedForward::Experts(Experts {
            count: routed,
            chosen: config.required("num_experts_per_tok")?,
            width: config.required("intermediate_size")?,
            shared_width: config.required("shared_intermediate_size")?,
            gated: true,
            node_limit: None,
            latent: None,
        }),
    };
    let shape = DecoderShape { tied: kind != "bamba", ..LLAMA };
    let state = layer(LayerKind::NO_ATTENTION, Some(mixer), feed_forward, vectors + 2 * hidden);
    let full = layer(attention, None, feed_forward, 2 * hidden);
    let mut model = parts::of_layers(config, kind, hidden, state, parts::ends(config, hidden, &shape)?, &shape)?;
    model.kinds = vec![state, full];
    let listed: Vec<u64> = config
        .map
        .get("attn_layer_indices")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_u64).collect())
        .unwrap_or_default();
    let is_full = parts::layer_types(config, &model, &["attention", "full_attention"], &["mamba"], |layer| {
        listed.contains(&(layer as u64))
    })?;
    model.layers = is_full.into_iter().map(u16::from).collect();
    parts::drop_unused(&mut model);
    Ok(model)
}

/// Nemotron-H and Nemotron 3: every layer is one block, named by a letter: M state, * attention, - dense, E experts.
pub(super) fn nemotron_h(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let attention = parts::grouped(config, hidden, Some(128))?;
    let names = ["mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel", "chunk_size"];
    let (mixer, vectors) = mamba2(config, names, true)?;
    let shape = DecoderShape { norms: 1, gated: false, head_norm: HeadNorm::None, ..LLAMA };
    let width = config.size("intermediate_size")?.unwrap_or(0);
    let routed = count(config, "n_routed_experts");
    let experts = if routed > 0 {
        FeedForward::Experts(Experts {
            count: routed,
            chosen: config.required("num_experts_per_tok")?,
            width: config.required("moe_intermediate_size")?,
            shared_width: count(config, "n_shared_experts").max(1)
                * config.size("moe_shared_expert_intermediate_size")?.unwrap_or(0),
            gated: false,
            node_limit: None,
            latent: config.size("moe_latent_size")?,
        })
    } else {
        NOTHING
    };
    let kinds = vec![
        layer(LayerKind::NO_ATTENTION, Some(mixer), NOTHING, vectors + hidden),
        layer(attention, None, NOTHING, hidden),
        layer(LayerKind::NO_ATTENTION, None, FeedForward::Dense { width, gated: false }, hidden),
        layer(LayerKind::NO_ATTENTION, None, experts, hidden),
    ];
    let pattern = match config.map.get("layers_block_type").and_then(Value::as_array) {
        Some(types) => letters(config, types)?,
        None => config.text("hybrid_override_pattern")?.unwrap_or_default().to_string(),
    };
    if pattern.is_empty() || pattern.len() > 4096 {
        return Err(config.error("hybrid_override_pattern", "is missing", "give a letter for every layer"));
    }
    let letters = ['M', '*', '-', 'E'];
    let layers: Option<Vec<u16>> =
        pattern.chars().map(|letter| letters.iter().position(|known| *known == letter).map(|at| at as u16)).collect();
    let Some(layers) = layers else {
        return Err(config.error("hybrid_override_pattern", "has a letter other than M, *, - and E", "correct it"));
    };
    if layers.contains(&3) && routed == 0 {
        return Err(config.error("n_routed_experts", "is missing, but layers have experts", "add it"));
    }
    let mut map = config.map.clone();
    map.insert("num_hidden_layers".into(), layers.len().into());
    let config = &HuggingFaceConfig { map: &map, source: config.source };
    let mut model = parts::of_layers(config, kind, hidden, kinds[0], parts::ends(config, hidden, &shape)?, &shape)?;
    (model.kinds, model.layers) = (kinds, layers);
    parts::drop_unused(&mut model);
    Ok(model)
}

/// Letters of Nemotron's layers, which newer files name in words.
fn letters(config: &HuggingFaceConfig<'_>, types: &[Value]) -> Result<String, LoadError> {
    let letter = |name: &Value| match name.as_str() {
        Some("mamba") => Some('M'),
        Some("attention" | "full_attention") => Some('*'),
        Some("mlp") => Some('-'),
        Some("moe") => Some('E'),
        _ => None,
    };
    let all: Option<String> = types.iter().map(letter).collect();
    all.ok_or_else(|| {
        let repair = "write mamba, attention, mlp or moe for every layer";
        config.error("layers_block_type", "has a layer of an unknown kind", repair)
    })
}

/// Falcon-H1: attention and Mamba 2 side by side in every layer, then a dense block.
pub(super) fn falcon_h1(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let attention = parts::grouped(config, hidden, None)?;
    let normed = config.flag("mamba_rms_norm", false)?;
    let (mixer, vectors) = mamba2(config, NAMES, normed)?;
    let block = FeedForward::Dense { width: config.required("intermediate_size")?, gated: true };
    let own = layer(attention, Some(mixer), block, vectors + 2 * hidden);
    parts::of_layers(config, kind, hidden, own, parts::ends(config, hidden, &LLAMA)?, &LLAMA)
}

/// Jamba: Mamba 1 in most layers, attention in one of a period; experts in every other layer.
pub(super) fn jamba(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    parts::usual(config, &[("mamba_proj_bias", false.into()), ("mamba_conv_bias", true.into())])?;
    let attention = parts::grouped(config, hidden, None)?;
    let rank = match config.map.get("mamba_dt_rank") {
        Some(Value::Number(_)) => config.required("mamba_dt_rank")?,
        _ => hidden.div_ceil(16),
    };
    let sizes = [
        config.size("mamba_expand")?.unwrap_or(2),
        config.size("mamba_d_state")?.unwrap_or(16),
        rank,
        config.size("mamba_d_conv")?.unwrap_or(4),
    ];
    let (mixer, vectors) = mamba1(hidden, sizes, true);
    let width = config.required("intermediate_size")?;
    let dense = FeedForward::Dense { width, gated: true };
    let experts = config.size("num_experts")?.unwrap_or(16);
    let routed = FeedForward::Experts(Experts {
        count: experts,
        chosen: config.size("num_experts_per_tok")?.unwrap_or(2),
        width,
        shared_width: 0,
        gated: true,
        node_limit: None,
        latent: None,
    });
    let state = |block| layer(LayerKind::NO_ATTENTION, Some(mixer), block, vectors + 2 * hidden);
    let full = |block| layer(attention, None, block, 2 * hidden);
    let own = state(dense);
    let mut model = parts::of_layers(config, kind, hidden, own, parts::ends(config, hidden, &LLAMA)?, &LLAMA)?;
    model.kinds = vec![state(dense), state(routed), full(dense), full(routed)];
    let at = |period: &str, usual: u64, offset: &str, own: u64| -> Result<(usize, usize), LoadError> {
        let offset = if config.map.contains_key(offset) { count(config, offset) } else { own };
        Ok((config.size(period)?.unwrap_or(usual) as usize, offset as usize))
    };
    let (attention_period, attention_offset) = at("attn_layer_period", 8, "attn_layer_offset", 4)?;
    let (expert_period, expert_offset) = at("expert_layer_period", 2, "expert_layer_offset", 1)?;
    for (index, own) in model.layers.iter_mut().enumerate() {
        let full = index % attention_period == attention_offset;
        let routed = experts > 1 && index % expert_period == expert_offset;
        *own = 2 * u16::from(full) + u16::from(routed);
    }
    parts::drop_unused(&mut model);
    Ok(model)
}

/// LFM2: gated short convolutions in most layers, attention in a few; a dense block in all.
pub(super) fn lfm2(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let hidden = config.required("hidden_size")?;
    let attention = parts::grouped(config, hidden, None)?;
    let mut width = match config.size("block_ff_dim")? {
        Some(width) => width,
        None => config.required("intermediate_size")?,
    };
    if config.flag("block_auto_adjust_ff_dim", true)? {
        let factor = config.map.get("block_ffn_dim_multiplier").and_then(Value::as_f64).unwrap_or(1.0);
        let step = config.size("block_multiple_of")?.unwrap_or(256);
        width = (factor.clamp(0.01, 100.0) * (2 * width / 3) as f64) as u64;
        width = width.next_multiple_of(step);
    }
    let block = FeedForward::Dense { width, gated: true };
    let kernel = config.size("conv_L_cache")?.unwrap_or(3);
    let conv = Mixer { entry: 3 * hidden, exit: hidden, channels: hidden, ..Mixer::gate(0) };
    let bias = if config.flag("conv_bias", false)? { 5 * hidden } else { 0 };
    let shape = DecoderShape { head_norm: HeadNorm::Shared, tied: true, ..LLAMA };
    let near = layer(LayerKind::NO_ATTENTION, Some(conv), block, kernel * hidden + bias + 2 * hidden);
    let full = layer(attention, None, block, shape.attention_vectors(hidden, &attention));
    let mut model = parts::of_layers(config, kind, hidden, near, parts::ends(config, hidden, &shape)?, &shape)?;
    model.kinds = vec![near, full];
    let listed: Vec<u64> = config
        .map
        .get("full_attn_idxs")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_u64).collect())
        .unwrap_or_default();
    let is_full =
        parts::layer_types(config, &model, &["full_attention"], &["conv"], |layer| listed.contains(&(layer as u64)))?;
    model.layers = is_full.into_iter().map(u16::from).collect();
    parts::drop_unused(&mut model);
    Ok(model)
}

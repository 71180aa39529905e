//! Model of Megatron-Core's arguments.

use plantui_core::{
    source::LoadError,
    workload::{
        recipe::NormKind,
        training::{Attention, Details, Ends, Experts, FeedForward, LayerKind, Model, Projection, Span, published},
    },
};

use crate::{
    job::Draft,
    setting::{Fact, Settings},
};

/// Vocabularies of tokenizers that `--tokenizer-type` names.
const TOKENIZERS: [(&str, u64); 6] = [
    ("gpt2bpetokenizer", 50_257),
    ("bertwordpiecelowercase", 30_522),
    ("bertwordpiececase", 28_996),
    ("llama2tokenizer", 32_000),
    ("llama3tokenizer", 128_256),
    ("tiktokenizer", 131_072),
];

/// Padded vocabulary of GPT-2, with which Megatron's examples train.
const GPT2_VOCABULARY: u64 = 50_304;

/// Most layers.
const MOST_LAYERS: u64 = 100_000;

/// Model of the arguments; `None` if they do not state its sizes.
///
/// # Errors
/// [`LoadError`] for a size that no model has, or a layer that is not modelled.
pub(super) fn model(
    settings: &Settings,
    draft: &mut Draft<'_>,
    encoder: bool,
) -> Result<Option<Fact<Model>>, LoadError> {
    let layers = settings.count_of(&["num_layers", "encoder_num_layers"])?;
    let (Some(layers), Some(hidden)) = (layers, settings.count("hidden_size")?) else { return Ok(None) };
    let heads = settings.count("num_attention_heads")?;
    if let Some(given) = &draft.options.model {
        for (fact, name, own) in
            [(&layers, "num_layers", given.layers.len() as u64), (&hidden, "hidden_size", given.hidden)]
        {
            if fact.value != own {
                let problem = format!("is {}, and {} has {own}", fact.value, given.name);
                return Err(fact.place.error(name, problem, "leave MODEL out, or give the model of the job"));
            }
        }
    }
    let bad = |fact: &Fact<u64>, name: &str| fact.place.error(name, format!("is {}", fact.value), "correct it");
    if layers.value == 0 || layers.value > MOST_LAYERS {
        return Err(bad(&layers, "num_layers"));
    }
    if hidden.value == 0 || hidden.value > 1 << 20 {
        return Err(bad(&hidden, "hidden_size"));
    }
    let Some(heads) = heads.filter(|heads| heads.value > 0 && heads.value <= 1 << 16) else {
        return Ok(None);
    };
    let shape = Shape::of(settings)?;
    let h = hidden.value;
    let (attention, latent_norms) = attention(settings, h, heads.value, &shape)?;
    let width = match settings.count("ffn_hidden_size")? {
        Some(width) => width.value,
        // Megatron's rule for a gated block: two thirds of 4 h, rounded down to a multiple of 64.
        None if shape.gated => h.saturating_mul(8) / 3 / 64 * 64,
        None => h.saturating_mul(4),
    };
    let norms = shape.norm_vectors * 2 * h;
    let (a, g, d) = (attention.heads(), attention.key_value_heads(), attention.head_size());
    let biases = if shape.query_key_value_bias { (a + 2 * g) * d } else { 0 } + if shape.bias { h } else { 0 };
    let head_norms = if shape.head_norm && latent_norms == 0 { 2 * d * shape.norm_vectors } else { latent_norms };
    let vectors = norms + biases + head_norms;
    let window = settings.words("window_size")?;
    let block_bias = |width: u64| if shape.bias { width * (1 + u64::from(shape.gated)) + h } else { 0 };
    let mut dense =
        LayerKind::decoder(attention, FeedForward::Dense { width, gated: shape.gated }, vectors + block_bias(width));
    dense.causal = !encoder;
    if let Some(window) = window {
        let left = window.value.first().and_then(|word| word.trim_matches(['(', ')']).parse::<u64>().ok());
        dense.span = left.map_or(Span::Full, Span::Window);
    }
    let ends = ends(settings, draft, h, &shape, encoder)?;
    let mut model = Model::uniform("", draft.source, h, dense, layers.value as usize, ends);
    if let Some(experts) = experts(settings, width, &shape)? {
        let balance = if settings.is_set("moe_router_enable_expert_bias")? { experts.count } else { 0 };
        let sparse = LayerKind { feed_forward: FeedForward::Experts(experts), vectors: vectors + balance, ..dense };
        let pattern = frequency(settings, layers.value as usize)?;
        model.kinds = vec![sparse, dense];
        model.layers = pattern.iter().map(|sparse| u16::from(!sparse)).collect();
        if pattern.iter().all(|sparse| *sparse) {
            model.kinds.truncate(1);
        }
    }
    if let Some(count) = settings.count("mtp_num_layers")? {
        if count.value > layers.value {
            let problem = format!("is {}, and the model has {} layers", count.value, layers.value);
            return Err(count.place.error("mtp_num_layers", problem, "correct it"));
        }
        model.prediction_layers = count.value as u32;
    }
    model.longest_sequence =
        settings.count("max_position_embeddings")?.or(settings.count("seq_length")?).map_or(1 << 20, |fact| fact.value);
    model.details = Some(Details {
        norm: Some(if shape.norm_vectors == 1 { NormKind::Rms } else { NormKind::Layer }),
        head_norm: shape.head_norm || latent_norms > 0,
        query_key_value_bias: shape.query_key_value_bias,
        bias: shape.bias,
        slopes: false,
    });
    let dropout = settings.number("hidden_dropout")?.map_or(0.1, |fact| fact.value);
    settings.number("attention_dropout")?;
    model.dropout = dropout > 0.0;
    model.name = name(&model);
    Ok(Some(layers.with(model)))
}

/// Name of a model that only its sizes describe.
fn name(model: &Model) -> String {
    let billions = model.parameters() as f64 / 1e9;
    let size = if billions >= 1.0 { format!("{billions:.1}B") } else { format!("{:.0}M", billions * 1e3) };
    let kind = if model.has_experts() { "mixture of experts" } else { "model" };
    format!("{kind} of {size}")
}

/// Norms, biases and gate.
struct Shape {
    gated: bool,
    norm_vectors: u64,
    bias: bool,
    query_key_value_bias: bool,
    head_norm: bool,
}

impl Shape {
    fn of(settings: &Settings) -> Result<Self, LoadError> {
        const NORMS: [&str; 6] = ["LayerNorm", "RMSNorm", "rmsnorm", "layernorm", "layernorm1p", "te_rmsnorm"];
        let norm = settings.choice("normalization", &NORMS)?.or(settings.choice("norm", &NORMS)?);
        let rms = norm.is_some_and(|fact| fact.value.to_ascii_lowercase().contains("rms"));
        let disabled = settings.is_set("disable_bias_linear")?;
        let bias = settings.flag("add_bias_linear")?.map_or(!disabled, |fact| fact.value);
        let own = settings.is_set("add_qkv_bias")?;
        settings.is_set("squared_relu")?;
        Ok(Shape {
            gated: settings.is_set("swiglu")? || settings.is_set("geglu")? || settings.is_set("quick_geglu")?,
            norm_vectors: if rms { 1 } else { 2 },
            bias,
            query_key_value_bias: bias || own,
            head_norm: settings.is_set("qk_layernorm")?,
        })
    }
}

/// Attention, and the elements of the norms of latent states.
fn attention(settings: &Settings, hidden: u64, heads: u64, shape: &Shape) -> Result<(Attention, u64), LoadError> {
    if settings.is_set("multi_latent_attention")? {
        let size =
            |name: &str, usual: u64| Ok::<u64, LoadError>(settings.count(name)?.map_or(usual, |fact| fact.value));
        // Defaults of Megatron-Core's MLATransformerConfig.
        let query_rank = settings.count("q_lora_rank")?.map(|fact| fact.value);
        let key_value_rank = size("kv_lora_rank", 32)?;
        let (nope, rope, value) =
            (size("qk_head_dim", 128)?, size("qk_pos_emb_head_dim", 64)?, size("v_head_dim", 128)?);
        settings.count("kv_channels")?;
        let norms = if shape.head_norm { query_rank.unwrap_or(0) + key_value_rank } else { 0 };
        let attention =
            Attention::Latent { heads, query_rank, key_value_rank, rope, nope, value, head_size: rope + nope };
        return Ok((attention, norms));
    }
    let channels = settings.count("kv_channels")?;
    let refuse = |name: &str, problem: String| match settings.look(name) {
        Some(setting) => Err(setting.error(problem, "correct it")),
        None => Ok(()),
    };
    if channels.is_none() && !hidden.is_multiple_of(heads) {
        refuse("num_attention_heads", format!("is {heads}, which does not divide the hidden size {hidden}"))?;
    }
    let head_size = channels.map_or(hidden / heads, |fact| fact.value);
    let grouped = settings.is_set("group_query_attention")?;
    let groups = settings.count("num_query_groups")?.map_or(1, |fact| fact.value);
    let stated = settings.count("num_key_value_heads")?;
    let key_value_heads = match (grouped, stated) {
        (true, _) => groups,
        (false, Some(stated)) => stated.value,
        (false, None) => heads,
    };
    if key_value_heads == 0 || !heads.is_multiple_of(key_value_heads) {
        let problem = format!("is {key_value_heads}, which does not divide {heads} attention heads");
        refuse("num_query_groups", problem.clone())?;
        refuse("num_key_value_heads", problem)?;
    }
    Ok((Attention::Grouped { heads, key_value_heads, head_size }, 0))
}

fn experts(settings: &Settings, width: u64, shape: &Shape) -> Result<Option<Experts>, LoadError> {
    let count = settings.count_of(&["num_experts", "num_moe_experts"])?;
    let own_width = settings.count("moe_ffn_hidden_size")?;
    let chosen = settings.count_of(&["moe_router_topk", "topk"])?;
    let shared = settings.count("moe_shared_expert_intermediate_size")?;
    let groups = settings.count_of(&["moe_router_num_groups"])?;
    let limit = settings.count_of(&["moe_router_group_topk", "moe_router_topk_limited_devices"])?;
    let Some(count) = count.filter(|count| count.value > 1) else { return Ok(None) };
    // Megatron's default of --moe-router-topk, and Megatron-DeepSpeed's of --topk.
    let chosen = chosen.map_or(if is_deepspeed(settings) { 1 } else { 2 }, |fact| fact.value);
    if chosen == 0 || chosen > count.value {
        let problem = format!("is {chosen}, of {} experts", count.value);
        return Err(count.place.error("moe_router_topk", problem, "correct it"));
    }
    Ok(Some(Experts {
        count: count.value,
        chosen,
        width: own_width.map_or(width, |fact| fact.value),
        shared_width: shared.map_or(0, |fact| fact.value),
        gated: shape.gated,
        node_limit: limit.filter(|_| groups.is_none_or(|groups| groups.value > 1)).map(|fact| fact.value),
        latent: None,
    }))
}

/// True for arguments of Megatron-DeepSpeed.
fn is_deepspeed(settings: &Settings) -> bool {
    settings.has("deepspeed") || settings.has("deepspeed_config")
}

/// Layers with experts: a period, or a list as Python writes it.
fn frequency(settings: &Settings, layers: usize) -> Result<Vec<bool>, LoadError> {
    let interval = settings.count("expert_interval")?;
    let Some(setting) = settings.take("moe_layer_freq") else {
        // Megatron-DeepSpeed's experts are in every second layer by default, the last of each group.
        let usual = if is_deepspeed(settings) { 2 } else { 1 };
        let every = usize::try_from(interval.map_or(usual, |fact| fact.value.max(1))).unwrap_or(usize::MAX);
        return Ok((1..=layers).map(|layer| layer % every == 0).collect());
    };
    let text = setting.value.text();
    let refuse = |problem: String| Err(setting.error(problem, "write a period, or a list of 0 and 1 for every layer"));
    if let Ok(period) = text.trim().parse::<usize>() {
        return match period {
            0 => refuse("is 0".into()),
            period => Ok((0..layers).map(|layer| layer % period == 0).collect()),
        };
    }
    match list(&text) {
        Some(list) if list.len() == layers => Ok(list),
        Some(list) => refuse(format!("lists {} layers, the model has {layers}", list.len())),
        None => refuse(format!("is `{}`", plantui_core::text::printable(&text))),
    }
}

/// Reads `[0]*3+[1]*58` or `([0,1])*4`; at most [`MOST_LAYERS`] entries.
fn list(text: &str) -> Option<Vec<bool>> {
    let mut all = vec![];
    let plain: String = text.chars().filter(|c| !c.is_whitespace() && !"()'\"".contains(*c)).collect();
    for part in plain.split('+') {
        let (inner, times) = match part.rsplit_once(']') {
            Some((inner, "")) => (inner, 1),
            Some((inner, rest)) => (inner, rest.strip_prefix('*')?.parse::<usize>().ok()?),
            None => return None,
        };
        let entries: Option<Vec<bool>> = inner
            .strip_prefix('[')?
            .split(',')
            .filter(|entry| !entry.is_empty())
            .map(|entry| match entry {
                "0" => Some(false),
                "1" => Some(true),
                _ => None,
            })
            .collect();
        let entries = entries?;
        if times.saturating_mul(entries.len()) + all.len() > MOST_LAYERS as usize {
            return None;
        }
        all.extend(std::iter::repeat_n(entries, times).flatten());
    }
    Some(all)
}

fn ends(
    settings: &Settings,
    draft: &mut Draft<'_>,
    hidden: u64,
    shape: &Shape,
    encoder: bool,
) -> Result<Ends, LoadError> {
    const POSITIONS: [&str; 7] = ["learned_absolute", "rope", "mrope", "yarn", "relative", "none", "alibi"];
    let kind = settings.choice("position_embedding_type", &POSITIONS)?.map(|fact| fact.value);
    let rotary = settings.is_set("use_rotary_position_embeddings")? || settings.is_set("no_position_embedding")?;
    let learned = kind.is_none_or(|kind| kind == "learned_absolute") && !rotary;
    let longest = settings.count("max_position_embeddings")?.map_or(0, |fact| fact.value);
    let untied = settings.is_set("untie_embeddings_and_output_weights")?;
    settings.is_set("share_embeddings_and_output_weights")?;
    Ok(Ends {
        vocabulary: vocabulary(settings, draft)?,
        token_width: hidden,
        positions: if learned { longest } else { 0 },
        before: if encoder { 2 * hidden } else { 0 },
        after: shape.norm_vectors * hidden,
        projection: if untied { Projection::Own } else { Projection::Tied },
    })
}

/// Rows of the token embedding.
fn vocabulary(settings: &Settings, draft: &mut Draft<'_>) -> Result<u64, LoadError> {
    let divisor = settings.count("make_vocab_size_divisible_by")?.map_or(128, |fact| fact.value.max(1));
    let tensor = settings.count_of(&["tensor_model_parallel_size"])?.map_or(1, |fact| fact.value.max(1));
    let padded = |rows: u64| rows.div_ceil(divisor * tensor) * divisor * tensor;
    let kind = settings.hint("tokenizer_type");
    let tokenizer = settings.hint("tokenizer_model").or(settings.hint("tokenizer_name_or_path"));
    let stated = settings.count("vocab_size")?;
    if let Some(rows) = settings.count("padded_vocab_size")? {
        return Ok(rows.value);
    }
    if let Some(rows) = stated {
        return Ok(padded(rows.value));
    }
    if let Some(rows) = draft.vocabulary {
        return Ok(rows);
    }
    let of_type = kind.as_ref().and_then(|kind| {
        let wanted = kind.value.to_ascii_lowercase();
        TOKENIZERS.iter().find(|(name, _)| *name == wanted).map(|(_, rows)| *rows)
    });
    let of_model = tokenizer.as_ref().and_then(|name| published::find(&name.value)).map(|model| model.ends.vocabulary);
    match (of_model, of_type) {
        (Some(rows), _) => {
            let name = tokenizer.map(|fact| fact.value).unwrap_or_default();
            draft.assume("vocabulary", format!("{rows} rows, of {name}"), "--with vocab-size=N");
            Ok(padded(rows))
        }
        (None, Some(rows)) => {
            let name = kind.map(|fact| fact.value).unwrap_or_default();
            draft.assume("vocabulary", format!("{rows} rows, of {name}"), "--with vocab-size=N");
            Ok(padded(rows))
        }
        (None, None) => {
            draft.assume("vocabulary", format!("{GPT2_VOCABULARY} rows, those of GPT-2"), "--with vocab-size=N");
            Ok(GPT2_VOCABULARY)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_layers_are_read_as_python_writes_them() {
        let read = |text: &str| list(text).map(|list| list.iter().map(|&sparse| u8::from(sparse)).collect::<Vec<_>>());
        assert_eq!(read("([0]*2+[1]*3)"), Some(vec![0, 0, 1, 1, 1]));
        assert_eq!(read("[0,1]*2"), Some(vec![0, 1, 0, 1]));
        assert_eq!(read("[1, 0, 1]"), Some(vec![1, 0, 1]));
        assert_eq!((read("[2]"), read("x"), read("[1]*99999999")), (None, None, None));
    }
}

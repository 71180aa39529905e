//! Hugging Face `config.json` of all architectures that can be trained.
//!
//! `model_type` gives the architecture. Fields with a default in the library get the same default; sizes are required.
//! [`crate::workload::model`] reads the architectures that it supports. The files of this folder read the others, a
//! group of related ones each. A model with pictures or sound around a text model is read as its text model, with a
//! remark.

mod decoders;
mod encoders;
mod experts;
mod hybrids;
mod latent;
mod olders;
mod parts;
mod recent;

use serde_json::{Map, Value};

use super::model::{FeedForward, Model, Span};
use crate::{
    source::{LoadError, error::printable},
    workload::model::{
        self,
        hugging_face::{self, HuggingFaceConfig, shown},
    },
};

/// Reads a `config.json`. `source` is the file's name in messages.
///
/// # Errors
/// [`LoadError`] that names file, field and repair. An unknown architecture is an error that lists the known ones.
pub fn from_hugging_face(text: &str, source: &str) -> Result<Model, LoadError> {
    read_like(text, source, None)
}

/// Reads a `config.json` of an unknown architecture by the rules of a known one, if `like` or the file's field `like`
/// names it.
///
/// # Errors
/// [`LoadError`] as [`from_hugging_face`].
pub fn read_like(text: &str, source: &str, like: Option<&str>) -> Result<Model, LoadError> {
    let mut outer = hugging_face::fields(text, source)?;
    if let Some(like) = like {
        outer.insert("like".into(), like.into());
    }
    if outer.contains_key("peft_type") {
        let repair = "give the config.json of the model that it adapts";
        return Err(LoadError::at(
            source,
            "peft_type",
            "marks an adapter (LoRA), which is no model of its own",
            repair,
        ));
    }
    let mut map = inner(&outer);
    let told = map.get("model_type").and_then(Value::as_str);
    if let Some((_, own)) = INNER.iter().find(|(inner, _)| told == Some(*inner)) {
        map.insert("model_type".into(), (*own).into());
    }
    let config = HuggingFaceConfig { map: &map, source };
    let Some(kind) = config.text("model_type")? else {
        return Err(config.error("model_type", "is missing", &format!("add one of {}", architectures().join(", "))));
    };
    bounded(&config)?;
    let like = config.text("like")?;
    let known = reader(kind).map(|read| (kind, read));
    let read_as = like.and_then(|like| reader(like).map(|read| (like, read)));
    let Some((own, read)) = known.or(read_as) else {
        let repair = format!(
            "add \"like\": \"llama\" to read it by the rules of a known one (estimate --like llama); known are {}",
            architectures().join(", ")
        );
        let (field, name) = like.map_or(("model_type", kind), |like| ("like", like));
        return Err(config.error(field, format!("is `{}`, which is not known", printable(name)), &repair));
    };
    let mut alike = map.clone();
    alike.insert("model_type".into(), own.into());
    let config = HuggingFaceConfig { map: &alike, source };
    let mut model = read(&config, own)?;
    consistent(&config, &model)?;
    if known.is_none() {
        if model.name == own {
            model.name = printable(kind);
        }
        model.remarks.push(format!("{} is read like {own}, as asked", printable(kind)));
        let unused = unused(&alike, source, own, &model);
        if !unused.is_empty() {
            model.remarks.push(format!("fields that it does not use: {}", unused.join(", ")));
        }
    }
    remark(&outer, &map, &mut model);
    Ok(model)
}

/// Reader of an architecture.
fn reader(kind: &str) -> Option<ArchitectureReader> {
    READERS.iter().find(|(names, _)| names.contains(&kind)).map(|(_, read)| *read)
}

/// Text models inside other models, each with the architecture that it equals.
const INNER: [(&str, &str); 8] = [
    ("qwen2_vl_text", "qwen2"),
    ("qwen2_5_vl_text", "qwen2"),
    ("qwen2_vl", "qwen2"),
    ("qwen2_5_vl", "qwen2"),
    ("qwen3_vl_text", "qwen3"),
    ("qwen3_vl_moe_text", "qwen3_moe"),
    ("glm4v_text", "glm4"),
    ("glm4v_moe_text", "glm4_moe"),
];

/// Numbers and flags of a file that change nothing in the model: neither without them nor with another value.
fn unused(map: &Map<String, Value>, source: &str, kind: &str, model: &Model) -> Vec<String> {
    let Some(read) = reader(kind) else { return vec![] };
    let same = |changed: &Map<String, Value>| {
        let config = HuggingFaceConfig { map: changed, source };
        read(&config, kind)
            .is_ok_and(|other| (&other.kinds, &other.layers, other.ends) == (&model.kinds, &model.layers, model.ends))
    };
    let other = |value: &Value| match value {
        Value::Bool(flag) => Some(Value::Bool(!flag)),
        Value::Number(number) => number.as_u64().filter(|count| *count > 0).map(|count| Value::from(2 * count)),
        _ => None,
    };
    let mut names = vec![];
    for (name, value) in map {
        let Some(other) = other(value) else { continue };
        let mut changed = map.clone();
        changed.remove(name);
        let without = same(&changed);
        changed.insert(name.clone(), other);
        if without && same(&changed) && !IRRELEVANT.contains(&name.as_str()) && !name.ends_with("_token_id") {
            names.push(printable(name));
        }
    }
    names
}

/// Fields that have nothing to do with sizes.
const IRRELEVANT: [&str; 8] = [
    "use_cache",
    "max_position_embeddings",
    "rope_theta",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "torchscript",
    "tie_encoder_decoder",
];

type ArchitectureReader = fn(&HuggingFaceConfig<'_>, &str) -> Result<Model, LoadError>;

const READERS: &[(&[&str], ArchitectureReader)] = &[
    (&["llama", "mistral", "qwen2", "gpt2", "gpt_neox", "bert"], known_dense),
    (&["qwen3", "smollm3", "granite", "internlm2", "stablelm", "starcoder2", "olmo"], decoders::like_llama),
    (&["phi3", "phi4_multimodal"], decoders::phi3),
    (&["gemma", "gemma2", "gemma3", "gemma3_text"], decoders::gemma),
    (&["gemma3n", "gemma3n_text"], recent::gemma3n),
    (&["olmo2", "olmo3"], decoders::olmo2),
    (&["nemotron"], decoders::nemotron),
    (&["cohere", "cohere2"], decoders::cohere),
    (&["mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "granitemoe", "phimoe"], experts::mixture),
    (&["llama4", "llama4_text"], experts::llama4),
    (&["gpt_oss"], experts::gpt_oss),
    (&["deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2"], latent::deepseek),
    (&["longcat_flash"], latent::longcat),
    (
        &[
            "seed_oss",
            "hunyuan_v1_dense",
            "ernie4_5",
            "arcee",
            "exaone4",
            "glm",
            "glm4",
            "apertus",
            "ministral",
            "ministral3",
        ],
        recent::dense,
    ),
    (
        &["glm4_moe", "minimax_m2", "ernie4_5_moe", "hunyuan_v1_moe", "dots1", "bailing_moe", "bailing_moe_v2"],
        recent::mixture,
    ),
    (&["qwen3_next"], recent::qwen3_next),
    (&["mamba", "mamba2"], hybrids::mamba),
    (&["granitemoehybrid", "bamba"], hybrids::granite),
    (&["nemotron_h"], hybrids::nemotron_h),
    (&["falcon_h1"], hybrids::falcon_h1),
    (&["jamba"], hybrids::jamba),
    (&["lfm2"], hybrids::lfm2),
    (&["opt"], olders::opt),
    (&["bloom"], olders::bloom),
    (&["falcon", "RefinedWeb", "RefinedWebModel"], olders::falcon),
    (&["gptj"], olders::gptj),
    (&["phi"], olders::phi),
    (&["roberta", "xlm-roberta", "camembert"], encoders::roberta),
    (&["distilbert"], encoders::distilbert),
    (&["vit"], encoders::vit),
    (&["t5", "mt5"], encoders::t5),
];

/// Supported architectures.
fn architectures() -> Vec<&'static str> {
    READERS.iter().flat_map(|(names, _)| names.iter().copied()).collect()
}

/// Fields of the text model inside another model. Fields that it lacks come from the outer model.
fn inner(outer: &Map<String, Value>) -> Map<String, Value> {
    let text = ["text_config", "llm_config", "language_config"];
    let Some(Value::Object(text)) = text.iter().find_map(|name| outer.get(*name)) else { return outer.clone() };
    let mut map = outer.clone();
    for (key, value) in text {
        map.insert(key.clone(), value.clone());
    }
    // Use the outer file's name if the inner one has none.
    if let (None, Some(name)) = (text.get("_name_or_path"), outer.get("_name_or_path")) {
        map.insert("_name_or_path".into(), name.clone());
    }
    map
}

/// Reads Llama, Mistral, Qwen 2, GPT-2, GPT-NeoX and BERT, with the fields for training only: windows and dropout.
fn known_dense(config: &HuggingFaceConfig<'_>, kind: &str) -> Result<Model, LoadError> {
    let text = Value::Object(config.map.clone()).to_string();
    let mut model = Model::from(&model::from_hugging_face(&text, config.source)?);
    model.name = config.name(kind)?;
    let dropout = match kind {
        "gpt2" => ("resid_pdrop", 0.1),
        "bert" => ("hidden_dropout_prob", 0.1),
        "gpt_neox" => ("hidden_dropout", 0.0),
        _ => ("", 0.0),
    };
    model.dropout = parts::share(config, dropout.0, dropout.1)? > 0.0;
    let window = match kind {
        "mistral" => config.size("sliding_window")?,
        "qwen2" if config.flag("use_sliding_window", false)? => config.size("sliding_window")?,
        _ => None,
    };
    if let Some(window) = window {
        let first = match kind {
            "qwen2" => config.size("max_window_layers")?.unwrap_or(28) as usize,
            _ => 0,
        };
        parts::windows(&mut model, window, |layer| layer >= first);
    }
    Ok(model)
}

/// Size fields, bounded so that their products do not overflow.
const SIZES: [&str; 36] = [
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "intermediate_size_mlp",
    "vocab_size",
    "n_embd",
    "n_embed",
    "n_head",
    "n_heads",
    "n_inner",
    "num_heads",
    "num_kv_heads",
    "n_head_kv",
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "qk_nope_head_dim",
    "v_head_dim",
    "ffn_dim",
    "ffn_hidden_size",
    "word_embed_proj_dim",
    "dim",
    "hidden_dim",
    "d_model",
    "d_kv",
    "d_ff",
    "num_labels",
    "type_vocab_size",
];

/// Size fields of pictures, which are squared.
const PICTURES: [&str; 3] = ["image_size", "patch_size", "num_channels"];

/// Maximum number of parameters.
const MOST_PARAMETERS: f64 = 1e15;

/// Rejects sizes out of bounds before they are multiplied.
fn bounded(config: &HuggingFaceConfig<'_>) -> Result<(), LoadError> {
    let limits = SIZES.map(|field| (field, 1 << 20)).into_iter().chain(PICTURES.map(|field| (field, 1 << 13)));
    for (field, most) in limits {
        if let Some(size) = config.map.get(field).and_then(Value::as_u64).filter(|&size| size > most) {
            return Err(config.error(field, format!("is {size}, more than {most}"), "check the file"));
        }
    }
    Ok(())
}

/// Checks the rules that hold for every architecture.
fn consistent(config: &HuggingFaceConfig<'_>, model: &Model) -> Result<(), LoadError> {
    let layers: f64 = model.layers.iter().map(|&k| model.kinds[usize::from(k)].parameters(model.hidden) as f64).sum();
    if layers > MOST_PARAMETERS {
        let problem = format!("describes {layers:.1e} parameters, more than {MOST_PARAMETERS:.0e}");
        return Err(LoadError::file(config.source, problem, "check its sizes"));
    }
    for kind in &model.kinds {
        let (heads, groups) = (kind.attention.heads(), kind.attention.key_value_heads());
        if groups > heads || groups > 0 && !heads.is_multiple_of(groups) {
            let problem = format!("is {groups}, which does not divide the {heads} attention heads");
            return Err(config.error("num_key_value_heads", problem, "give a divisor of num_attention_heads"));
        }
        if let FeedForward::Experts(experts) = kind.feed_forward
            && experts.chosen > experts.count
        {
            let problem = format!("is {}, more than the {} experts there are", experts.chosen, experts.count);
            return Err(config.error("num_experts_per_tok", problem, "correct one of the two"));
        }
        if let Span::Window(0) | Span::Chunk(0) = kind.span {
            return Err(config.error("sliding_window", "is 0, must be at least 1", "leave it out for none"));
        }
    }
    Ok(())
}

/// Adds remarks for a reader of the results: omitted picture or sound parts, quantised weights.
fn remark(outer: &Map<String, Value>, map: &Map<String, Value>, model: &mut Model) {
    if ["vision_config", "audio_config"].iter().any(|part| outer.get(*part).is_some_and(Value::is_object)) {
        model.remarks.push("only the text model is counted; what reads pictures or sound is left out".into());
    }
    if let Some(Value::Object(quantised)) = map.get("quantization_config") {
        let how = quantised.get("quant_method").map_or_else(|| "an unnamed method".into(), shown);
        model.remarks.push(format!(
            "the checkpoint is quantised ({how}); it is trained here in the precision asked for, all parameters counted whole"
        ));
    }
}

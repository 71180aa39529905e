//! Hugging Face `config.json`: the field names of Llama, Mistral, Qwen2, GPT-2, GPT-NeoX and BERT.
//!
//! `model_type` gives the architecture. Fields with a default in the library get the same default; sizes are required.
//! Biases follow the library's classes, because the file mostly does not state them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::config::{Biases, Head, Mlp, ModelConfig, Norm};
use crate::{
    source::{LoadError, syntax},
    workload::formats::detect::{self, CONFIGURATION},
};

/// Supported values of `model_type`.
const KNOWN: [&str; 6] = ["llama", "mistral", "qwen2", "gpt2", "gpt_neox", "bert"];

/// Reads a model from the text of a `config.json`. `source` is the file's name in messages.
///
/// # Errors
/// [`LoadError`] that names file, field and repair. An unknown architecture is an error that lists the known ones.
pub fn from_hugging_face(text: &str, source: &str) -> Result<ModelConfig, LoadError> {
    let map = fields(text, source)?;
    let config = HuggingFaceConfig { map: &map, source };
    config.dense()?;
    let Some(kind) = config.text("model_type")? else {
        return Err(config.error("model_type", "is missing", &format!("add one of {}", KNOWN.join(", "))));
    };
    let model = match kind {
        "llama" | "mistral" | "qwen2" => config.llama(kind)?,
        "gpt2" => config.gpt2()?,
        "gpt_neox" => config.gpt_neox()?,
        "bert" => config.bert()?,
        other => {
            let shown = crate::source::error::printable(other);
            let known = format!("known architectures are {}", KNOWN.join(", "));
            return Err(config.error("model_type", format!("is `{shown}`, which is not known"), &known));
        }
    };
    config.consistent(&model)?;
    Ok(model)
}

/// The text with `null` in place of `Infinity` and `NaN`, which Python's writer puts where a limit is open.
fn finite(text: &str) -> Cow<'_, str> {
    if !["Infinity", "NaN"].iter().any(|word| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest, mut quoted) = (String::with_capacity(text.len()), text, false);
    while let Some(next) = rest.chars().next() {
        let word = ["-Infinity", "Infinity", "NaN"].into_iter().find(|word| !quoted && rest.starts_with(word));
        let taken = match word {
            Some(word) => {
                out.push_str("null");
                word.len()
            }
            // An escaped character is no end of a text.
            None if quoted && next == '\\' => {
                let length = 1 + rest.chars().nth(1).map_or(0, char::len_utf8);
                out.push_str(&rest[..length]);
                length
            }
            None => {
                quoted ^= next == '"';
                out.push(next);
                next.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    Cow::Owned(out)
}

/// Reads the fields of a `config.json`. Workloads and plans, which are JSON objects too, are errors that name them as
/// such.
pub(crate) fn fields(text: &str, source: &str) -> Result<Map<String, Value>, LoadError> {
    detect::object(text, source, &CONFIGURATION)?;
    let text = &*finite(text);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let map: Map<String, Value> =
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| syntax::refuse(source, text, &error))?;
    if map.contains_key("nodes") && map.contains_key("edges") {
        let repair = "plan it with `plantui plan`, or give a Hugging Face config.json";
        return Err(LoadError::file(source, "is a workload already, not a model configuration", repair));
    }
    if map.contains_key("stages") {
        let problem = "is a plan, not a model configuration";
        return Err(LoadError::file(source, problem, CONFIGURATION.give()));
    }
    Ok(map)
}

/// Fields that give the number of experts per layer, in several families.
const EXPERTS: [&str; 5] =
    ["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts"];

/// Configuration with the file's name for messages.
pub(crate) struct HuggingFaceConfig<'a> {
    pub(crate) map: &'a Map<String, Value>,
    pub(crate) source: &'a str,
}

impl HuggingFaceConfig<'_> {
    pub(crate) fn error(&self, field: &str, problem: impl Into<String>, repair: &str) -> LoadError {
        LoadError::at(self.source, field, problem, repair)
    }

    /// String value; `None` if the field is absent or null.
    pub(crate) fn text(&self, field: &str) -> Result<Option<&str>, LoadError> {
        match self.map.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.error(field, format!("is {}, must be a string", shown(other)), "")),
        }
    }

    /// Size of at least 1; `None` if the field is absent or null.
    pub(crate) fn size(&self, field: &str) -> Result<Option<u64>, LoadError> {
        match self.map.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(size) if (1..=1 << 30).contains(&size) => Ok(Some(size)),
                _ => Err(self.error(
                    field,
                    format!("is {}, must be a whole number from 1 to 1073741824", shown(value)),
                    "",
                )),
            },
        }
    }

    /// Rejects mixtures of experts: their layers have other sizes, times and transfers than those modelled here.
    fn dense(&self) -> Result<(), LoadError> {
        for field in EXPERTS {
            if let Some(experts) = self.map.get(field).and_then(Value::as_u64).filter(|&experts| experts > 1) {
                let problem = format!("is {experts}, but mixtures of experts are not modelled");
                return Err(self.error(field, problem, "give a dense model"));
            }
        }
        Ok(())
    }

    pub(crate) fn required(&self, field: &str) -> Result<u64, LoadError> {
        self.size(field)?.ok_or_else(|| self.error(field, "is missing", &format!("add {field}, a whole number")))
    }

    pub(crate) fn flag(&self, field: &str, default: bool) -> Result<bool, LoadError> {
        match self.map.get(field) {
            None | Some(Value::Null) => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.error(field, format!("is {}, must be true or false", shown(other)), "")),
        }
    }

    pub(crate) fn layers(&self, field: &str) -> Result<u32, LoadError> {
        let layers = self.required(field)?;
        u32::try_from(layers)
            .ok()
            .filter(|&layers| layers <= 100_000)
            .ok_or_else(|| self.error(field, format!("is {layers}, more than 100000 layers"), "check the file"))
    }

    /// Name of the model, else of the architecture.
    pub(crate) fn name(&self, kind: &str) -> Result<String, LoadError> {
        let name = self.text("_name_or_path")?.map(crate::source::error::printable).filter(|name| !name.is_empty());
        Ok(name.unwrap_or_else(|| kind.to_string()))
    }

    pub(crate) fn head_size(&self, hidden: u64, heads: u64, heads_field: &str) -> Result<u64, LoadError> {
        if hidden.is_multiple_of(heads) {
            return Ok(hidden / heads);
        }
        let problem = format!("is {heads}, which does not divide the hidden size {hidden}");
        Err(self.error(heads_field, problem, "correct one of the two, or give head_dim"))
    }

    /// Llama, Mistral and Qwen2 differ only in biases and defaults.
    fn llama(&self, kind: &str) -> Result<ModelConfig, LoadError> {
        let hidden = self.required("hidden_size")?;
        let heads = self.required("num_attention_heads")?;
        let attention_bias = self.flag("attention_bias", false)?;
        let head_size = match self.size("head_dim")? {
            Some(size) => size,
            None => self.head_size(hidden, heads, "num_attention_heads")?,
        };
        Ok(ModelConfig {
            name: self.name(kind)?,
            source: self.source.into(),
            layers: self.layers("num_hidden_layers")?,
            hidden,
            heads,
            key_value_heads: self.size("num_key_value_heads")?.unwrap_or(heads),
            head_size,
            mlp_width: self.required("intermediate_size")?,
            mlp: Mlp::Gated,
            vocabulary: self.required("vocab_size")?,
            positions: 0,
            token_types: 0,
            embedding_norm: false,
            biases: Biases {
                query_key_value: attention_bias || kind == "qwen2",
                attention_output: attention_bias,
                mlp: self.flag("mlp_bias", false)?,
            },
            norm: Norm::Rms,
            padding_mask: false,
            head: Head::LanguageModel { tied: self.flag("tie_word_embeddings", false)? },
            longest_sequence: self.size("max_position_embeddings")?.unwrap_or(2048),
        })
    }

    fn gpt2(&self) -> Result<ModelConfig, LoadError> {
        let hidden = self.required("n_embd")?;
        let heads = self.required("n_head")?;
        let positions = match self.size("n_positions")? {
            Some(positions) => positions,
            None => self.size("n_ctx")?.unwrap_or(1024),
        };
        Ok(ModelConfig {
            name: self.name("gpt2")?,
            source: self.source.into(),
            layers: self.layers("n_layer")?,
            hidden,
            heads,
            key_value_heads: heads,
            head_size: self.head_size(hidden, heads, "n_head")?,
            mlp_width: self.size("n_inner")?.unwrap_or(4 * hidden),
            mlp: Mlp::Plain,
            vocabulary: self.required("vocab_size")?,
            positions,
            token_types: 0,
            embedding_norm: false,
            biases: Biases::ALL,
            norm: Norm::Layer,
            padding_mask: false,
            head: Head::LanguageModel { tied: self.flag("tie_word_embeddings", true)? },
            longest_sequence: positions,
        })
    }

    fn gpt_neox(&self) -> Result<ModelConfig, LoadError> {
        let hidden = self.required("hidden_size")?;
        let heads = self.required("num_attention_heads")?;
        let attention_bias = self.flag("attention_bias", true)?;
        Ok(ModelConfig {
            name: self.name("gpt_neox")?,
            source: self.source.into(),
            layers: self.layers("num_hidden_layers")?,
            hidden,
            heads,
            key_value_heads: heads,
            head_size: self.head_size(hidden, heads, "num_attention_heads")?,
            mlp_width: self.required("intermediate_size")?,
            mlp: Mlp::Plain,
            vocabulary: self.required("vocab_size")?,
            positions: 0,
            token_types: 0,
            embedding_norm: false,
            biases: Biases { query_key_value: attention_bias, attention_output: attention_bias, mlp: true },
            norm: Norm::Layer,
            padding_mask: false,
            head: Head::LanguageModel { tied: self.flag("tie_word_embeddings", false)? },
            longest_sequence: self.size("max_position_embeddings")?.unwrap_or(2048),
        })
    }

    fn bert(&self) -> Result<ModelConfig, LoadError> {
        let hidden = self.required("hidden_size")?;
        let heads = self.required("num_attention_heads")?;
        let positions = self.required("max_position_embeddings")?;
        let masked = self.map.get("architectures").and_then(Value::as_array).is_some_and(|list| {
            list.iter()
                .filter_map(Value::as_str)
                .any(|name| name.ends_with("ForMaskedLM") || name.ends_with("ForPreTraining"))
        });
        Ok(ModelConfig {
            name: self.name("bert")?,
            source: self.source.into(),
            layers: self.layers("num_hidden_layers")?,
            hidden,
            heads,
            key_value_heads: heads,
            head_size: self.head_size(hidden, heads, "num_attention_heads")?,
            mlp_width: self.required("intermediate_size")?,
            mlp: Mlp::Plain,
            vocabulary: self.required("vocab_size")?,
            positions,
            token_types: self.size("type_vocab_size")?.unwrap_or(2),
            embedding_norm: true,
            biases: Biases::ALL,
            norm: Norm::Layer,
            padding_mask: true,
            head: if masked { Head::MaskedLanguageModel } else { Head::Pooler },
            longest_sequence: positions,
        })
    }

    fn consistent(&self, model: &ModelConfig) -> Result<(), LoadError> {
        let (heads, groups) = (model.heads, model.key_value_heads);
        if groups > heads || !heads.is_multiple_of(groups) {
            let problem = format!("is {groups}, which does not divide the {heads} attention heads");
            return Err(self.error("num_key_value_heads", problem, "give a divisor of num_attention_heads"));
        }
        Ok(())
    }
}

/// Short form of a value, for messages.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
        Value::String(text) => format!("`{}`", crate::source::error::printable(text)),
        other => other.to_string(),
    }
}

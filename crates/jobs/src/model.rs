//! Model sizes of a configuration: Megatron-LM's arguments state them, torchtitan names a preset.

use super::facts::JobFacts;
use plantui_core::{
    source::LoadError,
    workload::model::{Biases, Head, Mlp, ModelConfig, Norm, preset},
};

/// Rows of GPT-2's vocabulary as padded by Megatron, which its examples train with.
const GPT2_VOCABULARY: u64 = 50_304;

/// Model of Megatron-LM's arguments; `None` if they do not state its sizes. Assumptions go to `notes`.
pub(super) fn of_megatron(
    facts: &JobFacts,
    source: &str,
    name: &str,
    notes: &mut Vec<String>,
) -> Result<Option<ModelConfig>, LoadError> {
    let number = |name: &str| super::configuration::number(facts, &[name], source);
    let (Some(layers), Some(hidden), Some(heads)) =
        (number("num_layers")?, number("hidden_size")?, number("num_attention_heads")?)
    else {
        return Ok(None);
    };
    let gated = facts.is_set("swiglu");
    // Megatron's own rule: two thirds of 4 h for a gated block, rounded down to a multiple of 64.
    let plain_width = if gated { hidden.saturating_mul(8) / 3 / 64 * 64 } else { hidden.saturating_mul(4) };
    let grouped = facts.is_set("group_query_attention");
    let longest = number("max_position_embeddings")?.or(number("seq_length")?).unwrap_or(2048);
    let biased = !facts.is_set("disable_bias_linear") && facts.get("add_bias_linear") != Some("False");
    let rotary = facts.get("position_embedding_type").is_some_and(|kind| kind != "learned_absolute")
        || facts.is_set("use_rotary_position_embeddings");
    let told = facts
        .comments
        .iter()
        .find_map(|comment| comment.strip_prefix("vocabulary: ")?.split_whitespace().next()?.parse::<u64>().ok());
    let vocabulary = match number("padded_vocab_size")?.or(number("vocab_size")?).or(told) {
        Some(rows) => rows,
        None => {
            notes.push(format!(
                "the vocabulary is not stated: GPT-2's padded {GPT2_VOCABULARY} rows are assumed; \
                --vocab-size sets another"
            ));
            GPT2_VOCABULARY
        }
    };
    Ok(Some(ModelConfig {
        name: name.into(),
        source: source.into(),
        layers: u32::try_from(layers).unwrap_or(u32::MAX),
        hidden,
        heads,
        key_value_heads: if grouped { number("num_query_groups")?.unwrap_or(1) } else { heads },
        head_size: match number("kv_channels")? {
            Some(size) => size,
            None => hidden / heads.max(1),
        },
        mlp_width: number("ffn_hidden_size")?.unwrap_or(plain_width),
        mlp: if gated { Mlp::Gated } else { Mlp::Plain },
        vocabulary,
        positions: if rotary { 0 } else { longest },
        token_types: 0,
        embedding_norm: false,
        biases: Biases {
            query_key_value: biased || facts.is_set("add_qkv_bias"),
            attention_output: biased,
            mlp: biased,
        },
        norm: if facts.get("normalization") == Some("RMSNorm") { Norm::Rms } else { Norm::Layer },
        padding_mask: false,
        head: Head::LanguageModel { tied: !facts.is_set("untie_embeddings_and_output_weights") },
        longest_sequence: longest,
    }))
}

/// Preset for torchtitan's `model.name` and `model.flavor`.
pub(super) fn of_torchtitan(facts: &JobFacts) -> Option<ModelConfig> {
    let flavor = facts.get("model.flavor").or(facts.get("flavor"))?.to_ascii_lowercase();
    let family = facts.get("model.name")?.to_ascii_lowercase();
    let family = match family.as_str() {
        "llama3" | "llama-3" => "llama-3",
        "llama2" | "llama-2" => "llama-2",
        other => other,
    };
    preset(&format!("{family}-{flavor}")).or_else(|| preset(&format!("llama-3.1-{flavor}")))
}

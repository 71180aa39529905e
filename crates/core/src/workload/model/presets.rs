//! Model presets: sizes of well-known transformers, from their publications or published configurations.

use super::config::{Biases, Head, Mlp, ModelConfig, Norm};

/// Ids of all presets, in display order.
pub fn presets() -> &'static [&'static str] {
    &[
        "bert-32",
        "bert-96",
        "gpt3-175b",
        "llama-2-70b",
        "llama-3-8b",
        "llama-3-70b",
        "llama-3-405b",
        "mistral-7b",
        "qwen2.5-72b",
    ]
}

/// Model preset with this name. Ignores case.
pub fn preset(name: &str) -> Option<ModelConfig> {
    let name = name.to_ascii_lowercase();
    Some(match name.as_str() {
        "bert-32" => bert(&name, 32),
        "bert-96" => bert(&name, 96),
        "gpt3-175b" => ModelConfig {
            name,
            source: "Brown et al., Language Models are Few-Shot Learners (2020), table 2.1".into(),
            layers: 96,
            hidden: 12288,
            heads: 96,
            key_value_heads: 96,
            head_size: 128,
            mlp_width: 49152,
            mlp: Mlp::Plain,
            vocabulary: 50257,
            positions: 2048,
            token_types: 0,
            embedding_norm: false,
            biases: Biases::ALL,
            norm: Norm::Layer,
            padding_mask: false,
            head: Head::LanguageModel { tied: true },
            longest_sequence: 2048,
        },
        "llama-2-70b" => llama(&name, "meta-llama/Llama-2-70b-hf config.json", [80, 8192, 64, 28672, 32000, 4096]),
        "llama-3-8b" => llama(&name, "meta-llama/Meta-Llama-3-8B config.json", [32, 4096, 32, 14336, 128_256, 8192]),
        "llama-3-70b" => llama(&name, "meta-llama/Meta-Llama-3-70B config.json", [80, 8192, 64, 28672, 128_256, 8192]),
        "llama-3-405b" => ModelConfig {
            longest_sequence: 131_072,
            ..llama(&name, "meta-llama/Llama-3.1-405B config.json", [126, 16384, 128, 53248, 128_256, 8192])
        },
        "mistral-7b" => llama(&name, "mistralai/Mistral-7B-v0.1 config.json", [32, 4096, 32, 14336, 32000, 32768]),
        "qwen2.5-72b" => ModelConfig {
            biases: Biases { query_key_value: true, ..Biases::NONE },
            ..llama(&name, "Qwen/Qwen2.5-72B config.json", [80, 8192, 64, 29568, 152_064, 131_072])
        },
        _ => return None,
    })
}

/// BERT of Piper's published profile. The profile does not give the number of heads: 40 of width 96 are assumed, so
/// that eight devices can divide them.
fn bert(name: &str, layers: u32) -> ModelConfig {
    ModelConfig {
        name: name.into(),
        source: "inferred from Piper's published profile bert32a100 (40 heads of width 96 are assumed)".into(),
        layers,
        hidden: 3840,
        heads: 40,
        key_value_heads: 40,
        head_size: 96,
        mlp_width: 15360,
        mlp: Mlp::Plain,
        vocabulary: 50_248,
        positions: 2048,
        token_types: 2,
        embedding_norm: false,
        biases: Biases::ALL,
        norm: Norm::Layer,
        padding_mask: true,
        head: Head::Pooler,
        longest_sequence: 2048,
    }
}

/// Llama and models of the same design, with eight key-value heads: layers, hidden, heads, MLP width, vocabulary,
/// positions.
fn llama(name: &str, source: &str, [layers, hidden, heads, mlp_width, vocabulary, longest]: [u64; 6]) -> ModelConfig {
    ModelConfig {
        name: name.into(),
        source: source.into(),
        layers: layers as u32,
        hidden,
        heads,
        key_value_heads: 8,
        head_size: hidden / heads,
        mlp_width,
        mlp: Mlp::Gated,
        vocabulary,
        positions: 0,
        token_types: 0,
        embedding_norm: false,
        biases: Biases::NONE,
        norm: Norm::Rms,
        padding_mask: false,
        head: Head::LanguageModel { tied: false },
        longest_sequence: longest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_the_size_it_is_known_for() {
        for (name, giga) in [
            ("bert-32", 5.88),
            ("bert-96", 17.2),
            ("gpt3-175b", 174.6),
            ("llama-2-70b", 68.98),
            ("llama-3-8b", 8.03),
            ("llama-3-70b", 70.55),
            ("llama-3-405b", 405.9),
            ("mistral-7b", 7.24),
            ("qwen2.5-72b", 72.7),
        ] {
            let model = preset(name).unwrap();
            let parameters = model.parameters() / 1e9;
            assert!((parameters / giga - 1.0).abs() < 1e-3, "{name}: {parameters}");
        }
        assert_eq!(preset("Llama-3-8B"), preset("llama-3-8b"));
        assert_eq!(preset("llama-9"), None);
        assert!(presets().iter().all(|name| preset(name).is_some_and(|model| model.name == *name)));
    }

    #[test]
    fn degrees_must_divide_heads() {
        let model = preset("bert-32").unwrap();
        assert_eq!(model.refuses_degree(2), None);
        assert_eq!(model.refuses_degree(3).unwrap(), "3 does not divide bert-32's 40 attention heads");
    }
}

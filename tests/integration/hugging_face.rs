//! Models read from Hugging Face configurations: sizes, and the sentences for what is wrong.

use plantui::{
    generate::{self, GenerateSettings, Head, Mlp, ModelConfig},
    workload,
};
use serde_json::{Value, json};

fn read(config: &Value) -> Result<ModelConfig, String> {
    generate::from_hugging_face(&config.to_string(), "config.json").map_err(|error| error.to_string())
}

fn llama() -> Value {
    json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128_256,
        "max_position_embeddings": 8192, "tie_word_embeddings": false, "attention_bias": false, "rope_theta": 500_000.0
    })
}

/// Parameters in millions.
fn millions(config: &Value) -> f64 {
    (read(config).unwrap().parameters() / 1e6).round()
}

#[test]
fn published_configurations_give_their_known_sizes() {
    assert_eq!(millions(&llama()), 8030.0);
    let qwen = json!({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
        "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152_064, "tie_word_embeddings": false});
    assert_eq!(millions(&qwen), 7616.0);
    let small_qwen = json!({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14,
        "num_hidden_layers": 24, "num_key_value_heads": 2, "vocab_size": 151_936, "tie_word_embeddings": true});
    assert_eq!(millions(&small_qwen), 494.0);
    let mistral = json!({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 32000, "head_dim": null});
    assert_eq!(millions(&mistral), 7242.0);
    let gpt2 = json!({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
        "vocab_size": 50257, "n_inner": null});
    assert_eq!(millions(&gpt2), 124.0);
    let pythia = json!({"model_type": "gpt_neox", "hidden_size": 4096, "intermediate_size": 16384,
        "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 50432, "tie_word_embeddings": false});
    assert_eq!(millions(&pythia), 6857.0);
    let bert = json!({"model_type": "bert", "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12,
        "num_hidden_layers": 12, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2});
    assert_eq!(millions(&bert), 109.0);
}

#[test]
fn what_the_fields_say_is_what_is_generated() {
    let model = read(&llama()).unwrap();
    assert_eq!((model.key_value_heads, model.head_size, model.mlp), (8, 128, Mlp::Gated));
    assert_eq!(model.head, Head::LanguageModel { tied: false });
    let mut tied = llama();
    tied["tie_word_embeddings"] = json!(true);
    let tied = read(&tied).unwrap();
    assert_eq!(tied.head, Head::LanguageModel { tied: true });
    assert!(tied.parameters() < model.parameters());

    let a100 = plantui::cluster::hardware::find("a100-80").unwrap();
    let text = |m: &ModelConfig| generate::generate(m, &a100, &GenerateSettings::defaults(m, &a100), "test").unwrap();
    let w = workload::load_bytes(text(&tied).as_bytes(), "w", "w").unwrap();
    // The tied copy takes memory on the last stage, and the file says so.
    assert!(w.parameters() > tied.parameters() * 1.05);
    assert!(w.provenance.unwrap().assumptions.iter().any(|a| a.contains("tied to the embedding")));
    assert!(!text(&model).contains("tied to the embedding"));

    let masked = json!({"architectures": ["BertForMaskedLM"], "model_type": "bert", "hidden_size": 64, "vocab_size": 100,
        "intermediate_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 32});
    let masked = read(&masked).unwrap();
    assert_eq!((masked.head, masked.padding_mask, masked.positions), (Head::MaskedLanguageModel, true, 32));
    let w = workload::load_bytes(text(&masked).as_bytes(), "w", "w").unwrap();
    assert_eq!((w.nodes.len(), w.dag.edges().len()), (7, 7));
}

#[test]
fn errors_name_file_field_and_repair() {
    let with = |field: &str, value: Value| {
        let mut config = llama();
        if value.is_null() {
            drop(config.as_object_mut().unwrap().remove(field));
        } else {
            config[field] = value;
        }
        read(&config).unwrap_err()
    };
    let known = "llama, mistral, qwen2, gpt2, gpt_neox, bert";
    assert_eq!(with("model_type", Value::Null), format!("config.json: model_type is missing; add one of {known}"));
    assert_eq!(
        with("model_type", json!("mamba")),
        format!("config.json: model_type is `mamba`, which is not known; known architectures are {known}")
    );
    assert_eq!(with("model_type", json!(3)), "config.json: model_type is 3, must be a string");
    assert_eq!(
        with("hidden_size", Value::Null),
        "config.json: hidden_size is missing; add hidden_size, a whole number"
    );
    assert_eq!(
        with("hidden_size", json!("4k")),
        "config.json: hidden_size is `4k`, must be a whole number from 1 to 1073741824"
    );
    assert_eq!(
        with("vocab_size", json!(-1)),
        "config.json: vocab_size is -1, must be a whole number from 1 to 1073741824"
    );
    assert_eq!(
        with("num_attention_heads", json!(24)),
        "config.json: num_attention_heads is 24, which does not divide the hidden size 4096; correct one of the two, or \
         give head_dim"
    );
    assert_eq!(
        with("num_key_value_heads", json!(5)),
        "config.json: num_key_value_heads is 5, which does not divide the 32 attention heads; give a divisor of \
         num_attention_heads"
    );
    assert_eq!(
        with("tie_word_embeddings", json!("no")),
        "config.json: tie_word_embeddings is `no`, must be true or false"
    );
    assert_eq!(
        with("num_hidden_layers", json!(200_000)),
        "config.json: num_hidden_layers is 200000, more than 100000 layers; check the file"
    );
    let text = |text: &str| generate::from_hugging_face(text, "config.json").unwrap_err().to_string();
    assert_eq!(
        text("[]"),
        "config.json: is not a model configuration: it looks like a JSON array; give a Hugging Face config.json"
    );
    assert_eq!(text("{\n\"a\""), "config.json:2: ends before its JSON is complete; it looks truncated: copy it again");
}

/// Small configurations of recent architectures with the parameters that the model library's own classes have.
#[test]
fn recent_architectures_have_the_parameters_of_the_librarys_classes() {
    let table: serde_json::Value = serde_json::from_str(include_str!("../figures/model-parameters.json")).unwrap();
    let mut wrong = vec![];
    for row in table["models"].as_array().unwrap() {
        let text = row["config"].to_string();
        let kind = row["config"]["model_type"].as_str().unwrap();
        match plantui::family::training::from_hugging_face(&text, "config.json") {
            // The bias that balances DeepSeek's experts is no parameter of the class, but part of the published count.
            Ok(model) if kind.starts_with("deepseek") => {
                assert_eq!(model.parameters() - 3 * 8, row["parameters"].as_u64().unwrap(), "{kind}");
            }
            Ok(model) if Some(model.parameters()) == row["parameters"].as_u64() => {}
            Ok(model) => wrong.push(format!("{kind}: {} and not {}", model.parameters(), row["parameters"])),
            Err(error) => wrong.push(format!("{kind}: {error}")),
        }
    }
    assert!(wrong.is_empty() && table["models"].as_array().unwrap().len() > 30, "{}", wrong.join("\n"));
}

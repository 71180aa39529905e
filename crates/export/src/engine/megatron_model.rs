//! Megatron-LM's flags for a model's shape, and flags that the user must fill in.

use plantui_core::workload::recipe::{ExpertLayers, ExpertShape, ModelShape, NormKind};

/// Flags to fill in if the model's sizes are unknown.
pub(super) const SIZE_FLAGS: [&str; 9] = [
    "--ffn-hidden-size",
    "--group-query-attention --num-query-groups",
    "--swiglu",
    "--normalization",
    "--disable-bias-linear",
    "--position-embedding-type",
    "--untie-embeddings-and-output-weights",
    "--num-experts --moe-router-topk --moe-ffn-hidden-size (a mixture of experts)",
    "--multi-latent-attention (latent attention)",
];

/// Program that trains such a model.
pub(super) fn program(model: Option<&ModelShape>) -> &'static str {
    if model.is_some_and(|model| model.bidirectional) { "pretrain_bert.py" } else { "pretrain_gpt.py" }
}

/// Flags of this model beyond those that every model needs.
pub(super) fn flags(model: &ModelShape) -> Vec<String> {
    let mut flags = vec![format!("--ffn-hidden-size {}", model.feed_forward_size)];
    let mut add = |wanted: bool, flag: String| {
        if wanted {
            flags.push(flag);
        }
    };
    match model.latent {
        Some(latent) => {
            add(true, "--multi-latent-attention".into());
            add(latent.query_rank.is_some(), format!("--q-lora-rank {}", latent.query_rank.unwrap_or(0)));
            add(true, format!("--kv-lora-rank {}", latent.key_value_rank));
            add(true, format!("--qk-head-dim {}", latent.nope));
            add(true, format!("--qk-pos-emb-head-dim {}", latent.rope));
            add(true, format!("--v-head-dim {}", latent.value));
        }
        None => {
            let wide = model.head_size.checked_mul(model.attention_heads) != Some(model.hidden_size);
            add(wide, format!("--kv-channels {}", model.head_size));
            let grouped = model.key_value_heads != model.attention_heads;
            add(grouped, format!("--group-query-attention --num-query-groups {}", model.key_value_heads));
        }
    }
    add(model.head_norm, "--qk-layernorm".into());
    if let Some(tokens) = model.window {
        add(true, format!("--window-size {tokens},0"));
    }
    add(model.gated, "--swiglu".into());
    add(model.norm == Some(NormKind::Rms), "--normalization RMSNorm".into());
    add(model.bias == Some(false), "--disable-bias-linear".into());
    add(model.query_key_value_bias == Some(true) && model.bias == Some(false), "--add-qkv-bias".into());
    add(model.slopes, "--position-embedding-type none".into());
    add(!model.slopes && !model.learned_positions, "--position-embedding-type rope".into());
    add(!model.tied_embeddings, "--untie-embeddings-and-output-weights".into());
    if let Some(experts) = &model.experts {
        flags.extend(mixture(experts, model.layers));
    }
    flags
}

/// Flags of a mixture of experts.
fn mixture(experts: &ExpertShape, layers: u32) -> Vec<String> {
    let mut flags = vec![
        format!("--num-experts {}", experts.count),
        format!("--moe-router-topk {}", experts.chosen),
        format!("--moe-ffn-hidden-size {}", experts.feed_forward_size),
    ];
    if experts.shared_feed_forward_size > 0 {
        flags.push(format!("--moe-shared-expert-intermediate-size {}", experts.shared_feed_forward_size));
    }
    if let Some(rule) = experts.layers.filter(|rule| *rule != ExpertLayers::ALL) {
        flags.push(format!("--moe-layer-freq \"{}\"", frequency(rule, layers as usize)));
    }
    if experts.chosen == 1 {
        // A softmax over one expert has no gradient, so Megatron-LM refuses the usual order.
        flags.push("--moe-router-pre-softmax".into());
    }
    flags.push("--moe-grouped-gemm".into());
    flags
}

/// Layers with experts, as a Python list.
fn frequency(rule: ExpertLayers, layers: usize) -> String {
    let pattern: Vec<&str> = (0..layers).map(|layer| if rule.has(layer) { "1" } else { "0" }).collect();
    format!("[{}]", pattern.join(","))
}

/// Flags to fill in because the shape leaves them open.
pub(super) fn open(model: &ModelShape) -> Vec<String> {
    let mut open = vec![];
    let mut ask = |wanted: bool, flag: &str| {
        if wanted {
            open.push(flag.to_string());
        }
    };
    ask(model.norm.is_none(), "--normalization (no flag names its norms)");
    ask(model.bias.is_none(), "--disable-bias-linear (if matrices have no biases)");
    ask(model.query_key_value_bias.is_none(), "--add-qkv-bias (if those projections have biases)");
    ask(model.experts.is_some_and(|experts| experts.layers.is_none()), "--moe-layer-freq (which layers have experts)");
    open
}

/// Remarks on the model for the user of the file, a line each.
pub(super) fn remarks(model: &ModelShape) -> Vec<String> {
    let rotary = if model.learned_positions || model.slopes { "" } else { ", --rotary-base" };
    let router = if model.experts.is_some() { ", the router's score, balance and groups" } else { "" };
    let mut remarks =
        vec![format!("vocabulary: {} rows; add tokenizer and data{rotary}{router} yourself", model.vocabulary)];
    if model.mixed_attention {
        remarks.push(
            "layers have several kinds of attention: the flags give the most common one; see the model's \
            own script"
                .into(),
        );
    }
    if model.slopes {
        remarks.push("its positions are ALiBi, which Megatron-LM does not have".into());
    }
    if model.bidirectional {
        remarks.push("an encoder: these flags are for pretrain_bert.py".into());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_layers_among_experts_are_listed() {
        assert_eq!(frequency(ExpertLayers { dense_first: 1, every: 1 }, 4), "[0,1,1,1]");
        assert_eq!(frequency(ExpertLayers { dense_first: 1, every: 2 }, 4), "[0,1,0,1]");
        assert_eq!(frequency(ExpertLayers { dense_first: 0, every: 0 }, 2), "[1,1]");
    }
}

//! Model behind a function for torchtitan: its matching built-in configuration, and the sizes that are checked before a
//! plan is applied.
//!
//! A plan for one model would also start with any other model of as many layers. So the file contains every known size
//! and compares it with the built configuration. Fields follow torchtitan 0.3's decoders (`GQAttention`, the latent
//! `Attention` of `deepseek_v3`, `MoE`). If torchtitan has no such model, the file asks for one and refuses to load
//! with another.

use super::python;
use plantui_core::workload::recipe::{ExpertShape, ModelShape};

/// Built-in configuration of torchtitan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BuiltInConfig {
    /// Module whose registry contains it.
    module: &'static str,
    /// Function of that registry.
    pub(super) function: &'static str,
    /// Layers, hidden size, vocabulary, heads and query groups.
    sizes: [u64; 5],
    /// Width of the feed-forward block, or of an expert.
    width: u64,
    /// Experts, and experts per token; both 0 without experts.
    experts: [u64; 2],
}

const fn dense(module: &'static str, function: &'static str, sizes: [u64; 5], width: u64) -> BuiltInConfig {
    BuiltInConfig { module, function, sizes, width, experts: [0, 0] }
}

/// From torchtitan 0.3.0's registries. Its 16B of DeepSeek V3 is DeepSeek V2 Lite except for the router, and is left
/// out.
const OWN: [BuiltInConfig; 11] = [
    dense("llama3", "llama3_8b", [32, 4096, 128_256, 32, 8], 14336),
    dense("llama3", "llama3_70b", [80, 8192, 128_256, 64, 8], 28672),
    dense("llama3", FLOAT8, [126, 16384, 128_256, 128, 8], 53248),
    dense("qwen3", "qwen3_0_6b", [28, 1024, 151_936, 16, 8], 3072),
    dense("qwen3", "qwen3_1_7b", [28, 2048, 151_936, 16, 8], 6144),
    dense("qwen3", "qwen3_14b", [40, 5120, 151_936, 40, 8], 17408),
    dense("qwen3", "qwen3_32b", [64, 5120, 151_936, 64, 8], 25600),
    BuiltInConfig { experts: [128, 8], ..dense("qwen3", "qwen3_30b_a3b", [48, 2048, 151_936, 32, 4], 768) },
    BuiltInConfig { experts: [32, 4], ..dense("gpt_oss", "gpt_oss_20b", [24, 2880, 201_088, 64, 8], 2880) },
    BuiltInConfig { experts: [128, 4], ..dense("gpt_oss", "gpt_oss_120b", [36, 2880, 201_088, 64, 8], 2880) },
    BuiltInConfig {
        experts: [256, 8],
        ..dense("deepseek_v3", "deepseek_v3_671b", [61, 7168, 129_280, 128, 128], 2048)
    },
];

/// Configuration with products in 8 bits; its function fails on devices without 8-bit support.
const FLOAT8: &str = "llama3_405b";
/// Base configuration where the figures use more bits, and the statement that sets the 405B model there.
const WITHOUT_FLOAT8: &str = "llama3_70b";
const OF_405B: &str =
    "config.model_spec = model_registry(\"405B\")  # llama3_405b multiplies in float8, at a learning rate of 8e-5";

/// Placeholder for a model that torchtitan lacks: its sizes are refused until the user replaces it.
const STAND_IN: (&str, &str) = ("llama3", "llama3_8b");
/// Placeholder with experts.
const STAND_IN_EXPERTS: (&str, &str) = ("qwen3", "qwen3_30b_a3b");

/// torchtitan's built-in configuration of a model.
pub(super) fn built_in_config(model: &ModelShape) -> Option<&'static BuiltInConfig> {
    let sizes =
        [model.layers.into(), model.hidden_size, model.vocabulary, model.attention_heads, model.key_value_heads];
    let experts = model.experts.map_or([0, 0], |experts| [experts.count, experts.chosen]);
    let width = model.experts.map_or(model.feed_forward_size, |experts| experts.feed_forward_size);
    // The latent state alone identifies DeepSeek's attention: no other model here has one.
    let latent = |own: &BuiltInConfig| own.module == "deepseek_v3";
    OWN.iter().find(|own| {
        (own.sizes, own.width, own.experts) == (sizes, width, experts) && latent(own) == model.latent.is_some()
    })
}

/// Model of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileModel {
    /// Layers that the plan is for.
    pub(super) layers: u64,
    /// Model sizes, if known.
    pub(super) model: Option<ModelShape>,
    /// True if products were counted in 8 bits or fewer.
    pub(super) in_8_bits: bool,
}

impl FileModel {
    fn built_in_config(&self) -> Option<&'static BuiltInConfig> {
        self.model.as_ref().and_then(built_in_config)
    }

    fn undoes_float8(&self) -> bool {
        !self.in_8_bits && self.built_in_config().is_some_and(|own| own.function == FLOAT8)
    }

    /// Lines that import the configuration, without a final line break.
    pub(super) fn imports(&self) -> String {
        let (module, function) = match self.built_in_config() {
            Some(own) if self.undoes_float8() => (own.module, WITHOUT_FLOAT8),
            Some(own) => (own.module, own.function),
            None if self.experts().is_some() => STAND_IN_EXPERTS,
            None => STAND_IN,
        };
        let fill = if self.built_in_config().is_some() { "" } else { "  # fill in: the configuration of your model" };
        let registry = if self.undoes_float8() {
            format!("from torchtitan.models.{module} import model_registry\n")
        } else {
            String::new()
        };
        format!("{registry}from torchtitan.models.{module}.config_registry import {function} as base{fill}")
    }

    /// Statement that restores the plan's model where the built-in configuration differs from it.
    pub(super) fn statement(&self) -> Option<&'static str> {
        self.undoes_float8().then_some(OF_405B)
    }

    /// Shape of the experts, if there are any.
    pub(super) fn experts(&self) -> Option<ExpertShape> {
        self.model.and_then(|model| model.experts)
    }

    /// Sizes that the plan is for, and the function that reads those of a configuration.
    pub(super) fn checks(&self) -> String {
        let entries: String =
            self.sizes().iter().map(|(name, size)| format!("    {}: {size},\n", python::string(name))).collect();
        let open = if self.model.is_some() {
            ""
        } else {
            "\n# fill in its other sizes, unknown here: hidden size, vocabulary, attention heads, query groups, \
            experts"
        };
        format!(
            "# The model of the plan; another model is refused.{open}
MODEL = {{
{entries}}}


def sizes(model):
    layer = model.layers[-1]
    attention, moe = layer.attention, layer.moe
    found = {{
        \"layers\": len(model.layers),
        \"hidden size\": model.dim,
        \"vocabulary\": model.vocab_size,
        \"attention heads\": attention.n_heads,
        \"query groups\": getattr(attention, \"n_kv_heads\", None) or attention.n_heads,
        \"latent size of keys and values\": getattr(attention, \"kv_lora_rank\", 0),
        \"experts\": 0 if moe is None else moe.num_experts,
    }}
    if moe is None:
        found[\"feed-forward size\"] = layer.feed_forward.w1.out_features
    else:
        found[\"experts of a token\"] = moe.router.top_k
        found[\"feed-forward size of an expert\"] = moe.routed_experts.inner_experts.hidden_dim
    return found
"
        )
    }

    fn sizes(&self) -> Vec<(&'static str, u64)> {
        let mut sizes = vec![("layers", self.layers)];
        let Some(model) = self.model else { return sizes };
        sizes.push(("hidden size", model.hidden_size));
        sizes.push(("vocabulary", model.vocabulary));
        sizes.push(("attention heads", model.attention_heads));
        sizes.push(("query groups", model.key_value_heads));
        sizes.push(("latent size of keys and values", model.latent.map_or(0, |latent| latent.key_value_rank)));
        sizes.push(("experts", model.experts.map_or(0, |experts| experts.count)));
        match model.experts {
            Some(experts) => {
                sizes.push(("experts of a token", experts.chosen));
                sizes.push(("feed-forward size of an expert", experts.feed_forward_size));
            }
            None => sizes.push(("feed-forward size", model.feed_forward_size)),
        }
        sizes
    }
}

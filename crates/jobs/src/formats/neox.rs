//! GPT-NeoX's YAML, whose names may be written with `-` or `_`.
//!
//! Source: GPT-NeoX's `neox_args.py` and `deepspeed_args.py` (2.0 and main of 2025). Defaults: 32 bits, no recomputation, plain
//! attention that keeps its scores, learned positions, tied embeddings.

use plantui_core::{
    source::LoadError,
    workload::{
        recipe::NormKind,
        training::{Attention, Details, Ends, FeedForward, LayerKind, Model, Projection, Span},
    },
};

use super::zero;
use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Settings},
};

/// Reads GPT-NeoX's configurations.
pub(crate) struct NeoxReader;

static EFFECTS: Effects = Effects {
    none: "\
        scaled_upper_triang_masked_softmax_fusion bias_gelu_fusion rope_fusion layernorm_fusion rmsnorm_fusion masked_softmax_fusion
        attention_dropout hidden_dropout weight_decay lr min_lr lr_decay_style lr_decay_iters warmup train_iters eval_interval eval_iters
        split data_path vocab_file merge_file tokenizer_type_ save load data_impl distributed_backend steps_per_print
        keep_last_n_checkpoints wall_clock_breakdown init_method output_layer_init_method gpt_j_tied rotary_pct rotary_emb_base rotary_ndims
        synchronize_each_layer gradient_clipping seed num_workers hostfile launcher deepspeed_mpi iteration tensorboard_dir use_wandb
        checkpoint_factor extra_save_iters no_load_optim no_load_rng finetune train_data_paths valid_data_paths test_data_paths
        scalenorm_epsilon rms_norm_epsilon layernorm_epsilon mmap_warmup make_vocab_size_divisible_by_ use_shared_fs log_dir
        checkpoint_validation_with_forward_pass gpt_j_residual output_layer_parallelism use_bias_in_norms partition_activations
        activation_ use_qk_layernorm_ eod_mask_loss attention_softmax_in_fp32 use_flashattn_swiglu pretraining dataset_impl
        apply_query_key_layer_scaling contiguous_checkpointing deepspeed_activation_checkpointing deepspeed_extra_args train_label_data_paths
        sparsity_config log_interval checkpoint_scale master_addr master_port gas_ moe_loss_coeff moe_z_loss_coeff onnx_safe
        precision_ user_script config_files zero_allow_untested_optimizer communication_data_type memory_efficient",
    prefixes: "\
        wandb_ tensorboard optimizer.params scheduler fp16.loss fp16.initial fp16.hysteresis fp16.min_loss fp16.fp16 log_ eval_ save_
        zero_optimization.reduce zero_optimization.allgather zero_optimization.overlap zero_optimization.contiguous
        zero_optimization.round_robin zero_optimization.stage3 zero_optimization.sub_group flops_profiler comms_logger
        train_data_weights valid_data_weights test_data_weights weight_by_num_documents s3_ lr_ checkpoint_ rope_ char_level",
    matters: "soft_prompt_tuning mup_ use_mup memory_size num_unique_layers mlp_multiple_of_ expansion_factor",
    by_sound: true,
};

impl JobReader for NeoxReader {
    fn id(&self) -> &'static str {
        "gpt-neox"
    }

    fn title(&self) -> &'static str {
        "a GPT-NeoX configuration"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        let settings = &part.settings;
        let own = ["pipe_parallel_size", "model_parallel_size", "pos_emb", "no_weight_tying"]
            .into_iter()
            .find(|name| settings.has(name));
        own.filter(|_| syntax == Syntax::Tree && settings.has("num_layers")).map(ToString::to_string)
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, _: &Context<'_>) -> Result<(), LoadError> {
        let settings = &part.settings;
        draft.usual("stack", "megatron-2025");
        draft.maybe("tp", settings.count("model_parallel_size")?.filter(|fact| fact.value > 0));
        draft.maybe("pp", settings.count("pipe_parallel_size")?.filter(|fact| fact.value > 0));
        draft.maybe("cp", settings.count("context_parallel_size")?.filter(|fact| fact.value > 0));
        draft.maybe("devices", settings.count_of(&["world_size", "global_num_gpus"])?.filter(|fact| fact.value > 0));
        draft.per_machine = settings.count("num_gpus")?;
        draft.machines = settings.count("num_nodes")?;
        draft.maybe("sequence_length", settings.count("seq_length")?);
        draft.model = model(settings, draft)?;
        zero::configuration(settings, draft, true)?;
        if let Some(size) = settings.count("batch_size")? {
            draft.set("mbs", size);
        }
        if draft.accumulation.is_none() {
            draft.accumulation = settings.count("gas")?;
        }
        if draft.accumulation.is_none() && !draft.facts.contains_key("global_batch") {
            draft.accumulation = Some(Fact { value: 1, place: crate::setting::Place::new("default of the engine", 0) });
        }
        if let Some(word) = settings.text("precision")?.or(settings.text("fp16.type")?) {
            let id = if word.value.contains("bf") {
                "bf16"
            } else if word.value.contains("16") {
                "fp16"
            } else {
                "fp32"
            };
            draft.set("precision", word.with(id));
        }
        if let Some(stage) = settings.count("zero_stage")? {
            draft.set("zero", stage);
        }
        let again = settings.flag("checkpoint_activations")?;
        settings.count("checkpoint_num_layers")?;
        match again {
            Some(fact) => draft.set("recompute", fact.map(|on| if on { "full" } else { "none" })),
            None => draft.usual("recompute", "none"),
        }
        attention(settings, draft)?;
        for name in ["tp_overlap", "fused_cross_entropy"] {
            draft.usual(name, false);
        }
        match settings.flag("sequence_parallel")? {
            Some(fact) => draft.set("sequence_parallel", fact),
            None => draft.usual("sequence_parallel", false),
        }
        if let Some(fact) = settings.flag("checkpoint_in_cpu")?.filter(|fact| fact.value) {
            draft.note(format!("{} keeps the layers' inputs on the host, which is not predicted", fact.place));
        }
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

/// Kernel of attention: `[[["flash"], 32]]`; without it, scores are kept.
fn attention(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let Some(setting) = settings.take("attention_config") else {
        draft.usual("attention", "unfused");
        return Ok(());
    };
    let text = setting.value.text();
    let fact = Fact { value: (), place: setting.place.clone() };
    if text.contains("flash") {
        draft.set("attention", fact.with("flash"));
    } else if text.contains("global") && !text.contains("local") {
        draft.set("attention", fact.with("unfused"));
    } else {
        let repair = "leave it out with --with attention_config=flash";
        return Err(setting.error("has a kind of attention that is not modelled", repair));
    }
    Ok(())
}

fn model(settings: &Settings, draft: &mut Draft<'_>) -> Result<Option<Fact<Model>>, LoadError> {
    let Some(layers) = settings.count("num_layers")? else { return Ok(None) };
    let (Some(hidden), Some(heads)) = (settings.count("hidden_size")?, settings.count("num_attention_heads")?) else {
        return Ok(None);
    };
    let (h, a) = (hidden.value, heads.value);
    if layers.value == 0 || layers.value > 100_000 || h == 0 || a == 0 || a > h {
        return Err(layers.place.error("the model", "has sizes that no model has", "correct them"));
    }
    let activation = settings.text("activation")?.map_or("gelu".into(), |fact| fact.value);
    let kind = settings.text("mlp_type")?.map_or("regular".into(), |fact| fact.value);
    let multiple = settings.count("mlp_multiple_of")?.map_or(1, |fact| fact.value.max(1));
    let stated = settings.count_of(&["intermediate_size", "ffn_dim", "feedforward_size"])?;
    let gated = kind == "llama" || ["geglu", "swiglu", "reglu", "bilinear", "glu"].contains(&activation.as_str());
    // A gated block of the newer files divides the width by 3/2 and rounds it; the older kind states it.
    let width = match (kind.as_str(), &stated) {
        ("llama", Some(width)) => width.value,
        ("llama", None) => (8 * h / 3).div_ceil(256) * 256,
        (_, Some(width)) if gated => (width.value * 2 / 3).div_ceil(2 * multiple) * multiple,
        (_, Some(width)) => width.value,
        (_, None) if gated => (4 * h * 2 / 3).div_ceil(2 * multiple) * multiple,
        (_, None) => 4 * h,
    };
    if let Some(experts) = settings.count_of(&["num_experts", "moe_num_experts"])?.filter(|fact| fact.value > 1) {
        return Err(experts.place.error(
            "num_experts",
            "makes a mixture of experts, which is not read here",
            "give the model's config.json as MODEL, and --ignore num_experts",
        ));
    }
    let groups = settings.count("num_kv_heads")?.map_or(a, |fact| fact.value);
    let rms = settings.text("norm")?.is_some_and(|fact| fact.value.contains("rms"));
    let norm_vectors = if rms { 1 } else { 2 };
    let bias = !settings.is_set("disable_bias_linear")?
        && settings.flag("use_bias_in_attn_linear")?.is_none_or(|fact| fact.value)
        && !rms;
    let block_bias = settings.flag("use_bias_in_mlp")?.map_or(bias, |fact| fact.value);
    let size = h / a;
    let vectors = 2 * norm_vectors * h
        + if bias { (a + 2 * groups) * size + h } else { 0 }
        + if block_bias { width * (1 + u64::from(gated)) + h } else { 0 };
    let attention = Attention::Grouped { heads: a, key_value_heads: groups, head_size: size };
    let mut layer = LayerKind::decoder(attention, FeedForward::Dense { width, gated }, vectors);
    if let Some(window) = settings.count("sliding_window_width")?.filter(|fact| fact.value > 0) {
        layer.span = Span::Window(window.value);
    }
    let positions = settings.text("pos_emb")?.is_none_or(|fact| fact.value == "learned");
    let longest = settings.count("max_position_embeddings")?.map_or(2048, |fact| fact.value);
    let untied = settings.is_set("no_weight_tying")?;
    let ends = Ends {
        vocabulary: vocabulary(settings, draft)?,
        token_width: h,
        positions: if positions { longest } else { 0 },
        before: 0,
        after: norm_vectors * h,
        projection: if untied { Projection::Own } else { Projection::Tied },
    };
    let mut model = Model::uniform("", draft.source, h, layer, layers.value as usize, ends);
    model.longest_sequence = longest;
    model.details = Some(Details {
        norm: Some(if rms { NormKind::Rms } else { NormKind::Layer }),
        head_norm: settings.is_set("use_qk_layernorm")?,
        query_key_value_bias: bias,
        bias,
        slopes: false,
    });
    model.name = format!("model of {:.1}B", model.parameters() as f64 / 1e9);
    Ok(Some(layers.with(model)))
}

fn vocabulary(settings: &Settings, draft: &mut Draft<'_>) -> Result<u64, LoadError> {
    let divisor =
        settings.count("make_vocab_size_divisible_by")?.map_or(128, |fact| fact.value.max(1)) * draft.degree("tp");
    let kind = settings.text("tokenizer_type")?.map_or("GPT2BPETokenizer".into(), |fact| fact.value);
    if let Some(rows) = settings.count_of(&["padded_vocab_size", "vocab_size"])? {
        return Ok(rows.value);
    }
    let rows: u64 = match kind.as_str() {
        "SPMTokenizer" => 32_000,
        "TiktokenTokenizer" => 100_277,
        _ => 50_257,
    };
    let padded = rows.div_ceil(divisor) * divisor;
    draft.assume("vocabulary", format!("{padded} rows, of {kind}"), "--with vocab_size=N");
    Ok(padded)
}

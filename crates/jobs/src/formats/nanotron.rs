//! nanotron's YAML, which states the model, the layout and the batch.
//!
//! Source: nanotron's `config` (0.4 and main of 2025). Defaults: all forward passes before the backward ones, no
//! recomputation, no sequence parallelism.

use plantui_core::{
    source::LoadError,
    workload::{
        recipe::NormKind,
        training::{Attention, Details, Ends, FeedForward, LayerKind, Model, Projection, Span},
    },
};

use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Settings},
};

/// Reads nanotron's configurations.
pub(crate) struct NanotronReader;

static EFFECTS: Effects = Effects {
    none: "\
        model.ddp_bucket_cap_mb tokens.train_steps tokens.val_check_interval tokens.limit_val_batches tokens.limit_test_batches
        parallelism.tp_linear_async_communication parallelism.tp_recompute_allgather parallelism.expert_parallel_size_ s3_upload lighteval
        profiler data_stages parallelism.moe_layer_recompute_ optimizer.clip_grad optimizer.weight_decay optimizer.adam_beta1 optimizer.adam_beta2 optimizer.adam_eps
        optimizer.torch_adam_is_fused doremi
        model.model_config.bos_token_id model.model_config.eos_token_id model.model_config.pad_token_id model.model_config.hidden_act
        model.model_config.initializer_range model.model_config.rms_norm_eps model.model_config.use_cache model.model_config.pretraining_tp
        model.model_config.is_llama_config model.model_config.is_qwen2_config model.model_config.is_starcoder2_config
        model.model_config.rope_theta model.model_config.rope_interleaved model.model_config.rope_scaling model.model_config.attention_bias_
        model.model_config._attn_implementation model.model_config.flex_attention_mask model.model_config.z_loss_enabled
        model.model_config.z_loss_coefficient model.model_config.no_rope_layer model.model_config.tie_word_embeddings_
        model.model_config.sliding_window_size_ model.model_config._use_qkv_packed model.model_config._use_doc_masking
        model.model_config._fused_rotary_emb model.model_config._fused_rms_norm model.model_config.log_attn_probs model.model_config.use_qkv_bias_",
    prefixes: "\
        checkpoints. data_stages general. logging. doremi. optimizer.learning_rate_scheduler. optimizer.optimizer_factory. tokenizer.
        model.init_method. profiler. s3_upload. lighteval. data_stages. metrics_logging.",
    matters: "model.model_config.moe_config model.model_config.moe_num_experts model.model_config.sliding_window_size",
    by_sound: true,
};

impl JobReader for NanotronReader {
    fn id(&self) -> &'static str {
        "nanotron"
    }

    fn title(&self) -> &'static str {
        "a nanotron configuration"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        let known = part.settings.has("tokens.sequence_length") && part.settings.has_under("parallelism");
        (known && syntax == Syntax::Tree).then(|| "tokens.sequence_length".to_string())
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, _: &Context<'_>) -> Result<(), LoadError> {
        let settings = &part.settings;
        draft.usual("stack", "plain");
        for (name, degree) in
            [("dp", "dp"), ("pp", "pp"), ("tp", "tp"), ("context_parallel_size", "cp"), ("expert_parallel_size", "ep")]
        {
            draft.maybe(degree, settings.count(&format!("parallelism.{name}"))?);
        }
        if draft.degree("ep") == 1 {
            draft.facts.remove("ep");
        }
        draft.maybe("mbs", settings.count("tokens.micro_batch_size")?);
        draft.accumulation = settings.count("tokens.batch_accumulation_per_replica")?;
        draft.maybe("sequence_length", settings.count("tokens.sequence_length")?);
        if let Some(engine) = settings.text("parallelism.pp_engine")?
            && engine.value != "1f1b"
            && draft.degree("pp") > 1
        {
            draft.note(format!(
                "{} runs all forward passes first, which holds more activations than is predicted",
                engine.place
            ));
        }
        let mode = settings.text("parallelism.tp_mode")?;
        match mode {
            Some(mode) => draft.set("sequence_parallel", mode.with(mode.value.eq_ignore_ascii_case("reduce_scatter"))),
            None => draft.usual("sequence_parallel", false),
        }
        match settings.flag("parallelism.recompute_layer")? {
            Some(fact) => draft.set("recompute", fact.map(|on| if on { "full" } else { "none" })),
            None => draft.usual("recompute", "none"),
        }
        if settings.is_set("parallelism.moe_layer_recompute")? {
            draft.note("moe_layer_recompute is not predicted");
        }
        match settings.count("optimizer.zero_stage")? {
            Some(stage) => draft.set("zero", stage),
            None => draft.usual("zero", 0),
        }
        let wide = settings.flag("optimizer.accumulate_grad_in_fp32")?;
        if let Some(fact) = wide {
            draft.set("gradient_bytes", fact.with(if fact.value { 4 } else { 2 }));
            if !fact.value {
                draft.set("master_bytes", fact.with(0));
            }
        }
        match settings.text("model.dtype")? {
            Some(dtype) => {
                let id = if dtype.value.contains("bf") {
                    "bf16"
                } else if dtype.value.contains("16") {
                    "fp16"
                } else {
                    "fp32"
                };
                draft.set("precision", dtype.with(id));
            }
            None => draft.usual("precision", "bf16"),
        }
        draft.model = model(settings, draft)?;
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

fn model(settings: &Settings, draft: &Draft<'_>) -> Result<Option<Fact<Model>>, LoadError> {
    let count = |name: &str| settings.count(&format!("model.model_config.{name}"));
    let (Some(layers), Some(hidden), Some(heads)) =
        (count("num_hidden_layers")?, count("hidden_size")?, count("num_attention_heads")?)
    else {
        return Ok(None);
    };
    let (h, a) = (hidden.value, heads.value);
    if layers.value == 0 || layers.value > 100_000 || h == 0 || a == 0 || a > h {
        return Err(layers.place.error("model_config", "has sizes that no model has", "correct them"));
    }
    let gated = !settings.is_set("model.model_config.is_starcoder2_config")?;
    let width = count("intermediate_size")?.map_or(if gated { 11_008 } else { 4 * h }, |fact| fact.value);
    let groups = count("num_key_value_heads")?.or(count("num_kv_heads")?).map_or(a, |fact| fact.value);
    let bias =
        settings.is_set("model.model_config.attention_bias")? || settings.is_set("model.model_config.use_qkv_bias")?;
    let size = h / a;
    let vectors = 2 * h + if bias { (a + 2 * groups) * size } else { 0 };
    let attention = Attention::Grouped { heads: a, key_value_heads: groups, head_size: size };
    let mut layer = LayerKind::decoder(attention, FeedForward::Dense { width, gated }, vectors);
    if let Some(window) = count("sliding_window_size")?.filter(|fact| fact.value > 0) {
        layer.span = Span::Window(window.value);
    }
    let tied = settings.is_set("model.model_config.tie_word_embeddings")?;
    let divisor =
        settings.count("model.make_vocab_size_divisible_by")?.map_or(1, |fact| fact.value.max(1)) * draft.degree("tp");
    let rows = count("vocab_size")?.map_or(32_000, |fact| fact.value);
    let ends = Ends {
        vocabulary: rows.div_ceil(divisor) * divisor,
        token_width: h,
        positions: 0,
        before: 0,
        after: h,
        projection: if tied { Projection::Tied } else { Projection::Own },
    };
    let mut model = Model::uniform("", draft.source, h, layer, layers.value as usize, ends);
    count("max_position_embeddings")?;
    model.longest_sequence = draft.degree("sequence_length").max(2048);
    model.details = Some(Details {
        norm: Some(NormKind::Rms),
        head_norm: false,
        query_key_value_bias: bias,
        bias: false,
        slopes: false,
    });
    model.name = format!("model of {:.2}B", model.parameters() as f64 / 1e9);
    Ok(Some(layers.with(model)))
}

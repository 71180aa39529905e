//! NeMo's and NeMo-Framework-Launcher's YAML.
//!
//! Source: NeMo 1.x's `megatron_gpt_config.yaml` and the launcher's `conf/training`. The model's section has the names of
//! Megatron-Core's configuration, by whose rules it is read.

use plantui_core::source::LoadError;

use super::megatron;
use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Place, Setting, Settings, Value},
};

/// Reads NeMo's configurations.
pub(crate) struct NemoReader;

static EFFECTS: Effects = Effects {
    none: "\
        model.tokenizer.vocab_file model.tokenizer.merge_file model.tokenizer.delimiter model.tokenizer.model model.tokenizer.library
        model.tokenizer.type model.init_method_std model.use_scaled_init_method model.hidden_dropout model.attention_dropout
        model.kv_channels model.layernorm_epsilon model.pre_process model.post_process model.persist_layer_norm model.gradient_as_bucket_view
        model.native_amp_init_scale model.native_amp_growth_interval model.hysteresis model.fp32_residual_connection
        model.fp16_lm_cross_entropy model.seed model.use_cpu_initialization model.onnx_safe model.apex_transformer_log_level
        model.apply_query_key_layer_scaling model.grad_div_ar_fusion model.gradient_accumulation_fusion model.bias_activation_fusion
        model.bias_dropout_add_fusion model.masked_softmax_fusion model.resume_from_checkpoint model.rotary_percentage
        model.num_micro_batches_with_partial_activation_checkpoints model.activations_checkpoint_layers_per_pipeline model.mcore_gpt
        model.transformer_engine model.fp8_margin model.fp8_interval model.fp8_amax_history_len model.fp8_amax_compute_algo
        model.use_emha model.ub_tp_comm_overlap_cfg model.sync_batch_comm model.batch_p2p_comm model.reduce_amax model.use_te_rng_tracker
        model.openai_gelu model.headscale model.transformer_block_type model.normalize_attention_scores model.fsdp_sharding_strategy_
        model.use_flash_attention model.gc_interval model.nccl_communicator_config_path model.get_attention_mask_from_fusion
        model.apply_rope_fusion model.fp8_e4m3 model.fp8_hybrid model.virtual_ model.overlap_p2p_comm model.defer_embedding_wgrad_compute
        model.tp_comm_atomic_ag model.tp_comm_atomic_rs model.fp8_wgrad model.seq_len_interpolation_factor model.megatron_amp_O2 model.megatron_amp_o2
        model.make_vocab_size_divisible_by_ model.rampup_batch_size model.attention_type model.share_token_embeddings model.bias_gelu_fusion
        model.rotary_base model.async_grad_allreduce model.seq_length hydra.searchpath defaults name restore_from_path model.global_batch_size_",
    prefixes: "\
        trainer. run. exp_manager. model.data. model.optim. model.nsys_profile. model.tokenizer. cluster. env_vars launcher stages hydra
        model.memory_profile. model.scale_positional model.rotary_scaling",
    matters: "model.peft.peft_scheme model.moe_frequency model.cpu_offloading_weights",
    by_sound: true,
};

impl JobReader for NemoReader {
    fn id(&self) -> &'static str {
        "nemo"
    }

    fn title(&self) -> &'static str {
        "a NeMo configuration"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        let settings = &part.settings;
        let known = (settings.has_under("trainer") || settings.has_under("run")) && settings.has_under("model");
        let layout =
            ["model.tensor_model_parallel_size", "model.micro_batch_size"].into_iter().find(|name| settings.has(name));
        layout.filter(|_| known && syntax == Syntax::Tree && !settings.has_under("train")).map(ToString::to_string)
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, _: &Context<'_>) -> Result<(), LoadError> {
        let settings = &part.settings;
        draft.set("stack", Fact { value: "nemo-24", place: Place::new("NeMo", 0) });
        draft.machines = settings.count("trainer.num_nodes")?;
        draft.per_machine = settings.count("trainer.devices")?;
        if draft.machines.is_some() && draft.per_machine.is_none() {
            draft.per_machine = draft.machines.as_ref().map(|machines| machines.with(1));
        }
        let mut arguments = arguments(settings, "model")?;
        let precision = settings.text("trainer.precision")?;
        let half = precision.as_ref().is_some_and(|fact| fact.value.contains("16") && !fact.value.contains("bf"));
        let word = match &precision {
            Some(fact) if fact.value.contains("bf16") => Some((fact.place.clone(), "bf16")),
            Some(fact) if half => Some((fact.place.clone(), "fp16")),
            Some(fact) if fact.value.contains("32") => None,
            Some(fact) => {
                return Err(fact.place.error(
                    "trainer.precision",
                    format!("is {}", fact.value),
                    "give bf16, 16 or 32 with --with",
                ));
            }
            // The base configuration's default.
            None => Some((Place::new("default of the engine", 0), "fp16")),
        };
        if let Some((place, word)) = word {
            arguments.push(Setting::new(word, Value::Bool(true), place));
        }
        optimizer(settings, &mut arguments)?;
        // NeMo's width does not depend on the activation function.
        if let Some(hidden) = arguments.count("hidden_size")?.filter(|_| !arguments.has("ffn_hidden_size")) {
            arguments.push(Setting::new("ffn_hidden_size", Value::Text((4 * hidden.value).to_string()), hidden.place));
        }
        if settings.look("trainer.devices").is_some_and(|setting| setting.value.text() == "-1") {
            draft.per_machine = None;
            draft.machines = None;
            draft.note("trainer.devices is -1, all devices of each machine: give their number with --devices");
        }
        megatron::arguments(&arguments, draft, false)?;
        let none = |name: &str| EFFECTS.has_none(&format!("model.{name}")) || name.starts_with("fsdp");
        arguments.iter().filter(|setting| none(&setting.name)).for_each(|setting| {
            arguments.take(&setting.name);
        });
        draft.leave(&arguments, megatron::effects())?;
        // Recorded as used under their own names.
        settings.under("model").for_each(|(_, setting)| {
            let field = setting.name.trim_start_matches("model.");
            if arguments.has(&renamed(field)) || CONVERTED.contains(&field) {
                settings.take(&setting.name);
            }
        });
        if let Some(fsdp) = settings.flag("model.fsdp")?.filter(|fact| fact.value) {
            draft.set("zero", fsdp.with(3));
        }
        settings.skip("model.fsdp_sharding_strategy");
        settings.skip("model.fsdp_grad_reduce_dtype");
        if let Some(scheme) = settings.text("model.peft.peft_scheme")?.filter(|fact| fact.value != "null") {
            let problem = format!("is {}, which is not read here", scheme.value);
            return Err(scheme.place.error(
                "model.peft.peft_scheme",
                problem,
                "give the adapter with --adapter, and --with model.peft.peft_scheme=none",
            ));
        }
        settings.skip("model.peft");
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

fn optimizer(settings: &Settings, arguments: &mut Settings) -> Result<(), LoadError> {
    let name = settings.text("model.optim.name")?;
    if let Some(name) = name
        && name.value.contains("distributed")
    {
        arguments.push(Setting::new("use_distributed_optimizer", Value::Bool(true), name.place));
    }
    let overlap = settings.flag("model.optim.overlap_grad_sync")?.or(settings.flag("model.optim.overlap_grad_reduce")?);
    if let Some(fact) = overlap {
        arguments.push(Setting::new("overlap_grad_reduce", Value::Bool(fact.value), fact.place));
    }
    if let Some(dtype) = settings.text("model.optim.grad_sync_dtype")?.filter(|fact| fact.value.contains("bf16")) {
        arguments.push(Setting::new("grad_reduce_in_bf16", Value::Bool(true), dtype.place));
    }
    Ok(())
}

/// Fields that become another argument.
pub(crate) const CONVERTED: [&str; 10] = [
    "grad_reduce_in_fp32",
    "share_embeddings_and_output_weights",
    "gated_linear_unit",
    "activation",
    "fp8",
    "seq_length",
    "normalization",
    "use_flash_attention",
    "activation_func",
    "num_query_groups",
];

/// Name of Megatron-LM's argument for a field of its configuration classes, as NeMo and Megatron-Bridge use them.
pub(crate) fn renamed(field: &str) -> String {
    match field {
        "activations_checkpoint_granularity" => "recompute_granularity",
        "activations_checkpoint_method" => "recompute_method",
        "activations_checkpoint_num_layers" => "recompute_num_layers",
        "encoder_seq_length" => "seq_length",
        "ub_tp_comm_overlap" => "tp_comm_overlap",
        "num_layers_in_first_pipeline_stage" => "decoder_first_pipeline_num_layers",
        "num_layers_in_last_pipeline_stage" => "decoder_last_pipeline_num_layers",
        "moe_aux_loss_coeff" => "moe_aux_loss_coeff",
        "bias" => "add_bias_linear",
        "fp8_params" => "fp8_param_gather",
        other => other,
    }
    .to_string()
}

/// Arguments of Megatron-LM that a section of fields stands for.
///
/// # Errors
/// [`LoadError`] for a field with a wrong value.
pub(crate) fn arguments(settings: &Settings, section: &str) -> Result<Settings, LoadError> {
    let mut all = Settings::default();
    for (field, setting) in settings.under(section) {
        if field.contains('.') {
            continue;
        }
        let mut push = |name: &str, value: Value| all.push(Setting::new(name, value, setting.place.clone()));
        let text = setting.value.text();
        match field {
            "gated_linear_unit" | "swiglu" => push("swiglu", setting.value.clone()),
            "activation" => {
                if text.contains("glu") {
                    push("swiglu", Value::Bool(true));
                }
            }
            "share_embeddings_and_output_weights" => {
                push("untie_embeddings_and_output_weights", Value::Bool(setting.value.is_off()));
            }
            "grad_reduce_in_fp32" => {
                push("grad_reduce_in_bf16", Value::Bool(setting.value.is_off()));
                push("accumulate_allreduce_grads_in_fp32", Value::Bool(!setting.value.is_off()));
            }
            "num_query_groups" if !setting.value.is_absent() => {
                push("group_query_attention", Value::Bool(true));
                push("num_query_groups", setting.value.clone());
            }
            "normalization" if text == "layernorm1p" => push("normalization", Value::Text("LayerNorm".into())),
            "fp8" if setting.value.is_off() => {}
            // The kind of an 8-bit format that may be off.
            "fp8_hybrid" | "fp8_e4m3" => {}
            "fp8" => push("fp8_format", Value::Text("hybrid".into())),
            "use_flash_attention" | "seq_length" if section == "model" && settings.has("model.encoder_seq_length") => {}
            "pipeline_model_parallel_layout" => push(field, Value::Text(letters(&setting.value))),
            field => push(&renamed(field), setting.value.clone()),
        }
    }
    Ok(all)
}

/// Letters of a layout that is a list of lists of names.
fn letters(layout: &Value) -> String {
    let Value::List(parts) = layout else { return layout.text() };
    let letter = |name: &Value| match name.text().as_str() {
        "embedding" => "E",
        "decoder" => "t",
        "mtp" => "m",
        "loss" => "L",
        _ => "?",
    };
    let part = |part: &Value| match part {
        Value::List(names) => names.iter().map(letter).collect(),
        other => other.text(),
    };
    parts.iter().map(part).collect::<Vec<String>>().join("|")
}

//! axolotl's YAML.
//!
//! Source: axolotl's configuration schema (0.12). Defaults: full fine-tuning of 512 tokens, no recomputation, bfloat16.

use plantui_core::source::LoadError;

use super::{fsdp, hugging_face, zero};
use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Place, Settings},
};

/// Reads axolotl's configurations.
pub(crate) struct AxolotlReader;

static EFFECTS: Effects = Effects {
    none: "\
        base_model_config model_type tokenizer_type strict datasets chat_template dataset_prepared_path val_set_size output_dir
        adapter_ lora_alpha lora_dropout lora_fan_in_fan_out sample_packing eval_sample_packing pad_to_sequence_len num_epochs max_steps
        lr_scheduler learning_rate train_on_inputs group_by_length tf32 early_stopping_patience resume_from_checkpoint local_rank
        logging_steps warmup_steps warmup_ratio evals_per_epoch saves_per_epoch save_steps eval_steps eval_table_size weight_decay
        special_tokens tokens xformers_attention sdp_attention flash_attention flex_attention debug hub_model_id save_total_limit
        eval_max_new_tokens eval_table_max_new_tokens bnb_config_kwargs max_grad_norm adam_beta1 adam_beta2 adam_epsilon
        lora_mlp_kernel lora_qkv_kernel lora_o_kernel lora_embedding_kernel is_llama_derived_model is_mistral_derived_model
        is_qwen_derived_model trust_remote_code flash_attn_cross_entropy flash_attn_rms_norm flash_attn_fuse_qkv flash_attn_fuse_mlp
        remove_unused_columns auto_resume_from_checkpoints save_safetensors seed dataset_processes shuffle_merged_datasets
        gradient_checkpointing_kwargs plugins liger_rope liger_rms_norm liger_glu_activation liger_layer_norm torch_compile_backend
        peft_use_rslora overrides_of_model_config tokenizer_config rl_ save_first_step use_tensorboard dataloader_num_workers_
        flash_optimum mlflow lora_model_dir include_tokens_per_second embeddings_skip_upcast save_only_model excess_length_strategy
        activation_offloading_ unfrozen_parameters_ eot_tokens experimental_skip_move_to_device data_seed dataset_num_proc context_parallel_size_",
    prefixes: "gradient_checkpointing_kwargs wandb_ mlflow_ comet_ eval_ save_ datasets test_datasets tokenizer_ dataloader_ special_tokens hub_ lr_ dataset_",
    matters: "\
        unfrozen_parameters lora_modules_to_save load_in_mxfp4 model_quantization_config quantize_moe_experts selective_checkpointing
        activation_offloading layer_offloading tiled_mlp rl relora_steps reward_model process_reward_model galore lisa_step_interval
        lora_target_parameters world_size use_ray",
    by_sound: true,
};

impl JobReader for AxolotlReader {
    fn id(&self) -> &'static str {
        "axolotl"
    }

    fn title(&self) -> &'static str {
        "an axolotl configuration"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        (syntax == Syntax::Tree && part.settings.has("base_model")).then(|| "base_model".to_string())
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
        let settings = &part.settings;
        let usual = |value: u64| Fact { value, place: Place::new("default of the engine", 0) };
        draft.usual("stack", "torchtitan");
        hugging_face::base(settings, draft, context)?;
        draft.set("mbs", settings.count("micro_batch_size")?.unwrap_or(usual(1)));
        draft.accumulation = Some(settings.count("gradient_accumulation_steps")?.unwrap_or(usual(1)));
        draft.set("sequence_length", settings.count("sequence_len")?.unwrap_or(usual(512)));
        let degrees = [("tensor_parallel_size", "tp"), ("expert_parallel_size", "ep")];
        for (name, degree) in degrees {
            draft.maybe(degree, settings.count(name)?.filter(|fact| fact.value > 1));
        }
        draft.maybe(
            "cp",
            settings.count_of(&["context_parallel_size", "sequence_parallel_degree"])?.filter(|fact| fact.value > 1),
        );
        precision(settings, draft)?;
        match settings.text("gradient_checkpointing")? {
            Some(fact) if ["false", "no", "none"].contains(&fact.value.as_str()) => {
                draft.set("recompute", fact.with("none"));
            }
            Some(fact) => {
                if fact.value.contains("offload") {
                    draft.note(format!("{} keeps the layers' inputs on the host, which is not predicted", fact.place));
                }
                draft.set("recompute", fact.with("full"));
            }
            None => draft.usual("recompute", "none"),
        }
        sharding(settings, draft, context)?;
        software(settings, draft)?;
        tuning(settings, draft)
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

fn precision(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let eight = settings.flag("fp8")?.filter(|fact| fact.value);
    let bf16 = settings.text("bf16")?.or(settings.text("bfloat16")?);
    let fp16 = settings.flag("fp16")?.or(settings.flag("float16")?).filter(|fact| fact.value);
    match (eight, bf16, fp16) {
        (Some(fact), ..) => draft.set("precision", fact.with("fp8")),
        (None, _, Some(fact)) => draft.set("precision", fact.with("fp16")),
        (None, Some(fact), None) if fact.value == "false" => draft.set("precision", fact.with("fp32")),
        (None, Some(fact), None) => {
            if fact.value == "full" {
                super::hugging_face::weights_in_16_bits(draft, &fact);
            }
            draft.set("precision", fact.with("bf16"));
        }
        (None, None, None) => draft.usual("precision", "bf16"),
    }
    settings.skip("fp8_config");
    settings.skip("fp8_enable_fsdp_float8_all_gather");
    Ok(())
}

fn sharding(settings: &Settings, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
    settings.skip("fsdp_version");
    let copies = settings.count("dp_replicate_size")?;
    let shards = settings.count("dp_shard_size")?;
    if let Some(file) = settings.text("deepspeed")? {
        return zero::of_file(&file, draft, context);
    }
    let words = settings.words("fsdp")?.filter(|words| !words.value.is_empty());
    if let Some(words) = &words {
        let place = words.with(String::new());
        draft.set("zero", place.with(3));
        for word in &words.value {
            match word.as_str() {
                "auto_wrap" => {}
                "offload" => {
                    draft.set("parameter_offload", place.with(true));
                    draft.set("optimizer_offload", place.with(true));
                }
                word => fsdp::strategy(draft, &place.with(word.to_string()))?,
            }
        }
    }
    if settings.has_under("fsdp_config") {
        let recompute = draft.facts.get("recompute").cloned();
        fsdp::section(settings, draft, "fsdp_config")?;
        if let Some(recompute) = recompute.filter(|fact| fact.value == "full") {
            draft.facts.insert("recompute".into(), recompute);
        }
    } else if let (None, Some(shards)) = (&words, &shards) {
        draft.set("zero", shards.with(3));
    }
    if let Some(shards) = &shards {
        draft.set("dp", shards.with(shards.value * copies.as_ref().map_or(1, |copies| copies.value)));
    }
    draft.copies = copies;
    draft.usual("zero", 0);
    Ok(())
}

fn software(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let on = |name: &str| Ok::<_, LoadError>(settings.flag(name)?.filter(|fact| fact.value));
    let compiled = settings.text("torch_compile")?.filter(|fact| fact.value == "true");
    match compiled.or(on("liger_rms_norm")?.map(|fact| fact.with(String::new()))) {
        Some(fact) => draft.set("fused_elementwise", fact.with(true)),
        None => draft.usual("fused_elementwise", false),
    }
    for name in
        ["cut_cross_entropy", "liger_fused_linear_cross_entropy", "liger_cross_entropy", "chunked_cross_entropy"]
    {
        if let Some(fact) = on(name)? {
            draft.set("fused_cross_entropy", fact);
        }
    }
    if let Some(fact) = on("eager_attention")? {
        draft.set("attention", fact.with("unfused"));
    }
    settings.skip("attn_implementation");
    if let Some(name) = settings.text("optimizer")? {
        if name.value.contains("8bit") {
            draft.set("moment_bytes", name.with(1));
        }
        if !name.value.contains("adam") {
            draft.note(format!("{} trains with {}; memory and time are those of Adam", name.place, name.value));
        }
    }
    Ok(())
}

fn tuning(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let kind = settings.text("adapter")?;
    let rank = settings.count("lora_r")?;
    let linear = settings.is_set("lora_target_linear")?;
    let targets = settings.words("lora_target_modules")?.filter(|_| !linear);
    let four = settings.flag("load_in_4bit")?.filter(|fact| fact.value);
    let eight = settings.flag("load_in_8bit")?.filter(|fact| fact.value);
    let Some(kind) = kind else { return Ok(()) };
    if !["lora", "qlora"].contains(&kind.value.as_str()) {
        let problem = format!("is {}, which is not modelled", kind.value);
        return Err(kind.place.error("adapter", problem, "give lora or qlora with --with"));
    }
    let four = if kind.value == "qlora" { Some(kind.with(true)) } else { four };
    let Some(rank) = rank else {
        return Err(kind.place.error("lora_r", "is not stated", "state the rank with --with lora_r=N"));
    };
    hugging_face::adapter(draft, &kind.with(()), rank.value, targets.map(|words| words.value), (four, eight))
}

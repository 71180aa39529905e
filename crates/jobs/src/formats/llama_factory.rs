//! LLaMA-Factory's YAML.
//!
//! Source: LLaMA-Factory's `hparams` (0.9). Defaults: LoRA of rank 8, gradient checkpointing, 2048 tokens.

use plantui_core::source::LoadError;

use super::hugging_face;
use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Place, Setting, Settings, Value},
};

/// Reads LLaMA-Factory's configurations.
pub(crate) struct LlamaFactoryReader;

static EFFECTS: Effects = Effects {
    none: "\
        template dataset_dir lora_alpha lora_dropout loraplus_lr_ratio plot_loss overwrite_cache preprocessing_num_workers
        dataloader_num_workers max_samples val_size use_rslora quantization_method quantization_type double_quantization
        image_max_pixels video_max_pixels mask_history train_on_prompt packing neat_packing streaming use_reentrant_gc
        upcast_layernorm ray_run_name ray_storage_path ray_num_workers placement_strategy resources_per_worker export_dir infer_backend
        freeze_vision_tower freeze_multi_modal_projector freeze_language_model rope_scaling default_system enable_thinking
        learning_rate weight_decay adapter_folder pref_beta pref_loss tool_format tokenized_path mix_strategy interleave_probs
        media_dir cache_dir create_new_adapter additional_target_ do_sample preprocessing_batch_size buffer_size ignore_pad_token_for_loss
        do_train do_eval output_dir num_train_epochs max_steps lr_scheduler_type warmup_ratio warmup_steps seed report_to run_name
        ddp_timeout overwrite_output_dir resume_from_checkpoint max_grad_norm predict_with_generate trust_remote_code
        per_device_eval_batch_size eval_strategy eval_steps save_steps logging_steps include_num_input_tokens_seen group_by_length
        remove_unused_columns ddp_find_unused_parameters dataloader_pin_memory bf16_ flash_attn_ hf_hub_token",
    prefixes: "logging_ save_ eval_ hub_ push_to_hub export_ infer_ swanlab_ ray_",
    matters: "\
        use_galore use_apollo use_badam use_muon use_unsloth use_unsloth_gc mixture_of_depths additional_target use_dora pissa_init
        shift_attn reward_model ref_model",
    by_sound: true,
};

impl JobReader for LlamaFactoryReader {
    fn id(&self) -> &'static str {
        "llama-factory"
    }

    fn title(&self) -> &'static str {
        "a LLaMA-Factory configuration"
    }

    fn recognise(&self, _: Syntax, part: &Part) -> Option<String> {
        let settings = &part.settings;
        let other = settings.has("base_model") || settings.has("train_type") || settings.has("tuner_type");
        let own = ["finetuning_type", "cutoff_len", "lora_target"].into_iter().find(|name| settings.has(name));
        own.filter(|_| !other && settings.has("model_name_or_path")).map(ToString::to_string)
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
        let settings = &part.settings;
        hugging_face::launcher(part, draft, context)?;
        hugging_face::base(settings, draft, context)?;
        let stage = settings.text("stage")?;
        if let Some(stage) = stage.filter(|stage| !["sft", "pt"].contains(&stage.value.as_str())) {
            let problem = format!("is {}: training with a second model is not modelled", stage.value);
            return Err(stage.place.error("stage", problem, "predict the supervised part, with --with stage=sft"));
        }
        if !settings.has("cutoff_len") {
            let place = Place::new("default of the engine", 0);
            draft.set("sequence_length", Fact { value: 2048, place });
        }
        let stated = ["bf16", "fp16", "pure_bf16"].iter().any(|name| settings.has(name));
        hugging_face::arguments(settings, draft, context)?;
        if !stated {
            // The model is loaded in its own format.
            draft.facts.remove("precision");
            draft.usual("precision", "bf16");
        }
        // Checkpointing is on unless it is switched off.
        match settings.flag("disable_gradient_checkpointing")? {
            Some(fact) => draft.set("recompute", fact.map(|off| if off { "none" } else { "full" })),
            None => {
                let place = Place::new("default of the engine", 0);
                draft.set("recompute", Fact { value: "full", place });
            }
        }
        tuning(settings, draft)?;
        if settings.is_set("use_mca")? || settings.has("tensor_model_parallel_size") {
            let kept = draft.facts.clone();
            let model = draft.model.clone();
            let mut arguments = megatron(settings);
            if let Some(model) = draft.options.model.as_ref().or(model.as_ref().map(|model| &model.value)) {
                let layers = Value::Text(model.layers.len().to_string());
                arguments.push(Setting::new("num_layers", layers, Place::new("the model", 0)));
            }
            super::megatron::arguments(&arguments, draft, false)?;
            draft.model = model;
            super::megatron::of_experts(&arguments, draft)?;
            // What the other arguments state stays: precision, batch.
            for name in ["precision", "mbs", "sequence_length", "attention"] {
                if let Some(fact) = kept.get(name) {
                    draft.facts.insert(name.into(), fact.clone());
                }
            }
            draft
                .facts
                .insert("stack".into(), Fact { value: "megatron-2025".into(), place: Place::new("mcore_adapter", 0) });
        }
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

/// Arguments of Megatron-Core among the settings.
fn megatron(settings: &Settings) -> Settings {
    let mut all = Settings::default();
    for name in [
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "virtual_pipeline_model_parallel_size",
        "expert_model_parallel_size",
        "context_parallel_size",
        "sequence_parallel",
        "use_distributed_optimizer",
        "recompute_granularity",
        "recompute_method",
        "recompute_num_layers",
        "moe_grouped_gemm",
        "moe_token_dispatcher_type",
        "overlap_grad_reduce",
        "overlap_param_gather",
    ] {
        if let Some(setting) = settings.take(name) {
            all.push(setting.clone());
        }
    }
    all.push(Setting::new("bf16", Value::Bool(true), Place::new("default of the engine", 0)));
    all
}

fn tuning(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let kind = settings.text("finetuning_type")?;
    let rank = settings.count("lora_rank")?;
    let targets = settings.words("lora_target")?;
    let bits = settings.count("quantization_bit")?;
    hugging_face::tuning(draft, ("finetuning_type", kind, "lora"), rank, targets, bits)
}

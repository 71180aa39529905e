//! ms-swift: `swift sft` with the arguments of transformers, `megatron sft` with those of Megatron-Core.
//!
//! Source: ms-swift's arguments (3.x and 4). Defaults differ from those of the programs below it: LoRA of rank 8, recomputation
//! and bfloat16 in `swift`; the distributed optimizer and expert tensor degree 1 in `megatron`.

use plantui_core::source::LoadError;

use super::{hugging_face, megatron, names};
use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Place, Setting, Settings, Value},
};

/// Reads ms-swift's commands.
pub(crate) struct SwiftReader;

const OWN_NONE: &str = "\
        per_device_eval_batch_size eval_batch_size
        dataset val_dataset cached_dataset split_dataset_ratio columns system max_epochs lora_alpha lora_dropout lora_bias
        num_workers dataset_num_proc dataset_shuffle load_from_cache_file use_hf model_author model_name_ finetune no_save_optim no_save_rng
        create_checkpoint_symlink lazy_tokenize truncation_strategy loss_scale template agent_template use_chat_template
        packing padding_free streaming save_total_limit cross_entropy_fusion_impl add_version check_model ddp_timeout
        train_dataloader_shuffle group_by_length freeze_vit freeze_aligner aligner_lr vit_lr max_pixels attn_impl output_dir
        save save_interval eval_interval log_interval lr min_lr lr_warmup_fraction weight_decay clip_grad adam_beta1 adam_beta2
        seed tensorboard_dir wandb_project moe_aux_loss_coeff moe_grouped_gemm moe_permute_fusion moe_router_load_balancing_type
        use_rslora dataloader_num_workers no_load_optim no_load_rng save_safetensors safe_serialization deepspeed_ router_aux_loss_coef
        model_revision quant_method bnb_4bit_quant_type bnb_4bit_use_double_quant bnb_4bit_compute_dtype resume_from_checkpoint
        model_name export_model_parallel external_plugins downstream strict init_strategy warmup_ratio logging_steps test_convert_precision
        torch_dtype_ merge_lora linear_decoupled_in_proj vit_gradient_checkpointing attention_backend_";

static EFFECTS: Effects = Effects {
    none: OWN_NONE,
    prefixes: "logging_ save_ eval_ hub_ push_to_hub wandb_ swanlab_ log_ lr_ tensorboard_ dataset_ adam_ dataloader_ train_iters num_train_epochs learning_rate report_to warmup_",
    matters: "\
        use_galore lisa_activated_layers device_map max_memory ddp_device_map ref_model reward_model teacher_model use_vllm vllm_mode
        freeze_parameters freeze_parameters_ratio trainable_parameters modules_to_save use_dora lora_dtype_ target_regex",
    by_sound: true,
};

impl JobReader for SwiftReader {
    fn id(&self) -> &'static str {
        "ms-swift"
    }

    fn title(&self) -> &'static str {
        "an ms-swift command"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        if syntax != Syntax::Shell && syntax != Syntax::Tree {
            return None;
        }
        if let Some(launch) = &part.launch {
            let program = launch.program.rsplit('/').next().unwrap_or_default();
            let own = ["swift", "megatron"].contains(&program) || launch.program.starts_with("swift/cli");
            return own.then(|| format!("{program} {}", command(part)));
        }
        let own = ["train_type", "tuner_type", "sft_type"].into_iter().find(|name| part.settings.has(name));
        own.map(ToString::to_string)
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
        let word = command(part);
        if !["sft", "pt", ""].contains(&word.as_str()) {
            let place = Place::new(draft.source, part.launch.as_ref().map_or(0, |launch| launch.line));
            let problem = format!("is {word}: training with a second model is not modelled");
            return Err(place.error("the command", problem, "give a job of `sft` or `pt`"));
        }
        let core = part.launch.as_ref().is_some_and(|launch| launch.program.contains("megatron"));
        if core { of_megatron(&part.settings, draft, context) } else { of_transformers(part, draft, context) }
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

fn command(part: &Part) -> String {
    part.launch.as_ref().and_then(|launch| launch.positional.first()).map_or(String::new(), |(word, _)| word.clone())
}

fn usual<T>(value: T) -> Fact<T> {
    Fact { value, place: Place::new("default of the engine", 0) }
}

fn of_megatron(settings: &Settings, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
    for name in ["model", "mcore_model", "load"] {
        if let Some(fact) = settings.text(name)? {
            names::set(draft, fact, context);
        }
    }
    let mut all = settings.clone();
    let mut default = |name: &str, value: Value| {
        if !settings.has(name) {
            all.push(Setting::new(name, value, Place::new("default of the engine", 0)));
        }
    };
    default("use_distributed_optimizer", Value::Bool(true));
    default("expert_tensor_parallel_size", Value::Text("1".into()));
    default("micro_batch_size", Value::Text("1".into()));
    default("global_batch_size", Value::Text("16".into()));
    default("recompute_granularity", Value::Text("selective".into()));
    default("moe_token_dispatcher_type", Value::Text("alltoall".into()));
    if !settings.has("fp16") && !settings.has("torch_dtype") {
        default("bf16", Value::Bool(true));
    }
    let model = draft.model.take();
    // The sizes come from the model's name; the arguments have the layout alone.
    if let Some(model) = &model {
        let layers = model.value.layers.len();
        all.push(Setting::new("num_layers", Value::Text(layers.to_string()), model.place.clone()));
        draft.model = Some(model.clone());
    }
    megatron::arguments(&all, draft, false)?;
    draft.model = model;
    if draft.model.as_ref().is_some_and(|model| model.value.has_experts()) {
        megatron::of_experts(&all, draft)?;
    }
    let known = |setting: &&Setting| all.was_taken(&setting.name) || megatron::effects().has_none(&setting.name);
    for setting in settings.iter().filter(known) {
        settings.take(&setting.name);
    }
    if let Some(none) = settings.text("recompute_granularity")?.filter(|fact| fact.value == "none") {
        draft.set("recompute", none);
    }
    let length = settings.count_of(&["packing_length", "max_length", "seq_length"])?;
    match length {
        Some(length) => draft.set("sequence_length", length),
        None => draft.assume("sequence_length", "the model's longest, at most 8192", "--sequence-length"),
    }
    tuning(settings, draft, "full")
}

fn of_transformers(part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
    let settings = &part.settings;
    hugging_face::launcher(part, draft, context)?;
    hugging_face::base(settings, draft, context)?;
    if !settings.has("per_device_train_batch_size") && !settings.has("batch_size") {
        draft.set("mbs", usual(1));
    }
    let size = settings.count("batch_size")?;
    let steps = settings.has("gradient_accumulation_steps");
    let precision = settings.has("bf16") || settings.has("fp16") || settings.has("torch_dtype");
    let word = settings.text("deepspeed")?;
    let ulysses = settings.count("sequence_parallel_size")?.filter(|fact| fact.value > 1);
    hugging_face::arguments(&without(settings, "deepspeed"), draft, context)?;
    take_all(settings);
    if let Some(size) = size {
        draft.set("mbs", size);
    } else if !settings.has("per_device_train_batch_size") {
        draft.set("mbs", usual(1));
    }
    if !precision {
        draft.set("precision", usual("bf16"));
    }
    if !settings.has("gradient_checkpointing") {
        draft.set("recompute", usual("full"));
    }
    if let Some(ulysses) = ulysses {
        draft.set("context_style", ulysses.with("all-to-all"));
        draft.set("cp", ulysses);
    }
    if !steps {
        draft.accumulation = None;
        draft.set("global_batch", usual(16));
        draft.note("the batch is not stated: ms-swift takes about 16 sequences");
    }
    if let Some(word) = word {
        let short = word.value.trim_start_matches("default-").to_string();
        let stage = short.strip_prefix("zero").and_then(|rest| rest.chars().next()).and_then(|c| c.to_digit(10));
        match stage {
            Some(stage) if !short.ends_with(".json") => {
                draft.set("zero", word.with(stage));
                draft.set("gradient_bytes", word.with(2));
                if short.ends_with("offload") {
                    draft.set("optimizer_offload", word.with(true));
                    if stage == 3 {
                        draft.set("parameter_offload", word.with(true));
                    }
                }
            }
            _ => super::zero::of_file(&word, draft, context)?,
        }
    }
    tuning(settings, draft, "lora")
}

fn without(settings: &Settings, name: &str) -> Settings {
    let mut all = Settings::default();
    settings.iter().filter(|setting| setting.name != name).for_each(|setting| all.push(setting.clone()));
    all
}

/// Takes the settings that the arguments of transformers have used.
fn take_all(settings: &Settings) {
    for name in [
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "max_length",
        "max_seq_length",
        "bf16",
        "fp16",
        "torch_dtype",
        "gradient_checkpointing",
        "optim",
        "torch_compile",
        "use_liger_kernel",
        "fsdp",
        "attn_implementation",
        "model_max_length",
    ] {
        settings.take(name);
    }
}

fn tuning(settings: &Settings, draft: &mut Draft<'_>, usual_kind: &str) -> Result<(), LoadError> {
    let mut kind = None;
    for name in ["train_type", "tuner_type", "sft_type"] {
        let found = settings.text(name)?;
        kind = kind.or(found);
    }
    let rank = settings.count("lora_rank")?;
    let targets = settings.words("target_modules")?.or(settings.words("lora_target_modules")?);
    let bits = settings.count_of(&["quant_bits", "quantization_bit"])?;
    hugging_face::tuning(draft, ("train_type", kind, usual_kind), rank, targets, bits)
}

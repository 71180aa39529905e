//! `TrainingArguments` of transformers, as flags of a script, YAML, JSON or Python, with accelerate's configuration or
//! DeepSpeed's beside them.
//!
//! Source: transformers' `training_args.py` (4.57 and 5). Defaults: 8 sequences per device, 32 bits, no recomputation.

use plantui_core::source::LoadError;

use super::{accelerate, fsdp, names, zero};
use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Place, Setting, Settings, Value},
    syntax::yaml,
};

/// Reads `TrainingArguments`.
pub(crate) struct HuggingFaceReader;

/// Settings without an effect, which other programs on transformers share.
pub(crate) const NONE: &str = "\
        do_train do_eval do_predict output_dir overwrite_output_dir learning_rate weight_decay adam_beta1 adam_beta2 adam_epsilon
        max_grad_norm num_train_epochs max_steps lr_scheduler_type lr_scheduler_kwargs warmup_ratio warmup_steps seed data_seed
        report_to run_name disable_tqdm remove_unused_columns label_names ddp_timeout ddp_find_unused_parameters ddp_bucket_cap_mb
        ddp_backend ddp_broadcast_buffers dataloader_num_workers dataloader_pin_memory dataloader_drop_last
        dataloader_prefetch_factor dataloader_persistent_workers group_by_length length_column_name push_to_hub resume_from_checkpoint
        hub_model_id hub_token hub_strategy hub_private_repo include_inputs_for_metrics include_tokens_per_second
        include_num_input_tokens_seen trust_remote_code use_fast_tokenizer cache_dir token dataset_name dataset_config_name dataset
        dataset_path data_path train_file validation_file eval_dataset metric_for_best_model greater_is_better load_best_model_at_end
        neftune_noise_alpha label_smoothing_factor optim_args logging_steps full_determinism past_index prediction_loss_only
        eval_steps eval_strategy evaluation_strategy per_device_eval_batch_size eval_accumulation_steps save_steps save_strategy
        tf32 half_precision_backend fp16_opt_level use_cpu jit_mode_eval torch_empty_cache_steps average_tokens_across_devices
        tokenizer_name config_name model_revision preprocessing_num_workers overwrite_cache streaming max_train_samples
        max_eval_samples keep_linebreaks local_rank node_rank use_legacy_prediction_loop auto_find_batch_size_ lazy_preprocess
        dataset_text_field dataset_num_proc eos_token pad_token warmup_num_steps gradient_checkpointing_kwargs assistant_only_loss
        completion_only_loss chat_template_path system user bos_token special_tokens model_type_ plugins_ accelerator_config
        torch_compile_backend torch_compile_mode use_liger_kernel liger_kernel_config low_cpu_mem_usage";

/// Beginnings of such settings.
pub(crate) const PREFIXES: &str =
    "logging_ save_ eval_ hub_ push_to_hub wandb_ mlflow_ comet_ swanlab_ trackio_ tokenizer_ generation_";

static EFFECTS: Effects = Effects { none: NONE, prefixes: PREFIXES, matters: "optim_target_modules", by_sound: true };

/// Tells names of `TrainingArguments` from those of other programs that take them.
const OTHERS: [&str; 8] =
    ["finetuning_type", "train_type", "tuner_type", "sft_type", "base_model", "stage", "cutoff_len", "template"];

impl JobReader for HuggingFaceReader {
    fn id(&self) -> &'static str {
        "huggingface"
    }

    fn title(&self) -> &'static str {
        "Hugging Face TrainingArguments"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        let settings = &part.settings;
        if syntax == Syntax::Dump || syntax == Syntax::Log || OTHERS.iter().any(|name| settings.has(name)) {
            return None;
        }
        if part.launch.as_ref().is_some_and(|launch| ["swift", "megatron"].contains(&launch.program.as_str())) {
            return None;
        }
        let own = ["per_device_train_batch_size", "per_gpu_train_batch_size"];
        let direct = own.iter().find(|name| settings.has(name)).map(|name| (*name).to_string());
        direct.or_else(|| arguments_of(settings).map(|_| "TrainingArguments".to_string()))
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
        let inner = arguments_of(&part.settings).map(|name| with_changes(&part.settings, &name));
        let settings = inner.as_ref().unwrap_or(&part.settings);
        launcher(part, draft, context)?;
        base(settings, draft, context)?;
        arguments(settings, draft, context)?;
        peft(settings, draft)?;
        if let Some(inner) = &inner {
            of_program(&part.settings, draft)?;
            draft.leave(inner, &EFFECTS)?;
            // The rest of a Python file is a program.
            part.settings.iter().for_each(|setting| part.settings.skip(&setting.name));
        }
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

/// Name of the variable of a Python file that holds `TrainingArguments(..)`.
fn arguments_of(settings: &Settings) -> Option<String> {
    settings
        .iter()
        .find(|setting| {
            setting.value.text().ends_with("TrainingArguments") || setting.value.text().ends_with("SFTConfig")
        })
        .map(|setting| setting.name.clone())
}

/// Settings of the arguments, with the fields that the program sets behind the call.
fn with_changes(settings: &Settings, name: &str) -> Settings {
    let mut inner = settings.part(name);
    let Some(line) = settings.look(name).map(|setting| setting.place.line) else { return inner };
    let later: Vec<Setting> = settings
        .iter()
        .filter(|setting| setting.place.line > line && CHANGED.contains(&setting.name.as_str()))
        .cloned()
        .collect();
    later.into_iter().for_each(|setting| inner.push(setting));
    inner
}

/// Fields that programs set after they made the arguments.
const CHANGED: [&str; 10] = [
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "bf16",
    "fp16",
    "gradient_checkpointing",
    "deepspeed",
    "fsdp",
    "optim",
    "max_length",
    "max_seq_length",
];

/// Reads the rest of a Python program: adapters, a base in 4 bits, checkpointing of the model.
fn of_program(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let checkpoints = settings.iter().find(|setting| setting.name.ends_with("gradient_checkpointing_enable"));
    if let Some(setting) = checkpoints {
        draft.set("recompute", Fact { value: "full", place: setting.place.clone() });
    }
    let config = settings.iter().find(|setting| setting.value.text().ends_with("LoraConfig"));
    let four = settings
        .iter()
        .find(|setting| setting.name.ends_with("load_in_4bit") && !setting.value.is_off())
        .map(|setting| Fact { value: true, place: setting.place.clone() });
    let eight = settings
        .iter()
        .find(|setting| setting.name.ends_with("load_in_8bit") && !setting.value.is_off())
        .map(|setting| Fact { value: true, place: setting.place.clone() });
    if let Some(config) = config.filter(|_| !draft.facts.contains_key("adapter")) {
        let rank = settings.count(&format!("{}.r", config.name))?.map_or(8, |fact| fact.value);
        let targets = settings.words(&format!("{}.target_modules", config.name))?.map(|words| words.value);
        let place = Fact { value: (), place: config.place.clone() };
        adapter(draft, &place, rank, targets, (four, eight))?;
    }
    Ok(())
}

/// accelerate's configuration, and its flags, of a launch.
pub(crate) fn launcher(part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
    let Some(launch) = &part.launch else { return Ok(()) };
    let options = &launch.options;
    let mut all = Settings::default();
    if let Some(file) = options.text("config_file")? {
        let Some((text, source)) = context.file(&file.value) else {
            let problem = format!("is {}, which is not there", plantui_core::text::printable(&file.value));
            return Err(file.place.error("accelerate's configuration", problem, "put it beside the job"));
        };
        all = yaml::read(&text, &source)?;
    }
    if launch.launchers.iter().any(|launcher| launcher.starts_with("accelerate")) {
        flags(options, &mut all);
    }
    if all.iter().next().is_some() {
        accelerate::configuration(&all, draft, context)?;
    }
    Ok(())
}

/// Flags of `accelerate launch` as settings of its configuration, whose values they replace.
fn flags(options: &Settings, all: &mut Settings) {
    let mut set = |name: &str, setting: &Setting, value: Value| {
        all.push(Setting::new(name, value, setting.place.clone()));
    };
    for (flag, kind) in [("use_fsdp", "FSDP"), ("use_deepspeed", "DEEPSPEED"), ("use_megatron_lm", "MEGATRON_LM")] {
        if let Some(setting) = options.take(flag) {
            set("distributed_type", setting, Value::Text(kind.into()));
        }
    }
    const DEEPSPEED: [&str; 5] = [
        "zero_stage",
        "offload_optimizer_device",
        "offload_param_device",
        "deepspeed_config_file",
        "gradient_accumulation_steps",
    ];
    for setting in options.iter() {
        let name = setting.name.as_str();
        let section = match name {
            "num_processes" | "num_machines" | "mixed_precision" => name.to_string(),
            "use_fsdp" | "use_deepspeed" | "use_megatron_lm" => continue,
            _ if name.starts_with("fsdp_") => format!("fsdp_config.{name}"),
            _ if name.starts_with("megatron_lm_") => format!("megatron_lm_config.{name}"),
            _ if DEEPSPEED.contains(&name) => format!("deepspeed_config.{name}"),
            _ => continue,
        };
        options.take(name);
        set(&section, setting, setting.value.clone());
        if name == "gradient_accumulation_steps" {
            set(name, setting, setting.value.clone());
        }
    }
}

/// The model by its name.
pub(crate) fn base(settings: &Settings, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
    for name in ["model_name_or_path", "base_model", "model", "model_id", "model_id_or_path"] {
        if let Some(fact) = settings.text(name)? {
            names::set(draft, fact, context);
        }
    }
    Ok(())
}

/// Batch, precision, recomputation and sharding of the arguments.
///
/// # Errors
/// [`LoadError`] for a value that cannot be read, or a feature that is not modelled.
pub(crate) fn arguments(settings: &Settings, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
    draft.usual("stack", "torchtitan");
    match settings.count_of(&["per_device_train_batch_size", "per_gpu_train_batch_size"])? {
        Some(size) => draft.set("mbs", size),
        None => draft.usual("mbs", 8),
    }
    match settings.count("gradient_accumulation_steps")? {
        Some(steps) => draft.accumulation = Some(steps),
        None if draft.accumulation.is_none() => {
            draft.accumulation = Some(Fact { value: 1, place: Place::new("default of the engine", 0) });
        }
        None => {}
    }
    if let Some(fact) = settings.flag("auto_find_batch_size")?.filter(|fact| fact.value) {
        let repair = "give the size with --parallel mbs=N, and --with auto_find_batch_size=false";
        return Err(fact.place.error("auto_find_batch_size", "finds the micro-batch when the job runs", repair));
    }
    let lengths = ["max_seq_length", "max_length", "block_size", "model_max_length", "cutoff_len", "sequence_len"];
    match settings.count_of(&lengths)? {
        Some(length) => draft.set("sequence_length", length),
        None if !draft.facts.contains_key("sequence_length") => {
            draft.assume("sequence_length", "the model's longest, at most 8192", "--sequence-length");
        }
        None => {}
    }
    let on = |name: &str| Ok::<_, LoadError>(settings.flag(name)?.filter(|fact| fact.value));
    let loaded = settings.text("torch_dtype")?.or(settings.text("dtype")?);
    let pure = on("pure_bf16")?;
    let half = loaded.as_ref().filter(|dtype| dtype.value.contains("bfloat16")).map(|dtype| dtype.with(true));
    if let Some(fact) =
        pure.clone().or(half).filter(|_| pure.is_some() || draft.facts.get("zero").is_none_or(|fact| fact.value == "0"))
    {
        weights_in_16_bits(draft, &fact);
    }
    if let Some(fact) = on("bf16")?.or(pure) {
        draft.set("precision", fact.with("bf16"));
    } else if let Some(fact) = on("fp16")? {
        draft.set("precision", fact.with("fp16"));
    } else if !draft.facts.contains_key("precision") {
        match loaded {
            Some(dtype) if dtype.value.contains("bfloat16") => draft.set("precision", dtype.with("bf16")),
            Some(dtype) if dtype.value.contains("float16") => draft.set("precision", dtype.with("fp16")),
            _ => draft.usual("precision", "fp32"),
        }
    }
    match on("gradient_checkpointing")?.or(on("activation_checkpointing")?) {
        Some(fact) => draft.set("recompute", fact.with("full")),
        None if settings.has("gradient_checkpointing") => {
            if let Some(fact) = settings.flag("gradient_checkpointing")? {
                draft.set("recompute", fact.with("none"));
            }
        }
        None => draft.usual("recompute", "none"),
    }
    attention(settings, draft)?;
    let compiled = on("torch_compile")?.or(on("use_liger_kernel")?).or(on("enable_liger_kernel")?);
    match compiled {
        Some(fact) => draft.set("fused_elementwise", fact),
        None => draft.usual("fused_elementwise", false),
    }
    if on("use_liger_kernel")?.is_some() || on("enable_liger_kernel")?.is_some() {
        draft.usual("fused_cross_entropy", true);
    }
    optimizer(settings, draft)?;
    let divided = settings.has_under("deepspeed")
        || settings.text("deepspeed")?.is_some_and(|file| file.value != "true")
        || settings.words("fsdp")?.is_some_and(|words| words.value.iter().any(|word| word != "false"));
    if divided && !settings.is_set("pure_bf16")? {
        keep_copies(draft);
    }
    if settings.has_under("deepspeed") && !settings.has("deepspeed") {
        let part = settings.part("deepspeed");
        zero::configuration(&part, draft, false)?;
        draft.leave(&part, &zero::EFFECTS)?;
    }
    if let Some(file) = settings.text("deepspeed")?.filter(|file| file.value != "true") {
        zero::of_file(&file, draft, context)?;
    }
    if let Some(words) = settings.words("fsdp")?.filter(|words| !words.value.is_empty()) {
        let place = Fact { value: String::new(), place: words.place.clone() };
        draft.set("zero", place.with(3));
        for word in &words.value {
            match word.as_str() {
                "auto_wrap" | "true" => {}
                "offload" => {
                    draft.set("parameter_offload", place.with(true));
                    draft.set("optimizer_offload", place.with(true));
                }
                "false" => draft.set("zero", place.with(0)),
                word => fsdp::strategy(draft, &place.with(word.to_string()))?,
            }
        }
    }
    if settings.has_under("fsdp_config") {
        let before = (draft.facts.get("zero").cloned(), draft.facts.get("recompute").cloned());
        fsdp::section(settings, draft, "fsdp_config")?;
        // The words of `fsdp` state the strategy; the section adds to them.
        if let Some(zero) = before.0.filter(|_| !settings.has("fsdp_config.fsdp_sharding_strategy")) {
            draft.facts.insert("zero".into(), zero);
        }
        if let Some(recompute) = before.1.filter(|fact| fact.value == "full") {
            draft.facts.insert("recompute".into(), recompute);
        }
    }
    draft.usual("zero", 0);
    Ok(())
}

/// Weights, gradients and moments in 16 bits: without copies in 32 bits, unless DeepSpeed or FSDP keeps them.
pub(crate) fn weights_in_16_bits<T: Clone>(draft: &mut Draft<'_>, fact: &Fact<T>) {
    for (name, bytes) in [("master_bytes", 0), ("gradient_bytes", 2), ("moment_bytes", 2)] {
        draft.set(name, fact.clone().map(|_| bytes));
    }
}

/// DeepSpeed and FSDP keep weights in 32 bits beside those that the model was loaded in.
fn keep_copies(draft: &mut Draft<'_>) {
    for name in ["master_bytes", "gradient_bytes", "moment_bytes"] {
        draft.facts.remove(name);
    }
}

fn attention(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let word = settings.text("attn_implementation")?.or(settings.text("attn_impl")?).or(settings.text("flash_attn")?);
    if let Some(word) = word
        && ["eager", "disabled"].contains(&word.value.as_str())
    {
        draft.set("attention", word.with("unfused"));
    }
    Ok(())
}

/// Bytes of the optimizer's numbers by its name in transformers.
fn optimizer(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let Some(name) = settings.text("optim")?.or(settings.text("optimizer")?) else { return Ok(()) };
    let word = name.value.to_ascii_lowercase();
    if word.contains("8bit") || word.contains("4bit") {
        draft.set("moment_bytes", name.with(1));
    }
    if word.contains("4bit") {
        draft.note(format!("{} keeps the optimizer's state in 4 bits; memory here counts 8", name.place));
    }
    if !word.contains("adam") || word.contains("galore") || word.contains("apollo") {
        draft.note(format!("{} trains with {}; memory and time are those of Adam", name.place, name.value));
    }
    if word.contains("paged") {
        draft.note(format!("{} may move the optimizer's state to the host, which is not predicted", name.place));
    }
    Ok(())
}

/// Adapters of TRL's and of similar arguments.
fn peft(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let used = settings.flag("use_peft")?.filter(|fact| fact.value);
    let quantised = settings.flag("load_in_4bit")?.filter(|fact| fact.value);
    let eight = settings.flag("load_in_8bit")?.filter(|fact| fact.value);
    let rank = settings.count_of(&["lora_r", "lora_rank"])?;
    let targets = settings.words("lora_target_modules")?;
    for name in ["lora_alpha", "lora_dropout", "use_rslora", "bnb_4bit_quant_type", "use_bnb_nested_quant"] {
        settings.skip(name);
    }
    if used.is_none() && rank.is_none() {
        return Ok(());
    }
    let place = used.map(|fact| fact.with(())).or(rank.clone().map(|fact| fact.with(())));
    let Some(place) = place else { return Ok(()) };
    adapter(draft, &place, rank.map_or(16, |rank| rank.value), targets.map(|words| words.value), (quantised, eight))
}

/// Reads full training or LoRA, by the name of its kind: `usual` if none is stated. The rank is 8 by default, as in ms-swift
/// and LLaMA-Factory.
///
/// # Errors
/// [`LoadError`] for another kind, or as [`adapter`].
pub(crate) fn tuning(
    draft: &mut Draft<'_>,
    (name, kind, usual): (&str, Option<Fact>, &str),
    rank: Option<Fact<u64>>,
    targets: Option<Fact<Vec<String>>>,
    bits: Option<Fact<u64>>,
) -> Result<(), LoadError> {
    let word = kind.as_ref().map_or(usual, |fact| fact.value.as_str()).to_string();
    let place = kind.map_or_else(|| Place::new("default of the engine", 0), |fact| fact.place);
    match word.as_str() {
        "full" => Ok(()),
        "lora" => {
            let four = bits.as_ref().filter(|bits| bits.value == 4).map(|bits| bits.with(true));
            let eight = bits.filter(|bits| bits.value != 4).map(|bits| bits.with(true));
            let rank = rank.map_or(8, |rank| rank.value);
            adapter(draft, &Fact { value: (), place }, rank, targets.map(|words| words.value), (four, eight))
        }
        other => {
            let problem = format!("is {other}, which is not modelled");
            Err(place.error(name, problem, "give full or lora with --with"))
        }
    }
}

/// Sets an adapter.
///
/// # Errors
/// [`LoadError`] for a base in 8 bits, which is not modelled.
pub(crate) fn adapter(
    draft: &mut Draft<'_>,
    place: &Fact<()>,
    rank: u64,
    targets: Option<Vec<String>>,
    (four, eight): (Option<Fact<bool>>, Option<Fact<bool>>),
) -> Result<(), LoadError> {
    if let Some(eight) = eight {
        let repair = "predict it in 4 bits or without quantisation, with --adapter qlora:r=N or lora:r=N";
        return Err(eight.place.error("load_in_8bit", "has a base in 8 bits, which is not modelled", repair));
    }
    let kind = if four.is_some() || draft.four_bits { "qlora" } else { "lora" };
    let targets = targets.unwrap_or_default();
    let all = targets.is_empty() || targets.iter().any(|word| word.starts_with("all"));
    let short = |word: &String| {
        let word = word.trim_end_matches("_proj");
        word.rsplit('.').next().unwrap_or(word).to_string()
    };
    let targets = if all { "all".to_string() } else { targets.iter().map(short).collect::<Vec<_>>().join("+") };
    let text = format!("{kind}:r={rank},targets={targets}");
    plantui_core::workload::training::Adapter::parse(&text)
        .map_err(|problem| place.place.error("the adapter", problem, "give it with --adapter"))?;
    draft.set("adapter", place.with(text));
    Ok(())
}

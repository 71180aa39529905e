//! accelerate's configuration: FSDP, DeepSpeed, Megatron-LM, or plain data parallelism.
//!
//! Source: accelerate's `commands/config` and `utils/dataclasses.py` (1.x). The file states no model and no batch.

use plantui_core::source::LoadError;

use super::{fsdp, zero};
use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Setting, Settings},
};

/// Reads accelerate's YAML.
pub(crate) struct AccelerateReader;

static EFFECTS: Effects = Effects {
    none: "\
        compute_environment debug downcast_bf16 machine_rank main_process_ip main_process_port
        main_training_function rdzv_backend same_network tpu_env tpu_use_cluster tpu_use_sudo tpu_name
        tpu_zone enable_cpu_affinity gpu_ids commands command_file tpu_metadata fp16 ipex_config
        deepspeed_config.deepspeed_multinode_launcher deepspeed_config.zero3_init_flag
        deepspeed_config.zero3_save_16bit_model deepspeed_config.deepspeed_hostfile
        deepspeed_config.gradient_clipping deepspeed_config.deepspeed_exclusion_filter
        deepspeed_config.deepspeed_inclusion_filter deepspeed_config.offload_optimizer_nvme_path
        deepspeed_config.offload_param_nvme_path deepspeed_config.deepspeed_moe_layer_cls_names
        megatron_lm_config.megatron_lm_gradient_clipping",
    prefixes: "\
        dynamo_ rdzv mpirun",
    matters: "",
    by_sound: true,
};

/// True if the settings are accelerate's.
pub(crate) fn is_accelerate(settings: &Settings) -> bool {
    settings.has("distributed_type")
        || settings.has("compute_environment")
        || settings.has_under("megatron_lm_config")
        || settings.has_under("fsdp_config") && settings.has("num_processes")
}

impl JobReader for AccelerateReader {
    fn id(&self) -> &'static str {
        "accelerate"
    }

    fn title(&self) -> &'static str {
        "an accelerate configuration"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        (syntax == Syntax::Tree && is_accelerate(&part.settings)).then(|| "distributed_type".to_string())
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
        configuration(&part.settings, draft, context)?;
        draft.usual("stack", "torchtitan");
        draft.usual("fused_elementwise", false);
        if !draft.facts.contains_key("precision") {
            draft.usual("precision", "fp32");
        }
        draft.usual("recompute", "none");
        if draft.degree("tp") > 1 {
            // Transformers' plans divide the matrices, not the norms between them.
            draft.usual("sequence_parallel", false);
        }
        if !draft.facts.contains_key("sequence_length") {
            draft.assume("sequence_length", "the model's longest, at most 8192", "--sequence-length");
        }
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

/// Reads the configuration to facts.
///
/// # Errors
/// [`LoadError`] for a value that cannot be read, or a kind that is not modelled.
pub(crate) fn configuration(
    settings: &Settings,
    draft: &mut Draft<'_>,
    context: &Context<'_>,
) -> Result<(), LoadError> {
    draft.maybe("devices", settings.count("num_processes")?);
    if let (Some(machines), Some(all)) = (settings.count("num_machines")?, draft.facts.get("devices")) {
        let each = all.value.parse::<u64>().unwrap_or(1) / machines.value.max(1);
        draft.per_machine = Some(machines.with(each));
    }
    if let Some(word) = settings.text("mixed_precision")? {
        match word.value.as_str() {
            "no" | "false" => draft.set("precision", word.with("fp32")),
            known => draft.set("precision", word.with(known.to_string())),
        }
    }
    if let Some(steps) = settings.count("gradient_accumulation_steps")? {
        draft.accumulation = Some(steps);
    }
    let kind = settings.text("distributed_type")?;
    let own = kind.as_ref().map(|fact| fact.value.to_ascii_uppercase()).unwrap_or_default();
    let own = own.rsplit('.').next().unwrap_or_default().to_string();
    settings.flag("use_cpu")?;
    match own.as_str() {
        "FSDP" => fsdp::section(settings, draft, "fsdp_config")?,
        "DEEPSPEED" => deepspeed(settings, draft, context)?,
        "MEGATRON_LM" => megatron(settings, draft, context)?,
        "NO" | "MULTI_GPU" | "" => draft.usual("zero", 0),
        _ => {
            let place = kind.map(|fact| fact.place).unwrap_or(crate::setting::Place::new(draft.source, 0));
            return Err(place.error(
                "distributed_type",
                format!("is {own}, which is not modelled"),
                "give FSDP, DEEPSPEED, MEGATRON_LM or MULTI_GPU",
            ));
        }
    }
    // Sections of other kinds are inert.
    for (section, kind) in
        [("fsdp_config", "FSDP"), ("deepspeed_config", "DEEPSPEED"), ("megatron_lm_config", "MEGATRON_LM")]
    {
        if own != kind && settings.has_under(section) {
            settings.skip(section);
            draft.note(format!("{section} has no effect: distributed_type is {own}"));
        }
    }
    for (name, degree) in [("tp_size", "tp"), ("cp_size", "cp")] {
        let long = format!("parallelism_config.parallelism_config_{name}");
        let found = settings.count(&long)?.or(settings.count(&format!("parallelism_config.{name}"))?);
        draft.maybe(degree, found.filter(|fact| fact.value > 1));
    }
    if let Some(ulysses) =
        settings.count("parallelism_config.parallelism_config_sp_size")?.filter(|fact| fact.value > 1)
    {
        draft.set("context_style", ulysses.with("all-to-all"));
        draft.set("cp", ulysses);
    }
    let strategy = settings.text("parallelism_config.parallelism_config_cp_comm_strategy")?;
    if draft.degree("cp") > 1 && !draft.facts.contains_key("context_style") {
        match strategy.filter(|fact| fact.value == "alltoall") {
            // PyTorch passes keys and values on, rank by rank.
            Some(fact) => draft.set("context_style", fact.with("ring")),
            None => draft.usual("context_style", "all-gather"),
        }
    }
    draft.maybe("sequence_length", settings.count("parallelism_config.parallelism_config_sp_seq_length")?);
    draft.copies = settings.count("parallelism_config.parallelism_config_dp_replicate_size")?;
    if let Some(shards) = settings.count("parallelism_config.parallelism_config_dp_shard_size")? {
        draft.set("dp", shards.with(shards.value * draft.copies.as_ref().map_or(1, |copies| copies.value)));
    }
    for word in ["sp_backend", "sp_seq_length_is_variable", "sp_attn_implementation"] {
        settings.skip(&format!("parallelism_config.parallelism_config_{word}"));
    }
    if settings.has_under("fp8_config") {
        settings.skip("fp8_config");
    }
    Ok(())
}

fn deepspeed(settings: &Settings, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
    if let Some(file) = settings.text("deepspeed_config.deepspeed_config_file")? {
        settings.skip("deepspeed_config");
        return zero::of_file(&file, draft, context);
    }
    match settings.count("deepspeed_config.zero_stage")? {
        Some(stage) => draft.set("zero", stage),
        None => draft.usual("zero", 2),
    }
    draft.usual("gradient_bytes", 2);
    if let Some(steps) = settings.count("deepspeed_config.gradient_accumulation_steps")? {
        draft.accumulation = Some(steps);
    }
    for (name, target) in
        [("offload_optimizer_device", "optimizer_offload"), ("offload_param_device", "parameter_offload")]
    {
        let device = settings.text(&format!("deepspeed_config.{name}"))?;
        if let Some(device) = device.filter(|device| device.value != "none") {
            draft.set(target, device.with(true));
        }
    }
    Ok(())
}

/// Reads the Megatron-LM section by the rules of Megatron's own arguments.
fn megatron(settings: &Settings, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
    let mut arguments = Settings::default();
    for (name, setting) in settings.under("megatron_lm_config") {
        let short = name.strip_prefix("megatron_lm_").unwrap_or(name);
        let own = match short {
            "tp_degree" => "tensor_model_parallel_size",
            "pp_degree" => "pipeline_model_parallel_size",
            "sequence_parallelism" => "sequence_parallel",
            other => other,
        };
        arguments.push(Setting::new(own, setting.value.clone(), setting.place.clone()));
    }
    settings.skip("megatron_lm_config");
    draft.chunks = arguments.count("num_micro_batches")?;
    arguments.skip("gradient_clipping");
    let precision = draft.facts.get("precision").cloned();
    super::megatron::arguments(&arguments, draft, false)?;
    draft.facts.remove("precision");
    if let Some(precision) = precision {
        draft.facts.insert("precision".into(), precision);
    }
    let _ = context;
    draft.leave(&arguments, super::megatron::effects())
}

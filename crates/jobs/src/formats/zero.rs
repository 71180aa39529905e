//! DeepSpeed's configuration, alone or beside the arguments of another program.
//!
//! Source: DeepSpeed 0.19's configuration JSON. `auto` stands for what the other program states.

use plantui_core::source::LoadError;

use crate::{
    effects::Effects,
    format::Context,
    job::Draft,
    setting::{Fact, Place, Settings},
    syntax::yaml,
};

/// Effects of entries that are not used.
pub(crate) static EFFECTS: Effects = Effects {
    none: "\
        steps_per_print wall_clock_breakdown dump_state gradient_clipping prescale_gradients
        gradient_predivide_factor communication_data_type memory_breakdown zero_allow_untested_optimizer
        zero_force_ds_cpu_optimizer checkpoint sparse_gradients disable_allgather
        seq_parallel_communication_data_type data_types.grad_accum_dtype load_universal_checkpoint
        use_node_local_storage train_iters fp32_allreduce
        zero_optimization.stage3_gather_16bit_weights_on_model_save
        zero_optimization.stage3_gather_fp16_weights_on_model_save
        zero_optimization.round_robin_gradients zero_optimization.elastic_checkpoint
        zero_optimization.ignore_unused_parameters zero_optimization.load_from_fp32_weights
        expert_parallel.preset_model expert_parallel.moe_layer_pattern expert_parallel.expert_pattern expert_parallel.router_pattern
        expert_parallel.use_grouped_mm expert_parallel.disable_triton_grouped_mm expert_parallel.route_norm expert_parallel.route_scale
        expert_parallel.load_balance_coeff expert_parallel.validate_folding_routing expert_parallel.async_split_plan
        zero_optimization.log_trace_cache_warnings pipeline.seed_layers pipeline.pipe_partitioned
        pipeline.grad_partitioned bf16.loss_scale bf16.initial_scale_power",
    prefixes: "\
        scheduler optimizer.params fp16.loss_scale fp16.initial_scale fp16.hysteresis fp16.min_loss
        fp16.auto_cast fp16.consecutive_hysteresis flops_profiler tensorboard wandb csv_monitor comet
        comms_logger monitor_config aio curriculum data_efficiency elasticity autotuning checkpoint
        nebula eigenvalue zero_optimization.overlap_comm zero_optimization.contiguous_gradients
        zero_optimization.reduce_scatter zero_optimization.reduce_bucket zero_optimization.allgather
        zero_optimization.sub_group zero_optimization.stage3_ zero_optimization.gather_16bit zero_optimization.offload_optimizer.n zero_optimization.offload_param.n
        zero_optimization.stage3_param_persistence zero_optimization.stage3_model_persistence
        zero_optimization.offload_optimizer.p zero_optimization.offload_optimizer.b
        zero_optimization.offload_optimizer.f zero_optimization.offload_param.p
        zero_optimization.offload_param.b zero_optimization.offload_param.max
        zero_optimization.offload_optimizer.max zero_optimization.memory_efficient_linear
        zero_optimization.use_all_reduce zero_optimization.module_granularity
        activation_checkpointing.contiguous activation_checkpointing.synchronize
        activation_checkpointing.profile",
    matters: "",
    by_sound: true,
};

/// Reads a configuration to facts. `alone` is true if no other program states the batch.
///
/// # Errors
/// [`LoadError`] for a value that cannot be read, or a feature that is not modelled.
pub(crate) fn configuration(settings: &Settings, draft: &mut Draft<'_>, alone: bool) -> Result<(), LoadError> {
    batch(settings, draft)?;
    let bf16 = settings.flag("bf16.enabled")?.or(settings.flag("bfloat16.enabled")?);
    let fp16 = settings.flag("fp16.enabled")?;
    for name in ["amp.enabled", "torch_autocast.enabled", "fp16.fp16_master_weights_and_grads"] {
        if let Some(fact) = settings.flag(name)?.filter(|fact| fact.value) {
            return Err(fact.place.error(
                name,
                "is set, which is not modelled",
                format!("leave it out with --with {name}=false"),
            ));
        }
    }
    let on = |fact: Option<Fact<bool>>| fact.filter(|fact| fact.value);
    let automatic = ["bf16.enabled", "bfloat16.enabled", "fp16.enabled"]
        .into_iter()
        .find(|name| settings.look(name).is_some_and(|setting| setting.value.text() == "auto"));
    match (on(bf16), on(fp16)) {
        (None, None) if alone && automatic.is_some() => {
            let own = if automatic == Some("fp16.enabled") { "fp16" } else { "bf16" };
            draft.assume("precision", format!("{own}: the file leaves it to the program (auto)"), "--precision");
            draft.usual("precision", own);
        }
        (Some(fact), _) => draft.set("precision", fact.with("bf16")),
        (None, Some(fact)) => draft.set("precision", fact.with("fp16")),
        (None, None) if alone => draft.usual("precision", "fp32"),
        (None, None) => {}
    }
    // A batch alone is one step of all devices.
    if alone
        && draft.facts.contains_key("global_batch")
        && !draft.facts.contains_key("mbs")
        && draft.accumulation.is_none()
    {
        draft.chunks = Some(Fact { value: 1, place: Place::new("default of the engine", 0) });
    }
    let stage = settings.count("zero_optimization.stage")?;
    let pipeline = settings.count("pipeline.stages")?;
    let stage_number = stage.as_ref().map_or(0, |fact| fact.value);
    match stage {
        Some(stage) => draft.set("zero", stage),
        None => draft.usual("zero", 0),
    }
    if stage_number >= 2 {
        // Each microbatch reduces its gradients, and keeps its own part.
        draft.usual("accumulate_whole", false);
    }
    for (name, target) in [("offload_optimizer", "optimizer_offload"), ("offload_param", "parameter_offload")] {
        let device = settings.text(&format!("zero_optimization.{name}.device"))?;
        if let Some(device) = device.filter(|device| device.value != "none") {
            if device.value == "nvme" {
                draft.note(format!("{} offloads to NVMe, which is predicted as the host's memory", device.place));
            }
            draft.set(target, device.with(true));
        }
    }
    for (name, target) in [
        ("cpu_offload", "optimizer_offload"),
        ("cpu_offload_params", "parameter_offload"),
        ("cpu_offload_param", "parameter_offload"),
    ] {
        if let Some(fact) = on(settings.flag(&format!("zero_optimization.{name}"))?) {
            draft.set(target, fact);
        }
    }
    for (name, words) in [
        ("zero_hpz_partition_size", "keeps a second copy of the weights in groups"),
        ("mics_shard_size", "divides the weights in groups alone"),
    ] {
        if let Some(size) = settings.count(&format!("zero_optimization.{name}"))?.filter(|fact| fact.value > 1) {
            if name == "mics_shard_size" {
                draft.set("hsdp", size);
            } else {
                draft.note(format!("{} {words}, which is not predicted", size.place));
            }
        }
    }
    let ulysses = settings.count("sequence_parallel_size")?.filter(|fact| fact.value > 1);
    if let Some(ulysses) = ulysses {
        draft.set("context_style", ulysses.with("all-to-all"));
        draft.set("cp", ulysses);
    }
    let tensor = settings.count_of(&[
        "tensor_parallel.autotp_size",
        "tensor_parallel.tp.tp_size",
        "tensor_parallel.tensor_parallel.tp_size",
    ])?;
    if let Some(tensor) = tensor.filter(|fact| fact.value > 1) {
        draft.set("tp", tensor);
        // AutoTP divides the matrices, not the norms between them, and waits for its transfers.
        for name in ["sequence_parallel", "tp_overlap"] {
            draft.usual(name, false);
        }
    }
    let expert = settings.count_of(&["expert_parallel.ep_size", "expert_parallel.autoep_size"])?;
    draft.maybe("ep", expert.filter(|fact| fact.value > 1));
    settings.is_set("expert_parallel.enabled")?;
    if let Some(stages) = &pipeline {
        draft.set("pp", stages.clone());
    }
    if let Some(partition) = settings.text("pipeline.partition")? {
        draft.note(format!(
            "{} divides the layers by {}; the prediction takes equal numbers",
            partition.place, partition.value
        ));
    }
    // 0 recomputes nothing, n recomputes all layers in groups of n.
    if let Some(interval) = settings.count("pipeline.activation_checkpoint_interval")? {
        let text = if interval.value > 0 { "full" } else { "none" };
        draft.set("recompute", interval.with(text));
    }
    let partitioned = on(settings.flag("activation_checkpointing.partition_activations")?);
    let hosted = on(settings.flag("activation_checkpointing.cpu_checkpointing")?);
    settings.count("activation_checkpointing.number_checkpoints")?;
    if let Some(fact) = partitioned.or(hosted) {
        draft.note(format!(
            "{} configures checkpoints; whether layers recompute is stated elsewhere (--recompute)",
            fact.place
        ));
    }
    let accumulate = settings.text("data_types.grad_accum_dtype")?;
    let wide = accumulate.as_ref().is_some_and(|fact| fact.value.contains("32"));
    let precision = draft.facts.get("precision").cloned();
    let is = |word: &str| precision.as_ref().is_some_and(|fact| fact.value == word);
    if stage_number == 0 && is("bf16") && draft.degree("pp") > 1 {
        // Through a pipeline, the optimizer for bfloat16 divides its state whatever the stage (runtime/bf16_optimizer.py).
        let place = precision.as_ref().map_or(Place::new("default of the engine", 0), |fact| fact.place.clone());
        draft.note(format!("{place}: with a pipeline, DeepSpeed's optimizer for bf16 divides its state over replicas"));
        draft.set("zero", Fact { value: 1, place });
    }
    // Gradients are added in the format of the weights.
    let narrow = !wide && (is("bf16") || is("fp16"));
    draft.usual("gradient_bytes", if narrow { 2 } else { 4 });
    if draft.facts.get("precision").is_some_and(|fact| fact.value == "fp32") {
        draft.facts.remove("gradient_bytes");
        draft.usual("gradient_bytes", 4);
    }
    if on(settings.flag("bf16.bf16_optimizer_states")?).is_some() {
        draft.usual("moment_bytes", 2);
    }
    if on(settings.flag("bf16.bf16_master_weights_and_grads")?).is_some() {
        draft.usual("master_bytes", 0);
    }
    if let Some(kind) = settings.text("optimizer.type")?
        && !kind.value.to_ascii_lowercase().contains("adam")
    {
        draft.note(format!("{} trains with {}; memory and time are those of Adam", kind.place, kind.value));
    }
    Ok(())
}

fn batch(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    if let Some(size) = settings.count("train_micro_batch_size_per_gpu")? {
        draft.set("mbs", size);
    }
    if let Some(steps) = settings.count("gradient_accumulation_steps")? {
        draft.accumulation = Some(steps);
    }
    if let Some(global) = settings.count("train_batch_size")? {
        draft.set("global_batch", global);
    }
    Ok(())
}

/// Stage and offload of the files that LLaMA-Factory and axolotl ship, by their names.
fn stock(name: &str) -> Option<(u32, bool)> {
    let base = name.rsplit('/').next()?.strip_suffix(".json")?;
    let rest = base.strip_prefix("ds_z").map(|rest| rest.trim_end_matches("_config")).or(base.strip_prefix("zero"))?;
    let stage = rest.chars().next()?.to_digit(10).filter(|stage| *stage <= 3)?;
    match &rest[1..] {
        "" | "_bf16" => Some((stage, false)),
        "_offload" | "_bf16_cpuoffload_all" => Some((stage, true)),
        _ => None,
    }
}

/// Reads the configuration that a job names as a file.
///
/// # Errors
/// [`LoadError`] if it is not there, or cannot be read.
pub(crate) fn of_file(name: &Fact, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
    if draft.options.ignore.iter().any(|ignored| ["deepspeed", "deepspeed_config"].contains(&ignored.as_str())) {
        draft.note(format!("{} names {}, which --ignore leaves out", name.place, name.value));
        return Ok(());
    }
    let Some((text, source)) = context.file(&name.value) else {
        if let Some((stage, offloads)) = stock(&name.value) {
            draft.assume(
                "deepspeed",
                format!("ZeRO {stage}, as {} is named", name.value),
                "put the file beside the job",
            );
            draft.set("zero", name.with(stage));
            draft.set("gradient_bytes", name.with(2));
            if offloads {
                draft.set("optimizer_offload", name.with(true));
                if stage == 3 {
                    draft.set("parameter_offload", name.with(true));
                }
            }
            return Ok(());
        }
        let problem = format!("is {}, which is not there", plantui_core::text::printable(&name.value));
        let repair = "put it beside the job, or leave it out with --ignore deepspeed";
        return Err(name.place.error("DeepSpeed's configuration", problem, repair));
    };
    let settings = yaml::read(&text, &source)?;
    configuration(&settings, draft, false)?;
    draft.leave(&settings, &EFFECTS)
}

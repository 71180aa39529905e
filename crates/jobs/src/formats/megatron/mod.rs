//! Megatron-LM's arguments, as flags of a script or as the list in a log.
//!
//! Sources: `megatron/training/arguments.py` and Megatron-Core's configuration classes (core 0.19 and main of August
//! 2026), Megatron-DeepSpeed's `arguments.py`.

mod effects;
mod layout;
mod log;
mod model;

use plantui_core::{source::LoadError, workload::training::Model};

use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    formats::{set_to, zero},
    job::Draft,
    setting::{Fact, Settings},
};

/// Reads Megatron-LM's arguments.
pub(crate) struct MegatronReader;

/// Names of which the arguments have at least one.
const NAMES: [&str; 4] =
    ["tensor_model_parallel_size", "pipeline_model_parallel_size", "num_attention_heads", "encoder_num_layers"];

/// Programs that train something else.
const OTHER_PROGRAMS: [&str; 9] = ["t5", "vlm", "retro", "ict", "realm", "vision", "multimodal", "biencoder", "mimo"];

impl JobReader for MegatronReader {
    fn id(&self) -> &'static str {
        "megatron"
    }

    fn title(&self) -> &'static str {
        "Megatron-LM arguments"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        if !matches!(syntax, Syntax::Shell | Syntax::Dump) {
            return None;
        }
        let program = part.launch.as_ref().map_or("", |launch| launch.program.rsplit('/').next().unwrap_or_default());
        if program.contains("preprocess") || ["swift", "megatron"].contains(&program) {
            return None;
        }
        let own = NAMES.iter().find(|name| part.settings.has(name))?;
        Some((*own).to_string())
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
        let program = part.launch.as_ref().map_or("", |launch| &launch.program);
        let program = program.rsplit('/').next().unwrap_or_default();
        if let Some(other) = OTHER_PROGRAMS.iter().find(|word| program.contains(*word)) {
            let problem = format!("starts {program}: models of the kind `{other}` are not read");
            let repair = "give a job that trains a decoder or BERT, such as pretrain_gpt.py";
            return Err(LoadError::file(draft.source, problem, repair));
        }
        let hybrid = ["hybrid_override_pattern", "hybrid_layer_pattern", "is_hybrid_model", "hybrid_attention_ratio"];
        if program.contains("mamba") && !hybrid.iter().any(|name| part.settings.has(name)) {
            let problem =
                format!("starts {program} without a pattern of its layers: a model of state-space layers alone");
            let repair = "give the model as MODEL, or state --hybrid-override-pattern with --with";
            return Err(LoadError::file(draft.source, problem, repair));
        }
        if context.document.syntax == Syntax::Dump && !context.document.text.contains("end of arguments") {
            draft.note("the log ends inside the arguments: what it does not list has the engine's default");
        }
        exported_vocabulary(context, draft);
        arguments(&part.settings, draft, program.contains("bert"))?;
        deepspeed(&part.settings, draft, context)?;
        if context.document.syntax == Syntax::Dump {
            draft.measured = log::measured(&context.document.text);
        }
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &effects::EFFECTS
    }
}

/// Vocabulary in a comment of an export: `vocabulary: 128256 rows`.
fn exported_vocabulary(context: &Context<'_>, draft: &mut Draft<'_>) {
    draft.vocabulary = context
        .document
        .comments
        .iter()
        .find_map(|(comment, _)| comment.strip_prefix("vocabulary: ")?.split_whitespace().next()?.parse().ok());
}

/// Reads arguments to facts.
///
/// # Errors
/// [`LoadError`] for a value that cannot be read, or arguments that contradict each other.
pub(crate) fn arguments(settings: &Settings, draft: &mut Draft<'_>, encoder: bool) -> Result<(), LoadError> {
    draft.usual("stack", "megatron-2025");
    for (name, fact) in [
        ("tensor_model_parallel_size", "tp"),
        ("pipeline_model_parallel_size", "pp"),
        ("context_parallel_size", "cp"),
        ("expert_model_parallel_size", "ep"),
        ("micro_batch_size", "mbs"),
        ("global_batch_size", "global_batch"),
    ] {
        if let Some(setting) = settings.look(name).filter(|setting| setting.value.text().starts_with('-')) {
            return Err(setting.error(format!("is `{}`, must be from 1", setting.value.text()), "correct it"));
        }
        draft.maybe(fact, settings.count(name)?);
    }
    draft.maybe("devices", settings.count("world_size")?.filter(|fact| fact.value > 0));
    if let Some(data) = settings.count("data_parallel_size")?
        && !draft.facts.contains_key("devices")
    {
        draft.set("dp", data);
    }
    draft.maybe("sequence_length", settings.count_of(&["seq_length", "encoder_seq_length"])?);
    if let Some(ulysses) = settings.count("ds_sequence_parallel_size")?.filter(|fact| fact.value > 1) {
        draft.set("context_style", ulysses.with("all-to-all"));
        draft.set("cp", ulysses);
    }
    if settings.is_set("no_pipeline_parallel")? {
        draft.facts.remove("pp");
    }
    let layers = settings.count_of(&["num_layers", "encoder_num_layers"])?;
    layout::stages(settings, draft, layers.as_ref())?;
    let named = draft.known_model().is_some_and(Model::has_experts);
    draft.model = model::model(settings, draft, encoder)?;
    // A mixture that is named apart has its experts' arguments read by the caller.
    if !named || draft.known_model().is_some_and(Model::has_experts) {
        experts(settings, draft)?;
    }
    precision(settings, draft)?;
    recomputation(settings, draft)?;
    sharding(settings, draft)?;
    software(settings, draft)
}

/// Effects of arguments that are not used.
pub(crate) fn effects() -> &'static Effects {
    &effects::EFFECTS
}

/// Sets the facts about a mixture of experts whose model the arguments do not state.
///
/// # Errors
/// [`LoadError`] for a value that cannot be read.
pub(crate) fn of_experts(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    draft.maybe("ep", settings.count("expert_model_parallel_size")?);
    experts(settings, draft)
}

fn experts(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let own = settings.count("expert_tensor_parallel_size")?;
    let kind = settings.choice("moe_token_dispatcher_type", &["allgather", "alltoall", "alltoall_seq", "flex"])?;
    let backend = settings.choice("moe_flex_dispatcher_backend", &["deepep", "hybridep", "nccl"])?;
    let deepep = settings.flag("moe_enable_deepep")?.filter(|fact| fact.value);
    let shared = settings.flag("moe_shared_expert_overlap")?.filter(|fact| fact.value);
    let batch = settings.flag("overlap_moe_expert_parallel_comm")?.filter(|fact| fact.value);
    let delayed = settings.flag("delay_wgrad_compute")?.filter(|fact| fact.value);
    let capacity = settings.number("moe_expert_capacity_factor")?.filter(|fact| fact.value > 0.0);
    let padded = settings.is_set("moe_pad_expert_input_to_capacity")?;
    let model = draft.known_model();
    if model.is_none_or(|model| !model.has_experts()) {
        if let Some(expert) = draft.facts.remove("ep").filter(|fact| fact.value != "1") {
            draft.note(format!("{} has expert parallelism, and the model no experts", expert.place));
        }
        return Ok(());
    }
    match own {
        Some(own) => draft.set("etp", own),
        // Megatron's default is the tensor degree.
        None => {
            let tensor = draft.degree("tp");
            draft.usual("etp", tensor);
        }
    }
    let dispatcher = match (kind.as_ref().map(|fact| fact.value.as_str()), &backend, &deepep) {
        (_, _, Some(_)) => "deepep",
        (Some("flex"), Some(backend), _) => {
            if backend.value.eq_ignore_ascii_case("hybridep") {
                "hybridep"
            } else {
                "deepep"
            }
        }
        (Some("flex"), None, _) => "deepep",
        (Some("alltoall" | "alltoall_seq"), ..) => "alltoall",
        _ => {
            if draft.degree("ep") > 1 {
                draft.note("the dispatcher allgather is predicted as alltoall");
            }
            "alltoall"
        }
    };
    match kind.or(backend).or(deepep.map(|fact| fact.with(String::new()))) {
        Some(place) => draft.set("dispatcher", place.with(dispatcher)),
        None => draft.usual("dispatcher", dispatcher),
    }
    let has_shared = draft.known_model().is_some_and(|model| {
        model.kinds.iter().any(|kind| kind.experts().is_some_and(|experts| experts.shared_width > 0))
    });
    if let Some(fact) = shared.as_ref().filter(|_| !has_shared) {
        draft.note(format!("{} overlaps shared experts, and the model has none", fact.place));
    }
    if let Some(fact) = shared.as_ref().filter(|_| has_shared) {
        draft.set("ep_overlap", set_to(fact, "shared"));
    }
    if let Some(fact) = &batch {
        draft.set("ep_overlap", set_to(fact, "batch"));
    }
    draft.maybe("delay_weight_gradients", delayed);
    if let Some(capacity) = capacity {
        if padded {
            draft.set("imbalance", capacity.map(|factor| format!("capacity:{factor}")));
        } else {
            draft.note(format!("{} drops tokens beyond a capacity, which is not predicted", capacity.place));
        }
    }
    Ok(())
}

fn precision(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let bf16 = settings.flag("bf16")?.filter(|fact| fact.value);
    let fp16 = settings.flag("fp16")?.filter(|fact| fact.value);
    const FORMATS: [&str; 4] = ["e4m3", "hybrid", "false", "true"];
    let format = settings
        .choice("fp8_format", &FORMATS)?
        .or(settings.choice("fp8", &FORMATS)?)
        .filter(|fact| fact.value != "false");
    let hybrid = settings.flag("fp8_hybrid")?.or(settings.flag("fp8_e4m3")?).filter(|fact| fact.value);
    let four = settings.text("fp4_format")?.or(settings.text("fp4")?).filter(|fact| fact.value != "false");
    let recipe = settings.text("fp8_recipe")?.map(|fact| fact.value);
    let weights = settings.flag("fp8_param_gather")?.or(settings.flag("fp8_param")?).filter(|fact| fact.value);
    let stated = settings.text("params_dtype")?;
    let eight = format.map(|fact| fact.with(())).or(hybrid.map(|fact| fact.with(())));
    if let (Some(fact), Some(_)) = (&weights, &eight) {
        draft.note(format!("{} keeps weights in 8 bits; memory here counts them in 16", fact.place));
    }
    let fact = match (four, eight, bf16, fp16) {
        (Some(four), ..) => four.with("nvfp4"),
        (None, Some(eight), ..) if recipe.as_deref() == Some("mxfp8") => eight.with("mxfp8"),
        (None, Some(eight), ..) => eight.with("fp8"),
        (None, None, Some(bf16), _) => bf16.with("bf16"),
        (None, None, None, Some(fp16)) => fp16.with("fp16"),
        (None, None, None, None) => match stated {
            Some(dtype) if dtype.value.contains("bfloat16") => dtype.with("bf16"),
            Some(dtype) if dtype.value.contains("float16") || dtype.value.contains("half") => dtype.with("fp16"),
            Some(dtype) => dtype.with("fp32"),
            None => {
                draft.usual("precision", "fp32");
                return Ok(());
            }
        },
    };
    draft.set("precision", fact);
    Ok(())
}

fn recomputation(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let granularity = settings.text("recompute_granularity")?;
    let selective = settings.flag("recompute_activations")?.filter(|fact| fact.value);
    // Names of Megatron-DeepSpeed and of releases before 2022.
    let old = settings.flag("checkpoint_activations")?.filter(|fact| fact.value);
    let ds = settings.flag("deepspeed_activation_checkpointing")?.filter(|fact| fact.value);
    let method = settings.text("recompute_method")?;
    // Releases before 2022 have the method alone.
    let old_method = settings.text("activations_checkpoint_method")?;
    let count =
        settings.count_of(&["recompute_num_layers", "activations_checkpoint_num_layers", "checkpoint_num_layers"])?;
    let modules = settings.words("recompute_modules")?;
    let what = match (granularity, selective, old.or(ds)) {
        (Some(granularity), ..) => granularity,
        (None, Some(selective), _) => selective.with("selective".to_string()),
        (None, None, Some(old)) => old.with("full".to_string()),
        (None, None, None) => match &old_method {
            Some(method) => method.with("full".to_string()),
            None => {
                draft.usual("recompute", "none");
                return Ok(());
            }
        },
    };
    let method = method.or(old_method);
    let text = match what.value.as_str() {
        "selective" => match modules {
            Some(modules) if !modules.value.is_empty() => {
                let known: Vec<&str> =
                    modules.value.iter().map(String::as_str).filter(|word| *word != "shared_experts").collect();
                if known.len() < modules.value.len() {
                    draft.note(format!("{} recomputes the shared experts, which is not predicted", modules.place));
                }
                if known.is_empty() { "none".into() } else { format!("selective:{}", known.join(",")) }
            }
            _ => "selective:core_attn".into(),
        },
        "full" if method.is_some_and(|method| method.value == "block") => match count {
            None => "full:1".into(),
            Some(count) if count.value == 0 => "none".into(),
            Some(count) => format!("full:{}", count.value),
        },
        "full" => "full".into(),
        other => {
            let problem = format!("is `{}`, must be selective or full", plantui_core::text::printable(other));
            return Err(what.place.error("recompute_granularity", problem, "correct it"));
        }
    };
    draft.set("recompute", what.with(text));
    Ok(())
}

fn sharding(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let optimizer = settings.flag("use_distributed_optimizer")?;
    let fsdp = settings.flag("use_megatron_fsdp")?.or(settings.flag("use_custom_fsdp")?).filter(|fact| fact.value);
    let torch = settings.flag("use_torch_fsdp2")?.filter(|fact| fact.value);
    let strategy = settings
        .choice("data_parallel_sharding_strategy", &["no_shard", "optim", "optim_grads", "optim_grads_params"])?;
    let instances = settings.count("num_distributed_optimizer_instances")?.filter(|fact| fact.value > 1);
    let zero = match (&fsdp, &torch, strategy) {
        (Some(_), _, Some(strategy)) => match strategy.value.as_str() {
            "no_shard" => strategy.with(0),
            "optim" => strategy.with(1),
            "optim_grads" => strategy.with(2),
            _ => strategy.with(3),
        },
        // Megatron-FSDP's default is no_shard.
        (Some(fact), _, None) => fact.with(0),
        (None, Some(fact), _) => fact.with(3),
        (None, None, _) => match &optimizer {
            Some(fact) => fact.with(u32::from(fact.value)),
            None => {
                draft.usual("zero", 0);
                return Ok(());
            }
        },
    };
    draft.set("zero", zero);
    if let Some(instances) = instances {
        let note =
            format!("{} keeps {} copies of the optimizer's state; memory counts one", instances.place, instances.value);
        draft.note(note);
    }
    Ok(())
}

fn software(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    for (name, setting) in [
        ("sequence_parallel", "sequence_parallel"),
        ("tp_comm_overlap", "tp_overlap"),
        ("overlap_grad_reduce", "dp_overlap"),
        ("cross_entropy_loss_fusion", "fused_cross_entropy"),
        ("optimizer_cpu_offload", "optimizer_offload"),
    ] {
        match settings.flag(name)? {
            Some(fact) => draft.set(setting, fact),
            None => draft.usual(setting, false),
        }
    }
    settings.is_set("overlap_param_gather")?;
    if draft.degree("tp") == 1 {
        draft.facts.remove("tp_overlap");
        draft.usual("tp_overlap", false);
    }
    let half = draft.facts.get("precision").is_some_and(|fact| fact.value == "fp16");
    let narrow = settings.flag("grad_reduce_in_bf16")?.filter(|fact| fact.value);
    let wide = settings.is_set("accumulate_allreduce_grads_in_fp32")?;
    match narrow {
        Some(fact) => draft.set("gradient_bytes", set_to(&fact, 2)),
        // With 16-bit floats, gradients have the format of the weights unless a flag says otherwise.
        None if half && !wide => draft.usual("gradient_bytes", 2),
        None => draft.usual("gradient_bytes", 4),
    }
    let aware = settings.flag("use_precision_aware_optimizer")?.filter(|fact| fact.value);
    let bytes = |fact: Fact| {
        let value = if fact.value.contains('8') {
            1
        } else if fact.value.contains("16") {
            2
        } else {
            4
        };
        fact.with(value)
    };
    let moments = settings.text("exp_avg_dtype")?.or(settings.text("exp_avg_sq_dtype")?).map(bytes);
    settings.text("exp_avg_sq_dtype")?;
    let main = settings.text("main_params_dtype")?.map(bytes);
    let gradients = settings.text("main_grads_dtype")?.map(bytes);
    if aware.is_some() {
        draft.maybe("moment_bytes", moments);
        draft.maybe("master_bytes", main);
        if let Some(gradients) = gradients.filter(|fact| fact.value < 4) {
            draft.set("gradient_bytes", gradients);
        }
    }
    if let Some(kind) = settings.text("optimizer")?
        && !kind.value.contains("adam")
    {
        draft.note(format!("{} trains with {}; memory and time are those of Adam", kind.place, kind.value));
    }
    if let Some(share) = settings.number("optimizer_offload_fraction")?.filter(|fact| fact.value < 1.0) {
        draft
            .note(format!("{} offloads {} of the optimizer's state; all of it is predicted", share.place, share.value));
    }
    if let Some(growing) = settings.words("rampup_batch_size")? {
        draft.note(format!("{} lets the batch grow; its final size is predicted", growing.place));
    }
    let offloaded = settings.flag("cpu_offloading")?.filter(|fact| fact.value);
    let layers = settings.count("cpu_offloading_num_layers")?.filter(|fact| fact.value > 0);
    if let (Some(_), Some(layers)) = (&offloaded, layers) {
        draft.set("activation_offload", layers);
    }
    attention(settings, draft)?;
    let graphs = settings
        .flag("enable_cuda_graph")?
        .or(settings.flag("external_cuda_graph")?)
        .filter(|fact| fact.value)
        .map(|fact| fact.with(()))
        .or(settings.text("cuda_graph_impl")?.filter(|fact| fact.value != "none").map(|fact| fact.with(())));
    for name in ["cuda_graph_scope", "cuda_graph_modules", "cuda_graph_warmup_steps", "te_rng_tracker"] {
        settings.skip(name);
    }
    if let Some(graphs) = graphs {
        draft.set("cuda_graph", graphs.with(true));
    }
    Ok(())
}

fn attention(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let backend = settings
        .text("attention_backend")?
        .map(|fact| fact.map(|word| word.rsplit('.').next().unwrap_or_default().to_string()));
    if let Some(backend) = &backend
        && !["flash", "fused", "unfused", "local", "auto"].contains(&backend.value.as_str())
    {
        let problem = format!(
            "is `{}`, must be flash, fused, unfused, local or auto",
            plantui_core::text::printable(&backend.value)
        );
        return Err(backend.place.error("attention_backend", problem, "correct it"));
    }
    let local = settings.text("transformer_impl")?.is_some_and(|fact| fact.value == "local");
    let flash = settings.flag("use_flash_attn")?.or(settings.flag("use_flash_attn_v2")?);
    for name in ["use_flash_attn_v1", "use_flash_attn_v2", "use_flash_attn_triton"] {
        settings.is_set(name)?;
    }
    match backend {
        Some(backend) if backend.value.contains("unfused") || backend.value.contains("local") => {
            draft.set("attention", backend.with("unfused"));
        }
        Some(backend) => draft.set("attention", backend.with("flash")),
        None if local && flash.as_ref().is_none_or(|fact| !fact.value) => draft.usual("attention", "unfused"),
        None => draft.usual("attention", "flash"),
    }
    if let Some(style) = settings.words("cp_comm_type")? {
        let name = match style.value.first().map(String::as_str) {
            Some("all_gather") => "all-gather",
            Some("a2a") => "all-to-all",
            Some("a2a+p2p") => "hierarchical",
            _ => "ring",
        };
        if draft.degree("cp") > 1 {
            draft.set("context_style", style.with(name));
        }
    }
    settings.skip("hierarchical_context_parallel_sizes");
    Ok(())
}

/// Settings of DeepSpeed beside the arguments.
fn deepspeed(settings: &Settings, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
    let stage = settings.count("zero_stage")?;
    if let Some(stage) = &stage {
        draft.set("zero", stage.clone());
    }
    let file = settings.file("deepspeed_config")?;
    settings.flag("deepspeed")?;
    if let Some(file) = file {
        let batch = (draft.facts.get("mbs").cloned(), draft.facts.get("global_batch").cloned());
        zero::of_file(&file, draft, context)?;
        // The arguments state the batch; the file repeats it.
        for (name, fact) in [("mbs", batch.0), ("global_batch", batch.1)] {
            if let Some(fact) = fact {
                draft.facts.insert(name.into(), fact);
            }
        }
        draft.accumulation = None;
        // DeepSpeed reads its own file.
        if let (Some(stage), Some(zero)) = (stage, draft.facts.get("zero"))
            && stage.value.to_string() != zero.value
        {
            let told =
                format!("{} states ZeRO {}, and {} {}, which counts", stage.place, stage.value, zero.place, zero.value);
            draft.note(told);
        }
    }
    Ok(())
}

//! torchtitan's jobs: TOML files of releases up to 0.2, and functions of a registry of 0.3.
//!
//! Sources: torchtitan 0.2's `JobConfig` and 0.3's `Trainer.Config`. Weights are divided over all replicas unless a degree
//! says otherwise, and the activations of every second layer or operator are recomputed unless the file says otherwise.

use plantui_core::{source::LoadError, workload::training::published};

use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Setting, Settings, Value},
};

/// Reads torchtitan's jobs.
pub(crate) struct TorchTitanReader;

static EFFECTS: Effects = Effects {
    none: "\
        training.steps training.warmup_steps training.max_norm training.dataset training.dataset_path
        training.seed training.gc_freq training.gc_debug training.mixed_precision_reduce hf_assets_path
        dump_folder model.hf_assets_path model.tokenizer_path model.print_after_conversion dataloader
        parallelism.context_parallel_load_balancer parallelism.disable_loss_parallel model_spec.attn_backend training.deterministic
        training.dataloader loss lr_scheduler optimizer metrics checkpoint profiler profiling validator
        debug parallelism training compile comm model config training.compile optimizer.implementation
        optimizer.fused compile.components compile.backend activation_checkpoint.early_stop
        optimizer.name model.norm_type activation_checkpoint.preserve_rng_state
        activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns parallelism.spmd_backend
        memory_estimation.enabled memory_estimation.enable model.use_flex_attn model.attn_mask_type
        compile.model_compile_enabled",
    prefixes: "\
        job. profiling. profiler. metrics. optimizer. lr_scheduler. checkpoint. comm. validation.
        validator. memory_estimation. fault_tolerance. debug. loss. dataloader. float8. mx.
        training.dataloader. quantize. experimental.custom_import found call tokenizer. training.validation",
    matters: "",
    by_sound: true,
};

/// Families in the names of a registry's functions.
const FAMILIES: [&str; 6] = ["llama3", "llama4", "deepseek_v3", "qwen3", "gpt_oss", "llama2"];

/// Name of torchtitan's family and flavor as published.
fn published_name(family: &str, flavor: &str) -> Option<String> {
    let flavor = flavor.to_ascii_lowercase();
    let flavor = ["_flex_attn", "_varlen_attn", "_flex", "_varlen", "_irope", "-flex", "-varlen", "_sdpa"]
        .iter()
        .fold(flavor.as_str(), |name, ending| name.strip_suffix(ending).unwrap_or(name))
        .replace('_', "-");
    let name = match family.to_ascii_lowercase().as_str() {
        "llama3" | "llama" if flavor.starts_with("3.") => format!("llama-{flavor}"),
        "llama3" | "llama3_ft" | "llama" => format!("llama-3.1-{flavor}"),
        "llama2" => format!("llama-2-{flavor}"),
        "llama4" if flavor == "17bx16e" => "llama-4-scout".into(),
        "llama4" if flavor == "17bx128e" => "llama-4-maverick".into(),
        "deepseek_v3" => match flavor.as_str() {
            "16b" => "deepseek-v2-lite".into(),
            "236b" => "deepseek-v2".into(),
            "671b" => "deepseek-v3".into(),
            _ => return None,
        },
        "qwen3" => format!("qwen3-{flavor}"),
        "gpt_oss" => format!("gpt-oss-{flavor}"),
        other => format!("{other}-{flavor}"),
    };
    Some(name)
}

impl JobReader for TorchTitanReader {
    fn id(&self) -> &'static str {
        "torchtitan"
    }

    fn title(&self) -> &'static str {
        "a torchtitan job"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        let settings = &part.settings;
        let trained = ["training.local_batch_size", "training.batch_size", "training.seq_len"];
        let own: &[&str] = match syntax {
            Syntax::Tree | Syntax::Shell => &[
                "parallelism.tensor_parallel_degree",
                "parallelism.data_parallel_shard_degree",
                "training.local_batch_size",
                "parallelism.pipeline_parallel_degree",
                "training.tensor_parallel_degree",
                "model.flavor",
                "training.data_parallel_shard_degree",
                FILE,
            ],
            // A helper that sets a part of a configuration is no job.
            Syntax::Python => {
                if settings.has("model_spec") || trained.iter().any(|name| settings.has(name)) {
                    &[
                        "model_spec",
                        "training.local_batch_size",
                        "training.seq_len",
                        "parallelism.tensor_parallel_degree",
                        "parallelism.pipeline_parallel_degree",
                    ]
                } else {
                    &["parallelism.pipeline_parallel_degree", "parallelism.data_parallel_shard_degree"]
                }
            }
            _ => return None,
        };
        own.iter().find(|name| settings.has(name)).map(|name| (*name).to_string())
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
        let all = with_file(part, context)?;
        let settings = &all;
        draft.usual("stack", "torchtitan");
        model(settings, draft, &part.name, context)?;
        degrees(settings, draft)?;
        let registry = context.document.syntax == Syntax::Python;
        pipeline(settings, draft)?;
        batch(settings, draft)?;
        recomputation(settings, draft, registry)?;
        software(settings, draft)?;
        converter(context, draft);
        let used = |setting: &&Setting| settings.was_taken(&setting.name);
        part.settings.iter().filter(used).for_each(|setting| {
            part.settings.take(&setting.name);
        });
        if let Some(file) = part.settings.take(FILE) {
            let own = file.place.clone();
            let rest: Vec<Setting> = settings
                .iter()
                .filter(|setting| setting.place.file != own.file && !settings.was_taken(&setting.name))
                .cloned()
                .collect();
            let mut others = Settings::default();
            rest.into_iter().for_each(|setting| others.push(setting));
            draft.leave(&others, &EFFECTS)?;
        }
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

/// Flag that names the file of a job.
const FILE: &str = "job.config_file";

/// Settings of the file that a command names, with the command's own behind them.
fn with_file(part: &Part, context: &Context<'_>) -> Result<Settings, LoadError> {
    let Some(name) = part.settings.look(FILE) else { return Ok(part.settings.clone()) };
    let Some((text, source)) = context.file(&name.value.text()) else {
        let problem = format!("is {}, which is not there", name.value.text());
        return Err(name.error(problem, "put it beside the job"));
    };
    let mut all = crate::syntax::toml::read(&text, &source)?;
    part.settings.iter().for_each(|setting| all.push(setting.clone()));
    Ok(all)
}

/// Precision of an export, which leaves the converter to the user: `fill in: a converter of the model for fp8`.
fn converter(context: &Context<'_>, draft: &mut Draft<'_>) {
    for (comment, line) in &context.document.comments {
        if let Some(rest) = comment.strip_prefix("fill in: a converter of the model for ") {
            let id = rest.split_whitespace().next().unwrap_or_default().to_string();
            draft.set("precision", Fact { value: id, place: crate::setting::Place::new(draft.source, *line) });
        }
    }
}

fn model(settings: &Settings, draft: &mut Draft<'_>, function: &str, context: &Context<'_>) -> Result<(), LoadError> {
    let flavor = settings.text("model.flavor")?.or(settings.text("model_spec.0")?);
    let family = settings.text("model.name")?.or(settings.text("module")?);
    settings.skip("model_spec");
    // A configuration that starts from a function of another file: `llama3_8b()`.
    let base = settings.hint("config");
    settings.skip("config");
    let Some(flavor) = flavor else {
        let named = base.and_then(|base| {
            let family = FAMILIES.into_iter().find(|family| base.value.starts_with(*family))?;
            let flavor = base.value[family.len()..].trim_start_matches('_').to_string();
            let model = published_name(family, &flavor).and_then(|name| published::find(&name))?;
            // An export states the sizes beside a base of any model.
            let stated = |name: &str| {
                context
                    .document
                    .parts
                    .iter()
                    .find_map(|part| part.settings.look(name))
                    .map(|setting| setting.value.text())
            };
            let agrees = |name: &str, own: u64| stated(name).is_none_or(|text| text == own.to_string());
            let same = agrees("model.layers", model.layers.len() as u64) && agrees("model.hidden size", model.hidden);
            same.then(|| base.with(model))
        });
        draft.model = named;
        return Ok(());
    };
    // A registry's functions are named for their family: `llama3_8b`.
    let of_function = ["llama3", "llama4", "deepseek_v3", "qwen3", "gpt_oss", "llama2"]
        .iter()
        .find(|name| function.starts_with(**name));
    let family = match (&family, of_function) {
        (Some(family), _) => family.value.clone(),
        (None, Some(name)) => (*name).to_string(),
        (None, None) => {
            draft.model_name = Some(flavor);
            return Ok(());
        }
    };
    match published_name(&family, &flavor.value).and_then(|name| published::find(&name)) {
        Some(model) => draft.model = Some(flavor.with(model)),
        None => draft.model_name = Some(flavor.clone().map(|flavor| format!("{family} {flavor}"))),
    }
    Ok(())
}

fn degrees(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    for (name, degree) in [
        ("tensor_parallel_degree", "tp"),
        ("pipeline_parallel_degree", "pp"),
        ("context_parallel_degree", "cp"),
        ("expert_parallel_degree", "ep"),
        ("expert_tensor_parallel_degree", "etp"),
    ] {
        let sections = ["parallelism", "training", "experimental"].map(|section| format!("{section}.{name}"));
        draft.maybe(degree, settings.count_of(&sections.each_ref().map(String::as_str))?);
    }
    let shards =
        settings.count_of(&["parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree"])?;
    let copies = settings
        .count_of(&["parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"])?;
    let old = settings.count("training.data_parallel_degree")?;
    let replicated = settings.text("training.data_parallel_type")?.filter(|fact| fact.value == "ddp");
    let copied = copies.clone().filter(|fact| fact.value > 1);
    match (&shards, &copied) {
        (Some(shards), Some(copies)) => draft.set("dp", shards.with(shards.value * copies.value)),
        (Some(shards), None) => draft.set("dp", shards.clone()),
        (None, _) => draft.maybe("dp", old),
    }
    let alone = shards.as_ref().is_some_and(|fact| fact.value == 1);
    match (replicated, alone) {
        (Some(fact), _) => draft.set("zero", fact.with(0)),
        (None, true) if draft.degree("cp") == 1 => {
            if let Some(shards) = &shards {
                draft.set("zero", shards.with(0));
            }
        }
        _ => {
            let after = settings.text("parallelism.fsdp_reshard_after_forward")?;
            match after {
                Some(fact) if fact.value == "never" => draft.set("zero", fact.with(2)),
                Some(fact) => draft.set("zero", fact.with(3)),
                None => match &shards {
                    Some(shards) => draft.set("zero", shards.with(3)),
                    None => draft.usual("zero", 3),
                },
            }
            draft.copies = copied;
        }
    }
    settings.skip("parallelism.fsdp_reshard_after_forward");
    Ok(())
}

/// Schedules with several parts of the model on each rank, in lower case.
const SEVERAL: [&str; 6] =
    ["interleaved1f1b", "loopedbfs", "interleavedzerobubble", "zbvzerobubble", "dualpipev", "pipelineschedulemulti"];
/// Schedules with one part on each rank.
const WHOLE: [&str; 3] = ["1f1b", "gpipe", "pipelineschedulesingle"];

fn pipeline(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let names = ["parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"];
    let mut schedule = None;
    for name in names {
        let found = settings.text(name)?;
        schedule = schedule.or(found);
    }
    let list = settings.text("parallelism.pipeline_parallel_schedule_csv")?.filter(|fact| !fact.value.is_empty());
    let parts = settings
        .take("parallelism.module_fqns_per_model_part")
        .map(|setting| (setting.value.clone(), setting.place.clone()));
    let each = settings.count("parallelism.pipeline_parallel_layers_per_stage")?;
    let points = settings
        .words("parallelism.pipeline_parallel_split_points")?
        .or(settings.words("experimental.pipeline_parallel_split_points")?)
        .filter(|points| !points.value.is_empty());
    for name in ["first", "last"] {
        settings.count(&format!("parallelism.pipeline_parallel_{name}_stage_less_layers"))?;
    }
    let stages = draft.degree("pp");
    if stages < 2 {
        return Ok(());
    }
    let word = schedule.as_ref().map_or("1f1b".into(), |fact| fact.value.to_ascii_lowercase().replace('_', ""));
    let several = SEVERAL.contains(&word.as_str());
    if let Some(fact) = schedule.as_ref().filter(|_| !several && !WHOLE.contains(&word.as_str())) {
        let problem = format!("is `{}`, which is no schedule of torchtitan", fact.value);
        return Err(fact.place.error("pipeline_parallel_schedule", problem, "correct it"));
    }
    if let Some(list) = &list {
        let near = if several { "interleaved 1F1B" } else { "1F1B" };
        draft.note(format!(
            "{} names the list of a schedule, which is predicted as {near}: `plantui simulate WORKLOAD PLAN --schedule {}` \
            plays it",
            list.place, list.value
        ));
    }
    match (&schedule, word.as_str()) {
        (Some(fact), "zbvzerobubble") => draft.set("schedule", fact.with("zb-v")),
        (Some(fact), "interleavedzerobubble") => draft.set("schedule", fact.with("interleaved-zb")),
        (Some(fact), "gpipe" | "loopedbfs" | "dualpipev") => {
            let near = if several { "interleaved 1F1B" } else { "1F1B" };
            draft.note(format!("{} has the schedule {}, which is predicted as {near}", fact.place, fact.value));
        }
        _ => {}
    }
    if let Some((Value::List(parts), place)) = parts {
        let is_layer = |value: &&Value| value.text().contains("layers.");
        let count = |part: &Value| match part {
            Value::List(names) => names.iter().filter(is_layer).count(),
            _ => 0,
        };
        let counts: Vec<String> = parts.iter().map(|part| count(part).to_string()).collect();
        let virtual_stages = counts.len() as u64 / stages;
        if !(counts.len() as u64).is_multiple_of(stages) {
            let problem = format!("has {} parts, no multiple of {stages} stages", counts.len());
            return Err(place.error("module_fqns_per_model_part", problem, "correct it"));
        }
        let fact = Fact { value: counts.join(","), place };
        draft.set("vp", fact.with(virtual_stages));
        draft.set("layers", fact);
        return Ok(());
    }
    if let Some(points) = points {
        let starts: Option<Vec<u64>> =
            points.value.iter().map(|name| name.rsplit('.').next().and_then(|digits| digits.parse().ok())).collect();
        let layers = draft.layers();
        if let (Some(starts), Some(layers)) = (starts, layers) {
            let bounds: Vec<u64> = std::iter::once(0).chain(starts).chain([layers]).collect();
            let counts: Vec<String> =
                bounds.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).to_string()).collect();
            draft.set("vp", points.with((counts.len() as u64 / stages).max(1)));
            draft.set("layers", points.with(counts.join(",")));
        }
        return Ok(());
    }
    if several {
        let layers = draft.layers();
        // Embedding and head count as a layer of the split.
        let parts = match (&each, layers) {
            (Some(each), Some(layers)) => (layers + 2).div_ceil(each.value.max(1)) / stages,
            _ => 2,
        };
        if let Some(fact) = &schedule {
            draft.set("vp", fact.with(parts.max(1)));
        }
    }
    Ok(())
}

fn batch(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    draft.maybe("sequence_length", settings.count("training.seq_len")?);
    let local = settings.count_of(&["training.local_batch_size", "training.batch_size"])?;
    let global = settings.count("training.global_batch_size")?;
    let size = settings.count("parallelism.pipeline_parallel_microbatch_size")?;
    let count = settings.count("experimental.pipeline_parallel_microbatches")?;
    let local = match local {
        Some(local) => local,
        None => {
            draft.assume("local_batch_size", "8, torchtitan's default", "--with training.local_batch_size=N");
            Fact { value: 8, place: crate::setting::Place::new("default of the engine", 0) }
        }
    };
    let micro = match (draft.degree("pp") > 1, size, count) {
        (true, Some(size), _) => size,
        (true, None, Some(count)) => count.with((local.value / count.value.max(1)).max(1)),
        (true, None, None) => local.with(1),
        (false, ..) => local.clone(),
    };
    draft.set("mbs", micro);
    match global {
        Some(global) => draft.set("global_batch", global),
        None => draft.local_batch = Some(local),
    }
    if !draft.facts.contains_key("sequence_length") {
        let place = crate::setting::Place::new("default of the engine", 0);
        draft.set("sequence_length", Fact { value: 2048, place });
    }
    Ok(())
}

fn recomputation(settings: &Settings, draft: &mut Draft<'_>, registry: bool) -> Result<(), LoadError> {
    // "none" is a mode, not an absent one.
    let off = settings.look("activation_checkpoint.mode").filter(|setting| setting.value.text() == "none");
    let mode = match off {
        Some(off) => {
            settings.skip("activation_checkpoint.mode");
            Some(Fact { value: "none".to_string(), place: off.place.clone() })
        }
        None => settings.text("activation_checkpoint.mode")?,
    };
    let option = settings.text("activation_checkpoint.selective_ac_option")?;
    let stated = settings
        .look("activation_checkpoint")
        .map(|setting| Fact { value: setting.value.text(), place: setting.place.clone() });
    settings.take("activation_checkpoint");
    settings.skip("activation_checkpoint.memory_budget");
    let selective = |draft: &mut Draft<'_>, fact: Fact| {
        let text = match option.as_ref().map(|fact| fact.value.as_str()) {
            Some("op") => "selective:op".to_string(),
            Some("1") => "full".into(),
            Some(n) => format!("every:{n}"),
            None if registry => "selective:op".into(),
            None => "every:2".into(),
        };
        draft.set("recompute", fact.with(text));
    };
    match (mode, stated) {
        (Some(mode), _) => match mode.value.as_str() {
            "full" => draft.set("recompute", mode.with("full")),
            "none" => draft.set("recompute", mode.with("none")),
            "selective" => selective(draft, mode),
            other => {
                let problem = format!("is `{}`, which is not modelled", plantui_core::text::printable(other));
                return Err(mode.place.error(
                    "activation_checkpoint.mode",
                    problem,
                    "give full, selective or none with --with",
                ));
            }
        },
        (None, Some(stated)) => match stated.value.as_str() {
            class if class.starts_with("FullAC") => draft.set("recompute", stated.with("full")),
            class if class.starts_with("SelectiveAC") => draft.set("recompute", stated.with("selective:op")),
            "none" => draft.set("recompute", stated),
            "full" => draft.set("recompute", stated),
            _ => selective(draft, stated),
        },
        (None, None) => {
            let place = crate::setting::Place::new("default of the engine", 0);
            selective(draft, Fact { value: String::new(), place });
        }
    }
    Ok(())
}

fn software(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let converters = settings
        .look("model.converters")
        .or_else(|| settings.look("model_spec.converters"))
        .map(|setting| Fact { value: setting.value.text().to_ascii_lowercase(), place: setting.place.clone() });
    settings.take("model.converters");
    let old = settings
        .flag("float8.enable_float8_linear")?
        .or(settings.flag("training.enable_float8_linear")?)
        .or(settings.flag("training.fp8_linear")?);
    let plain = settings.text("training.mixed_precision_param")?.filter(|fact| fact.value == "float32");
    match (&converters, old.filter(|fact| fact.value)) {
        (Some(fact), _) if fact.value.contains("nvfp4") => draft.set("precision", fact.with("nvfp4")),
        (Some(fact), _) if fact.value.contains("mx") => draft.set("precision", fact.with("mxfp8")),
        (Some(fact), _) if fact.value.contains("float8") => draft.set("precision", fact.with("fp8")),
        (Some(fact), _) if fact.value.contains("lora") => {
            let repair = "give the adapter with --adapter and leave it out with --with model_spec.converters=none";
            return Err(fact.place.error("converters", "has an adapter, which is not read here", repair));
        }
        (_, Some(old)) => draft.set("precision", old.with("fp8")),
        _ => match plain {
            Some(plain) => draft.set("precision", plain.with("fp32")),
            None => draft.usual("precision", "bf16"),
        },
    }
    if let Some(dtype) = settings.text("training.dtype")?.filter(|fact| fact.value.contains("bfloat16")) {
        for (setting, bytes) in [("master_bytes", 0), ("moment_bytes", 2), ("gradient_bytes", 2)] {
            draft.set(setting, dtype.with(bytes));
        }
    }
    if let Some(fact) = settings.flag("training.enable_cpu_offload")?.filter(|fact| fact.value) {
        draft.set("parameter_offload", fact.clone());
        draft.set("optimizer_offload", fact);
    }
    let compiled = settings.flag("compile.enable")?.or(settings.flag("training.compile")?);
    settings.skip("compile");
    match compiled {
        Some(fact) => draft.set("fused_elementwise", fact),
        None => draft.usual("fused_elementwise", false),
    }
    let asynchronous = settings
        .flag("parallelism.enable_async_tensor_parallel")?
        .or(settings.flag("compile.enable_async_tensor_parallel")?)
        .or(settings.flag("experimental.enable_async_tensor_parallel")?);
    if draft.degree("tp") > 1 {
        draft.maybe("tp_overlap", asynchronous);
        draft.maybe("sequence_parallel", settings.flag("parallelism.enable_sequence_parallel")?);
    } else {
        settings.flag("parallelism.enable_sequence_parallel")?;
    }
    if let Some(style) = settings.text("parallelism.context_parallel_rotate_method")? {
        let name = if style.value == "allgather" { "all-gather" } else { "ring" };
        if draft.degree("cp") > 1 {
            draft.set("context_style", style.with(name));
        }
    }
    if let Some(backend) = settings.text("parallelism.expert_parallel_comm_backend")? {
        let name = match backend.value.as_str() {
            "deepep" => "deepep",
            "hybridep" => "hybridep",
            _ => "alltoall",
        };
        draft.set("dispatcher", backend.with(name));
    }
    let experts = draft.known_model().is_some_and(plantui_core::workload::training::Model::has_experts);
    if let Some(graphs) = settings.flag("training.disable_cuda_graphs")?.filter(|_| experts) {
        draft.set("cuda_graph", graphs.map(|disabled| !disabled));
    }
    Ok(())
}

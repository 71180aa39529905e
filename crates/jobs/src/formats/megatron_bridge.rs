//! Megatron-Bridge's recipes: functions that set a configuration, or its YAML.
//!
//! Source: Megatron-Bridge's `ConfigContainer` (0.6). The fields are those of Megatron-Core's configuration classes, by whose
//! rules they are read.

use plantui_core::source::LoadError;

use super::{megatron, names, nemo};
use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Place, Setting, Settings, Value},
};

/// Reads Megatron-Bridge's recipes.
pub(crate) struct MegatronBridgeReader;

/// Sections whose fields are arguments.
const SECTIONS: [&str; 6] = ["model", "train", "ddp", "optimizer", "comm_overlap", "dataset"];

static EFFECTS: Effects = Effects {
    none: "\
        model ddp train dataset optimizer scheduler comm_overlap tokenizer logger checkpoint rng dist rerun_state_machine profiling
        mixed_precision cfg config recipe dataset.sequence_length dataset.seq_length dataset.blend dataset.split dataset.num_workers
        train.train_iters train.eval_interval train.eval_iters train.manual_gc train.manual_gc_interval train.manual_gc_eval
        model.init_method_std model.make_vocab_size_divisible_by model.should_pad_vocab model.gradient_accumulation_fusion
        model.cross_entropy_fusion_impl model.pipeline_dtype model.transformer_impl model.vocab_size model.bias_activation_fusion
        model.moe_permute_fusion model.moe_grouped_gemm model.use_te_rng_tracker model.cuda_graph_scope model.rotary_base
        model.apply_rope_fusion model.batch_p2p_comm model.autocast_dtype model.params_dtype model.persist_layer_norm
        model.hierarchical_context_parallel_sizes model.moe_router_force_load_balancing ddp.average_in_collective ddp.bucket_size
        ddp.check_for_nan_in_grad ddp.overlap_param_gather ddp.data_parallel_sharding_strategy optimizer.overlap_param_gather
        model.disable_parameter_transpose_cache model.load_weights model.fp32_residual_connection model.masked_softmax_fusion model.bias_dropout_fusion model.hidden_dropout model.attention_dropout",
    prefixes: "\
        logger. checkpoint. tokenizer. scheduler. rng. profiling. dist. rerun_state_machine. validation. dataset. optimizer. call
        env_vars nvrx_straggler. inprocess_restart. straggler. tensor_inspect. comm_overlap. mixed_precision. peft. train. ddp.",
    matters: "peft",
    by_sound: true,
};

impl JobReader for MegatronBridgeReader {
    fn id(&self) -> &'static str {
        "megatron-bridge"
    }

    fn title(&self) -> &'static str {
        "a Megatron-Bridge recipe"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        let settings = &part.settings;
        if !matches!(syntax, Syntax::Python | Syntax::Tree) || settings.has_under("trainer") {
            return None;
        }
        let layout = ["model.tensor_model_parallel_size", "model.pipeline_model_parallel_size"]
            .into_iter()
            .find(|name| settings.has(name));
        let train = settings.has_under("train") || settings.has("model.seq_length");
        layout.filter(|_| train || syntax == Syntax::Python).map(ToString::to_string)
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
        let settings = &part.settings;
        let mut all = Settings::default();
        for section in SECTIONS {
            nemo::arguments(settings, section)?.iter().for_each(|setting| all.push(setting.clone()));
        }
        for (field, setting) in
            settings.iter().filter_map(|setting| Some((setting.name.strip_prefix("model.")?, setting)))
        {
            if field.starts_with("from_hf_pretrained.0") || field == "hf_model_id" {
                let fact = Fact { value: setting.value.text(), place: setting.place.clone() };
                names::set(draft, fact, context);
            }
        }
        if let Some(name) = settings.iter().find(|setting| setting.name.ends_with("from_hf_pretrained.0")) {
            names::set(draft, Fact { value: name.value.text(), place: name.place.clone() }, context);
        }
        of_recipe(part, draft, context);
        overridden(settings, draft)?;
        peft(settings, draft)?;
        if !draft.facts.contains_key("adapter")
            && settings.look("peft").is_none()
            && ["peft", "lora"].iter().any(|word| part.name.split('_').any(|part| part == *word))
        {
            draft.assume("adapter", "lora:r=32, as the recipe is named", "--adapter");
            draft.usual("adapter", "lora:r=32");
        }
        length(settings, &mut all)?;
        precision(settings, &mut all, &part.name)?;
        // Defaults of every recipe.
        let mut default = |name: &str, value: Value| {
            if !all.has(name) {
                all.push(Setting::new(name, value, Place::new("default of the engine", 0)));
            }
        };
        default("use_distributed_optimizer", Value::Bool(true));
        default("overlap_grad_reduce", Value::Bool(true));
        default("expert_tensor_parallel_size", Value::Text("1".into()));
        default("moe_token_dispatcher_type", Value::Text("alltoall".into()));
        default("attention_backend", Value::Text("flash".into()));
        let named = draft.model.take();
        if let Some(model) = &named {
            draft.model = Some(model.clone());
            let layers = model.value.layers.len();
            if !all.has("num_layers") {
                all.push(Setting::new("num_layers", Value::Text(layers.to_string()), model.place.clone()));
            }
        } else if let Some(model) = &draft.options.model
            && !all.has("num_layers")
        {
            all.push(Setting::new("num_layers", Value::Text(model.layers.len().to_string()), Place::new("MODEL", 0)));
        }
        megatron::arguments(&all, draft, false)?;
        if named.is_some() {
            draft.model = named;
        }
        if draft.model.as_ref().or(None).is_some_and(|model| model.value.has_experts())
            || draft.options.model.as_ref().is_some_and(plantui_core::workload::training::Model::has_experts)
        {
            megatron::of_experts(&all, draft)?;
        }
        for setting in settings.iter() {
            let field = SECTIONS.iter().find_map(|section| setting.name.strip_prefix(section)?.strip_prefix('.'));
            let unused = |field: &str| megatron::effects().has_none(&nemo::renamed(field));
            if field.is_some_and(|field| {
                unused(field)
                    || all.was_taken(&nemo::renamed(field))
                    || nemo::CONVERTED.contains(&field)
                    || OWN.contains(&field)
            }) {
                settings.take(&setting.name);
            }
        }
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

/// Fields that are read under another name.
const OWN: [&str; 3] = ["tp_comm_overlap", "overlap_moe_expert_parallel_comm", "from_hf_pretrained.0"];

/// Model and devices in the name of a recipe: `llama3_8b_pretrain_8gpu_h100_bf16_config`. A recipe that starts from one of
/// another file does not state the rest.
fn of_recipe(part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) {
    let base = part.settings.iter().find(|setting| {
        let text = setting.value.text();
        ["cfg", "config"].contains(&setting.name.as_str()) && (text.ends_with("_config") || text.ends_with("_common"))
    });
    let line = base.map_or(0, |setting| setting.place.line);
    let place = Place::new(draft.source, line);
    let names = [part.name.clone(), base.map_or(String::new(), |setting| setting.value.text())];
    for name in &names {
        let words: Vec<&str> = name.split('_').collect();
        let end = words.iter().position(|word| ["pretrain", "sft", "finetune", "peft", "lora"].contains(word));
        if let (None, Some(end)) = (&draft.model, end)
            && let Some(model) = named(&words[..end].join("-"))
        {
            draft.model = Some(Fact { value: model, place: place.clone() });
        }
        let devices = words.iter().find_map(|word| word.strip_suffix("gpu")?.parse::<u64>().ok());
        if let Some(devices) = devices.filter(|_| !draft.facts.contains_key("devices")) {
            let place = Place::new(&format!("the name {name}"), 0);
            draft.set("devices", Fact { value: devices, place });
        }
    }
    // Functions elsewhere that are given the configuration.
    for setting in part.settings.iter() {
        let given = setting.value.text();
        let root = |word: &str| ["cfg", "config"].contains(&word.split('.').next().unwrap_or_default());
        if let Some(name) = setting.name.strip_prefix("call ").filter(|_| given.split(',').any(root)) {
            draft.note(format!(
                "{} calls {name}({given}), which is not in this file: what it sets is not read",
                setting.place
            ));
        }
    }
    let here = |name: &str| context.document.parts.iter().any(|part| part.name == name);
    if let Some(base) = base.filter(|base| !here(&base.value.text())) {
        let told = format!(
            "{} starts from {}(), which is in another file: what that sets is not read",
            base.place,
            base.value.text()
        );
        draft.note(told);
    }
}

/// Refuses sizes that a recipe changes of a model that it names.
fn overridden(settings: &Settings, draft: &Draft<'_>) -> Result<(), LoadError> {
    let Some(model) = draft.model.as_ref().filter(|_| draft.options.model.is_none()) else { return Ok(()) };
    for (field, own) in [("num_layers", model.value.layers.len() as u64), ("hidden_size", model.value.hidden)] {
        let Some(setting) = settings.look(&format!("model.{field}")) else { continue };
        if setting.value.text() != own.to_string() {
            let problem = format!("is {}, and {} has {own}", setting.value.text(), model.value.name);
            return Err(setting.error(problem, "give the changed model as MODEL, a config.json"));
        }
    }
    Ok(())
}

/// Published model of a recipe's words.
fn named(words: &str) -> Option<plantui_core::workload::training::Model> {
    let find = plantui_core::workload::training::published::find;
    // `llama31-405b` is llama-3.1-405b.
    let dotted = words.strip_prefix("llama").and_then(|rest| {
        let (version, rest) = rest.split_once('-')?;
        let version = match version.len() {
            1 => version.to_string(),
            2 => format!("{}.{}", &version[..1], &version[1..]),
            _ => return None,
        };
        Some(format!("llama-{version}-{rest}"))
    });
    find(words).or_else(|| find(&dotted?))
}

/// Adapter of `LoRA(dim=8, target_modules=[..])`.
fn peft(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let Some(kind) = settings.text("peft")? else { return Ok(()) };
    let rank = settings.count("peft.dim")?.map_or(32, |fact| fact.value);
    let targets = settings.words("peft.target_modules")?;
    settings.skip("peft");
    if !kind.value.ends_with("LoRA") {
        let problem = format!("is {}, which is not modelled", kind.value);
        return Err(kind.place.error("peft", problem, "give the adapter with --adapter, and --with peft=none"));
    }
    let targets = targets.map(|words| {
        let own = |word: &String| match word.as_str() {
            "linear_qkv" => "q+k+v",
            "linear_proj" => "o",
            "linear_fc1" => "gate+up",
            "linear_fc2" => "down",
            _ => "all",
        };
        words.value.iter().map(own).flat_map(|group| group.split('+')).map(ToString::to_string).collect()
    });
    super::hugging_face::adapter(draft, &kind.with(()), rank, targets, (None, None))
}

/// Length of the data set, which overwrites that of the model.
fn length(settings: &Settings, all: &mut Settings) -> Result<(), LoadError> {
    for name in ["dataset.sequence_length", "dataset.seq_length"] {
        if let Some(fact) = settings.count(name)? {
            all.push(Setting::new("seq_length", Value::Text(fact.value.to_string()), fact.place));
        }
    }
    Ok(())
}

fn precision(settings: &Settings, all: &mut Settings, recipe: &str) -> Result<(), LoadError> {
    const WORDS: [&str; 5] = ["nvfp4", "mxfp8", "fp8", "fp16", "bf16"];
    let Some(word) = settings.text("mixed_precision")? else {
        all.push(Setting::new("bf16", Value::Bool(true), Place::new("default of the engine", 0)));
        return Ok(());
    };
    let argument = settings.text("mixed_precision.0")?.map_or(String::new(), |fact| fact.value);
    let stated = format!("{} {argument}", word.value);
    let of = |text: &str| WORDS.iter().position(|word| text.contains(word));
    // The most narrow format in the name of a recipe, such as `.._fp8cs_config`.
    let word = match (of(&stated), of(recipe)) {
        (None, None) => {
            let problem = format!("is {}, which is in another file", word.value);
            return Err(word.place.error(
                "mixed_precision",
                problem,
                "state it with --with mixed_precision=bf16_mixed",
            ));
        }
        (None, Some(name)) => word.with(WORDS[name].to_string()),
        (Some(own), Some(name)) if name < own => {
            let problem = format!("is {}, and the recipe is named for {}", word.value, WORDS[name]);
            return Err(word.place.error(
                "mixed_precision",
                problem,
                "state it with --with mixed_precision=bf16_mixed",
            ));
        }
        (Some(_), _) => word.with(stated),
    };
    let mut push = |name: &str, value: Value| all.push(Setting::new(name, value, word.place.clone()));
    push(if word.value.contains("fp16") { "fp16" } else { "bf16" }, Value::Bool(true));
    if word.value.contains("nvfp4") {
        push("fp4_format", Value::Text("e2m1".into()));
    } else if word.value.contains("mxfp8") {
        push("fp8_format", Value::Text("e4m3".into()));
        push("fp8_recipe", Value::Text("mxfp8".into()));
    } else if word.value.contains("fp8") {
        push("fp8_format", Value::Text("hybrid".into()));
    }
    if let Some(fact) = settings.flag("mixed_precision.grad_reduce_in_fp32")? {
        push("grad_reduce_in_bf16", Value::Bool(!fact.value));
    }
    Ok(())
}

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
        model.fp32_residual_connection model.masked_softmax_fusion model.bias_dropout_fusion model.hidden_dropout model.attention_dropout",
    prefixes: "\
        logger. checkpoint. tokenizer. scheduler. rng. profiling. dist. rerun_state_machine. validation. dataset. optimizer. call
        nvrx_straggler. inprocess_restart. straggler. tensor_inspect. comm_overlap. mixed_precision. peft. train. ddp.",
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
        let layout = ["model.tensor_model_parallel_size", "model.pipeline_model_parallel_size"].into_iter().find(|name| settings.has(name));
        let train = settings.has_under("train") || settings.has("model.seq_length");
        layout.filter(|_| train || syntax == Syntax::Python).map(ToString::to_string)
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
        let settings = &part.settings;
        let mut all = Settings::default();
        for section in SECTIONS {
            nemo::arguments(settings, section)?.iter().for_each(|setting| all.push(setting.clone()));
        }
        for (field, setting) in settings.iter().filter_map(|setting| Some((setting.name.strip_prefix("model.")?, setting))) {
            if field.starts_with("from_hf_pretrained.0") || field == "hf_model_id" {
                let fact = Fact { value: setting.value.text(), place: setting.place.clone() };
                names::set(draft, fact, context);
            }
        }
        if let Some(name) = settings.iter().find(|setting| setting.name.ends_with("from_hf_pretrained.0")) {
            names::set(draft, Fact { value: name.value.text(), place: name.place.clone() }, context);
        }
        length(settings, &mut all)?;
        precision(settings, &mut all)?;
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
            if field.is_some_and(|field| all.was_taken(&nemo::renamed(field)) || nemo::CONVERTED.contains(&field) || OWN.contains(&field)) {
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

/// Length of the data set, which overwrites that of the model.
fn length(settings: &Settings, all: &mut Settings) -> Result<(), LoadError> {
    for name in ["dataset.sequence_length", "dataset.seq_length"] {
        if let Some(fact) = settings.count(name)? {
            all.push(Setting::new("seq_length", Value::Text(fact.value.to_string()), fact.place));
        }
    }
    Ok(())
}

fn precision(settings: &Settings, all: &mut Settings) -> Result<(), LoadError> {
    let Some(word) = settings.text("mixed_precision")? else {
        all.push(Setting::new("bf16", Value::Bool(true), Place::new("default of the engine", 0)));
        return Ok(());
    };
    let mut push = |name: &str, value: Value| all.push(Setting::new(name, value, word.place.clone()));
    push(if word.value.starts_with("fp16") { "fp16" } else { "bf16" }, Value::Bool(true));
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

//! MaxText's YAML and command-line overrides.
//!
//! Source: MaxText's `base.yml` (main of 2026). Degrees are products over a slice (`ici_`) and between slices (`dcn_`); -1 takes the
//! rest. The batch counts sequences per device, whatever the device does.

use plantui_core::{
    source::LoadError,
    workload::{
        recipe::NormKind,
        training::{Attention, Details, Ends, Experts, FeedForward, LayerKind, Model, Projection, published},
    },
};

use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Place, Settings},
};

/// Reads MaxText's configurations.
pub(crate) struct MaxTextReader;

static EFFECTS: Effects = Effects {
    none: "\
        base_config run_name base_output_directory dataset_path dataset_type steps enable_checkpointing async_checkpointing hardware
        tokenizer_path tokenizer_type attention_ scan_layers packing logits_dot_in_fp32 gcs_metrics profiler learning_rate
        per_device_batch_size_ xla_flags enable_goodput_recording monitor_goodput skip_first_n_steps_for_profiler use_iota_embed
        max_segments_per_seq upload_all_profiler_results profile_periodically_period decoder_block normalization_layer_epsilon
        enable_dropout load_parameters_path load_full_state_path weight_dtype_ mu_dtype grad_dtype_ dtype_ override_model_config
        rope_max_timescale use_vertex_tensorboard megablox sparse_matmul capacity_factor_ decoder_layer_input_ tokenize_train_data
        tokenize_eval_data train_split eval_split eval_interval eval_steps hf_path hf_access_token hf_train_files
        num_pipeline_microbatches_ sharding_tolerance param_scan_axis async_scheduling float32_qk_product float32_logits cast_logits_to_fp32
        compile_topology_ logical_axis_rules data_sharding jax_cache_dir compiled_trainstep_file log_period save_config_to_gcs
        rope_type norm_topk_prob routed_bias routed_score_func routed_scaling_factor load_balance_loss_weight rope_factor beta_fast mscale
        original_max_position_embeddings mlp_activations_limit reuse_example_batch enable_data_shuffling add_bos add_eos",
    prefixes: "checkpoint_ dataset_ tensorboard gcs_ learning_rate_ warmup_ adam_ profiler_ log_ hf_ grain_ rope_ gradient_clipping tokenizer_ eval_ goodput",
    matters: "global_parameter_scale sliding_window_size attention_type_ use_dpo enable_diloco quantize_kvcache",
    by_sound: true,
};

/// Axes of the mesh: name and degree. The others must be 1.
const AXES: [(&str, &str); 10] = [
    ("data", "data"),
    ("fsdp", "fsdp"),
    ("fsdp_transpose", "fsdp"),
    ("tensor", "tp"),
    ("tensor_sequence", "tp"),
    ("tensor_transpose", "tp"),
    ("context", "cp"),
    ("sequence", "cp"),
    ("expert", "ep"),
    ("pipeline", "pp"),
];

impl JobReader for MaxTextReader {
    fn id(&self) -> &'static str {
        "maxtext"
    }

    fn title(&self) -> &'static str {
        "a MaxText configuration"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        if !matches!(syntax, Syntax::Tree | Syntax::Shell) {
            return None;
        }
        let settings = &part.settings;
        let axis = settings.iter().find(|setting| {
            (setting.name.starts_with("ici_") || setting.name.starts_with("dcn_"))
                && setting.name.ends_with("_parallelism")
        });
        let own = axis.map(|setting| setting.name.clone());
        own.or_else(|| settings.has("base_num_decoder_layers").then(|| "base_num_decoder_layers".to_string())).or_else(
            || {
                (settings.has("per_device_batch_size") && settings.has("max_target_length"))
                    .then(|| "per_device_batch_size".to_string())
            },
        )
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
        let all = with_base(part, context)?;
        let settings = &all;
        draft.usual("stack", "megatron-2025");
        draft.note("the prediction has the constants of Megatron-Core: no run of MaxText is among the published ones");
        mesh(settings, draft)?;
        batch(settings, draft)?;
        precision(settings, draft)?;
        recomputation(settings, draft)?;
        if let Some(name) = settings.text("model_name")?.filter(|name| name.value != "default") {
            match model_named(&name.value) {
                Some(model) => draft.model = Some(name.with(model)),
                None => draft.model_name = Some(name),
            }
        } else {
            draft.model = model(settings, draft)?;
        }
        for name in ["tp_overlap", "fused_cross_entropy"] {
            draft.usual(name, false);
        }
        draft.usual("dispatcher", "alltoall");
        if let Some(word) = settings.text("context_parallel_strategy")? {
            match word.value.as_str() {
                "ring" => draft.set("context_style", word.with("ring")),
                "ulysses" => draft.set("context_style", word.with("all-to-all")),
                _ => draft.set("context_style", word.with("all-gather")),
            }
        } else if draft.degree("cp") > 1 {
            draft.usual("context_style", "all-gather");
        }
        for (name, target) in [
            ("optimizer_memory_host_offload", "optimizer_offload"),
            ("parameter_memory_host_offload", "parameter_offload"),
        ] {
            draft.maybe(target, settings.flag(name)?.filter(|fact| fact.value));
        }
        // The feed-forward width of an expert is divided over the tensor axis as well.
        let experts = draft.known_model().is_some_and(Model::has_experts);
        if experts && draft.degree("tp") > 1 {
            draft.usual("etp", draft.degree("tp"));
        }
        repeats(settings, draft)?;
        if let Some(kernel) = settings.text("attention")?.filter(|fact| fact.value == "dot_product") {
            draft.set("attention", kernel.with("unfused"));
        }
        settings.skip("attention");
        for setting in part.settings.iter().filter(|setting| settings.was_taken(&setting.name)) {
            part.settings.take(&setting.name);
        }
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

/// Settings of the file that a command starts from, with the command's own behind them. The base configuration has the
/// defaults alone.
fn with_base(part: &Part, context: &Context<'_>) -> Result<Settings, LoadError> {
    let mut all = Settings::default();
    let files = part.launch.iter().flat_map(|launch| &launch.positional);
    for (file, place) in files.filter(|(file, _)| file.ends_with(".yml") || file.ends_with(".yaml")) {
        match context.file(file) {
            Some((text, source)) => {
                crate::syntax::yaml::read(&text, &source)?.iter().for_each(|setting| all.push(setting.clone()));
            }
            None if file.ends_with("base.yml") => {}
            None => {
                let problem = format!("is {}, which is not there", plantui_core::text::printable(file));
                return Err(place.error("the configuration", problem, "put it beside the job"));
            }
        }
    }
    part.settings.iter().for_each(|setting| all.push(setting.clone()));
    Ok(all)
}

/// Published model of MaxText's name.
fn model_named(name: &str) -> Option<Model> {
    let name = name.to_ascii_lowercase();
    let own = match name.as_str() {
        "deepseek3-671b" => "deepseek-v3".into(),
        "deepseek2-16b" => "deepseek-v2-lite".into(),
        "deepseek2-236b" => "deepseek-v2".into(),
        "gpt3-175b" => "gpt3-175b".into(),
        "llama4-17b-16e" => "llama-4-scout".into(),
        "llama4-17b-128e" => "llama-4-maverick".into(),
        _ => ["llama", "gemma", "gpt-oss", "mistral", "mixtral", "qwen"].iter().fold(name.clone(), |name, family| {
            let rest = name.strip_prefix(family);
            match rest.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) && *family != "qwen") {
                Some(rest) => format!("{family}-{rest}"),
                None => name,
            }
        }),
    };
    published::find(&own).or_else(|| published::find(&name))
}

fn mesh(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let mut degrees = std::collections::BTreeMap::new();
    let mut rest: Option<(&str, Place)> = None;
    for (axis, degree) in AXES {
        for side in ["ici", "dcn"] {
            let name = format!("{side}_{axis}_parallelism");
            let Some(setting) = settings.take(&name) else { continue };
            let (text, place) = (setting.value.text(), setting.place.clone());
            if text == "-1" {
                rest = Some((degree, place));
                continue;
            }
            let value: u64 =
                text.parse().map_err(|_| setting.error(format!("is {text}, must be a whole number"), "correct it"))?;
            let entry = degrees.entry(degree).or_insert_with(|| Fact { value: 1u64, place: place.clone() });
            entry.value = entry.value.saturating_mul(value);
            if value > 1 {
                entry.place = place;
            }
        }
    }
    for (name, fact) in &degrees {
        if !["data", "fsdp"].contains(name) && fact.value > 1 {
            draft.set(name, fact.clone());
        }
    }
    let part = |name: &str| degrees.get(name).map_or(1, |fact| fact.value);
    // Weights are divided over the fsdp axis, which takes the rest by default.
    let divided = match &rest {
        Some((axis, _)) => part("fsdp") > 1 || *axis == "fsdp",
        None => part("fsdp") > 1 || !degrees.contains_key("fsdp"),
    };
    let (data, fsdp) = (part("data"), part("fsdp"));
    let place = degrees
        .get("fsdp")
        .or(degrees.get("data"))
        .map_or(Place::new("default of the engine", 0), |fact| fact.place.clone());
    let own = settings.flag("shard_optimizer_over_data")?.filter(|fact| fact.value);
    let zero = match (divided, own) {
        (true, _) => Fact { value: 3, place: place.clone() },
        (false, Some(fact)) => fact.with(1),
        (false, None) => Fact { value: 0, place: place.clone() },
    };
    draft.set("zero", zero);
    if divided && data > 1 {
        draft.copies = Some(Fact { value: data, place: place.clone() });
    }
    // Experts share the ranks of data parallelism here; in MaxText they are an axis of their own.
    if rest.is_none() && !degrees.is_empty() {
        let ranks = data * fsdp * part("ep");
        draft.set("dp", Fact { value: ranks, place });
    }
    draft.maybe("vp", settings.count("num_pipeline_repeats")?.filter(|fact| fact.value > 1));
    for name in [
        "num_slices",
        "compile_topology",
        "compile_topology_num_slices",
        "allow_split_physical_axes",
        "internal_compile_num_devices",
    ] {
        settings.skip(name);
    }
    Ok(())
}

/// Rounds of a pipeline: layers over stages and layers of a stage.
fn repeats(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let each = settings.count("num_layers_per_pipeline_stage")?.filter(|fact| fact.value > 0);
    let stages = draft.degree("pp");
    if let (Some(each), Some(layers)) = (each, draft.layers())
        && stages > 1
        && !draft.facts.contains_key("vp")
        && layers.is_multiple_of(stages * each.value)
    {
        draft.set("vp", each.with(layers / (stages * each.value)));
    }
    Ok(())
}

fn batch(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let each = settings.number("per_device_batch_size")?;
    let steps = settings.count("gradient_accumulation_steps")?.map_or(1, |fact| fact.value.max(1));
    let each = each.unwrap_or(Fact { value: 12.0, place: Place::new("default of the engine", 0) });
    // Devices of a replica share its sequences.
    let group = (draft.degree("tp") * draft.degree("cp") * draft.degree("pp")) as f64;
    let local = each.value * group;
    if local < 1.0 || local.fract() != 0.0 {
        let problem = format!("is {}: a replica of {group} devices has {local} sequences", each.value);
        return Err(each.place.error(
            "per_device_batch_size",
            problem,
            "give --global-batch, and a whole number with --with",
        ));
    }
    let stated = settings.count("num_pipeline_microbatches")?.filter(|fact| fact.value > 0).map(|fact| fact.value);
    let microbatches = if draft.degree("pp") > 1 { stated.unwrap_or(draft.degree("pp")) } else { 1 };
    let size = ((local as u64) / microbatches).max(1);
    draft.set("mbs", each.with(size));
    draft.local_batch = Some(each.with(local as u64 * steps));
    draft.maybe("sequence_length", settings.count("max_target_length")?);
    if !draft.facts.contains_key("sequence_length") {
        draft.usual("sequence_length", 2048);
    }
    Ok(())
}

fn precision(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let dtype = settings.text("dtype")?;
    let quantised = settings.text("quantization")?.filter(|fact| !fact.value.is_empty());
    match (&quantised, dtype) {
        (Some(fact), _) if fact.value.contains("mxfp8") => draft.set("precision", fact.with("mxfp8")),
        (Some(fact), _) if fact.value.contains("nvfp4") => draft.set("precision", fact.with("nvfp4")),
        (Some(fact), _) if fact.value.contains("fp8") => draft.set("precision", fact.with("fp8")),
        (Some(fact), _) => {
            let problem = format!("is {}, which is not modelled", fact.value);
            return Err(fact.place.error("quantization", problem, "leave it out with --with quantization=none"));
        }
        (None, Some(dtype)) if dtype.value.contains("32") => draft.set("precision", dtype.with("fp32")),
        (None, Some(dtype)) => draft.set("precision", dtype.with("bf16")),
        (None, None) => draft.usual("precision", "bf16"),
    }
    let bytes = |fact: &Fact| if fact.value.contains("32") { 4 } else { 2 };
    if let Some(fact) = settings.text("grad_dtype")? {
        draft.set("gradient_bytes", fact.with(bytes(&fact)));
    }
    if let Some(fact) = settings.text("weight_dtype")?.filter(|fact| fact.value.contains("bf")) {
        draft.set("master_bytes", fact.with(0));
    }
    settings.skip("opt_type");
    Ok(())
}

fn recomputation(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let Some(policy) = settings.text("remat_policy")? else {
        draft.usual("recompute", "full");
        return Ok(());
    };
    let text = match policy.value.as_str() {
        "full" => "full".to_string(),
        "minimal" | "minimal_with_context" | "minimal_flash" => "selective:minimal".into(),
        "save_dot_except_mlp" | "save_dot_with_context_except_mlp" | "save_dot_except_mlpwi" => {
            "selective:save_dot_except_mlp".into()
        }
        "save_out_proj" => "selective:save_out_proj".into(),
        "save_qkv_proj" => "selective:save_qkv_proj".into(),
        other => {
            let problem = format!("is `{}`, which is not modelled", plantui_core::text::printable(other));
            return Err(policy.place.error("remat_policy", problem, "give full or minimal with --with"));
        }
    };
    draft.set("recompute", policy.with(text));
    Ok(())
}

fn model(settings: &Settings, draft: &Draft<'_>) -> Result<Option<Fact<Model>>, LoadError> {
    let Some(layers) = settings.count("base_num_decoder_layers")? else { return Ok(None) };
    let size = |name: &str, usual: u64| Ok::<u64, LoadError>(settings.count(name)?.map_or(usual, |fact| fact.value));
    let h = size("base_emb_dim", 2048)?;
    let (heads, groups) = (size("base_num_query_heads", 16)?, size("base_num_kv_heads", 16)?);
    let head_size = size("head_dim", 128)?;
    let width = size("base_mlp_dim", 7168)?;
    let activations = settings.words("mlp_activations")?;
    let gated = activations.is_none_or(|words| words.value.len() > 1);
    let latent = settings.text("attention_type")?.is_some_and(|fact| fact.value == "mla");
    let (rank, kv) = (size("q_lora_rank", 0)?, size("kv_lora_rank", 512)?);
    let (nope, rope, value) = (size("qk_nope_head_dim", 128)?, size("qk_rope_head_dim", 64)?, size("v_head_dim", 128)?);
    if h == 0 || heads == 0 || layers.value == 0 || layers.value > 100_000 {
        return Err(layers.place.error("the model", "has sizes that no model has", "correct them"));
    }
    let attention = if latent {
        let query_rank = (rank > 0).then_some(rank);
        Attention::Latent { heads, query_rank, key_value_rank: kv, rope, nope, value, head_size: rope + nope }
    } else {
        Attention::Grouped { heads, key_value_heads: groups, head_size }
    };
    let vectors = 2 * h + if latent { rank + kv } else { 0 };
    let dense = LayerKind::decoder(attention, FeedForward::Dense { width, gated }, vectors);
    let tied = settings.is_set("logits_via_embedding")?;
    let ends = Ends {
        vocabulary: size("vocab_size", 32_000)?,
        token_width: h,
        positions: 0,
        before: 0,
        after: h,
        projection: if tied { Projection::Tied } else { Projection::Own },
    };
    let mut model = Model::uniform("", draft.source, h, dense, layers.value as usize, ends);
    let count = size("num_experts", 1)?;
    if count > 1 {
        let own = size("base_moe_mlp_dim", width)?;
        let shared = size("shared_experts", 0)?.min(1 << 20);
        let experts = Experts {
            count,
            chosen: size("num_experts_per_tok", 1)?,
            width: own,
            shared_width: shared * own,
            gated,
            node_limit: None,
            latent: None,
        };
        let first = size("first_num_dense_layers", 0)?.min(layers.value);
        model.kinds = vec![LayerKind { feed_forward: FeedForward::Experts(experts), ..dense }, dense];
        model.layers = (0..layers.value).map(|layer| u16::from(layer < first)).collect();
        if first == 0 {
            model.kinds.truncate(1);
        }
    }
    model.details = Some(Details {
        norm: Some(NormKind::Rms),
        head_norm: latent,
        query_key_value_bias: false,
        bias: false,
        slopes: false,
    });
    model.name = format!("model of {:.1}B", model.parameters() as f64 / 1e9);
    Ok(Some(layers.with(model)))
}

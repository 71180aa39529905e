//! verl's actor: the part of a reinforcement-learning job that trains, from Hydra overrides or YAML.
//!
//! Source: verl's `trainer/config` (0.5 to 0.9). One update of the actor is an iteration here; generation, the reference model and
//! the critic are not predicted.

use plantui_core::source::LoadError;

use super::{hugging_face, megatron, names};
use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Place, Setting, Settings, Value},
};

/// Reads verl's jobs.
pub(crate) struct VerlReader;

const ACTOR: &str = "actor_rollout_ref.actor";

static EFFECTS: Effects = Effects {
    none: "actor_rollout_ref.model.enable_activation_offload_ actor_rollout_ref.hybrid_engine actor_rollout_ref.model.trust_remote_code",
    prefixes: "\
        algorithm. critic. reward_model. custom_reward_function. trainer. data. actor_rollout_ref.rollout. actor_rollout_ref.ref. hydra
        actor_rollout_ref.actor.optim. actor_rollout_ref.actor.kl actor_rollout_ref.actor.use_kl actor_rollout_ref.actor.entropy
        actor_rollout_ref.actor.clip actor_rollout_ref.actor.loss actor_rollout_ref.actor.ppo_epochs actor_rollout_ref.actor.grad_clip
        actor_rollout_ref.actor.checkpoint actor_rollout_ref.actor.shuffle actor_rollout_ref.actor.policy_loss actor_rollout_ref.actor.use_torch_compile
        actor_rollout_ref.actor.profile actor_rollout_ref.actor.fsdp_config.wrap_policy actor_rollout_ref.actor.fsdp_config.forward_prefetch
        actor_rollout_ref.actor.fsdp_config.use_orig actor_rollout_ref.actor.fsdp_config.param_offload actor_rollout_ref.actor.fsdp_config.optimizer_offload
        actor_rollout_ref.actor.fsdp_config.grad_offload actor_rollout_ref.actor.megatron.param_offload
        actor_rollout_ref.actor.megatron.optimizer_offload actor_rollout_ref.actor.megatron.grad_offload actor_rollout_ref.actor.megatron.use_dist
        actor_rollout_ref.actor.megatron.dist_checkpoint actor_rollout_ref.actor.megatron.use_mbridge actor_rollout_ref.actor.megatron.seed
        actor_rollout_ref.model.external_lib actor_rollout_ref.model.override_config actor_rollout_ref.model.use_shm actor_rollout_ref.nccl_timeout
        global_profiler ray_ transfer_queue actor_rollout_ref.actor.tis actor_rollout_ref.actor.data_loader actor_rollout_ref.actor.load_weight
        actor_rollout_ref.actor.fsdp_config.mixed_precision actor_rollout_ref.actor.fsdp_config.entropy actor_rollout_ref.actor.fsdp_config.use_torch_compile
        actor_rollout_ref.model.use_remove_padding actor_rollout_ref.model.lora_alpha actor_rollout_ref.model.exclude_modules",
    matters: "",
    by_sound: true,
};

impl JobReader for VerlReader {
    fn id(&self) -> &'static str {
        "verl"
    }

    fn title(&self) -> &'static str {
        "a verl job"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        let known = matches!(syntax, Syntax::Shell | Syntax::Tree) && part.settings.has_under("actor_rollout_ref");
        known.then(|| "actor_rollout_ref".to_string())
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError> {
        let settings = &part.settings;
        draft.note("an iteration is one update of the actor; generation and other models are not predicted");
        let own = |name: &str| format!("{ACTOR}.{name}");
        draft.machines = settings.count("trainer.nnodes")?;
        draft.per_machine = settings.count("trainer.n_gpus_per_node")?;
        if draft.per_machine.is_none() {
            draft.per_machine = Some(Fact { value: 8, place: Place::new("default of the engine", 0) });
        }
        if let Some(path) = settings.file("actor_rollout_ref.model.path")? {
            names::set(draft, path, context);
        }
        length(settings, draft)?;
        batch(settings, draft)?;
        let strategy = settings.text(&own("strategy"))?;
        let core =
            strategy.as_ref().is_some_and(|fact| fact.value == "megatron") || settings.has_under(&own("megatron"));
        if core {
            of_megatron(settings, draft)?;
        } else {
            of_fsdp(settings, draft)?;
        }
        lora(settings, draft)
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

fn length(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let prompt = settings.count("data.max_prompt_length")?;
    let response = settings.count("data.max_response_length")?;
    let place =
        response.as_ref().or(prompt.as_ref()).map_or(Place::new("default of the engine", 0), |fact| fact.place.clone());
    let tokens = prompt.map_or(512, |fact| fact.value) + response.map_or(512, |fact| fact.value);
    draft.set("sequence_length", Fact { value: tokens, place });
    draft.note("the sequence is as long as the longest prompt and response together");
    Ok(())
}

fn batch(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let own = |name: &str| format!("{ACTOR}.{name}");
    let mini = settings.count(&own("ppo_mini_batch_size"))?;
    let each = settings.count("actor_rollout_ref.rollout.n")?.map_or(1, |fact| fact.value.max(1));
    let mini = mini.unwrap_or(Fact { value: 256, place: Place::new("default of the engine", 0) });
    draft.set("global_batch", mini.with(mini.value * each));
    let dynamic = settings.flag(&own("use_dynamic_bsz"))?.filter(|fact| fact.value);
    let most = settings.count(&own("ppo_max_token_len_per_gpu"))?;
    let size = settings.count(&own("ppo_micro_batch_size_per_gpu"))?;
    // An older name counts the sequences of all devices.
    let all = settings.count(&own("ppo_micro_batch_size"))?;
    let devices = draft.per_machine.as_ref().map_or(1, |each| each.value)
        * draft.machines.as_ref().map_or(1, |machines| machines.value);
    let size = size.or(all.map(|fact| fact.with((fact.value / devices.max(1)).max(1))));
    match (dynamic, size) {
        (Some(dynamic), _) => {
            let tokens = most.map_or(16_384, |fact| fact.value);
            let sequences = (tokens / draft.degree("sequence_length").max(1)).max(1);
            draft.note(format!(
                "{} fills microbatches by tokens: {sequences} of the longest sequences are predicted",
                dynamic.place
            ));
            draft.set("mbs", dynamic.with(sequences));
        }
        (None, Some(size)) => draft.set("mbs", size),
        (None, None) => {}
    }
    Ok(())
}

fn of_megatron(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let section = format!("{ACTOR}.megatron");
    let mut all = Settings::default();
    for (name, setting) in settings.under(&section) {
        let name = name.strip_prefix("override_transformer_config.").unwrap_or(name);
        let name = name.strip_prefix("override_ddp_config.").unwrap_or(name);
        if !name.contains('.') {
            all.push(Setting::new(&super::nemo::renamed(name), setting.value.clone(), setting.place.clone()));
        }
    }
    let mut default = |name: &str, value: Value| {
        if !all.has(name) {
            all.push(Setting::new(name, value, Place::new("default of the engine", 0)));
        }
    };
    default("sequence_parallel", Value::Bool(true));
    default("use_distributed_optimizer", Value::Bool(true));
    default("bf16", Value::Bool(true));
    default("moe_token_dispatcher_type", Value::Text("alltoall".into()));
    let named = draft.model.clone();
    let layers =
        draft.options.model.as_ref().or(named.as_ref().map(|model| &model.value)).map(|model| model.layers.len());
    if let Some(layers) = layers {
        all.push(Setting::new("num_layers", Value::Text(layers.to_string()), Place::new("the model", 0)));
    }
    megatron::arguments(&all, draft, false)?;
    draft.model = named;
    settings.take("actor_rollout_ref.model.enable_gradient_checkpointing");
    megatron::of_experts(&all, draft)?;
    for (name, setting) in settings.under(&section) {
        let short = name.rsplit('.').next().unwrap_or(name);
        if all.was_taken(&super::nemo::renamed(short)) {
            settings.take(&setting.name);
        }
    }
    Ok(())
}

fn of_fsdp(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let own = |name: &str| format!("{ACTOR}.{name}");
    draft.usual("stack", "torchtitan");
    draft.usual("zero", 3);
    // Each microbatch reduces its gradients.
    draft.usual("accumulate_whole", false);
    draft.usual("fused_elementwise", false);
    draft.usual("precision", "bf16");
    if let Some(size) = settings.count(&own("fsdp_config.fsdp_size"))?.filter(|fact| fact.value > 1) {
        draft.set("hsdp", size);
    }
    let ulysses = settings
        .count(&own("ulysses_sequence_parallel_size"))?
        .or(settings.count(&own("fsdp_config.ulysses_sequence_parallel_size"))?);
    if let Some(ulysses) = ulysses.filter(|fact| fact.value > 1) {
        draft.set("context_style", ulysses.with("all-to-all"));
        draft.set("cp", ulysses);
    }
    match settings.flag("actor_rollout_ref.model.enable_gradient_checkpointing")? {
        Some(fact) => draft.set("recompute", fact.map(|on| if on { "full" } else { "none" })),
        None => draft.usual("recompute", "full"),
    }
    if let Some(fact) = settings.flag(&own("fsdp_config.offload_policy"))?.filter(|fact| fact.value) {
        draft.set("parameter_offload", fact.clone());
        draft.set("optimizer_offload", fact);
    }
    if let Some(fact) = settings.flag(&own("fsdp_config.reshard_after_forward"))?.filter(|fact| !fact.value) {
        draft.set("zero", fact.with(2));
    }
    if let Some(dtype) = settings.text(&own("fsdp_config.model_dtype"))?.filter(|fact| fact.value.contains("bf")) {
        for (setting, bytes) in [("master_bytes", 0), ("moment_bytes", 2), ("gradient_bytes", 2)] {
            draft.set(setting, dtype.with(bytes));
        }
    }
    if let Some(fact) = settings.flag("actor_rollout_ref.model.use_liger")?.filter(|fact| fact.value) {
        draft.set("fused_elementwise", fact);
    }
    settings.flag("actor_rollout_ref.model.use_fused_kernels")?;
    if let Some(fact) = settings.flag("actor_rollout_ref.model.enable_activation_offload")?.filter(|fact| fact.value) {
        draft.note(format!("{} keeps the layers' inputs on the host, which is not predicted", fact.place));
    }
    Ok(())
}

fn lora(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let rank = settings.count_of(&["actor_rollout_ref.model.lora_rank", "actor_rollout_ref.model.lora.rank"])?;
    let targets = settings.words("actor_rollout_ref.model.target_modules")?;
    let Some(rank) = rank.filter(|rank| rank.value > 0) else { return Ok(()) };
    hugging_face::adapter(draft, &rank.with(()), rank.value, targets.map(|words| words.value), (None, None))
}

//! Runs of an engine's programs: what they lack for a planned run, and the settings that they run in place of its own.
//!
//! The settings are those that `import` reads from the engine's files, so that a written file stands for the same run
//! when it is read back. `O(layers)` for every setting that differs.

use super::{super::Engine, maxtext};
use plantui_core::{
    family::training::{
        AttentionKernel, ContextStyle, Dispatcher, Estimate, Imbalance, Recompute, Stack, TrainingPrecision,
        TrainingRun, TrainingSettings, ZeroBubble, check,
    },
    plan::Configuration,
    workload::{TrainingProfile, training::Modules},
};

/// Run that an engine's programs have in place of the planned one.
pub(super) struct NearestRun {
    /// Profile with the engine's settings.
    pub(super) profile: TrainingProfile,
    /// Configuration that the engine runs.
    pub(super) configuration: Configuration,
    /// Differences to the planned run, a sentence each.
    pub(super) losses: Vec<String>,
}

impl NearestRun {
    /// Nearest run of an engine whose programs lack nothing that the run needs.
    pub(super) fn of(engine: Engine, profile: &TrainingProfile, own: &Configuration, batch: u32) -> Self {
        let run = profile.run(own, batch);
        let mut near = NearestRun { profile: profile.clone(), configuration: own.clone(), losses: vec![] };
        if let Some(recompute) = recompute(engine, &run) {
            near.losses.push(format!("recompute {} (its programs: {recompute})", own.recompute));
            near.configuration.recompute = recompute;
        }
        let layout = &mut near.configuration.layout;
        let parts = Stack::Torchtitan.expert_tensor(layout.tensor, layout.expert);
        if engine == Engine::TorchTitan && profile.model.has_experts() && layout.expert_tensor != parts {
            near.losses.push(format!("etp={} (its programs: {parts})", layout.expert_tensor));
            layout.expert_tensor = parts;
        }
        let Some((stack, settings)) = settings(engine, profile, &run) else { return near };
        near.losses.extend(differences(profile, &run, stack, &settings));
        if run.layout.tensor > 1 {
            near.configuration.sequence_parallel = settings.sequence_parallel;
        }
        near.configuration.distributed_optimizer = settings.distributed_optimizer;
        near.profile.move_to(profile.accelerator, stack);
        near.profile.settings = settings;
        near
    }
}

/// Features of a run that the engine's programs lack, a sentence each.
pub(super) fn lacks(engine: Engine, profile: &TrainingProfile, run: &TrainingRun) -> Vec<String> {
    let (layout, settings) = (&run.layout, &run.settings);
    let (t, p, c, e) = (layout.tensor, layout.pipeline, layout.context, layout.expert);
    let zero = settings.zero();
    let mut lacks = vec![];
    let mut add = |lacking: bool, sentence: String| {
        if lacking {
            lacks.push(sentence);
        }
    };
    let no_experts = || format!("it has no expert parallelism, and the plan has degree {e} (--set expert_degree=1)");
    let no_context = || format!("it has no context parallelism, and the plan has degree {c} (--set context_degree=1)");
    let narrow = run.precision.bits() < 16;
    let no_format = |what: &str| format!("{what} no {}", run.precision.id());
    match engine {
        Engine::Accelerate => {
            add(p > 1, format!("it has no pipeline, and the plan has {p} stages (--set stages=1)"));
            add(e > 1, no_experts());
            let ulysses = matches!(settings.context_style, ContextStyle::AllToAll | ContextStyle::Hierarchical);
            add(
                c > 1 && ulysses,
                "its context parallelism passes keys and values, and the plan exchanges heads".into(),
            );
            add(run.precision.bits() < 8 || run.precision == TrainingPrecision::MxFp8, no_format("its file names"));
        }
        Engine::DeepSpeed if p == 1 => {
            let away = settings.optimizer_offload || settings.parameter_offload;
            add(e > 1 && t > 1 && away, "AutoEP with tensor parallelism does not run with offload".into());
            add(c > 1 && t > 1, "its sequence parallelism does not run with tensor parallelism".into());
            add(c > 1 && e > 1, "its sequence parallelism does not run with AutoEP".into());
            add(layout.expert_tensor > 1, "AutoEP does not divide an expert".into());
            add(narrow, no_format("it mixes"));
        }
        Engine::DeepSpeed | Engine::Torch => {
            add(c > 1, no_context());
            add(e > 1, no_experts());
            let deepspeed = engine == Engine::DeepSpeed;
            let v = layout.virtual_stages;
            add(deepspeed && v > 1, format!("a PipelineModule has one stage on every rank, and the plan has {v}"));
            let divides = "its file divides the optimizer's state alone over replicas, and the plan also divides";
            add(zero >= 2, format!("{divides} gradients (zero{zero}; --set zero=1)"));
            add(narrow, no_format("its file names"));
        }
        Engine::Galvatron => {
            let heads = matches!(settings.context_style, ContextStyle::AllToAll | ContextStyle::Hierarchical);
            add(c > 1 && heads && t > 1, "its strategy exchanges heads in place of tensor parallelism".into());
            add(profile.model.has_experts(), "Galvatron 2.4 has no mixture of experts".into());
            let v = layout.virtual_stages;
            add(v > 1, format!("it has one stage on every rank, and the plan has {v}"));
            add(narrow, no_format("it mixes"));
        }
        Engine::MaxText => {
            let pipeline = "its pipeline runs all forward passes first, whose memory the plan does not count";
            add(p > 1, format!("{pipeline} (--set stages=1)"));
            let whole = profile.model.has_experts() && layout.expert_tensor != t;
            add(whole, "it divides experts over tensor ranks as well, and the plan keeps them whole".into());
            let data = layout.data;
            add(!data.is_multiple_of(e), format!("experts are an axis beside the replicas: {e} must divide {data}"));
            add(run.precision == TrainingPrecision::Fp16, no_format("it trains in"));
        }
        Engine::Megatron | Engine::MegatronBridge => {
            let wide = matches!(run.precision, TrainingPrecision::Fp16 | TrainingPrecision::Fp32);
            add(profile.model.has_experts() && wide, "its grouped products of experts run in bf16 alone".into());
            let nowhere = engine == Engine::MegatronBridge && run.precision == TrainingPrecision::Fp32;
            add(nowhere, "its recipes of precision have none for fp32".into());
        }
        Engine::TorchTitan => {
            add(run.precision == TrainingPrecision::Fp16, "it mixes bf16 or trains in fp32, and has no fp16".into());
        }
        Engine::Vllm => {}
    }
    lacks
}

/// Reason why an engine cannot run a schedule of a trained model.
pub(super) fn refused(engine: Engine, schedule: Option<ZeroBubble>) -> Option<String> {
    match (engine, schedule?) {
        (Engine::Torch | Engine::TorchTitan, ZeroBubble::V | ZeroBubble::Interleaved) | (Engine::Vllm, _) => None,
        (Engine::Torch | Engine::TorchTitan, ZeroBubble::H1) => {
            Some("its zero-bubble schedules are zb-v and interleaved-zb".into())
        }
        _ => Some("it does not defer weight gradients; torchtitan runs zb-v and interleaved-zb".into()),
    }
}

/// Recomputation that the programs run in place of the planned one; `None` if they run that.
fn recompute(engine: Engine, run: &TrainingRun) -> Option<Recompute> {
    let (own, pipeline) = (run.recompute, run.layout.pipeline > 1);
    let whole = matches!(own, Recompute::None | Recompute::Full);
    match engine {
        Engine::TorchTitan => match own {
            Recompute::None | Recompute::Full => None,
            Recompute::Selective(_) if run.modules() == Modules::OPERATORS => None,
            Recompute::Selective(_) => Some(Recompute::Selective(Modules::OPERATORS)),
            Recompute::Layers(_) | Recompute::Every(_) => Some(Recompute::Full),
        },
        Engine::Megatron | Engine::MegatronBridge => match own {
            Recompute::Every(_) => Some(Recompute::Full),
            Recompute::Selective(_) if run.modules().has(Modules::OPERATORS) => Some(Recompute::Full),
            _ => None,
        },
        Engine::MaxText => match own {
            Recompute::Full => None,
            Recompute::Selective(modules) if policy(modules).is_some() => None,
            Recompute::None => Some(Recompute::Selective(Modules::POLICIES[0].1)),
            _ => Some(Recompute::Full),
        },
        Engine::Torch | Engine::Galvatron => match own {
            Recompute::Selective(_) => Some(Recompute::Full),
            _ => None,
        },
        Engine::DeepSpeed if pipeline => match own {
            Recompute::Selective(_) => Some(Recompute::Full),
            _ => None,
        },
        Engine::Accelerate | Engine::DeepSpeed if !whole => Some(Recompute::Full),
        _ => None,
    }
}

/// MaxText's name for the recomputation of these modules.
pub(super) fn policy(modules: Modules) -> Option<&'static str> {
    Modules::POLICIES.iter().find(|(_, own)| *own == modules).map(|(name, _)| *name)
}

/// Stack and settings of the engine's programs for a run; `None` if its file sets those of the run, or trains nothing.
fn settings(engine: Engine, profile: &TrainingProfile, run: &TrainingRun) -> Option<(Stack, TrainingSettings)> {
    let (layout, ours) = (&run.layout, &run.settings);
    let pipeline = layout.pipeline > 1;
    let stack = match engine {
        Engine::Megatron | Engine::MegatronBridge => return Some(megatron(engine, profile, run)),
        Engine::TorchTitan => return Some((Stack::Torchtitan, torchtitan(run))),
        Engine::Accelerate => Stack::Torchtitan,
        Engine::DeepSpeed if !pipeline => Stack::Torchtitan,
        Engine::DeepSpeed | Engine::Torch | Engine::Galvatron | Engine::MaxText => Stack::Megatron2025,
        _ => return None,
    };
    let plain = layout.tensor == 1 && layout.context == 1;
    let zero = match (engine, ours.zero()) {
        (Engine::Accelerate, 0) if plain => 0,
        (Engine::Accelerate, stage) => stage.max(2),
        (Engine::Galvatron, 1) => 2,
        // Through a pipeline, DeepSpeed's optimizer for bfloat16 divides its state whatever the stage.
        (Engine::DeepSpeed, 0) if pipeline && run.precision == TrainingPrecision::Bf16 => 1,
        // The axis that divides weights has one rank.
        (Engine::MaxText, 2 | 3) if maxtext::fsdp_axis(run) == 1 => 0,
        (Engine::MaxText, 2) => 3,
        (_, stage) => stage,
    };
    let mut theirs = TrainingSettings {
        sequence_parallel: ours.sequence_parallel,
        tp_overlap: false,
        fused_cross_entropy: false,
        dispatcher: Dispatcher::AllToAll,
        // The program sets adapters; Galvatron and MaxText train all weights.
        adapter: ours.adapter.filter(|_| !matches!(engine, Engine::Galvatron | Engine::MaxText)),
        imbalance: ours.imbalance.clone(),
        reserve_bytes: ours.reserve_bytes,
        context_style: ours.context_style,
        ..stack.settings()
    };
    match engine {
        Engine::Accelerate => {
            theirs.sequence_parallel = false;
            theirs.fused_elementwise = false;
            let copies = ours.hsdp > 0 && ours.hsdp < layout.data * layout.context;
            theirs.hsdp = if zero > 0 && copies { ours.hsdp.max(layout.context) } else { 0 };
            // FSDP moves weights and state together, and only weights that it divides.
            let offload = zero == 3 && (ours.optimizer_offload || ours.parameter_offload);
            (theirs.optimizer_offload, theirs.parameter_offload) = (offload, offload);
        }
        Engine::DeepSpeed => {
            theirs.sequence_parallel = false;
            theirs.optimizer_offload = ours.optimizer_offload && zero > 0 && !pipeline;
            theirs.parameter_offload = ours.parameter_offload && zero == 3;
            theirs.accumulate_whole = zero < 2 && theirs.accumulate_whole;
            theirs.gradient_bytes = match run.precision {
                TrainingPrecision::Fp32 => 4,
                TrainingPrecision::Fp16 if pipeline => 2,
                _ if pipeline => 4,
                _ if zero == 0 => 2,
                _ => ours.gradient_bytes,
            };
            if layout.context > 1 {
                theirs.context_style = ContextStyle::AllToAll;
            }
        }
        Engine::Galvatron if layout.context > 1 => {
            theirs.context_style = ContextStyle::Ring;
        }
        Engine::MaxText => {
            theirs.sequence_parallel = true;
            let shards = maxtext::fsdp_axis(run) * layout.expert * layout.context;
            theirs.hsdp = if zero == 3 && shards < layout.data * layout.context { shards } else { 0 };
            theirs.optimizer_offload = ours.optimizer_offload;
            theirs.parameter_offload = ours.parameter_offload && zero == 3;
            theirs.gradient_bytes = ours.gradient_bytes;
        }
        _ => {}
    }
    theirs.set("zero", &zero.to_string()).expect("a stage from 0 to 3");
    Some((stack, theirs))
}

/// Stack and settings of Megatron-Core under the flags, or the configuration, that are written.
fn megatron(engine: Engine, profile: &TrainingProfile, run: &TrainingRun) -> (Stack, TrainingSettings) {
    let ours = &run.settings;
    let bridge = engine == Engine::MegatronBridge;
    let stack = if run.stack == Stack::Torchtitan { Stack::Megatron2025 } else { run.stack };
    let experts = profile.model.has_experts();
    let graphs = experts
        && ours.launches_from_graphs(profile.accelerator.generation)
        && check::repeated_in_graphs(run).is_none();
    let theirs = TrainingSettings {
        hsdp: 0,
        accumulate_whole: false,
        vocab_parallel_loss: true,
        fused_elementwise: true,
        attention: match ours.attention {
            AttentionKernel::Unfused => AttentionKernel::Unfused,
            _ => AttentionKernel::Flash,
        },
        cuda_graph: ours.cuda_graph && graphs,
        master_bytes: if bridge || ours.master_bytes == 0 { 4 } else { ours.master_bytes },
        moment_bytes: if bridge { 4 } else { ours.moment_bytes },
        parameter_offload: false,
        activation_offload: if bridge { ours.activation_offload } else { 0 },
        adapter: None,
        ..ours.clone()
    };
    (stack, theirs)
}

/// Settings of torchtitan under the function that is written.
fn torchtitan(run: &TrainingRun) -> TrainingSettings {
    let (layout, ours) = (&run.layout, &run.settings);
    // Context ranks always share one copy of the state.
    let (data, context) = (layout.data, layout.context);
    let divides = ours.zero() > 0 && data > 1 || context > 1;
    let hsdp = match ours.zero() {
        0 if data > 1 => context,
        _ if ours.hsdp > 0 && ours.hsdp < data * context => ours.hsdp.max(context),
        _ => 0,
    };
    let usual = Stack::Torchtitan.settings();
    let style = match ours.context_style {
        ContextStyle::AllGather => ContextStyle::AllGather,
        _ => ContextStyle::Ring,
    };
    let mut theirs = TrainingSettings {
        sequence_parallel: ours.sequence_parallel,
        tp_overlap: ours.tp_overlap && layout.tensor > 1 && ours.sequence_parallel,
        fused_elementwise: ours.fused_elementwise || ours.tp_overlap && layout.tensor > 1,
        context_style: style,
        dispatcher: ours.dispatcher,
        imbalance: match ours.imbalance {
            Imbalance::Capacity(_) => Imbalance::Balanced,
            ref other => other.clone(),
        },
        hsdp: if divides { hsdp } else { 0 },
        reserve_bytes: ours.reserve_bytes,
        adapter: None,
        ..usual
    };
    let zero = match (divides, ours.fsdp) {
        (false, _) => 0,
        (true, true) => 3,
        (true, false) => 2,
    };
    theirs.set("zero", &zero.to_string()).expect("a stage from 0 to 3");
    theirs
}

/// Settings of the programs that differ from those of the run and change its time or memory, a sentence each.
fn differences(profile: &TrainingProfile, run: &TrainingRun, stack: Stack, theirs: &TrainingSettings) -> Vec<String> {
    let estimate = |run: &TrainingRun| {
        let devices = run.layout.devices();
        Estimate::under(&profile.model, run, &profile.accelerator, devices, &profile.constants, None)
            .ok()
            .map(|estimate| (estimate.iteration_s, estimate.memory_bytes))
    };
    let own = estimate(run);
    let ours = &run.settings;
    let mut losses = vec![];
    if stack != run.stack {
        losses.push(format!("stack={} (its programs run like {})", run.stack.id(), stack.id()));
    }
    let mut changed = |name: &str, value: String, other: String| {
        if value == other {
            return;
        }
        let mut settings = ours.clone();
        let known = settings.set(name, &other).is_ok();
        if !known || estimate(&TrainingRun { settings, ..run.clone() }) != own {
            losses.push(format!("{name}={value} (its programs: {other})"));
        }
    };
    changed("zero", ours.zero().to_string(), theirs.zero().to_string());
    let divided = ["distributed_optimizer", "shard_gradients", "fsdp"];
    for (name, _) in TrainingSettings::NAMES.iter().filter(|(name, _)| !divided.contains(name)) {
        changed(name, ours.text(name), theirs.text(name));
    }
    losses
}

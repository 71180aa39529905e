//! Runs of an engine's programs: what they lack for a planned run, and the settings that they run in place of its own.
//!
//! The settings are those that `import` reads from the engine's files, so that a written file stands for the same run
//! when it is read back. `O(layers)` for every setting that differs.

use super::super::Engine;
use plantui_core::{
    family::training::{
        ContextStyle, Dispatcher, Estimate, Recompute, Stack, TrainingPrecision, TrainingRun, TrainingSettings,
        ZeroBubble,
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
        if let Some(recompute) = recompute(engine, own.recompute, run.layout.pipeline > 1) {
            near.losses.push(format!("recompute {} (its programs: {recompute})", own.recompute));
            near.configuration.recompute = recompute;
        }
        let Some((stack, settings)) = settings(engine, &run) else { return near };
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
            add(e > 1 && t > 1, "AutoEP does not run with tensor parallelism".into());
            add(c > 1 && t > 1, "its sequence parallelism does not run with tensor parallelism".into());
            add(c > 1 && e > 1, "its sequence parallelism does not run with AutoEP".into());
            add(layout.expert_tensor > 1, "AutoEP does not divide an expert".into());
            add(narrow, no_format("it mixes"));
        }
        Engine::DeepSpeed | Engine::Torch | Engine::TorchSchedule => {
            add(c > 1, no_context());
            add(e > 1, no_experts());
            let deepspeed = engine == Engine::DeepSpeed;
            let v = layout.virtual_stages;
            add(deepspeed && v > 1, format!("a PipelineModule has one stage on every rank, and the plan has {v}"));
            let divides = "with a pipeline its file divides the optimizer's state alone, and the plan also divides";
            add(engine != Engine::TorchSchedule && zero >= 2, format!("{divides} gradients (zero{zero})"));
            add(engine != Engine::TorchSchedule && narrow, no_format("its file names"));
        }
        Engine::Galvatron => {
            add(profile.model.has_experts(), "Galvatron 2.4 has no mixture of experts".into());
            let v = layout.virtual_stages;
            add(v > 1, format!("it has one stage on every rank, and the plan has {v}"));
            add(narrow, no_format("it mixes"));
        }
        Engine::MaxText => {
            let pipeline = "its pipeline runs all forward passes first, whose memory the plan does not count";
            add(p > 1, format!("{pipeline} (--set stages=1)"));
            add(e > 1 && t > 1, "it divides experts over tensor ranks as well".into());
            let data = layout.data;
            add(!data.is_multiple_of(e), format!("experts are an axis beside the replicas: {e} must divide {data}"));
            add(run.precision == TrainingPrecision::Fp16, no_format("it trains in"));
        }
        Engine::Megatron | Engine::MegatronBridge | Engine::TorchTitan | Engine::Vllm => {}
    }
    lacks
}

/// Reason why an engine cannot run a schedule of a trained model.
pub(super) fn refused(engine: Engine, schedule: Option<ZeroBubble>) -> Option<String> {
    match (engine, schedule?) {
        (Engine::Torch | Engine::TorchTitan, ZeroBubble::V) | (Engine::Vllm, _) => None,
        (Engine::Torch | Engine::TorchTitan, ZeroBubble::H1) => Some("its only zero-bubble schedule is zb-v".into()),
        _ => Some("it does not defer weight gradients; torchtitan runs zb-v".into()),
    }
}

/// Recomputation that the programs run in place of the planned one; `None` if they run that.
fn recompute(engine: Engine, own: Recompute, pipeline: bool) -> Option<Recompute> {
    let whole = matches!(own, Recompute::None | Recompute::Full);
    match engine {
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
fn settings(engine: Engine, run: &TrainingRun) -> Option<(Stack, TrainingSettings)> {
    let (layout, ours) = (&run.layout, &run.settings);
    let pipeline = layout.pipeline > 1;
    let stack = match engine {
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
        (Engine::MaxText, 2) => 3,
        (_, stage) => stage,
    };
    let mut theirs = TrainingSettings {
        sequence_parallel: ours.sequence_parallel,
        tp_overlap: false,
        fused_cross_entropy: false,
        dispatcher: Dispatcher::AllToAll,
        adapter: ours.adapter,
        imbalance: ours.imbalance.clone(),
        reserve_bytes: ours.reserve_bytes,
        context_style: ours.context_style,
        ..stack.settings()
    };
    match engine {
        Engine::Accelerate => {
            theirs.sequence_parallel = false;
            theirs.fused_elementwise = false;
            theirs.hsdp = if zero > 0 { ours.hsdp } else { 0 };
            let offload = zero > 0 && (ours.optimizer_offload || ours.parameter_offload);
            (theirs.optimizer_offload, theirs.parameter_offload) = (offload, offload);
        }
        Engine::DeepSpeed => {
            theirs.sequence_parallel = false;
            theirs.optimizer_offload = ours.optimizer_offload && zero > 0;
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
        Engine::MaxText => {
            theirs.sequence_parallel = true;
            theirs.hsdp = if zero == 3 { ours.hsdp } else { 0 };
            theirs.optimizer_offload = ours.optimizer_offload;
            theirs.parameter_offload = ours.parameter_offload;
            theirs.gradient_bytes = ours.gradient_bytes;
        }
        _ => {}
    }
    theirs.set("zero", &zero.to_string()).expect("a stage from 0 to 3");
    Some((stack, theirs))
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

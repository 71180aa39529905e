//! Export of training workloads: the parts of a configuration that an engine cannot express, the nearest one that it
//! can run, and its cost by the family's own check.
//!
//! `O(layers)`, and a simulation if something is lost.

use super::{
    Engine, EngineExport, EngineSettings, ExportError, headed, loss, megatron_bridge_training, megatron_training,
    torchtitan_training,
};
use crate::fullness;
use plantui_core::{
    cluster::Limits,
    family::{
        check,
        training::{
            AttentionKernel, ContextStyle, ExpertOverlap, Imbalance, Modules, Recompute, TrainingRun, TrainingSettings,
            ZeroBubble, configured, program,
        },
    },
    plan::{Configuration, Plan},
    workload::{TrainingProfile, Workload},
};

/// Writes a configuration for an engine.
///
/// # Errors
/// [`ExportError`] if the plan breaks a rule, or the engine can run neither it nor a nearest configuration.
pub(super) fn export(
    engine: Engine,
    workload: &Workload,
    profile: &TrainingProfile,
    limits: &Limits,
    plan: &Plan,
    settings: &EngineSettings,
) -> Result<EngineExport, ExportError> {
    let score = check(workload, limits, plan);
    if let Some(violation) = score.violations.first() {
        return Err(ExportError::Invalid(violation.to_string()));
    }
    let impossible = |losses: Vec<String>| ExportError::Impossible { engine: engine.title(), losses };
    let own = configured::of_plan(profile, plan);
    let runs = program::schedule(&profile.run(&own, limits.samples()));
    if let Some(asked) = settings.schedule.filter(|asked| *asked != runs) {
        let reason = format!("the planned layout runs {}, and its memory was counted for that", runs.id());
        return Err(ExportError::Schedule { engine: engine.title(), schedule: asked.id(), reason });
    }
    if let Some(reason) = refused(engine, own.zero_bubble) {
        let schedule = own.zero_bubble.map_or("1f1b", ZeroBubble::id);
        return Err(ExportError::Schedule { engine: engine.title(), schedule, reason });
    }
    if profile.model.kinds.iter().any(|kind| kind.mixer.is_some()) {
        let why = "its file describes attention layers, and this model has layers with a state or a convolution";
        return Err(impossible(vec![why.into()]));
    }
    let (near, losses) = nearest(engine, &own, &profile.settings);
    if settings.nearest.is_none() && !losses.is_empty() {
        return Err(impossible(losses));
    }
    let (mut written, mut value) = (plan.clone(), score.value);
    if near != own {
        let Some(split) = configured::split(profile, &near) else { return Err(impossible(losses)) };
        written = configured::plan(profile, near.clone(), &split);
        let other = check(workload, limits, &written);
        if let Some(violation) = other.violations.first() {
            return Err(impossible([losses, vec![format!("the nearest layout: {violation}")]].concat()));
        }
        value = other.value;
    }
    let run = profile.run(&near, limits.samples());
    let own_notes = match engine {
        Engine::TorchTitan => unlike(&run),
        _ => vec![],
    };
    let notes: Vec<String> = fullness::warning(&score, limits).into_iter().chain(own_notes).collect();
    let cost = (!losses.is_empty()).then(|| loss((score.value, value), score.measure));
    let text = match engine {
        Engine::MegatronBridge => megatron_bridge_training::text(profile, &run, &near),
        Engine::TorchTitan => torchtitan_training::text(profile, &run, &near, &settings.names),
        _ => megatron_training::text(profile, limits.samples(), &written),
    };
    let text = headed(engine, &losses, cost, &notes, "") + &text;
    Ok(EngineExport { text, losses, notes, plan: written, values: (score.value, value) })
}

/// Reason why an engine cannot run a schedule.
fn refused(engine: Engine, schedule: Option<ZeroBubble>) -> Option<String> {
    match (engine, schedule?) {
        (Engine::TorchTitan, ZeroBubble::V) => None,
        (Engine::TorchTitan, ZeroBubble::H1) => Some("its only zero-bubble schedule is zb-v".into()),
        _ => Some("it does not defer weight gradients; torchtitan runs zb-v".into()),
    }
}

/// Settings behind the figures that the engine's file does not set.
fn unwritten(engine: Engine, settings: &TrainingSettings) -> Vec<String> {
    let titan = engine == Engine::TorchTitan;
    let bridge = engine == Engine::MegatronBridge;
    let mut losses = vec![];
    if let Some(adapter) = settings.adapter {
        losses.push(format!("the file trains all weights: it sets no adapters ({adapter})"));
    }
    let usual = settings.master_bytes == 4 && settings.moment_bytes == 4;
    for (unwritten, name) in [
        (settings.shard_gradients && titan, "shard_gradients"),
        (settings.hsdp > 0 && !titan, "hsdp"),
        (!usual && (titan || bridge), "master_bytes and moment_bytes"),
        (settings.optimizer_offload && titan, "optimizer_offload"),
        (settings.parameter_offload, "parameter_offload"),
        (settings.activation_offload > 0 && !bridge, "activation_offload"),
    ] {
        if unwritten {
            losses.push(format!("the file does not set {name}, which the figures count"));
        }
    }
    losses
}

/// Nearest configuration that the engine can run, and the losses.
fn nearest(engine: Engine, own: &Configuration, settings: &TrainingSettings) -> (Configuration, Vec<String>) {
    let (mut near, mut losses) = (own.clone(), vec![]);
    let titan = engine == Engine::TorchTitan;
    losses.extend(unwritten(engine, settings));
    match own.recompute {
        Recompute::Layers(layers) if titan => {
            losses.push(format!("it recomputes all layers or none, not {layers} of each stage: all recompute"));
            near.recompute = Recompute::Full;
        }
        Recompute::Every(step) => {
            losses.push(format!("it does not recompute one layer in {step}: all recompute"));
            near.recompute = Recompute::Full;
        }
        Recompute::Selective(modules) if titan && !modules.is_empty() && modules != Modules::OPERATORS => {
            let names = modules.names().join(", ");
            losses.push(format!("it recomputes no modules ({names}): every second matrix product recomputes"));
            near.recompute = Recompute::Selective(Modules::OPERATORS);
        }
        Recompute::Selective(modules) if !titan && modules.has(Modules::OPERATORS) => {
            losses.push("it recomputes modules, not single matrix products: all layers recompute".into());
            near.recompute = Recompute::Full;
        }
        _ => {}
    }
    (near, losses)
}

/// Differences between torchtitan and the assumptions of the figures.
fn unlike(run: &TrainingRun) -> Vec<String> {
    let settings = &run.settings;
    let mut notes = vec![];
    let mut add = |unlike: bool, note: &str| {
        if unlike {
            notes.push(note.to_string());
        }
    };
    add(settings.ep_overlap != ExpertOverlap::None, "it does not overlap the dispatch of tokens, as the figures do");
    add(
        settings.cuda_graph,
        "it compiles the model and launches kernels without CUDA graphs; the figures assume graphs",
    );
    add(
        matches!(settings.imbalance, Imbalance::Capacity(_)),
        "it neither pads experts nor drops tokens; the figures are for a fixed capacity",
    );
    let (d, t, c) = (run.layout.data, run.layout.tensor, run.layout.context);
    add(
        !settings.fsdp && settings.distributed_optimizer && d > 1,
        "it shards gradients and weights as well as the optimizer's state (FSDP2); the figures shard the state \
        alone: --stack torchtitan counts like the engine",
    );
    add(
        settings.attention == AttentionKernel::Unfused,
        "the engine fuses attention; the figures are for unfused \
        scores",
    );
    add(t > 1 && !settings.sequence_parallel, "the figures are without sequence parallelism, which is off here");
    add(
        c > 1 && matches!(settings.context_style, ContextStyle::AllToAll | ContextStyle::Hierarchical),
        "the engine's context parallelism passes keys and values (all-gather or ring); the figures exchange heads",
    );
    notes
}

//! Export of training workloads: the parts of a configuration that an engine cannot express, the nearest one that it
//! can run, and its cost by the family's own check.
//!
//! `O(layers)`, and a simulation if something is lost.

mod accelerate;
mod deepspeed;
mod layers;
mod maxtext;
mod megatron;
mod megatron_bridge;
mod program;
mod torchtitan;

use super::{Engine, EngineExport, EngineSettings, ExportError, headed, launch, loss};
use crate::fullness;
use plantui_core::{
    cluster::Limits,
    family::{
        check,
        training::{
            AttentionKernel, ContextStyle, ExpertOverlap, Imbalance, Modules, Recompute, TrainingRun, TrainingSettings,
            configured, program::schedule as schedule_of_run,
        },
    },
    plan::{Configuration, Plan},
    text::single_line,
    workload::{Profile, TrainingProfile, Workload},
};
use program::NearestRun;

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
    let planned = profile.run(&own, limits.samples());
    let runs = schedule_of_run(&planned);
    if let Some(asked) = settings.schedule.filter(|asked| *asked != runs) {
        let reason = format!("the planned layout runs {}, and its memory was counted for that", runs.id());
        return Err(ExportError::Schedule { engine: engine.title(), schedule: asked.id(), reason });
    }
    if let Some(reason) = program::refused(engine, own.zero_bubble) {
        return Err(ExportError::Schedule { engine: engine.title(), schedule: runs.id(), reason });
    }
    if profile.model.kinds.iter().any(|kind| kind.mixer.is_some()) {
        let why = "its file describes attention layers, and this model has layers with a state or a convolution";
        return Err(impossible(vec![why.into()]));
    }
    let lacks = program::lacks(engine, profile, &planned);
    if !lacks.is_empty() {
        return Err(impossible(lacks));
    }
    let mut near = NearestRun::of(engine, profile, &own, limits.samples());
    if matches!(engine, Engine::Megatron | Engine::MegatronBridge | Engine::TorchTitan) {
        (near.configuration, near.losses) = nearest(engine, &own, &profile.settings);
    }
    let NearestRun { profile: own_profile, configuration, losses } = near;
    if settings.nearest.is_none() && !losses.is_empty() {
        return Err(impossible(losses));
    }
    let (mut written, mut value) = (plan.clone(), score.value);
    if !losses.is_empty() {
        if configuration != own {
            let Some(split) = configured::split(profile, &configuration) else { return Err(impossible(losses)) };
            written = configured::plan(profile, configuration.clone(), &split);
        }
        let runs = Workload { profile: Profile::Training(Box::new(own_profile.clone())), ..workload.clone() };
        let other = check(&runs, limits, &written);
        if let Some(violation) = other.violations.first() {
            return Err(impossible([losses, vec![format!("the nearest run: {violation}")]].concat()));
        }
        value = other.value;
    }
    let run = own_profile.run(&configuration, limits.samples());
    let each = launch::each_machine(limits, u32::try_from(run.layout.devices()).unwrap_or(u32::MAX));
    let refused = || impossible(vec!["its layers have no valid split".into()]);
    let (text, own_notes) = match engine {
        Engine::Megatron => (megatron::text(&own_profile, &run, &configuration, each), vec![]),
        Engine::MegatronBridge => (megatron_bridge::text(&own_profile, &run, &configuration), vec![]),
        Engine::TorchTitan => (torchtitan::text(&own_profile, &run, &configuration, &settings.names), unlike(&run)),
        Engine::Accelerate => (accelerate::text(&run, each), vec![]),
        Engine::MaxText => (maxtext::text(&own_profile, &run, each), vec![]),
        Engine::DeepSpeed if run.layout.pipeline == 1 => (deepspeed::text(&run), vec![]),
        _ => layers::text(engine, &own_profile, &run, &configuration, &settings.names).ok_or_else(refused)?,
    };
    let adapter = run.settings.adapter.as_ref().filter(|_| losses.is_empty() || engine == Engine::Accelerate);
    let adapter = adapter.map(|adapter| format!("the program sets the adapters ({adapter}), not this file"));
    let full = fullness::warning(&score, limits);
    let notes: Vec<String> = full.into_iter().chain(own_notes).chain(adapter).collect();
    let cost = (!losses.is_empty()).then(|| loss((score.value, value), score.measure));
    let head = headed(engine, &losses, cost, &notes, "");
    let text = match engine {
        // The first line of a script names its shell.
        Engine::Megatron => format!("#!/bin/bash\n{head}{text}"),
        _ => head + &launch_comments(engine, &own_profile, &run, each) + &text,
    };
    Ok(EngineExport { text, losses, notes, plan: written, values: (score.value, value), run: Some(Box::new(run)) })
}

/// Comments on ranks, batch and launch, for engines whose own text has none.
fn launch_comments(engine: Engine, profile: &TrainingProfile, run: &TrainingRun, each: u32) -> String {
    let layout = &run.layout;
    let devices = u32::try_from(layout.devices()).unwrap_or(u32::MAX);
    let ranks = launch::ranks(devices, each, launch::ORDER);
    let commands = match engine {
        Engine::Accelerate => [vec![ranks], accelerate::launch(run, each)].concat(),
        Engine::MaxText => [vec![ranks], maxtext::launch(run, each)].concat(),
        Engine::DeepSpeed | Engine::Torch => launch::of_run(engine, run, "your_script.py"),
        _ => return String::new(),
    };
    let head = [
        format!("{devices} ranks on {}: {layout}", single_line(profile.accelerator.id)),
        format!(
            "batch of {} sequences of {} tokens, {} in a microbatch, recompute {}",
            run.global_batch, run.sequence, layout.micro_batch, run.recompute
        ),
    ];
    head.iter().chain(&commands).map(|line| format!("# {line}\n")).collect()
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

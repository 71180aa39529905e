//! Export of training workloads: the parts of a configuration that an engine cannot express, the nearest one that it
//! can run, and its cost by the family's own check.
//!
//! `O(layers)`, and a simulation if something is lost.

mod accelerate;
mod deepspeed;
mod layers;
mod listed;
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
        training::{TrainingRun, configured, program::schedule as schedule_of_run},
    },
    plan::{Plan, Schedule},
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
    let refused = |schedule: Schedule, reason: String| ExportError::Schedule {
        engine: engine.title(),
        schedule: schedule.id(),
        reason,
    };
    let asked = settings.schedule.filter(|asked| *asked != runs);
    let listed = match asked {
        Some(asked) if engine == Engine::TorchTitan => {
            listed::notes(workload, limits, plan, asked).map_err(|reason| refused(asked, reason))?
        }
        Some(asked) => {
            let reason = format!("the planned layout runs {}, and its memory was counted for that", runs.id());
            return Err(refused(asked, reason));
        }
        None => vec![],
    };
    if let Some(reason) = program::refused(engine, own.zero_bubble) {
        return Err(refused(runs, reason));
    }
    if profile.model.kinds.iter().any(|kind| kind.mixer.is_some()) {
        let why = "its file describes attention layers, and this model has layers with a state or a convolution";
        return Err(impossible(vec![why.into()]));
    }
    let lacks = program::lacks(engine, profile, &planned);
    if !lacks.is_empty() {
        return Err(impossible(lacks));
    }
    let near = NearestRun::of(engine, profile, &own, limits.samples());
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
    let devices = u32::try_from(run.layout.devices()).unwrap_or(u32::MAX);
    let spread = launch::Spread::of(limits, devices);
    if !spread.is_even() && matches!(engine, Engine::Accelerate | Engine::MaxText) {
        let each = spread.each;
        let uneven =
            format!("it needs equally many devices on every machine, and {devices} do not fill machines of {each}");
        return Err(impossible(vec![uneven]));
    }
    let no_split = || impossible(vec!["its layers have no valid split".into()]);
    let (text, own_notes) = match engine {
        Engine::Megatron => (megatron::text(&own_profile, &run, &configuration, spread), vec![]),
        Engine::MegatronBridge => (megatron_bridge::text(&own_profile, &run, &configuration, spread), vec![]),
        Engine::TorchTitan => {
            let names = (&settings.names, spread);
            (torchtitan::text(&own_profile, &run, &configuration, names, asked), listed)
        }
        Engine::Accelerate => (accelerate::text(&run, spread), vec![]),
        Engine::MaxText => (maxtext::text(&own_profile, &run, spread), vec![]),
        Engine::DeepSpeed if run.layout.pipeline == 1 => (deepspeed::text(&run), vec![]),
        _ => layers::text(engine, &own_profile, &run, &configuration, &settings.names).ok_or_else(no_split)?,
    };
    let adapter = run.settings.adapter.as_ref();
    let adapter = adapter.map(|adapter| format!("the program sets the adapters ({adapter}), not this file"));
    let full = fullness::warning(&score, limits);
    let start = (engine == Engine::Galvatron).then(|| galvatron_start(&run, spread));
    let notes: Vec<String> =
        full.into_iter().chain(own_notes).chain(adapter).chain(start.into_iter().flatten()).collect();
    let cost = (!losses.is_empty()).then(|| loss((score.value, value), score.measure));
    let head = headed(engine, &losses, cost, &notes, "");
    let text = match engine {
        // The first line of a script names its shell.
        Engine::Megatron => format!("#!/bin/bash\n{head}{text}"),
        _ => head + &launch_comments(engine, &own_profile, &run, spread) + &text,
    };
    Ok(EngineExport { text, losses, notes, plan: written, values: (score.value, value), run: Some(Box::new(run)) })
}

/// Notes on the launch of Galvatron, whose strategies have no comments, and on reading one back.
fn galvatron_start(run: &TrainingRun, spread: launch::Spread) -> [String; 2] {
    let launch::Spread { each, machines, .. } = spread;
    let (devices, sequence, precision) = (run.layout.devices(), run.sequence, run.precision.id());
    [
        format!(
            "launch: torchrun --nnodes {machines} --nproc-per-node {each} --rdzv-backend c10d --rdzv-endpoint \
             $HEAD:29500 train_dist.py --galvatron_config_path THIS_FILE"
        ),
        format!(
            "a strategy states neither: import it with --devices {devices} --sequence-length {sequence} --precision \
             {precision}"
        ),
    ]
}

/// Comments on ranks, batch and launch, for engines whose own text has none.
fn launch_comments(engine: Engine, profile: &TrainingProfile, run: &TrainingRun, spread: launch::Spread) -> String {
    let layout = &run.layout;
    let devices = u32::try_from(layout.devices()).unwrap_or(u32::MAX);
    let ranks = spread.told(launch::ORDER);
    let commands = match engine {
        Engine::Accelerate => [ranks, accelerate::launch(run, spread)].concat(),
        Engine::MaxText => [ranks, maxtext::launch(spread)].concat(),
        Engine::DeepSpeed | Engine::Torch => launch::of_run(engine, run, spread, "your_script.py"),
        _ => return String::new(),
    };
    let head = [
        format!("{devices} ranks on {}: {layout}", single_line(profile.accelerator.id)),
        format!(
            "batch of {} sequences of {} tokens, {} in a microbatch, recompute {}{}",
            run.global_batch,
            run.sequence,
            layout.micro_batch,
            run.recompute,
            run.settings.adapter.map_or(String::new(), |adapter| format!(", adapter {adapter}"))
        ),
    ];
    head.iter().chain(&commands).map(|line| format!("# {line}\n")).collect()
}

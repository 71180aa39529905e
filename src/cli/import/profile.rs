//! `plantui import --for PROFILE`: the plan of a job over a profile of its network.

use std::path::Path;

use super::{CommandEnd, Destination, Failure, output};
use super::{plan::CheckedPlan, report::listed};
use crate::{
    cli::{
        input,
        report::{self, counted, line},
    },
    cluster::{GivenLimits, LimitKind},
    family,
    jobs::{self, Job},
    plan::document::WorkloadPart,
    planner::Search,
    run::Simulation,
    simulate::{LEAST_TIME, Schedule},
    workload::{Recipe, recipe::Precision},
};

/// Number of repeated layers of a profile.
///
/// # Errors
/// [`Failure`] if it cannot be read.
pub(super) fn layers(profile: &Path) -> Result<Option<u64>, Failure> {
    let workload = input::workload(profile)?;
    let layering = crate::workload::layering::Layering::of(&workload, None).ok();
    Ok(layering.map(|layering| layering.blocks() as u64).filter(|blocks| *blocks > 0))
}

/// Makes the plan, writes it, and reports it.
///
/// # Errors
/// [`Failure`] if the job is no plan over the profile, or a file cannot be written.
pub(super) fn run(
    job: &Job,
    profile: &Path,
    destination: Option<&Destination>,
    plan_path: Option<&Path>,
    json: bool,
) -> Result<CommandEnd, Failure> {
    let workload = input::workload(profile)?;
    let plan = jobs::plan(job, &workload)?;
    let microbatches = job.degree("global_batch") / job.degree("mbs").max(1);
    let overrides = GivenLimits::default()
        .with(LimitKind::Devices, job.degree("devices"))
        .with(LimitKind::Microbatches, microbatches.max(1));
    let limits =
        family::resolve(&workload, &overrides).map_err(|missing| Failure::lacks(&workload.source, &missing))?;
    let score = family::check(&workload, &limits, &plan);
    let search = Search::new(Some(LEAST_TIME), 0);
    let simulation = Simulation::within(&workload, &limits, &plan, Schedule::OneForwardOneBackward, &search).ok();
    let broken = score.violations.iter().map(|violation| format!("according to the workload {violation}"));
    let assumed = job.assumed.iter().map(|it| format!("{}: {} is assumed ({})", it.name, it.value, it.flag));
    let notes: Vec<String> = job.notes.iter().cloned().chain(assumed).chain(broken).collect();
    let mut part = WorkloadPart::from(&workload);
    part.recipe = Some(workload.recipe.unwrap_or_default().or(&recipe(job)));
    let checked = CheckedPlan {
        workload: &workload,
        limits: &limits,
        plan: &plan,
        score: &score,
        simulation: simulation.as_ref(),
    };
    let made = format!("read from {}, not planned", job.title);
    let document = checked.json(part, notes.iter().cloned().chain([made]).collect());
    if let Some(destination) = destination {
        destination.write(&document)?;
    }
    if json {
        output::print(&document)?;
        return Ok(CommandEnd::Done);
    }
    let mut text = String::new();
    line(
        &mut text,
        format_args!(
            "{}: {}, {} of {} x {} x {} (stages, replicas, tensor degree)",
            job.source,
            job.title,
            counted(job.degree("devices") as usize, "device"),
            plan.stages.len(),
            plan.stages.first().map_or(1, |stage| stage.data_parallel),
            job.degree("tp")
        ),
    );
    line(&mut text, format_args!(""));
    line(&mut text, format_args!("{}", report::about(&workload)));
    line(&mut text, format_args!("{}", report::objective_line(&limits, &plan, &score)));
    report::stages(&mut text, &workload, &limits, &plan, &score, simulation.as_ref());
    line(&mut text, format_args!(""));
    line(&mut text, format_args!("limits: {}", report::limits(&workload, &limits)));
    if let Some(simulation) = &simulation {
        line(&mut text, format_args!("{}", report::simulated(simulation, &limits)));
    }
    listed(&mut text, "not understood", &job.not_understood, "");
    report::notes(&mut text, &notes);
    if let Some(path) = plan_path {
        line(&mut text, format_args!("next: plantui compare {} --plan {}", input::shown(profile), input::shown(path)));
    }
    output::print(&text)?;
    Ok(CommandEnd::Done)
}

/// Recipe of the job, for exports of its plan.
fn recipe(job: &Job) -> Recipe {
    let fact = |name: &str| job.facts.get(name).map(|fact| fact.value.as_str());
    let data = job.degree("devices") / (job.degree("pp") * job.degree("tp")).max(1);
    Recipe {
        micro_batch: Some(job.degree("mbs")),
        sequence_length: fact("sequence_length").and_then(|tokens| tokens.parse().ok()),
        precision: match fact("precision") {
            Some("bf16") => Some(Precision::Bf16),
            Some("fp16") => Some(Precision::Fp16),
            Some("fp32") => Some(Precision::Fp32),
            _ => None,
        },
        sequence_parallel: fact("sequence_parallel").map(|value| value == "true"),
        optimizer_shards: fact("zero").filter(|stage| *stage != "0").map(|_| data),
        ..Recipe::default()
    }
}

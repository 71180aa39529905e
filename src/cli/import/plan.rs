//! Plan of a job, as it runs or the best found, as a document.

use super::{Failure, job_input};
use crate::{
    cluster::{GivenLimits, Limits},
    export::plan_json,
    family,
    family::training::request::ResolvedRequest,
    jobs::Job,
    plan::{
        Plan, Score,
        configuration::ConfigurationPart,
        document::{Document, ExecutionPart, ObjectivePart, SCHEMA, WorkloadPart, limits_part, stage_parts},
    },
    planner::Search,
    run::Simulation,
    simulate::{LEAST_TIME, Schedule},
    workload::Workload,
};

/// Origin of a plan.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// The job states it.
    Read,
    /// It is the best found for the job.
    Planned,
}

/// Plan that was checked and simulated, for a document.
pub(super) struct CheckedPlan<'a> {
    pub(super) workload: &'a Workload,
    pub(super) limits: &'a Limits,
    pub(super) plan: &'a Plan,
    pub(super) score: &'a Score,
    pub(super) simulation: Option<&'a Simulation>,
}

impl CheckedPlan<'_> {
    /// Document of schema `plantui.plan/1`.
    pub(super) fn json(&self, part: WorkloadPart, notes: Vec<String>) -> String {
        let CheckedPlan { workload, limits, plan, score, simulation } = *self;
        let execution = plan.execution.map(ExecutionPart::from).unwrap_or_default();
        plan_json::to_json(&Document {
            schema: SCHEMA.into(),
            workload: Some(part),
            planner: None,
            limits: Some(limits_part(limits, family::of(workload).limits())),
            status: score.is_valid().then(|| "feasible".into()),
            objective: (score.is_valid() && score.value.is_finite()).then(|| ObjectivePart {
                name: score.measure.name().into(),
                value: score.value,
                unit: score.measure.unit().into(),
                parameters: score.measure.parameters(),
            }),
            lower_bound: None,
            proven_among: None,
            stages: stage_parts(workload, plan, Some(score)),
            configuration: plan.configuration().map(ConfigurationPart::from),
            configurations: vec![],
            cheaper: vec![],
            prediction: family::of(workload).prediction(limits, plan),
            cost: None,
            operators: vec![],
            mapping: None,
            schedule: execution.schedule,
            virtual_stages: execution.virtual_stages,
            warmup: execution.warmup,
            simulation: simulation
                .filter(|_| score.is_valid())
                .map(|it| plan_json::simulation_part(&it.pipeline, it.schedule, &it.timeline)),
            infeasible: None,
            stats: std::collections::BTreeMap::new(),
            notes,
        })
    }
}

/// Plan of a job over its model, as a document.
///
/// # Errors
/// [`Failure`] if the run has no plan.
pub(super) fn json(
    workload: &Workload,
    resolved: &ResolvedRequest,
    job: &Job,
    origin: Origin,
) -> Result<String, Failure> {
    let plan = job_input::plan(workload, resolved, job)?;
    let limits = family::resolve(workload, &GivenLimits::default())
        .map_err(|missing| Failure::lacks(&workload.source, &missing))?;
    let score = family::check(workload, &limits, &plan);
    let search = Search::new(Some(LEAST_TIME), 0);
    let schedule = plan.execution.map_or(Schedule::OneForwardOneBackward, |own| own.schedule);
    let simulation = Simulation::within(workload, &limits, &plan, schedule, &search).ok();
    let broken = score.violations.iter().map(ToString::to_string);
    let made = match origin {
        Origin::Read => format!("read from {}, not planned", job.title),
        Origin::Planned => format!("best found for the job in {}", job.source),
    };
    let notes = job.notes.iter().cloned().chain(broken).chain([made]).collect();
    let checked =
        CheckedPlan { workload, limits: &limits, plan: &plan, score: &score, simulation: simulation.as_ref() };
    Ok(checked.json(WorkloadPart::from(workload), notes))
}

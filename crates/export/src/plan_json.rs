//! Plan JSON, schema `plantui.plan/1`, made from a planner's run; [`plantui_core::plan::document`] describes its fields.

use std::collections::BTreeMap;

use plantui_core::{
    cluster::Limits,
    family::{self, mixed::prices::PlanPrices, operators::operator_parts},
    plan::{
        Score,
        configuration::ConfigurationPart,
        document::{
            CheaperPart, Document, ExecutionPart, InfeasiblePart, ObjectivePart, PlannerPart, SCHEMA, SimulationPart,
            limits_part, stage_parts,
        },
    },
    simulate::{Pipeline, Schedule, Setup, SimulatorSetting, SimulatorSettings, Timeline},
    workload::Workload,
};
use plantui_planners::{Alternative, Options, Outcome, PlannerInfo, Status};

/// Planner's run with everything that is reported about it.
#[derive(Debug, Clone, Copy)]
pub struct ReportedRun<'a> {
    /// Workload of the run.
    pub workload: &'a Workload,
    /// Limits of the run.
    pub limits: &'a Limits,
    /// Planner that ran.
    pub planner: &'a PlannerInfo,
    /// Options of the planner.
    pub options: &'a Options,
    /// Outcome of the run.
    pub outcome: &'a Outcome,
    /// Check of the plan.
    pub score: Option<&'a Score>,
    /// Simulation of the plan.
    pub simulation: Option<ReportedSimulation<'a>>,
}

/// Simulated plan.
#[derive(Debug, Clone, Copy)]
pub struct ReportedSimulation<'a> {
    /// Simulated pipeline; its notes go into the document.
    pub pipeline: &'a Pipeline,
    /// Schedule that was simulated.
    pub schedule: Schedule,
    /// Resulting timeline.
    pub timeline: &'a Timeline,
}

impl<'a> From<&'a plantui_study::run::Run> for ReportedRun<'a> {
    fn from(run: &'a plantui_study::run::Run) -> Self {
        ReportedRun {
            workload: &run.problem.workload,
            limits: &run.problem.limits,
            planner: run.planner.info(),
            options: &run.problem.options,
            outcome: &run.outcome,
            score: run.score.as_ref(),
            simulation: run.simulation.as_ref().map(|simulation| ReportedSimulation {
                pipeline: &simulation.pipeline,
                schedule: simulation.schedule,
                timeline: &simulation.timeline,
            }),
        }
    }
}

/// Document of a run of [`plantui_study::run`].
pub fn of_run(run: &plantui_study::run::Run) -> Document {
    document(&run.into())
}

/// Word for a status in the document.
pub fn status_word(status: Status) -> &'static str {
    match status {
        Status::Optimal => "optimal",
        Status::Feasible => "feasible",
        Status::Infeasible => "infeasible",
        Status::Cancelled => "cancelled",
    }
}

/// Document of a run. Figures that are not finite are left out: JSON cannot express them.
pub fn document(run: &ReportedRun<'_>) -> Document {
    let ReportedRun { workload, limits, planner, options, outcome, score, simulation } = *run;
    let finite = |value: &f64| value.is_finite();
    let measure = outcome.plan.as_ref().map_or_else(|| family::measure(workload), |plan| plan.measure);
    let objective = outcome.objective.filter(finite).map(|value| ObjectivePart {
        name: measure.name().into(),
        value,
        unit: measure.unit().into(),
        parameters: measure.parameters(),
    });
    let infeasible = outcome.infeasible.as_ref().map(|story| InfeasiblePart {
        limits: story.limits.iter().map(|limit| limit.label().to_string()).collect(),
        smallest_memory_bytes: story.smallest_memory_bytes.filter(finite),
        fewest_devices: story.fewest_devices,
        explanation: story.explanation.clone(),
    });
    let mut stats: BTreeMap<String, f64> =
        outcome.statistics.counts.iter().map(|(name, count)| ((*name).to_string(), *count)).collect();
    stats.insert("seconds".into(), outcome.statistics.seconds);
    stats.retain(|_, figure| figure.is_finite());
    let mut notes = outcome.notes.clone();
    if let Some(simulation) = simulation {
        let (schedule, settings) = (simulation.schedule, simulation.pipeline.settings);
        let setup = Setup { settings, ..schedule.into() };
        let changes = setup.changes();
        if !changes.is_empty() {
            notes.push(format!("simulation: simulated with {}", changes.join(", ")));
        }
        notes.extend(simulation.pipeline.notes.iter().map(|note| format!("simulation: {note}")));
    }
    let execution = outcome.plan.as_ref().and_then(|plan| plan.execution);
    let execution = execution.map(ExecutionPart::from).unwrap_or_default();
    Document {
        schema: SCHEMA.into(),
        workload: Some(workload.into()),
        planner: Some(PlannerPart {
            id: planner.id.into(),
            options: options.iter().map(|(name, value)| (name.to_string(), value.json())).collect(),
        }),
        limits: Some(limits_part(limits, family::of(workload).limits())),
        // A plan that breaks a rule, such as a hand edit, has none of the four statuses.
        status: (outcome.status != Status::Infeasible || outcome.plan.is_none())
            .then(|| status_word(outcome.status).into()),
        objective,
        lower_bound: outcome.lower_bound.filter(finite),
        proven_among: outcome.proven_among.clone(),
        stages: outcome.plan.as_ref().map(|plan| stage_parts(workload, plan, score)).unwrap_or_default(),
        configuration: outcome.plan.as_ref().and_then(|plan| plan.configuration().map(ConfigurationPart::from)),
        configurations: outcome.alternatives.iter().filter_map(Alternative::part).collect(),
        cheaper: cheaper(workload, limits, outcome),
        prediction: outcome.plan.as_ref().and_then(|plan| family::of(workload).prediction(limits, plan)),
        cost: None,
        operators: outcome.plan.as_ref().map(|plan| operator_parts(workload, plan)).unwrap_or_default(),
        mapping: outcome.mapping.clone(),
        schedule: execution.schedule,
        virtual_stages: execution.virtual_stages,
        warmup: execution.warmup,
        simulation: simulation.map(|s| simulation_part(s.pipeline, s.schedule, s.timeline)),
        infeasible,
        stats,
        notes,
    }
}

/// Plans on several kinds of devices that are cheaper the slower they are; empty unless they were asked for.
fn cheaper(workload: &Workload, limits: &Limits, outcome: &Outcome) -> Vec<CheaperPart> {
    if outcome.alternatives.len() < 2 {
        return vec![];
    }
    let part = |other: &Alternative| {
        let prices = PlanPrices::of(workload, limits, &other.plan)?;
        Some(CheaperPart {
            iteration_s: other.value,
            cost: prices.of_iteration(other.value, limits.samples().into()),
            price_per_hour: prices.per_hour,
            stages: stage_parts(workload, &other.plan, None),
        })
    };
    outcome.alternatives.iter().filter_map(part).collect()
}

/// Simulation part of the document.
pub fn simulation_part(pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline) -> SimulationPart {
    let (own, default) = (&pipeline.settings, SimulatorSettings::default());
    let other = SimulatorSetting::ALL.into_iter().filter(|setting| !setting.same(own, &default));
    SimulationPart {
        settings: other.map(|setting| (setting.id().to_string(), setting.text(own))).collect(),
        schedule: schedule.id().into(),
        iteration_s: timeline.iteration_s,
        samples_per_s: timeline.samples_per_s,
        idle: timeline.idle,
        peak_memory_bytes: timeline.peak_memory(),
    }
}

/// Document as indented text, ending in a newline.
pub fn to_json(document: &Document) -> String {
    serde_json::to_string_pretty(document).expect("strings, finite numbers and string keys serialise") + "\n"
}

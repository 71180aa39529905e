//! Result of a sweep's point, and its figures for charts.

use crate::compare::SimulatedFigures;
use plantui_core::{
    family::{self, mixed::prices::PlanPrices},
    plan::{Plan, Score, Stage, document::MappingPart},
    units,
};
use plantui_planners::{Fault, Outcome, Problem, REPORT, Status};

/// Planner's objective at a point.
#[derive(Debug, Clone, PartialEq)]
pub struct PointObjective {
    /// Name in the plan JSON: `time_per_sample`.
    pub name: String,
    /// Unit: `s`.
    pub unit: String,
    /// Value of the plan by the independent check.
    pub value: f64,
}

impl PointObjective {
    /// Value with its unit, for people.
    pub fn show(&self) -> String {
        show(&self.name, &self.unit, self.value)
    }
}

fn show(name: &str, unit: &str, value: f64) -> String {
    match (unit, name) {
        ("s", "time_per_sample") => format!("{}/sample", units::seconds(value)),
        ("s", _) => units::seconds(value),
        ("ms", _) => units::seconds(value / 1e3),
        ("operations", _) => units::operations(value),
        ("x", _) => format!("{}x", units::number(value)),
        ("currency", _) => units::number(value),
        (unit, _) => format!("{} {unit}", units::number(value)),
    }
}

/// Simulated figures of a point's plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointSimulation {
    /// Iteration time, seconds.
    pub iteration_s: f64,
    /// Samples (or microbatches) per second.
    pub samples_per_s: f64,
    /// Idle share of device time, 0 to 1.
    pub idle: f64,
    /// Peak memory over all devices, bytes.
    pub peak_memory_bytes: f64,
}

/// Result of a point.
#[derive(Debug, Clone, PartialEq)]
pub struct PointResult {
    /// Status of the run.
    pub status: Status,
    /// Objective of the plan, if there is one.
    pub objective: Option<PointObjective>,
    /// Proven bound on the objective.
    pub bound: Option<f64>,
    /// Number of stages of the plan.
    pub stages: Option<usize>,
    /// Number of devices that it uses.
    pub devices_used: Option<u32>,
    /// Layout of the plan in the notation of `--parallel`, if it is of a model to be trained, or its stages by kind of
    /// device; else empty.
    pub layout: String,
    /// Prices of the plan, if it is on kinds of devices that have some.
    pub prices: Option<PlanPrices>,
    /// Simulated figures of the plan.
    pub simulated: Option<PointSimulation>,
    /// Wall-clock seconds of planning.
    pub seconds: f64,
    /// Reason why there is no plan or no simulation; else empty.
    pub why: String,
    /// Description of the heaviest communication on the topology, if the plan was mapped; not stored in files.
    pub mapped: Option<String>,
    /// Bug of the planner; there is no plan then. Not stored in files: such a point is planned again.
    pub fault: Option<Fault>,
}

/// Figure of an answer for a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChartFigure {
    /// Planner's objective.
    #[default]
    Objective,
    /// Simulated iteration time.
    Iteration,
    /// Simulated samples per second.
    Throughput,
    /// Simulated idle share of device time.
    Idle,
    /// Simulated peak memory.
    Memory,
    /// Number of devices that the plan uses.
    Devices,
    /// Time spent planning.
    Seconds,
    /// Cost of a simulated iteration, on kinds of devices with prices.
    Cost,
}

impl ChartFigure {
    /// All figures, the objective first.
    pub const ALL: [ChartFigure; 8] = [
        ChartFigure::Objective,
        ChartFigure::Iteration,
        ChartFigure::Throughput,
        ChartFigure::Idle,
        ChartFigure::Memory,
        ChartFigure::Devices,
        ChartFigure::Seconds,
        ChartFigure::Cost,
    ];

    /// Id for flags.
    pub fn id(self) -> &'static str {
        match self {
            ChartFigure::Objective => "objective",
            ChartFigure::Iteration => "iteration",
            ChartFigure::Throughput => "throughput",
            ChartFigure::Idle => "idle",
            ChartFigure::Memory => "memory",
            ChartFigure::Devices => "devices",
            ChartFigure::Seconds => "seconds",
            ChartFigure::Cost => "cost",
        }
    }

    /// Title for axes.
    pub fn title(self) -> &'static str {
        match self {
            ChartFigure::Objective => "objective",
            ChartFigure::Iteration => "simulated iteration time",
            ChartFigure::Throughput => "simulated samples per second",
            ChartFigure::Idle => "simulated idle share",
            ChartFigure::Memory => "simulated peak memory",
            ChartFigure::Devices => "devices used",
            ChartFigure::Seconds => "planning time",
            ChartFigure::Cost => "cost of an iteration",
        }
    }

    /// Value of the figure.
    pub fn of(self, answer: &PointResult) -> Option<f64> {
        let simulated = answer.simulated.as_ref();
        match self {
            ChartFigure::Objective => answer.objective.as_ref().map(|objective| objective.value),
            ChartFigure::Iteration => simulated.map(|simulated| simulated.iteration_s),
            ChartFigure::Throughput => simulated.map(|simulated| simulated.samples_per_s),
            ChartFigure::Idle => simulated.map(|simulated| simulated.idle),
            ChartFigure::Memory => simulated.map(|simulated| simulated.peak_memory_bytes),
            ChartFigure::Devices => answer.devices_used.map(f64::from),
            ChartFigure::Seconds => Some(answer.seconds),
            ChartFigure::Cost => simulated.zip(answer.prices).map(|(simulated, prices)| {
                prices.of_iteration(simulated.iteration_s, simulated.samples_per_s * simulated.iteration_s)
            }),
        }
    }

    /// Value with its unit; `objective` is the objective's name and unit. Memory is shown in the unit of
    /// `memory_limit`.
    pub fn show(self, value: f64, objective: Option<(&str, &str)>, memory_limit: f64) -> String {
        match self {
            ChartFigure::Objective => match objective {
                Some((name, unit)) => show(name, unit, value),
                None => units::number(value),
            },
            ChartFigure::Iteration | ChartFigure::Seconds => units::seconds(value),
            ChartFigure::Throughput => format!("{}/s", units::number(value)),
            ChartFigure::Idle => units::percent(value),
            ChartFigure::Memory => units::bytes_beside(value, memory_limit),
            ChartFigure::Devices => format!("{value:.0}"),
            ChartFigure::Cost => units::number(value),
        }
    }
}

impl PointResult {
    /// Answer for a planner's outcome.
    pub(super) fn new(
        problem: &Problem,
        outcome: &Outcome,
        score: Option<&Score>,
        simulated: Option<Result<SimulatedFigures, String>>,
        seconds: f64,
    ) -> Self {
        let (simulated, given_up) = match simulated {
            Some(Ok(simulated)) => (Some(simulated), String::new()),
            Some(Err(given_up)) => (None, given_up),
            None => (None, String::new()),
        };
        let why = match (&outcome.plan, &outcome.infeasible) {
            (Some(_), _) => given_up,
            (None, Some(story)) => story.explanation.clone(),
            (None, None) if outcome.status == Status::Cancelled => "stopped before a plan was found".into(),
            (None, None) => "no plan".into(),
        };
        let plan = outcome.plan.as_ref();
        PointResult {
            status: outcome.status,
            objective: score.map(|score| PointObjective {
                name: score.measure.name().into(),
                unit: score.measure.unit().into(),
                value: score.value,
            }),
            bound: outcome.lower_bound.filter(|bound| bound.is_finite()),
            stages: plan.map(|plan| plan.stages.len()),
            devices_used: plan.map(Plan::devices_used),
            layout: plan.map(|plan| layout(problem, plan)).unwrap_or_default(),
            prices: plan.and_then(|plan| PlanPrices::of(&problem.workload, &problem.limits, plan)),
            simulated: simulated.map(|simulated| PointSimulation {
                iteration_s: simulated.iteration_s,
                samples_per_s: simulated.samples_per_s,
                idle: simulated.idle,
                peak_memory_bytes: simulated.peak_memory_bytes,
            }),
            seconds,
            why,
            mapped: outcome.mapping.as_ref().map(MappingPart::summary),
            fault: None,
        }
    }

    /// Answer for a planner that failed.
    pub(super) fn failed(problem: &Problem, fault: Fault, seconds: f64) -> Self {
        let nothing = PointResult::new(problem, &Outcome::new(Status::Cancelled), None, None, seconds);
        PointResult { why: format!("a bug of plantui: {fault}; {REPORT}"), fault: Some(fault), ..nothing }
    }

    /// True if there is a plan.
    pub fn has_plan(&self) -> bool {
        self.objective.is_some()
    }
}

/// Layout of a plan: its degrees, or its stages by kind of device.
fn layout(problem: &Problem, plan: &Plan) -> String {
    let family = family::of(&problem.workload);
    if let Some(configuration) = plan.configuration() {
        return configuration.to_string();
    }
    let on = |stage: &Stage| {
        let kind = family.stage_kind(stage)?;
        Some(format!("{}x{kind} ({} x {})", stage.device_count(), stage.data_parallel, stage.tensor_parallel))
    };
    plan.stages.iter().map(on).collect::<Option<Vec<_>>>().map_or_else(String::new, |stages| stages.join(", "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::run;
    use plantui_core::family;
    use plantui_core::{cluster::GivenLimits, search::Search, workload};
    use plantui_planners::{self as planner, Options, Problem};

    #[test]
    fn a_point_whose_simulation_was_given_up_has_its_plan_and_the_reason() {
        let workload = Arc::new(workload::builtin());
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let planner = planner::find("equal-partition").unwrap();
        let problem = Problem { workload, limits, options: Options::defaults(planner.options()) };
        let outcome = planner.plan(&problem, &Search::default());
        let score = run::verified(planner, &problem, outcome.plan.as_ref().unwrap(), outcome.objective).unwrap();
        let answer = PointResult::new(&problem, &outcome, Some(&score), Some(Err("not simulated: why".into())), 1.0);
        assert!(answer.has_plan() && answer.simulated.is_none() && answer.why == "not simulated: why");
    }
}

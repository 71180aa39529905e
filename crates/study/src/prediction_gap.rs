//! Comparison of a planner's objective with the simulated value.
//!
//! The objective is a model that may ignore the schedule, warm-up or transfers. Wherever it is shown, the simulated
//! iteration appears beside it in the same unit.

use crate::run::Run;
use plantui_core::{
    cluster::Limits,
    family,
    plan::{Measure, Plan, Score},
    simulate::Timeline,
    units,
    workload::{Workload, placement::SECONDS},
};
use plantui_planners::Problem;

/// Smaller relative differences count as none.
const SMALLEST_DIFFERENCE: f64 = 5e-4;

/// Planner's value of a plan and the simulated one, in the unit of the measure; operators' steps in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PredictionGap {
    measure: Measure,
    /// Value in the planner's model.
    pub planned: f64,
    /// Value in the simulator.
    pub simulated: f64,
}

impl PredictionGap {
    /// Both values of a valid plan. `None` if nothing was simulated, or the two are equal by definition: a single
    /// sample runs as planned.
    pub fn of(workload: &Workload, limits: &Limits, plan: &Plan, score: &Score, timeline: &Timeline) -> Option<Self> {
        if !score.is_valid() || timeline.iteration_s <= 0.0 {
            return None;
        }
        let measure = score.measure;
        if let Some(alone_s) = family::of(workload).alone_s(workload, limits, plan) {
            return Some(PredictionGap { measure, planned: score.value, simulated: alone_s / timeline.iteration_s });
        }
        let (planned_s, simulated_s) = times_s(score, timeline.iteration_s, timeline.samples_per_s)?;
        let unit = match measure {
            Measure::MaxLoad | Measure::SeparateMaxima => SECONDS,
            Measure::Latency { .. } | Measure::OperatorCost(_) | Measure::IterationTime | Measure::IterationCost => {
                return None;
            }
            Measure::TimePerSample | Measure::PipelineTime | Measure::Speedup(_) => 1.0,
        };
        Some(PredictionGap { measure, planned: planned_s / unit, simulated: simulated_s / unit })
    }

    /// Both values of a run's plan, if it was simulated.
    pub fn of_run(run: &Run) -> Option<Self> {
        let Problem { workload, limits, .. } = &run.problem;
        let (plan, score) = (run.outcome.plan.as_ref()?, run.score.as_ref()?);
        PredictionGap::of(workload, limits, plan, score, &run.simulation.as_ref()?.timeline)
    }

    /// Simulated time of one sample or step, and its difference from the plan: `158.4 ms, as planned`. Both are
    /// computed the same way, so a difference means a bug. Not for iterations; see [`PredictionGap::of_run`].
    pub fn once(run: &Run) -> Option<String> {
        let (score, seconds) = (run.score.as_ref()?, run.simulation.as_ref()?.timeline.iteration_s);
        let (planned, of) = match score.measure {
            Measure::Latency { .. } => (score.value * SECONDS, ""),
            Measure::OperatorCost(_) => (score.slowest_s, "/iteration"),
            _ => return None,
        };
        let against = PredictionGap { measure: score.measure, planned, simulated: seconds }.against();
        (seconds > 0.0 && planned > 0.0).then(|| format!("{}{of}, {against}", units::seconds(seconds)))
    }

    /// Relative excess of the simulated value over the planned one.
    pub fn difference(&self) -> f64 {
        self.simulated / self.planned - 1.0
    }

    /// Simulated value and the difference: `21.90 ms/sample, 9.2% more`.
    pub fn summary(&self) -> String {
        format!("{}, {}", self.value(), self.against())
    }

    /// Simulated value with its unit.
    pub fn value(&self) -> String {
        self.measure.show(self.simulated)
    }

    /// Planner's value in short form, for display beside the simulated one: `objective 20.06 ms`. The model error,
    /// relative to the simulated value, is shown elsewhere.
    pub fn objective(&self) -> String {
        let value = match self.measure {
            Measure::TimePerSample => units::seconds(self.planned),
            Measure::Speedup(_) => format!("{}x", units::number(self.planned)),
            _ => self.measure.show(self.planned),
        };
        format!("objective {value}")
    }

    /// Difference in words: `9.2% more`, `as planned`.
    pub fn against(&self) -> String {
        let share = self.difference();
        match share.abs() < SMALLEST_DIFFERENCE {
            true => "as planned".into(),
            false => format!("{} {}", units::percent(share.abs()), if share > 0.0 { "more" } else { "less" }),
        }
    }
}

/// Planned and simulated time of one sample, seconds; `None` if the objective is not a time.
pub(super) fn times_s(score: &Score, iteration_s: f64, samples_per_s: f64) -> Option<(f64, f64)> {
    Some(match score.measure {
        Measure::TimePerSample | Measure::MaxLoad => (score.slowest_s, 1.0 / samples_per_s),
        Measure::SeparateMaxima => (score.value * SECONDS, 1.0 / samples_per_s),
        Measure::Latency { .. } => (score.value * SECONDS, iteration_s),
        Measure::IterationTime | Measure::PipelineTime => (score.value, iteration_s),
        Measure::Speedup(_) | Measure::OperatorCost(_) | Measure::IterationCost => return None,
    })
}

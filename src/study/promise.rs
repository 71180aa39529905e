//! What a planner promises of a plan, held against what the simulator makes of it.
//!
//! A planner's objective is a model: it knows no schedule, or no fill, or no transfers. Wherever its value is shown, this
//! says beside it what one simulated batch comes to in the same unit.

use crate::{
    cluster::Limits,
    family,
    plan::{Measure, Plan, Score},
    planner::Problem,
    run::Run,
    simulate::Timeline,
    units,
    workload::{Workload, placement::SECONDS},
};

/// Differences below this are none, relative.
const TOLD: f64 = 5e-4;

/// A planner's value of a plan and the simulated one, in the unit of the measure; operators' steps in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promise {
    measure: Measure,
    /// By the planner's model.
    pub planned: f64,
    /// By the simulator.
    pub simulated: f64,
}

impl Promise {
    /// The promise of a valid plan and what became of it; `None` where nothing was simulated, or the two are one: a single
    /// sample runs as planned.
    pub fn of(workload: &Workload, limits: &Limits, plan: &Plan, score: &Score, timeline: &Timeline) -> Option<Self> {
        if !score.is_valid() || timeline.iteration_s <= 0.0 {
            return None;
        }
        let measure = score.measure;
        if let Some(alone_s) = family::of(workload).alone_s(workload, limits, plan) {
            return Some(Promise { measure, planned: score.value, simulated: alone_s / timeline.iteration_s });
        }
        let (planned_s, simulated_s) = times_s(score, timeline.iteration_s, timeline.samples_per_s)?;
        let unit = match measure {
            Measure::MaxLoad | Measure::SeparateMaxima => SECONDS,
            Measure::Latency { .. } | Measure::OperatorCost(_) | Measure::IterationTime => return None,
            Measure::TimePerSample | Measure::Speedup(_) => 1.0,
        };
        Some(Promise { measure, planned: planned_s / unit, simulated: simulated_s / unit })
    }

    /// The promise of a run's plan, where it was simulated.
    pub fn of_run(run: &Run) -> Option<Self> {
        let Problem { workload, limits, .. } = &run.problem;
        let (plan, score) = (run.outcome.plan.as_ref()?, run.score.as_ref()?);
        Promise::of(workload, limits, plan, score, &run.simulation.as_ref()?.timeline)
    }

    /// What one simulated sample or step takes against what its plan says, where the two are counted alike and differ only
    /// if one of them is wrong: `158.4 ms, as planned`. Not for batches, which [`Promise::of_run`] tells.
    pub fn once(run: &Run) -> Option<String> {
        let (score, seconds) = (run.score.as_ref()?, run.simulation.as_ref()?.timeline.iteration_s);
        let (planned, of) = match score.measure {
            Measure::Latency { .. } => (score.value * SECONDS, ""),
            Measure::OperatorCost(_) => (score.slowest_s, "/step"),
            _ => return None,
        };
        let against = Promise { measure: score.measure, planned, simulated: seconds }.against();
        (seconds > 0.0 && planned > 0.0).then(|| format!("{}{of}, {against}", units::seconds(seconds)))
    }

    /// By how much the simulated value is above the planned one, relative to that.
    pub fn difference(&self) -> f64 {
        self.simulated / self.planned - 1.0
    }

    /// The simulated value and the difference: `21.90 ms/sample, 9.2% more`.
    pub fn told(&self) -> String {
        format!("{}, {}", self.value(), self.against())
    }

    /// The simulated value with its unit.
    pub fn value(&self) -> String {
        self.measure.show(self.simulated)
    }

    /// The planner's value as short as can be, beside the simulated one: `objective 20.06 ms`. How far the two are apart is told
    /// as the model's error, which has the simulated value for its whole.
    pub fn objective(&self) -> String {
        let value = match self.measure {
            Measure::TimePerSample => units::seconds(self.planned),
            Measure::Speedup(_) => format!("{}x", units::number(self.planned)),
            _ => self.measure.show(self.planned),
        };
        format!("objective {value}")
    }

    /// The difference in words: `9.2% more`, `as planned`.
    pub fn against(&self) -> String {
        let share = self.difference();
        match share.abs() < TOLD {
            true => "as planned".into(),
            false => format!("{} {}", units::percent(share.abs()), if share > 0.0 { "more" } else { "less" }),
        }
    }
}

/// What a plan promises of one sample and what it takes in the simulator, seconds; `None` where the objective is no time.
pub(super) fn times_s(score: &Score, iteration_s: f64, samples_per_s: f64) -> Option<(f64, f64)> {
    Some(match score.measure {
        Measure::TimePerSample | Measure::MaxLoad => (score.slowest_s, 1.0 / samples_per_s),
        Measure::SeparateMaxima => (score.value * SECONDS, 1.0 / samples_per_s),
        Measure::Latency { .. } => (score.value * SECONDS, iteration_s),
        Measure::IterationTime => (score.value, iteration_s),
        Measure::Speedup(_) | Measure::OperatorCost(_) => return None,
    })
}

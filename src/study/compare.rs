//! Many planners' plans, and plans from files, on one table in one simulator.
//!
//! Every planner promises in terms of its own; the simulator plays one batch of each plan under one schedule, so that
//! promises can be held against one another. Where an objective is a time per sample, the difference between it and the
//! simulated one is the planner's prediction error.

use std::sync::Arc;

use crate::{
    cluster::Limits,
    plan::{Measure, Plan, Score, check::check},
    planner::{self, Options, Outcome, Planner, Problem, Search, Status},
    simulate::{self, Pipeline, Schedule, Settings, Timeline},
    workload::Workload,
};

/// A plan in the simulator.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// The schedule that was played: the one asked for, unless the plan has no choice.
    pub schedule: Schedule,
    /// Time of one batch, seconds.
    pub iteration_s: f64,
    /// Samples (or microbatches, where the workload does not tell) a second.
    pub samples_per_s: f64,
    /// Share of device time that is idle, 0 to 1.
    pub bubble: f64,
    /// The most memory in use on any device, bytes.
    pub peak_memory_bytes: f64,
    /// What the simulator assumed.
    pub notes: Vec<String>,
}

/// A line of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The planner's id, or the plan's file.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// How the run ended; `None` for a plan from a file.
    pub status: Option<Status>,
    /// The plan.
    pub plan: Option<Plan>,
    /// The plan under the independent check.
    pub score: Option<Score>,
    /// A proven bound on the objective.
    pub bound: Option<f64>,
    /// The plan in the simulator, if it is valid.
    pub played: Option<Played>,
    /// Wall-clock seconds of planning; `None` for a plan from a file.
    pub seconds: Option<f64>,
    /// Why there is no plan, or what the result rests on.
    pub remarks: Vec<String>,
}

impl Entry {
    /// The gap between value and bound, relative to the value.
    pub fn gap(&self) -> Option<f64> {
        let (value, bound) = (self.value()?, self.bound?);
        (value != 0.0).then(|| ((value - bound) / value).abs())
    }

    /// The objective in its own unit, if the plan is valid.
    pub fn value(&self) -> Option<f64> {
        self.score.as_ref().filter(|score| score.is_valid()).map(|score| score.value)
    }

    /// By how much the planner's time per sample differs from the simulated one, relative to that: below 0 it promises
    /// too much. `None` where the objective is no time per sample.
    pub fn prediction_error(&self) -> Option<f64> {
        let score = self.score.as_ref().filter(|score| score.is_valid())?;
        if !matches!(score.measure, Measure::TimePerSample | Measure::MaxLoad) {
            return None;
        }
        let simulated = 1.0 / self.played.as_ref()?.samples_per_s;
        Some(score.slowest_s / simulated - 1.0)
    }
}

/// Runs one planner with its default options and plays its plan.
pub fn planned(
    planner: &'static dyn Planner,
    workload: &Arc<Workload>,
    limits: &Limits,
    schedule: Schedule,
    search: &Search,
) -> Entry {
    let info = planner.info();
    let problem =
        Problem { workload: Arc::clone(workload), limits: *limits, options: Options::defaults(planner.options()) };
    let entry = Entry {
        id: info.id.into(),
        name: info.name.into(),
        status: None,
        plan: None,
        score: None,
        bound: None,
        played: None,
        seconds: None,
        remarks: vec![],
    };
    let (outcome, score) = planner::run(planner, &problem, search);
    let Outcome { status, plan, lower_bound, infeasible, notes, .. } = outcome;
    let played = plan.as_ref().zip(score.as_ref()).map(|(plan, _)| play(workload, limits, plan, schedule));
    Entry {
        status: Some(status),
        plan,
        score,
        bound: lower_bound,
        played,
        seconds: Some(search.elapsed().as_secs_f64()),
        remarks: infeasible.map(|story| story.explanation).into_iter().chain(notes).collect(),
        ..entry
    }
}

/// Scores and plays a plan that is already there.
pub fn given(id: &str, workload: &Workload, limits: &Limits, plan: Plan, schedule: Schedule) -> Entry {
    let score = check(workload, limits, &plan);
    let played = score.is_valid().then(|| play(workload, limits, &plan, schedule));
    Entry {
        id: id.into(),
        name: id.into(),
        status: None,
        remarks: score.violations.iter().map(|violation| format!("not valid: {violation}")).collect(),
        plan: Some(plan),
        score: Some(score),
        bound: None,
        played,
        seconds: None,
    }
}

/// Plays one batch of a valid plan.
pub(super) fn play(workload: &Workload, limits: &Limits, plan: &Plan, schedule: Schedule) -> Played {
    let pipeline = Pipeline::from_plan(workload, limits, plan, &Settings::default());
    let schedule = pipeline.schedule(schedule);
    let timeline = simulate::simulate(&pipeline, schedule);
    let peak_memory_bytes = timeline.peak_memory();
    let Timeline { iteration_s, samples_per_s, bubble, .. } = timeline;
    Played { schedule, iteration_s, samples_per_s, bubble, peak_memory_bytes, notes: pipeline.notes }
}

//! Comparison of many planners' plans, and of plans from files, in one simulator.
//!
//! Every planner optimises its own model. The simulator runs one iteration of each plan under one schedule, so the
//! plans become comparable. If an objective is a time per sample, its difference from the simulated time is the
//! planner's prediction error.

use std::time::Duration;

use crate::{
    prediction_gap::times_s,
    run::{Run, Simulation},
};
use plantui_core::{
    cluster::Limits,
    family::check,
    plan::{Measure, Plan, Score},
    search::Search,
    simulate::{Pipeline, Schedule, Setup, Timeline},
    workload::Workload,
};
use plantui_planners::{Fault, Outcome, Planner, PlannerInfo, Problem, REPORT, Status};

/// Default time per planner: an anytime planner would never end.
pub const TIME_FOR_EACH: Duration = Duration::from_secs(10);

/// Simulated figures of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedFigures {
    /// Simulated schedule: the requested one, unless the plan fixes it.
    pub schedule: Schedule,
    /// Iteration time, seconds.
    pub iteration_s: f64,
    /// Samples per second; microbatches if the workload does not state their size.
    pub samples_per_s: f64,
    /// Idle share of device time, 0 to 1.
    pub idle: f64,
    /// Peak memory over all devices, bytes.
    pub peak_memory_bytes: f64,
    /// Assumptions of the simulator.
    pub notes: Vec<String>,
}

/// Row of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedPlan {
    /// Id of the planner, or file of the plan.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Status of the run; `None` for a plan from a file, or if the planner failed.
    pub status: Option<Status>,
    /// Plan, if there is one.
    pub plan: Option<Plan>,
    /// Independent check of the plan.
    pub score: Option<Score>,
    /// Proven bound on the objective.
    pub bound: Option<f64>,
    /// Plans that the bound covers, if not all.
    pub proven_among: Option<String>,
    /// Memory limit per device that the plan was made under, bytes. Memory is shown in its unit.
    pub memory_limit_bytes: f64,
    /// Simulated figures, if the plan is valid.
    pub simulated: Option<SimulatedFigures>,
    /// Wall-clock seconds of planning; `None` for a plan from a file.
    pub seconds: Option<f64>,
    /// Reasons for a missing plan, and assumptions of the result.
    pub remarks: Vec<String>,
    /// Bug of the planner; there is no plan then.
    pub fault: Option<Fault>,
}

impl ComparedPlan {
    /// The same with the result of its simulation.
    fn simulated(mut self, simulated: Option<Result<SimulatedFigures, String>>) -> Self {
        match simulated {
            Some(Ok(simulated)) => self.simulated = Some(simulated),
            Some(Err(given_up)) => self.remarks.push(given_up),
            None => {}
        }
        self
    }

    /// True if a single sample was simulated, so its time is not an iteration time.
    pub fn runs_alone(&self) -> bool {
        self.simulated.as_ref().is_some_and(|simulated| simulated.schedule == Schedule::SingleSample)
    }

    /// Gap between value and bound, relative to the value.
    pub fn gap(&self) -> Option<f64> {
        let (value, bound) = (self.value()?, self.bound?);
        (value != 0.0).then(|| ((value - bound) / value).abs())
    }

    /// Objective in its own unit, if the plan is valid.
    pub fn value(&self) -> Option<f64> {
        self.score.as_ref().filter(|score| score.is_valid()).map(|score| score.value)
    }

    /// Relative difference of the planner's time from the simulated one; negative if the planner is too optimistic.
    /// `None` if the objective is not a time.
    pub fn prediction_error(&self) -> Option<f64> {
        let score = self.score.as_ref().filter(|score| score.is_valid())?;
        let simulated = self.simulated.as_ref()?;
        let (promised, simulated) = times_s(score, simulated.iteration_s, simulated.samples_per_s)?;
        Some(promised / simulated - 1.0)
    }
}

/// Id of the reference planner: it minimises the simulated iteration itself.
const REFERENCE: &str = "joint";

/// Iteration time of the reference plan in seconds, if it is among the entries.
pub fn reference_s(entries: &[ComparedPlan]) -> Option<f64> {
    let found = entries.iter().find(|entry| entry.id == REFERENCE)?;
    found.simulated.as_ref().map(|simulated| simulated.iteration_s).filter(|&seconds| seconds > 0.0)
}

impl ComparedPlan {
    /// Relative difference of the simulated iteration time from the reference.
    pub fn against(&self, reference_s: Option<f64>) -> Option<f64> {
        let own = self.simulated.as_ref().map(|simulated| simulated.iteration_s).filter(|&seconds| seconds > 0.0)?;
        // A single sample is not an iteration.
        let batch = !self.score.as_ref().is_some_and(|score| matches!(score.measure, Measure::Latency { .. }));
        reference_s.filter(|_| batch).map(|reference| own / reference - 1.0)
    }
}

impl SimulatedFigures {
    /// Simulates a valid plan, unless the search ends first.
    ///
    /// # Errors
    /// Reason why the simulation was given up, as a sentence.
    pub fn within(
        workload: &Workload,
        limits: &Limits,
        plan: &Plan,
        setup: impl Into<Setup>,
        search: &Search,
    ) -> Result<Self, String> {
        let simulation = Simulation::within(workload, limits, plan, setup, search)?;
        Ok(SimulatedFigures::of(&simulation.pipeline, simulation.schedule, &simulation.timeline))
    }

    /// True if anything was simulated; a batch that is too long for its settings is not.
    pub fn is_there(&self) -> bool {
        self.iteration_s > 0.0
    }

    /// Figures of a plan that is already simulated.
    pub fn of(pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline) -> Self {
        SimulatedFigures {
            schedule: pipeline.schedule(schedule),
            iteration_s: timeline.iteration_s,
            samples_per_s: timeline.samples_per_s,
            idle: timeline.idle,
            peak_memory_bytes: timeline.peak_memory(),
            notes: pipeline.notes.clone(),
        }
    }
}

/// Runs one planner and simulates its plan under the search that `then` derives from `search`. A planner that fails
/// gets a row with the error.
pub fn planned(
    planner: &'static dyn Planner,
    problem: Problem,
    setup: impl Into<Setup>,
    search: &Search,
    then: impl FnOnce(&Search) -> Search,
) -> ComparedPlan {
    let run = match Run::new(planner, problem, search) {
        Ok(run) => run,
        Err(fault) => return failed(planner.info(), fault, search.elapsed().as_secs_f64()),
    };
    let Problem { workload, limits, .. } = &run.problem;
    let simulated =
        run.outcome.plan.as_ref().map(|plan| SimulatedFigures::within(workload, limits, plan, setup, &then(search)));
    line(planner.info(), (&run.outcome, run.score.as_ref()), limits, run.seconds, None).simulated(simulated)
}

/// Row of a finished run.
pub fn line(
    planner: &PlannerInfo,
    (outcome, score): (&Outcome, Option<&Score>),
    limits: &Limits,
    seconds: f64,
    simulated: Option<SimulatedFigures>,
) -> ComparedPlan {
    let mut entry = ComparedPlan {
        id: planner.id.into(),
        name: planner.name.into(),
        status: Some(outcome.status),
        plan: outcome.plan.clone(),
        score: score.cloned(),
        bound: outcome.lower_bound,
        proven_among: outcome.proven_among.clone(),
        memory_limit_bytes: limits.memory_limit(),
        simulated,
        seconds: Some(seconds),
        remarks: outcome.infeasible.iter().map(|story| story.explanation.clone()).collect(),
        fault: None,
    };
    let plans = entry.proven_among.as_ref().filter(|_| entry.gap().is_some());
    let among = plans.map(|plans| format!("its gap* is to the best among {plans}"));
    entry.remarks.extend(among.into_iter().chain(outcome.notes.iter().cloned()));
    entry
}

/// Gives every plan the strongest bound that another planner proved for the same objective, if both proofs cover all
/// plans. The entries are of the same workload and limits. `O(plans²)`.
pub fn share_bounds(entries: &mut [&mut ComparedPlan]) {
    let proofs: Vec<(Measure, f64, String)> = entries
        .iter()
        .filter(|entry| entry.proven_among.is_none() && entry.value().is_some())
        .filter_map(|entry| Some((entry.score.as_ref()?.measure, entry.bound?, entry.name.clone())))
        .collect();
    for entry in entries {
        let (Some(measure), Some(own), None) =
            (entry.score.as_ref().map(|s| s.measure), entry.bound, &entry.proven_among)
        else {
            continue;
        };
        let tighter = |a: f64, b: f64| if measure.larger_is_better() { a < b } else { a > b };
        let same = proofs.iter().filter(|(of, ..)| *of == measure);
        let strongest = same.reduce(|best, next| if tighter(next.1, best.1) { next } else { best });
        if let Some((_, bound, name)) = strongest.filter(|(_, bound, _)| tighter(*bound, own)) {
            entry.bound = Some(*bound);
            entry.remarks.push(format!("its gap is to the bound that {name} proved"));
        }
    }
}

/// Row of a planner that failed.
fn failed(planner: &PlannerInfo, fault: Fault, seconds: f64) -> ComparedPlan {
    ComparedPlan {
        id: planner.id.into(),
        name: planner.name.into(),
        status: None,
        plan: None,
        score: None,
        bound: None,
        proven_among: None,
        memory_limit_bytes: f64::INFINITY,
        simulated: None,
        seconds: Some(seconds),
        remarks: vec![format!("a bug of plantui: {fault}; {REPORT}")],
        fault: Some(fault),
    }
}

/// Scores and simulates an existing plan, unless the search ends first.
pub fn existing_plan(
    id: &str,
    workload: &Workload,
    limits: &Limits,
    plan: Plan,
    setup: impl Into<Setup>,
    search: &Search,
) -> ComparedPlan {
    let score = check(workload, limits, &plan);
    let simulated = score.is_valid().then(|| SimulatedFigures::within(workload, limits, &plan, setup, search));
    let entry = ComparedPlan {
        id: id.into(),
        name: id.into(),
        status: None,
        remarks: score.violations.iter().map(|violation| format!("not valid: {violation}")).collect(),
        plan: Some(plan),
        score: Some(score),
        bound: None,
        proven_among: None,
        memory_limit_bytes: limits.memory_limit(),
        simulated: None,
        seconds: None,
        fault: None,
    };
    entry.simulated(simulated)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use plantui_core::{
        cluster::{GivenLimits, LimitKind},
        family, workload,
    };
    use plantui_planners::{Options, liar::Liar};

    fn problem(planner: &dyn Planner, overrides: &GivenLimits) -> Problem {
        let workload = Arc::new(workload::builtin());
        let limits = family::resolve(&workload, overrides).unwrap();
        Problem { workload, limits, options: Options::defaults(planner.options()) }
    }

    #[test]
    fn a_planner_that_fails_has_a_line_that_says_so() {
        let setup = Schedule::OneForwardOneBackward;
        let asked = |planner| problem(planner, &GivenLimits::default());
        let entry = planned(&Liar::Claims, asked(&Liar::Claims), setup, &Search::default(), Search::clone);
        assert!(matches!(entry.fault, Some(Fault::Claim { planner: "liar", .. })));
        assert_eq!((entry.status, entry.value(), &entry.plan), (None, None, &None));
        assert!(entry.remarks[0].contains("claims") && entry.remarks[0].contains(REPORT), "{:?}", entry.remarks);
        let piper = plantui_planners::find("piper").unwrap();
        let other = planned(piper, asked(piper), setup, &Search::default(), Search::clone);
        assert!(other.fault.is_none() && other.value().is_some());
    }

    #[test]
    fn a_bound_of_one_planner_holds_for_the_plans_of_all() {
        let entry = |name: &str, value: f64, bound: f64, among: Option<&str>| ComparedPlan {
            name: name.into(),
            fault: None,
            status: Some(Status::Feasible),
            score: Some(Score { value, measure: Measure::MaxLoad, ..Score::default() }),
            bound: Some(bound),
            proven_among: among.map(str::to_string),
            ..failed(
                plantui_planners::find("piper").unwrap().info(),
                Fault::Panic { planner: "piper", message: String::new() },
                0.0,
            )
        };
        let mut entries =
            [entry("exact", 4.0, 4.0, None), entry("loose", 4.0, 2.0, None), entry("chain", 5.0, 4.5, Some("chains"))];
        share_bounds(&mut entries.each_mut());
        assert_eq!(entries.each_ref().map(|entry| entry.bound), [Some(4.0), Some(4.0), Some(4.5)]);
        assert_eq!(entries[1].gap(), Some(0.0));
        assert!(entries[1].remarks.iter().any(|remark| remark.ends_with("that exact proved")));
        assert!(entries[0].remarks.len() == entries[2].remarks.len());
    }

    #[test]
    fn a_plan_that_was_not_simulated_stays_on_the_table() {
        let planner = plantui_planners::find("equal-partition").unwrap();
        let asked = problem(planner, &GivenLimits::default().with(LimitKind::Microbatches, 720_720));
        let (workload, limits) = (asked.workload.clone(), asked.limits.clone());
        let schedule = Schedule::OneForwardOneBackward;
        let stopped = Search::default();
        stopped.cancel();
        let whole = Search::default();
        let entry = planned(planner, asked, schedule, &whole, |_| stopped.clone());
        assert!(entry.value().is_some() && entry.simulated.is_none() && entry.prediction_error().is_none());
        assert!(entry.remarks.iter().any(|remark| remark.starts_with("not simulated: stopped")), "{:?}", entry.remarks);
        let plan = entry.plan.unwrap();
        let again = existing_plan("file", &workload, &limits, plan.clone(), schedule, &stopped);
        assert!(again.value().is_some() && again.simulated.is_none());
        assert!(existing_plan("file", &workload, &limits, plan, schedule, &whole).simulated.is_some());
    }
}

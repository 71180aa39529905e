//! Explanation of a plan: its limits, possible improvements and alternatives, each backed by a re-plan.
//!
//! A [`ExplainedPlan`] is a plan to explain. It raises [`ChangeQuery`]s, each the same problem with one [`Change`], in
//! the typical order of importance. [`ExplainedPlan::replan`] plans one and compares it with the base. [`Explanation`]
//! collects the answers:
//!
//! * *what binds*: a limit removed (memory, links, the divisors of the microbatch count, missing tensor degrees) or
//!   doubled (devices). It binds if the plan improves, and the difference of both plans shows how: see [`Cause`];
//! * *what would help*: one limit or option moved to the next sensible value;
//! * *the next best*: alternatives under the same limits, and how much worse they are.
//!
//! The questions do not depend on the planner's name: they come from its limits, options and
//! [tunables](plantui_planners::Tunable). Each question is one re-plan, so the cost is about thirty times that of the
//! plan; a deadline per question bounds it. If a changed limit leaves the base plan valid and the re-plan finds nothing
//! better, the base plan is the answer. So a search that was cut short never makes more devices look worse.

mod answer;
mod bottleneck;
mod cause;
mod change;
mod question;

use plantui_core::{
    cluster::LimitKind,
    family,
    plan::{Measure, Plan, Score},
    simulate::{Pipeline, Timeline},
    workload::Workload,
};
use plantui_planners::{Outcome, Planner, Problem, Status};

use crate::pace::Pace;

pub use answer::{Certainty, Replan};
pub use bottleneck::{BusyLink, PlanBottleneck, TimeShare, stage_name};
pub use cause::{Cause, CauseKind};
pub use change::Change;
pub use question::{ChangeQuery, Topic};

/// Smaller relative differences count as none.
pub const NOTICEABLE: f64 = 5e-4;

/// Plan to explain, with its problem.
#[derive(Clone)]
pub struct ExplainedPlan {
    /// Planner of the plan.
    pub planner: &'static dyn Planner,
    /// Problem of the plan.
    pub problem: Problem,
    /// Status of the run.
    pub status: Status,
    /// Plans that the proof covers, if not all.
    pub proven_among: Option<String>,
    /// Plan to explain.
    pub plan: Plan,
    /// Independent score of the plan.
    pub score: Score,
    /// True if passes hide transfers in the simulated iteration that the plan minimises.
    pub hides_transfers: bool,
}

impl ExplainedPlan {
    /// Base of a planner's outcome; `None` without a valid plan.
    pub fn new(
        planner: &'static dyn Planner,
        problem: &Problem,
        outcome: &Outcome,
        score: Option<&Score>,
    ) -> Option<Self> {
        let score = score.filter(|score| score.is_valid())?.clone();
        let plan = outcome.plan.clone()?;
        let proven_among = outcome.proven_among.clone();
        let (problem, status) = (problem.clone(), outcome.status);
        Some(ExplainedPlan { planner, problem, status, proven_among, plan, score, hides_transfers: false })
    }

    /// Same base with what its simulated iteration tells.
    #[must_use]
    pub fn simulated(mut self, pipeline: &Pipeline, timeline: &Timeline) -> Self {
        let iteration = self.plan.measure == Measure::IterationTime;
        self.hides_transfers = iteration && Pace::of_timeline(self.plan.measure, pipeline, timeline).is_some();
        self
    }

    /// Value of the plan, in the unit of [`ExplainedPlan::show`].
    pub fn value(&self) -> f64 {
        answer::comparable_value(&self.score, &self.problem.limits)
    }

    /// Unit of values.
    pub fn unit(&self) -> &'static str {
        answer::unit(self.score.measure)
    }

    /// Value with its unit. Operators are shown in seconds, since a rate of operations may be the changed limit.
    pub fn show(&self, value: f64) -> String {
        answer::show(self.score.measure, value)
    }
}

/// Limits that apply to a planner's plans of a workload: its own, unless it converts the workload.
pub fn limits_of(planner: &dyn Planner, workload: &Workload) -> &'static [LimitKind] {
    if planner.is_native(workload) { planner.limits_for(workload) } else { family::of(workload).limits() }
}

/// Explanation of a plan.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// Answers in the order of arrival.
    answers: Vec<Replan>,
}

impl Explanation {
    /// Adds an answer.
    pub fn add(&mut self, answer: Replan) {
        self.answers.push(answer);
    }

    /// All answers in the order of arrival.
    pub fn answers(&self) -> &[Replan] {
        &self.answers
    }

    /// Causes that bind, the most costly first.
    pub fn causes(&self, base: &ExplainedPlan) -> Vec<Cause> {
        let all = &self.answers;
        let mut causes: Vec<Cause> = all.iter().filter_map(|answer| cause::cause(base, answer, all)).collect();
        causes.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        causes
    }

    /// Names of limits whose removal had no effect.
    pub fn free(&self, base: &ExplainedPlan) -> Vec<&'static str> {
        let asked = self.answers.iter().filter(|answer| answer.gain().is_some());
        asked
            .filter(|answer| cause::cause(base, answer, &self.answers).is_none())
            .filter_map(|answer| answer.question.topic.bound())
            .map(CauseKind::title)
            .collect()
    }

    /// Changes that help or hurt: moved limits, and options that give a better plan; the best first.
    pub fn help(&self) -> Vec<&Replan> {
        let better = |answer: &Replan| answer.gain().is_some_and(|gain| gain > NOTICEABLE);
        self.sorted(|answer| match answer.question.topic {
            Topic::Limit => true,
            Topic::Option => better(answer),
            Topic::Binds(_) | Topic::NextBest => false,
        })
    }

    /// Alternatives under the same limits, the best first.
    pub fn next_best(&self) -> Vec<&Replan> {
        let better = |answer: &Replan| answer.gain().is_some_and(|gain| gain > NOTICEABLE);
        self.sorted(|answer| match answer.question.topic {
            Topic::NextBest => true,
            Topic::Option => !better(answer),
            Topic::Binds(_) | Topic::Limit => false,
        })
    }

    fn sorted(&self, wanted: impl Fn(&Replan) -> bool) -> Vec<&Replan> {
        let mut rows: Vec<&Replan> = self.answers.iter().filter(|answer| wanted(answer)).collect();
        let key = |answer: &Replan| answer.gain().unwrap_or(f64::NEG_INFINITY);
        // Stable: equal answers keep the order of their questions.
        rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
        rows
    }
}

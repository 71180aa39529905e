//! A planner's result as the screen shows it, with everything it rests on.

use std::sync::Arc;

use super::names::Names;
use crate::{
    cluster::Limits,
    family::{
        self,
        describe::Flow,
        operators::usage::{self, OperatorUse},
    },
    plan::{Plan, Score},
    planner::{Options, Outcome, PlannerInfo, Problem, Status},
    study::links::{self, LinkLoad},
    workload::Workload,
};

/// What a shown plan is to its planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// What came of a run, or a plan without one.
    Done,
    /// The best so far of a search that goes on.
    BestSoFar {
        /// The search's job.
        job: u64,
    },
    /// Edited by hand.
    Edited,
}

/// A finished run.
#[derive(Debug, Clone)]
pub(super) struct ShownRun {
    /// Who planned.
    pub planner: &'static PlannerInfo,
    /// What was planned.
    pub workload: Arc<Workload>,
    /// Under which limits.
    pub limits: Limits,
    /// With which options.
    pub options: Options,
    /// How it ended.
    pub outcome: Outcome,
    /// What the stages of its plan are called.
    pub names: Names,
    /// What the plan is worth in its family's own figures, a line each.
    pub facts: Vec<String>,
    /// The same as single figures.
    pub figures: Vec<family::describe::Figure>,
    /// What its stages send one another.
    pub traffic: Vec<Flow>,
    /// What it puts on the links of its topology, the fullest first.
    pub links: Vec<LinkLoad>,
    /// How its operators use devices and links, where it splits operators.
    pub operators: Option<OperatorUse>,
    /// The plan as the independent check sees it.
    pub score: Option<Score>,
    /// Wall-clock seconds, checking included.
    pub seconds: f64,
    /// Whether there is more to come.
    pub standing: Standing,
}

impl ShownRun {
    /// Puts a run together.
    pub(super) fn new(
        planner: &'static PlannerInfo,
        problem: &Problem,
        outcome: Outcome,
        score: Option<Score>,
        seconds: f64,
    ) -> Self {
        let plan = outcome.plan.as_ref();
        ShownRun {
            planner,
            names: plan.map(|plan| Names::new(&problem.workload, &problem.limits, plan)).unwrap_or_default(),
            facts: plan
                .map(|plan| family::of(&problem.workload).plan_facts(&problem.workload, &problem.limits, plan))
                .unwrap_or_default(),
            figures: plan
                .map(|plan| family::of(&problem.workload).plan_figures(&problem.limits, plan))
                .unwrap_or_default(),
            traffic: plan.map(|plan| family::of(&problem.workload).flows(&problem.workload, plan)).unwrap_or_default(),
            links: plan.map(|plan| links::loads(&problem.workload, &problem.limits, plan)).unwrap_or_default(),
            operators: plan.and_then(|plan| usage::of(&problem.workload, &problem.limits, plan)),
            workload: problem.workload.clone(),
            limits: problem.limits.clone(),
            options: problem.options.clone(),
            outcome,
            score,
            seconds,
            standing: Standing::Done,
        }
    }

    /// A plan that no planner's run stands behind, such as a hand edit or a pinned plan: measured here, and shown whether
    /// it keeps the rules or not; what it would be worth is told either way. `O(nodes + edges)`.
    pub(super) fn of_plan(planner: &'static PlannerInfo, problem: &Problem, plan: Plan) -> Self {
        let score = family::check(&problem.workload, &problem.limits, &plan);
        let status = if score.is_valid() { Status::Feasible } else { Status::Infeasible };
        let mut outcome = Outcome::new(status);
        outcome.objective = Some(score.value).filter(|value| value.is_finite() && *value > 0.0);
        outcome.plan = Some(plan);
        ShownRun::new(planner, problem, outcome, Some(score), 0.0)
    }

    /// Whether there is a plan and it keeps every rule.
    pub(super) fn is_valid(&self) -> bool {
        self.plan().is_some_and(|(_, score)| score.is_valid())
    }

    /// Plan and score, where there are both.
    pub(super) fn plan(&self) -> Option<(&Plan, &Score)> {
        self.outcome.plan.as_ref().zip(self.score.as_ref())
    }
}

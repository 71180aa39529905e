//! A planner's result as the screen shows it, with everything it rests on.

use std::sync::Arc;

use super::{
    names::Names,
    traffic::{self, Flow},
};
use crate::{
    cluster::Limits,
    plan::{Plan, Score, check},
    planner::{Options, Outcome, PlannerInfo, Problem, Search, Status},
    workload::Workload,
};

/// A finished run.
#[derive(Debug, Clone)]
pub(super) struct Shown {
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
    /// What its stages send one another.
    pub traffic: Vec<Flow>,
    /// The plan as the independent check sees it.
    pub score: Option<Score>,
    /// Wall-clock seconds, checking included.
    pub seconds: f64,
}

impl Shown {
    /// Puts a run together.
    pub(super) fn new(
        planner: &'static PlannerInfo,
        problem: &Problem,
        outcome: Outcome,
        score: Option<Score>,
        seconds: f64,
    ) -> Self {
        let plan = outcome.plan.as_ref();
        Shown {
            planner,
            names: plan.map(|plan| Names::new(&problem.workload, &problem.limits, plan)).unwrap_or_default(),
            traffic: plan.map(|plan| traffic::of(&problem.workload, plan)).unwrap_or_default(),
            workload: problem.workload.clone(),
            limits: problem.limits,
            options: problem.options.clone(),
            outcome,
            score,
            seconds,
        }
    }

    /// Plan and score, where there are both.
    pub(super) fn plan(&self) -> Option<(&Plan, &Score)> {
        self.outcome.plan.as_ref().zip(self.score.as_ref())
    }
}

/// A search that was cancelled before it could hand over its plan still published the best it had: that is kept.
pub(super) fn keep_incumbent(problem: &Problem, search: &Search, outcome: &mut Outcome, score: &mut Option<Score>) {
    if outcome.status != Status::Cancelled || outcome.plan.is_some() {
        return;
    }
    let Some(incumbent) = search.incumbent() else { return };
    let measured = check::check(&problem.workload, &problem.limits, &incumbent.plan);
    if measured.is_valid() {
        outcome.objective = Some(measured.value);
        outcome.lower_bound = outcome.lower_bound.or(search.progress().bound);
        outcome.plan = Some(incumbent.plan.clone());
        *score = Some(measured);
    }
}

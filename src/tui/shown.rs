//! Result of a planner as the screen shows it, with all its inputs.

use std::sync::Arc;

use super::{names::Names, paint::words::memory_title};
use crate::{
    cluster::Limits,
    family::{
        self,
        describe::StageTraffic,
        operators::usage::{self, OperatorUse},
    },
    plan::{Plan, Score, Stage},
    planner::{Options, Outcome, PlannerInfo, Problem, Status},
    study::{
        improve,
        links::{self, LinkLoad},
    },
    workload::Workload,
};

/// Standing of a shown plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Result of a run, or a plan without one.
    Done,
    /// Incumbent of a running search.
    BestSoFar {
        /// Job of the search.
        job: u64,
    },
    /// Edited by hand.
    Edited,
}

/// Finished run.
#[derive(Debug, Clone)]
pub(super) struct ShownRun {
    /// The planner.
    pub planner: &'static PlannerInfo,
    /// Its workload.
    pub workload: Arc<Workload>,
    /// Limits of the run.
    pub limits: Limits,
    /// Options of the run.
    pub options: Options,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Names of the stages of its plan.
    pub names: Names,
    /// Places of the stages in the network, from 0 to 1: that of the first layer of each.
    pub places: Vec<f64>,
    /// Iteration time of the layout by rule of thumb, for a model to be trained, seconds.
    pub rule_s: Option<f64>,
    /// Figures of the plan's family, one line each.
    pub facts: Vec<String>,
    /// The same as separate figures.
    pub figures: Vec<family::describe::FamilyFigure>,
    /// Traffic between its stages.
    pub traffic: Vec<StageTraffic>,
    /// Load of its topology's links, fullest first.
    pub links: Vec<LinkLoad>,
    /// Use of devices and links by its operators, if it splits operators.
    pub operators: Option<OperatorUse>,
    /// Score of the independent check.
    pub score: Option<Score>,
    /// Wall-clock time including the check, seconds.
    pub seconds: f64,
    /// Standing of the plan.
    pub standing: Standing,
}

impl ShownRun {
    /// Assembles a run.
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
            places: plan.map(|plan| places(&problem.workload, plan)).unwrap_or_default(),
            rule_s: plan.and_then(|_| rule_s(problem)),
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

    /// Run of a plan without a planner, such as a hand edit or a pinned plan. The plan is measured here, and shown with
    /// its objective even if it violates a limit. `O(nodes + edges)`.
    pub(super) fn of_plan(planner: &'static PlannerInfo, problem: &Problem, plan: Plan) -> Self {
        let score = family::check(&problem.workload, &problem.limits, &plan);
        let status = if score.is_valid() { Status::Feasible } else { Status::Infeasible };
        let mut outcome = Outcome::new(status);
        outcome.objective = Some(score.value).filter(|value| value.is_finite() && *value > 0.0);
        outcome.plan = Some(plan);
        ShownRun::new(planner, problem, outcome, Some(score), 0.0)
    }

    /// Bytes that a device of a stage may hold; infinite if unlimited.
    pub(super) fn memory_limit(&self, stage: usize) -> f64 {
        let stage = self.outcome.plan.as_ref().and_then(|plan| plan.stages.get(stage));
        stage.map_or(self.limits.memory_limit(), |stage| family::of(&self.workload).memory_limit(&self.limits, stage))
    }

    /// The same for each stage of the plan.
    pub(super) fn memory_limits(&self) -> Vec<f64> {
        (0..self.outcome.plan.as_ref().map_or(0, |plan| plan.stages.len()))
            .map(|stage| self.memory_limit(stage))
            .collect()
    }

    /// Limit on the fullest of these stages, by their bytes, and whether one of them exceeds its own.
    pub(super) fn fullest_limit(&self, bytes: &[f64]) -> (f64, bool) {
        let fullest = (0..bytes.len()).max_by(|&a, &b| bytes[a].total_cmp(&bytes[b])).unwrap_or(0);
        let over = bytes.iter().enumerate().any(|(stage, &held)| held > self.memory_limit(stage) * (1.0 + 1e-9));
        (self.memory_limit(fullest), over)
    }

    /// Title over bars of memory.
    pub(super) fn memory_title(&self) -> String {
        let stages = self.outcome.plan.as_ref().map_or(0, |plan| plan.stages.len());
        let first = self.memory_limit(0);
        match (1..stages).all(|stage| self.memory_limit(stage) == first) {
            true => memory_title(first),
            false => "memory, of its kind".into(),
        }
    }

    /// True if there is a plan without violations.
    pub(super) fn is_valid(&self) -> bool {
        self.plan().is_some_and(|(_, score)| score.is_valid())
    }

    /// Plan and score, if both exist.
    pub(super) fn plan(&self) -> Option<(&Plan, &Score)> {
        self.outcome.plan.as_ref().zip(self.score.as_ref())
    }
}

/// Iteration time by rule of thumb, seconds.
fn rule_s(problem: &Problem) -> Option<f64> {
    let (profile, limits) = (problem.workload.training()?, &problem.limits);
    let found = improve::rule_of_thumb(profile, limits.devices, limits.samples(), limits.memory_limit());
    found.map(|(_, estimate)| estimate.simulated_s)
}

/// Places of the stages of a plan. Stages without an order of their own, such as virtual ones, are evenly apart.
fn places(workload: &Workload, plan: &Plan) -> Vec<f64> {
    let mut order = vec![0.0; workload.nodes.len()];
    for (at, node) in workload.topological_order().enumerate() {
        order[node.index()] = at as f64 / workload.nodes.len() as f64;
    }
    let first = |stage: &Stage| stage.nodes.iter().map(|node| order[node.index()]).fold(1.0, f64::min);
    let places: Vec<f64> = plan.stages.iter().map(first).collect();
    let chunks = plan.configuration().is_some_and(|configuration| configuration.layout.virtual_stages > 1);
    if chunks || places.windows(2).any(|pair| pair[1] <= pair[0]) {
        return (0..plan.stages.len()).map(|stage| stage as f64 / plan.stages.len() as f64).collect();
    }
    places
}

//! Nearest plan that a training engine can run, for an exporter whose engine cannot run the given one.
//!
//! Exporters make no plans: they are handed [`plans`] and call it if they need one. Cost: one or two runs of the planner
//! that plans for engines.

use std::{sync::Arc, time::Duration};

use plantui_core::{
    cluster::Limits,
    plan::{Plan, runner::Runner},
    search::Search,
    simulate::Schedule,
    workload::Workload,
};
use plantui_planners::{Options, Problem, for_engines};

use crate::run;

/// Largest number of stages that a planner takes.
const MOST_STAGES: usize = 1000;

/// Request for plans that an engine can run.
#[derive(Debug, Clone, Copy)]
pub struct NearestRequest<'a> {
    /// Workload of the plan.
    pub workload: &'a Workload,
    /// Limits that plans must keep.
    pub limits: &'a Limits,
    /// Plan that the engine cannot run. The answer has its measure and, where the engine runs it, its schedule.
    pub plan: &'a Plan,
    /// Engine.
    pub runner: Runner,
    /// True if one stage is not enough, because the schedule interleaves stages.
    pub several_stages: bool,
    /// Time limit of the search; `None`: no limit.
    pub deadline: Option<Duration>,
}

/// Plans that the engine can run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NearestPlans {
    /// Plans with the least simulated iteration time; empty if there is none.
    pub plans: Vec<Plan>,
    /// True if the deadline ended the search.
    pub stopped: bool,
}

/// Function that finds the nearest plans.
pub type Finder = fn(&NearestRequest<'_>) -> NearestPlans;

/// Plans with the least simulated iteration time among those that the engine runs: any number of stages, and if that
/// gives one stage where several are needed, as many as the given plan has.
pub fn plans(wanted: &NearestRequest<'_>) -> NearestPlans {
    let NearestRequest { workload, limits, plan, runner, .. } = *wanted;
    let Some(planner) = for_engines(workload) else { return NearestPlans::default() };
    let search = Search::new(wanted.deadline, 0);
    let own = plan.execution.unwrap_or_default().schedule;
    let own = if runner.schedules().contains(&own) { own } else { Schedule::OneForwardOneBackward };
    let workload = Arc::new(workload.clone());
    let best = |stages: Option<usize>| {
        let settings = [
            Some(format!("engine={}", runner.id())),
            Some("space=engine".into()),
            Some(format!("schedule={}", own.id())),
            stages.map(|stages| format!("stages={stages}")),
        ];
        let settings: Vec<String> = settings.into_iter().flatten().collect();
        let options = Options::parse(planner.info().id, planner.options(), settings.iter().map(String::as_str)).ok()?;
        let problem = Problem { workload: Arc::clone(&workload), limits: limits.clone(), options };
        let found = search.quiet();
        let (outcome, _) = run::plan(planner, &problem, &found).ok()?;
        let planned = outcome.plan.or_else(|| found.incumbent().map(|best| best.plan.clone()))?;
        Some(Plan { measure: plan.measure, ..planned })
    };
    let mut plans: Vec<Plan> = best(None).into_iter().collect();
    if wanted.several_stages && plans.iter().all(|best| best.stages.len() < 2) {
        plans.extend(best(Some(plan.stages.len().clamp(2, MOST_STAGES))));
    }
    NearestPlans { plans, stopped: search.cancelled() }
}

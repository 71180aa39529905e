//! Comparison with published planners' plans in the same simulator, and the reasons for the differences.
//!
//! A planner that minimises the simulated iteration is compared with planners that minimise something else. Each plans
//! the same problem with its own defaults, its plan is simulated, and the parts of both iterations ([`Losses`]) are
//! compared. The parts of an iteration add up to it, so their differences explain the whole difference. Costs one
//! re-plan for each planner that supports the workload, and at most eight simulated iterations each.

use std::time::Duration;

use super::{
    explain::ExplainedPlan,
    losses::{Losses, differences_text},
};
use crate::run::Run;
use plantui_core::{
    family,
    plan::{Measure, Schedule},
    search::Search,
    simulate::Setup,
    units,
};
use plantui_planners::{self as planner, Options, PlannerInfo, Problem};

/// Published planner's plan beside the own plan.
#[derive(Debug, Clone)]
pub struct Rival {
    /// Planner of the plan.
    pub planner: &'static PlannerInfo,
    /// Schedule of the simulation.
    pub schedule: Schedule,
    /// Simulated iteration time, seconds.
    pub batch_s: f64,
    /// Relative excess over the own iteration time.
    pub difference: f64,
    /// Parts of the iteration that differ, with the excess of the published plan in seconds, the largest first.
    pub parts: Vec<(&'static str, f64)>,
    /// Number of stages.
    pub stages: usize,
    /// Devices in use.
    pub devices: u32,
}

impl Rival {
    /// Planner, time and largest cause: `Piper 42.05 s (+11.3%: uneven replicas +3.62 s)`.
    pub fn in_short(&self) -> String {
        let sign = if self.difference < 0.0 { "" } else { "+" };
        let most = self.parts.iter().find(|part| (part.1 < 0.0) == (self.difference < 0.0));
        let why = most.map(|part| format!(": {}", differences_text(std::slice::from_ref(part)))).unwrap_or_default();
        let (name, batch) = (self.planner.name, units::seconds(self.batch_s));
        format!("{name} {batch} ({sign}{}{why})", units::percent(self.difference))
    }

    /// Differences in words: `uneven replicas +3.62 s, transfers -120.0 ms`; empty without differences.
    pub fn summary(&self) -> String {
        differences_text(&self.parts)
    }
}

/// Planners to compare with: those that natively support the workload and do not minimise the iteration. Empty unless
/// the own planner minimises a simulated iteration.
pub fn rival_planners(own: &ExplainedPlan) -> Vec<&'static dyn planner::Planner> {
    let workload = &own.problem.workload;
    if !family::of(workload).simulates(own.plan.measure) {
        return vec![];
    }
    let other = |planner: &&dyn planner::Planner| {
        let measures = planner.measure(workload, &Options::defaults(planner.options()));
        planner.is_native(workload) && planner.stands_alone() && measures != Measure::IterationTime
    };
    planner::all().iter().copied().filter(other).collect()
}

/// Plan of another planner, found within `each`, beside this one with its losses `lost`. `None` if there is no plan, or
/// it could not be simulated.
pub fn rival(
    planner: &'static dyn planner::Planner,
    (own, lost): (&ExplainedPlan, &Losses),
    each: Duration,
    search: &Search,
) -> Option<Rival> {
    let problem = Problem { options: Options::defaults(planner.options()), ..own.problem.clone() };
    let part = search.part(Some(each));
    let mut run = Run::new(planner, problem, &part).ok()?;
    run.simulate(Setup::default(), &part.follow(each));
    let (plan, simulation) = (run.outcome.plan.as_ref()?, run.simulation.as_ref()?);
    let batch_s = simulation.timeline.iteration_s;
    let theirs = Losses::of_simulation(simulation)?;
    let parts = theirs.beyond(lost);
    Some(Rival {
        planner: planner.info(),
        schedule: simulation.schedule,
        batch_s,
        difference: batch_s / lost.iteration_s - 1.0,
        parts,
        stages: plan.stages.len(),
        devices: plan.devices_used(),
    })
}

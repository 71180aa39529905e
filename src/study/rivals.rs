//! What published planners' plans take in the same simulator, and why more or less.
//!
//! A planner that minimises a simulated batch is held against those that minimise something else: each plans the same problem
//! with its own defaults, its plan is simulated, and the parts of both batches ([`Losses`]) are set against each other. The
//! parts of a batch add up to it, so their differences add up to the difference: nothing is left unexplained. As many re-plans
//! as there are planners made for the workload, and at most eight simulated batches for each.

use std::time::Duration;

use super::{
    explain::Base,
    losses::{Losses, told_parts},
};
use crate::{
    family,
    plan::{Measure, Schedule},
    planner::{self, Options, PlannerInfo, Problem, Search},
    run::Run,
    simulate::Setup,
    units,
};

/// A published planner's plan beside one's own.
#[derive(Debug, Clone)]
pub struct Rival {
    /// Who made it.
    pub planner: &'static PlannerInfo,
    /// The schedule that its batch was simulated under.
    pub schedule: Schedule,
    /// Seconds of its simulated batch.
    pub batch_s: f64,
    /// By how much that is longer than one's own, relative.
    pub difference: f64,
    /// What differs, and by how many seconds it takes longer there, the most first.
    pub parts: Vec<(&'static str, f64)>,
    /// Its stages, and the devices that they use.
    pub stages: usize,
    /// Devices in use.
    pub devices: u32,
}

impl Rival {
    /// Who, how long, and what costs the most of it: `Piper 42.05 s (+11.3%: uneven replicas +3.62 s)`.
    pub fn in_short(&self) -> String {
        let sign = if self.difference < 0.0 { "" } else { "+" };
        let most = self.parts.iter().find(|part| (part.1 < 0.0) == (self.difference < 0.0));
        let why = most.map(|part| format!(": {}", told_parts(std::slice::from_ref(part)))).unwrap_or_default();
        let (name, batch) = (self.planner.name, units::seconds(self.batch_s));
        format!("{name} {batch} ({sign}{}{why})", units::percent(self.difference))
    }

    /// What differs, in words: `uneven replicas +3.62 s, transfers -120.0 ms`; empty where nothing does.
    pub fn told(&self) -> String {
        told_parts(&self.parts)
    }
}

/// The planners whose plans are asked for beside this one: those made for its workload, where its planner minimises a
/// simulated batch of a pipeline and they do not.
pub fn asked(own: &Base) -> Vec<&'static dyn planner::Planner> {
    let workload = &own.problem.workload;
    if !family::of(workload).simulates(own.plan.measure) {
        return vec![];
    }
    let other = |planner: &&dyn planner::Planner| {
        let measures = planner.measure(workload, &Options::defaults(planner.options()));
        planner.is_native(workload) && !planner.asks_others() && measures != Measure::IterationTime
    };
    planner::all().iter().copied().filter(other).collect()
}

/// A planner's plan beside this one, whose batch loses time where `lost` says, found within `each`; `None` where there is
/// none, or it could not be simulated.
pub fn rival(
    planner: &'static dyn planner::Planner,
    (own, lost): (&Base, &Losses),
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
        difference: batch_s / lost.batch_s - 1.0,
        parts,
        stages: plan.stages.len(),
        devices: plan.devices_used(),
    })
}

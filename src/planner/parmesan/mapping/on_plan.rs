//! The mapping of a whole plan: from its stages to the demands of their parts, mapped, and the plan put on the devices found.

use super::{Consider, Cost, Demands, Instance, MapError, Mapping, MappingSettings, map};
use crate::{
    cluster::{Limits, topology::LinkRule},
    family,
    plan::{Plan, document::MappingPart},
    planner::Search,
    simulate::{Pipeline, Setup, length_unless},
    workload::{Workload, formats::Wired},
};

/// A plan on the devices of a topology.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// On those devices.
    pub plan: Plan,
    /// How it was mapped.
    pub mapping: Mapping,
    /// What the plan document says of it, with the simulated seconds of a batch.
    pub part: MappingPart,
    /// What the devices cost that the plan had before, and the simulated seconds of a batch on them, where the topology has
    /// such devices.
    pub before: Option<(Vec<usize>, Cost, Option<f64>)>,
}

/// Which devices a plan ends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Those that were found.
    Found,
    /// Those that were found, or those that it had, on whichever a batch is simulated to be faster.
    Faster,
}

/// Why a plan is not mapped.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Nothing says who talks to whom.
    #[error("the plan has no stages that a batch flows through, so nothing says who talks to whom")]
    NoStages,
    /// It cannot be mapped onto this topology.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// What the parts of a plan say to one another: as its family has it, else as its pipeline tells.
pub fn demands(workload: &Workload, limits: &Limits, plan: &Plan, pipeline: &Pipeline, bandwidth: f64) -> Demands {
    let nodes: Vec<usize> = plan.stages.iter().map(|stage| stage.nodes.len()).collect();
    let own = family::of(workload).demands(limits, plan);
    own.unwrap_or_else(|| Demands::of(pipeline, &nodes, bandwidth))
}

/// Maps a plan that keeps the rules of its family.
///
/// # Errors
/// [`PlanError`] if it has no stages, or the topology has no room for it.
pub fn map_plan(
    workload: &Workload,
    limits: &Limits,
    plan: &Plan,
    wired: &Wired,
    (consider, settings, keep): (Consider, &MappingSettings, Keep),
    search: &Search,
) -> Result<Mapped, PlanError> {
    let topology = &wired.topology;
    let setup = Setup::default().of(plan);
    let plain = Plan { topology: None, ..plan.clone() };
    let pipeline = family::pipeline(workload, limits, &plain, &setup.settings);
    if !pipeline.flows() {
        return Err(PlanError::NoStages);
    }
    let demands = demands(workload, limits, &plain, &pipeline, LinkRule::of(topology).any);
    let instance = Instance::new(topology, &demands, consider);
    let mut mapping = map(&instance, settings, search)?;
    // On the routes, under the schedule that the pipeline can run.
    let stopped = || search.cancelled();
    let simulated = |devices: &[usize]| {
        let routed = match pipeline.routed {
            // Its family has the routes in its durations.
            true => family::pipeline(workload, limits, &plan.clone().on(topology, devices), &setup.settings),
            false => pipeline.clone().on_unless(topology, devices, &stopped)?,
        };
        let schedule = routed.schedule(setup.schedule);
        length_unless(&routed, schedule, &stopped)
    };
    let before: Vec<usize> = plan.devices().map(|device| device as usize).collect();
    let known = before.len() == instance.workers() && before.iter().all(|&device| device < topology.devices());
    let before = known.then(|| (before.clone(), instance.cost(&before), simulated(&before)));
    let mut after = simulated(&mapping.devices);
    if let Some((devices, cost, Some(seconds))) = &before
        && keep == Keep::Faster
        && after.is_none_or(|after| *seconds <= after)
    {
        // A bottleneck that is shorter need not make the batch shorter.
        mapping.proved &= cost.seconds <= mapping.cost.seconds * (1.0 + 1e-9);
        (mapping.devices, mapping.cost, after) = (devices.clone(), *cost, Some(*seconds));
    }
    let part = MappingPart { iteration_s: after, file: wired.file.clone(), ..mapping.part(&instance) };
    Ok(Mapped { plan: plan.clone().on(topology, &mapping.devices), mapping, part, before })
}

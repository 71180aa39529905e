//! Maps a whole plan: derives the demands of its stages, maps them, and puts the plan on the devices found.

use super::{CommunicationKinds, Demands, MapError, Mapping, MappingCost, MappingInstance, MappingSettings, map};
use crate::{
    cluster::{Limits, topology::LinkRule},
    family,
    plan::{Plan, document::MappingPart},
    search::Search,
    simulate::{Pipeline, Setup, length_unless},
    workload::{Workload, formats::PlanTopology},
};

/// A plan on the devices of a topology.
#[derive(Debug, Clone)]
pub struct MappedPlan {
    /// The plan on these devices.
    pub plan: Plan,
    /// The mapping.
    pub mapping: Mapping,
    /// Mapping as in the plan document, with the simulated seconds of an iteration.
    pub part: MappingPart,
    /// Devices of the original plan, their cost, and the simulated seconds of an iteration on them; if the topology has
    /// these devices.
    pub before: Option<(Vec<usize>, MappingCost, Option<f64>)>,
}

/// Choice between the original devices and those found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingChoice {
    /// The devices found.
    Found,
    /// The original devices or those found, whichever has the shorter simulated iteration.
    Faster,
}

/// Reason why a plan is not mapped.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The plan has no stages, so its traffic is unknown.
    #[error("the plan has no pipeline stages, so its communication is unknown")]
    NoStages,
    /// The demands cannot be mapped onto this topology.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// Demands of a plan's parts: those of its family if it defines them, else those of its pipeline.
pub fn demands(workload: &Workload, limits: &Limits, plan: &Plan, pipeline: &Pipeline, bandwidth: f64) -> Demands {
    let nodes: Vec<usize> = plan.stages.iter().map(|stage| stage.nodes.len()).collect();
    let own = family::of(workload).demands(limits, plan);
    own.unwrap_or_else(|| Demands::of(pipeline, &nodes, bandwidth))
}

/// Maps a valid plan onto a topology.
///
/// # Errors
/// [`PlanError`] if the plan has no stages, or the topology cannot hold it.
pub fn map_plan(
    workload: &Workload,
    limits: &Limits,
    plan: &Plan,
    wired: &PlanTopology,
    (consider, settings, keep): (CommunicationKinds, &MappingSettings, MappingChoice),
    search: &Search,
) -> Result<MappedPlan, PlanError> {
    let topology = &wired.topology;
    let setup = Setup::default().of(plan);
    let plain = Plan { topology: None, ..plan.clone() };
    let pipeline = family::pipeline(workload, limits, &plain, &setup.settings);
    if !pipeline.flows() {
        return Err(PlanError::NoStages);
    }
    let demands = demands(workload, limits, &plain, &pipeline, LinkRule::of(topology).any);
    let instance = MappingInstance::new(topology, &demands, consider);
    let mut mapping = map(&instance, settings, search)?;
    // Simulates on the routes, under the schedule that the pipeline supports.
    let stopped = || search.cancelled();
    let simulated = |devices: &[usize]| {
        let routed = match pipeline.routed {
            // The durations of this family already contain the routes.
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
        && keep == MappingChoice::Faster
        && after.is_none_or(|after| *seconds <= after)
    {
        // A smaller bottleneck does not always make the iteration shorter.
        mapping.proved &= cost.seconds <= mapping.cost.seconds * (1.0 + 1e-9);
        (mapping.devices, mapping.cost, after) = (devices.clone(), *cost, Some(*seconds));
    }
    let part = MappingPart { iteration_s: after, file: wired.file.clone(), ..mapping.part(&instance) };
    Ok(MappedPlan { plan: plan.clone().on(topology, &mapping.devices), mapping, part, before })
}

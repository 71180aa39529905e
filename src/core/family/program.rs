//! From a plan to what is simulated, and what the programs of several families need for it.

use crate::{
    cluster::Limits,
    family,
    plan::Plan,
    simulate::{Pipeline, SimulatorSettings},
    workload::Workload,
};

/// The pipeline of a plan under these settings, as its family makes it, over the machines of its devices, and over the
/// routes between them where the plan sits on a topology.
pub fn pipeline(workload: &Workload, limits: &Limits, plan: &Plan, settings: &SimulatorSettings) -> Pipeline {
    pipeline_unless(workload, limits, plan, settings, &|| false).expect("nobody stops it")
}

/// The same; `None` once `stopped` is true while the routes are found, which may take long.
pub fn pipeline_unless(
    workload: &Workload,
    limits: &Limits,
    plan: &Plan,
    settings: &SimulatorSettings,
    stopped: &dyn Fn() -> bool,
) -> Option<Pipeline> {
    let family = family::of(workload);
    let pipeline = family.pipeline(workload, limits, plan, settings);
    let pipeline =
        Pipeline { settings: family.settings(&pipeline, settings), machines: machines(limits, plan), ..pipeline };
    match &plan.topology {
        Some(topology) if pipeline.flows() => {
            let devices: Vec<usize> = plan.devices().map(|device| device as usize).collect();
            pipeline.on_unless(topology, &devices, stopped)
        }
        _ => Some(pipeline),
    }
}

/// A sum that is the same in whatever order its parts are listed: times that differ by a rounding error would make, and
/// undo, ties.
pub(super) fn total(mut parts: Vec<f64>) -> f64 {
    parts.sort_by(f64::total_cmp);
    parts.into_iter().sum()
}

/// By stage, then device: its machine. Empty where there are no machines, or the plan names devices outside them.
fn machines(limits: &Limits, plan: &Plan) -> Vec<Vec<u32>> {
    let machine = |&device: &u32| limits.machines.machine_of(device).map(|machine| machine as u32);
    let stages = plan.stages.iter().map(|stage| stage.devices.iter().map(machine).collect::<Option<Vec<u32>>>());
    stages.collect::<Option<_>>().unwrap_or_default()
}

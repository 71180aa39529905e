//! Converts a plan to the simulator's input, with functions that several families share.

use crate::{
    cluster::Limits,
    family,
    plan::Plan,
    simulate::{Pipeline, SimulatorSettings},
    workload::Workload,
};

/// Pipeline of a plan under these settings, as its family builds it, over the machines of its devices. If the plan has
/// a topology, it uses the routes between them.
pub fn pipeline(workload: &Workload, limits: &Limits, plan: &Plan, settings: &SimulatorSettings) -> Pipeline {
    pipeline_unless(workload, limits, plan, settings, &|| false).expect("nobody stops it")
}

/// Like `pipeline`, but returns `None` once `stopped` is true while the routes are computed, which may take long.
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

/// Sum that does not depend on the order of its parts. Rounding errors would otherwise create or remove ties.
pub(super) fn total(mut parts: Vec<f64>) -> f64 {
    parts.sort_by(f64::total_cmp);
    parts.into_iter().sum()
}

/// By stage, then device: its machine. Empty if there are no machines, or if the plan names devices outside them.
fn machines(limits: &Limits, plan: &Plan) -> Vec<Vec<u32>> {
    let machine = |&device: &u32| limits.machines.machine_of(device).map(|machine| machine as u32);
    let stages = plan.stages.iter().map(|stage| stage.devices.iter().map(machine).collect::<Option<Vec<u32>>>());
    stages.collect::<Option<_>>().unwrap_or_default()
}

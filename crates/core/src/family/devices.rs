//! Number of devices that a plan uses, in words, and reasons why plans leave devices idle.

use std::collections::BTreeSet;

use crate::{
    cluster::{LimitKind, Limits},
    plan::{Measure, Plan},
    units::counted,
    workload::Workload,
};

/// Number of devices that a plan uses. Accelerators and CPUs are counted separately if the plan places nodes on either.
pub fn used(limits: &Limits, plan: &Plan) -> String {
    let kinds = [false, true].map(|cpu| -> usize {
        let stages = plan.stages.iter().filter(|stage| stage.on_cpus() == cpu);
        // In a plan measured by latency, stages may share a device.
        match plan.measure {
            Measure::Latency { .. } => stages.flat_map(|stage| &stage.devices).collect::<BTreeSet<_>>().len(),
            _ => stages.count(),
        }
    });
    let accelerators = format!("{} of {}", kinds[0], counted(limits.devices as usize, "accelerator"));
    match plan.measure {
        // CPUs run any number of nodes at once, so they are not counted.
        Measure::Latency { .. } => format!("{accelerators}{}", if kinds[1] > 0 { " and CPUs" } else { "" }),
        Measure::MaxLoad | Measure::SeparateMaxima if limits.cpus == 0 && kinds[1] == 0 => accelerators,
        Measure::MaxLoad | Measure::SeparateMaxima => {
            format!("{accelerators} and {} of {}", kinds[1], counted(limits.cpus as usize, "CPU"))
        }
        _ => format!("{} of {}", plan.devices_used(), counted(limits.devices as usize, "device")),
    }
}

/// Reason why devices are idle if the microbatches limit the pipeline, with a repair. `None` if no device is idle, or
/// for another reason.
///
/// Every replica needs its own microbatch in flight, so all stages together have at most as many replicas as
/// microbatches. The replicas of one stage also divide the microbatches.
pub fn idle(workload: &Workload, limits: &Limits, plan: &Plan) -> Option<String> {
    let profile =
        workload.piper().filter(|_| matches!(plan.measure, Measure::TimePerSample | Measure::IterationTime))?;
    let (devices, microbatches) = (limits.devices, limits.microbatches);
    let used = plan.devices_used();
    let replicas: u64 = plan.stages.iter().map(|stage| u64::from(stage.data_parallel)).sum();
    if used >= devices || used == 0 {
        return None;
    }
    let degrees = profile.nodes.iter().flat_map(|node| &node.degrees).map(|degree| degree.degree);
    let widest = degrees.filter(|&t| t <= devices).max().unwrap_or(1);
    let most = u64::from(microbatches) * u64::from(widest);
    let why = if most < u64::from(devices) {
        let each = counted(widest as usize, "device");
        format!("with at most {each} per replica no plan uses more than {most}")
    } else if u64::from(microbatches) == replicas {
        format!("and the stages' {replicas} replicas use them all")
    } else if let Some(stuck) = stuck(limits, plan) {
        return Some(stuck);
    } else {
        return None;
    };
    let (idle, flag) = (devices - used, LimitKind::Microbatches.flag());
    // A multiple keeps every current number of replicas valid.
    let more = u64::from(microbatches) * u64::from(devices.div_ceil(used));
    Some(format!(
        "{idle} of {devices} devices are idle: the replicas of all stages together are at most the {}, those of one \
         stage divide them, {why}; {flag} {more} lets plans use more",
        counted(microbatches as usize, "microbatch")
    ))
}

/// Reason why the stages cannot use the idle devices, if only the divisors of the microbatches prevent it. The next
/// number of replicas then takes more devices than are idle, for any stage, or for all if they must be equal.
fn stuck(limits: &Limits, plan: &Plan) -> Option<String> {
    let (microbatches, idle) = (limits.microbatches, limits.devices - plan.devices_used());
    let first = plan.stages.first()?;
    let alike = plan.stages.iter().all(|stage| stage.data_parallel == first.data_parallel);
    let together = alike && plan.measure == Measure::IterationTime;
    let taken = plan.stages.iter().map(|stage| {
        let next = (stage.data_parallel + 1..=microbatches).find(|&d| microbatches.is_multiple_of(d));
        next.map(|d| u64::from(d - stage.data_parallel) * u64::from(stage.tensor_parallel))
    });
    let fits = |devices: Option<u64>| devices.is_some_and(|devices| devices <= u64::from(idle));
    let has_room = if together { fits(taken.sum()) } else { taken.into_iter().any(fits) };
    let whose = if together { "all stages have the same number of replicas, which" } else { "the replicas of a stage" };
    (!has_room).then(|| {
        format!(
            "{idle} of {} devices are idle: {whose} must divide the {}, and the next divisor needs more devices than \
            are idle; {} with more divisors lets plans use more",
            limits.devices,
            counted(microbatches as usize, "microbatch"),
            LimitKind::Microbatches.flag()
        )
    })
}

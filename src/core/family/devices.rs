//! The devices that a plan uses, of those there are, in words; and why no plan can use the others.

use std::collections::BTreeSet;

use crate::{
    cluster::{LimitKind, Limits},
    plan::{Measure, Plan},
    units::counted,
    workload::Workload,
};

/// How many of the devices a plan uses: accelerators and CPUs apart where it places nodes on either.
pub fn used(limits: &Limits, plan: &Plan) -> String {
    let kinds = [false, true].map(|cpu| -> usize {
        let stages = plan.stages.iter().filter(|stage| stage.on_cpus() == cpu);
        // Where a latency is measured, stages may share a device.
        match plan.measure {
            Measure::Latency { .. } => stages.flat_map(|stage| &stage.devices).collect::<BTreeSet<_>>().len(),
            _ => stages.count(),
        }
    });
    let accelerators = format!("{} of {}", kinds[0], counted(limits.devices as usize, "accelerator"));
    match plan.measure {
        // Any number of nodes run on CPUs at once: they are not counted.
        Measure::Latency { .. } => format!("{accelerators}{}", if kinds[1] > 0 { " and CPUs" } else { "" }),
        Measure::MaxLoad | Measure::SeparateMaxima if limits.cpus == 0 && kinds[1] == 0 => accelerators,
        Measure::MaxLoad | Measure::SeparateMaxima => {
            format!("{accelerators} and {} of {}", kinds[1], counted(limits.cpus as usize, "CPU"))
        }
        _ => format!("{} of {}", plan.devices_used(), counted(limits.devices as usize, "device")),
    }
}

/// Why devices are idle where the microbatches keep a pipeline from using them, and what would use them; `None` where
/// there are none, or they are idle for another reason.
///
/// Every replica needs a microbatch in flight of its own, so the replicas of all stages together are at most the
/// microbatches; and those of one stage divide them.
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
        format!("with at most {each} for a replica no plan uses more than {most}")
    } else if u64::from(microbatches) == replicas {
        format!("and the stages' {replicas} replicas take them all")
    } else if let Some(stuck) = stuck(limits, plan) {
        return Some(stuck);
    } else {
        return None;
    };
    let (idle, flag) = (devices - used, LimitKind::Microbatches.flag());
    // A multiple keeps every number of replicas that divides them now.
    let more = u64::from(microbatches) * u64::from(devices.div_ceil(used));
    Some(format!(
        "{idle} of {devices} devices are idle: the replicas of all stages together are at most the {}, those of one \
         stage divide them, {why}; {flag} {more} lets plans use more",
        counted(microbatches as usize, "microbatch")
    ))
}

/// Why the idle devices are of no use to the stages as they are, where the divisors of the microbatches alone forbid it: the
/// next number of replicas takes more devices than are idle, of any stage, or of all where they have the same.
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
    let whose = if together { "all stages have as many replicas, which" } else { "the replicas of a stage" };
    (!has_room).then(|| {
        format!(
            "{idle} of {} devices are idle: {whose} must divide the {}, and the next number that does takes more devices \
             than are idle; {} with more divisors lets plans use more",
            limits.devices,
            counted(microbatches as usize, "microbatch"),
            LimitKind::Microbatches.flag()
        )
    })
}

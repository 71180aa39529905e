//! The devices that a plan uses, of those there are, in words.

use std::collections::BTreeSet;

use super::{Measure, Plan, single_sample::on_cpus};
use crate::{cluster::Limits, units::counted};

/// How many of the devices a plan uses: accelerators and CPUs apart where it places nodes on either.
pub fn used(limits: &Limits, plan: &Plan) -> String {
    let kinds = [false, true].map(|cpu| -> usize {
        let stages = plan.stages.iter().filter(|stage| on_cpus(stage) == cpu);
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

//! Names of a plan's stages: `stage 3` in a pipeline of like devices. If every stage is a device of a kind, the names
//! are `accelerator 2` or `CPU 1`.

use crate::{
    cluster::Limits,
    family,
    plan::{Plan, Stage},
    units,
    workload::Workload,
};

/// Name of one stage.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    long: String,
    short: String,
    cpu: bool,
}

/// Names of all stages of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Names {
    stages: Vec<Name>,
    /// Noun of a stage: `stage` or `device`.
    pub noun: &'static str,
    /// Noun of its nodes: `layers`.
    pub nodes: &'static str,
    /// True if any stage has several devices, so that its degrees are informative.
    pub degrees: bool,
    /// Number of devices in use, of the total, in words.
    pub used: String,
    /// Unused devices: `1 CPU`; empty if all are used.
    pub unused: String,
    /// Machines of each stage's devices, `machine 2`, or their kind, `h100`; empty if there is only one machine, or they
    /// are unknown.
    machines: Vec<String>,
    /// Context-parallel degree, which the replicas of a stage include; 1 for most families.
    context: u32,
}

impl Names {
    /// Head of the degrees of a stage: `DP × TP`, with the context degree if there is one.
    pub(super) fn degrees_head(&self) -> &'static str {
        if self.context > 1 { "DP·CP·TP" } else { "DP × TP" }
    }

    /// Degrees of a stage: `8 × 4`.
    pub(super) fn degrees_of(&self, stage: &Stage) -> String {
        let (data, tensor) = (stage.data_parallel, stage.tensor_parallel);
        match self.context {
            0 | 1 => format!("{data} × {tensor}"),
            context => format!("{}·{context}·{tensor}", data / context),
        }
    }

    /// Names for a plan of a workload.
    pub(super) fn new(workload: &Workload, limits: &Limits, plan: &Plan) -> Self {
        let degrees = plan.stages.iter().any(|stage| stage.device_count() > 1);
        let nodes = family::of(workload).nouns();
        if family::of(workload).stages_are_devices() {
            let stages = devices(plan);
            let (used, unused) = (used(&stages, limits), unused(&stages, limits));
            let machines = machines(workload, limits, plan);
            return Names { stages, noun: "device", nodes, degrees, used, unused, machines, context: 1 };
        }
        let stages =
            (1..=plan.stages.len()).map(|i| Name { long: format!("stage {i}"), short: i.to_string(), cpu: false });
        let count = plan.stages.len();
        let used = format!(
            "{count} stage{} on {} of {} devices",
            if count == 1 { "" } else { "s" },
            plan.devices_used(),
            limits.devices
        );
        let left = limits.devices.saturating_sub(plan.devices_used());
        let unused = if left == 0 { String::new() } else { units::counted(left as usize, "device") };
        let machines = machines(workload, limits, plan);
        let context = plan.configuration().map_or(1, |configuration| configuration.layout.context);
        Names { stages: stages.collect(), noun: "stage", nodes, degrees, used, unused, machines, context }
    }

    /// Noun of the nodes as the head of a column of a width, with a blank before it.
    pub(super) fn nodes_head(&self, width: usize) -> &'static str {
        match self.nodes {
            nodes if nodes.len() < width => nodes,
            "operators" => "ops",
            nodes => nodes.trim_end_matches('s'),
        }
    }

    /// Name in a sentence: `stage 3`, `accelerator 2`.
    pub(super) fn long(&self, stage: usize) -> &str {
        self.stages.get(stage).map_or("", |name| &name.long)
    }

    /// Name at the head of a narrow row: `3`, `acc 2`.
    pub(super) fn short(&self, stage: usize) -> &str {
        self.stages.get(stage).map_or("", |name| &name.short)
    }

    /// Name at the head of a wide row whose title states the noun: `3`, `accelerator 2`.
    pub(super) fn row(&self, stage: usize) -> &str {
        if self.noun == "device" { self.long(stage) } else { self.short(stage) }
    }

    /// Machines of a stage's devices, or their kind; empty if there is only one machine.
    pub(super) fn machines(&self, stage: usize) -> &str {
        self.machines.get(stage).map_or("", String::as_str)
    }

    /// Name on its own in about nine cells: `stage 3`, `acc 2`.
    pub(super) fn caption(&self, stage: usize) -> &str {
        if self.noun == "device" { self.short(stage) } else { self.long(stage) }
    }

    /// True if a stage is a CPU, whose memory is unlimited.
    pub(super) fn is_cpu(&self, stage: usize) -> bool {
        self.stages.get(stage).is_some_and(|name| name.cpu)
    }
}

/// Kind of device of each stage, or its machines, if there are several.
fn machines(workload: &Workload, limits: &Limits, plan: &Plan) -> Vec<String> {
    let family = family::of(workload);
    if plan.stages.iter().any(|stage| family.stage_kind(stage).is_some()) {
        return plan.stages.iter().map(|stage| family.stage_kind(stage).unwrap_or_default().into()).collect();
    }
    if limits.machines.sizes().len() < 2 {
        return vec![];
    }
    let of = |stage: &Stage| {
        let mut machines: Vec<usize> = stage.devices.iter().filter_map(|&d| limits.machines.machine_of(d)).collect();
        machines.sort_unstable();
        machines.dedup();
        let numbers: Vec<String> = machines.iter().map(|machine| (machine + 1).to_string()).collect();
        match numbers.as_slice() {
            [] => String::new(),
            [only] => format!("machine {only}"),
            all => format!("machines {}", all.join(", ")),
        }
    };
    plan.stages.iter().map(of).collect()
}

/// Names of stages that are devices. Several stages on one device are numbered.
fn devices(plan: &Plan) -> Vec<Name> {
    // Devices so far, each with its number of stages. A device without a number counts as a new one.
    let mut known: Vec<((bool, Option<u32>), usize)> = vec![];
    let mut names = vec![];
    for stage in &plan.stages {
        let cpu = stage.on_cpus();
        let device = (cpu, stage.devices.first().copied());
        let at = known.iter().position(|(other, _)| *other == device && device.1.is_some()).unwrap_or(known.len());
        if at == known.len() {
            known.push((device, 0));
        }
        let part = known[at].1;
        known[at].1 += 1;
        // Number among the devices of its kind, in order of their first stages.
        let number = known[..=at].iter().filter(|((other, _), _)| *other == cpu).count();
        let (long, short) = if cpu { ("CPU", "CPU") } else { ("accelerator", "acc") };
        let (of_long, of_short) = match part {
            0 => (String::new(), String::new()),
            part => (format!(", part {}", part + 1), format!(".{}", part + 1)),
        };
        names.push(Name {
            long: format!("{long} {number}{of_long}"),
            short: format!("{short} {number}{of_short}"),
            cpu,
        });
    }
    names
}

/// Number of accelerators, or CPUs, that have a stage.
fn whole(names: &[Name], cpu: bool) -> u32 {
    names.iter().filter(|name| name.cpu == cpu && !name.long.contains(',')).count() as u32
}

/// Used devices: `5 of 6 accelerators, 1 of 1 CPU`.
fn used(names: &[Name], limits: &Limits) -> String {
    let accelerators = format!("{} of {}", whole(names, false), units::counted(limits.devices as usize, "accelerator"));
    match limits.cpus {
        0 => accelerators,
        cpus => format!("{accelerators}, {} of {}", whole(names, true), units::counted(cpus as usize, "CPU")),
    }
}

/// Unused devices: `2 accelerators, 1 CPU`; empty if none is left.
fn unused(names: &[Name], limits: &Limits) -> String {
    let kinds = [(limits.devices, false, "accelerator"), (limits.cpus, true, "CPU")];
    let left = kinds.map(|(all, cpu, noun)| (all.saturating_sub(whole(names, cpu)), noun));
    let told = left.iter().filter(|(count, _)| *count > 0).map(|(count, noun)| units::counted(*count as usize, noun));
    told.collect::<Vec<_>>().join(", ")
}

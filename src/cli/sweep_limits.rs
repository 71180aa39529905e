//! Limits of a sweep on the command line: the usual ones, but each may have several values.

use std::{path::Path, sync::Arc};

use clap::Args;

use super::{
    Failure, arguments, input,
    profile_input::ProfileArgs,
    topology_input::{TopologyArgument, TopologyListArgs},
    training_input::TrainingArgs,
};
use crate::{
    cluster::{GivenLimits, LimitKind, Machines},
    family::{self, kinds::KindCount},
    study::sweep::LimitValues,
    units::UnitError,
    workload::Workload,
};

/// Values of `--devices`.
#[derive(Debug, Clone, PartialEq)]
enum SweptDevices {
    /// Numbers of devices.
    Numbers(LimitValues),
    /// Cluster of several kinds.
    Kinds(Vec<KindCount>),
}

impl SweptDevices {
    fn parse(text: &str) -> Result<Self, String> {
        match arguments::kinds(text) {
            Some(kinds) => kinds.map(SweptDevices::Kinds),
            None => LimitValues::parse(LimitKind::Devices, text).map(SweptDevices::Numbers),
        }
    }
}

/// Limits with their values; those with several are swept.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits (a value, a list A,B,C, or a range A..B, A..B:x2, A..B:+8)")]
pub(super) struct SweepLimits {
    /// Devices available; a plan may use fewer. Several kinds are one cluster: 16xh100,32xa100-80; repeat the flag to
    /// sweep over clusters
    #[arg(long, value_name = "K", allow_hyphen_values = true, value_parser = SweptDevices::parse)]
    devices: Vec<SweptDevices>,
    /// CPUs that can run nodes beside the devices (device placement)
    #[arg(long, value_name = "L", allow_hyphen_values = true, value_parser = |text: &str| LimitValues::parse(LimitKind::Cpus, text))]
    cpus: Option<LimitValues>,
    /// Memory per device, such as 1GiB,2GiB,8GiB,80GiB
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = |text: &str| LimitValues::parse(LimitKind::Memory, text))]
    memory: Option<LimitValues>,
    /// Microbatches in a batch; the replicas of a stage must divide them
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = |text: &str| LimitValues::parse(LimitKind::Microbatches, text))]
    microbatches: Option<LimitValues>,
    /// Bandwidth between any two devices, such as 12.5GB/s..100GB/s
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = |text: &str| LimitValues::parse(LimitKind::Bandwidth, text))]
    bandwidth: Option<LimitValues>,
    /// Samples in a batch over all devices (layer profiles, training)
    #[arg(long, visible_alias = "global-batch", value_name = "N", allow_hyphen_values = true, value_parser = |text: &str| LimitValues::parse(LimitKind::Batch, text))]
    batch: Option<LimitValues>,
    /// Operations per second of a device (operator graphs)
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = |text: &str| LimitValues::parse(LimitKind::Flops, text))]
    flops: Option<LimitValues>,
    /// Devices of each machine, such as 8,8 or 2x8 (layer profiles)
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, value_parser = machines)]
    machines: Option<Machines>,
    #[command(flatten)]
    topology: TopologyListArgs,
    #[command(flatten)]
    training: TrainingArgs,
    #[command(flatten)]
    pub(super) profile: ProfileArgs,
}

fn machines(text: &str) -> Result<Machines, UnitError> {
    Machines::parse(text)
}

impl SweepLimits {
    /// Loads a workload with the flags and the topology applied, once for each given sequence length.
    pub(super) fn load(&self, workload: &Path) -> Result<Vec<Workload>, Failure> {
        let read = self.profile.over(input::workload_given(workload, self.profile.facts().as_slice())?)?;
        let plain = self.on_clusters(self.training.each(&read, None)?)?;
        if self.topology.is_empty() || !plain.iter().all(|workload| family::of(workload).has_platform()) {
            return Ok(plain);
        }
        // A model on other machines is another workload, and its number of devices comes from the topology.
        let mut all = vec![];
        for given in self.topology.iter() {
            let told = given.overrides();
            for mut own in self.training.each(&read, Some(given))? {
                if self.topology.len() > 1 {
                    own.name = format!("{} on {}", own.name, given.topology().name);
                }
                own.limits.set(LimitKind::Devices, told.devices());
                own.limits.set(LimitKind::Memory, told.memory_bytes().or(own.limits.memory_bytes()));
                own.limits.topology = Some(given.wired().clone());
                all.push(own);
            }
        }
        Ok(all)
    }

    /// Workloads on each cluster of several kinds; the same without any. With several clusters, names state theirs.
    fn on_clusters(&self, plain: Vec<Workload>) -> Result<Vec<Workload>, Failure> {
        let clusters = || {
            self.devices.iter().filter_map(|devices| match devices {
                SweptDevices::Kinds(kinds) => Some(kinds),
                SweptDevices::Numbers(_) => None,
            })
        };
        let Some(first) = clusters().next() else { return Ok(plain) };
        if clusters().count() < self.devices.len() {
            let problem = "--devices has both a number of devices and kinds of them";
            return Err(Failure::refused(problem, "give a cluster of kinds each time"));
        }
        let for_one = [
            ("--hardware", self.training.hardware.is_some()),
            ("--fabric", self.training.fabric.is_some()),
            ("--topology", !self.topology.is_empty()),
            ("--machines", self.machines.is_some()),
        ];
        if let Some((flag, _)) = for_one.into_iter().find(|(_, given)| *given) {
            return Err(arguments::for_one_kind(flag, first));
        }
        let several = clusters().nth(1).is_some();
        if let Some(twice) = clusters().enumerate().find_map(|(i, kinds)| clusters().take(i).find(|own| *own == kinds))
        {
            let problem = format!("--devices {} is given twice", KindCount::list(twice));
            return Err(Failure::refused(problem, "leave one out"));
        }
        let on = |workload: &Workload, kinds: &Vec<KindCount>| {
            let mut own = arguments::over_kinds(workload, kinds, "--devices")?;
            if several {
                own.name = format!("{} on {}", own.name, KindCount::list(kinds));
            }
            Ok(own)
        };
        plain.iter().flat_map(|workload| clusters().map(move |kinds| on(workload, kinds))).collect()
    }

    /// Given limits in the order of the axes.
    pub(super) fn values(&self) -> Vec<LimitValues> {
        let SweepLimits { cpus, memory, microbatches, bandwidth, batch, flops, .. } = self;
        let numbers = self.devices.iter().filter_map(|devices| match devices {
            SweptDevices::Numbers(values) => Some(values.clone()),
            SweptDevices::Kinds(_) => None,
        });
        let devices = numbers.reduce(|all, other| all.and(&other));
        let others = [memory, microbatches, bandwidth, cpus, batch, flops];
        devices.into_iter().chain(others.into_iter().flatten().cloned()).collect()
    }

    /// Given limits that cannot be axes.
    pub(super) fn rest(&self) -> GivenLimits {
        GivenLimits::default().on(self.machines.clone())
    }

    /// Topologies that plans are mapped to.
    pub(super) fn topologies(&self) -> &[Arc<TopologyArgument>] {
        &self.topology
    }

    /// Limits of a topology, used unless the flags state devices.
    pub(super) fn wiring(&self, given: &TopologyArgument) -> GivenLimits {
        let told = given.overrides();
        let devices = told.devices().filter(|_| self.machines.is_none() && self.devices.is_empty());
        told.maybe(LimitKind::Devices, devices)
    }

    /// Flag of a limit that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let devices = self.devices.first().map(|_| "--devices");
        let of_kind = devices.or_else(|| self.values().first().map(|values| values.kind.flag()));
        of_kind.or(self.machines.as_ref().map(|_| "--machines")).or((!self.topology.is_empty()).then_some("--topology"))
    }
}

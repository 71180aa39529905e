//! The limits a plan must keep: what the family of the workload makes of those that a file, flags or a plan give
//! ([`GivenLimits`]).

use thiserror::Error;

use super::{GivenLimits, LimitKind, Machines, topology::Wired};
use crate::units;

/// Everything a planner may be limited by. What is `None` limits nothing, or nothing depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Devices available, k: accelerators, where CPUs are counted apart.
    pub devices: u32,
    /// CPUs that can run nodes beside the accelerators.
    pub cpus: u32,
    /// Bytes of memory per device, M.
    pub memory_bytes: Option<f64>,
    /// Microbatches in a batch, N.
    pub microbatches: u32,
    /// Bytes per second between any two devices, W.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Samples in a batch over all devices, before the weights change.
    pub batch: Option<u32>,
    /// How the devices sit in machines; empty where nothing depends on it.
    pub machines: Machines,
    /// Operations per second of a device.
    pub flops_per_s: Option<f64>,
    /// How the devices are wired, where that is known: plans sit on its first devices.
    pub topology: Option<Wired>,
}

/// A limit that neither the file nor the command line gives.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}; give it with {flag}, for example {flag} {example}", self.told())]
pub struct MissingLimit {
    /// What it is called.
    pub label: &'static str,
    /// The field the file lacks, if files of its format have one.
    pub field: Option<&'static str>,
    /// The flag that gives it.
    pub flag: &'static str,
    /// A value that would do.
    pub example: &'static str,
}

impl MissingLimit {
    fn told(&self) -> String {
        match self.field {
            Some(field) => format!("names no `{field}`"),
            None => format!("says nothing of {}, as files of its format do", self.label),
        }
    }
}

/// Microbatches that a timeline shows where nothing limits them.
pub const NEUTRAL_MICROBATCHES: u32 = 32;

impl Limits {
    /// One device, and nothing that limits: a start for limits of which only some matter.
    pub const NEUTRAL: Limits = Limits {
        devices: 1,
        cpus: 0,
        memory_bytes: None,
        microbatches: NEUTRAL_MICROBATCHES,
        bandwidth_bytes_per_s: None,
        batch: None,
        machines: Machines::NONE,
        flops_per_s: None,
        topology: None,
    };

    /// Devices of every kind: accelerators and CPUs.
    #[inline]
    pub fn all_devices(&self) -> u32 {
        self.devices.saturating_add(self.cpus)
    }

    /// Bytes that a device may hold, to compare with: infinite where nothing limits them.
    #[inline]
    pub fn memory_limit(&self) -> f64 {
        self.memory_bytes.unwrap_or(f64::INFINITY)
    }

    /// Bytes that a device may hold, to compute with: where nothing limits them the largest number, of which shares and
    /// differences are numbers.
    #[inline]
    pub fn memory(&self) -> f64 {
        self.memory_bytes.unwrap_or(f64::MAX)
    }

    /// Bytes per second between two devices, to compute with: the fastest there is where nothing limits them.
    #[inline]
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth_bytes_per_s.unwrap_or(units::LARGEST)
    }

    /// Operations per second of a device, to compute with: the fastest there is where nothing limits them.
    pub fn flops(&self) -> f64 {
        self.flops_per_s.unwrap_or(units::LARGEST)
    }

    /// Samples in a batch: one where nothing depends on how many.
    pub fn samples(&self) -> u32 {
        self.batch.unwrap_or(1)
    }

    /// The value of a limit in its base unit: infinite where it does not limit, `None` where nothing depends on it.
    pub fn stated(&self, kind: LimitKind) -> Option<f64> {
        match kind {
            LimitKind::Devices => Some(f64::from(self.devices)),
            LimitKind::Cpus => Some(f64::from(self.cpus)),
            LimitKind::Memory => Some(self.memory_limit()),
            LimitKind::Microbatches => Some(f64::from(self.microbatches)),
            LimitKind::Bandwidth => Some(self.bandwidth_bytes_per_s.unwrap_or(f64::INFINITY)),
            LimitKind::Batch => self.batch.map(f64::from),
            LimitKind::Flops => self.flops_per_s,
        }
    }

    /// The value of a limit in its base unit, infinite where it limits nothing.
    pub fn get(&self, kind: LimitKind) -> f64 {
        self.stated(kind).unwrap_or(f64::INFINITY)
    }

    /// The same limits with one replaced; counts are rounded and kept in range, and what is infinite limits nothing.
    #[must_use]
    pub fn with(&self, kind: LimitKind, value: f64) -> Self {
        let mut limits = self.clone();
        let in_range = |(least, most)| value.round().clamp(f64::from(least), f64::from(most));
        limits.put(kind, kind.counted_in().map_or(value, in_range));
        if kind == LimitKind::Devices && !limits.machines.is_empty() {
            limits.machines = limits.machines.with_devices(limits.devices);
        }
        limits
    }

    /// The same limits with all that are given in their place.
    #[must_use]
    pub fn under(mut self, given: &GivenLimits) -> Self {
        for kind in given.given() {
            self.put(kind, given.get(kind).unwrap_or_default());
        }
        self.machines = given.machines.clone().unwrap_or(self.machines);
        self.topology = given.topology.clone().or(self.topology);
        self
    }

    fn put(&mut self, kind: LimitKind, value: f64) {
        let limiting = Some(value).filter(|value| value.is_finite());
        match kind {
            LimitKind::Devices => self.devices = value as u32,
            LimitKind::Cpus => self.cpus = value as u32,
            LimitKind::Memory => self.memory_bytes = limiting,
            LimitKind::Microbatches => self.microbatches = value as u32,
            LimitKind::Bandwidth => self.bandwidth_bytes_per_s = limiting,
            LimitKind::Batch => self.batch = limiting.map(|value| value as u32),
            LimitKind::Flops => self.flops_per_s = limiting,
        }
    }
}

//! The limits a plan must keep: what the family of the workload makes of those that a file, flags or a plan give
//! ([`GivenLimits`]).

use thiserror::Error;

use super::{GivenLimits, LimitKind, Machines};

/// Everything a planner may be limited by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Devices available, k: accelerators, where CPUs are counted apart.
    pub devices: u32,
    /// CPUs that can run nodes beside the accelerators.
    pub cpus: u32,
    /// Bytes of memory per device, M.
    pub memory_bytes: f64,
    /// Microbatches in a batch, N.
    pub microbatches: u32,
    /// Bytes per second between any two devices, W.
    pub bandwidth_bytes_per_s: f64,
    /// Samples in a batch over all devices, before the weights change; 0 where nothing depends on it.
    pub batch: u32,
    /// How the devices sit in machines; empty where nothing depends on it.
    pub machines: Machines,
    /// Operations per second of a device; 0 where nothing depends on it.
    pub flops_per_s: f64,
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
/// Bytes per second where a profile states its transfers as times.
pub const NEUTRAL_BANDWIDTH: f64 = 1e30;

impl Limits {
    /// One device, and nothing that limits: a start for limits of which only some matter.
    pub const NEUTRAL: Limits = Limits {
        devices: 1,
        cpus: 0,
        memory_bytes: f64::MAX,
        microbatches: NEUTRAL_MICROBATCHES,
        bandwidth_bytes_per_s: NEUTRAL_BANDWIDTH,
        batch: 0,
        machines: Machines::NONE,
        flops_per_s: 0.0,
    };

    /// Devices of every kind: accelerators and CPUs.
    pub fn all_devices(&self) -> u32 {
        self.devices.saturating_add(self.cpus)
    }

    /// The value of a limit in its base unit.
    pub fn get(&self, kind: LimitKind) -> f64 {
        match kind {
            LimitKind::Devices => f64::from(self.devices),
            LimitKind::Cpus => f64::from(self.cpus),
            LimitKind::Memory => self.memory_bytes,
            LimitKind::Microbatches => f64::from(self.microbatches),
            LimitKind::Bandwidth => self.bandwidth_bytes_per_s,
            LimitKind::Batch => f64::from(self.batch),
            LimitKind::Flops => self.flops_per_s,
        }
    }

    /// The same limits with one replaced; counts are rounded and kept in range.
    #[must_use]
    pub fn with(mut self, kind: LimitKind, value: f64) -> Self {
        let in_range = |(least, most)| value.round().clamp(f64::from(least), f64::from(most));
        self.put(kind, kind.counted_in().map_or(value, in_range));
        if kind == LimitKind::Devices && !self.machines.is_empty() {
            self.machines = self.machines.with_devices(self.devices);
        }
        self
    }

    /// The same limits with all that are given in their place.
    #[must_use]
    pub fn under(mut self, given: &GivenLimits) -> Self {
        for kind in given.given() {
            self.put(kind, given.get(kind).unwrap_or_default());
        }
        self.machines = given.machines.unwrap_or(self.machines);
        self
    }

    fn put(&mut self, kind: LimitKind, value: f64) {
        match kind {
            LimitKind::Devices => self.devices = value as u32,
            LimitKind::Cpus => self.cpus = value as u32,
            LimitKind::Memory => self.memory_bytes = value,
            LimitKind::Microbatches => self.microbatches = value as u32,
            LimitKind::Bandwidth => self.bandwidth_bytes_per_s = value,
            LimitKind::Batch => self.batch = value as u32,
            LimitKind::Flops => self.flops_per_s = value,
        }
    }
}

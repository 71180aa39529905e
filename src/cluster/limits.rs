//! The limits a plan must keep, and where they come from: a file brings some ([`FileLimits`]), the command line overrides
//! some ([`Overrides`]); the family of the workload, which knows which it needs, puts them together.

use thiserror::Error;

use super::{LimitKind, MOST_BATCH, MOST_DEVICES, MOST_MICROBATCHES, Machines};

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
/// The limits a file brings with it; the command line and the screen override them one by one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FileLimits {
    /// Number of devices (accelerators, where CPUs are counted apart: then there may be none).
    pub devices: Option<u32>,
    /// Number of CPUs that can run nodes.
    pub cpus: Option<u32>,
    /// Bytes of memory per device.
    pub memory_bytes: Option<f64>,
    /// Microbatches in a batch.
    pub microbatches: Option<u32>,
    /// Bytes per second between devices.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Operations per second of a device.
    pub flops_per_s: Option<f64>,
    /// Samples in a batch over all devices.
    pub batch: Option<u32>,
}

/// Limits given outside the file; what is `None` is left to the file.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Overrides {
    /// Devices available.
    pub devices: Option<u32>,
    /// CPUs that can run nodes.
    pub cpus: Option<u32>,
    /// Bytes of memory per device.
    pub memory_bytes: Option<f64>,
    /// Microbatches in a batch.
    pub microbatches: Option<u32>,
    /// Bytes per second between devices.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Samples in a batch over all devices.
    pub batch: Option<u32>,
    /// How the devices sit in machines; also says how many there are.
    pub machines: Option<Machines>,
    /// Operations per second of a device.
    pub flops_per_s: Option<f64>,
}

impl Overrides {
    /// Which limits are given here.
    pub fn given(&self) -> impl Iterator<Item = LimitKind> {
        LimitKind::ALL.into_iter().filter(|kind| self.get(*kind).is_some())
    }

    /// The value of a limit in its base unit, if it is given here.
    pub fn get(&self, kind: LimitKind) -> Option<f64> {
        match kind {
            LimitKind::Devices => self.devices.map(f64::from),
            LimitKind::Cpus => self.cpus.map(f64::from),
            LimitKind::Memory => self.memory_bytes,
            LimitKind::Microbatches => self.microbatches.map(f64::from),
            LimitKind::Bandwidth => self.bandwidth_bytes_per_s,
            LimitKind::Batch => self.batch.map(f64::from),
            LimitKind::Flops => self.flops_per_s,
        }
    }

    /// Gives a limit a value in its base unit, or leaves it to the file.
    pub fn set(&mut self, kind: LimitKind, value: Option<f64>) {
        let count = value.map(|value| value as u32);
        match kind {
            LimitKind::Devices => self.devices = count,
            LimitKind::Cpus => self.cpus = count,
            LimitKind::Memory => self.memory_bytes = value,
            LimitKind::Microbatches => self.microbatches = count,
            LimitKind::Bandwidth => self.bandwidth_bytes_per_s = value,
            LimitKind::Batch => self.batch = count,
            LimitKind::Flops => self.flops_per_s = value,
        }
    }

    /// These, and where they say nothing the others.
    #[must_use]
    pub fn or(&self, others: &Overrides) -> Overrides {
        let mut both = Overrides { machines: self.machines.or(others.machines), ..*self };
        for kind in LimitKind::ALL {
            both.set(kind, self.get(kind).or(others.get(kind)));
        }
        both
    }

    /// Those that a file does not state itself.
    #[must_use]
    pub fn unstated_by(&self, stated: &FileLimits) -> Overrides {
        let stated = Overrides::from(stated);
        let mut rest = *self;
        for kind in stated.given() {
            rest.set(kind, None);
        }
        rest
    }
}

impl From<&FileLimits> for Overrides {
    fn from(stated: &FileLimits) -> Self {
        Overrides {
            devices: stated.devices,
            cpus: stated.cpus,
            memory_bytes: stated.memory_bytes,
            microbatches: stated.microbatches,
            bandwidth_bytes_per_s: stated.bandwidth_bytes_per_s,
            batch: stated.batch,
            machines: None,
            flops_per_s: stated.flops_per_s,
        }
    }
}

/// What limits say; where nothing depends on a batch, machines or a rate of operations, they say nothing of it.
impl From<&Limits> for Overrides {
    fn from(limits: &Limits) -> Self {
        Overrides {
            devices: Some(limits.devices),
            cpus: Some(limits.cpus),
            memory_bytes: Some(limits.memory_bytes),
            microbatches: Some(limits.microbatches),
            bandwidth_bytes_per_s: Some(limits.bandwidth_bytes_per_s),
            batch: Some(limits.batch).filter(|&batch| batch > 0),
            machines: Some(limits.machines).filter(|machines| !machines.is_empty()),
            flops_per_s: Some(limits.flops_per_s).filter(|&rate| rate > 0.0),
        }
    }
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
        match kind {
            LimitKind::Devices => {
                self.devices = (value.round() as u32).clamp(1, MOST_DEVICES);
                if !self.machines.is_empty() {
                    self.machines = self.machines.with_devices(self.devices);
                }
            }
            LimitKind::Cpus => self.cpus = (value.round() as u32).min(MOST_DEVICES),
            LimitKind::Memory => self.memory_bytes = value,
            LimitKind::Microbatches => self.microbatches = (value.round() as u32).clamp(1, MOST_MICROBATCHES),
            LimitKind::Bandwidth => self.bandwidth_bytes_per_s = value,
            LimitKind::Batch => self.batch = (value.round() as u32).clamp(1, MOST_BATCH),
            LimitKind::Flops => self.flops_per_s = value,
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_given_and_taken_away() {
        let mut limits = Overrides::default();
        for kind in LimitKind::ALL {
            limits.set(kind, Some(3.0));
            assert_eq!(limits.get(kind), Some(3.0));
        }
        assert_eq!(limits.given().count(), LimitKind::ALL.len());
        limits.set(LimitKind::Memory, None);
        let file = FileLimits { devices: Some(1), ..FileLimits::default() };
        let rest: Vec<LimitKind> = limits.unstated_by(&file).given().collect();
        assert!(
            !rest.contains(&LimitKind::Memory) && !rest.contains(&LimitKind::Devices) && rest.len() == 5,
            "{rest:?}"
        );
    }
}

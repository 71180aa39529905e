//! Limits that a plan must keep. The workload's family derives them from the limits of a file, flags or a plan
//! ([`GivenLimits`]).

use thiserror::Error;

use super::{given::GivenLimits, limit_kind::LimitKind, machines::Machines, topology::PlanTopology};
use crate::units;

/// All limits of a planner. `None` means unlimited, or that nothing depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Number of devices, k: accelerators, if CPUs are counted separately.
    pub devices: u32,
    /// Number of CPUs that can run nodes beside the accelerators.
    pub cpus: u32,
    /// Bytes of memory per device, M.
    pub memory_bytes: Option<f64>,
    /// Number of microbatches in a batch, N.
    pub microbatches: u32,
    /// Bytes per second between any two devices, W.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Number of samples in a batch over all devices, before the weights change.
    pub batch: Option<u32>,
    /// Machines of the devices; empty if nothing depends on them.
    pub machines: Machines,
    /// Operations per second of a device.
    pub flops_per_s: Option<f64>,
    /// Topology of the devices, if known. Plans use its first devices.
    pub topology: Option<PlanTopology>,
}

/// Limit that is missing, or too large for a kind of workload.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LimitError {
    /// Neither the file nor the command line gives it.
    #[error("{}; give it with {flag}, for example {flag} {example}", missing(label, *field))]
    Missing {
        /// Name of the limit.
        label: &'static str,
        /// Field that the file lacks, if files of its format have one.
        field: Option<&'static str>,
        /// Flag that sets it.
        flag: &'static str,
        /// Example of a value.
        example: &'static str,
    },
    /// More devices than plans of such a workload may have.
    #[error(
        "is planned on at most {most} devices, like every measured profile, not on {devices}; give --devices {most}"
    )]
    TooManyDevices {
        /// Devices that were asked for.
        devices: u32,
        /// Largest number.
        most: u32,
    },
}

fn missing(label: &str, field: Option<&str>) -> String {
    match field {
        Some(field) => format!("has no `{field}`"),
        None => format!("does not state {label}, like all files of its format"),
    }
}

/// Number of microbatches that a timeline shows if they are not limited.
pub const NEUTRAL_MICROBATCHES: u32 = 32;

impl Limits {
    /// One device and no other limit: a base if only some limits matter.
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

    /// Number of devices of every kind: accelerators and CPUs.
    #[inline]
    pub fn all_devices(&self) -> u32 {
        self.devices.saturating_add(self.cpus)
    }

    /// Bytes that a device may hold, for comparisons: infinite if unlimited.
    #[inline]
    pub fn memory_limit(&self) -> f64 {
        self.memory_bytes.unwrap_or(f64::INFINITY)
    }

    /// Bytes that a device may hold, for arithmetic: the largest finite number if unlimited, so that fractions and
    /// differences are not NaN.
    #[inline]
    pub fn memory(&self) -> f64 {
        self.memory_bytes.unwrap_or(f64::MAX)
    }

    /// Bytes per second between two devices, for arithmetic: the largest valid rate if unlimited.
    #[inline]
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth_bytes_per_s.unwrap_or(units::LARGEST)
    }

    /// Operations per second of a device, for arithmetic: the largest valid rate if unlimited.
    pub fn flops(&self) -> f64 {
        self.flops_per_s.unwrap_or(units::LARGEST)
    }

    /// Samples in a batch; 1 if nothing depends on them.
    pub fn samples(&self) -> u32 {
        self.batch.unwrap_or(1)
    }

    /// Value of a limit in its base unit: infinite if unlimited, `None` if nothing depends on it.
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

    /// Value of a limit in its base unit; infinite if unlimited.
    pub fn get(&self, kind: LimitKind) -> f64 {
        self.stated(kind).unwrap_or(f64::INFINITY)
    }

    /// Same limits with one replaced. Counts are rounded and clamped to their range; infinity means unlimited.
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

    /// Same limits, with all given limits in place of theirs.
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

//! The limits a plan must keep, where they come from, and the steps in which a person turns them.
//!
//! A file brings some ([`FileLimits`]), the command line overrides some ([`Overrides`]), [`Limits::resolve`] puts them
//! together. [`LimitKind`] is the one table from which flags, panel rows, steps and units are made.

use thiserror::Error;

use super::Machines;
use crate::{
    units::{self, UnitError},
    workload::{FileLimits, Profile, Workload},
};

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

/// One of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LimitKind {
    /// Devices available.
    Devices,
    /// CPUs that can run nodes.
    Cpus,
    /// Memory per device.
    Memory,
    /// Microbatches in a batch.
    Microbatches,
    /// Bandwidth between devices.
    Bandwidth,
    /// Samples in a batch over all devices.
    Batch,
    /// Operations per second of a device.
    Flops,
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
        [
            (LimitKind::Devices, self.devices.is_some()),
            (LimitKind::Cpus, self.cpus.is_some()),
            (LimitKind::Memory, self.memory_bytes.is_some()),
            (LimitKind::Microbatches, self.microbatches.is_some()),
            (LimitKind::Bandwidth, self.bandwidth_bytes_per_s.is_some()),
            (LimitKind::Batch, self.batch.is_some()),
            (LimitKind::Flops, self.flops_per_s.is_some()),
        ]
        .into_iter()
        .filter_map(|(kind, given)| given.then_some(kind))
    }

    /// These, and where they say nothing the others.
    #[must_use]
    pub fn or(&self, others: &Overrides) -> Overrides {
        Overrides {
            devices: self.devices.or(others.devices),
            cpus: self.cpus.or(others.cpus),
            memory_bytes: self.memory_bytes.or(others.memory_bytes),
            microbatches: self.microbatches.or(others.microbatches),
            bandwidth_bytes_per_s: self.bandwidth_bytes_per_s.or(others.bandwidth_bytes_per_s),
            batch: self.batch.or(others.batch),
            machines: self.machines.or(others.machines),
            flops_per_s: self.flops_per_s.or(others.flops_per_s),
        }
    }

    /// Those that a file does not state itself.
    #[must_use]
    pub fn unstated_by(&self, stated: &FileLimits) -> Overrides {
        Overrides {
            devices: self.devices.filter(|_| stated.devices.is_none()),
            cpus: self.cpus.filter(|_| stated.cpus.is_none()),
            memory_bytes: self.memory_bytes.filter(|_| stated.memory_bytes.is_none()),
            microbatches: self.microbatches.filter(|_| stated.microbatches.is_none()),
            bandwidth_bytes_per_s: self.bandwidth_bytes_per_s.filter(|_| stated.bandwidth_bytes_per_s.is_none()),
            flops_per_s: self.flops_per_s.filter(|_| stated.flops_per_s.is_none()),
            ..*self
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
    fn new(profile: &Profile, kind: LimitKind) -> Self {
        MissingLimit { label: kind.label(), field: kind.field(profile), flag: kind.flag(), example: kind.example() }
    }

    fn told(&self) -> String {
        match self.field {
            Some(field) => format!("names no `{field}`"),
            None => format!("says nothing of {}, as files of its format do", self.label),
        }
    }
}

/// Microbatches that a timeline shows where nothing limits them.
const NEUTRAL_MICROBATCHES: u32 = 32;
/// Bytes per second where a profile states its transfers as times.
const NEUTRAL_BANDWIDTH: f64 = 1e30;
/// Bytes of memory of the devices that DAPPLE's published programs plan for (V100), where nothing else is said.
const V100_MEMORY: f64 = 16e9;
/// Operations per second and bytes per second of the published PaSE program, where nothing else is said.
const PASE_FLOPS: f64 = 10e12;
const PASE_BANDWIDTH: f64 = 16e9;
/// From this size on memory is not limited.
const UNLIMITED: f64 = 1e30;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
/// Memory sizes of real devices and the round numbers between them, GiB.
const MEMORY_STEPS: [f64; 30] = [
    0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 32.0, 40.0, 48.0, 64.0,
    80.0, 96.0, 112.0, 128.0, 141.0, 160.0, 180.0, 192.0, 256.0, 288.0,
];
/// Bandwidths between devices, from Ethernet to NVLink, GB/s.
const BANDWIDTH_STEPS: [f64; 18] =
    [0.125, 0.25, 0.5, 1.25, 2.5, 3.125, 5.0, 6.25, 12.5, 25.0, 50.0, 64.0, 100.0, 150.0, 300.0, 450.0, 900.0, 1800.0];
/// Peak rates of real devices and the round numbers between them, 10¹² operations per second.
const FLOPS_STEPS: [f64; 16] =
    [1.0, 2.0, 5.0, 10.0, 15.7, 19.5, 30.0, 67.0, 125.0, 156.0, 200.0, 312.0, 495.0, 700.0, 989.0, 2250.0];
/// The most devices a plan may use, as in the published program.
pub const MOST_DEVICES: u32 = 10_000;
/// The most microbatches in a batch, in a file as on the command line.
pub const MOST_MICROBATCHES: u32 = 1_000_000;
/// The most samples in a batch.
pub const MOST_BATCH: u32 = 10_000_000;

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

    /// Puts the workload's limits and the overrides together. What a workload of this profile is not limited by
    /// ([`LimitKind::of`]) gets a neutral value.
    ///
    /// # Errors
    /// [`MissingLimit`] for the first limit that is needed and that neither gives.
    pub fn resolve(workload: &Workload, overrides: &Overrides) -> Result<Self, MissingLimit> {
        let needed = LimitKind::of(&workload.profile);
        let mut file = workload.limits;
        if !needed.contains(&LimitKind::Microbatches) {
            file.microbatches = file.microbatches.or(Some(NEUTRAL_MICROBATCHES));
        }
        if !needed.contains(&LimitKind::Bandwidth) {
            file.bandwidth_bytes_per_s = file.bandwidth_bytes_per_s.or(Some(NEUTRAL_BANDWIDTH));
        }
        if matches!(workload.profile, Profile::Operators(_)) {
            file.memory_bytes = file.memory_bytes.or(Some(Limits::NEUTRAL.memory_bytes));
            file.flops_per_s = file.flops_per_s.or(Some(PASE_FLOPS));
            file.bandwidth_bytes_per_s = file.bandwidth_bytes_per_s.or(Some(PASE_BANDWIDTH));
        }
        let mut overrides = *overrides;
        if matches!(workload.profile, Profile::Layers(_)) {
            file.memory_bytes = file.memory_bytes.or(Some(V100_MEMORY));
            let machines = match (overrides.machines, overrides.devices) {
                (Some(machines), Some(devices)) if machines.devices() != devices => machines.with_devices(devices),
                (Some(machines), _) => machines,
                (None, Some(devices)) => Machines::of_eight().with_devices(devices),
                (None, None) => {
                    let (label, flag, example) = ("machines", "--machines", "8,8");
                    return Err(MissingLimit { label, field: None, flag, example });
                }
            };
            overrides.devices = Some(machines.devices());
            overrides.machines = Some(machines);
            if overrides.batch.is_none() {
                return Err(MissingLimit::new(&workload.profile, LimitKind::Batch));
            }
        }
        Self::merge(&workload.profile, &file, &overrides)
    }

    fn merge(profile: &Profile, file: &FileLimits, overrides: &Overrides) -> Result<Self, MissingLimit> {
        let missing = |kind: LimitKind| MissingLimit::new(profile, kind);
        Ok(Limits {
            devices: overrides.devices.or(file.devices).ok_or_else(|| missing(LimitKind::Devices))?,
            cpus: overrides.cpus.or(file.cpus).unwrap_or(0),
            memory_bytes: overrides.memory_bytes.or(file.memory_bytes).ok_or_else(|| missing(LimitKind::Memory))?,
            microbatches: overrides
                .microbatches
                .or(file.microbatches)
                .ok_or_else(|| missing(LimitKind::Microbatches))?,
            bandwidth_bytes_per_s: overrides
                .bandwidth_bytes_per_s
                .or(file.bandwidth_bytes_per_s)
                .ok_or_else(|| missing(LimitKind::Bandwidth))?,
            batch: overrides.batch.unwrap_or(0),
            machines: overrides.machines.unwrap_or_default(),
            flops_per_s: overrides.flops_per_s.or(file.flops_per_s).unwrap_or(0.0),
        })
    }

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

impl LimitKind {
    /// All limits, in the order they are shown.
    pub const ALL: [LimitKind; 7] = [
        LimitKind::Devices,
        LimitKind::Cpus,
        LimitKind::Memory,
        LimitKind::Microbatches,
        LimitKind::Bandwidth,
        LimitKind::Batch,
        LimitKind::Flops,
    ];

    /// The limits of pipelines with replicas (Piper's profile).
    pub const PIPELINE: [LimitKind; 4] =
        [LimitKind::Devices, LimitKind::Memory, LimitKind::Microbatches, LimitKind::Bandwidth];

    /// The limits of device placement: accelerators, CPUs, and the accelerators' memory.
    pub const PLACEMENT: [LimitKind; 3] = [LimitKind::Devices, LimitKind::Cpus, LimitKind::Memory];

    /// The limits of pipelines over machines, planned for a whole batch (layer-wise profiles).
    pub const LAYERS: [LimitKind; 3] = [LimitKind::Devices, LimitKind::Batch, LimitKind::Memory];

    /// The limits of operators that are split over all devices.
    pub const OPERATORS: [LimitKind; 4] =
        [LimitKind::Devices, LimitKind::Flops, LimitKind::Bandwidth, LimitKind::Memory];

    /// The limits that plans of a workload with this profile must keep.
    pub fn of(profile: &Profile) -> &'static [LimitKind] {
        match profile {
            Profile::Piper(_) => &LimitKind::PIPELINE,
            Profile::Placement(_) => &LimitKind::PLACEMENT,
            Profile::Layers(_) => &LimitKind::LAYERS,
            Profile::Operators(_) => &LimitKind::OPERATORS,
        }
    }

    /// What the panel and the tables call it.
    pub fn label(self) -> &'static str {
        match self {
            LimitKind::Devices => "devices",
            LimitKind::Cpus => "CPUs",
            LimitKind::Memory => "memory",
            LimitKind::Microbatches => "microbatches",
            LimitKind::Bandwidth => "bandwidth",
            LimitKind::Batch => "batch",
            LimitKind::Flops => "flops",
        }
    }

    /// What one of it is called.
    pub fn singular(self) -> &'static str {
        match self {
            LimitKind::Devices => "device",
            LimitKind::Cpus => "CPU",
            LimitKind::Microbatches => "microbatch",
            LimitKind::Memory | LimitKind::Bandwidth | LimitKind::Batch | LimitKind::Flops => self.label(),
        }
    }

    /// One line on what it limits.
    pub fn help(self) -> &'static str {
        match self {
            LimitKind::Devices => "devices available; not all need be used",
            LimitKind::Cpus => "CPUs that can run nodes beside the accelerators",
            LimitKind::Memory => "memory per device",
            LimitKind::Microbatches => {
                "microbatches in a batch: bounds the replicas of a stage and spreads the all-reduce"
            }
            LimitKind::Bandwidth => "bandwidth between any two devices",
            LimitKind::Batch => "samples in a batch, over all devices",
            LimitKind::Flops => "operations per second of a device, a multiplication with addition being one",
        }
    }

    /// The flag on the command line.
    pub fn flag(self) -> &'static str {
        match self {
            LimitKind::Devices => "--devices",
            LimitKind::Cpus => "--cpus",
            LimitKind::Memory => "--memory",
            LimitKind::Microbatches => "--microbatches",
            LimitKind::Bandwidth => "--bandwidth",
            LimitKind::Batch => "--batch",
            LimitKind::Flops => "--flops",
        }
    }

    /// The field of a file with this profile, if there is one.
    fn field(self, profile: &Profile) -> Option<&'static str> {
        Some(match (profile, self) {
            (Profile::Piper(_), LimitKind::Devices) => "maxDevices",
            (Profile::Piper(_), LimitKind::Memory) => "maxMemoryPerDevice",
            (Profile::Piper(_), LimitKind::Microbatches) => "mbsInBatch",
            (Profile::Placement(_), LimitKind::Devices) => "maxFPGAs",
            (Profile::Placement(_), LimitKind::Cpus) => "maxCPUs",
            (Profile::Placement(_), LimitKind::Memory) => "maxSizePerFPGA",
            (Profile::Operators(_), LimitKind::Devices) => "devices",
            (Profile::Operators(_), LimitKind::Memory) => "memory",
            (Profile::Operators(_), LimitKind::Flops) => "flops",
            (Profile::Piper(_) | Profile::Operators(_), LimitKind::Bandwidth) => "bandwidth",
            _ => return None,
        })
    }

    /// A value as a user might write it.
    pub fn example(self) -> &'static str {
        match self {
            LimitKind::Devices => "64",
            LimitKind::Cpus => "1",
            LimitKind::Memory => "16GiB",
            LimitKind::Microbatches => "1920",
            LimitKind::Bandwidth => "25GB/s",
            LimitKind::Batch => "128",
            LimitKind::Flops => "10e12",
        }
    }

    /// Prints a value of this limit.
    pub fn format(self, value: f64) -> String {
        match self {
            LimitKind::Devices | LimitKind::Cpus | LimitKind::Microbatches | LimitKind::Batch => format!("{value}"),
            LimitKind::Memory if value >= UNLIMITED => "unlimited".into(),
            LimitKind::Memory => units::bytes_exact(value),
            LimitKind::Bandwidth => units::bandwidth_exact(value),
            LimitKind::Flops => units::flops_exact(value),
        }
    }

    /// Reads a value of this limit; bare numbers are base units.
    ///
    /// # Errors
    /// [`UnitError`] with what would do.
    pub fn parse(self, text: &str) -> Result<f64, UnitError> {
        let most = |most: u32, too_large: &'static str| match units::parse_count(text) {
            Ok(value) if value <= most => Ok(f64::from(value)),
            Ok(_) => Err(UnitError::new(text, too_large)),
            Err(_) if units::is_larger(text, f64::from(most)) => Err(UnitError::new(text, too_large)),
            Err(error) => Err(error),
        };
        match self {
            LimitKind::Cpus if text.trim() == "0" => Ok(0.0),
            LimitKind::Cpus => most(MOST_DEVICES, "larger than any machine planned here: at most 10000"),
            LimitKind::Devices => most(MOST_DEVICES, "larger than any cluster planned here: at most 10000"),
            LimitKind::Microbatches => most(MOST_MICROBATCHES, "larger than any batch planned here: at most 1000000"),
            LimitKind::Batch => most(MOST_BATCH, "larger than any batch planned here: at most 10000000"),
            LimitKind::Memory if text.trim() == "unlimited" => Ok(Limits::NEUTRAL.memory_bytes),
            LimitKind::Memory => units::parse_bytes(text),
            LimitKind::Bandwidth => units::parse_bandwidth(text),
            LimitKind::Flops => units::parse_flops(text),
        }
    }

    /// The next value that makes sense in a direction: devices by one (`large`: twice or half), memory and bandwidth
    /// along the sizes that exist, microbatches along numbers with many divisors.
    pub fn step(self, value: f64, up: bool, large: bool) -> f64 {
        match self {
            LimitKind::Devices | LimitKind::Cpus => {
                // A file that plans on CPUs alone has no accelerator to take away.
                let fewest = if self == LimitKind::Cpus { 0.0 } else { value.min(1.0) };
                let next = match (up, large) {
                    (true, false) => value + 1.0,
                    (false, false) => value - 1.0,
                    (true, true) => (value * 2.0).max(1.0),
                    (false, true) => (value / 2.0).floor(),
                };
                next.clamp(fewest, f64::from(MOST_DEVICES))
            }
            LimitKind::Memory => along(&MEMORY_STEPS, GIB, value, up, if large { 3 } else { 1 }),
            LimitKind::Flops => along(&FLOPS_STEPS, 1e12, value, up, if large { 3 } else { 1 }),
            LimitKind::Bandwidth => along(&BANDWIDTH_STEPS, 1e9, value, up, if large { 3 } else { 1 }),
            LimitKind::Microbatches => {
                let mut next = value as u32;
                for _ in 0..if large { 4 } else { 1 } {
                    next = divisor_rich_neighbour(next, up);
                }
                f64::from(next)
            }
            // Batches are powers of two, or near one.
            LimitKind::Batch => {
                let factor = if large { 4.0 } else { 2.0 };
                let next = if up { value * factor } else { (value / factor).floor() };
                next.clamp(1.0, f64::from(MOST_BATCH))
            }
        }
    }
}

/// Moves `count` steps along a table of sizes; from between two entries the first step goes to the nearer end.
fn along(table: &[f64], unit: f64, value: f64, up: bool, count: usize) -> f64 {
    let mut value = value / unit;
    for _ in 0..count {
        let next = if up {
            table.iter().copied().find(|&step| step > value * (1.0 + 1e-9))
        } else {
            table.iter().rev().copied().find(|&step| step < value * (1.0 - 1e-9))
        };
        match next {
            Some(step) => value = step,
            // What is not limited stays so.
            None if up => value = (value * 2.0).min(f64::MAX / unit),
            None => value = (value / 2.0).max(units::SMALLEST / unit),
        }
    }
    value * unit
}

fn divisor_count(n: u32) -> usize {
    (1..=n.isqrt()).filter(|d| n.is_multiple_of(*d)).map(|d| if d * d == n { 1 } else { 2 }).sum()
}

/// The nearest number that has more divisors than everything within an eighth below it.
fn divisor_rich_neighbour(n: u32, up: bool) -> u32 {
    let rich = |m: u32| {
        let own = divisor_count(m);
        (m - m / 8..m).all(|smaller| smaller == 0 || divisor_count(smaller) < own)
    };
    let mut m = n;
    loop {
        if !up && m <= 1 {
            return 1;
        }
        if up && m >= MOST_MICROBATCHES {
            return MOST_MICROBATCHES;
        }
        m = if up { m + 1 } else { m - 1 };
        if rich(m) {
            return m;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_win_and_gaps_are_named() {
        let file = FileLimits {
            devices: Some(8),
            cpus: None,
            memory_bytes: Some(1e9),
            microbatches: None,
            bandwidth_bytes_per_s: Some(1e9),
            ..FileLimits::default()
        };
        let overrides = Overrides { devices: Some(16), microbatches: Some(32), ..Overrides::default() };
        let profile = &crate::workload::builtin().profile;
        let limits = Limits::merge(profile, &file, &overrides).unwrap();
        assert_eq!((limits.devices, limits.microbatches), (16, 32));
        let error = Limits::merge(profile, &file, &Overrides::default()).unwrap_err().to_string();
        assert!(error.contains("`mbsInBatch`") && error.contains("--microbatches"), "{error}");
    }

    #[test]
    fn steps_go_up_and_come_back() {
        assert_eq!(LimitKind::Devices.step(8.0, true, true), 16.0);
        assert_eq!(LimitKind::Devices.step(1.0, false, false), 1.0);
        assert_eq!(LimitKind::Memory.step(8.0 * GIB, true, false), 10.0 * GIB);
        assert_eq!(LimitKind::Memory.step(80e9, false, false), 64.0 * GIB);
        assert_eq!(LimitKind::Bandwidth.step(25e9, true, false), 50e9);
        let up = LimitKind::Microbatches.step(1920.0, true, false);
        assert!(up > 1920.0 && divisor_count(up as u32) >= divisor_count(1920));
        for kind in LimitKind::ALL {
            let mut value = kind.parse(kind.example()).unwrap();
            for _ in 0..60 {
                value = kind.step(value, false, true);
                assert!(
                    (value > 0.0 || kind == LimitKind::Cpus) && kind.parse(&format!("{value}")).is_ok(),
                    "{kind:?} {value}"
                );
            }
        }
    }
}

//! The limits a plan must keep, and where they come from: a file brings some ([`FileLimits`]), the command line overrides
//! some ([`Overrides`]), [`Limits::resolve`] puts them together.

use thiserror::Error;

use super::{LimitKind, MOST_BATCH, MOST_DEVICES, MOST_MICROBATCHES, Machines};
use crate::workload::{FileLimits, Profile, Workload};

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
            batch: None,
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

    /// What [`Limits::resolve`] takes for granted because neither the workload nor the overrides say it, a sentence each.
    pub fn assumed(workload: &Workload, overrides: &Overrides) -> Vec<String> {
        let given = overrides.or(&Overrides::from(&workload.limits));
        let unsaid = |kind: LimitKind| given.get(kind).is_none();
        let taken = |kind: LimitKind, value: f64| {
            format!("{} is taken as {}: {} says otherwise", kind.label(), kind.format(value), kind.flag())
        };
        let assumptions: &[(LimitKind, f64)] = match &workload.profile {
            Profile::Layers(_) => &[(LimitKind::Memory, V100_MEMORY)],
            Profile::Operators(_) => &[
                (LimitKind::Flops, PASE_FLOPS),
                (LimitKind::Bandwidth, PASE_BANDWIDTH),
                (LimitKind::Memory, Limits::NEUTRAL.memory_bytes),
            ],
            Profile::Piper(_) | Profile::Placement(_) => &[],
        };
        let mut all: Vec<String> =
            assumptions.iter().filter(|(kind, _)| unsaid(*kind)).map(|&(kind, value)| taken(kind, value)).collect();
        if workload.layers().is_some() && given.machines.is_none() {
            all.push("devices are taken to sit in machines of 8: --machines says otherwise".into());
        }
        all
    }

    fn merge(profile: &Profile, file: &FileLimits, overrides: &Overrides) -> Result<Self, MissingLimit> {
        let missing = |kind: LimitKind| MissingLimit::new(profile, kind);
        Ok(Limits {
            devices: overrides.devices.or(file.devices).ok_or_else(|| missing(LimitKind::Devices))?,
            // Elsewhere no plan could use one, and no count of devices may include it.
            cpus: overrides
                .cpus
                .or(file.cpus)
                .filter(|_| LimitKind::of(profile).contains(&LimitKind::Cpus))
                .unwrap_or(0),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_says_is_told() {
        let text =
            "node1 -- A -- forward_compute_time=1, backward_compute_time=1, activation_size=8, parameter_size=8\n";
        let workload = crate::workload::load_bytes(text.as_bytes(), "a.txt", "a").unwrap();
        let asked = Overrides { devices: Some(16), batch: Some(64), ..Overrides::default() };
        let told = Limits::assumed(&workload, &asked);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("memory is taken as 16 GB: --memory") && told[1].contains("machines of 8"),
            "{told:?}"
        );
        let all = Overrides { memory_bytes: Some(8e9), machines: Machines::new(&[16]), ..asked };
        assert_eq!(Limits::assumed(&workload, &all), Vec::<String>::new());
        assert_eq!(Limits::assumed(&crate::workload::builtin(), &Overrides::default()), Vec::<String>::new());
    }

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
}

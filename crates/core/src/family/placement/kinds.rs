//! Accelerators of several kinds: which one a stage is on, how fast it is, and what it may hold.
//!
//! Accelerators are numbered one after the other, kind by kind, and CPUs after them. A device's number tells its kind.

use super::accelerator_memory::AcceleratorMemory;
use crate::{
    cluster::{LimitKind, Limits},
    family::{dial::DialError, kinds::KindCount},
    plan::{Plan, Stage},
    text::printable,
    units,
    workload::{
        Profile, Workload,
        placement::{AcceleratorKind, PlacementProfile},
    },
};

impl PlacementProfile {
    /// Number of accelerators that have numbers. CPUs have the numbers after them.
    pub fn accelerators(&self, limits: &Limits) -> u32 {
        match self.kinds.is_empty() {
            true => limits.devices,
            false => self.kinds.iter().map(|kind| kind.count).sum(),
        }
    }

    /// First accelerator of a kind.
    pub fn first_of(&self, kind: usize) -> u32 {
        self.kinds[..kind].iter().map(|kind| kind.count).sum()
    }

    /// Kind of a stage's accelerator; `None` on a CPU, on no known device, or if all are alike.
    pub fn kind_on(&self, stage: &Stage) -> Option<&AcceleratorKind> {
        let device = *stage.devices.first().filter(|_| !stage.on_cpus())?;
        let mut first = 0;
        self.kinds.iter().find(|kind| {
            first += kind.count;
            device < first
        })
    }

    /// Speed of a stage's accelerator.
    pub fn speed_on(&self, stage: &Stage) -> f64 {
        self.kind_on(stage).map_or(1.0, |kind| kind.speed)
    }

    /// Bytes that a stage's accelerator may hold: the memory of its kind, or the limit on all; infinite if unlimited.
    pub fn memory_on(&self, limits: &Limits, stage: &Stage) -> f64 {
        self.kind_on(stage).map_or(limits.memory_limit(), |kind| kind.memory_bytes)
    }

    /// Kinds in words: `2 fast (2x, 16 GB), 4 slow (1x, 8 GB)`.
    pub fn kinds_text(&self) -> String {
        let kinds = self.kinds.iter().filter(|kind| kind.count > 0).map(|kind| {
            let (speed, memory) = (units::number(kind.speed), units::bytes_exact(kind.memory_bytes));
            format!("{} {} ({speed}x, {memory})", kind.count, kind.id)
        });
        kinds.collect::<Vec<_>>().join(", ")
    }

    /// Memory rule for accelerators of all kinds.
    pub fn accelerator_memory(&self, limits: &Limits) -> AcceleratorMemory {
        let largest = self.kinds.iter().map(|kind| kind.memory_bytes).reduce(f64::max);
        AcceleratorMemory::new(self, largest.unwrap_or_else(|| limits.memory_limit()))
    }
}

/// Accelerators of the same kind that no stage has.
pub(super) fn free_devices(profile: &PlacementProfile, plan: &Plan, stage: &Stage) -> Vec<u32> {
    let Some(own) = profile.kind_on(stage) else { return vec![] };
    let kind = profile.kinds.iter().position(|kind| kind.id == own.id).unwrap_or_default();
    let first = profile.first_of(kind);
    let taken: std::collections::BTreeSet<u32> = plan.devices().collect();
    (first..first + own.count).filter(|device| !taken.contains(device)).take(1).collect()
}

/// Numbers of accelerators by kind.
pub(super) fn counts(profile: &PlacementProfile) -> Vec<KindCount> {
    let own = |kind: &AcceleratorKind| KindCount { id: kind.id.clone(), count: kind.count, price_per_hour: None };
    profile.kinds.iter().map(own).collect()
}

/// Workload with these numbers of its kinds.
///
/// # Errors
/// [`DialError`] if its accelerators are alike, it lacks a kind, or a price is given.
pub(super) fn on_kinds(
    workload: &Workload,
    profile: &PlacementProfile,
    asked: &[KindCount],
) -> Result<Workload, DialError> {
    let name = &workload.name;
    if profile.kinds.is_empty() {
        return Err(DialError(format!(
            "{name} has accelerators that are alike; its file states kinds as `\"accelerators\": [{{\"kind\": \"fast\", \
             \"count\": 2, \"speed\": 2, \"maxSize\": 16e9}}]`"
        )));
    }
    let mut profile = profile.clone();
    profile.kinds.iter_mut().for_each(|own| own.count = 0);
    for kind in asked {
        let known: Vec<String> = profile.kinds.iter().map(|own| own.id.clone()).collect();
        let Some(own) = profile.kinds.iter_mut().find(|own| own.id.eq_ignore_ascii_case(&kind.id)) else {
            return Err(DialError(format!("{name} has no {}, only {}", printable(&kind.id), known.join(", "))));
        };
        if kind.price_per_hour.is_some() {
            return Err(DialError(format!("placements have no cost: leave out the price of {}", own.id)));
        }
        own.count = kind.count;
    }
    let all: u32 = KindCount::sum(asked);
    let limits = workload.limits.clone().with(LimitKind::Devices, all);
    Ok(Workload { profile: Profile::Placement(profile), limits, ..workload.clone() })
}

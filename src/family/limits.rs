//! From what a file states and what was asked for to the limits that a plan must keep.

use super::Family;
use crate::{
    cluster::{
        FileLimits, LimitKind, Limits, Machines, MissingLimit, NEUTRAL_BANDWIDTH, NEUTRAL_MICROBATCHES, Overrides,
    },
    family,
    workload::Workload,
};

/// Puts the workload's limits and the overrides together. What plans of its family are not limited by
/// ([`Family::limits`]) gets a neutral value.
///
/// # Errors
/// [`MissingLimit`] for the first limit that is needed and that neither gives.
pub fn resolve(workload: &Workload, overrides: &Overrides) -> Result<Limits, MissingLimit> {
    let family = family::of(workload);
    let needed = family.limits();
    let (mut file, mut overrides) = (workload.limits, *overrides);
    if !needed.contains(&LimitKind::Microbatches) {
        file.microbatches = file.microbatches.or(Some(NEUTRAL_MICROBATCHES));
    }
    if !needed.contains(&LimitKind::Bandwidth) {
        file.bandwidth_bytes_per_s = file.bandwidth_bytes_per_s.or(Some(NEUTRAL_BANDWIDTH));
    }
    for &(kind, value) in family.assumed_limits() {
        match kind {
            LimitKind::Memory => file.memory_bytes = file.memory_bytes.or(Some(value)),
            LimitKind::Flops => file.flops_per_s = file.flops_per_s.or(Some(value)),
            LimitKind::Bandwidth => file.bandwidth_bytes_per_s = file.bandwidth_bytes_per_s.or(Some(value)),
            LimitKind::Microbatches => file.microbatches = file.microbatches.or(Some(value as u32)),
            LimitKind::Devices => file.devices = file.devices.or(Some(value as u32)),
            LimitKind::Cpus => file.cpus = file.cpus.or(Some(value as u32)),
            LimitKind::Batch => file.batch = file.batch.or(Some(value as u32)),
        }
    }
    if family.on_machines() {
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
    }
    if needed.contains(&LimitKind::Batch) && overrides.batch.or(file.batch).is_none() {
        return Err(missing(family, LimitKind::Batch));
    }
    merge(family, &file, &overrides)
}

/// What [`resolve`] takes for granted because neither the workload nor the overrides say it, a sentence each.
pub fn assumed(workload: &Workload, overrides: &Overrides) -> Vec<String> {
    let family = family::of(workload);
    let given = overrides.or(&Overrides::from(&workload.limits));
    let unsaid = |kind: LimitKind| given.get(kind).is_none();
    let taken = |kind: LimitKind, value: f64| {
        format!("{} is taken as {}: {} says otherwise", kind.label(), kind.format(value), kind.flag())
    };
    let assumptions = family.assumed_limits().iter().filter(|(kind, _)| unsaid(*kind));
    let mut all: Vec<String> = assumptions.map(|&(kind, value)| taken(kind, value)).collect();
    if family.on_machines() && given.machines.is_none() {
        all.push("devices are taken to sit in machines of 8: --machines says otherwise".into());
    }
    all
}

fn missing(family: &dyn Family, kind: LimitKind) -> MissingLimit {
    MissingLimit { label: kind.label(), field: family.field(kind), flag: kind.flag(), example: kind.example() }
}

fn merge(family: &dyn Family, file: &FileLimits, overrides: &Overrides) -> Result<Limits, MissingLimit> {
    let missing = |kind: LimitKind| missing(family, kind);
    Ok(Limits {
        devices: overrides.devices.or(file.devices).ok_or_else(|| missing(LimitKind::Devices))?,
        // Elsewhere no plan could use one, and no count of devices may include it.
        cpus: overrides.cpus.or(file.cpus).filter(|_| family.limits().contains(&LimitKind::Cpus)).unwrap_or(0),
        memory_bytes: overrides.memory_bytes.or(file.memory_bytes).ok_or_else(|| missing(LimitKind::Memory))?,
        microbatches: overrides.microbatches.or(file.microbatches).ok_or_else(|| missing(LimitKind::Microbatches))?,
        bandwidth_bytes_per_s: overrides
            .bandwidth_bytes_per_s
            .or(file.bandwidth_bytes_per_s)
            .ok_or_else(|| missing(LimitKind::Bandwidth))?,
        batch: overrides.batch.or(file.batch).unwrap_or(0),
        machines: overrides.machines.unwrap_or_default(),
        flops_per_s: overrides.flops_per_s.or(file.flops_per_s).unwrap_or(0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Machines;

    #[test]
    fn what_nobody_says_is_told() {
        let text =
            "node1 -- A -- forward_compute_time=1, backward_compute_time=1, activation_size=8, parameter_size=8\n";
        let workload = crate::workload::load_bytes(text.as_bytes(), "a.txt", "a").unwrap();
        let asked = Overrides { devices: Some(16), batch: Some(64), ..Overrides::default() };
        let told = assumed(&workload, &asked);
        let batch = assumed(&workload, &Overrides { batch: None, ..asked });
        assert!(batch.iter().any(|told| told.starts_with("batch is taken as 128: --batch")), "{batch:?}");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("memory is taken as 16 GB: --memory") && told[1].contains("machines of 8"),
            "{told:?}"
        );
        let all = Overrides { memory_bytes: Some(8e9), machines: Machines::new(&[16]), ..asked };
        assert_eq!(assumed(&workload, &all), Vec::<String>::new());
        assert_eq!(assumed(&crate::workload::builtin(), &Overrides::default()), Vec::<String>::new());
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
        let workload = crate::workload::builtin();
        let family = family::of(&workload);
        let limits = merge(family, &file, &overrides).unwrap();
        assert_eq!((limits.devices, limits.microbatches), (16, 32));
        let error = merge(family, &file, &Overrides::default()).unwrap_err().to_string();
        assert!(error.contains("`mbsInBatch`") && error.contains("--microbatches"), "{error}");
    }
}

//! Combines the limits of a file and of the user into those of a plan.

use super::Family;
use crate::{
    cluster::{GivenLimits, LimitError, LimitKind, Limits, Machines},
    family,
    plan::document::validate_limits,
    source::LoadError,
    units,
    workload::Workload,
};

/// Combines the workload's limits and the overrides. A limit that does not apply to its family ([`Family::limits`])
/// gets a neutral value.
///
/// # Errors
/// [`LimitError`] for the first required limit that neither gives, or for more devices than such workloads take.
pub fn resolve(workload: &Workload, overrides: &GivenLimits) -> Result<Limits, LimitError> {
    let family = family::of(workload);
    let needed = family.limits();
    let mut limits = overrides.or(&workload.limits);
    for &(kind, value) in family.assumed_limits() {
        limits.set(kind, limits.get(kind).or(Some(value)));
    }
    if family.on_machines() {
        let machines = match (overrides.machines.clone(), overrides.devices()) {
            (Some(machines), Some(devices)) if machines.devices() != devices => machines.with_devices(devices),
            (Some(machines), _) => machines,
            (None, Some(devices)) => Machines::of_eight().with_devices(devices),
            (None, None) => {
                let (label, flag, example) = ("machines", "--machines", "8,8");
                return Err(LimitError::Missing { label, field: None, flag, example });
            }
        };
        limits = limits.with(LimitKind::Devices, machines.devices()).on(Some(machines));
    } else if let (Some(machines), None) = (&overrides.machines, overrides.devices()) {
        limits.set(LimitKind::Devices, Some(machines.devices()));
    }
    if !needed.contains(&LimitKind::Cpus) {
        // No plan could use CPUs, and no count of devices may include them.
        limits.set(LimitKind::Cpus, None::<f64>);
    }
    let limits = complete(family, &limits)?;
    fits(workload, limits.devices)?;
    Ok(limits)
}

/// Checks that plans of a workload may have so many devices.
///
/// # Errors
/// [`LimitError::TooManyDevices`].
pub fn fits(workload: &Workload, devices: u32) -> Result<(), LimitError> {
    let most = family::of(workload).most_devices();
    if devices > most { Err(LimitError::TooManyDevices { devices, most }) } else { Ok(()) }
}

/// Values that [`resolve`] assumes because neither the workload nor the overrides state them, a sentence each.
pub fn assumed(workload: &Workload, overrides: &GivenLimits) -> Vec<String> {
    let family = family::of(workload);
    let given = overrides.or(&workload.limits);
    let counted = overrides.machines.is_some();
    let unsaid = |kind: LimitKind| given.get(kind).is_none() && !(kind == LimitKind::Devices && counted);
    let taken = |kind: LimitKind, value: f64| {
        format!("{} is assumed to be {}; {} sets it", kind.label(), kind.format(value), kind.flag())
    };
    let assumptions = family.assumed_limits().iter().filter(|(kind, _)| unsaid(*kind));
    let mut all: Vec<String> = assumptions.map(|&(kind, value)| taken(kind, value)).collect();
    if family.on_machines() && given.machines.is_none() {
        all.push("machines of 8 devices are assumed; --machines sets them".into());
    }
    if let (Some(machines), false, None) = (&overrides.machines, family.on_machines(), &overrides.topology) {
        all.push(format!(
            "--machines is assumed to be {}; --topology sets the links between machines",
            units::counted(machines.devices() as usize, "device")
        ));
    }
    all
}

/// Refuses limits of a plan's file that no plan of the workload can have. Names the file and the field.
///
/// # Errors
/// [`LoadError`] for the first wrong value.
pub fn validate(workload: &Workload, limits: &GivenLimits, source: &str) -> Result<(), LoadError> {
    validate_limits(limits, source)?;
    match limits.devices().map(|devices| fits(workload, devices)) {
        Some(Err(LimitError::TooManyDevices { devices, most })) => {
            let problem = format!("is {devices}, must be a whole number from 1 to {most}");
            Err(LoadError::at(source, "limits.devices", problem, ""))
        }
        _ => Ok(()),
    }
}

fn missing(family: &dyn Family, kind: LimitKind) -> LimitError {
    LimitError::Missing {
        label: kind.label(),
        field: family.field(kind),
        flag: kind.flag(),
        example: family.example(kind),
    }
}

/// Limits with a value for each that applies to the family. Without a number of CPUs there are none.
fn complete(family: &dyn Family, given: &GivenLimits) -> Result<Limits, LimitError> {
    let lacks = |kind: &&LimitKind| given.get(**kind).is_none() && **kind != LimitKind::Cpus;
    match family.limits().iter().filter(lacks).min() {
        Some(&kind) => Err(missing(family, kind)),
        None => Ok(Limits::NEUTRAL.under(given)),
    }
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
        let asked = GivenLimits::default().with(LimitKind::Devices, 16).with(LimitKind::Batch, 64);
        let told = assumed(&workload, &asked);
        let batch = assumed(&workload, &asked.clone().maybe(LimitKind::Batch, None::<f64>));
        assert!(batch.iter().any(|told| told.starts_with("batch is assumed to be 128; --batch")), "{batch:?}");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("memory is assumed to be 16 GB; --memory") && told[1].contains("machines of 8"),
            "{told:?}"
        );
        let all = asked.with(LimitKind::Memory, 8e9).on(Machines::new(&[16]));
        assert_eq!(assumed(&workload, &all), Vec::<String>::new());
        assert_eq!(assumed(&crate::workload::builtin(), &GivenLimits::default()), Vec::<String>::new());
    }

    #[test]
    fn overrides_win_and_gaps_are_named() {
        let workload = crate::workload::builtin();
        let family = family::of(&workload);
        let file = GivenLimits::default()
            .with(LimitKind::Devices, 8)
            .with(LimitKind::Memory, 1e9)
            .with(LimitKind::Bandwidth, 1e9);
        let asked = GivenLimits::default().with(LimitKind::Devices, 16).with(LimitKind::Microbatches, 32);
        let limits = complete(family, &asked.or(&file)).unwrap();
        assert_eq!((limits.devices, limits.microbatches), (16, 32));
        let error = complete(family, &file).unwrap_err().to_string();
        assert!(error.contains("`mbsInBatch`") && error.contains("--microbatches"), "{error}");
    }
}

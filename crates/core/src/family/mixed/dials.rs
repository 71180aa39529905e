//! Numbers of devices by kind as dials of a workload. A model keeps its other dials, and its costs are derived again.

use crate::{
    cluster::MOST_DEVICES,
    family::{
        dial::{Dial, DialError},
        kinds::KindCount,
        of,
    },
    text::printable,
    units,
    workload::{
        Profile, TrainingProfile, Workload,
        mixed::{DeviceKind, MOST_KINDS, MixedOrigin, MixedProfile},
        sailor::{SailorTables, ZoneDevices},
    },
};

/// Names of the dials, one for each kind.
const IDS: [&str; MOST_KINDS] = ["kind-1", "kind-2", "kind-3", "kind-4"];
/// Dials of the model that all kinds share.
const OF_MODEL: [&str; 3] = ["sequence-length", "precision", "reserve"];

/// Workload on these kinds of devices.
///
/// # Errors
/// [`DialError`] if it lacks the costs of one.
pub(super) fn on_kinds(
    workload: &Workload,
    profile: &MixedProfile,
    kinds: &[KindCount],
) -> Result<Workload, DialError> {
    match profile.origin.as_deref() {
        Some(MixedOrigin::Model(model)) => {
            let one = of_model(workload, model);
            of(&one).on_kinds(&one, kinds)
        }
        Some(MixedOrigin::Tables { tables, model }) => {
            let devices: Vec<ZoneDevices> = kinds.iter().map(zone).collect();
            let read = SailorTables::profile(tables, model, &devices);
            read.map(|profile| profile.over(workload)).map_err(|error| DialError(error.to_string()))
        }
        None => {
            let mut profile = profile.clone();
            profile.kinds.iter_mut().for_each(|own| own.count = 0);
            for kind in kinds {
                let names: Vec<String> = profile.kinds.iter().map(|own| own.id.clone()).collect();
                let Some(own) = profile.kinds.iter_mut().find(|own| own.id.eq_ignore_ascii_case(&kind.id)) else {
                    let (id, name) = (printable(&kind.id), &workload.name);
                    return Err(DialError(format!("{name} has no times on {id}, only on {}", names.join(", "))));
                };
                own.count = kind.count;
                own.price_per_hour = kind.price_per_hour.or(own.price_per_hour);
            }
            Ok(profile.over(workload))
        }
    }
}

/// Devices of a kind in a zone: `a100-40@us-west1-b`.
fn zone(kind: &KindCount) -> ZoneDevices {
    let (id, zone) = kind.id.split_once('@').map_or((kind.id.as_str(), None), |(id, zone)| (id, Some(zone)));
    ZoneDevices { kind: id.into(), zone: zone.map(Into::into), count: kind.count, price_per_hour: kind.price_per_hour }
}

/// Workload of the model alone, on one kind.
fn of_model(workload: &Workload, model: &TrainingProfile) -> Workload {
    Workload { profile: Profile::Training(Box::new(model.clone())), ..workload.clone() }
}

/// Model that the costs are derived from.
pub(super) fn model(profile: &MixedProfile) -> Option<&TrainingProfile> {
    match profile.origin.as_deref() {
        Some(MixedOrigin::Model(model)) => Some(model),
        _ => None,
    }
}

/// Dials of a profile: a number of devices for each kind, and those of the model.
pub(super) fn dials(profile: &MixedProfile) -> Vec<Dial> {
    let of_kind = |(id, kind): (&'static str, &DeviceKind)| {
        let step = |machines: u32| {
            let step = machines.saturating_mul(kind.machine.max(1));
            [kind.count.saturating_sub(step), kind.count.saturating_add(step).min(MOST_DEVICES)].map(|n| n.to_string())
        };
        Dial {
            id,
            label: kind.id.clone().into(),
            help: "devices of this kind, at most",
            value: kind.count.to_string(),
            steps: [step(1), step(4)],
        }
    };
    let kinds = IDS.into_iter().zip(&profile.kinds).map(of_kind);
    let shared = model(profile).into_iter().flat_map(crate::family::Family::dials);
    kinds.chain(shared.filter(|dial| OF_MODEL.contains(&dial.id))).collect()
}

/// Changes a dial.
///
/// # Errors
/// [`DialError`] with the allowed values.
pub(super) fn turned(
    workload: &Workload,
    profile: &MixedProfile,
    id: &str,
    value: &str,
) -> Result<Workload, DialError> {
    if let Some(kind) = IDS.iter().position(|own| *own == id).filter(|&kind| kind < profile.kinds.len()) {
        let count = match value.trim() {
            "0" => 0,
            value => units::parse_count(value).map_err(|error| DialError(error.to_string()))?,
        };
        if count > MOST_DEVICES {
            return Err(DialError(format!("{count} devices are more than {MOST_DEVICES}")));
        }
        let mut kinds = KindCount::of(profile);
        kinds[kind].count = count;
        if kinds.iter().all(|kind| kind.count == 0) {
            return Err(DialError("one device at least must be left".into()));
        }
        return on_kinds(workload, profile, &kinds);
    }
    if !OF_MODEL.contains(&id) {
        return Err(DialError(format!("{} has no setting `{}`", workload.name, printable(id))));
    }
    with_model(workload, profile, &|model| of(model).turned(model, id, value))
}

/// Workload whose costs are derived again from a changed model.
///
/// # Errors
/// [`DialError`] of the change, or if the costs are not derived from a model.
pub(super) fn with_model(
    workload: &Workload,
    profile: &MixedProfile,
    change: &dyn Fn(&Workload) -> Result<Workload, DialError>,
) -> Result<Workload, DialError> {
    let Some(own) = model(profile) else {
        return Err(DialError(format!("{} has measured costs, which nothing changes", workload.name)));
    };
    let changed = change(&of_model(workload, own))?;
    of(&changed).on_kinds(&changed, &KindCount::of(profile))
}

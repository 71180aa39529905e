//! Numbers of devices by kind as dials of a workload. A model keeps its other dials, and its costs are derived again.

use crate::{
    family::{
        dial::{Dial, DialError},
        kinds::{self, KindCount},
        of,
        platform::Platform,
    },
    text::printable,
    workload::{
        Profile, TrainingProfile, Workload,
        mixed::{MixedOrigin, MixedProfile},
        sailor::{SailorTables, ZoneDevices},
    },
};

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

/// Dials of a profile: a number of devices for each kind, and those of the model.
pub(super) fn dials(profile: &MixedProfile) -> Vec<Dial> {
    let own = kinds::dials(&profile.kind_counts(), profile.kinds.iter().map(|kind| kind.machine));
    let shared = profile.model().into_iter().flat_map(crate::family::Family::dials);
    own.into_iter().chain(shared.filter(|dial| OF_MODEL.contains(&dial.id))).collect()
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
    if let Some(asked) = kinds::turned(profile.kind_counts(), id, value) {
        return on_kinds(workload, profile, &asked?);
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
    let Some(own) = profile.model() else {
        return Err(DialError(format!("{} has measured costs, which nothing changes", workload.name)));
    };
    let changed = change(&of_model(workload, own))?;
    of(&changed).on_kinds(&changed, &profile.kind_counts())
}

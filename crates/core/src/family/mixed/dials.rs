//! Numbers of devices by kind, as a request and as dials of a workload.
//!
//! A request such as `16xh100,32xa100-80` turns a model to be trained into a workload of several kinds, and sets the
//! numbers of a workload that has kinds already. A model keeps its other dials, and its costs are derived again.

use super::derived;
use crate::{
    cluster::{LimitKind, MOST_DEVICES},
    family::{
        dial::{Dial, DialError},
        training,
    },
    text::printable,
    units,
    workload::{
        Profile, TrainingProfile, Workload,
        formats::sailor::{SailorTables, ZoneDevices},
        mixed::{MOST_KINDS, MixedOrigin, MixedProfile},
        training::Accelerator,
    },
};

/// Names of the dials, one for each kind.
const IDS: [&str; MOST_KINDS] = ["kind-1", "kind-2", "kind-3", "kind-4"];
/// Dials of the model that all kinds share.
const OF_MODEL: [&str; 3] = ["sequence-length", "precision", "reserve"];

/// Number of devices of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindCount {
    /// Kind: a preset of the hardware, or a kind of the workload.
    pub id: String,
    /// Number of devices, at most.
    pub count: u32,
}

impl KindCount {
    /// Reads a request: `16xh100,32xa100-80`. `None` if the text is a number or a list of numbers.
    ///
    /// # Errors
    /// A sentence with the form.
    pub fn parse(text: &str) -> Option<Result<Vec<KindCount>, String>> {
        let is_kind =
            |part: &str| part.split_once(['x', 'X', '*']).is_some_and(|(_, id)| id.contains(char::is_alphabetic));
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        parts.iter().any(|part| is_kind(part)).then(|| Self::parse_all(&parts))
    }

    /// Request as text: `16xh100,32xa100-80`.
    pub fn list(kinds: &[KindCount]) -> String {
        kinds.iter().map(|kind| format!("{}x{}", kind.count, kind.id)).collect::<Vec<_>>().join(",")
    }

    fn parse_all(parts: &[&str]) -> Result<Vec<KindCount>, String> {
        let mut kinds: Vec<KindCount> = vec![];
        for part in parts {
            let form = || format!("`{}` is no number of devices of a kind; write 16xh100,32xa100-80", printable(part));
            let (count, id) = part.split_once(['x', 'X', '*']).ok_or_else(form)?;
            let count = units::parse_count(count.trim()).ok().filter(|count| (1..=MOST_DEVICES).contains(count));
            let kind = KindCount { id: id.trim().to_ascii_lowercase(), count: count.ok_or_else(form)? };
            if kinds.iter().any(|own| own.id == kind.id) {
                return Err(format!("names {} twice; add both numbers", printable(&kind.id)));
            }
            kinds.push(kind);
        }
        match kinds.len() {
            count if count > MOST_KINDS => {
                Err(format!("names {count} kinds of devices; at most {MOST_KINDS} are planned"))
            }
            _ => Ok(kinds),
        }
    }
}

/// Workload on these kinds of devices.
///
/// # Errors
/// [`DialError`] if the workload has costs of one kind alone, or lacks one of these.
pub fn over(workload: &Workload, kinds: &[KindCount]) -> Result<Workload, DialError> {
    match &workload.profile {
        Profile::Training(profile) => {
            let known = |kind: &KindCount| Ok((accelerator(&kind.id, profile)?, kind.count));
            let kinds: Vec<(Accelerator, u32)> = kinds.iter().map(known).collect::<Result<_, DialError>>()?;
            derive(workload, profile, &kinds)
        }
        Profile::Mixed(profile) => {
            match profile.origin.as_deref() {
                Some(MixedOrigin::Model { model, .. }) => {
                    let known = |kind: &KindCount| Ok((accelerator(&kind.id, model)?, kind.count));
                    let kinds: Vec<(Accelerator, u32)> = kinds.iter().map(known).collect::<Result<_, DialError>>()?;
                    return derive(workload, model, &kinds);
                }
                Some(MixedOrigin::Tables { tables, model }) => {
                    let devices: Vec<ZoneDevices> = kinds.iter().map(zone).collect();
                    let read = SailorTables::profile(tables, model, &devices);
                    return read.map(|profile| with(workload, profile)).map_err(|error| DialError(error.to_string()));
                }
                None => {}
            }
            let mut profile = profile.clone();
            profile.kinds.iter_mut().for_each(|own| own.count = 0);
            for kind in kinds {
                let names: Vec<String> = profile.kinds.iter().map(|own| own.id.clone()).collect();
                let Some(own) = profile.kinds.iter_mut().find(|own| own.id.eq_ignore_ascii_case(&kind.id)) else {
                    let (id, name) = (printable(&kind.id), &workload.name);
                    return Err(DialError(format!("{name} has no times on {id}, only on {}", names.join(", "))));
                };
                own.count = kind.count;
            }
            Ok(with(workload, *profile))
        }
        _ => Err(DialError(format!(
            "{} has times of one kind of device; several kinds need a model to be trained or a table of times by kind",
            workload.name
        ))),
    }
}

/// Devices of a kind in a zone: `a100-40@us-west1-b`.
fn zone(kind: &KindCount) -> ZoneDevices {
    let (id, zone) = kind.id.split_once('@').map_or((kind.id.as_str(), None), |(id, zone)| (id, Some(zone)));
    ZoneDevices { kind: id.into(), zone: zone.map(Into::into), count: kind.count, usd_per_hour: None }
}

/// Accelerator of a kind: the model's own, or a preset.
fn accelerator(id: &str, profile: &TrainingProfile) -> Result<Accelerator, DialError> {
    match profile.accelerator {
        own if own.id == id => Ok(own),
        _ => training::request::accelerator(id).map_err(DialError),
    }
}

fn derive(workload: &Workload, model: &TrainingProfile, kinds: &[(Accelerator, u32)]) -> Result<Workload, DialError> {
    let profile = derived::profile(model, kinds).map_err(DialError)?;
    Ok(with(workload, profile))
}

/// Workload with another profile of kinds, whose devices are its limit.
fn with(workload: &Workload, profile: MixedProfile) -> Workload {
    let mut workload = workload.clone();
    workload.limits.set(LimitKind::Devices, Some(profile.devices()));
    workload.limits.set(LimitKind::Memory, None::<f64>);
    workload.profile = Profile::Mixed(Box::new(profile));
    workload
}

/// Model that the costs are derived from.
pub(super) fn model(profile: &MixedProfile) -> Option<&TrainingProfile> {
    match profile.origin.as_deref() {
        Some(MixedOrigin::Model { model, .. }) => Some(model),
        _ => None,
    }
}

/// Dials of a profile: a number of devices for each kind, and those of the model.
pub(super) fn dials(profile: &MixedProfile) -> Vec<Dial> {
    let of_kind = |(id, kind): (&'static str, &crate::workload::mixed::DeviceKind)| {
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
    let of_model = model(profile).into_iter().flat_map(training::dials::dials);
    kinds.chain(of_model.filter(|dial| OF_MODEL.contains(&dial.id))).collect()
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
        let count = units::parse_count(value.trim()).map_err(|error| DialError(error.to_string()))?;
        if count > MOST_DEVICES {
            return Err(DialError(format!("{count} devices are more than {MOST_DEVICES}")));
        }
        let mut profile = profile.clone();
        profile.kinds[kind].count = count;
        if profile.devices() == 0 {
            return Err(DialError("one device at least must be left".into()));
        }
        return again(workload, profile);
    }
    if !OF_MODEL.contains(&id) {
        return Err(DialError(format!("{} has no setting `{}`", workload.name, printable(id))));
    }
    with_model(workload, profile, &|model| crate::family::of(model).turned(model, id, value))
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
    let turned = change(&Workload { profile: Profile::Training(Box::new(own.clone())), ..workload.clone() })?;
    let mut profile = profile.clone();
    if let (Some(MixedOrigin::Model { model, .. }), Some(turned)) = (profile.origin.as_deref_mut(), turned.training()) {
        model.clone_from(turned);
    }
    again(workload, profile)
}

/// Workload of a profile whose numbers or model changed: derived costs follow.
fn again(workload: &Workload, profile: MixedProfile) -> Result<Workload, DialError> {
    match profile.origin.as_deref() {
        Some(MixedOrigin::Model { model, accelerators }) => {
            let counts = profile.kinds.iter().map(|kind| kind.count);
            let kinds: Vec<(Accelerator, u32)> = accelerators.iter().copied().zip(counts).collect();
            derive(workload, model, &kinds)
        }
        _ => Ok(with(workload, profile)),
    }
}

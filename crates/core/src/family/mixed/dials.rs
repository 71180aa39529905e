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
        mixed::{DeviceKind, MOST_KINDS, MixedOrigin, MixedProfile},
        training::Accelerator,
    },
};

/// Names of the dials, one for each kind.
const IDS: [&str; MOST_KINDS] = ["kind-1", "kind-2", "kind-3", "kind-4"];
/// Dials of the model that all kinds share.
const OF_MODEL: [&str; 3] = ["sequence-length", "precision", "reserve"];

/// Number of devices of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct KindCount {
    /// Kind: a preset of the hardware, or a kind of the workload.
    pub id: String,
    /// Number of devices, at most.
    pub count: u32,
    /// Price of a device for an hour, if given.
    pub price_per_hour: Option<f64>,
}

impl KindCount {
    /// Reads a request: `16xh100,32xa100-80`, or with prices `16xh100:2.50,32xa100-80:1.20`. `None` if the text is a number or a list of numbers.
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
        let one = |kind: &KindCount| {
            let price = kind.price_per_hour.map_or_else(String::new, |price| format!(":{price}"));
            format!("{}x{}{price}", kind.count, kind.id)
        };
        kinds.iter().map(one).collect::<Vec<_>>().join(",")
    }

    /// Numbers of devices of a workload's kinds.
    pub fn of(profile: &MixedProfile) -> Vec<KindCount> {
        let own = |kind: &DeviceKind| KindCount {
            id: kind.id.clone(),
            count: kind.count,
            price_per_hour: kind.price_per_hour,
        };
        profile.kinds.iter().map(own).collect()
    }

    fn parse_all(parts: &[&str]) -> Result<Vec<KindCount>, String> {
        let mut kinds: Vec<KindCount> = vec![];
        for part in parts {
            let form = || format!("`{}` is no number of devices of a kind; write 16xh100,32xa100-80", printable(part));
            let (count, id) = part.split_once(['x', 'X', '*']).ok_or_else(form)?;
            let count = units::parse_count(count.trim()).ok().filter(|count| (1..=MOST_DEVICES).contains(count));
            let (id, price) = id.split_once(':').map_or((id, None), |(id, price)| (id, Some(price)));
            let price_per_hour =
                price.map(|price| price.trim().parse().ok().filter(price_is_possible).ok_or_else(form));
            let kind = KindCount {
                id: id.trim().to_ascii_lowercase(),
                count: count.ok_or_else(form)?,
                price_per_hour: price_per_hour.transpose()?,
            };
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

fn price_is_possible(price: &f64) -> bool {
    *price > 0.0 && *price < 1e9
}

/// Workload on these kinds of devices.
///
/// # Errors
/// [`DialError`] if the workload has costs of one kind alone, or lacks one of these.
pub fn over(workload: &Workload, kinds: &[KindCount]) -> Result<Workload, DialError> {
    match &workload.profile {
        Profile::Training(profile) => derive(workload, profile, &known(kinds, profile)?),
        Profile::Mixed(profile) => {
            match profile.origin.as_deref() {
                Some(MixedOrigin::Model { model, .. }) => return derive(workload, model, &known(kinds, model)?),
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
                own.price_per_hour = kind.price_per_hour.or(own.price_per_hour);
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
    ZoneDevices { kind: id.into(), zone: zone.map(Into::into), count: kind.count, price_per_hour: kind.price_per_hour }
}

/// Accelerator of a kind: the model's own, or a preset.
fn accelerator(id: &str, profile: &TrainingProfile) -> Result<Accelerator, DialError> {
    match profile.accelerator {
        own if own.id == id => Ok(own),
        _ => training::request::accelerator(id).map_err(DialError),
    }
}

/// Accelerator of a kind, its number of devices and their price.
type PricedKind = (Accelerator, u32, Option<f64>);

/// Requested kinds with their accelerators.
fn known(kinds: &[KindCount], model: &TrainingProfile) -> Result<Vec<PricedKind>, DialError> {
    kinds.iter().map(|kind| Ok((accelerator(&kind.id, model)?, kind.count, kind.price_per_hour))).collect()
}

fn derive(workload: &Workload, model: &TrainingProfile, kinds: &[PricedKind]) -> Result<Workload, DialError> {
    let counts: Vec<(Accelerator, u32)> = kinds.iter().map(|&(accelerator, count, _)| (accelerator, count)).collect();
    let mut profile = derived::profile(model, &counts).map_err(DialError)?;
    for (kind, (.., price)) in profile.kinds.iter_mut().zip(kinds) {
        kind.price_per_hour = *price;
    }
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
            let own =
                |(&accelerator, kind): (&Accelerator, &DeviceKind)| (accelerator, kind.count, kind.price_per_hour);
            let kinds: Vec<PricedKind> = accelerators.iter().zip(&profile.kinds).map(own).collect();
            derive(workload, model, &kinds)
        }
        _ => Ok(with(workload, profile)),
    }
}

//! Limits carried over from one workload to the next. These are limits set by hand or by a flag that the new file does
//! not state, and limits without which it cannot be planned. Limits stated by the old file are not carried over.

use crate::{
    cluster::{GivenLimits, LimitError, LimitKind, Limits},
    family,
    tui::model::Session,
    workload::Workload,
};

/// Global batch if nothing states one.
const DEFAULT_BATCH: u32 = 128;

/// Limits for a newly opened workload.
pub(super) struct Carried {
    /// Limits that override its file.
    pub stated: GivenLimits,
    /// Limits carried over from the workload before.
    pub kept: Vec<LimitKind>,
}

impl Session {
    /// Limits set by flags, and those changed since.
    fn set_by_hand(&self) -> GivenLimits {
        let mut set = self.asked_limits.clone();
        for kind in LimitKind::ALL {
            if self.limits.get(kind) != self.first_limits.get(kind) {
                set.set(kind, Some(self.limits.get(kind)));
            }
        }
        if self.limits.machines != self.first_limits.machines {
            set.machines = Some(self.limits.machines.clone());
        }
        set
    }

    /// Limits for a workload opened after the one on the screen.
    ///
    /// # Errors
    /// [`LimitError`] if neither its file nor the screen states a required limit, or if one is too large.
    pub(super) fn carried(&self, workload: &Workload) -> Result<Carried, LimitError> {
        let (here, file) = (GivenLimits::from(&self.limits), &workload.limits);
        let by_hand = self.set_by_hand();
        let unstated = self.defaults.unstated_by(&workload.limits);
        let mut stated = file.or(&by_hand).or(&unstated).maybe(LimitKind::Cpus, workload.limits.cpus());
        let mut kept: Vec<LimitKind> = LimitKind::ALL
            .into_iter()
            .filter(|&kind| kind != LimitKind::Cpus && file.get(kind).is_none() && by_hand.get(kind).is_some())
            .collect();
        while let Err(missing) = family::resolve(workload, &stated) {
            let LimitError::Missing { flag: wanted, .. } = missing else { return Err(missing) };
            let needed = LimitKind::ALL.into_iter().find(|kind| kind.flag() == wanted);
            // The sizes of machines follow from the number of devices.
            let kind = needed.unwrap_or(LimitKind::Devices);
            let value = here.get(kind).or((kind == LimitKind::Batch).then_some(f64::from(DEFAULT_BATCH)));
            if stated.get(kind).is_some() || value.is_none() {
                return Err(missing);
            }
            stated.set(kind, value);
            kept.extend(here.get(kind).map(|_| kind));
        }
        Ok(Carried { stated, kept })
    }
}

/// Message on the origin of limits (kept, assumed, stated by the file): `kept devices 16; assumed batch 128; the file
/// states memory`
pub(super) fn origin(workload: &Workload, limits: &Limits, kept: &[LimitKind]) -> String {
    let stated = &workload.limits;
    let family = family::of(workload);
    // A file that names no CPUs means none.
    let states = |kind: LimitKind| kind == LimitKind::Cpus || stated.get(kind).is_some();
    let (stated, rest): (Vec<LimitKind>, Vec<LimitKind>) = family.limits().iter().partition(|kind| states(**kind));
    if rest.is_empty() {
        return "all limits from the file".into();
    }
    let told_elsewhere = |kind: LimitKind| family.assumed_limits().iter().any(|(own, _)| *own == kind);
    let (kept, assumed): (Vec<LimitKind>, Vec<LimitKind>) = rest.into_iter().partition(|kind| kept.contains(kind));
    let assumed: Vec<LimitKind> = assumed.into_iter().filter(|kind| !told_elsewhere(*kind)).collect();
    let told = |word: &str, kinds: &[LimitKind]| {
        let value = |&kind: &LimitKind| format!("{} {}", kind.label(), kind.format(limits.get(kind)));
        let values: Vec<String> = kinds.iter().map(value).collect();
        (!values.is_empty()).then(|| format!("{word} {}", values.join(", ")))
    };
    let mut told: Vec<String> = told("kept", &kept).into_iter().chain(told("assumed", &assumed)).collect();
    let stated: Vec<&str> = stated.iter().map(|kind| kind.label()).collect();
    let stated = if stated.is_empty() { "nothing".into() } else { stated.join(", ") };
    told.push(format!("the file states {stated}"));
    told.join("; ")
}

//! Changed dials of a workload, kept over sessions and reloads of its file.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    family::{
        self,
        dial::{self, Dial},
        kinds::{self, KindCount},
    },
    workload::Workload,
};

/// Values of changed dials, by id.
pub(super) type Turned = BTreeMap<String, String>;

/// Dials that differ from their first values.
pub(super) fn since(first: &[Dial], now: &[Dial]) -> Turned {
    let moved = now.iter().filter(|dial| first.iter().any(|own| own.id == dial.id && own.value != dial.value));
    moved.map(|dial| (dial.id.into(), dial.value.clone())).collect()
}

/// Values of the dials with these ids.
pub(super) fn values(dials: &[Dial], ids: &[String]) -> Turned {
    let named = dials.iter().filter(|dial| ids.iter().any(|id| id == dial.id));
    named.map(|dial| (dial.id.into(), dial.value.clone())).collect()
}

/// Reapplies earlier changes to a reloaded workload: a stack with its settings, an accelerator with the links of a
/// topology, calibrated constants, and their notes.
pub(super) fn over(read: Arc<Workload>, (before, asked): &(Arc<Workload>, Arc<Workload>)) -> Arc<Workload> {
    let family = family::of(&read);
    let read = if family.has_platform() { Arc::new(family.with_changes(&read, before, asked)) } else { read };
    let on_kinds =
        Some(KindCount::of(asked)).filter(|kinds| !kinds.is_empty()).and_then(|kinds| kinds::over(&read, &kinds).ok());
    on_kinds.map_or(read, Arc::new)
}

/// Sets dials of a workload in the order in which they are shown. Another accelerator comes first, because it brings
/// its own memory and number formats. Dials and values that the workload does not support are ignored.
pub(super) fn again(workload: Arc<Workload>, turned: &Turned) -> Arc<Workload> {
    let ids: Vec<&str> = dial::dials(&workload).iter().map(|dial| dial.id).collect();
    let values = ids.into_iter().filter_map(|id| Some((id, turned.get(id)?)));
    values.fold(workload, |now, (id, value)| match dial::turned(&now, id, value) {
        Ok(next) => Arc::new(next),
        Err(_) => now,
    })
}

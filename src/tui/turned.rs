//! Dials of a workload that were turned, kept over sessions and readings of its file.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    family::{
        self,
        dial::{self, Dial},
    },
    workload::Workload,
};

/// Values of dials that were turned, by id.
pub(super) type Turned = BTreeMap<String, String>;

/// Which dials stand elsewhere than they first did.
pub(super) fn since(first: &[Dial], now: &[Dial]) -> Turned {
    let moved = now.iter().filter(|dial| first.iter().any(|own| own.id == dial.id && own.value != dial.value));
    moved.map(|dial| (dial.id.into(), dial.value.clone())).collect()
}

/// Where the dials of these ids stand.
pub(super) fn values(dials: &[Dial], ids: &[String]) -> Turned {
    let named = dials.iter().filter(|dial| ids.iter().any(|id| id == dial.id));
    named.map(|dial| (dial.id.into(), dial.value.clone())).collect()
}

/// A workload that was read anew with what was put over it before: a stack with its settings, an accelerator with the links
/// of a topology, calibrated constants, and what is told of them.
pub(super) fn over(read: Arc<Workload>, (before, asked): &(Arc<Workload>, Arc<Workload>)) -> Arc<Workload> {
    let family = family::of(&read);
    if family.has_platform() { Arc::new(family.with_changes(&read, before, asked)) } else { read }
}

/// A workload with its dials turned so, in the order in which they are shown: another accelerator brings memory and number
/// formats of its own, so it comes first. What the workload has not, or does not take, is passed over.
pub(super) fn again(workload: Arc<Workload>, turned: &Turned) -> Arc<Workload> {
    let ids: Vec<&str> = dial::dials(&workload).iter().map(|dial| dial.id).collect();
    let values = ids.into_iter().filter_map(|id| Some((id, turned.get(id)?)));
    values.fold(workload, |now, (id, value)| match dial::turned(&now, id, value) {
        Ok(next) => Arc::new(next),
        Err(_) => now,
    })
}

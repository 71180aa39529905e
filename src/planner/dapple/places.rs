//! Everywhere a stage can sit: the sets of devices that the three placement policies offer, one after the other.
//!
//! Every policy takes the free devices of a machine in order, so what is occupied is known from a count for each machine;
//! a [`Place`] is a step from one such state to another. With `n` devices on few machines there are some hundred places;
//! on many machines there are too many, and [`Places::fresh_only`] follows the first policy alone.

use rustc_hash::FxHashMap;

use super::hpgo::placement::{self, Devices};
use crate::cluster::{Links, Machines};

/// Places that are looked at, at the most.
const MOST_PLACES: usize = 3000;

/// A stage's devices beside those of the stages before it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Devices of the stages before.
    pub(super) occupied_before: u32,
    /// Devices of the stages before and this one.
    pub(super) occupied_after: u32,
    /// Its devices.
    pub(super) devices: Devices,
    /// Number of its devices.
    pub(super) count: u32,
    /// Seconds to all-reduce a byte over them.
    pub(super) all_reduce: f64,
    /// Where the next stage can sit, with the seconds a byte takes to get there.
    pub(super) next: Vec<(usize, f64)>,
}

/// All places.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// In an order in which every place comes before its next ones.
    pub(super) all: Vec<Place>,
    /// Whether all three policies were followed.
    pub(super) complete: bool,
}

impl Places {
    /// The places on some machines for stages of at most `widest` devices; only those of the first policy if there are too
    /// many.
    pub(super) fn new(machines: &Machines, links: &Links, widest: u32) -> Self {
        Self::explore(machines, links, widest, &|occupied, need| placement::next(machines, occupied, need), MOST_PLACES)
            .map_or_else(|| Self::fresh_only(machines, links, widest), |all| Places { all, complete: true })
    }

    fn fresh_only(machines: &Machines, links: &Links, widest: u32) -> Self {
        let first = |occupied: Devices, need: u32| {
            placement::next(machines, occupied, need).into_iter().take(1).collect::<Vec<_>>()
        };
        let in_order = |occupied: Devices, need: u32| {
            // Devices in order, whatever the machines: what is occupied is then a number.
            let from = occupied.count_ones();
            if from + need > machines.devices() {
                return vec![];
            }
            vec![(from..from + need).fold(0, |set, device| set | placement::bit(device))]
        };
        let all = Self::explore(machines, links, widest, &first, MOST_PLACES)
            .or_else(|| Self::explore(machines, links, widest, &in_order, usize::MAX))
            .unwrap_or_default();
        Places { all, complete: false }
    }

    fn explore(
        machines: &Machines,
        links: &Links,
        widest: u32,
        offers: &dyn Fn(Devices, u32) -> Vec<Devices>,
        most: usize,
    ) -> Option<Vec<Place>> {
        let n = machines.devices();
        // Occupied sets in the order they are met; those with fewer devices come first in the end.
        let mut starts: Vec<Devices> = vec![0];
        let mut known: FxHashMap<Devices, ()> = FxHashMap::from_iter([(0, ())]);
        let mut places: Vec<(Devices, Place)> = vec![];
        let mut at = 0;
        while at < starts.len() {
            let occupied = starts[at];
            at += 1;
            for need in 1..=widest.min(n - occupied.count_ones()) {
                for devices in offers(occupied, need) {
                    let after = occupied | devices;
                    if known.insert(after, ()).is_none() {
                        starts.push(after);
                    }
                    let ids = placement::ids(devices);
                    places.push((
                        occupied,
                        Place {
                            occupied_before: occupied.count_ones(),
                            occupied_after: after.count_ones(),
                            devices,
                            count: need,
                            all_reduce: links.all_reduce_s(machines, &ids, 1.0),
                            next: vec![],
                        },
                    ));
                    if places.len() > most {
                        return None;
                    }
                }
            }
        }
        places.sort_by_key(|(before, place)| (place.occupied_before, *before, place.count, place.devices));
        let mut from: FxHashMap<Devices, Vec<usize>> = FxHashMap::default();
        for (at, (before, _)) in places.iter().enumerate() {
            from.entry(*before).or_default().push(at);
        }
        for at in 0..places.len() {
            let after = places[at].0 | places[at].1.devices;
            let own = placement::ids(places[at].1.devices);
            let next = from.get(&after).into_iter().flatten();
            let next =
                next.map(|&to| (to, links.transfer_per_byte(machines, &own, &placement::ids(places[to].1.devices))));
            places[at].1.next = next.collect();
        }
        Some(places.into_iter().map(|(_, place)| place).collect())
    }
}

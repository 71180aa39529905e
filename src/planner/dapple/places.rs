//! Everywhere a stage can sit: the sets of devices that the three placement policies offer, one after the other.
//!
//! Every policy takes the free devices of a machine in order, so what is occupied is known from a count for each machine;
//! a [`Place`] is a step from one such state to another. With `n` devices on few machines there are some hundred places.
//! On many machines there are too many, and stages take the devices in order, whatever the machines: what is occupied is
//! then a number. Where even that is too much, a stage begins and ends at a block of devices; whole machines, if it must.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::hpgo::placement::{self, Devices};
use crate::cluster::{Links, Machines};

/// Places that are looked at, at the most, where all policies are followed.
const MOST_PLACES: usize = 3000;

/// How many blocks the devices are cut into where there are too many: a coarse look first, so that a finer one knows early
/// what it has to beat. `blocks²` places each.
const BLOCKS: [usize; 3] = [16, 48, 128];
/// Places times positions of the network that are looked at, at the most, where places are blocks; but for the coarsest ones.
const MOST_LOOKED: usize = 16_000_000;

/// A stage's devices beside those of the stages before it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Devices of the stages before.
    pub(super) occupied_before: u32,
    /// Devices of the stages before and this one.
    pub(super) occupied_after: u32,
    /// Its devices, as runs of consecutive ones.
    runs: Vec<Range<u32>>,
    /// Number of its devices.
    pub(super) count: u32,
    /// Seconds to all-reduce a byte over them.
    pub(super) all_reduce: f64,
    /// Where the next stage can sit.
    pub(super) next: Next,
}

/// Places side by side that can follow one.
#[derive(Debug, Clone, Default)]
pub(super) struct Next {
    /// The first of them.
    pub(super) first: usize,
    /// By each of them: the seconds a byte takes to get there.
    pub(super) per_byte: Vec<f64>,
}

impl Place {
    /// Its devices, ascending.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.runs.iter().cloned().flatten().collect()
    }
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
    /// The places on some machines for stages of at most `widest` devices: all of them, or, where there are too many,
    /// coarse ones before finer ones, the fewer the more positions the network has.
    pub(super) fn ladder(machines: &Machines, links: &Links, widest: u32, positions: usize) -> Vec<Places> {
        let policies = |occupied: Devices, need: u32| placement::next(machines, occupied, need);
        if machines.devices() <= placement::MOST
            && let Some(all) = explore(machines, links, widest, &policies)
        {
            return vec![Places { all, complete: true }];
        }
        let mut rungs = vec![];
        let mut known = 0;
        let most = (2 * MOST_LOOKED / positions.max(1)).isqrt().max(BLOCKS[0]);
        for blocks in BLOCKS.map(|blocks| blocks.min(most)) {
            let ends = block_ends(machines, blocks);
            if ends.len() > known {
                known = ends.len();
                rungs.push(Places { all: in_order(machines, links, widest, &ends), complete: false });
            }
        }
        rungs
    }
}

/// The places that are offered, one after the other; `None` if there are more than [`MOST_PLACES`].
fn explore(
    machines: &Machines,
    links: &Links,
    widest: u32,
    offers: &dyn Fn(Devices, u32) -> Vec<Devices>,
) -> Option<Vec<Place>> {
    let n = machines.devices();
    // Occupied sets in the order they are met; those with fewer devices come first in the end.
    let mut starts = vec![Devices::default()];
    let mut known: FxHashMap<Devices, ()> = FxHashMap::from_iter([(Devices::default(), ())]);
    let mut places: Vec<(Devices, Devices, Place)> = vec![];
    let mut at = 0;
    while at < starts.len() {
        let occupied = starts[at];
        at += 1;
        for need in 1..=widest.min(n - occupied.count()) {
            for devices in offers(occupied, need) {
                let after = occupied | devices;
                if known.insert(after, ()).is_none() {
                    starts.push(after);
                }
                let ids = placement::ids(devices);
                let place = Place {
                    occupied_before: occupied.count(),
                    occupied_after: after.count(),
                    all_reduce: links.all_reduce_s(machines, &ids, 1.0),
                    runs: runs(&ids),
                    count: need,
                    next: Next::default(),
                };
                places.push((occupied, devices, place));
                if places.len() > MOST_PLACES {
                    return None;
                }
            }
        }
    }
    places.sort_by_key(|(before, devices, place)| (place.occupied_before, *before, place.count, *devices));
    // Those from one occupied set lie side by side.
    let mut from: FxHashMap<Devices, Range<usize>> = FxHashMap::default();
    for (at, (before, ..)) in places.iter().enumerate() {
        from.entry(*before).or_insert(at..at).end = at + 1;
    }
    for at in 0..places.len() {
        let Some(next) = from.get(&(places[at].0 | places[at].1)) else { continue };
        let own = placement::ids(places[at].1);
        let per_byte =
            places[next.clone()].iter().map(|to| links.transfer_per_byte(machines, &own, &placement::ids(to.1)));
        places[at].2.next = Next { first: next.start, per_byte: per_byte.collect() };
    }
    Some(places.into_iter().map(|(.., place)| place).collect())
}

/// Ascending numbers as runs.
fn runs(ids: &[u32]) -> Vec<Range<u32>> {
    let mut runs: Vec<Range<u32>> = vec![];
    for &id in ids {
        match runs.last_mut() {
            Some(run) if run.end == id => run.end += 1,
            _ => runs.push(id..id + 1),
        }
    }
    runs
}

/// Where blocks of devices may end, 0 among them: as many as `most` blocks allow, evenly in each machine, else at every so
/// many machines.
fn block_ends(machines: &Machines, most: usize) -> Vec<u32> {
    let sizes: Vec<u32> = machines.sizes().iter().map(|&size| u32::from(size)).collect();
    let largest = sizes.iter().copied().max().unwrap_or(1);
    let within = |step: u32| {
        let mut ends = vec![0];
        let mut first = 0;
        for &size in &sizes {
            ends.extend((1..size.div_ceil(step)).map(|i| first + i * step));
            first += size;
            ends.push(first);
        }
        ends
    };
    if let Some(step) =
        (1..largest).find(|&step| sizes.iter().map(|size| size.div_ceil(step) as usize).sum::<usize>() <= most)
    {
        return within(step);
    }
    let whole = within(largest);
    let every = (whole.len() - 1).div_ceil(most);
    let last = whole.len() - 1;
    whole.into_iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, end)| end).collect()
}

/// Every run of blocks; `O(blocks³)` time and memory for what follows what.
fn in_order(machines: &Machines, links: &Links, widest: u32, ends: &[u32]) -> Vec<Place> {
    // By device: its machine's first one.
    let home: Vec<u32> = (0..machines.sizes().len())
        .flat_map(|machine| vec![machines.first_of(machine); usize::from(machines.sizes()[machine])])
        .collect();
    let one_machine = |run: &Range<u32>| home[run.start as usize] == home[run.end as usize - 1];
    let mut places: Vec<Place> = vec![];
    let mut begins = vec![0; ends.len() + 1];
    for (i, &start) in ends.iter().enumerate() {
        begins[i] = places.len();
        for &end in ends[i + 1..].iter().filter(|&&end| end - start <= widest) {
            let run = start..end;
            let count = end - start;
            places.push(Place {
                occupied_before: start,
                occupied_after: end,
                all_reduce: links.all_reduce_of(count as usize, one_machine(&run), 1.0),
                runs: vec![run],
                count,
                next: Next::default(),
            });
        }
    }
    begins[ends.len()] = places.len();
    for at in 0..places.len() {
        let own = places[at].runs[0].clone();
        let Ok(after) = ends.binary_search(&own.end) else { continue };
        let next = begins[after]..begins[after + 1];
        let per_byte = places[next.clone()].iter().map(|to| {
            let receivers = &to.runs[0];
            let inside = own.end.saturating_sub(own.start.max(home[receivers.start as usize]));
            let outside = (own.end - own.start - inside) as usize;
            links.transfer_of(outside, own.len(), one_machine(receivers))
        });
        places[at].next = Next { first: next.start, per_byte: per_byte.collect() };
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::PUBLISHED_LINKS;

    #[test]
    fn blocks_are_as_fine_as_there_is_room_for() {
        let machines = Machines::new(&[4, 4, 2]).unwrap();
        assert_eq!(block_ends(&machines, 10), (0..=10).collect::<Vec<_>>());
        assert_eq!(block_ends(&machines, 5), [0, 2, 4, 6, 8, 10]);
        assert_eq!(block_ends(&machines, 3), [0, 4, 8, 10]);
        assert_eq!(block_ends(&machines, 2), [0, 8, 10]);
    }

    #[test]
    fn long_networks_are_planned_over_coarser_blocks() {
        let machines = Machines::new(&[8; 40]).unwrap();
        let finest = |positions: usize| {
            let rungs = Places::ladder(&machines, &PUBLISHED_LINKS, 320, positions);
            assert!(rungs.iter().all(|rung| !rung.complete));
            let places: Vec<usize> = rungs.iter().map(|rung| rung.all.len()).collect();
            assert!(places.is_sorted() && places[0] <= 16 * 17 / 2, "{places:?}");
            places[places.len() - 1]
        };
        assert!(finest(10) > 3_000 && finest(6_000) * 6_000 <= 16_000_000 && finest(1_000_000) <= 136);
    }

    #[test]
    fn costs_of_runs_are_those_of_their_devices() {
        let machines = Machines::new(&[4, 4, 2]).unwrap();
        let places = in_order(&machines, &PUBLISHED_LINKS, 6, &block_ends(&machines, 5));
        assert!(places.iter().all(|place| place.count <= 6) && places.len() == 12);
        for place in &places {
            assert_eq!(place.all_reduce, PUBLISHED_LINKS.all_reduce_s(&machines, &place.ids(), 1.0));
            for (to, &per_byte) in (place.next.first..).zip(&place.next.per_byte) {
                assert_eq!(places[to].occupied_before, place.occupied_after);
                assert_eq!(per_byte, PUBLISHED_LINKS.transfer_per_byte(&machines, &place.ids(), &places[to].ids()));
            }
        }
    }
}

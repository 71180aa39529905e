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
    /// Its kind among those where the same is occupied before: to places of one kind all ways take the same, from wherever.
    pub(super) kind: usize,
    /// Where the next stage can sit: the number of those places among [`Places::beginnings`].
    pub(super) next: usize,
    /// By kind of those: the seconds a byte takes to get there.
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
    /// By what is occupied before each.
    pub(super) all: Vec<Place>,
    /// Those where the same is occupied before, side by side, the last of them empty.
    pub(super) beginnings: Vec<Range<usize>>,
    /// Whether all three policies were followed.
    pub(super) complete: bool,
}

impl Places {
    /// The places on some machines for stages of at most `widest` devices: all of them, or, where there are too many,
    /// coarse ones before finer ones, the fewer the more positions the network has.
    pub(super) fn ladder(machines: &Machines, links: &Links, widest: u32, positions: usize) -> Vec<Places> {
        Self::rungs(machines, links, widest, positions, BLOCKS.len())
    }

    /// The coarsest of them.
    pub(super) fn coarsest(machines: &Machines, links: &Links, widest: u32, positions: usize) -> Option<Places> {
        Self::rungs(machines, links, widest, positions, 1).pop()
    }

    /// At most so many of them, the coarsest.
    fn rungs(machines: &Machines, links: &Links, widest: u32, positions: usize, count: usize) -> Vec<Places> {
        let policies = |occupied: Devices, need: u32| placement::next(machines, occupied, need);
        if machines.devices() <= placement::MOST
            && let Some(places) = explore(machines, links, widest, &policies)
        {
            return vec![places];
        }
        let mut rungs = vec![];
        let mut known = 0;
        let most = (2 * MOST_LOOKED / positions.max(1)).isqrt().max(BLOCKS[0]);
        for blocks in BLOCKS[..count].iter().map(|&blocks| blocks.min(most)) {
            let ends = block_ends(machines, blocks);
            if ends.len() > known {
                known = ends.len();
                rungs.push(in_order(machines, links, widest, &ends));
            }
        }
        rungs
    }

    /// Places that know which beginning is next, with what a byte takes from one to another.
    fn new(
        mut all: Vec<Place>,
        beginnings: Vec<Range<usize>>,
        per_byte: impl Fn(usize, usize) -> f64,
        complete: bool,
    ) -> Self {
        let mut leading: Vec<Vec<usize>> = vec![vec![]; beginnings.len()];
        all.iter().enumerate().for_each(|(at, place)| leading[place.next].push(at));
        for (beginning, from) in beginnings.iter().zip(leading) {
            // Kinds by the ways to them from each.
            let mut kinds: FxHashMap<Vec<u64>, usize> = FxHashMap::default();
            for to in beginning.clone() {
                let ways: Vec<f64> = from.iter().map(|&at| per_byte(at, to)).collect();
                let known = kinds.len();
                all[to].kind = *kinds.entry(ways.iter().map(|way| way.to_bits()).collect()).or_insert(known);
                if kinds.len() > known {
                    from.iter().zip(ways).for_each(|(&at, way)| all[at].per_byte.push(way));
                }
            }
        }
        Places { all, beginnings, complete }
    }
}

/// The places that are offered, one after the other; `None` if there are more than [`MOST_PLACES`].
fn explore(
    machines: &Machines,
    links: &Links,
    widest: u32,
    offers: &dyn Fn(Devices, u32) -> Vec<Devices>,
) -> Option<Places> {
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
                    kind: 0,
                    next: 0,
                    per_byte: vec![],
                };
                places.push((occupied, devices, place));
                if places.len() > MOST_PLACES {
                    return None;
                }
            }
        }
    }
    places.sort_by_key(|(before, devices, place)| (place.occupied_before, *before, place.count, *devices));
    let mut numbers: FxHashMap<Devices, usize> = FxHashMap::default();
    let mut beginnings: Vec<Range<usize>> = vec![];
    for (at, (before, ..)) in places.iter().enumerate() {
        let number = *numbers.entry(*before).or_insert(beginnings.len());
        if number == beginnings.len() {
            beginnings.push(at..at);
        }
        beginnings[number].end = at + 1;
    }
    for (before, devices, place) in &mut places {
        place.next = numbers.get(&(*before | *devices)).copied().unwrap_or(beginnings.len());
    }
    beginnings.push(places.len()..places.len());
    let ids: Vec<Vec<u32>> = places.iter().map(|(_, devices, _)| placement::ids(*devices)).collect();
    let per_byte = |at: usize, to: usize| links.transfer_per_byte(machines, &ids[at], &ids[to]);
    Some(Places::new(places.into_iter().map(|(.., place)| place).collect(), beginnings, per_byte, true))
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

/// Every run of blocks; `O(blocks³)` time, `O(blocks²)` memory.
fn in_order(machines: &Machines, links: &Links, widest: u32, ends: &[u32]) -> Places {
    // By device: its machine's first one.
    let home: Vec<u32> = (0..machines.sizes().len())
        .flat_map(|machine| vec![machines.first_of(machine); usize::from(machines.sizes()[machine])])
        .collect();
    let one_machine = |run: &Range<u32>| home[run.start as usize] == home[run.end as usize - 1];
    let mut places: Vec<Place> = vec![];
    let mut beginnings = vec![];
    for (i, &start) in ends.iter().enumerate() {
        let first = places.len();
        for (next, &end) in ends.iter().enumerate().skip(i + 1).filter(|&(_, &end)| end - start <= widest) {
            let run = start..end;
            let count = end - start;
            places.push(Place {
                occupied_before: start,
                occupied_after: end,
                all_reduce: links.all_reduce_of(count as usize, one_machine(&run), 1.0),
                runs: vec![run],
                count,
                kind: 0,
                next,
                per_byte: vec![],
            });
        }
        beginnings.push(first..places.len());
    }
    let runs: Vec<Range<u32>> = places.iter().map(|place| place.runs[0].clone()).collect();
    let per_byte = |at: usize, to: usize| {
        let (own, receivers) = (&runs[at], &runs[to]);
        let inside = own.end.saturating_sub(own.start.max(home[receivers.start as usize]));
        let outside = (own.end - own.start - inside) as usize;
        links.transfer_of(outside, own.len(), one_machine(receivers))
    };
    Places::new(places, beginnings, per_byte, false)
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
        assert!(places.all.iter().all(|place| place.count <= 6) && places.all.len() == 12);
        costs_are_those_of_devices(&machines, &places);
    }

    #[test]
    fn costs_of_what_policies_offer_are_those_of_their_devices() {
        let machines = Machines::new(&[4, 4, 2]).unwrap();
        let places = Places::ladder(&machines, &PUBLISHED_LINKS, 6, 10).pop().unwrap();
        assert!(places.complete);
        costs_are_those_of_devices(&machines, &places);
    }

    fn costs_are_those_of_devices(machines: &Machines, places: &Places) {
        for place in &places.all {
            assert_eq!(place.all_reduce, PUBLISHED_LINKS.all_reduce_s(machines, &place.ids(), 1.0));
            let next = &places.all[places.beginnings[place.next].clone()];
            assert_eq!(next.is_empty(), place.occupied_after == machines.devices());
            let mut kinds = vec![false; place.per_byte.len()];
            for to in next {
                assert_eq!(to.occupied_before, place.occupied_after);
                assert!(to.ids().iter().all(|id| !place.ids().contains(id)));
                let per_byte = PUBLISHED_LINKS.transfer_per_byte(machines, &place.ids(), &to.ids());
                assert_eq!(per_byte, place.per_byte[to.kind]);
                kinds[to.kind] = true;
            }
            assert!(kinds.iter().all(|&met| met));
        }
        let all: Vec<usize> = places.beginnings.iter().cloned().flatten().collect();
        assert_eq!(all, (0..places.all.len()).collect::<Vec<_>>());
        for beginning in &places.beginnings {
            assert!(
                places.all[beginning.clone()].windows(2).all(|two| two[0].occupied_before == two[1].occupied_before)
            );
        }
    }

    #[test]
    fn there_are_few_kinds() {
        let machines = Machines::new(&[8; 4]).unwrap();
        let places = in_order(&machines, &PUBLISHED_LINKS, 32, &block_ends(&machines, 32));
        assert!(places.all.len() > 500 && places.all.iter().all(|place| place.per_byte.len() <= 2));
    }
}

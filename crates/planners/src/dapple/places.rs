//! Placements of a stage: the sets of devices that the three placement policies offer, step by step.
//!
//! Every policy takes the free devices of a machine in order. So the occupied devices are known from a count for each
//! machine, and a [`Place`] is a step from one such state to another. `n` devices on few machines have some hundred
//! places. On many machines there are too many. Stages then take the devices in order, regardless of machines, and the
//! occupied devices are one number. If even that is too much, a stage begins and ends at a block of devices, at whole
//! machines if necessary.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::hpgo::placement::{self, Devices};
use plantui_core::cluster::{Links, Machines};

/// Largest number of places for which all policies are searched.
const MOST_PLACES: usize = 3000;

/// Numbers of blocks that the devices are divided into if there are too many. Coarse blocks come first, so that finer
/// ones start with an incumbent. `blocks²` places each. On gnmt_large with 40 machines of 8, the finest alone take 2.9
/// times the CPU time, and a block for each device takes 3.4 times.
const BLOCKS: [usize; 3] = [16, 48, 128];
/// Largest product of places and positions of the network, if places are blocks. The coarsest blocks are exempt.
const MOST_LOOKED: usize = 16_000_000;

/// Devices of a stage, relative to the devices of the stages before it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Number of devices of the stages before.
    pub(super) occupied_before: u32,
    /// Number of devices of the stages before and this one.
    pub(super) occupied_after: u32,
    /// Devices of the stage, as runs of consecutive ids.
    runs: Vec<Range<u32>>,
    /// Number of devices of the stage.
    pub(super) count: u32,
    /// Seconds per byte of an all-reduce over the devices.
    pub(super) all_reduce: f64,
    /// Index in [`Places::beginnings`] of the places for the next stage.
    pub(super) next: usize,
    /// Seconds per byte to the places of the next stage, in their order.
    pub(super) per_byte: Vec<f64>,
}

impl Place {
    /// Device ids of the stage, ascending.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.runs.iter().cloned().flatten().collect()
    }
}

/// All places.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// Sorted by the occupied devices before each place.
    pub(super) all: Vec<Place>,
    /// Ranges of places with the same occupied devices before them; the last range is empty.
    pub(super) beginnings: Vec<Range<usize>>,
    /// True if all three policies were searched.
    pub(super) complete: bool,
}

impl Places {
    /// Returns the places for stages of at most `widest` devices. If all of them are too many, returns several sets,
    /// coarse ones first, with fewer places the more positions the network has.
    pub(super) fn ladder(machines: &Machines, links: &Links, widest: u32, positions: usize) -> Vec<Places> {
        Self::rungs(machines, links, widest, positions, BLOCKS.len())
    }

    /// Returns the coarsest set of places.
    pub(super) fn coarsest(machines: &Machines, links: &Links, widest: u32, positions: usize) -> Option<Places> {
        Self::rungs(machines, links, widest, positions, 1).pop()
    }

    /// Returns at most `count` sets, the coarsest ones.
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

    /// Computes the transfer costs between all places.
    fn new(
        mut all: Vec<Place>,
        beginnings: Vec<Range<usize>>,
        per_byte: impl Fn(usize, usize) -> f64,
        complete: bool,
    ) -> Self {
        for (at, place) in all.iter_mut().enumerate() {
            place.per_byte = beginnings[place.next].clone().map(|to| per_byte(at, to)).collect();
        }
        Places { all, beginnings, complete }
    }
}

/// Enumerates the places that the policies offer, step by step; `None` if there are more than [`MOST_PLACES`].
fn explore(
    machines: &Machines,
    links: &Links,
    widest: u32,
    offers: &dyn Fn(Devices, u32) -> Vec<Devices>,
) -> Option<Places> {
    let n = machines.devices();
    // Occupied sets in order of discovery; sorted by number of devices at the end.
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

/// Converts ascending numbers to runs.
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

/// Ends of device blocks, including 0. Blocks divide each machine evenly, as finely as `most` blocks allow. If there
/// are more machines than blocks, a block is a fixed number of machines.
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

/// Enumerates every run of blocks; `O(blocks³)` time, `O(blocks²)` memory.
fn in_order(machines: &Machines, links: &Links, widest: u32, ends: &[u32]) -> Places {
    // First device of each device's machine.
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
    use plantui_core::cluster::PUBLISHED_LINKS;

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
            assert_eq!(next.len(), place.per_byte.len());
            for (to, &known) in next.iter().zip(&place.per_byte) {
                assert_eq!(to.occupied_before, place.occupied_after);
                assert!(to.ids().iter().all(|id| !place.ids().contains(id)));
                let per_byte = PUBLISHED_LINKS.transfer_per_byte(machines, &place.ids(), &to.ids());
                assert_eq!(per_byte, known);
            }
        }
        let all: Vec<usize> = places.beginnings.iter().cloned().flatten().collect();
        assert_eq!(all, (0..places.all.len()).collect::<Vec<_>>());
        for beginning in &places.beginnings {
            assert!(
                places.all[beginning.clone()].windows(2).all(|two| two[0].occupied_before == two[1].occupied_before)
            );
        }
    }
}

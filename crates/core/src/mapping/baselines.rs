//! Baselines of the search: identity, best of random orders, greedy, simulated annealing, exhaustive search.

use super::{MappingCost, MappingInstance, exchange::Exchanges};
use crate::{random::SplitMix, search::Search};

/// Number of random orders. It bounds the time.
const DRAWN: usize = 1000;
/// Largest number of devices for exhaustive search. It bounds the mappings to 9!, 362,880.
pub const EXHAUSTIVE: usize = 9;
/// Exchanges tried by annealing: per pair of a worker and a device, and the maximum in all. They bound the time.
const EXCHANGES: (usize, usize) = (200, 200_000);

impl MappingInstance<'_> {
    /// Worker `i` on device `i`.
    pub(super) fn identity(&self) -> Vec<usize> {
        (0..self.workers()).collect()
    }

    /// Best of `DRAWN` random orders.
    pub(super) fn random(&self, seed: u64, search: &Search) -> Vec<usize> {
        let mut random = SplitMix::new(seed);
        let mut best: Option<(MappingCost, Vec<usize>)> = None;
        let mut order: Vec<usize> = (0..self.devices()).collect();
        for _ in 0..DRAWN {
            if search.cancelled() && best.is_some() {
                break;
            }
            random.shuffle(&mut order);
            let cost = self.cost(&order);
            if best.as_ref().is_none_or(|best| cost.is_less(&best.0)) {
                best = Some((cost, order[..self.workers()].to_vec()));
            }
        }
        best.map_or_else(|| self.identity(), |best| best.1)
    }

    /// Greedy construction. The next worker is the one with most traffic to placed workers; it goes to the device where
    /// this traffic takes least. After a cancellation, workers take the first free device.
    pub(super) fn greedy(&self, search: &Search) -> Vec<usize> {
        let (workers, devices) = (self.workers(), self.devices());
        let mut between = vec![vec![]; workers];
        for flow in &self.demands.flows {
            between[flow.from].push((flow.to, flow.bytes));
            between[flow.to].push((flow.from, flow.bytes));
        }
        // Partners of a worker and the bytes exchanged. Pairs within a group are not stored, because a large group has
        // too many.
        let exchanged = |worker: usize| {
            let within = self.groups_of[worker].iter().flat_map(move |&group| {
                let group = &self.demands.groups[group];
                group.workers.iter().filter(move |&&other| other != worker).map(|&other| (other, group.bytes))
            });
            between[worker].iter().copied().chain(within)
        };
        let total: Vec<f64> = (0..workers).map(|worker| exchanged(worker).map(|(_, bytes)| bytes).sum()).collect();
        let mut near = vec![0.0; workers];
        let mut place = vec![usize::MAX; workers];
        let mut used = vec![false; devices];
        for _ in 0..workers {
            let free = (0..workers).filter(|&worker| place[worker] == usize::MAX);
            let next = free.reduce(|best, worker| {
                let key = |worker: usize| (near[worker], total[worker]);
                if key(worker) > key(best) { worker } else { best }
            });
            let Some(worker) = next else { break };
            let seconds = |device: usize| {
                let placed = exchanged(worker).filter(|(other, _)| place[*other] != usize::MAX);
                placed.fold((0.0f64, 0.0), |(most, sum), (other, bytes)| {
                    let seconds = bytes / self.matrix.both_ways(device, place[other]);
                    (most.max(seconds), sum + seconds)
                })
            };
            let open = (0..devices).filter(|&device| !used[device]);
            let weighed = |device: usize| if search.cancelled() { (0.0, 0.0) } else { seconds(device) };
            let best = open.map(|device| (weighed(device), device)).reduce(|a, b| if b.0 < a.0 { b } else { a });
            let Some((_, device)) = best else { break };
            place[worker] = device;
            used[device] = true;
            exchanged(worker).for_each(|(other, bytes)| near[other] += bytes);
        }
        place
    }

    /// Simulated annealing on exchanges of two devices, with geometric cooling. Returns the best mapping seen.
    pub(super) fn annealed(&self, start: Vec<usize>, seed: u64, search: &Search) -> Vec<usize> {
        let (workers, devices) = (self.workers(), self.devices());
        if workers == 0 || devices < 2 {
            return start;
        }
        let mut random = SplitMix::new(seed ^ 0x5eed);
        let mut exchanges = Exchanges::new(self, self.filled(&start));
        let mut now = exchanges.cost();
        let (mut best, mut kept) = (now, exchanges.order().to_vec());
        let tries = (EXCHANGES.0 * workers * devices).min(EXCHANGES.1);
        let mut heat = 0.5 * now.seconds;
        let cooling = 1e-3f64.powf(1.0 / tries as f64);
        for _ in 0..tries {
            if search.cancelled() {
                break;
            }
            let a = (random.next_u64() % workers as u64) as usize;
            let b = (random.next_u64() % devices as u64) as usize;
            exchanges.exchange(a, b);
            let cost = exchanges.cost();
            // The sum of squares breaks ties between equal maxima.
            let worth = |cost: &MappingCost| cost.seconds + 0.1 * cost.squares.sqrt();
            let worse = worth(&cost) - worth(&now);
            let chance = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            if worse <= 0.0 || chance < (-worse / heat).exp() {
                now = cost;
                if now.is_less(&best) {
                    (best, kept) = (now, exchanges.order().to_vec());
                }
            } else {
                exchanges.undo();
            }
            heat *= cooling;
        }
        kept.truncate(workers);
        kept
    }

    /// A mapping, followed by the free devices.
    pub(super) fn filled(&self, mapping: &[usize]) -> Vec<usize> {
        let mut used = vec![false; self.devices()];
        mapping.iter().for_each(|&device| used[device] = true);
        mapping.iter().copied().chain((0..self.devices()).filter(|&device| !used[device])).collect()
    }

    /// Local search: makes the best exchange or move while one improves the mapping.
    pub(super) fn polished(&self, mapping: &[usize], search: &Search) -> Vec<usize> {
        let mut exchanges = Exchanges::new(self, self.filled(mapping));
        let mut best = exchanges.cost();
        loop {
            let mut step: Option<(usize, usize)> = None;
            for a in 0..self.workers() {
                for b in a + 1..self.devices() {
                    // The cost of a long ring takes long to compute.
                    if search.cancelled() {
                        break;
                    }
                    if let Some(cost) = exchanges.less_after(a, b, &best) {
                        (best, step) = (cost, Some((a, b)));
                    }
                }
            }
            let Some((a, b)) = step else { break };
            exchanges.exchange(a, b);
        }
        exchanges.order()[..self.workers()].to_vec()
    }

    /// Best of all mappings; the first one among equals. A cancelled search returns the best so far. `None` above
    /// [`EXHAUSTIVE`] devices, or if there are more workers than devices.
    pub fn exhaustive(&self, search: &Search) -> Option<Vec<usize>> {
        if self.devices() > EXHAUSTIVE || self.workers() > self.devices() {
            return None;
        }
        let mut best: Option<(MappingCost, Vec<usize>)> = None;
        let mut mapping = vec![];
        self.every(&mut mapping, &mut vec![false; self.devices()], &mut best, search);
        best.map(|best| best.1)
    }

    fn every(
        &self,
        mapping: &mut Vec<usize>,
        used: &mut [bool],
        best: &mut Option<(MappingCost, Vec<usize>)>,
        search: &Search,
    ) {
        if mapping.len() == self.workers() {
            let cost = self.cost(mapping);
            if best.as_ref().is_none_or(|best| cost.is_less(&best.0)) {
                *best = Some((cost, mapping.clone()));
            }
            return;
        }
        for device in 0..used.len() {
            if best.is_some() && search.cancelled() {
                return;
            }
            if !used[device] {
                used[device] = true;
                mapping.push(device);
                self.every(mapping, used, best, search);
                mapping.pop();
                used[device] = false;
            }
        }
    }
}

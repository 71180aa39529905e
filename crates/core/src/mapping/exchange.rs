//! A mapping under exchanges of two workers. Only the transfers of these two, and the rings of the groups that they
//! leave or join, are recomputed.
//!
//! Sums are taken in the same order as in [`MappingInstance::cost`], so that both agree to the last digit. An exchange
//! recomputes the rings of the two workers' groups; a cost takes `O(flows + groups)` (and all channels with shared
//! links).

use std::sync::Arc;

use super::{MappingCost, MappingInstance, instance::MappedTraffic};
use crate::cluster::topology::Ring;

/// A mapping, with the seconds of each transfer and ring under it.
pub(super) struct Exchanges<'i, 'a> {
    instance: &'i MappingInstance<'a>,
    /// Device of each worker, followed by the free devices.
    order: Vec<usize>,
    carried: MappedTraffic,
    /// Latest exchange, and the values before it in the order of changes.
    latest: (usize, usize),
    flows_before: Vec<(usize, f64)>,
    rings_s_before: Vec<(usize, f64)>,
    rings_before: Vec<(usize, Arc<Ring>)>,
}

impl<'i, 'a> Exchanges<'i, 'a> {
    /// Starts from a mapping followed by the free devices.
    pub(super) fn new(instance: &'i MappingInstance<'a>, order: Vec<usize>) -> Self {
        let carried = MappedTraffic::new(instance, &order);
        Exchanges {
            instance,
            order,
            carried,
            latest: (0, 0),
            flows_before: vec![],
            rings_s_before: vec![],
            rings_before: vec![],
        }
    }

    /// Exchanges the devices of two workers, or moves one worker to a free device.
    pub(super) fn exchange(&mut self, a: usize, b: usize) {
        self.begin(a, b);
        self.find_rings();
    }

    /// Cost after an exchange, if it is less than `best`. Most exchanges are rejected by the transfers of the two
    /// workers, or by a bound on their new rings.
    pub(super) fn less_after(&mut self, a: usize, b: usize, best: &MappingCost) -> Option<MappingCost> {
        self.begin(a, b);
        let cost = self.instance.unshared_cost(&self.carried).is_less(best).then(|| {
            self.find_rings();
            self.cost()
        });
        self.undo();
        cost.filter(|cost| cost.is_less(best))
    }

    /// Exchanges the devices and recomputes the transfers. Rings that change get a lower bound of their seconds.
    fn begin(&mut self, a: usize, b: usize) {
        self.order.swap(a, b);
        self.latest = (a, b);
        self.flows_before.clear();
        self.rings_s_before.clear();
        self.rings_before.clear();
        let Exchanges { instance, order, carried, .. } = self;
        // A free device has no flows and no groups.
        let of = |all: &'i [Vec<usize>], worker: usize| all.get(worker).map_or(&[][..], Vec::as_slice);
        let flows =
            [a, b].into_iter().flat_map(|worker| [of(&instance.leaving, worker), of(&instance.arriving, worker)]);
        for &flow in flows.flatten() {
            let seconds = instance.flow_s(&instance.demands.flows[flow], order);
            self.flows_before.push((flow, std::mem::replace(&mut carried.flows_s[flow], seconds)));
        }
        // A group with both workers keeps its devices.
        for (joined, left) in [(a, b), (b, a)] {
            let others = of(&instance.groups_of, left);
            for &group in of(&instance.groups_of, joined).iter().filter(|group| !others.contains(group)) {
                let seconds = instance.least_ring_s(&instance.demands.groups[group], joined, order);
                self.rings_s_before.push((group, std::mem::replace(&mut carried.rings_s[group], seconds)));
            }
        }
    }

    /// Computes the rings that changed.
    fn find_rings(&mut self) {
        let Exchanges { instance, order, carried, .. } = self;
        for &(index, _) in &self.rings_s_before {
            let group = &instance.demands.groups[index];
            let ring = instance.ring(group, order);
            carried.rings_s[index] = group.bytes / ring.width;
            self.rings_before.push((index, std::mem::replace(&mut carried.rings[index], ring)));
        }
    }

    /// Undoes the latest exchange.
    pub(super) fn undo(&mut self) {
        let (a, b) = self.latest;
        self.order.swap(a, b);
        // Flows between the two workers are stored twice: undoing in reverse order restores the first value last.
        for (flow, seconds) in self.flows_before.drain(..).rev() {
            self.carried.flows_s[flow] = seconds;
        }
        for (group, seconds) in self.rings_s_before.drain(..).rev() {
            self.carried.rings_s[group] = seconds;
        }
        for (group, ring) in self.rings_before.drain(..).rev() {
            self.carried.rings[group] = ring;
        }
    }

    /// Cost of the current mapping.
    pub(super) fn cost(&self) -> MappingCost {
        self.instance.cost_of(&self.order, &self.carried)
    }

    /// Device of each worker, followed by the free devices.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            CommunicationKinds, MappingInstance, ReductionGroup,
            tests::{demands, wired},
        },
        *,
    };
    use crate::{cluster::topology::PairMatrix, random::SplitMix};

    #[test]
    fn what_is_known_after_exchanges_is_what_the_mapping_costs() {
        let mut random = SplitMix::new(11);
        let (mut better, mut worse) = (0, 0);
        for round in 0..40 {
            let devices = if round % 5 == 4 { 11 } else { 5 + round % 4 };
            let topology = wired(&mut random, devices);
            let workers = devices - round % 2;
            let mut demands = demands(&mut random, workers);
            if workers > 9 {
                demands.groups.push(ReductionGroup { workers: (0..10).collect(), bytes: 1e8 });
            }
            let consider = CommunicationKinds { shared_links: round % 3 == 0, ..CommunicationKinds::default() };
            // Pairs do not attain the same in both directions.
            let width = |random: &mut SplitMix| (1 + random.next_u64() % 5) as f64 * 1e9;
            let rows: Vec<Vec<f64>> =
                (0..devices).map(|_| (0..devices).map(|_| width(&mut random)).collect()).collect();
            let matrix = PairMatrix::new(&rows).unwrap();
            let instance = MappingInstance::among(&topology, matrix, &demands, consider);
            let mut exchanges = Exchanges::new(&instance, (0..devices).collect());
            for _ in 0..60 {
                let a = (random.next_u64() % workers as u64) as usize;
                let b = (random.next_u64() % devices as u64) as usize;
                let (before, order) = (exchanges.cost(), exchanges.order().to_vec());
                let mut exchanged = order.clone();
                exchanged.swap(a, b);
                let after = instance.cost(&exchanged);
                let less = exchanges.less_after(a, b, &before);
                assert_eq!(less, after.is_less(&before).then_some(after));
                assert_eq!((exchanges.cost(), exchanges.order()), (before, &order[..]));
                exchanges.exchange(a, b);
                assert_eq!((exchanges.cost(), exchanges.order()), (after, &exchanged[..]));
                if random.next_u64().is_multiple_of(3) {
                    exchanges.undo();
                    assert_eq!((exchanges.cost(), exchanges.order()), (before, &order[..]));
                }
                *(if less.is_some() { &mut better } else { &mut worse }) += 1;
            }
        }
        assert!(better > 200 && worse > 200, "{better} {worse}");
    }
}

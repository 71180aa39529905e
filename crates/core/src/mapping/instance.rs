//! One mapping problem, and the cost of a mapping.
//!
//! The cost is the maximum over all pairs, rings and (with shared links) channels of the seconds per microbatch spent
//! on communication. Ties are broken by the sum of squares of all of them. Seconds are bytes over bandwidth; latency is
//! left out, because it differs between mappings only by the number of hops. A mapping takes
//! `O(flows + groups · r² 2^r)`; rings are exact for groups of `r ≤ 9` workers.

use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;

use super::{Demands, Flow, ReductionGroup, reach::Reachability, rounded::rounded};
use crate::cluster::topology::{PairMatrix, Ring, Routes, Topology};

/// Maximum number of cached rings. It bounds the memory; without a cache, planning takes up to 7 times the CPU time
/// (bert32, 16 devices).
const MOST_RINGS: usize = 1 << 16;

/// Kinds of communication that a mapping considers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommunicationKinds {
    /// Transfers between stages (`incl_p2p`).
    pub transfers: bool,
    /// All-reduces of gradients, and those of shards (`incl_allr`).
    pub all_reduces: bool,
    /// Contention: traffic over the same channel shares its bandwidth.
    pub shared_links: bool,
}

impl Default for CommunicationKinds {
    fn default() -> Self {
        CommunicationKinds { transfers: true, all_reduces: true, shared_links: false }
    }
}

/// Bottleneck of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MappingBottleneck {
    /// No traffic.
    #[default]
    None,
    /// A transfer, by index.
    Flow(usize),
    /// A ring, by the index of its group.
    Ring(usize),
    /// A channel, by number.
    Channel(u32),
}

/// Cost of a mapping, compared lexicographically; less is better.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MappingCost {
    /// Maximum seconds per microbatch over all transfers, rings and channels.
    pub seconds: f64,
    /// Sum of squares of the seconds of all of them.
    pub squares: f64,
    /// Transfer, ring or channel with the maximum.
    pub bottleneck: MappingBottleneck,
}

impl MappingCost {
    fn add(&mut self, seconds: f64, of: MappingBottleneck) {
        if seconds > self.seconds {
            (self.seconds, self.bottleneck) = (seconds, of);
        }
        self.squares += seconds * seconds;
    }

    /// True if it is less by more than rounding. This is a strict order, so a sequence of improvements never returns to
    /// an earlier mapping.
    pub fn is_less(&self, than: &MappingCost) -> bool {
        let rounded = |cost: &MappingCost| (rounded(cost.seconds), rounded(cost.squares));
        rounded(self) < rounded(than)
    }
}

/// Transfers and all-reduces under a mapping.
#[derive(Debug)]
pub(super) struct MappedTraffic {
    /// Seconds of each flow.
    pub(super) flows_s: Vec<f64>,
    /// Ring of each group, and its seconds.
    pub(super) rings: Vec<Arc<Ring>>,
    pub(super) rings_s: Vec<f64>,
}

impl MappedTraffic {
    pub(super) fn new(instance: &MappingInstance<'_>, devices: &[usize]) -> Self {
        let Demands { flows, groups, .. } = &instance.demands;
        let rings: Vec<Arc<Ring>> = groups.iter().map(|group| instance.ring(group, devices)).collect();
        MappedTraffic {
            flows_s: flows.iter().map(|flow| instance.flow_s(flow, devices)).collect(),
            rings_s: groups.iter().zip(&rings).map(|(group, ring)| group.bytes / ring.width).collect(),
            rings,
        }
    }
}

/// Demands on a topology.
#[derive(Debug)]
pub struct MappingInstance<'a> {
    pub(super) topology: &'a Topology,
    pub(super) demands: Demands,
    pub(super) consider: CommunicationKinds,
    pub(super) matrix: PairMatrix,
    /// Routes between all pairs; only with shared links.
    pub(super) routes: Option<Routes<'a>>,
    /// By worker: indices of its outgoing flows, and of its incoming flows.
    pub(super) leaving: Vec<Vec<usize>>,
    pub(super) arriving: Vec<Vec<usize>>,
    /// By worker: indices of its groups.
    pub(super) groups_of: Vec<Vec<usize>>,
    /// Cache of rings, by their sorted devices.
    rings: Mutex<FxHashMap<Vec<usize>, Arc<Ring>>>,
    reach: OnceLock<Reachability>,
}

impl<'a> MappingInstance<'a> {
    /// Creates the instance of these demands on a topology. Demands that `consider` excludes are left out.
    pub fn new(topology: &'a Topology, demands: &Demands, consider: CommunicationKinds) -> Self {
        Self::among(topology, topology.pair_matrix(), demands, consider)
    }

    /// Same, with the given bandwidth of every pair.
    pub(super) fn among(
        topology: &'a Topology,
        matrix: PairMatrix,
        demands: &Demands,
        consider: CommunicationKinds,
    ) -> Self {
        let mut demands = demands.clone();
        if !consider.transfers {
            demands.flows.clear();
        }
        if !consider.all_reduces {
            demands.groups.clear();
        }
        let routes = consider.shared_links.then(|| Routes::new(topology));
        let mut leaving = vec![vec![]; demands.workers.len()];
        let mut arriving = leaving.clone();
        for (index, flow) in demands.flows.iter().enumerate() {
            leaving[flow.from].push(index);
            arriving[flow.to].push(index);
        }
        let mut groups_of = vec![vec![]; demands.workers.len()];
        for (index, group) in demands.groups.iter().enumerate() {
            group.workers.iter().for_each(|&worker| groups_of[worker].push(index));
        }
        let (rings, reach) = (Mutex::default(), OnceLock::new());
        MappingInstance { topology, demands, consider, matrix, routes, leaving, arriving, groups_of, rings, reach }
    }

    /// Assumptions made about the demands.
    pub fn notes(&self) -> &[String] {
        &self.demands.notes
    }

    /// Number of workers to place.
    pub fn workers(&self) -> usize {
        self.demands.workers.len()
    }

    /// Number of devices.
    pub fn devices(&self) -> usize {
        self.matrix.devices()
    }

    /// Devices reached at each bandwidth; computed on first use.
    pub(super) fn reach(&self) -> &Reachability {
        self.reach.get_or_init(|| Reachability::new(&self.matrix))
    }

    /// Widest ring of a group under a mapping, as devices. The same set of devices always gives the same ring.
    pub(super) fn ring(&self, group: &ReductionGroup, devices: &[usize]) -> Arc<Ring> {
        let mut own: Vec<usize> = group.workers.iter().map(|&worker| devices[worker]).collect();
        own.sort_unstable();
        // The lock is not held while a ring is computed.
        let known = || self.rings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(ring) = known().get(&own) {
            return ring.clone();
        }
        let mut ring = Ring::widest(own.len(), |a, b| self.matrix.at(own[a], own[b]));
        ring.order.iter_mut().for_each(|at| *at = own[*at]);
        let ring = Arc::new(ring);
        let mut known = known();
        if known.len() >= MOST_RINGS {
            known.clear();
        }
        known.insert(own, ring.clone());
        ring
    }

    /// Seconds of a transfer under a mapping.
    pub(super) fn flow_s(&self, flow: &Flow, devices: &[usize]) -> f64 {
        flow.bytes / self.matrix.at(devices[flow.from], devices[flow.to])
    }

    /// Lower bound on the seconds of a group's ring under a mapping: `worker` needs one pair to send and one to
    /// receive.
    pub(super) fn least_ring_s(&self, group: &ReductionGroup, worker: usize, devices: &[usize]) -> f64 {
        let own = devices[worker];
        let others = group.workers.iter().filter(|&&other| other != worker).map(|&other| devices[other]);
        let widest = others.fold((0.0f64, 0.0f64), |(to, from), other| {
            (to.max(self.matrix.at(own, other)), from.max(self.matrix.at(other, own)))
        });
        // A single worker sends nothing.
        if group.workers.len() < 2 { 0.0 } else { group.bytes / widest.0.min(widest.1) }
    }

    /// Seconds per microbatch that each channel is busy under a mapping; empty without shared links.
    pub fn channel_seconds(&self, devices: &[usize]) -> Vec<f64> {
        let rings = || self.demands.groups.iter().map(|group| self.ring(group, devices));
        if self.routes.is_some() { self.channels_of(devices, &rings().collect::<Vec<_>>()) } else { vec![] }
    }

    /// Same, with the rings already computed.
    fn channels_of(&self, devices: &[usize], rings: &[Arc<Ring>]) -> Vec<f64> {
        let Some(routes) = &self.routes else { return vec![] };
        let mut load = vec![0.0; self.topology.channels()];
        let mut carry = |a: usize, b: usize, bytes: f64| {
            for &channel in &routes.get(a, b).channels {
                load[channel as usize] += bytes / self.topology.channel_bandwidth(channel);
            }
        };
        for flow in &self.demands.flows {
            carry(devices[flow.from], devices[flow.to], flow.bytes);
        }
        for (group, ring) in self.demands.groups.iter().zip(rings) {
            ring.steps().for_each(|(a, b)| carry(a, b, group.bytes));
        }
        load
    }

    /// Cost of a mapping; `devices` gives the device of each worker.
    pub fn cost(&self, devices: &[usize]) -> MappingCost {
        self.cost_of(devices, &MappedTraffic::new(self, devices))
    }

    /// Cost of transfers and rings alone, without shared channels.
    pub(super) fn unshared_cost(&self, carried: &MappedTraffic) -> MappingCost {
        let mut cost = MappingCost::default();
        for (index, &seconds) in carried.flows_s.iter().enumerate() {
            cost.add(seconds, MappingBottleneck::Flow(index));
        }
        for (index, &seconds) in carried.rings_s.iter().enumerate() {
            cost.add(seconds, MappingBottleneck::Ring(index));
        }
        cost
    }

    /// Cost of a mapping with transfers and rings already computed.
    pub(super) fn cost_of(&self, devices: &[usize], carried: &MappedTraffic) -> MappingCost {
        let mut cost = self.unshared_cost(carried);
        for (channel, seconds) in
            (0..).zip(self.channels_of(devices, &carried.rings)).filter(|(_, seconds)| *seconds > 0.0)
        {
            cost.add(seconds, MappingBottleneck::Channel(channel));
        }
        cost
    }

    /// By device: the first device with the same bandwidth to and from all others. Such devices are interchangeable.
    /// With shared links, every device stands for itself.
    pub(super) fn twins(&self) -> Vec<usize> {
        let n = self.devices();
        let alike = |a: usize, b: usize| {
            let others = (0..n).filter(|&x| x != a && x != b);
            self.matrix.at(a, b) == self.matrix.at(b, a)
                && others.into_iter().all(|x| {
                    self.matrix.at(a, x) == self.matrix.at(b, x) && self.matrix.at(x, a) == self.matrix.at(x, b)
                })
        };
        let mut first: Vec<usize> = (0..n).collect();
        if self.routes.is_some() {
            return first;
        }
        for b in 0..n {
            if let Some(a) = (0..b).find(|&a| first[a] == a && alike(a, b)) {
                first[b] = a;
            }
        }
        first
    }
}

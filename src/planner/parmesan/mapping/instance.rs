//! One mapping problem, and what a mapping costs.
//!
//! The cost is the most seconds a microbatch that any pair, ring or (where links are shared) channel spends on
//! communication; of mappings with the same, the sum of squares of all of them decides. Bytes over bandwidth and no
//! latency: latencies are the same for every mapping but for the hops. `O(flows + groups · r² 2^r)` for a mapping, with
//! `r ≤ 9` workers in a group counted exactly.

use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;

use super::{super::rounded::rounded, Demands, Flow, Group, reach::Reach};
use crate::cluster::topology::{PairMatrix, Ring, Routes, Topology};

/// Rings that are remembered.
const MOST_RINGS: usize = 1 << 16;

/// What a mapping is to consider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consider {
    /// Transfers between stages (`incl_p2p`).
    pub transfers: bool,
    /// All-reduces of gradients, and those of shards (`incl_allr`).
    pub all_reduces: bool,
    /// That what runs over one channel shares it.
    pub shared_links: bool,
}

impl Default for Consider {
    fn default() -> Self {
        Consider { transfers: true, all_reduces: true, shared_links: false }
    }
}

/// What limits a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bottleneck {
    /// Nothing is sent.
    #[default]
    None,
    /// A transfer: its index.
    Flow(usize),
    /// A ring: the index of its group.
    Ring(usize),
    /// A channel.
    Channel(u32),
}

/// What a mapping costs: less is better, the first figure first.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// The most seconds a microbatch.
    pub seconds: f64,
    /// The sum of squares of all of them.
    pub squares: f64,
    /// Whose most it is.
    pub bottleneck: Bottleneck,
}

impl Cost {
    fn add(&mut self, seconds: f64, of: Bottleneck) {
        if seconds > self.seconds {
            (self.seconds, self.bottleneck) = (seconds, of);
        }
        self.squares += seconds * seconds;
    }

    /// Whether it is less than another by more than rounding. That is an order: what is taken because it is less than what
    /// was there never leads back to it.
    pub fn is_less(&self, than: &Cost) -> bool {
        let rounded = |cost: &Cost| (rounded(cost.seconds), rounded(cost.squares));
        rounded(self) < rounded(than)
    }
}

/// What transfers and all-reduces are under a mapping.
#[derive(Debug)]
pub(super) struct Carried {
    /// By flow: its seconds.
    pub(super) flows_s: Vec<f64>,
    /// By group: its ring, and its seconds.
    pub(super) rings: Vec<Arc<Ring>>,
    pub(super) rings_s: Vec<f64>,
}

impl Carried {
    pub(super) fn new(instance: &Instance<'_>, devices: &[usize]) -> Self {
        let Demands { flows, groups, .. } = &instance.demands;
        let rings: Vec<Arc<Ring>> = groups.iter().map(|group| instance.ring(group, devices)).collect();
        Carried {
            flows_s: flows.iter().map(|flow| instance.flow_s(flow, devices)).collect(),
            rings_s: groups.iter().zip(&rings).map(|(group, ring)| group.bytes / ring.width).collect(),
            rings,
        }
    }
}

/// Demands on a topology.
#[derive(Debug)]
pub struct Instance<'a> {
    pub(super) topology: &'a Topology,
    pub(super) demands: Demands,
    pub(super) consider: Consider,
    pub(super) matrix: Arc<PairMatrix>,
    /// Where links are shared.
    pub(super) routes: Option<Routes<'a>>,
    /// By worker: indices of the flows that leave it, and those that arrive.
    pub(super) leaving: Vec<Vec<usize>>,
    pub(super) arriving: Vec<Vec<usize>>,
    /// By worker: indices of the groups that it belongs to.
    pub(super) groups_of: Vec<Vec<usize>>,
    /// Rings that were asked for, by their devices.
    rings: Mutex<FxHashMap<Vec<usize>, Arc<Ring>>>,
    reach: OnceLock<Reach>,
}

impl<'a> Instance<'a> {
    /// These demands on this topology. What is not to be considered is left out of them.
    pub fn new(topology: &'a Topology, demands: &Demands, consider: Consider) -> Self {
        Self::among(topology, Arc::new(topology.pair_matrix()), demands, consider)
    }

    /// The same where it is known what every pair of devices attains.
    pub(in crate::planner::parmesan) fn among(
        topology: &'a Topology,
        matrix: Arc<PairMatrix>,
        demands: &Demands,
        consider: Consider,
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
        Instance { topology, demands, consider, matrix, routes, leaving, arriving, groups_of, rings, reach }
    }

    /// What was assumed of the demands.
    pub fn notes(&self) -> &[String] {
        &self.demands.notes
    }

    /// Workers to be placed.
    pub fn workers(&self) -> usize {
        self.demands.workers.len()
    }

    /// Devices to place them on.
    pub fn devices(&self) -> usize {
        self.matrix.devices()
    }

    /// Who is reached over which width. Kept once it was asked for.
    pub(super) fn reach(&self) -> &Reach {
        self.reach.get_or_init(|| Reach::new(&self.matrix))
    }

    /// The widest ring of a group under a mapping, as devices. The same devices always have the same.
    pub(super) fn ring(&self, group: &Group, devices: &[usize]) -> Arc<Ring> {
        let mut own: Vec<usize> = group.workers.iter().map(|&worker| devices[worker]).collect();
        own.sort_unstable();
        // Nobody waits while one is found.
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

    /// Seconds that a group's ring takes at the least under a mapping, as one of its workers has two neighbours in it.
    pub(super) fn least_ring_s(&self, group: &Group, worker: usize, devices: &[usize]) -> f64 {
        let own = devices[worker];
        let others = group.workers.iter().filter(|&&other| other != worker).map(|&other| devices[other]);
        let widest = others.fold((0.0f64, 0.0f64), |(to, from), other| {
            (to.max(self.matrix.at(own, other)), from.max(self.matrix.at(other, own)))
        });
        // Alone it sends nothing.
        if group.workers.len() < 2 { 0.0 } else { group.bytes / widest.0.min(widest.1) }
    }

    /// By channel: the seconds a microbatch that it carries something under a mapping; nothing where links are not shared.
    pub fn channel_seconds(&self, devices: &[usize]) -> Vec<f64> {
        let rings = || self.demands.groups.iter().map(|group| self.ring(group, devices));
        if self.routes.is_some() { self.channels_of(devices, &rings().collect::<Vec<_>>()) } else { vec![] }
    }

    /// The same where the rings are known.
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

    /// What a mapping costs: the device of each worker.
    pub fn cost(&self, devices: &[usize]) -> Cost {
        self.cost_of(devices, &Carried::new(self, devices))
    }

    /// What transfers and rings cost, whatever they share.
    pub(super) fn unshared_cost(&self, carried: &Carried) -> Cost {
        let mut cost = Cost::default();
        for (index, &seconds) in carried.flows_s.iter().enumerate() {
            cost.add(seconds, Bottleneck::Flow(index));
        }
        for (index, &seconds) in carried.rings_s.iter().enumerate() {
            cost.add(seconds, Bottleneck::Ring(index));
        }
        cost
    }

    /// What a mapping costs whose transfers and rings are known.
    pub(super) fn cost_of(&self, devices: &[usize], carried: &Carried) -> Cost {
        let mut cost = self.unshared_cost(carried);
        for (channel, seconds) in
            (0..).zip(self.channels_of(devices, &carried.rings)).filter(|(_, seconds)| *seconds > 0.0)
        {
            cost.add(seconds, Bottleneck::Channel(channel));
        }
        cost
    }

    /// Devices that any exchange leaves as it is: same bandwidth to and from all others. Without shared links such devices
    /// are as good as one another.
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

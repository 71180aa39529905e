//! Plans on the routes of a topology: upper bounds on the bandwidth of links, and simulated times of candidates.
//!
//! The search uses one rate for transfers and one for all-reduces. It runs with typical rates of the routes, then with
//! those of the slowest pair, and last with rates that no route exceeds. Only the last run's bound is reported: on any
//! devices of the topology, an iteration takes no less. The best split of every remaining class is simulated on the
//! routes, its stages on the devices in order. The fastest one cuts the search short and is the answer. `O(classes)`
//! simulations, at most [`MOST_JUDGED`] for each run.

use std::{cell::RefCell, sync::Arc};

use super::{Outcome, ProfileSearch, Status};
use crate::Alternative;
use plantui_core::{
    cluster::topology::{CollectiveOperation, LinkRule, Topology},
    plan::Plan,
};

/// Maximum number of classes per run whose best split is simulated on the routes.
pub(super) const MOST_JUDGED: usize = 32;
/// Number of plans kept for mapping.
const KEPT: usize = 3;
/// Message size in bytes at which an all-reduce attains its bandwidth.
const LARGE: f64 = 1e9;

/// Bandwidths assumed by a search, bytes per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    /// Between a pair of devices.
    pair: f64,
    /// Bus bandwidth of an all-reduce.
    pub(super) reduce: f64,
    /// True if every shard of a stage sends over links of its own.
    each_shard: bool,
}

impl Rates {
    /// Same rate for transfers and all-reduces.
    pub(super) fn uniform(bandwidth: f64) -> Self {
        Rates { pair: bandwidth, reduce: bandwidth, each_shard: false }
    }

    /// Upper bounds of all routes: the widest pair, and the sum of the links over which a device sends. An all-reduce
    /// over `n` devices sends `2 (n − 1)` times its bytes in all, so some device sends `2 (n − 1) / n` of them.
    fn fastest(topology: &Topology) -> Self {
        let devices = 0..topology.devices();
        let pairs = devices.clone().flat_map(|device| {
            topology.pairs_from(device).into_iter().enumerate().filter(move |(other, _)| *other != device)
        });
        let pair = pairs.map(|(_, bandwidth)| bandwidth).fold(0.0, f64::max);
        let sends = |device: usize| topology.hops(topology.vertex_of(device)).iter().map(|hop| hop.bandwidth).sum();
        Rates { pair, reduce: devices.map(sends).fold(0.0, f64::max), each_shard: true }
    }

    /// Typical rates of the routes: the median pair, and the bus of all devices.
    fn typical(topology: &Topology) -> Self {
        let all: Vec<usize> = (0..topology.devices()).collect();
        let reduce = topology.collectives(&all).bus_bandwidth(CollectiveOperation::AllReduce, LARGE);
        Rates { pair: topology.pair_matrix().median(), reduce, each_shard: true }
    }

    /// Rate of transfers between stages with this tensor degree.
    pub(super) fn transfers(self, degree: u32) -> f64 {
        if self.each_shard { self.pair * f64::from(degree) } else { self.pair }
    }
}

/// Plans simulated on the routes, fastest first.
pub(super) struct RoutePlans<'a> {
    topology: &'a Arc<Topology>,
    best: RefCell<Vec<(f64, Plan)>>,
}

impl RoutePlans<'_> {
    /// Plan with its stages on the devices in order.
    pub(super) fn placed(&self, plan: Plan) -> Plan {
        let in_order: Vec<usize> = (0..plan.devices().count()).collect();
        plan.on(self.topology, &in_order)
    }

    /// Keeps a plan if it is among the best.
    pub(super) fn keep(&self, seconds: f64, plan: &Plan) {
        let mut best = self.best.borrow_mut();
        if best.iter().any(|(_, known)| known == plan) {
            return;
        }
        let place = best.partition_point(|(known, _)| *known <= seconds);
        best.insert(place, (seconds, plan.clone()));
        best.truncate(KEPT);
    }
}

impl ProfileSearch<'_> {
    /// Plans on the routes of a topology.
    pub(super) fn plan_on(&self, topology: &Arc<Topology>) -> Outcome {
        let judged = RoutePlans { topology, best: RefCell::default() };
        let slowest = LinkRule::of(topology).any;
        let guides = [Rates::typical(topology), Rates::uniform(slowest)];
        let quiet = self.search.without_bounds();
        let mut first = None;
        for rates in guides {
            let profile_search = ProfileSearch { rates, judged: Some(&judged), first, search: &quiet, ..*self };
            let outcome = profile_search.search();
            let (Some(plan), Some(seconds)) = (outcome.plan.clone(), outcome.objective) else { return outcome };
            first = Some((seconds, plan));
            if outcome.status == Status::Cancelled || self.search.cancelled() {
                // These rates prove nothing.
                return Outcome { lower_bound: None, proven_among: None, ..outcome };
            }
        }
        let profile_search = ProfileSearch { rates: Rates::fastest(topology), judged: Some(&judged), first, ..*self };
        let mut outcome = profile_search.search();
        outcome.bound_holds_on_routes = true;
        if let Some(among) = &mut outcome.proven_among {
            *among += &format!(", on the routes of {}", topology.name);
        }
        let part = |(value, plan): (f64, Plan)| Alternative { plan, value, memory_bytes: 0.0 };
        outcome.alternatives = judged.best.into_inner().into_iter().map(part).collect();
        outcome.notes.push(format!(
            "Bounds time every transfer at the fastest route of {}; plans are simulated on its routes.",
            topology.name
        ));
        outcome
    }
}

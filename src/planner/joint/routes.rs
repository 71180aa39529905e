//! Plans on the routes of a topology: what links between devices attain at the most, and what candidates take on them.
//!
//! The search itself knows one rate for transfers and one for all-reduces. It runs under rates that the routes typically
//! attain, under those of the slowest pair, and last under those that no route exceeds: only the last one's bound is told,
//! since a batch takes no less on any devices of the topology. The best split of every class that is left is simulated on
//! the routes, its parts on the devices in order; what is fastest there cuts the search short, and is the answer.
//! `O(classes)` simulations, at most [`MOST_JUDGED`] for each run.

use std::{cell::RefCell, sync::Arc};

use super::{Outcome, Status, Task};
use crate::{
    cluster::topology::{LinkRule, Operation, Topology},
    plan::Plan,
    planner::Alternative,
};

/// Classes of one run whose best split is simulated on the routes.
pub(super) const MOST_JUDGED: usize = 32;
/// Plans that are handed on to be mapped.
const KEPT: usize = 3;
/// A message for which an all-reduce attains what it can.
const LARGE: f64 = 1e9;

/// Bytes per second that a search counts on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    /// Of a pair of devices.
    pair: f64,
    /// Of the bus in an all-reduce.
    pub(super) reduce: f64,
    /// True if every shard of a stage sends over links of its own.
    each_shard: bool,
}

impl Rates {
    /// The same for all.
    pub(super) fn uniform(bandwidth: f64) -> Self {
        Rates { pair: bandwidth, reduce: bandwidth, each_shard: false }
    }

    /// Upper bounds of every route: the widest pair, and all links that a device sends over at once. An all-reduce over `n` devices
    /// sends `2 (n − 1)` times its bytes in all, so some device sends `2 (n − 1) / n` of them.
    fn fastest(topology: &Topology) -> Self {
        let devices = 0..topology.devices();
        let pairs = devices.clone().flat_map(|device| {
            topology.pairs_from(device).into_iter().enumerate().filter(move |(other, _)| *other != device)
        });
        let pair = pairs.map(|(_, bandwidth)| bandwidth).fold(0.0, f64::max);
        let sends = |device: usize| topology.hops(topology.vertex_of(device)).iter().map(|hop| hop.bandwidth).sum();
        Rates { pair, reduce: devices.map(sends).fold(0.0, f64::max), each_shard: true }
    }

    /// Typical rates of routes: the median pair, and the bus of all devices.
    fn typical(topology: &Topology) -> Self {
        let all: Vec<usize> = (0..topology.devices()).collect();
        let reduce = topology.collectives(&all).bus_bandwidth(Operation::AllReduce, LARGE);
        Rates { pair: topology.pair_matrix().median(), reduce, each_shard: true }
    }

    /// Of transfers between stages of a tensor degree.
    pub(super) fn transfers(self, degree: u32) -> f64 {
        if self.each_shard { self.pair * f64::from(degree) } else { self.pair }
    }
}

/// The plans that were simulated on the routes, the fastest first.
pub(super) struct Judged<'a> {
    topology: &'a Arc<Topology>,
    best: RefCell<Vec<(f64, Plan)>>,
}

impl Judged<'_> {
    /// A plan with its parts on the devices in order.
    pub(super) fn placed(&self, plan: Plan) -> Plan {
        let in_order: Vec<usize> = (0..plan.devices().count()).collect();
        plan.on(self.topology, &in_order)
    }

    /// Keeps a plan, if it is among the best.
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

impl Task<'_> {
    /// Plans on the routes of a topology.
    pub(super) fn plan_on(&self, topology: &Arc<Topology>) -> Outcome {
        let judged = Judged { topology, best: RefCell::default() };
        let slowest = LinkRule::of(topology).any;
        let guides = [Rates::typical(topology), Rates::uniform(slowest)];
        let quiet = self.search.without_bounds();
        let mut first = None;
        for rates in guides {
            let task = Task { rates, judged: Some(&judged), first, search: &quiet, ..*self };
            let outcome = task.search();
            let (Some(plan), Some(seconds)) = (outcome.plan.clone(), outcome.objective) else { return outcome };
            first = Some((seconds, plan));
            if outcome.status == Status::Cancelled || self.search.cancelled() {
                // Under these rates nothing is proven.
                return Outcome { lower_bound: None, proven_among: None, ..outcome };
            }
        }
        let task = Task { rates: Rates::fastest(topology), judged: Some(&judged), first, ..*self };
        let mut outcome = task.search();
        outcome.bound_holds_on_routes = true;
        if let Some(among) = &mut outcome.proven_among {
            *among += &format!(", on the routes of {}", topology.name);
        }
        let part = |(value, plan): (f64, Plan)| Alternative { plan, value, memory_bytes: 0.0 };
        outcome.alternatives = judged.best.into_inner().into_iter().map(part).collect();
        outcome.notes.push(format!(
            "Bounds take every transfer at the fastest that a route of {} attains; plans are simulated on its routes.",
            topology.name
        ));
        outcome
    }
}

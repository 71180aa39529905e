//! Bandwidths for planners that use one bandwidth, or one within machines and one across: those of the slowest pair.

use super::graph::Topology;
use crate::cluster::links::Links;

/// Slowest pairs of a topology, bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkRule {
    /// Slowest of all pairs; infinite for a single device.
    pub any: f64,
    /// Slowest pair within a machine; infinite if every machine has one device.
    pub within: f64,
    /// Slowest pair across machines; infinite for a single machine.
    pub across: f64,
}

impl LinkRule {
    /// Slowest pairs. `O(devices · links · log vertices)` on the first call, then cached. If all machines are alike,
    /// only pairs from the first machine are computed.
    pub fn of(topology: &Topology) -> Self {
        topology.cached_rule(|| Self::compute(topology))
    }

    fn compute(topology: &Topology) -> Self {
        let mut rule = LinkRule { any: f64::INFINITY, within: f64::INFINITY, across: f64::INFINITY };
        let first = topology.machines().sizes().first().map_or(0, |&size| usize::from(size));
        let asked = if topology.alike { first } else { topology.devices() };
        let sizes = topology.machines();
        let sizes = sizes.sizes().iter().map(|&size| usize::from(size));
        let machine: Vec<usize> = sizes.enumerate().flat_map(|(at, size)| std::iter::repeat_n(at, size)).collect();
        for device in 0..asked {
            for (other, bandwidth) in topology.pairs_from(device).into_iter().enumerate() {
                if other == device {
                    continue;
                }
                let together = machine[device] == machine[other];
                let slowest = if together { &mut rule.within } else { &mut rule.across };
                *slowest = slowest.min(bandwidth);
            }
        }
        rule.any = rule.within.min(rule.across);
        rule
    }

    /// Speeds for a family with machines: within a machine, across machines, and for an all-reduce across machines,
    /// which is taken as that of a pair. If a kind of pair does not exist, the other kind's speed is used.
    pub fn links(&self) -> Links {
        let or = |value: f64, other: f64| if value.is_finite() { value } else { other };
        let within = or(self.within, or(self.across, 1e30));
        let across = or(self.across, within);
        Links { in_machine: within, between_machines: across, all_reduce: across }
    }

    /// Note for planners that use one bandwidth.
    pub const SLOWEST: &str = "the planner uses one bandwidth: that of the slowest pair of the topology";
    /// Note for planners that use machines.
    pub const MACHINES: &str =
        "the planner uses two bandwidths: those of the slowest pair within a machine and across machines";
}

//! What a planner is told that knows one bandwidth, or one within machines and one across: the slowest pair.

use super::Topology;
use crate::cluster::Links;

/// The slowest pairs of a topology, bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkRule {
    /// Of all pairs; infinite for a single device.
    pub any: f64,
    /// Of pairs within a machine; infinite where every machine has one device.
    pub within: f64,
    /// Of pairs in different machines; infinite for a single machine.
    pub across: f64,
}

impl LinkRule {
    /// The slowest pairs. `O(devices · links · log vertices)` when it is asked for the first time; where all machines are
    /// alike those of the first stand for all.
    pub fn of(topology: &Topology) -> Self {
        topology.kept_rule(|| Self::found(topology))
    }

    fn found(topology: &Topology) -> Self {
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

    /// The three speeds of a family that knows machines: within a machine, across machines, and an all-reduce across
    /// machines, for which a pair across them is taken. What there is no pair of has the speed of the other.
    pub fn links(&self) -> Links {
        let or = |value: f64, other: f64| if value.is_finite() { value } else { other };
        let within = or(self.within, or(self.across, 1e30));
        let across = or(self.across, within);
        Links { in_machine: within, between_machines: across, all_reduce: across }
    }

    /// The rule in a sentence for who knows one bandwidth.
    pub const SLOWEST: &str = "the planner knows one bandwidth: it is told that of the slowest pair of the topology";
    /// The rule in a sentence for who knows machines.
    pub const MACHINES: &str =
        "the planner knows two bandwidths: it is told those of the slowest pair within a machine and across machines";
}

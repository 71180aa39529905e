//! Transfers between the stages of a plan on a topology, in seconds: a microbatch from a replica of one stage to a
//! replica of another, and the all-reduce of a stage.
//!
//! Microbatch `m` runs on replica `m mod d`. The shards of both replicas hold equal consecutive parts of a tensor, and
//! send those that overlap, all at once. This takes as long as the slowest pair of devices alone, or as the channel
//! with the largest load. `O(replicas² · shards²)` routes for a pair of stages.

use std::collections::BTreeMap;

use crate::{
    cluster::topology::{Collectives, Topology},
    plan::Plan,
};

/// Seconds in each direction, by microbatch modulo the length.
#[derive(Debug, Clone, Default)]
pub(super) struct RouteTimes {
    pub(super) there: Vec<f64>,
    pub(super) back: Vec<f64>,
}

impl RouteTimes {
    /// Equal durations for every microbatch and both directions.
    pub(super) fn uniform(seconds: f64) -> Self {
        RouteTimes { there: vec![seconds], back: vec![seconds] }
    }
}

/// Devices of a plan's stages on its topology.
pub(super) struct StagePlacement<'a> {
    topology: &'a Topology,
    /// By stage: replicas and shards.
    degrees: Vec<[usize; 2]>,
    /// By stage, replica by replica and shard by shard.
    devices: Vec<Vec<usize>>,
}

impl<'a> StagePlacement<'a> {
    /// Creates the mapping; `None` if the plan has no topology, or names devices that it lacks.
    pub(super) fn of(plan: &'a Plan) -> Option<Self> {
        let topology = plan.topology.as_deref()?;
        let degrees: Vec<[usize; 2]> = plan
            .stages
            .iter()
            .map(|stage| [stage.data_parallel.max(1) as usize, stage.tensor_parallel.max(1) as usize])
            .collect();
        let devices: Vec<Vec<usize>> =
            plan.stages.iter().map(|stage| stage.devices.iter().map(|&device| device as usize).collect()).collect();
        let whole = degrees
            .iter()
            .zip(&devices)
            .all(|([d, t], own)| own.len() == d * t && own.iter().all(|&device| device < topology.devices()));
        whole.then_some(StagePlacement { topology, degrees, devices })
    }

    /// Seconds between two stages for `bytes` of a microbatch.
    pub(super) fn ways(&self, from: usize, to: usize, bytes: f64) -> RouteTimes {
        let ([a, _], [b, _]) = (self.degrees[from], self.degrees[to]);
        let period = a * b / gcd(a, b);
        let one = |from: usize, to: usize| {
            let replicas = |m: usize| (m % self.degrees[from][0], m % self.degrees[to][0]);
            (0..period).map(|m| self.seconds((from, replicas(m).0), (to, replicas(m).1), bytes)).collect()
        };
        RouteTimes { there: one(from, to), back: one(to, from) }
    }

    /// Seconds from a replica of one stage to a replica of another.
    fn seconds(&self, (from, sender): (usize, usize), (to, receiver): (usize, usize), bytes: f64) -> f64 {
        let ([_, n], [_, m]) = (self.degrees[from], self.degrees[to]);
        let (mut slowest, mut loads) = (0.0f64, BTreeMap::<u32, f64>::new());
        for i in 0..n {
            for j in 0..m {
                // Parts of the tensor from i/n to (i+1)/n, and from j/m to (j+1)/m.
                let begin = (i * m).max(j * n);
                let end = ((i + 1) * m).min((j + 1) * n);
                let part = bytes * end.saturating_sub(begin) as f64 / (n * m) as f64;
                // Without bytes there is no message.
                if part <= 0.0 {
                    continue;
                }
                let route = self.topology.route(self.devices[from][sender * n + i], self.devices[to][receiver * m + j]);
                slowest = slowest.max(route.latency_s + part / route.bandwidth);
                route.channels.iter().for_each(|&channel| *loads.entry(channel).or_default() += part);
            }
        }
        loads.iter().map(|(&channel, load)| load / self.topology.channel_bandwidth(channel)).fold(slowest, f64::max)
    }

    /// Seconds of a stage's all-reduce of `bytes` on each device: all shards at once, each over its replicas.
    pub(super) fn reduce(&self, stage: usize, bytes: f64) -> f64 {
        let [replicas, shards] = self.degrees[stage];
        let of_shard = |shard: usize| {
            let own: Vec<usize> = (0..replicas).map(|replica| self.devices[stage][replica * shards + shard]).collect();
            self.topology.collectives(&own)
        };
        let groups: Vec<Collectives> = (0..shards).map(of_shard).collect();
        let alone = groups.iter().map(|group| group.all_reduce_s(bytes)).fold(0.0, f64::max);
        alone * Collectives::crowding(self.topology, &groups)
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

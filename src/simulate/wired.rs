//! A pipeline on a topology: what transfers and all-reduces take on the real routes between its devices.
//!
//! All that one transfer sends between the devices of two stages goes at once: it takes as long as the slowest pair by
//! itself (latency and bytes over the narrowest link of the route), or as the link that carries most of it, whichever is
//! longer. Every microbatch takes as long as the slowest does. Gradients are all-reduced by the fastest of ring, tree and
//! hierarchical algorithms ([`Collectives`]). What several transfers do to one another is the
//! [`LinkModel`](super::LinkModel)'s to say. `O(flows · hops + groups · r²)` routes.

use std::collections::BTreeMap;

use super::{Demands, Pipeline, demands};
use crate::cluster::topology::{Collectives, Routes, Topology};

impl Pipeline {
    /// Whether there are stages that a batch flows through, so that it is known who talks to whom.
    pub fn flows(&self) -> bool {
        self.single_sample.is_none() && self.steps.is_empty()
    }

    /// The same pipeline with its parts on these devices of a topology: stage by stage, replica by replica, shard by shard.
    /// Devices that the topology has not leave it as it is, and so does a pipeline whose durations hold the routes.
    #[must_use]
    pub fn on(mut self, topology: &Topology, devices: &[usize]) -> Pipeline {
        if self.routed {
            return self;
        }
        let bandwidth = crate::cluster::topology::LinkRule::of(topology).any;
        let demands = Demands::of(&self, &[], bandwidth);
        let known = devices.len() == demands.workers.len() && devices.iter().all(|&device| device < topology.devices());
        if !known {
            return self;
        }
        let routes = Routes::among(topology, devices);
        let mut seconds: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        let mut loads: BTreeMap<[u32; 4], BTreeMap<u32, f64>> = BTreeMap::new();
        for flow in &demands.flows {
            let (a, b) = (demands.workers[flow.from], demands.workers[flow.to]);
            // A flow is what a microbatch has of it on average; one that goes this way has all of it.
            let [r, s] = [a, b].map(|worker| self.stages[worker.stage as usize].replicas.max(1));
            let bytes = flow.bytes * f64::from(r) * f64::from(s) / f64::from(demands::gcd(r, s));
            let route = routes.get(flow.from, flow.to);
            let longest = seconds.entry((a.stage as usize, b.stage as usize)).or_default();
            *longest = longest.max(route.seconds(bytes));
            let load = loads.entry([a.stage, b.stage, a.replica, b.replica]).or_default();
            for &channel in &route.channels {
                *load.entry(channel).or_default() += bytes / topology.channel_bandwidth(channel);
            }
        }
        for ([from, to, ..], load) in loads {
            let most = load.into_values().fold(0.0, f64::max);
            let longest = seconds.entry((from as usize, to as usize)).or_default();
            *longest = longest.max(most);
        }
        for transfer in &mut self.transfers {
            // There and back go at different times; the batch is planned with one time for both.
            let both = [(transfer.from, transfer.to), (transfer.to, transfer.from)];
            let longest = both.iter().filter_map(|pair| seconds.get(pair)).copied().fold(0.0, f64::max);
            transfer.seconds = longest;
        }
        let mut first = 0;
        for stage in &mut self.stages {
            let (replicas, shards) = (stage.replicas.max(1) as usize, stage.devices.max(1) as usize);
            let own = &devices[first..first + replicas * shards];
            first += replicas * shards;
            let groups: Vec<Vec<usize>> = if self.samples_are_split {
                vec![own.to_vec()]
            } else {
                (0..shards).map(|shard| (0..replicas).map(|replica| own[replica * shards + shard]).collect()).collect()
            };
            let reduced =
                groups.iter().map(|group| Collectives::new(topology, group).all_reduce_s(stage.gradient_bytes));
            stage.all_reduce_s = reduced.fold(0.0, f64::max);
        }
        // The plan's machines say nothing of a topology's links beyond what its routes do.
        self.notes.push(format!(
            "transfers and all-reduces take what they take on the routes of {}; those of one transfer share its links",
            topology.name
        ));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::topology::named,
        simulate::{PipelineStage, Schedule, Transfer, simulate},
    };

    fn pipeline(replicas: u32, split: bool) -> Pipeline {
        let stage = PipelineStage {
            forward_s: 1e-3,
            backward_s: 2e-3,
            replicas: if split { 1 } else { replicas },
            devices: if split { replicas } else { 1 },
            gradient_bytes: 1e9,
            ..PipelineStage::default()
        };
        Pipeline {
            stages: vec![stage; 2],
            transfers: vec![Transfer { from: 0, to: 1, seconds: 7.0, bytes: 1e8 }],
            microbatches: 8,
            samples_are_split: split,
            ..Pipeline::default()
        }
    }

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= 1e-2 * expected
    }

    #[test]
    fn transfers_and_all_reduces_tell_links_apart() {
        let topology = named("2xdgx-h100").unwrap();
        // Replicas across machines, the pipeline within each: transfers on NVLink, gradients over one rail.
        let across = pipeline(2, false).on(&topology, &[0, 8, 1, 9]);
        assert!(near(across.transfers[0].seconds, 1e8 / 450e9), "{}", across.transfers[0].seconds);
        assert!(near(across.stages[0].all_reduce_s, 1e9 / 50e9), "{}", across.stages[0].all_reduce_s);
        // The other way round.
        let within = pipeline(2, false).on(&topology, &[0, 1, 8, 9]);
        assert!(near(within.transfers[0].seconds, 1e8 / 50e9));
        assert!(near(within.stages[0].all_reduce_s, 1e9 / 450e9));
        let [across, within] = [across, within].map(|p| simulate(&p, Schedule::OneForwardOneBackward).iteration_s);
        assert!(across != within);
        // Devices that are not there leave all as it was.
        let plain = pipeline(2, false);
        assert_eq!(plain.clone().on(&topology, &[0, 1, 8, 99]), plain);
    }

    #[test]
    fn what_one_transfer_sends_shares_its_links() {
        let topology = named("2xdgx-1+eth-25g").unwrap();
        // Four devices on each side, each a quarter of the bytes, all over one NIC.
        let split = pipeline(4, true).on(&topology, &[0, 1, 2, 3, 8, 9, 10, 11]);
        assert!(near(split.transfers[0].seconds, 1e8 / 3.125e9), "{}", split.transfers[0].seconds);
    }
}

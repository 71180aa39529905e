//! Pipeline on a topology: durations of transfers and all-reduces on the real routes between its devices.
//!
//! A microbatch's data from a replica of one stage to a replica of another moves at once, shard to shard. It takes as
//! long as the slowest pair alone (latency, and bytes over the narrowest link of the route), or as the link with the
//! largest load, whichever is longer. Every pair of replicas has its own duration and channels
//! ([`ReplicaRoutes`](super::ReplicaRoutes)), so only the microbatches of a distant pair wait for it. The
//! [`LinkModel`](super::LinkModel) determines how transfers affect one another. Gradients are all-reduced by the
//! fastest of ring, tree and hierarchical algorithms ([`Collectives`]). If the shards of a stage all reduce over the
//! same links, they share these. `O(flows · hops + groups · r²)` routes.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    demands::{self, Demands},
    pipeline::{Pipeline, PipelineStage, Transfer},
    wires::{ChannelLoad, ReplicaRoute, ReplicaRoutes},
};
use crate::cluster::topology::{Collectives, LinkRule, Topology};

impl Pipeline {
    /// True if a batch flows through stages, so that the communicating pairs are known.
    pub fn flows(&self) -> bool {
        self.single_sample.is_none() && self.steps.is_empty()
    }

    /// Maps the pipeline's parts to these devices of a topology: stage by stage, replica by replica, shard by shard. If
    /// the topology lacks one of the devices, or the durations already include the routes, nothing changes.
    #[must_use]
    pub fn on(self, topology: &Topology, devices: &[usize]) -> Pipeline {
        self.on_unless(topology, devices, &|| false).expect("nobody stops it")
    }

    /// Like `on`, but returns `None` once `stopped` is true. It is polled periodically.
    #[must_use]
    pub fn on_unless(mut self, topology: &Topology, devices: &[usize], stopped: &dyn Fn() -> bool) -> Option<Pipeline> {
        if self.routed {
            return Some(self);
        }
        let bandwidth = LinkRule::of(topology).any;
        let demands = Demands::of(&self, &[], bandwidth);
        let known = devices.len() == demands.workers.len() && devices.iter().all(|&device| device < topology.devices());
        if !known {
            return Some(self);
        }
        let mut wiring = RouteBuilder::new(&self, topology, devices);
        wiring.add(&demands, stopped)?;
        if let Some(demands) = self.way_back(bandwidth) {
            wiring.add(&demands, stopped)?;
        }
        self.wires = wiring.wires;
        for transfer in &mut self.transfers {
            let slowest = |from: usize, to: usize| {
                let ways = self.wires.between(from as u32, to as u32).iter();
                ways.map(|way| way.seconds).fold(0.0, f64::max)
            };
            // The duration shown for a boundary is that of its slowest pair, in either direction.
            transfer.seconds = slowest(transfer.from, transfer.to).max(slowest(transfer.to, transfer.from));
        }
        let mut first = 0;
        for stage in &mut self.stages {
            let count = stage.replicas.max(1) as usize * stage.devices.max(1) as usize;
            let own = &devices[first..first + count];
            stage.all_reduce_s = reduced(stage, self.samples_are_split, topology, own, stopped)?;
            first += count;
        }
        // The routes of the topology replace the machines of the plan.
        self.notes.push(format!(
            "transfers and all-reduces are timed on the routes of {}, separately for each pair of replicas",
            topology.name
        ));
        Some(self)
    }

    /// Transfers from the last stage back to the first, if each stage has several parts of the model: as large as the
    /// largest boundary.
    fn way_back(&self, bandwidth: f64) -> Option<Demands> {
        let last = self.stages.len().checked_sub(1).filter(|&last| last > 1)?;
        let dearest = self
            .sends()
            .max_by(|a, b| (a.bytes, a.seconds).partial_cmp(&(b.bytes, b.seconds)).unwrap_or(Ordering::Equal))?;
        let known = self.sends().any(|transfer| (transfer.from, transfer.to) == (0, last));
        let ends = Pipeline {
            stages: self.stages.clone(),
            transfers: vec![Transfer { from: 0, to: last, ..*dearest }],
            microbatches: self.microbatches,
            samples_are_split: self.samples_are_split,
            ..Pipeline::default()
        };
        (!known).then(|| Demands::of(&ends, &[], bandwidth))
    }
}

/// Seconds of a stage's all-reduce: of its replicas, all shards at once; or of all its devices, if they split the
/// samples. `None` if stopped.
fn reduced(
    stage: &PipelineStage,
    samples_are_split: bool,
    topology: &Topology,
    own: &[usize],
    stopped: &dyn Fn() -> bool,
) -> Option<f64> {
    if samples_are_split {
        return (!stopped()).then(|| topology.collectives(own).all_reduce_s(stage.gradient_bytes));
    }
    let (replicas, shards) = (stage.replicas.max(1) as usize, stage.devices.max(1) as usize);
    let group = |shard: usize| -> Option<Collectives> {
        let devices: Vec<usize> = (0..replicas).map(|replica| own[replica * shards + shard]).collect();
        (!stopped()).then(|| topology.collectives(&devices))
    };
    let groups: Vec<Collectives> = (0..shards).map(group).collect::<Option<_>>()?;
    let alone = groups.iter().map(|group| group.all_reduce_s(stage.gradient_bytes));
    Some(alone.fold(0.0, f64::max) * Collectives::crowding(topology, &groups))
}

/// Ways found so far, with their channels.
struct RouteBuilder<'a> {
    pipeline: &'a Pipeline,
    topology: &'a Topology,
    /// Devices by worker.
    devices: &'a [usize],
    /// By channel of the topology: its number among the channels in use.
    numbers: BTreeMap<u32, u32>,
    wires: ReplicaRoutes,
}

impl<'a> RouteBuilder<'a> {
    fn new(pipeline: &'a Pipeline, topology: &'a Topology, devices: &'a [usize]) -> Self {
        RouteBuilder { pipeline, topology, devices, numbers: BTreeMap::new(), wires: ReplicaRoutes::default() }
    }

    /// Adds the communication between the workers of a pipeline's stages; `None` if stopped.
    fn add(&mut self, demands: &Demands, stopped: &dyn Fn() -> bool) -> Option<()> {
        let mut found: BTreeMap<[u32; 4], (f64, BTreeMap<u32, f64>)> = BTreeMap::new();
        for flow in &demands.flows {
            if stopped() {
                return None;
            }
            let (a, b) = (demands.workers[flow.from], demands.workers[flow.to]);
            // A flow holds the average per microbatch; a microbatch that goes this way has all of it.
            let [r, s] = [a, b].map(|worker| self.replicas(worker.stage));
            let bytes = flow.bytes * f64::from(r) * f64::from(s) / f64::from(demands::gcd(r, s));
            let route = self.topology.route(self.devices[flow.from], self.devices[flow.to]);
            let (slowest, loads) = found.entry([a.stage, b.stage, a.replica, b.replica]).or_default();
            *slowest = slowest.max(route.seconds(bytes));
            for &channel in &route.channels {
                *loads.entry(channel).or_default() += bytes;
            }
        }
        let pairs: BTreeSet<(u32, u32)> = found.keys().map(|key| (key[0], key[1])).collect();
        for (from, to) in pairs {
            let (r, s) = (self.replicas(from), self.replicas(to));
            let way = |microbatch: u32| found.get(&[from, to, microbatch % r, microbatch % s]);
            let microbatches = 0..r / demands::gcd(r, s) * s;
            let ways: Vec<ReplicaRoute> =
                microbatches.map(|m| way(m).map(|found| self.way(found)).unwrap_or_default()).collect();
            self.wires.ways.insert((from, to), ways);
        }
        Some(())
    }

    fn way(&mut self, (slowest, loads): &(f64, BTreeMap<u32, f64>)) -> ReplicaRoute {
        let widths = loads.iter().map(|(&channel, bytes)| bytes / self.topology.channel_bandwidth(channel));
        let seconds = widths.fold(*slowest, f64::max);
        let number = |(&channel, &bytes): (&u32, &f64)| {
            let fresh = self.wires.channels.len() as u32;
            let number = *self.numbers.entry(channel).or_insert(fresh);
            if number == fresh {
                self.wires.channels.push(self.topology.channel_bandwidth(channel));
            }
            ChannelLoad { channel: number, bytes }
        };
        ReplicaRoute { seconds, loads: loads.iter().map(number).collect() }
    }

    fn replicas(&self, stage: u32) -> u32 {
        self.pipeline.stages[stage as usize].replicas.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::topology::named,
        simulate::{LinkModel, PipelineStage, Schedule, Transfer, simulate},
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

    #[test]
    fn every_pair_of_replicas_takes_its_own_time() {
        let topology = named("2xdgx-1+eth-25g").unwrap();
        // One replica sends to two, one in its own machine and one over the network.
        let mut fork = pipeline(2, false);
        fork.stages[0].replicas = 1;
        let mixed = fork.on(&topology, &[0, 1, 9]);
        let [near_way, far] = mixed.wires.between(0, 1) else { panic!("{:?}", mixed.wires) };
        assert!(near(near_way.seconds, 1e8 / 50e9) || near(near_way.seconds, 1e8 / 25e9), "{near_way:?}");
        assert!(near(far.seconds, 1e8 / 3.125e9), "{far:?}");
        let batch = |pipeline: &Pipeline| simulate(pipeline, Schedule::OneForwardOneBackward).iteration_s;
        // As if both went the slow way it takes longer, as if both went the fast way less.
        let both = |way: &ReplicaRoute| {
            let mut other = mixed.clone();
            other.wires.ways.values_mut().for_each(|ways| ways.fill(way.clone()));
            batch(&other)
        };
        assert!(both(near_way) < batch(&mixed) && batch(&mixed) < both(far));
        let timeline = simulate(&mixed, Schedule::OneForwardOneBackward);
        let there = &timeline.links[0];
        assert!(near(there.busy_s, 4.0 * (near_way.seconds + far.seconds)), "{there:?}");
    }

    /// Four stages with one replica each, on two boxes: both boundaries 0-1 and 2-3 cross the network.
    fn crossing() -> Pipeline {
        let stage = PipelineStage { forward_s: 1e-3, backward_s: 2e-3, ..PipelineStage::default() };
        let transfer = |from, bytes| Transfer { from, to: from + 1, seconds: 7.0, bytes };
        Pipeline {
            stages: vec![stage; 4],
            transfers: vec![transfer(0, 1e7), transfer(1, 1.0), transfer(2, 1e7)],
            microbatches: 32,
            ..Pipeline::default()
        }
    }

    #[test]
    fn boundaries_that_share_a_network_card_slow_each_other() {
        let topology = named("2xdgx-1+eth-25g").unwrap();
        let run = |links: LinkModel, devices: &[usize]| {
            let mut pipeline = crossing().on(&topology, devices);
            pipeline.settings.links = links;
            simulate(&pipeline, Schedule::OneForwardOneBackward).iteration_s
        };
        // From box 0 to box 1 and back: forward and backward of the two crossings go over the same card.
        let same = [0, 8, 9, 1];
        let [private, exclusive, shared] = LinkModel::ALL.map(|links| run(links, &same));
        assert!(shared > 1.1 * private && exclusive > 1.1 * private, "{private} {exclusive} {shared}");
        // In one box every boundary has links of its own.
        let [private, exclusive, shared] = LinkModel::ALL.map(|links| run(links, &[0, 1, 2, 3]));
        assert!(private == exclusive && private == shared, "{private} {exclusive} {shared}");
    }

    #[test]
    fn shards_that_reduce_over_one_card_share_it() {
        let topology = named("2xdgx-1+eth-25g").unwrap();
        let stage =
            |devices: u32| PipelineStage { replicas: 2, devices, gradient_bytes: 1e8, ..PipelineStage::default() };
        let one = |shards: u32, devices: &[usize]| {
            let pipeline = Pipeline { stages: vec![stage(shards)], microbatches: 4, ..Pipeline::default() };
            pipeline.on(&topology, devices).stages[0].all_reduce_s
        };
        let alone = one(1, &[0, 8]);
        assert!(near(one(4, &[0, 1, 2, 3, 8, 9, 10, 11]), 4.0 * alone), "{alone}");
    }

    #[test]
    fn routes_are_not_looked_for_any_longer_once_stopped() {
        use std::cell::Cell;
        let topology = named("2xdgx-1+eth-25g").unwrap();
        let devices = [0, 1, 2, 3, 8, 9, 10, 11];
        let asked = Cell::new(0);
        let never = || {
            asked.set(asked.get() + 1);
            false
        };
        for plain in [pipeline(4, false), pipeline(4, true)] {
            asked.set(0);
            let whole = plain.clone().on_unless(&topology, &devices, &never).unwrap();
            assert_eq!(whole, plain.clone().on(&topology, &devices));
            let all = asked.get();
            assert!(all > 2);
            // Whenever that is.
            for at in 0..all {
                asked.set(0);
                let then = || asked.replace(asked.get() + 1) == at;
                assert_eq!(plain.clone().on_unless(&topology, &devices, &then), None);
                assert_eq!(asked.get(), at + 1);
            }
        }
    }

    #[test]
    fn the_way_back_of_interleaved_parts_is_routed() {
        let topology = named("2xdgx-1+eth-25g").unwrap();
        let pipeline = crossing().on(&topology, &[0, 1, 2, 8]);
        let back = pipeline.wires.between(3, 0);
        assert!(back.len() == 1 && near(back[0].seconds, 1e7 / 3.125e9), "{back:?}");
    }
}

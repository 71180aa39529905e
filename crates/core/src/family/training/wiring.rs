//! Configuration on the devices of a topology: the bandwidth that its groups attain there, and their communication.
//!
//! A plan's devices are those of its stages in order: tensor groups are neighbours, followed by context and data ranks,
//! as engines number them. All groups of one kind communicate at once: all tensor groups, then all context groups, and
//! so on. A ring takes as long as its most loaded channel, which other rings of the kind may also use. If a group has
//! several members in each of several machines, each machine's members form a ring. The members with the same position
//! in every machine form another, which carries its part. This is how collectives use all NICs of a machine.
//!
//! `O(devices)` routes, each `O(links · log vertices)`.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{configured, iteration::IterationCosts, ranks::RankNumbers};
use crate::workload::training::run::{GroupLinks, LinkShares, TrainingRun, ZeroBubble};
use crate::{
    cluster::{
        Limits,
        topology::{PairMatrix, Ring, Topology},
    },
    plan::{Configuration, Plan},
    simulate::{Demands, Flow, ModelShard, ReductionGroup},
    workload::TrainingProfile,
};

/// Number of devices above which rings follow the order of ranks.
const ORDERED: usize = 256;

/// Configuration of a plan, and its run on the plan's devices.
pub(super) fn run_of(profile: &TrainingProfile, plan: &Plan, batch: u32) -> (Configuration, TrainingRun) {
    let configuration = configured::of_plan(profile, plan);
    let mut run = profile.run(&configuration, batch);
    if let Some(topology) = &plan.topology {
        let devices: Vec<usize> = plan.devices().map(|device| device as usize).collect();
        run.links = links(topology, &devices, &run);
    }
    (configuration, run)
}

/// Bytes per second that each kind of group attains on these devices. `None` if their number differs from the run's
/// ranks, or if the topology lacks one of them.
pub fn links(topology: &Topology, devices: &[usize], run: &TrainingRun) -> Option<GroupLinks> {
    let ranks = RankNumbers::of(&run.layout);
    if devices.len() != ranks.count() || devices.iter().any(|&device| device >= topology.devices()) {
        return None;
    }
    let pairs = (topology.devices() <= ORDERED).then(|| topology.pair_matrix());
    let mut wires = RankWiring { topology, devices, pairs, routes: FxHashMap::default() };
    let loads = [
        wires.rings(&ranks.tensor_groups()),
        wires.rings(&ranks.replica_groups(ranks.context)),
        wires.exchanges(&ranks.expert_groups()),
        wires.loads(ranks.handovers().map(|(a, b)| (a, b, 1.0)).collect()),
        wires.rings(&ranks.replica_groups(ranks.replicas)),
    ];
    let [tensor, context, expert, next_stage, data] = [0, 1, 2, 3, 4].map(|kind| wires.attained(&loads[kind]));
    let mut shares: BTreeMap<u32, LinkShares> = BTreeMap::new();
    for (kind, attained) in [tensor, context, expert, next_stage, data].into_iter().enumerate() {
        for (&channel, load) in &loads[kind] {
            shares.entry(channel).or_default()[kind] = attained * load / topology.channel_bandwidth(channel);
        }
    }
    Some(GroupLinks { tensor, context, expert, next_stage, data, shares: busiest(shares.into_values()) })
}

/// Pareto-maximal links: no other link is at least as busy with every kind of transfer.
fn busiest(all: impl Iterator<Item = LinkShares>) -> Vec<LinkShares> {
    let mut kept: Vec<LinkShares> = vec![];
    for shares in all {
        let below = |one: &LinkShares, other: &LinkShares| one.iter().zip(other).all(|(a, b)| *a <= b + 1e-9);
        if !kept.iter().any(|known| below(&shares, known)) {
            kept.retain(|known| !below(known, &shares));
            kept.push(shares);
        }
    }
    kept
}

/// Ranks on the devices of a topology.
struct RankWiring<'a> {
    topology: &'a Topology,
    devices: &'a [usize],
    pairs: Option<PairMatrix>,
    /// Channels by pair of ranks.
    routes: FxHashMap<(usize, usize), Vec<u32>>,
}

impl RankWiring<'_> {
    /// Load of every channel under simultaneous steps, each with its fraction of the bytes.
    fn loads(&mut self, steps: Vec<(usize, usize, f64)>) -> BTreeMap<u32, f64> {
        let mut loads: BTreeMap<u32, f64> = BTreeMap::new();
        for (a, b, share) in steps {
            let (topology, devices) = (self.topology, self.devices);
            let route = self.routes.entry((a, b));
            let channels = route.or_insert_with(|| topology.route(devices[a], devices[b]).channels);
            for &channel in channels.iter() {
                *loads.entry(channel).or_default() += share;
            }
        }
        loads
    }

    /// Bytes per second under these loads, limited by the most loaded channel.
    fn attained(&self, loads: &BTreeMap<u32, f64>) -> f64 {
        let width = |(&channel, load): (&u32, &f64)| self.topology.channel_bandwidth(channel) / load;
        loads.iter().map(width).fold(f64::INFINITY, f64::min)
    }

    fn rings(&mut self, groups: &[Vec<usize>]) -> BTreeMap<u32, f64> {
        let steps = groups.iter().filter(|group| group.len() > 1).flat_map(|group| self.ring(group)).collect();
        self.loads(steps)
    }

    /// Steps of a group's ring, or of its rings within and across machines.
    fn ring(&self, group: &[usize]) -> Vec<(usize, usize, f64)> {
        let mut machines: Vec<(usize, Vec<usize>)> = vec![];
        for &rank in group {
            let machine = self.topology.machine_of(self.devices[rank]);
            match machines.iter_mut().find(|(known, _)| *known == machine) {
                Some((_, members)) => members.push(rank),
                None => machines.push((machine, vec![rank])),
            }
        }
        let each = machines[0].1.len();
        if machines.len() < 2 || each < 2 || machines.iter().any(|(_, members)| members.len() != each) {
            return self.steps(group, 1.0);
        }
        let within = machines.iter().flat_map(|(_, members)| self.steps(members, 1.0));
        let place = |place: usize| machines.iter().map(|(_, members)| members[place]).collect::<Vec<usize>>();
        let across = (0..each).flat_map(|at| self.steps(&place(at), 1.0 / each as f64));
        within.chain(across).collect()
    }

    fn steps(&self, members: &[usize], share: f64) -> Vec<(usize, usize, f64)> {
        let count = members.len();
        let at = |place: usize| self.devices[members[place]];
        let order: Vec<usize> = match &self.pairs {
            Some(pairs) if count > 2 => Ring::widest(count, |a, b| pairs.at(at(a), at(b))).order,
            _ => (0..count).collect(),
        };
        let next = |place: usize| members[order[(place + 1) % count]];
        (0..count).map(|place| (members[order[place]], next(place), share)).collect()
    }

    /// Exchange in which every member of a group sends every other member an equal part.
    fn exchanges(&mut self, groups: &[Vec<usize>]) -> BTreeMap<u32, f64> {
        let pairs = |group: &Vec<usize>| {
            let share = 1.0 / (group.len() - 1).max(1) as f64;
            let group = group.clone();
            let others = group.clone();
            let to = move |a: usize| others.clone().into_iter().filter(move |&b| b != a).map(move |b| (a, b, share));
            group.into_iter().flat_map(to).collect::<Vec<_>>()
        };
        let steps = groups.iter().filter(|group| group.len() > 1).flat_map(pairs).collect();
        self.loads(steps)
    }
}

/// Communication between the ranks of a plan: bytes per microbatch, as the times of its configuration count them.
pub(super) fn demands(profile: &TrainingProfile, limits: &Limits, plan: &Plan) -> Option<Demands> {
    let configuration = configured::of_plan(profile, plan);
    let run = profile.run(&configuration, limits.samples());
    let split = configured::split(profile, &configuration)?;
    if run.microbatches() == 0 {
        return None;
    }
    let (model, accelerator) = (&profile.model, &profile.accelerator);
    let costs = IterationCosts::of(model, &run, accelerator, &profile.constants, &split);
    let ranks = RankNumbers::of(&run.layout);
    let mut demands = Demands::default();
    for stage in 0..ranks.stages as u32 {
        for replica in 0..ranks.replicas as u32 {
            demands.workers.extend((0..ranks.tensor as u32).map(|shard| ModelShard { stage, replica, shard }));
        }
    }
    let bytes = 2.0 * run.tokens() * model.hidden as f64 / ranks.tensor as f64;
    let mut both = |a: usize, b: usize, bytes: f64| {
        demands.flows.push(Flow { from: a, to: b, bytes });
        demands.flows.push(Flow { from: b, to: a, bytes });
    };
    let parts = f64::from(run.layout.virtual_stages);
    ranks.handovers().for_each(|(a, b)| both(a, b, parts * bytes));
    if parts > 1.0 && run.zero_bubble != Some(ZeroBubble::V) && ranks.stages > 2 {
        let width = ranks.replicas * ranks.tensor;
        (0..width).for_each(|rank| both((ranks.stages - 1) * width + rank, rank, (parts - 1.0) * bytes));
    }
    let m = costs.microbatches.max(1) as f64;
    for (stage, (time, reduction)) in costs.stages.iter().zip(&costs.reductions).enumerate() {
        let traffic = time.traffic();
        let kinds = [
            (ranks.tensor_groups(), traffic.tensor),
            (ranks.replica_groups(ranks.context), traffic.context),
            (ranks.expert_groups(), traffic.expert),
            (ranks.replica_groups(ranks.replicas), reduction.bytes / m),
        ];
        let own = stage * ranks.replicas * ranks.tensor..(stage + 1) * ranks.replicas * ranks.tensor;
        for (groups, bytes) in kinds {
            let of_stage = groups.into_iter().filter(|group| group.len() > 1 && own.contains(&group[0]));
            demands.groups.extend(of_stage.filter(|_| bytes > 0.0).map(|workers| ReductionGroup { workers, bytes }));
        }
    }
    demands.notes.push(
        "ranks are ordered tensor first, then context and data; links carry all collective traffic, hidden or not"
            .into(),
    );
    Some(demands)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups of ranks that differ in one dimension of a grid alone, by mixed radix with the first dimension fastest: those
    /// of Megatron-Core's rank generator in the order tp-cp-ep-dp-pp.
    fn groups_along(sizes: &[usize], along: usize) -> Vec<Vec<usize>> {
        let stride: usize = sizes[..along].iter().product();
        let count: usize = sizes.iter().product();
        let first = (0..count).filter(|rank| (rank / stride).is_multiple_of(sizes[along]));
        first.map(|rank| (0..sizes[along]).map(|step| rank + step * stride).collect()).collect()
    }

    fn sorted(mut groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        groups.sort();
        groups
    }

    #[test]
    fn groups_are_those_of_megatrons_rank_generator_on_200_grids() {
        let mut seed = 3u64;
        let mut draw = |list: &[usize]| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            list[(seed >> 33) as usize % list.len()]
        };
        let mut compared = 0;
        while compared < 200 {
            let [tensor, context, data, stages] =
                [draw(&[1, 2, 4, 8]), draw(&[1, 2, 4]), draw(&[1, 2, 3, 4, 8]), draw(&[1, 2, 3, 4])];
            let [expert, expert_tensor] = [draw(&[1, 2, 4, 8, 16]), draw(&[1, 2, 4])];
            let width = tensor * context * data;
            if width % (expert * expert_tensor) != 0 {
                continue;
            }
            let ranks = RankNumbers { stages, replicas: data * context, context, tensor, expert, expert_tensor };
            let dense = [tensor, context, data, stages];
            let of_experts = [expert_tensor, expert, width / expert / expert_tensor, stages];
            assert_eq!(sorted(ranks.tensor_groups()), sorted(groups_along(&dense, 0)));
            assert_eq!(sorted(ranks.replica_groups(context)), sorted(groups_along(&dense, 1)));
            assert_eq!(sorted(ranks.expert_groups()), sorted(groups_along(&of_experts, 1)));
            compared += 1;
        }
    }

    /// The grids that Megatron-Core's documentation of its groups writes out, and one with folded experts.
    #[test]
    fn groups_are_those_that_megatron_writes_out() {
        let ranks = |[tensor, context, data, stages, expert]: [usize; 5]| RankNumbers {
            stages,
            replicas: data * context,
            context,
            tensor,
            expert,
            expert_tensor: 1,
        };
        let of_16 = ranks([2, 1, 2, 4, 1]);
        assert_eq!(of_16.tensor_groups()[..3], [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(of_16.replica_groups(2)[..3], [[0, 2], [1, 3], [4, 6]]);
        assert_eq!(of_16.handovers().take(2).collect::<Vec<_>>(), [(0, 4), (1, 5)]);
        // Attention has tp=2, its experts are whole: an expert group is the four ranks of two tensor groups.
        assert_eq!(ranks([2, 1, 4, 1, 4]).expert_groups(), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    }
}

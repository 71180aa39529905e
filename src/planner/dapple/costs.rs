//! What a stage costs, by the positions between which it lies.
//!
//! A position is a place where the network may be cut: after some nodes, before the others. Two positions bound a stage if
//! one has all the nodes of the other. Costs are sums over a position's nodes, so that of any stage on any number of devices
//! is a difference and takes `O(1)`. Memory `O(positions²)` for which position may follow which.
//!
//! Differences of times lose nothing that counts, since every plan takes at least its share of the whole. Parameters are
//! different: on one device none are exchanged, however many. Where they are no whole bytes they are added up by node.

use std::collections::hash_map::Entry;

use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

use crate::{
    cluster::Limits,
    graph::Dag,
    plan::SpeedupModel,
    workload::{
        LayerNode, LayerProfile, Workload,
        states::{self, States},
    },
};

/// Costs by position; 0 is the network's beginning, the last one its end, and every position comes after those within it.
#[derive(Debug, Clone)]
pub(super) struct Costs {
    /// What is done at each position.
    positions: Vec<Position>,
    /// By position: those that can end a stage which begins there.
    later: Vec<FixedBitSet>,
    /// By position: its place by the compute up to it.
    ranks: Vec<u32>,
    /// Forward seconds of the whole batch on one device, up to each position.
    forward_s: Vec<f64>,
    /// The same of the backward pass.
    backward_s: Vec<f64>,
    /// By position the most of both up to it or any before it.
    most_before_s: Vec<f64>,
    parameter_bytes: Vec<f64>,
    /// The same by node where a difference of sums would drown what is small; empty where sums are exact.
    node_parameters: Vec<f64>,
    /// Activation bytes of one microbatch.
    activation_bytes: Vec<f64>,
    /// Bytes of one microbatch's outputs that are needed after a position.
    pub(super) cut_bytes: Vec<f64>,
    /// Microbatches, M.
    pub(super) microbatches: u32,
    memory_bytes: f64,
    optimizer_memory_scaling: f64,
}

/// A place where the network may be cut.
#[derive(Debug, Clone)]
struct Position {
    /// Planned nodes before it.
    done: FixedBitSet,
    /// The last state before it; unused at the beginning.
    state: usize,
}

/// All positions of a network, by number of nodes before them, then in the order of states.
fn positions(dag: &Dag, kept: &[bool], states: &States) -> Vec<Position> {
    let n = dag.len();
    let mut planned = FixedBitSet::with_capacity(n);
    planned.extend((0..n).filter(|&v| kept[v]));
    let mut left = planned.clone();
    states.all_covered().for_each(|covered| left.difference_with(&covered));
    let nothing = FixedBitSet::with_capacity(n);
    let mut numbers = FxHashMap::from_iter([(nothing.clone(), 0)]);
    let mut found = vec![Position { done: nothing, state: 0 }];
    for (state, mut done) in states.all_covered().enumerate() {
        done.intersect_with(&planned);
        // What no state covers is done as soon as all that leads to it is.
        for &v in dag.topological_order().iter().filter(|&&v| left.contains(v as usize)) {
            let mut before = dag.predecessors(v as usize).filter(|&u| kept[u]).peekable();
            if before.peek().is_some() && before.all(|u| done.contains(u)) {
                done.insert(v as usize);
            }
        }
        match numbers.entry(done) {
            Entry::Occupied(same) => found[*same.get()].state = state,
            Entry::Vacant(new) => {
                found.push(Position { done: new.key().clone(), state });
                new.insert(found.len() - 1);
            }
        }
    }
    found.sort_by_key(|position| position.done.count_ones(..));
    if found.last().is_some_and(|last| last.done != planned) {
        found.push(Position { done: planned, state: states.len() - 1 });
    }
    found
}

/// When a stage gives up its activations and computes them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recompute {
    Never,
    /// Where it would not fit otherwise.
    Auto,
    Always,
}

/// One microbatch through a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StageTime {
    pub(super) forward_s: f64,
    pub(super) backward_s: f64,
    pub(super) recompute: bool,
}

impl Costs {
    /// The costs of a problem cut into this many microbatches.
    pub(super) fn new(
        workload: &Workload,
        profile: &LayerProfile,
        states: &States,
        limits: &Limits,
        model: &SpeedupModel,
        microbatches: u32,
    ) -> Self {
        let kept = states::kept(workload);
        let n = workload.nodes.len();
        let (scale, m) = (model.scale(limits.samples()), f64::from(microbatches));
        let positions = positions(&workload.dag, &kept, states);
        let all: f64 = (0..n).filter(|&v| kept[v]).map(|v| profile.nodes[v].activation()).sum();
        let per_sample = match model.peak_activation_per_sample {
            given if given > 0.0 => given,
            _ => all / f64::from(model.profile_batch),
        };
        let held = if all > 0.0 { per_sample * f64::from(limits.samples()) / m / all } else { 0.0 };
        let each = |position: &Position| {
            let sum = |cost: &dyn Fn(&LayerNode) -> f64| position.done.ones().map(|v| cost(&profile.nodes[v])).sum();
            let needed = |&u: &usize| workload.dag.successors(u).any(|w| kept[w] && !position.done.contains(w));
            let cut: f64 = position.done.ones().filter(needed).map(|u| profile.nodes[u].activation()).sum();
            [
                sum(&|node| node.forward_ms / 1000.0 * scale),
                sum(&|node| node.backward_ms / 1000.0 * scale),
                sum(&|node| node.parameter_bytes),
                sum(&|node| node.activation() * held),
                cut * scale / m,
            ]
        };
        let sums: Vec<[f64; 5]> = positions.iter().map(each).collect();
        let [forward_s, backward_s, parameter_bytes, activation_bytes, cut_bytes] =
            std::array::from_fn(|of| sums.iter().map(|sums| sums[of]).collect::<Vec<f64>>());
        let chain = positions.windows(2).all(|pair| pair[0].done.is_subset(&pair[1].done));
        let later = |from: usize| -> FixedBitSet {
            let mut later = FixedBitSet::with_capacity(positions.len());
            if chain {
                later.insert_range(from + 1..);
                return later;
            }
            let within = |&to: &usize| positions[from].done.is_subset(&positions[to].done);
            (from + 1..positions.len()).filter(within).for_each(|to| later.insert(to));
            later
        };
        let mut by_compute: Vec<usize> = (0..positions.len()).collect();
        let compute_s = |at: usize| forward_s[at] + backward_s[at];
        by_compute.sort_by(|&a, &b| compute_s(a).total_cmp(&compute_s(b)));
        let mut ranks = vec![0; positions.len()];
        by_compute.into_iter().enumerate().for_each(|(rank, at)| ranks[at] = rank as u32);
        let most = |most: &mut f64, at| {
            *most = most.max(compute_s(at));
            Some(*most)
        };
        let most_before_s = (0..positions.len()).scan(0.0, most).collect();
        Costs {
            later: (0..positions.len()).map(later).collect(),
            ranks,
            parameter_bytes,
            node_parameters: states::inexact(profile.nodes.iter().map(|node| node.parameter_bytes)),
            activation_bytes,
            cut_bytes,
            forward_s,
            backward_s,
            most_before_s,
            positions,
            microbatches,
            memory_bytes: limits.memory(),
            optimizer_memory_scaling: model.optimizer_memory_scaling,
        }
    }

    /// The last position: the network's end.
    pub(super) fn end(&self) -> usize {
        self.positions.len() - 1
    }

    /// The positions that can end a stage which begins at one.
    pub(super) fn later(&self, from: usize) -> &FixedBitSet {
        &self.later[from]
    }

    /// How many positions have less compute up to them.
    pub(super) fn rank(&self, position: usize) -> u32 {
        self.ranks[position]
    }

    /// The last state before a position that is not the beginning.
    pub(super) fn state(&self, position: usize) -> usize {
        self.positions[position].state
    }

    /// Whether a planned node is done at a position.
    pub(super) fn is_done(&self, position: usize, node: usize) -> bool {
        self.positions[position].done.contains(node)
    }

    /// The least that [`compute_s`](Self::compute_s) is from a position or any before it to another.
    pub(super) fn least_compute_s(&self, from: usize, to: usize) -> f64 {
        self.forward_s[to] + self.backward_s[to] - self.most_before_s[from]
    }

    /// Forward and backward seconds of the whole batch between two positions on one device.
    pub(super) fn compute_s(&self, from: usize, to: usize) -> f64 {
        self.forward_s[to] - self.forward_s[from] + self.backward_s[to] - self.backward_s[from]
    }

    /// Forward seconds of the whole batch up to a position on one device.
    pub(super) fn forward_up_to(&self, to: usize) -> f64 {
        self.forward_s[to]
    }

    /// Bytes of parameters between two positions.
    pub(super) fn parameters(&self, from: usize, to: usize) -> f64 {
        if self.node_parameters.is_empty() {
            return self.parameter_bytes[to] - self.parameter_bytes[from];
        }
        let between = self.positions[to].done.difference(&self.positions[from].done);
        between.map(|v| self.node_parameters[v]).sum()
    }

    /// The time of a stage with `after` stages behind it, if its memory suffices.
    pub(super) fn stage(
        &self,
        from: usize,
        to: usize,
        devices: u32,
        after: usize,
        recompute: Recompute,
    ) -> Option<StageTime> {
        let share = f64::from(self.microbatches) * f64::from(devices);
        let forward_s = (self.forward_s[to] - self.forward_s[from]) / share;
        let backward_s = (self.backward_s[to] - self.backward_s[from]) / share;
        if recompute != Recompute::Always && self.memory(from, to, devices, after, false) <= self.memory_bytes {
            return Some(StageTime { forward_s, backward_s, recompute: false });
        }
        let again = recompute != Recompute::Never && self.memory(from, to, devices, after, true) <= self.memory_bytes;
        again.then_some(StageTime { forward_s, backward_s: backward_s + forward_s, recompute: true })
    }

    /// Bytes on each device of a stage.
    pub(super) fn memory(&self, from: usize, to: usize, devices: u32, after: usize, recompute: bool) -> f64 {
        let d = f64::from(devices);
        let weights = self.optimizer_memory_scaling * self.parameters(from, to);
        // Enough to keep it at work while one is on its way through all stages and links behind it and back (the paper's
        // second warm-up policy).
        let in_flight = (2.0 * after as f64 + 1.0).min(f64::from(self.microbatches));
        let own = (self.activation_bytes[to] - self.activation_bytes[from]) / d;
        if recompute {
            let incoming = if from > 0 { self.cut_bytes[from] / d } else { 0.0 };
            weights + own + incoming * in_flight
        } else {
            weights + own * in_flight
        }
    }

    /// Whether memory can stand in no stage's way before a position, whatever is in flight.
    pub(super) fn memory_is_plenty(&self, before: usize, devices: u32) -> bool {
        self.memory(0, before, 1, devices as usize, false) <= self.memory_bytes
    }
}

//! Cost of a stage between two positions.
//!
//! A position is a place where the network may be cut: after some nodes, before the others. Two positions bound a stage
//! if the nodes of one include the nodes of the other. Costs are sums over a position's nodes. So the cost of any stage
//! on any number of devices is a difference and takes `O(1)`. The table of positions that may follow each other takes
//! `O(positions²)` memory.
//!
//! Rounding of time differences is harmless, because every plan takes at least the total time divided by the number of
//! devices. Parameters differ: on one device none are exchanged, however many there are. So if their byte counts are
//! not integers, they are summed node by node.

use std::collections::hash_map::Entry;

use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

use plantui_core::{
    cluster::Limits,
    graph::Dag,
    plan::SpeedupModel,
    workload::{
        LayerNode, LayerProfile, Workload,
        states::{self, States},
    },
};

/// Costs by position. Position 0 is the start of the network, the last one its end. Every position comes after those it
/// includes.
#[derive(Debug, Clone)]
pub(super) struct Costs {
    /// Nodes before each position.
    positions: Vec<Position>,
    /// Positions that can end a stage which begins at this position.
    later: Vec<FixedBitSet>,
    /// Rank of each position by the compute up to it.
    ranks: Vec<u32>,
    /// Forward seconds of the whole batch on one device, up to each position.
    forward_s: Vec<f64>,
    /// Backward seconds of the whole batch on one device, up to each position.
    backward_s: Vec<f64>,
    parameter_bytes: Vec<f64>,
    /// Parameter bytes of each node, used if rounding in a difference of sums could exceed a small value; empty if sums
    /// are exact.
    node_parameters: Vec<f64>,
    /// Activation bytes of one microbatch.
    activation_bytes: Vec<f64>,
    /// Output bytes of one microbatch that are needed after a position.
    pub(super) cut_bytes: Vec<f64>,
    /// Number of microbatches, M.
    pub(super) microbatches: u32,
    memory_bytes: f64,
    optimizer_memory_scaling: f64,
}

/// A place where the network may be cut.
#[derive(Debug, Clone)]
struct Position {
    /// Planned nodes before this position.
    done: FixedBitSet,
    /// Last state before this position; unused at the start.
    state: usize,
}

/// Returns all positions of a network, sorted by number of nodes before them, then by state.
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
        // A node that no state covers is done once all its predecessors are done.
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

/// Policy for recomputing the activations of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recompute {
    Never,
    /// Only if the stage would not fit otherwise.
    Auto,
    Always,
}

/// Time of one microbatch on a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StageTime {
    pub(super) forward_s: f64,
    pub(super) backward_s: f64,
    pub(super) recompute: bool,
}

impl Costs {
    /// Computes the costs of a problem with this number of microbatches.
    pub(super) fn new(
        workload: &Workload,
        profile: &LayerProfile,
        states: &States,
        limits: &Limits,
        model: &SpeedupModel,
        microbatches: u32,
    ) -> Self {
        let kept = states::planned_nodes(workload);
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
        Costs {
            later: (0..positions.len()).map(later).collect(),
            ranks,
            parameter_bytes,
            node_parameters: states::inexact(profile.nodes.iter().map(|node| node.parameter_bytes)),
            activation_bytes,
            cut_bytes,
            forward_s,
            backward_s,
            positions,
            microbatches,
            memory_bytes: limits.memory(),
            optimizer_memory_scaling: model.optimizer_memory_scaling,
        }
    }

    /// Last position: the end of the network.
    pub(super) fn end(&self) -> usize {
        self.positions.len() - 1
    }

    /// Positions that can end a stage which begins at `from`.
    pub(super) fn later(&self, from: usize) -> &FixedBitSet {
        &self.later[from]
    }

    /// Number of positions with less compute up to them.
    pub(super) fn rank(&self, position: usize) -> u32 {
        self.ranks[position]
    }

    /// Last state before a position other than the start.
    pub(super) fn state(&self, position: usize) -> usize {
        self.positions[position].state
    }

    /// True if a planned node lies before a position.
    pub(super) fn is_done(&self, position: usize, node: usize) -> bool {
        self.positions[position].done.contains(node)
    }

    /// Forward and backward seconds of the whole batch between two positions on one device.
    pub(super) fn compute_s(&self, from: usize, to: usize) -> f64 {
        self.forward_s[to] - self.forward_s[from] + self.backward_s[to] - self.backward_s[from]
    }

    /// Parameter bytes between two positions.
    pub(super) fn parameters(&self, from: usize, to: usize) -> f64 {
        if self.node_parameters.is_empty() {
            return self.parameter_bytes[to] - self.parameter_bytes[from];
        }
        let between = self.positions[to].done.difference(&self.positions[from].done);
        between.map(|v| self.node_parameters[v]).sum()
    }

    /// Time of a stage with `after` stages behind it; `None` if its memory does not suffice.
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
        // Enough microbatches to keep the stage busy while one passes all stages and links behind it and returns (the
        // paper's second warm-up policy).
        let in_flight = (2.0 * after as f64 + 1.0).min(f64::from(self.microbatches));
        let own = (self.activation_bytes[to] - self.activation_bytes[from]) / d;
        if recompute {
            let incoming = if from > 0 { self.cut_bytes[from] / d } else { 0.0 };
            weights + own + incoming * in_flight
        } else {
            weights + own * in_flight
        }
    }

    /// True if no stage before this position can lack memory, whatever is in flight.
    pub(super) fn memory_is_plenty(&self, before: usize, devices: u32) -> bool {
        self.memory(0, before, 1, devices as usize, false) <= self.memory_bytes
    }
}

//! Local search as in the paper's baseline: from a random assignment of classes to accelerators, makes the best single
//! move until none helps.
//!
//! CPUs are not used; memory, capability and contiguity are ignored. Moving a class changes the load of two
//! accelerators, by its own time and its own nets. With a counter per net and accelerator, a move is evaluated in
//! `O(nets of the class)`. Only moves from or to the busiest accelerator can help, so only these are evaluated; the
//! best move is the same. The published program draws its starts from the C library without a seed, which cannot be
//! repeated elsewhere; ours come from the seed of the search. Descents are independent and run in parallel.

use super::{
    DeviceKind, PlacementLimits, Split,
    baselines::scored,
    classes::{ClassGraph, Partition},
    first_plan::{self, FirstPlan},
    load::ClassCosts,
};
use crate::{Status, placement::PlacementResult};
use plantui_core::{graph::Dag, random::SplitMix, search::Search, workload::placement::PlacementProfile};

/// Number of descents per parallel batch; their starts are drawn in sequence.
const TOGETHER: usize = 16;
/// Maximum number of counters of a descent (128 MiB).
pub(super) const MOST_COUNTERS: usize = 1 << 25;
/// Least gain of a move.
pub const LEAST_GAIN: f64 = 1e-5;

/// A descent from a random start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalDescent {
    /// Max-load of the start.
    pub start: f64,
    /// Max-load at the end.
    pub end: f64,
    /// Moves made.
    pub moves: usize,
}

/// Best of `restarts` descents, and all descents in order.
pub fn plan(
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &PlacementLimits,
    restarts: u32,
    search: &Search,
) -> (PlacementResult, Vec<LocalDescent>) {
    if limits.accelerators == 0 {
        let note = "local search uses accelerators only: allow at least one".to_string();
        return (PlacementResult { notes: vec![note], ..PlacementResult::without(Status::Infeasible) }, vec![]);
    }
    let graph = ClassGraph::new(dag, profile, &Partition::by_colour(profile));
    let costs = ClassCosts::new(dag, profile, &graph.partition);
    let accelerators = limits.accelerators as usize;
    // A descent on a large graph takes long. If it is cancelled, the immediate plan is used.
    let FirstPlan { lower_bound, split: first } = first_plan::plan(dag, profile, limits);
    search.report_bound(lower_bound);
    if costs.net_count().saturating_mul(accelerators) > MOST_COUNTERS {
        let note = "too many edges and accelerators for local search: the split is the first one along a topological \
            order"
            .into();
        let placed = first.map(|(_, split)| scored(dag, profile, limits, split));
        let placed = placed.unwrap_or_else(|| PlacementResult::without(Status::Cancelled));
        return (PlacementResult { notes: vec![note], lower_bound: Some(lower_bound), ..placed }, vec![]);
    }
    let ((end, device), descents) = best_of(&costs, &vec![1.0; accelerators], restarts, search);
    let mut stages = vec![(DeviceKind::Accelerator, vec![]); accelerators];
    for node in 0..dag.len() {
        stages[device[graph.partition.class(node)] as usize].1.push(node);
    }
    stages.retain(|(_, nodes)| !nodes.is_empty());
    let mut placed = scored(dag, profile, limits, Split::from_stages(stages));
    if let Some((_, split)) = first.filter(|(value, _)| search.cancelled() && *value < end) {
        placed = scored(dag, profile, limits, split);
        placed.notes.push(
            "stopped before any descent improved on it: the split fills devices along a topological \
            order"
                .into(),
        );
    }
    placed.lower_bound = Some(lower_bound);
    let moves: usize = descents.iter().map(|descent| descent.moves).sum();
    placed.counts = vec![("classes", costs.len() as f64), ("restarts", descents.len() as f64), ("moves", moves as f64)];
    if search.cancelled() {
        placed.status = Status::Cancelled;
    }
    (placed, descents)
}

/// Best of `restarts` descents over accelerators of these speeds: its max-load with the accelerator of each class, and all
/// descents in order.
pub(super) fn best_of(
    costs: &ClassCosts,
    speeds: &[f64],
    restarts: u32,
    search: &Search,
) -> ((f64, Vec<u32>), Vec<LocalDescent>) {
    let mut random = SplitMix::new(search.seed());
    let mut best: Option<(f64, Vec<u32>)> = None;
    let mut descents: Vec<LocalDescent> = vec![];
    let restarts = restarts.max(1) as usize;
    while descents.len() < restarts && (descents.is_empty() || !search.cancelled()) {
        search.report_fraction(descents.len() as f64 / restarts as f64);
        let at_once = TOGETHER.min(restarts - descents.len());
        let mut start = || (0..costs.len()).map(|_| (random.next_u64() % speeds.len() as u64) as u32).collect();
        let starts: Vec<Vec<u32>> = (0..at_once).map(|_| start()).collect();
        let ended: Vec<(LocalDescent, Vec<u32>)> = search.map(starts, |start| descend(costs, speeds, start, search));
        for (descent, device) in ended {
            if best.as_ref().is_none_or(|(value, _)| descent.end < *value) {
                best = Some((descent.end, device));
            }
            descents.push(descent);
        }
    }
    (best.expect("at least one descent"), descents)
}

/// Makes the best move until none helps or the search is cancelled.
fn descend(costs: &ClassCosts, speeds: &[f64], start: Vec<u32>, search: &Search) -> (LocalDescent, Vec<u32>) {
    let mut state = Assignment::new(costs, speeds, start);
    let start = state.max_load();
    let mut moves = 0;
    while !search.cancelled() && state.improve() {
        moves += 1;
    }
    (LocalDescent { start, end: state.max_load(), moves }, state.device)
}

/// Assignment of classes to accelerators.
#[derive(Debug)]
struct Assignment<'a> {
    costs: &'a ClassCosts,
    /// Speed of every accelerator.
    speeds: &'a [f64],
    devices: usize,
    device: Vec<u32>,
    /// `inside[net · devices + d]`: number of classes of the net on accelerator `d`.
    inside: Vec<u32>,
    loads: Vec<f64>,
}

impl<'a> Assignment<'a> {
    fn new(costs: &'a ClassCosts, speeds: &'a [f64], device: Vec<u32>) -> Self {
        let devices = speeds.len();
        let mut inside = vec![0; costs.net_count() * devices];
        for (class, &d) in device.iter().enumerate() {
            for &net in costs.nets(class) {
                inside[net as usize * devices + d as usize] += 1;
            }
        }
        let mut state = Assignment { costs, speeds, devices, device, inside, loads: vec![] };
        state.reprice();
        state
    }

    /// Recomputes all loads, so that rounding errors do not accumulate.
    fn reprice(&mut self) {
        let mut loads = vec![0.0; self.devices];
        for (class, &d) in self.device.iter().enumerate() {
            loads[d as usize] += self.costs.accelerator[class] / self.speeds[d as usize];
        }
        for (net, inside) in self.inside.chunks_exact(self.devices).enumerate() {
            for (load, &count) in loads.iter_mut().zip(inside) {
                if count > 0 && count < self.costs.net_pins(net) {
                    *load += self.costs.net_cost(net);
                }
            }
        }
        self.loads = loads;
    }

    fn max_load(&self) -> f64 {
        self.loads.iter().copied().fold(0.0, f64::max)
    }

    /// Makes the best move if it gains enough.
    fn improve(&mut self) -> bool {
        let busiest = (0..self.devices).fold(0, |best, d| if self.loads[d] > self.loads[best] { d } else { best });
        let before = self.loads[busiest];
        // Costs above this never allow an improving move. They are cut off, because small values would be lost beside
        // them.
        let most = 2.0 * before;
        let mut best = (f64::INFINITY, 0, 0);
        for class in 0..self.device.len() {
            let from = self.device[class] as usize;
            let left = self.loads[from] + self.change_of_leaving(class, from, most);
            let targets = if from == busiest { 0..self.devices } else { busiest..busiest + 1 };
            for to in targets.filter(|&to| to != from) {
                let others = (0..self.devices).filter(|&d| d != from && d != to).map(|d| self.loads[d]);
                let joined = self.loads[to] + self.change_of_joining(class, to, most);
                let value = others.fold(left.max(joined), f64::max);
                if value < best.0 {
                    best = (value, class, to);
                }
            }
        }
        let (value, class, to) = best;
        if value > before - LEAST_GAIN {
            return false;
        }
        let from = self.device[class] as usize;
        self.shift(class, to);
        if self.max_load() < before {
            return true;
        }
        // Beside such large loads, the least gain is lost to rounding.
        self.shift(class, from);
        false
    }

    fn shift(&mut self, class: usize, to: usize) {
        let from = std::mem::replace(&mut self.device[class], to as u32) as usize;
        for &net in self.costs.nets(class) {
            self.inside[net as usize * self.devices + from] -= 1;
            self.inside[net as usize * self.devices + to] += 1;
        }
        self.reprice();
    }

    /// Change of an accelerator's load when one of its classes leaves; costs are cut off at `most`.
    fn change_of_leaving(&self, class: usize, from: usize, most: f64) -> f64 {
        let mut change = -self.costs.accelerator[class] / self.speeds[from];
        for &net in self.costs.nets(class) {
            let net = net as usize;
            let count = self.inside[net * self.devices + from];
            if count == self.costs.net_pins(net) {
                change += self.costs.net_cost(net).min(most);
            } else if count == 1 {
                change -= self.costs.net_cost(net).min(most);
            }
        }
        change
    }

    /// Change of an accelerator's load when a class joins; costs are cut off at `most`.
    fn change_of_joining(&self, class: usize, to: usize, most: f64) -> f64 {
        let mut change = self.costs.accelerator[class] / self.speeds[to];
        for &net in self.costs.nets(class) {
            let net = net as usize;
            let count = self.inside[net * self.devices + to];
            if count == 0 {
                change += self.costs.net_cost(net).min(most);
            } else if count + 1 == self.costs.net_pins(net) {
                change -= self.costs.net_cost(net).min(most);
            }
        }
        change
    }
}

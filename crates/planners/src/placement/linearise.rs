//! Linearised search (DPL): the same dynamic program along a single order of the classes.
//!
//! `n` classes have `n + 1` prefixes, so it takes `O(n²)` in the worst case. The order is that of the published
//! program: a topological sort with a stack. It takes the source with the smallest class number first and visits
//! successors in ascending number, those over artificial edges first. Another order gives another value. The search
//! starts below the value of devices filled along the order (`first_plan`), which is published first.

use super::{
    PlacementLimits, PlacementResult,
    classes::ClassGraph,
    dp::{self, ClassStage, DpOptions, DpResult, OrderedClasses},
    first_plan,
    lattice::{Lattice, LatticeRefusal},
    need,
};
use crate::Status;
use plantui_core::{graph::Dag, search::Search, workload::placement::PlacementProfile};

/// Order of the classes.
pub fn order(graph: &ClassGraph) -> Vec<u32> {
    let n = graph.partition.len();
    let label = |class: u32| (graph.partition.label(class as usize), class);
    let mut successors: Vec<Vec<u32>> = vec![vec![]; n];
    let mut missing = vec![0usize; n];
    for edges in [&graph.artificial, &graph.edges] {
        let mut of_kind: Vec<(u32, u32)> = edges.iter().copied().collect();
        of_kind.sort_by_key(|&(_, to)| label(to));
        for (from, to) in of_kind {
            successors[from as usize].push(to);
            missing[to as usize] += 1;
        }
    }
    let mut stack: Vec<u32> = (0..n as u32).filter(|&v| missing[v as usize] == 0).collect();
    stack.sort_by_key(|&v| std::cmp::Reverse(label(v)));
    let mut order = Vec::with_capacity(n);
    while let Some(v) = stack.pop() {
        order.push(v);
        for &w in &successors[v as usize] {
            missing[w as usize] -= 1;
            if missing[w as usize] == 0 {
                stack.push(w);
            }
        }
    }
    order
}

/// Result along the order.
#[derive(Debug)]
pub(super) struct LinearResult {
    /// Lower bound on the max-load of splits over these classes.
    pub(super) bound: f64,
    /// Max-load and stages of the best split so far, first stage first.
    pub(super) best: Option<(f64, Vec<ClassStage>)>,
    /// Result of the search along the order; its split was moved to `best`.
    pub(super) found: Result<DpResult, LatticeRefusal>,
}

/// Fills devices along the order, publishes that split, and searches for the best split along the order.
pub(super) fn along(prepared: &OrderedClasses, limits: &PlacementLimits, handle: &Search) -> LinearResult {
    let costs = &prepared.costs;
    let bound = need::lower_bound(prepared.at_least(), limits);
    handle.report_bound(bound);
    let order = order(&prepared.graph);
    let first = first_plan::along(&order, costs, limits, bound);
    if let Some((value, stages)) = &first {
        handle.improve(*value, &prepared.split(stages).plan(limits));
    }
    let upper = first.as_ref().map_or(f64::INFINITY, |(value, _)| *value);
    let mut found = dp::solve_over(&Lattice::chain(&order), costs, None, limits, upper, handle);
    let better = found.as_mut().ok().and_then(|found| found.best.take());
    LinearResult { bound, best: better.or(first), found }
}

impl LinearResult {
    /// Max-load of the best split so far.
    pub(super) fn value(&self) -> Option<f64> {
        self.best.as_ref().map(|(value, _)| *value)
    }

    /// Converts into a result.
    pub(super) fn placed(self, prepared: &OrderedClasses) -> PlacementResult {
        let max_load = self.value();
        let mut placed = PlacementResult {
            split: self.best.map(|(_, stages)| prepared.split(&stages)),
            max_load,
            lower_bound: Some(self.bound),
            ..PlacementResult::without(Status::Feasible)
        };
        match self.found {
            Err(LatticeRefusal::Cancelled) => placed.status = Status::Cancelled,
            Err(LatticeRefusal::TooMany(prefixes)) => placed
                .notes
                .push(format!("{prefixes} prefixes are too many for this number of devices: use fewer devices")),
            Ok(found) => {
                // Optimal along this order only: no proof for the graph, unless the lower bound is attained.
                placed.status = match max_load {
                    Some(value) if value <= self.bound => Status::Optimal,
                    _ if !found.proven => Status::Cancelled,
                    _ => Status::Feasible,
                };
                placed.counts = vec![
                    ("classes", prepared.costs.len() as f64),
                    ("closed_sets", found.sets as f64),
                    ("pairs", found.pairs as f64),
                ];
            }
        }
        placed
    }
}

/// Best split along the order, as a result.
pub fn plan(
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &PlacementLimits,
    options: &DpOptions,
    search: &Search,
) -> PlacementResult {
    let prepared = OrderedClasses::with_options(dag, profile, options.contract_layers);
    along(&prepared, limits, search).placed(&prepared)
}

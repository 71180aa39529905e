//! The linearised search (DPL): the same dynamic programming along a single order of the classes.
//!
//! With `n` classes there are `n + 1` ideals, so it takes `O(n²)` at worst. The order is that of the published program: a
//! topological sort with a stack, in which the smallest class number among the sources comes first and successors are
//! seen in ascending number, those of artificial edges before the others. Another order gives another value.

use super::{
    Placed, PlacementLimits,
    classes::ClassGraph,
    dp::{self, DpOptions, Found, Prepared},
    lattice::{Lattice, Refused},
    need,
};
use crate::{
    graph::Dag,
    planner::{Search, Status},
    workload::placement::PlacementProfile,
};

/// The order of the classes.
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

/// The best split along the order.
///
/// # Errors
/// [`Refused`] if the search was cancelled, or the table would be too large.
pub fn search(prepared: &Prepared, limits: &PlacementLimits, search: &Search) -> Result<Found, Refused> {
    let chain = Lattice::chain(&order(&prepared.graph));
    dp::solve_over(&chain, &prepared.costs, limits, f64::INFINITY, search)
}

/// The best split along the order, as a result.
pub fn plan(
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &PlacementLimits,
    options: &DpOptions,
    search: &Search,
) -> Placed {
    let prepared = Prepared::with_options(dag, profile, options.contract_layers);
    place(&prepared, limits, search)
}

/// The result of the search along the order of classes that were prepared already.
pub(super) fn place(prepared: &Prepared, limits: &PlacementLimits, handle: &Search) -> Placed {
    let bound = need::lower_bound(&prepared.costs, limits);
    handle.report_bound(bound);
    match search(prepared, limits, handle) {
        Err(refused) => without_split(refused, bound),
        Ok(found) => {
            let max_load = found.best.as_ref().map(|(value, _)| *value);
            Placed {
                // Optimal along this order only: no proof for the graph, unless the bound happens to be met.
                status: match max_load {
                    Some(value) if value <= bound => Status::Optimal,
                    _ if !found.proven => Status::Cancelled,
                    _ => Status::Feasible,
                },
                split: found.best.map(|(_, stages)| prepared.split(&stages)),
                max_load,
                lower_bound: Some(bound),
                notes: vec![],
                counts: vec![
                    ("classes", prepared.costs.len() as f64),
                    ("ideals", found.ideals as f64),
                    ("pairs", found.pairs as f64),
                ],
            }
        }
    }
}

/// The result where not even one order could be searched.
pub(super) fn without_split(refused: Refused, bound: f64) -> Placed {
    let (status, notes) = match refused {
        Refused::Cancelled => (Status::Cancelled, vec![]),
        Refused::TooMany(prefixes) => {
            let note = format!("{prefixes} prefixes with so many devices are too many to search: allow fewer devices");
            (Status::Feasible, vec![note])
        }
    };
    Placed { lower_bound: Some(bound), notes, ..Placed::without(status) }
}

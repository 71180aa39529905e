//! Exact minimum of a pairwise model, with its proof.
//!
//! Message passing reduces the model to the labels that can be part of an optimal labelling
//! ([`bounds`](super::bounds)). Elimination solves the rest (`eliminate`). The result is exact whenever the remaining
//! tables fit into memory. Otherwise it is the best labelling with the lower bound.

use super::{
    bounds::Bounds,
    eliminate,
    order::{Effort, Order, Sequence},
    pairwise::Pairwise,
};
use plantui_core::search::Search;

/// Largest number of sweeps; elimination solves the rest. Without sweeps, transformer on 64 devices takes 15 times the
/// CPU time.
const MOST_SWEEPS: usize = 300;
/// Number of combinations up to which elimination is cheaper than another sweep.
const CHEAP_COMBINATIONS: f64 = 1e6;
/// Largest number of combinations to eliminate after the sweeps; bounds time.
const MOST_COMBINATIONS: f64 = 2e10;
/// Sums of many costs differ in their last bits.
const ROUNDING: f64 = 1e-11;
/// Gap up to which the bounds differ by rounding only.
const CLOSED: f64 = 1e-13;

/// Search method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// Elimination order.
    pub order: Order,
    /// True if message passing deletes labels first.
    pub bounds: bool,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Label of each variable.
    pub labels: Vec<usize>,
    /// Cost of the labelling.
    pub cost: f64,
    /// Proven lower bound on every cost; equal to `cost` if that is optimal.
    pub lower: f64,
    /// True if the cost is proven optimal.
    pub proven: bool,
    /// True if the search was stopped.
    pub stopped: bool,
    /// Size of the search.
    pub work: Work,
}

/// Size of a search.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Labels in the model.
    pub labels: usize,
    /// Labels left for elimination.
    pub labels_left: usize,
    /// Pairs of sweeps.
    pub sweeps: usize,
    /// Elimination of the whole model, as a comparison.
    pub whole: Effort,
    /// Elimination of the remaining labels.
    pub rest: Effort,
}

impl Work {
    /// True if elimination was skipped because it was too large.
    pub fn refused(&self, method: Method) -> bool {
        !worth(&self.rest, MOST_COMBINATIONS) && (!method.bounds || self.sweeps > 0)
    }
}

/// True if an elimination takes at most `most` combinations and its tables fit.
fn worth(effort: &Effort, most: f64) -> bool {
    effort.combinations <= most && eliminate::fits(effort)
}

/// Minimises a model. `start` is any labelling; `improved` is called for every better one.
pub fn solve(
    model: &Pairwise,
    start: Vec<usize>,
    method: Method,
    search: &Search,
    mut improved: impl FnMut(f64, &[usize]),
) -> Solution {
    let mut bounds = Bounds::new(model.clone(), start);
    // No cost is negative.
    bounds.lower = if method.bounds { f64::NEG_INFINITY } else { 0.0 };
    improved(bounds.upper, &bounds.labels);
    // Sum of the cheapest label of every variable: the bound before the first sweep.
    let least = |costs: &[f64]| costs.iter().copied().fold(f64::INFINITY, f64::min);
    let floor = model.unary.iter().map(|costs| least(costs)).sum::<f64>() * (1.0 - ROUNDING);
    search.report_bound(floor);
    let sequence = Sequence::new(model, method.order);
    let whole = sequence.effort(model);
    let mut work = Work { labels: model.labels(), whole, ..Work::default() };
    while method.bounds && work.sweeps < MOST_SWEEPS && bounds.gap() > CLOSED && !search.cancelled() {
        let before = bounds.upper;
        bounds.sweep(search);
        work.sweeps += 1;
        if bounds.upper < before {
            improved(bounds.upper, &bounds.labels);
        }
        search.report_bound(bounds.lower.min(bounds.upper));
        search.report_fraction(work.sweeps as f64 / (work.sweeps as f64 + 10.0));
        if worth(&sequence.effort(&bounds.model), CHEAP_COMBINATIONS) {
            break;
        }
    }
    work.labels_left = bounds.model.labels();
    work.rest = sequence.effort(&bounds.model);
    let mut solution = Solution {
        cost: bounds.upper,
        lower: bounds.lower.max(floor).min(bounds.upper),
        proven: bounds.gap() <= CLOSED,
        stopped: false,
        labels: bounds.labels,
        work,
    };
    if worth(&work.rest, if solution.proven { CHEAP_COMBINATIONS } else { MOST_COMBINATIONS }) {
        match eliminate::minimum(&bounds.model, &sequence, search) {
            None => solution.stopped = true,
            Some(found) => {
                let labels: Vec<usize> =
                    found.labels.iter().zip(&bounds.alive).map(|(&label, alive)| alive[label] as usize).collect();
                let cost = model.cost(&labels);
                if cost < solution.cost {
                    improved(cost, &labels);
                    (solution.cost, solution.labels) = (cost, labels);
                }
                solution.proven = true;
            }
        }
    } else {
        solution.stopped = search.cancelled();
    }
    if solution.proven {
        solution.lower = solution.cost;
    }
    solution
}

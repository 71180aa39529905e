//! The exact minimum of a pairwise model, with its proof.
//!
//! Message passing narrows the model to the labels that can still be part of a best labelling ([`bounds`](super::bounds));
//! elimination finishes what is left (`eliminate`). Exact in every case where the tables that remain fit into memory;
//! where they do not, the best labelling and the lower bound are returned as they are.

use super::{
    bounds::Bounds,
    eliminate,
    order::{Effort, Order, Sequence},
    pairwise::Pairwise,
};
use crate::planner::Search;

/// Sweeps after which the rest is left to elimination.
const MOST_SWEEPS: usize = 300;
/// Combinations that elimination goes through sooner than another sweep would pay.
const CHEAP_COMBINATIONS: f64 = 1e6;
/// Combinations that are worth going through once sweeps have ended.
const MOST_COMBINATIONS: f64 = 2e10;
/// Sums of many costs differ in their last bits.
const ROUNDING: f64 = 1e-11;
/// A gap that is nothing but rounding.
const CLOSED: f64 = 1e-13;

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// The order of elimination.
    pub order: Order,
    /// Whether message passing deletes labels first.
    pub bounds: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// By variable, the label.
    pub labels: Vec<usize>,
    /// Its cost.
    pub cost: f64,
    /// A proven lower bound on every cost; the cost itself if that is proven least.
    pub lower: f64,
    /// Whether it is proven least.
    pub proven: bool,
    /// Whether the search was stopped.
    pub stopped: bool,
    /// What it took.
    pub work: Work,
}

/// What a search took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Labels in the model.
    pub labels: usize,
    /// Labels left for elimination.
    pub labels_left: usize,
    /// Pairs of sweeps.
    pub sweeps: usize,
    /// Elimination of the whole model, had it been done.
    pub whole: Effort,
    /// Elimination of what was left.
    pub rest: Effort,
}

impl Work {
    /// Whether elimination was left out because it would have taken too much.
    pub fn refused(&self, method: Method) -> bool {
        !worth(&self.rest, MOST_COMBINATIONS) && (!method.bounds || self.sweeps > 0)
    }
}

/// Whether an elimination takes at most so many combinations, and its tables fit.
fn worth(effort: &Effort, most: f64) -> bool {
    effort.combinations <= most && eliminate::fits(effort)
}

/// Minimises a model. `start` is any labelling; `improved` hears of every better one.
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
    // Every variable at its cheapest, and every factor: what is known before the first sweep.
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

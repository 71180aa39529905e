//! Memory per device, which the paper leaves out: as a price first, as a proof that nothing fits at last.
//!
//! A device keeps its share of the weights with their gradients, and of every tensor that an operator writes until the
//! backward pass; the sum over all operators must fit. Such a sum couples all operators, so it is put into the costs at
//! a price per byte (Lagrange; Everett, *Generalized Lagrange Multiplier Method*, Operations Research 1963): for every
//! price the exact minimum of `cost + price · (memory − limit)` is a lower bound on what fits, and the first price at which
//! the minimum fits gives a plan. The price goes from crossing to crossing of the two best lines until none is left; each
//! takes one exact search. Where the two ends do not meet, labels that the bound rules out are deleted and what is left is
//! searched with cost and bytes side by side (`pareto`). Where even that is too much, the result is feasible with a
//! proven bound, not optimal.
//! The least memory is exact: operator by operator.

use std::sync::Arc;

use super::{
    bounds::Bounds,
    order::Sequence,
    pairwise::{Pairwise, select},
    pareto::{self, Question},
    solve::{Method, Solution, solve},
};
use crate::{
    planner::Search,
    workload::operators::{Operator, WORD_BYTES},
};

/// Prices that are tried at the most.
const MOST_PRICES: usize = 60;
/// Sweeps that delete labels before what prices leave open is searched.
const SWEEPS: usize = 12;
/// How many roundings the gap of priced values is widened by.
const GAP_ROUNDING: f64 = 100.0;
/// Sums of bytes differ in their last bits.
const ROUNDING: f64 = 1e-12;

/// Bytes that one operator takes on each device.
pub fn bytes(operator: &Operator, splits: &[u32]) -> f64 {
    let piece = |dim: u8| operator.dims[usize::from(dim)].extent as f64 / f64::from(splits[usize::from(dim)]);
    let weights = operator
        .weights
        .as_ref()
        .map_or(0.0, |weights| f64::from(weights.factor) * weights.dims.iter().map(|&dim| piece(dim)).product::<f64>());
    let written = |tensor: &crate::workload::operators::Tensor| -> f64 {
        let ways = super::cost::project(&tensor.axes, splits);
        tensor.shape.iter().zip(ways).map(|(&extent, ways)| extent as f64 / f64::from(ways)).product()
    };
    let written: f64 = if operator.is_view() { 0.0 } else { operator.outputs.iter().map(written).sum() };
    WORD_BYTES * (2.0 * weights + written)
}

/// By operator and configuration, the bytes; and the limit on their sum.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Bytes.
    pub bytes: Vec<Arc<Vec<f64>>>,
    /// The most bytes that fit.
    pub limit: f64,
}

impl Budget {
    /// Bytes of a labelling.
    pub fn of(&self, labels: &[usize]) -> f64 {
        self.bytes.iter().zip(labels).map(|(bytes, &label)| bytes[label]).sum()
    }

    /// Whether a labelling fits.
    pub fn fits(&self, labels: &[usize]) -> bool {
        self.of(labels) <= self.limit
    }

    /// The least bytes of any labelling.
    pub fn least(&self) -> f64 {
        self.bytes.iter().map(|bytes| bytes.iter().copied().fold(f64::INFINITY, f64::min)).sum()
    }

    /// Every operator at its least bytes.
    fn smallest(&self) -> Vec<usize> {
        let smallest = |bytes: &Arc<Vec<f64>>| (0..bytes.len()).reduce(|a, b| if bytes[b] < bytes[a] { b } else { a });
        self.bytes.iter().map(|bytes| smallest(bytes).unwrap_or_default()).collect()
    }
}

/// What prices leave open: labellings that fit and cost less than the best one known, if there are any.
struct Rest<'a> {
    model: &'a Pairwise,
    budget: &'a Budget,
    /// The price with the best bound.
    price: f64,
    /// A lower bound on every labelling's cost at that price.
    least: f64,
    /// Cost of the best labelling known that fits.
    cost: f64,
}

impl Rest<'_> {
    /// The best labelling that fits and costs less, if there is one; `None` if that is not known in the end.
    fn search(&self, known: &[usize], method: Method, search: &Search) -> Option<Option<(f64, Vec<usize>)>> {
        let unary = self.model.unary.iter().zip(&self.budget.bytes).map(|(costs, bytes)| {
            Arc::new(
                costs.iter().zip(bytes.iter()).map(|(cost, bytes)| cost + self.price * bytes).collect::<Vec<f64>>(),
            )
        });
        let priced = Pairwise { unary: unary.collect(), ..self.model.clone() };
        let most = self.cost + self.price * self.budget.limit;
        let mut bounds = Bounds::new(priced, known.to_vec());
        bounds.keep_up_to = most;
        for _ in 0..SWEEPS {
            if search.cancelled() {
                return None;
            }
            bounds.sweep(search);
        }
        let alive = &bounds.alive;
        let bytes = alive.iter().zip(&self.budget.bytes).map(|(alive, bytes)| select(bytes, alive));
        let (model, _) = self.model.restrict(alive);
        let gap = (most - self.least.max(bounds.lower)).max(0.0) + ROUNDING * most.abs() * GAP_ROUNDING;
        let question = Question {
            model: &model,
            bytes: &bytes.collect::<Vec<_>>(),
            limit: self.budget.limit,
            price: self.price,
            gap,
        };
        let found = pareto::within(&question, &Sequence::new(&model, method.order), search)?;
        let labelled = found.iter().map(|labels| -> Vec<usize> {
            labels.iter().zip(alive).map(|(&label, alive)| alive[label] as usize).collect()
        });
        let best = labelled.into_iter().find(|labels| self.budget.fits(labels));
        Some(best.map(|labels| (self.model.cost(&labels), labels)).filter(|(cost, _)| *cost < self.cost))
    }
}

/// A labelling as a line over the price: `cost + price · excess`.
struct Line {
    labels: Vec<usize>,
    cost: f64,
    excess: f64,
}

/// Minimises a model within a budget that some labelling keeps. `unlimited` is the solution without it.
pub fn within(
    model: &Pairwise,
    budget: &Budget,
    unlimited: &Solution,
    method: Method,
    search: &Search,
    mut improved: impl FnMut(f64, &[usize]),
) -> Solution {
    let line =
        |labels: Vec<usize>| Line { cost: model.cost(&labels), excess: budget.of(&labels) - budget.limit, labels };
    let mut over = line(unlimited.labels.clone());
    let mut under = line(budget.smallest());
    let mut best = (under.cost, under.labels.clone());
    improved(best.0, &best.1);
    let mut lower = unlimited.lower;
    let mut work = unlimited.work;
    let mut stopped = unlimited.stopped;
    let mut at_best_price = None;
    for _ in 0..MOST_PRICES {
        if stopped || over.excess <= under.excess {
            break;
        }
        let price = ((under.cost - over.cost) / (over.excess - under.excess)).max(0.0);
        let unary = model.unary.iter().zip(&budget.bytes).map(|(costs, bytes)| {
            Arc::new(costs.iter().zip(bytes.iter()).map(|(cost, bytes)| cost + price * bytes).collect::<Vec<f64>>())
        });
        let priced = Pairwise { unary: unary.collect(), ..model.clone() };
        let quiet = search.quiet();
        let found = solve(&priced, under.labels.clone(), method, &quiet, |_, _| {});
        stopped = found.stopped;
        work.sweeps += found.work.sweeps;
        if at_best_price.is_none() || found.lower - price * budget.limit > lower {
            at_best_price = Some((price, found.lower));
        }
        lower = lower.max(found.lower - price * budget.limit);
        let crossing = over.cost + price * over.excess;
        let next = line(found.labels);
        let value = next.cost + price * next.excess;
        if next.excess <= 0.0 && next.cost < best.0 {
            best = (next.cost, next.labels.clone());
            improved(best.0, &best.1);
        }
        // No line is below the crossing: the price is the best one.
        if !found.proven || value >= crossing - ROUNDING * crossing.abs() {
            break;
        }
        if next.excess > 0.0 {
            over = next;
        } else {
            under = next;
        }
    }
    let (mut cost, mut labels) = best;
    let mut proven = cost - lower <= ROUNDING * cost;
    if let Some((price, least)) = at_best_price.filter(|_| !proven && !stopped) {
        let rest = Rest { model, budget, price, least, cost };
        match rest.search(&labels, method, search) {
            Some(found) => {
                proven = true;
                if let Some((better, found)) = found {
                    improved(better, &found);
                    (cost, labels) = (better, found);
                }
            }
            None => stopped = search.cancelled(),
        }
    }
    let lower = lower.min(cost);
    Solution { labels, cost, lower: if proven { cost } else { lower }, proven, stopped, work }
}

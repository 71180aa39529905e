//! Memory limit per device, which the paper does not have: a Lagrange multiplier first, exact search for what it leaves
//! open.
//!
//! A device stores its part of the weights with their gradients, and of every output until the backward pass. The sum
//! over all operators must fit. This sum couples all operators, so it is added to the costs with a multiplier per byte
//! (Everett, *Generalized Lagrange Multiplier Method*, Operations Research 1963). For every multiplier the exact
//! minimum of `cost + price · (memory − limit)` is a lower bound for plans that fit. The first multiplier at which the
//! minimum fits gives a plan.
//!
//! The multiplier moves to the crossing of the two best lines until no line lies below it; each step takes one exact
//! search. If a gap remains, labels that the bound excludes are deleted, and the rest is searched for cost and bytes
//! together (`pareto`). If even that is too large, the result is feasible with a proven bound, not optimal. The least
//! memory is exact, because it is a minimum for each operator.

use std::sync::Arc;

use super::{
    bounds::Bounds,
    order::Sequence,
    pairwise::{Pairwise, select},
    pareto::{self, Question},
    solve::{Method, Solution, solve},
};
use plantui_core::{
    search::Search,
    workload::operators::{Operator, WORD_BYTES},
};

/// Largest number of multipliers tried. Without multipliers, inception3 on 8 devices of 3.2 GB takes over 14 times the
/// CPU time.
const MOST_PRICES: usize = 60;
/// Sweeps that delete labels before the exact search. Without them, inception3 on 8 devices of 3.2 GB takes 8 times the
/// CPU time.
const SWEEPS: usize = 12;
/// Widening of the gap between priced values, in units of rounding.
const GAP_ROUNDING: f64 = 100.0;
/// Sums of bytes differ in their last bits.
const ROUNDING: f64 = 1e-12;

/// Bytes of one operator on each device.
pub fn bytes(operator: &Operator, splits: &[u32]) -> f64 {
    let piece = |dim: u8| operator.dims[usize::from(dim)].extent as f64 / f64::from(splits[usize::from(dim)]);
    let weights = operator
        .weights
        .as_ref()
        .map_or(0.0, |weights| f64::from(weights.factor) * weights.dims.iter().map(|&dim| piece(dim)).product::<f64>());
    let written = |tensor: &plantui_core::workload::operators::Tensor| -> f64 {
        let ways = super::cost::project(&tensor.axes, splits);
        tensor.shape.iter().zip(ways).map(|(&extent, ways)| extent as f64 / f64::from(ways)).product()
    };
    let written: f64 = if operator.is_view() { 0.0 } else { operator.outputs.iter().map(written).sum() };
    WORD_BYTES * (2.0 * weights + written)
}

/// Bytes of every configuration, and the limit on their sum.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Bytes by operator and configuration.
    pub bytes: Vec<Arc<Vec<f64>>>,
    /// Memory of a device, bytes.
    pub limit: f64,
}

impl Budget {
    /// Bytes of a labelling.
    pub fn of(&self, labels: &[usize]) -> f64 {
        self.bytes.iter().zip(labels).map(|(bytes, &label)| bytes[label]).sum()
    }

    /// True if a labelling fits.
    pub fn fits(&self, labels: &[usize]) -> bool {
        self.of(labels) <= self.limit
    }

    /// Smallest bytes of any labelling.
    pub fn least(&self) -> f64 {
        self.bytes.iter().map(|bytes| bytes.iter().copied().fold(f64::INFINITY, f64::min)).sum()
    }

    /// Labelling with the fewest bytes for every operator.
    fn smallest(&self) -> Vec<usize> {
        let smallest = |bytes: &Arc<Vec<f64>>| (0..bytes.len()).reduce(|a, b| if bytes[b] < bytes[a] { b } else { a });
        self.bytes.iter().map(|bytes| smallest(bytes).unwrap_or_default()).collect()
    }
}

/// Problem that multipliers leave open: find a labelling that fits and costs less than the incumbent.
struct Rest<'a> {
    model: &'a Pairwise,
    budget: &'a Budget,
    /// Multiplier with the best lower bound.
    price: f64,
    /// Lower bound on every labelling's priced cost at that multiplier.
    least: f64,
    /// Cost of the incumbent, the best labelling known that fits.
    cost: f64,
}

impl Rest<'_> {
    /// Returns the best labelling that fits and costs less, `Some(None)` if there is none, or `None` if the search
    /// could not decide.
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

/// A labelling as a line over the multiplier: `cost + price · excess`.
struct Line {
    labels: Vec<usize>,
    cost: f64,
    excess: f64,
}

/// Minimises a model under a memory limit that some labelling satisfies. `unlimited` is the solution without the limit.
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
        // No line lies below the crossing, so this multiplier is the best one.
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

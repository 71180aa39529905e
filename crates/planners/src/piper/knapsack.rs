//! Least extra cost that frees a given amount of memory: a multiple-choice knapsack, solved exactly.
//!
//! Each item may be swapped once, for one of its options; an option costs something and frees some bytes. Wanted is the
//! cheapest set of swaps that frees at least `shave`. The linear relaxation (take steps of each item's convex hull by
//! ratio) gives a lower bound within one step of its own rounding, which is the upper bound to start from. Between the
//! two, a list of Pareto-optimal partial choices grows item by item in order of ratio (Nemhauser and Ullmann 1969). A
//! partial choice is dropped if its relaxation cannot beat the incumbent.
//!
//! The relaxation takes `O(n log n)` time. The exact part is pseudo-polynomial in practice and exponential at worst; it
//! stops at [`MOST_STATES`] partial choices and then returns the two bounds.

/// Partial choices kept at once before the search gives up proving.
const MOST_STATES: usize = 50_000;

/// What an item may be swapped for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Swap {
    /// The caller's name for it.
    pub(super) choice: usize,
    /// Extra cost, at least 0.
    pub(super) cost: f64,
    /// Bytes freed, above 0.
    pub(super) save: f64,
}

/// Bounds on the least cost, and a choice that reaches the upper one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Solution {
    pub(super) lower: f64,
    pub(super) upper: f64,
    /// For each item the swap taken, if any.
    pub(super) swaps: Vec<Option<Swap>>,
}

/// One step along the convex hull of an item's swaps.
#[derive(Debug, Clone, Copy)]
struct Step {
    item: usize,
    cost: f64,
    save: f64,
    to: Swap,
}

/// The swaps on the lower convex hull of (save, cost) from (0, 0), as steps of rising ratio.
fn hull(item: usize, swaps: &[Swap]) -> Vec<Step> {
    let mut sorted: Vec<Swap> = swaps.to_vec();
    sorted.sort_by(|a, b| a.save.total_cmp(&b.save).then(b.cost.total_cmp(&a.cost)));
    let mut points: Vec<Swap> = vec![];
    for swap in sorted {
        while let Some(last) = points.last() {
            let before = points.len().checked_sub(2).map(|i| (points[i].save, points[i].cost)).unwrap_or_default();
            let slope_last = (last.cost - before.1) * (swap.save - before.0);
            let slope_new = (swap.cost - before.1) * (last.save - before.0);
            // `last` lies on or above the line from the point before it to the new one.
            if slope_last >= slope_new {
                points.pop()
            } else {
                break;
            };
        }
        points.push(swap);
    }
    let mut before = (0.0, 0.0);
    points
        .into_iter()
        .map(|to| {
            let step = Step { item, cost: to.cost - before.1, save: to.save - before.0, to };
            before = (to.save, to.cost);
            step
        })
        .collect()
}

struct Problem<'a> {
    items: &'a [Vec<Swap>],
    /// Steps of all items by ratio.
    steps: Vec<Step>,
    /// Items by the ratio of their first step; only those have swaps.
    order: Vec<usize>,
    /// Position in `order` of each item.
    rank: Vec<usize>,
    /// If every item has one step: sums of saves and costs of `steps[..i]`.
    prefix: Option<(Vec<f64>, Vec<f64>)>,
}

impl<'a> Problem<'a> {
    fn new(items: &'a [Vec<Swap>]) -> Self {
        let hulls: Vec<Vec<Step>> = items.iter().enumerate().map(|(item, swaps)| hull(item, swaps)).collect();
        let single = hulls.iter().all(|steps| steps.len() <= 1) && items.iter().all(|swaps| swaps.len() <= 1);
        let mut steps: Vec<Step> = hulls.into_iter().flatten().collect();
        steps.sort_by(|a, b| (a.cost / a.save).total_cmp(&(b.cost / b.save)).then(a.item.cmp(&b.item)));
        let mut rank = vec![usize::MAX; items.len()];
        let mut order = vec![];
        for step in &steps {
            if rank[step.item] == usize::MAX {
                rank[step.item] = order.len();
                order.push(step.item);
            }
        }
        let prefix = single.then(|| {
            let (mut saves, mut costs) = (vec![0.0], vec![0.0]);
            for step in &steps {
                saves.push(saves.last().expect("starts with 0") + step.save);
                costs.push(costs.last().expect("starts with 0") + step.cost);
            }
            (saves, costs)
        });
        Problem { items, steps, order, rank, prefix }
    }

    /// Least cost of the relaxation that frees `shave` with the items from `order[first..]`; infinite if they cannot.
    fn relaxed(&self, first: usize, shave: f64) -> f64 {
        if shave <= 0.0 {
            return 0.0;
        }
        if let Some((saves, costs)) = &self.prefix {
            let target = saves[first] + shave;
            let at = saves.partition_point(|&s| s < target);
            if at >= saves.len() {
                return f64::INFINITY;
            }
            let part = &self.steps[at - 1];
            return costs[at - 1] - costs[first] + part.cost * ((target - saves[at - 1]) / part.save);
        }
        let (mut left, mut cost) = (shave, 0.0);
        for step in self.steps.iter().filter(|step| self.rank[step.item] >= first) {
            if step.save >= left {
                return cost + step.cost * (left / step.save);
            }
            left -= step.save;
            cost += step.cost;
        }
        f64::INFINITY
    }

    /// Whole steps by ratio until enough is freed, then every swap that is no longer needed is undone, dearest first.
    fn greedy(&self, shave: f64) -> Option<(f64, Vec<Option<Swap>>)> {
        let mut swaps: Vec<Option<Swap>> = vec![None; self.items.len()];
        let mut freed = 0.0;
        for step in &self.steps {
            if freed >= shave {
                break;
            }
            swaps[step.item] = Some(step.to);
            freed = swaps.iter().flatten().map(|swap| swap.save).sum();
        }
        if freed < shave {
            return None;
        }
        let mut taken: Vec<usize> = (0..swaps.len()).filter(|&i| swaps[i].is_some()).collect();
        taken.sort_by(|&a, &b| {
            swaps[b].map(|s| s.cost).unwrap_or_default().total_cmp(&swaps[a].map(|s| s.cost).unwrap_or_default())
        });
        for item in taken {
            let without = swaps[item].take();
            let left: f64 = swaps.iter().flatten().map(|swap| swap.save).sum();
            if left < shave {
                swaps[item] = without;
            }
        }
        Some((swaps.iter().flatten().map(|swap| swap.cost).sum(), swaps))
    }
}

/// A partial choice: cost and save so far, and the way back.
#[derive(Debug, Clone, Copy)]
struct State {
    cost: f64,
    save: f64,
    trail: u32,
}

/// One swap on the way to a state.
#[derive(Debug, Clone, Copy)]
struct Trail {
    before: u32,
    item: u32,
    swap: Swap,
}

/// Solves exactly, or within bounds if that takes too many states. `None` if even all swaps free too little.
pub(super) fn solve(items: &[Vec<Swap>], shave: f64) -> Option<Solution> {
    let problem = Problem::new(items);
    let (mut upper, mut swaps) = problem.greedy(shave)?;
    let mut lower = problem.relaxed(0, shave);
    // Equal up to rounding: the relaxation happened to be whole.
    if upper <= lower * (1.0 + 1e-14) {
        return Some(Solution { lower: upper, upper, swaps });
    }
    let mut trails: Vec<Trail> = vec![];
    let mut states = vec![State { cost: 0.0, save: 0.0, trail: u32::MAX }];
    let mut best_trail = None;
    for (position, &item) in problem.order.iter().enumerate() {
        let mut next = Vec::with_capacity(states.len() * 2);
        for state in &states {
            // Without any swap of this item.
            if state.cost + problem.relaxed(position + 1, shave - state.save) < upper {
                next.push(*state);
            }
            for &swap in &items[item] {
                let (cost, save) = (state.cost + swap.cost, state.save + swap.save);
                if cost >= upper || cost + problem.relaxed(position + 1, shave - save) >= upper {
                    continue;
                }
                trails.push(Trail { before: state.trail, item: item as u32, swap });
                let trail = trails.len() as u32 - 1;
                if save >= shave {
                    upper = cost;
                    best_trail = Some(trail);
                } else {
                    next.push(State { cost, save, trail });
                }
            }
        }
        next.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(b.save.total_cmp(&a.save)).then(a.trail.cmp(&b.trail)));
        let mut most = f64::NEG_INFINITY;
        next.retain(|state| {
            let undominated = state.save > most && state.cost < upper;
            most = most.max(state.save);
            undominated
        });
        states = next;
        if states.is_empty() {
            lower = upper;
            break;
        }
        if states.len() > MOST_STATES || trails.len() > 100 * MOST_STATES {
            break;
        }
        if position + 1 == problem.order.len() {
            lower = upper;
        }
    }
    if let Some(mut trail) = best_trail {
        swaps = vec![None; items.len()];
        while trail != u32::MAX {
            let step = trails[trail as usize];
            swaps[step.item as usize] = Some(step.swap);
            trail = step.before;
        }
    }
    Some(Solution { lower: lower.min(upper), upper, swaps })
}

/// Lower and upper bound of the relaxation alone, in one pass over steps already sorted by ratio: an optimistic cost, the
/// cost of whole steps; both infinite if all steps together free too little.
pub(super) fn relaxed_bounds(steps: impl Iterator<Item = (f64, f64)>, shave: f64) -> (f64, f64) {
    let (mut left, mut cost) = (shave, 0.0);
    if shave <= 0.0 {
        return (0.0, 0.0);
    }
    for (step_cost, save) in steps {
        if save >= left {
            return (cost + step_cost * (left / save), cost + step_cost);
        }
        left -= save;
        cost += step_cost;
    }
    (f64::INFINITY, f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::*, test_runner::RngSeed};

    fn brute(items: &[Vec<Swap>], shave: f64) -> f64 {
        fn go(items: &[Vec<Swap>], shave: f64, cost: f64, best: &mut f64) {
            let Some((first, rest)) = items.split_first() else {
                if shave <= 0.0 {
                    *best = best.min(cost);
                }
                return;
            };
            go(rest, shave, cost, best);
            for swap in first {
                go(rest, shave - swap.save, cost + swap.cost, best);
            }
        }
        let mut best = f64::INFINITY;
        go(items, shave, 0.0, &mut best);
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 600, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]
        #[test]
        fn equals_trying_everything(
            raw in prop::collection::vec(prop::collection::vec((0u32..30, 1u32..40), 0..4), 0..8),
            share in 0.01f64..1.05,
        ) {
            let items: Vec<Vec<Swap>> = raw
                .iter()
                .map(|swaps| swaps.iter().enumerate().map(|(choice, &(cost, save))| Swap { choice, cost: f64::from(cost), save: f64::from(save) }).collect())
                .collect();
            let total: f64 = items.iter().map(|swaps| swaps.iter().map(|s| s.save).fold(0.0, f64::max)).sum();
            let shave = (total * share).ceil().max(1.0);
            let best = brute(&items, shave);
            match solve(&items, shave) {
                None => prop_assert!(best.is_infinite()),
                Some(solution) => {
                    prop_assert_eq!(solution.upper, best);
                    prop_assert_eq!(solution.lower, best);
                    let taken: Vec<Swap> = solution.swaps.iter().flatten().copied().collect();
                    prop_assert_eq!(taken.iter().map(|s| s.cost).sum::<f64>(), best);
                    prop_assert!(taken.iter().map(|s| s.save).sum::<f64>() >= shave);
                }
            }
        }
    }
}

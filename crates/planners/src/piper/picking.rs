//! Which mode each node of one stage runs in: the fastest where memory allows, else the swaps of the options' knapsack.
//!
//! `O(n log n)` for `n` swaps by ratio, as published; exactly, what `knapsack` takes.

use fixedbitset::FixedBitSet;

use super::{
    knapsack::{self, Swap},
    model::{AllowedMode, PiperModel, first_least},
    settings::{Knapsack, PiperSettings},
};
use crate::pipeline_options::Recompute;

/// Savings below this many bytes do not count (as published).
const LEAST_SAVING: f64 = 1e-9;

/// Swaps of one node away from its fastest mode, with the given cost and what they free; dominated ones left out.
/// The cost is told by position among the choices.
pub(super) fn swaps_of(choices: &[AllowedMode], fastest: usize, cost: impl Fn(usize) -> f64, y: f64) -> Vec<Swap> {
    let base = choices[fastest].memory(y);
    let mut swaps: Vec<Swap> = vec![];
    for (choice, option) in choices.iter().enumerate() {
        let swap = Swap { choice, cost: cost(choice).max(0.0), save: base - option.memory(y) };
        if choice != fastest && swap.save > LEAST_SAVING {
            swaps.push(swap);
        }
    }
    if swaps.len() > 1 {
        let all = swaps.clone();
        let better = |a: &Swap, b: &Swap| {
            a.cost <= b.cost && a.save >= b.save && (a.cost < b.cost || a.save > b.save || a.choice < b.choice)
        };
        swaps.retain(|swap| !all.iter().any(|other| other.choice != swap.choice && better(other, swap)));
    }
    swaps
}

/// A choice of modes for a stage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Picked {
    /// For each member the position in its list of choices.
    pub(super) positions: Vec<usize>,
    /// Sum of the members' costs.
    pub(super) cost: f64,
    /// Proven lower bound on that sum (within what the options allow).
    pub(super) lower: f64,
}

/// Chooses modes that fit into `memory_bytes` with `y` in flight by the cost of each (node, mode), under the options.
/// The costs of heuristics count as their own lower bounds: they are what the options ask for.
pub(super) fn pick(
    model: &PiperModel<'_>,
    settings: &PiperSettings,
    degree: usize,
    members: &[usize],
    y: f64,
    memory_bytes: f64,
    cost: &dyn Fn(usize, &AllowedMode) -> f64,
) -> Option<Picked> {
    let choices = &model.degrees[degree].modes;
    // Of all modes of all members, each looked at several times below; and where a member's begin.
    let mut begin = Vec::with_capacity(members.len());
    let mut costs = Vec::with_capacity(2 * members.len());
    for &v in members {
        begin.push(costs.len());
        costs.extend(choices[v].iter().map(|choice| {
            // A mode that would not fit alone is none. The heuristics do start from it, as published.
            let fits = settings.is_heuristic() || choice.memory(y) <= memory_bytes;
            if fits { cost(v, choice) } else { f64::INFINITY }
        }));
    }
    let costs_of = |member: usize| &costs[begin[member]..begin[member] + choices[members[member]].len()];
    let cost = |positions: &[usize]| -> f64 { begin.iter().zip(positions).map(|(&begin, &p)| costs[begin + p]).sum() };
    let bytes =
        |positions: &[usize]| -> f64 { members.iter().zip(positions).map(|(&v, &p)| choices[v][p].memory(y)).sum() };
    let fastest: Vec<usize> = (0..members.len()).map(|member| first_least(costs_of(member), |&cost| cost)).collect();
    let (fast_bytes, fast_cost) = (bytes(&fastest), cost(&fastest));
    if fast_bytes <= memory_bytes || memory_bytes.is_infinite() {
        return Some(Picked { positions: fastest, cost: fast_cost, lower: fast_cost });
    }
    let smallest: Vec<usize> = members.iter().map(|&v| first_least(&choices[v], |c| c.memory(y))).collect();
    if bytes(&smallest) > memory_bytes {
        return None;
    }
    let small_cost = cost(&smallest);
    let small = Picked { positions: smallest, cost: small_cost, lower: small_cost };
    if settings.recompute == Recompute::AllOrNone {
        return Some(small);
    }
    let items: Vec<Vec<Swap>> = fastest
        .iter()
        .enumerate()
        .map(|(member, &fast)| {
            let costs = costs_of(member);
            let mut swaps = swaps_of(&choices[members[member]], fast, |p| costs[p] - costs[fast], y);
            swaps.retain(|swap| swap.cost.is_finite());
            swaps
        })
        .collect();
    let apply = |swaps: &[Option<Swap>]| -> Vec<usize> {
        fastest.iter().zip(swaps).map(|(&fast, swap)| swap.map_or(fast, |s| s.choice)).collect()
    };
    let shave = fast_bytes - memory_bytes;
    if settings.knapsack == Knapsack::Greedy {
        let positions = apply(&greedy(&items, shave));
        // Beside an absurd figure the bytes still to be freed are lost to rounding.
        if bytes(&positions) > memory_bytes {
            return Some(small);
        }
        let cost = cost(&positions);
        return Some(Picked { positions, cost, lower: cost });
    }
    // Sums may be off in the last bits where bytes are not whole. What just fits must not be missed, so a little less is
    // asked for first, and a little more only if that answer turns out not to fit.
    let room = if model.whole_bytes { 0.0 } else { 1e-12 * memory_bytes };
    let mut best = small;
    for shave in [shave - room, shave + room] {
        let Some(solution) = knapsack::solve(&items, shave) else { continue };
        best.lower = best.lower.min(fast_cost + solution.lower);
        let (positions, cost) = (apply(&solution.swaps), fast_cost + solution.upper);
        if bytes(&positions) <= memory_bytes {
            if cost < best.cost {
                best = Picked { positions, cost, ..best };
            }
            break;
        }
    }
    best.lower = best.lower.min(best.cost);
    Some(best)
}

/// The published heuristic: all swaps by (ratio, node, mode), applied in that order until enough is freed.
fn greedy(items: &[Vec<Swap>], shave: f64) -> Vec<Option<Swap>> {
    let mut all: Vec<(usize, Swap)> =
        items.iter().enumerate().flat_map(|(i, swaps)| swaps.iter().map(move |&s| (i, s))).collect();
    all.sort_by(|(i, a), (j, b)| {
        (a.cost / a.save).total_cmp(&(b.cost / b.save)).then(i.cmp(j)).then(a.choice.cmp(&b.choice))
    });
    let mut swaps: Vec<Option<Swap>> = vec![None; items.len()];
    let mut left = shave;
    for (item, swap) in all {
        if left < LEAST_SAVING {
            break;
        }
        // With more than two modes a later, larger swap replaces an earlier one of the same node.
        let before = swaps[item].map_or(0.0, |s: Swap| s.save);
        if swap.save > before {
            left -= swap.save - before;
            swaps[item] = Some(swap);
        }
    }
    swaps
}

/// [`pick`] by contribution to the stage's load with `d` replicas.
pub(super) fn pick_for_load(
    model: &PiperModel<'_>,
    settings: &PiperSettings,
    degree: usize,
    members: &[usize],
    d: u32,
    y: u32,
    memory_bytes: f64,
) -> Option<Picked> {
    let mut stage = FixedBitSet::with_capacity(model.dag.len());
    stage.extend(members.iter().copied());
    let inside = |v: usize| stage.contains(v);
    let cost = |v: usize, choice: &AllowedMode| model.contribution(degree, v, choice, d, inside);
    pick(model, settings, degree, members, f64::from(y), memory_bytes, &cost)
}

/// The modes of a stage of a finished plan: the best the options allow with `d` replicas and `y` in flight.
pub(super) fn choose(
    model: &PiperModel<'_>,
    settings: &PiperSettings,
    degree: usize,
    members: &[usize],
    d: u32,
    y: u32,
    memory_bytes: f64,
) -> Option<Picked> {
    let mut best = pick_for_load(model, settings, degree, members, d, y, memory_bytes)?;
    if settings.is_heuristic() {
        for in_flight in y + 1..=model.most_replicas {
            match pick_for_load(model, settings, degree, members, d, in_flight, memory_bytes) {
                Some(picked) if picked.cost < best.cost => best = picked,
                Some(_) => {}
                None => break,
            }
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dominated_swaps_are_left_out() {
        let choice = |index: usize, time_s: f64, memory_b: f64| AllowedMode {
            index,
            time_s,
            parameters: 0.0,
            memory_a: 0.0,
            memory_b,
        };
        let choices = [choice(0, 1.0, 10.0), choice(1, 3.0, 5.0), choice(2, 2.0, 4.0), choice(3, 4.0, 10.0)];
        let swaps = swaps_of(&choices, 0, |p| choices[p].time_s - 1.0, 1.0);
        assert_eq!(swaps, [Swap { choice: 2, cost: 1.0, save: 6.0 }]);
    }
}

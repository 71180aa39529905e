//! Chooses the nodes that recompute if a node's modes differ in their parameters.
//!
//! The least recomputation need not be fastest: a slower mode with fewer parameters shortens the all-reduce. Profiles
//! of real networks have no such modes. So the search counts the fewer parameters of both modes, which is valid for
//! bounds, and modes are weighed only when a split is timed. Each stage takes the modes with the least sum of its work
//! and a weight times its all-reduce. Of a few weights, those with the least iteration time win. `O(nodes²)` for a
//! stage and weight.

use super::{line::StageCost, table::DegreeTable};

/// Weights of an all-reduce, part of which may overlap with the work of other stages.
const SHARES: [f64; 6] = [0.0, 0.2, 0.5, 1.0, 2.0, 5.0];
/// Relative rounding error of a stage's sums.
const RELATIVE_ERROR: f64 = 1e-9;
/// Number of nodes in a stage up to which nodes change in pairs; above, one by one.
const MOST_PAIRED: usize = 64;

/// Difference of a node's smaller mode from its faster one: more seconds, fewer bytes per microbatch in flight and
/// fixed, more parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModeDifference {
    pub(super) node: usize,
    pub(super) seconds: f64,
    pub(super) in_flight: f64,
    pub(super) fixed: f64,
    pub(super) parameters: f64,
}

/// Smaller modes of all nodes, by unit, and prefix sums of the parameters of the fastest modes.
#[derive(Debug, Clone)]
pub(super) struct SmallerModes {
    ways: Vec<Vec<ModeDifference>>,
    fastest: Vec<f64>,
}

/// Modes of a stage, by the nodes in the smaller mode.
struct StageModes {
    again: Vec<usize>,
    seconds: f64,
    parameters: f64,
}

impl SmallerModes {
    /// Returns `None` if no modes differ in parameters. `fastest` are the parameters of each unit's fastest modes.
    pub(super) fn new(ways: Vec<Vec<ModeDifference>>, fastest: &[f64]) -> Option<Self> {
        let differ = ways.iter().flatten().any(|way| way.parameters != 0.0);
        let mut sums = vec![0.0];
        for (unit, parameters) in fastest.iter().enumerate() {
            sums.push(sums[unit] + parameters);
        }
        differ.then_some(SmallerModes { ways, fastest: sums })
    }

    /// Best modes of units `a .. b` by seconds of work plus `price` per byte of parameters. Starts with the least
    /// recomputation and changes one or two nodes at a time.
    fn choose(
        &self,
        table: &DegreeTable<'_>,
        (a, b): (usize, usize),
        in_flight: f64,
        price: f64,
    ) -> Option<StageModes> {
        let least = table.recomputing(a, b, in_flight)?;
        let ways: Vec<&ModeDifference> = self.ways[a..b].iter().flatten().collect();
        let mut taken: Vec<bool> = ways.iter().map(|way| least.contains(&way.node)).collect();
        let shave = table.shave(a, b, in_flight);
        let sum = |taken: &[bool], of: &dyn Fn(&ModeDifference) -> f64| -> f64 {
            ways.iter().zip(taken).filter(|(_, taken)| **taken).map(|(way, _)| of(way)).sum()
        };
        let (saves, costs) = (
            |way: &ModeDifference| way.in_flight * in_flight + way.fixed,
            |way: &ModeDifference| way.seconds + price * way.parameters,
        );
        // Changes that miss by more than the rounding error are refused without an exact sum.
        let room =
            |of: &dyn Fn(&ModeDifference) -> f64| RELATIVE_ERROR * ways.iter().map(|way| of(way).abs()).sum::<f64>();
        let (room_saved, room_worth) = (room(&saves), room(&costs));
        loop {
            let mut best: Option<(f64, Vec<bool>)> = None;
            let (now, now_saved) = (sum(&taken, &costs), sum(&taken, &saves));
            let sign = |i: usize| if taken[i] { -1.0 } else { 1.0 };
            let change = |of: &dyn Fn(&ModeDifference) -> f64| -> Vec<f64> {
                (0..ways.len()).map(|i| sign(i) * of(ways[i])).collect()
            };
            let (dearer, freer) = (change(&costs), change(&saves));
            for i in 0..ways.len() {
                let others = if ways.len() <= MOST_PAIRED { i..ways.len() } else { i..i + 1 };
                for j in others {
                    let both = |change: &[f64]| if j > i { change[i] + change[j] } else { change[i] };
                    let beaten = best.as_ref().map_or(now, |best| best.0);
                    if now + both(&dearer) > beaten + room_worth || now_saved + both(&freer) < shave - room_saved {
                        continue;
                    }
                    let mut next = taken.clone();
                    next[i] = !next[i];
                    if j > i {
                        next[j] = !next[j];
                    }
                    let value = sum(&next, &costs);
                    let better = value < now - 1e-12 * now.abs() && best.as_ref().is_none_or(|best| value < best.0);
                    if better && sum(&next, &saves) >= shave {
                        best = Some((value, next));
                    }
                }
            }
            match best {
                Some((_, next)) => taken = next,
                None => break,
            }
        }
        let mut again: Vec<usize> =
            ways.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(way, _)| way.node).collect();
        again.sort_unstable();
        let parameters = self.fastest[b] - self.fastest[a] + sum(&taken, &|way| way.parameters);
        Some(StageModes { again, seconds: sum(&taken, &|way| way.seconds), parameters })
    }
}

/// Function that returns the iteration time for the stages and the recompute seconds of each; `None` if abandoned.
type StageTimer<'a> = &'a dyn Fn(&[StageCost], &[f64]) -> Option<f64>;

/// Stages of a split with the least recomputation, its seconds, and a function that times them.
pub(super) struct Timing<'a> {
    pub(super) begins: &'a [usize],
    pub(super) stages: &'a [StageCost],
    pub(super) again: &'a [f64],
    /// Microbatches in flight, by stage.
    pub(super) in_flight: &'a dyn Fn(usize) -> f64,
    /// Seconds of work of a microbatch that equal a byte of parameters.
    pub(super) price: f64,
    /// Iteration time; `None` if abandoned.
    pub(super) time: StageTimer<'a>,
}

impl Timing<'_> {
    /// Iteration time of the split, and the nodes that recompute by stage. The list is empty for the table's choice.
    pub(super) fn least(&self, table: &DegreeTable<'_>) -> Option<(f64, Vec<Vec<usize>>)> {
        let Some(weights) = &table.costs.weights else {
            return (self.time)(self.stages, self.again).map(|seconds| (seconds, vec![]));
        };
        let count = self.begins.len();
        let end = |s: usize| self.begins.get(s + 1).copied().unwrap_or(table.costs.len());
        let priced = |s: usize| -> Option<Vec<StageModes>> {
            let choose =
                |share: &f64| weights.choose(table, (self.begins[s], end(s)), (self.in_flight)(s), share * self.price);
            SHARES.iter().map(choose).collect()
        };
        let choices: Vec<Vec<StageModes>> = (0..count).map(priced).collect::<Option<_>>()?;
        let timed = |picks: &[usize]| {
            let chosen = |s: usize| &choices[s][picks[s]];
            let stage = |s: usize| StageCost {
                backward: self.stages[s].backward - self.again[s] + chosen(s).seconds,
                parameters: chosen(s).parameters,
                ..self.stages[s]
            };
            let again: Vec<f64> = (0..count).map(|s| chosen(s).seconds).collect();
            (self.time)(&(0..count).map(stage).collect::<Vec<_>>(), &again)
        };
        let (mut best, mut picks) = (timed(&vec![0; count])?, vec![0; count]);
        for all in 1..SHARES.len() {
            let seconds = timed(&vec![all; count])?;
            if seconds < best {
                (best, picks) = (seconds, vec![all; count]);
            }
        }
        let mut helped = true;
        while helped {
            helped = false;
            for s in 0..count {
                for pick in 0..SHARES.len() {
                    let mut next = picks.clone();
                    next[s] = pick;
                    if next == picks {
                        continue;
                    }
                    let seconds = timed(&next)?;
                    if seconds < best * (1.0 - 1e-9) {
                        (best, picks, helped) = (seconds, next, true);
                    }
                }
            }
        }
        Some((best, (0..count).map(|s| choices[s][picks[s]].again.clone()).collect()))
    }
}

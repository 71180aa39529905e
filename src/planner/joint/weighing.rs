//! Which nodes recompute where a node's ways differ in their parameters.
//!
//! What recomputes least need not be fastest then: a way that takes longer and has fewer parameters makes the all-reduce
//! shorter. Profiles of real networks have no such ways, so the search takes the parameters as the fewest of both ways, which bounds
//! may, and a split is weighed when its time is wanted: each stage as its work of a batch and some share of its all-reduce together
//! take least, from a few shares that for which the whole is fastest. `O(nodes²)` for a stage, some times more for the shares.

use super::{line::StageCost, table::Table};

/// How much of an all-reduce is taken to count: some of it may pass while other stages work.
const SHARES: [f64; 6] = [0.0, 0.2, 0.5, 1.0, 2.0, 5.0];
/// What sums of a stage may be off by, relative.
const ROUNDING: f64 = 1e-9;
/// More nodes in a stage than this are changed one by one, not in pairs.
const MOST_PAIRED: usize = 64;

/// What the smaller way of a node changes against the faster one: seconds more, bytes less in flight and beside, parameters
/// more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) node: usize,
    pub(super) seconds: f64,
    pub(super) in_flight: f64,
    pub(super) fixed: f64,
    pub(super) parameters: f64,
}

/// The ways of all nodes, by unit, and the parameters of the fastest ones before each boundary.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    ways: Vec<Vec<Way>>,
    fastest: Vec<f64>,
}

/// A choice for a stage.
struct Chosen {
    again: Vec<usize>,
    seconds: f64,
    parameters: f64,
}

impl Weights {
    /// `None` where no ways differ in parameters. `fastest` are the parameters of each unit's fastest ways.
    pub(super) fn new(ways: Vec<Vec<Way>>, fastest: &[f64]) -> Option<Self> {
        let differ = ways.iter().flatten().any(|way| way.parameters != 0.0);
        let mut sums = vec![0.0];
        for (unit, parameters) in fastest.iter().enumerate() {
            sums.push(sums[unit] + parameters);
        }
        differ.then_some(Weights { ways, fastest: sums })
    }

    /// The choice for units `a .. b` that is best by seconds of work and `price` for each byte of parameters, from what
    /// recomputes least by changing one node or two at a time.
    fn choose(&self, table: &Table<'_>, (a, b): (usize, usize), in_flight: f64, price: f64) -> Option<Chosen> {
        let least = table.recomputing(a, b, in_flight)?;
        let ways: Vec<&Way> = self.ways[a..b].iter().flatten().collect();
        let mut taken: Vec<bool> = ways.iter().map(|way| least.contains(&way.node)).collect();
        let shave = table.shave(a, b, in_flight);
        let sum = |taken: &[bool], of: &dyn Fn(&Way) -> f64| -> f64 {
            ways.iter().zip(taken).filter(|(_, taken)| **taken).map(|(way, _)| of(way)).sum()
        };
        let (saves, costs) =
            (|way: &Way| way.in_flight * in_flight + way.fixed, |way: &Way| way.seconds + price * way.parameters);
        // What sums may be off by: a change that is out by more than that needs no sum to be refused.
        let room = |of: &dyn Fn(&Way) -> f64| ROUNDING * ways.iter().map(|way| of(way).abs()).sum::<f64>();
        let (room_saved, room_worth) = (room(&saves), room(&costs));
        loop {
            let mut best: Option<(f64, Vec<bool>)> = None;
            let (now, now_saved) = (sum(&taken, &costs), sum(&taken, &saves));
            let sign = |i: usize| if taken[i] { -1.0 } else { 1.0 };
            let change =
                |of: &dyn Fn(&Way) -> f64| -> Vec<f64> { (0..ways.len()).map(|i| sign(i) * of(ways[i])).collect() };
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
        Some(Chosen { again, seconds: sum(&taken, &|way| way.seconds), parameters })
    }
}

/// Seconds of a batch of stages that recompute for so long each; `None` if it is given up.
type Time<'a> = &'a dyn Fn(&[StageCost], &[f64]) -> Option<f64>;

/// A split's stages as they recompute least, what that takes, and how to time it.
pub(super) struct Timing<'a> {
    pub(super) begins: &'a [usize],
    pub(super) stages: &'a [StageCost],
    pub(super) again: &'a [f64],
    /// Microbatches in flight by stage.
    pub(super) in_flight: &'a dyn Fn(usize) -> f64,
    /// Seconds of work of a microbatch that a byte of parameters is worth.
    pub(super) price: f64,
    /// The time of a batch; `None` if it is given up.
    pub(super) time: Time<'a>,
}

impl Timing<'_> {
    /// The time of the split, and by stage the nodes that recompute where that is not the table's choice.
    pub(super) fn least(&self, table: &Table<'_>) -> Option<(f64, Vec<Vec<usize>>)> {
        let Some(weights) = &table.costs.weights else {
            return (self.time)(self.stages, self.again).map(|seconds| (seconds, vec![]));
        };
        let count = self.begins.len();
        let end = |s: usize| self.begins.get(s + 1).copied().unwrap_or(table.costs.len());
        let priced = |s: usize| -> Option<Vec<Chosen>> {
            let choose =
                |share: &f64| weights.choose(table, (self.begins[s], end(s)), (self.in_flight)(s), share * self.price);
            SHARES.iter().map(choose).collect()
        };
        let choices: Vec<Vec<Chosen>> = (0..count).map(priced).collect::<Option<_>>()?;
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

//! One stage of whole layers: which of them recompute so that it fits, and what it then costs.

use rustc_hash::FxHashMap;

use super::{
    super::knapsack::{self, Swap},
    costs::{Costs, LayerCost},
};
use crate::{cluster::Limits, planner::engine_layers::Rule};

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// The largest load, within memory.
    Load,
    /// The largest memory, whatever the load.
    Memory,
}

/// A way to run all stages, and how to value them.
pub(super) struct Ways<'c, 'a> {
    pub(super) costs: &'c Costs<'a>,
    pub(super) limits: &'c Limits,
    pub(super) rule: Rule,
    pub(super) goal: Goal,
    /// Replicas of every stage.
    pub(super) d: u32,
    /// Extra compute of a stretch with so many in flight, found before for other replicas; only where nothing else counts.
    pub(super) known: Option<FxHashMap<(u32, u32, u32), f64>>,
    /// Whether some knapsack was too large to be solved exactly.
    pub(super) unproven: bool,
}

/// Sums of a stretch that grows at its end.
#[derive(Default)]
struct Grown {
    /// In the ways that the rule prescribes, or kept where it leaves the choice.
    compute: f64,
    parameters: f64,
    memory: f64,
    /// In the fastest and the smallest ways.
    least_compute: f64,
    least_memory: f64,
    /// By layer: whether the rule makes it recompute.
    again: Vec<bool>,
    blocks: usize,
}

/// Memory this close (relative) to the limit is summed anew as whoever checks it does.
const NEAR: f64 = 1e-9;

/// A sum of bytes that is enough whatever the order of its parts: whole bytes are exact in any.
fn rounded_up(bytes: f64) -> f64 {
    if bytes.fract() == 0.0 { bytes } else { bytes * (1.0 + 1e-12) }
}

impl Ways<'_, '_> {
    /// Calls `take(last, value)` for every stretch `first ..= last` that can be a stage with `y` microbatches in flight and
    /// whose value is below `limit(last)`, until no longer one could be: `limit` says what is of use, and falls.
    pub(super) fn stretches(
        &mut self,
        first: usize,
        y: u32,
        limit: &mut dyn FnMut() -> f64,
        take: &mut dyn FnMut(usize, f64),
    ) {
        let in_flight = f64::from(y);
        let mut grown = Grown::default();
        for last in first..self.costs.len() {
            if !self.grow(&mut grown, last, in_flight) {
                return;
            }
            let most = limit();
            let (compute, memory) = match self.rule {
                Rule::First(_) | Rule::AllThatCan => (grown.compute, grown.memory),
                _ => (grown.least_compute, grown.least_memory),
            };
            match self.goal {
                Goal::Load if compute / f64::from(self.d) >= most => return,
                Goal::Load if memory > self.limits.memory() * (1.0 + NEAR) => return,
                Goal::Memory if memory >= most => return,
                _ => {}
            }
            if let Some(value) = self.value(&grown, first, last, y, most) {
                take(last, value);
            }
        }
    }

    /// Adds a layer; false if the rule cannot be kept with it.
    fn grow(&self, grown: &mut Grown, layer: usize, y: f64) -> bool {
        let costs = &self.costs.layers[layer];
        let block = self.costs.is_block(layer);
        let prescribed = match self.rule {
            Rule::First(count) => block && grown.blocks < count as usize,
            _ => false,
        };
        grown.blocks += usize::from(block);
        let (kept, again) = (costs.kept, costs.again);
        let Some(own) = (match self.rule {
            // What engines count as recomputed must be, and nothing else.
            Rule::First(_) if prescribed => again,
            Rule::First(_) => kept,
            Rule::AllThatCan => again.or(kept),
            _ => kept.or(again),
        }) else {
            return false;
        };
        let least = |of: &dyn Fn(LayerCost) -> f64| kept.into_iter().chain(again).map(of).fold(f64::INFINITY, f64::min);
        grown.compute += own.time_s;
        grown.parameters += own.parameters;
        grown.memory += own.memory(y);
        grown.least_compute += least(&|cost| cost.time_s);
        grown.least_memory += least(&|cost| cost.memory(y));
        grown.again.push(match self.rule {
            Rule::First(_) => prescribed,
            Rule::AllThatCan => again.is_some(),
            Rule::Free | Rule::StageByStage => kept.is_none(),
        });
        true
    }

    /// The value of a stretch, if it can be a stage.
    fn value(&mut self, grown: &Grown, first: usize, last: usize, y: u32, most: f64) -> Option<f64> {
        if let Rule::First(_) | Rule::AllThatCan = self.rule {
            return self.measured(grown, first, last, y, &grown.again);
        }
        if self.rule == Rule::StageByStage {
            let ways = self.whole(first, last);
            let values = ways.iter().filter_map(|again| self.measured_anew(first, last, y, again));
            return values.reduce(f64::min);
        }
        if self.goal == Goal::Memory {
            return Some(rounded_up(grown.least_memory));
        }
        let (cost, _) = self.cheapest(first, last, y, most, false)?;
        Some(cost)
    }

    /// All repeated layers kept, or all recomputing, as far as they can.
    fn whole(&self, first: usize, last: usize) -> Vec<Vec<bool>> {
        let blocks = |layer: &usize| self.costs.is_block(*layer);
        let all_again = (first..=last).filter(blocks).all(|layer| self.costs.layers[layer].again.is_some());
        let all_kept = (first..=last).all(|layer| self.costs.layers[layer].kept.is_some());
        let mut ways = vec![];
        if all_kept {
            ways.push(vec![false; last + 1 - first]);
        }
        if all_again {
            ways.push((first..=last).map(|layer| self.costs.layers[layer].again.is_some()).collect());
        }
        ways
    }

    /// The value of a stretch with sums at hand.
    fn measured(&self, grown: &Grown, first: usize, last: usize, y: u32, again: &[bool]) -> Option<f64> {
        if self.goal == Goal::Memory {
            return Some(rounded_up(grown.memory));
        }
        self.fits(grown.memory, first..last + 1, again, y).then(|| {
            let border = self.costs.border(first, last) + self.more(first, last, again);
            self.load(grown.compute, grown.parameters, border)
        })
    }

    /// The value of a stretch, summed here.
    fn measured_anew(&self, first: usize, last: usize, y: u32, again: &[bool]) -> Option<f64> {
        let (mut compute, mut parameters, mut memory) = (0.0, 0.0, 0.0);
        for (layer, &again) in (first..=last).zip(again) {
            let costs = &self.costs.layers[layer];
            let own = if again { costs.again } else { costs.kept }?;
            compute += own.time_s;
            parameters += own.parameters;
            memory += own.memory(f64::from(y));
        }
        if self.goal == Goal::Memory {
            return Some(rounded_up(memory));
        }
        let border = self.costs.border(first, last) + self.more(first, last, again);
        self.fits(memory, first..last + 1, again, y).then(|| self.load(compute, parameters, border))
    }

    /// Bytes that the recomputing layers add over the stretch's ends.
    fn more(&self, first: usize, last: usize, again: &[bool]) -> f64 {
        let recomputing = (first..=last).zip(again).filter(|(_, again)| **again);
        recomputing.map(|(layer, _)| self.costs.more_border(layer, first, last)).sum()
    }

    fn fits(&self, memory: f64, stretch: std::ops::Range<usize>, again: &[bool], y: u32) -> bool {
        let limit = self.limits.memory();
        if (memory - limit).abs() > NEAR * limit {
            return memory <= limit;
        }
        self.costs.exact_memory(stretch, again, f64::from(y)) <= limit
    }

    fn load(&self, compute: f64, parameters: f64, border: f64) -> f64 {
        let d = f64::from(self.d);
        let resync = 4.0 * (d - 1.0) * parameters / d / f64::from(self.limits.microbatches);
        (border / d + resync) / self.limits.bandwidth() + compute / d
    }

    /// The cheapest choice of layers that recompute: its load, and the choice if it is wanted.
    // Long: the rules of the engines for recomputation stand side by side, on the same sums.
    fn cheapest(&mut self, first: usize, last: usize, y: u32, most: f64, choose: bool) -> Option<(f64, Vec<bool>)> {
        let key = (first as u32, last as u32, y);
        let d = f64::from(self.d);
        let in_flight = f64::from(y);
        // Loads of a layer's two ways, beside what is the same for both.
        let alone = |layer: usize, again: bool| -> Option<f64> {
            let costs = &self.costs.layers[layer];
            let own = if again { costs.again } else { costs.kept }?;
            let border = if again { self.costs.more_border(layer, first, last) } else { 0.0 };
            Some(self.load(own.time_s, own.parameters, border))
        };
        let memory = |layer: usize, again: bool| {
            let costs = &self.costs.layers[layer];
            if again { costs.again } else { costs.kept }.map_or(f64::INFINITY, |own| own.memory(in_flight))
        };
        let layers: Vec<usize> = (first..=last).collect();
        let both: Vec<(Option<f64>, Option<f64>)> =
            layers.iter().map(|&layer| (alone(layer, false), alone(layer, true))).collect();
        let fast: Vec<bool> = both
            .iter()
            .map(|(kept, again)| match (kept, again) {
                (Some(kept), Some(again)) => again < kept,
                (kept, _) => kept.is_none(),
            })
            .collect();
        let cost = |choice: &[bool]| -> f64 {
            let own = |((kept, again), &chosen): (&(Option<f64>, Option<f64>), &bool)| {
                if chosen { *again } else { *kept }.unwrap_or(f64::INFINITY)
            };
            both.iter().zip(choice).map(own).sum::<f64>() + self.costs.border(first, last) / d / self.limits.bandwidth()
        };
        let bytes = |choice: &[bool]| -> f64 { layers.iter().zip(choice).map(|(&l, &c)| memory(l, c)).sum() };
        let base = cost(&fast);
        if base >= most && !choose {
            return None;
        }
        let fast_bytes = bytes(&fast);
        if self.fits(fast_bytes, first..last + 1, &fast, y) {
            return Some((base, fast));
        }
        if let Some(&extra) = self.known.as_ref().and_then(|known| known.get(&key)).filter(|_| !choose) {
            return extra.is_finite().then_some((base + extra / d, vec![]));
        }
        let items: Vec<Vec<Swap>> = layers
            .iter()
            .zip(both.iter().zip(&fast))
            .map(|(&layer, ((kept, again), &fast))| {
                let (Some(kept), Some(again)) = (kept, again) else { return vec![] };
                let save = memory(layer, fast) - memory(layer, !fast);
                let cost = if fast { kept - again } else { again - kept };
                if save > 0.0 { vec![Swap { choice: 0, cost: cost.max(0.0), save }] } else { vec![] }
            })
            .collect();
        let shave = fast_bytes - self.limits.memory();
        let ratio = items.iter().flatten().map(|swap| swap.cost / swap.save).fold(f64::INFINITY, f64::min);
        // Not even at the best ratio of any layer.
        if !choose && base + (shave * (1.0 - NEAR)) * ratio >= most {
            return None;
        }
        // What just fits must not be missed for the last bits: a little less is asked for first.
        let room = NEAR * self.limits.memory();
        let mut found = None;
        for wanted in [shave - room, shave, shave + room] {
            let Some(solution) = knapsack::solve(&items, wanted.max(f64::MIN_POSITIVE)) else { continue };
            let choice: Vec<bool> =
                fast.iter().zip(&solution.swaps).map(|(&fast, swap)| fast != swap.is_some()).collect();
            if self.fits(bytes(&choice), first..last + 1, &choice, y) {
                self.unproven |= solution.lower < solution.upper;
                found = Some((cost(&choice), choice));
                break;
            }
        }
        let smallest = self.smallest(first, last, y);
        if self.fits(bytes(&smallest), first..last + 1, &smallest, y) {
            let value = cost(&smallest);
            if found.as_ref().is_none_or(|(known, _)| value < *known) {
                found = Some((value, smallest));
            }
        }
        if let Some(known) = &mut self.known {
            let extra = found.as_ref().map_or(f64::INFINITY, |(value, _)| (value - base) * d);
            known.insert(key, extra);
        }
        found
    }

    /// The choice that needs least memory.
    fn smallest(&self, first: usize, last: usize, y: u32) -> Vec<bool> {
        let bytes = |cost: Option<LayerCost>| cost.map_or(f64::INFINITY, |cost| cost.memory(f64::from(y)));
        let layers = &self.costs.layers[first..=last];
        layers.iter().map(|layer| bytes(layer.again) < bytes(layer.kept)).collect()
    }

    /// Which layers of a stage of the answer recompute.
    pub(super) fn choice(&mut self, first: usize, last: usize, y: u32) -> Option<Vec<bool>> {
        match self.rule {
            Rule::First(count) => {
                let mut blocks = 0;
                let again = |layer: usize| {
                    let block = self.costs.is_block(layer);
                    blocks += usize::from(block);
                    block && blocks <= count as usize
                };
                Some((first..=last).map(again).collect())
            }
            Rule::AllThatCan => Some((first..=last).map(|layer| self.costs.layers[layer].again.is_some()).collect()),
            Rule::StageByStage => {
                let ways = self.whole(first, last);
                let valued = ways
                    .into_iter()
                    .filter_map(|again| self.measured_anew(first, last, y, &again).map(|value| (value, again)));
                valued.reduce(|best, next| if next.0 < best.0 { next } else { best }).map(|(_, again)| again)
            }
            Rule::Free => self.cheapest(first, last, y, f64::INFINITY, true).map(|(_, choice)| choice),
        }
    }
}

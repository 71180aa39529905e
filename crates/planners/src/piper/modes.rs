//! Decides if a stage keeps to a load, with the best modes that fit into memory.
//!
//! [`StageOracle`] decides most cases from the sums of a stage and from the fractional relaxation of its knapsack. The
//! knapsack itself is solved only where the budget lies between the two bounds of the relaxation.
//!
//! If all modes of a node agree in parameters and sync sizes (true of every published profile), a change of modes changes
//! compute only. Its cost is then `Δp / d`: one answer serves all numbers of replicas. Otherwise every (stage, replicas,
//! microbatches in flight) is solved by itself.
//!
//! The published greedy rule may find modes that need *less* time with more microbatches in flight. Modes that fit with more
//! in flight also fit with fewer. So the time of a stage is the least over all larger numbers, which is never worse than
//! published.

use std::{ops::RangeInclusive, rc::Rc};

use rustc_hash::FxHashMap;

use super::{
    knapsack,
    model::{AllowedMode, PiperModel, StageSums},
    picking::{pick, pick_for_load, swaps_of},
    settings::{Knapsack, PiperSettings},
};
use crate::pipeline_options::Recompute;

/// Maximum number of remembered answers; above it all are dropped. Bounds the memory, not the result.
const MOST_ANSWERS: usize = 400_000;

/// Stage as a pair of nested sets, at a degree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StageKey {
    pub(super) degree: u32,
    pub(super) outer: u32,
    pub(super) inner: u32,
}

/// Change of a node to a slower, smaller mode: extra seconds and bytes freed.
#[derive(Debug, Clone, Copy)]
struct NodeSwap {
    node: u32,
    cost: f64,
    save: f64,
}

/// Swaps of all nodes at one degree with one number of microbatches in flight.
struct SwapsByRatio {
    /// By ascending ratio of cost to bytes.
    swaps: Vec<NodeSwap>,
    /// Position in `swaps` by node; `None` for nodes without a swap.
    positions: Vec<Option<u32>>,
}

/// Decides whether stages keep to a load; remembers what it found.
pub(super) struct StageOracle<'m, 'a> {
    model: &'m PiperModel<'a>,
    settings: PiperSettings,
    memory_bytes: f64,
    /// Swaps by degree and microbatches in flight.
    swaps: FxHashMap<(u32, u32), Rc<SwapsByRatio>>,
    /// Bounds on the extra seconds of a stage, by microbatches in flight.
    bounds: FxHashMap<(StageKey, u32), (f64, f64)>,
    /// Bounds on the loads of stages whose modes differ in more than compute, by (replicas, in flight).
    loads: FxHashMap<(StageKey, u32, u32), (f64, f64)>,
    /// True if some knapsack was too large to be solved exactly.
    pub(super) unproven: bool,
}

impl<'m, 'a> StageOracle<'m, 'a> {
    pub(super) fn new(model: &'m PiperModel<'a>, settings: &PiperSettings, memory_bytes: f64) -> Self {
        StageOracle {
            model,
            settings: *settings,
            memory_bytes,
            swaps: FxHashMap::default(),
            bounds: FxHashMap::default(),
            loads: FxHashMap::default(),
            unproven: false,
        }
    }

    /// Memory per device that stages must fit into.
    pub(super) fn memory_bytes(&self) -> f64 {
        self.memory_bytes
    }

    /// True if the stage keeps to `target` with `d` replicas, memory left out.
    #[inline]
    pub(super) fn fast_enough(&mut self, key: StageKey, stage: &StageSums, d: u32, target: f64) -> bool {
        if target.is_infinite() {
            return true;
        }
        let load = self.model.load(stage.time_s, stage.parameters, stage.edge_bytes, d);
        if self.model.degrees[key.degree as usize].uniform {
            return load <= target;
        }
        !self.misses(load, target) && self.solved_load_within(key, d, 0, target)
    }

    /// True if the stage keeps to `target` with `d` replicas and `y` microbatches in flight within its memory.
    #[inline]
    pub(super) fn fits(&mut self, key: StageKey, stage: &StageSums, d: u32, y: u32, target: f64) -> bool {
        let in_flight = f64::from(y);
        if stage.least_a * in_flight + stage.least_b > self.memory_bytes * (1.0 + 1e-9) {
            return false;
        }
        if target.is_infinite() {
            return self.smallest_fit(key, in_flight);
        }
        let load = self.model.load(stage.time_s, stage.parameters, stage.edge_bytes, d);
        if !self.model.degrees[key.degree as usize].uniform {
            if self.misses(load, target) {
                return false;
            }
            let fast_bytes = stage.memory_a * in_flight + stage.memory_b;
            if fast_bytes > self.memory_bytes && !self.model.far_apart {
                let (extra, _) = self.extra_bounds(key, y, fast_bytes);
                if self.misses(load + extra / f64::from(d), target) {
                    return false;
                }
            }
            return self.solved_load_within(key, d, y, target);
        }
        if self.fits_fastest(key, stage, in_flight) {
            return load <= target;
        }
        self.extra_within(key, y, stage.memory_a * in_flight + stage.memory_b, (target - load) * f64::from(d))
    }

    /// True if a lower bound on the load of a stage with modes that are not uniform exceeds `target`, rounding aside.
    fn misses(&self, lower: f64, target: f64) -> bool {
        !self.model.far_apart && lower * (1.0 - 1e-9) > target
    }

    /// Largest number of microbatches in flight, within a range, with which the stage keeps to `target`; `None` if the
    /// start of the range does not. Modes that fit with some number in flight fit with every smaller one.
    pub(super) fn most_in_flight(
        &mut self,
        key: StageKey,
        stage: &StageSums,
        d: u32,
        range: RangeInclusive<u32>,
        target: f64,
    ) -> Option<u32> {
        let (mut fits, mut fails) = (*range.start(), *range.end());
        if !self.fits(key, stage, d, fits, target) {
            return None;
        }
        if fits == fails || self.fits(key, stage, d, fails, target) {
            return Some(fails);
        }
        while fails - fits > 1 {
            let middle = fits + (fails - fits) / 2;
            if self.fits(key, stage, d, middle, target) { fits = middle } else { fails = middle }
        }
        Some(fits)
    }

    /// True if all nodes fit in their fastest modes.
    fn fits_fastest(&self, key: StageKey, stage: &StageSums, y: f64) -> bool {
        let memory = stage.memory_a * y + stage.memory_b;
        if self.model.whole_bytes || (memory - self.memory_bytes).abs() > 1e-9 * self.memory_bytes {
            return memory <= self.memory_bytes;
        }
        // Too close for differences of sums: add up in node order, as the check does.
        let degree = &self.model.degrees[key.degree as usize];
        let members = self.members(key);
        members.iter().map(|&v| degree.modes[v][degree.fastest[v]].memory(y)).sum::<f64>() <= self.memory_bytes
    }

    /// True if all nodes fit in their smallest modes.
    fn smallest_fit(&self, key: StageKey, y: f64) -> bool {
        let modes = &self.model.degrees[key.degree as usize].modes;
        let smallest = |v: usize| modes[v].iter().map(|mode| mode.memory(y)).fold(f64::INFINITY, f64::min);
        let members = self.model.sets.beyond(key.outer as usize, key.inner as usize);
        members.map(smallest).sum::<f64>() <= self.memory_bytes
    }

    fn members(&self, key: StageKey) -> Vec<usize> {
        self.model.sets.difference(key.outer as usize, key.inner as usize)
    }

    /// True if a stage that does not fit in its fastest modes can be made to fit for at most `budget` extra seconds.
    fn extra_within(&mut self, key: StageKey, y: u32, fast_bytes: f64, budget: f64) -> bool {
        if budget < 0.0 {
            return false;
        }
        if self.settings.is_heuristic() {
            return self.heuristic_within(key, y, fast_bytes, budget);
        }
        let (lower, upper) = self.extra_bounds(key, y, fast_bytes);
        if upper <= budget || lower > budget {
            return upper <= budget;
        }
        let (lower, upper) = self.solved_extra(key, y);
        self.remember(key, y, (lower, upper));
        if lower <= budget && upper > budget {
            self.unproven = true;
        }
        upper <= budget
    }

    /// True if a heuristic stays within the budget for `y` or any larger number in flight. The relaxation is a lower bound
    /// for all of them and never falls, so it ends the loop.
    fn heuristic_within(&mut self, key: StageKey, y: u32, fast_bytes: f64, budget: f64) -> bool {
        let degree = &self.model.degrees[key.degree as usize];
        let per_microbatch: f64 = self.members(key).iter().map(|&v| degree.modes[v][degree.fastest[v]].memory_a).sum();
        for in_flight in y..=self.model.most_replicas.max(y) {
            let bytes = fast_bytes + per_microbatch * f64::from(in_flight - y);
            let (lower, mut upper) = self.extra_bounds(key, in_flight, bytes);
            if lower > budget {
                return false;
            }
            let published =
                self.settings.knapsack == Knapsack::Greedy && self.settings.recompute != Recompute::AllOrNone;
            if !(published && upper.is_finite()) {
                upper = self.solved_extra(key, in_flight).1;
                self.remember(key, in_flight, (lower, upper));
            }
            if upper <= budget {
                return true;
            }
        }
        false
    }

    /// Known bounds on the extra seconds of a stage; from the relaxation at first.
    fn extra_bounds(&mut self, key: StageKey, y: u32, fast_bytes: f64) -> (f64, f64) {
        if let Some(&known) = self.bounds.get(&(key, y)) {
            return known;
        }
        let relaxed = self.relaxed_extra(key, y, fast_bytes);
        self.remember(key, y, relaxed);
        relaxed
    }

    fn remember(&mut self, key: StageKey, y: u32, bounds: (f64, f64)) {
        if self.bounds.len() >= MOST_ANSWERS {
            self.bounds.clear();
        }
        self.bounds.insert((key, y), bounds);
    }

    /// Swaps of all nodes at a degree with `y` in flight, by ratio. A node with more than two modes has one swap, of least
    /// ratio and largest saving: no choice of its modes is cheaper per byte.
    fn swaps_by_ratio(&mut self, degree: u32, y: u32) -> Rc<SwapsByRatio> {
        if let Some(known) = self.swaps.get(&(degree, y)) {
            return Rc::clone(known);
        }
        let of_degree = &self.model.degrees[degree as usize];
        let mut all = vec![];
        for (node, modes) in of_degree.modes.iter().enumerate() {
            let fastest = of_degree.fastest[node];
            let Some(fast) = modes.get(fastest) else { continue };
            let swaps = swaps_of(modes, fastest, |position| modes[position].time_s - fast.time_s, f64::from(y));
            let node = node as u32;
            match swaps.as_slice() {
                [] => {}
                [swap] => all.push(NodeSwap { node, cost: swap.cost, save: swap.save }),
                _ => {
                    let ratio = swaps.iter().map(|swap| swap.cost / swap.save).fold(f64::INFINITY, f64::min);
                    let save = swaps.iter().map(|swap| swap.save).fold(0.0, f64::max);
                    all.push(NodeSwap { node, cost: ratio * save, save });
                }
            }
        }
        all.sort_by(|a, b| (a.cost / a.save).total_cmp(&(b.cost / b.save)).then(a.node.cmp(&b.node)));
        let mut positions = vec![None; of_degree.modes.len()];
        all.iter().zip(0..).for_each(|(swap, position)| positions[swap.node as usize] = Some(position));
        let all = Rc::new(SwapsByRatio { swaps: all, positions });
        Rc::clone(self.swaps.entry((degree, y)).or_insert(all))
    }

    /// Bounds from the relaxation. The upper one belongs to a real choice only if no node has more than two modes.
    fn relaxed_extra(&mut self, key: StageKey, y: u32, fast_bytes: f64) -> (f64, f64) {
        let SwapsByRatio { swaps, positions } = &*self.swaps_by_ratio(key.degree, y);
        let members = self.model.sets.beyond(key.outer as usize, key.inner as usize);
        let mut members: Vec<u32> = members.filter_map(|v| positions[v]).collect();
        members.sort_unstable();
        let members = members.iter().map(|&position| &swaps[position as usize]).map(|swap| (swap.cost, swap.save));
        // Differences of sums may be off in the last bits where bytes are not whole: leave a tolerance on either side.
        let tolerance = if self.model.whole_bytes { 0.0 } else { 1e-11 * self.memory_bytes };
        let (lower, _) = knapsack::relaxed_bounds(members.clone(), fast_bytes - self.memory_bytes - tolerance);
        let (_, upper) = knapsack::relaxed_bounds(members, fast_bytes - self.memory_bytes + tolerance);
        let two_modes = self.model.degrees[key.degree as usize].modes.iter().all(|modes| modes.len() <= 2);
        (lower, if two_modes { upper } else { f64::INFINITY })
    }

    /// Bounds on the extra seconds after solving the knapsack.
    fn solved_extra(&self, key: StageKey, y: u32) -> (f64, f64) {
        let degree = &self.model.degrees[key.degree as usize];
        let members = self.members(key);
        let time = |v: usize, mode: &AllowedMode| mode.time_s - degree.modes[v][degree.fastest[v]].time_s;
        match pick(self.model, &self.settings, key.degree as usize, &members, f64::from(y), self.memory_bytes, &time) {
            Some(picked) => (picked.lower, picked.cost),
            None => (f64::INFINITY, f64::INFINITY),
        }
    }

    /// True if a stage whose modes differ in more than compute keeps to `target`; `y` = 0 leaves memory out.
    fn solved_load_within(&mut self, key: StageKey, d: u32, y: u32, target: f64) -> bool {
        let (lower, load) = self.solved_load(key, d, y);
        // Open only where the target lies between the two.
        self.unproven |= lower <= target && target < load;
        load <= target
    }

    /// Bounds on the load of such a stage.
    fn solved_load(&mut self, key: StageKey, d: u32, y: u32) -> (f64, f64) {
        if let Some(&known) = self.loads.get(&(key, d, y)) {
            return known;
        }
        let members = self.members(key);
        // Loads of exact choices never fall with more in flight; those of heuristics may.
        let most = match y {
            0 => 0,
            _ if self.settings.is_heuristic() => self.model.most_replicas.max(y),
            _ => y,
        };
        let memory = if y == 0 { f64::INFINITY } else { self.memory_bytes };
        let (mut lower, mut load) = (f64::INFINITY, f64::INFINITY);
        for in_flight in y..=most {
            match pick_for_load(self.model, &self.settings, key.degree as usize, &members, d, in_flight, memory) {
                Some(picked) => {
                    lower = lower.min(picked.lower);
                    load = load.min(picked.cost);
                }
                None => break,
            }
        }
        if self.loads.len() >= MOST_ANSWERS {
            self.loads.clear();
        }
        self.loads.insert((key, d, y), (lower, load));
        (lower, load)
    }
}

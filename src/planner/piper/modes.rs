//! Which mode each node of a stage runs in: the fastest where memory allows, else the cheapest swaps that make it fit.
//!
//! [`Oracle`] answers the search's only question, "can this stage keep to this load?", and decides most cases from sums
//! and one pass over steps sorted once for every (degree, microbatches in flight). The knapsack itself runs only when
//! the budget lies between its two bounds. [`choose`] picks the modes of a stage for good.
//!
//! When all modes of a node agree in parameters and sync sizes (true of every published profile) a swap changes compute
//! only, so its cost is `Δp / d`: order and choice do not depend on the replicas, and one answer serves all of them.
//! Otherwise every (stage, replicas, in flight) is solved by itself.
//!
//! The greedy heuristic of the published program may need *less* for more microbatches in flight. Whatever fits with
//! more in flight fits with fewer, so its answers are replaced by the least over all larger numbers in flight: never
//! worse than published.

use std::{
    ops::RangeInclusive,
    sync::{Arc, OnceLock},
};

use rustc_hash::FxHashMap;

use super::{
    blocks::Block,
    knapsack,
    model::{Choice, PiperModel, StageCost},
    picking::{pick, pick_for_load, swaps_of},
    prices::{self, Asked, Prices, Tables},
    settings::{Knapsack, PiperSettings},
};
use crate::planner::pipeline_options::Recompute;

/// Remembered answers before they are dropped; bounds the memory, not the result.
const MOST_ANSWERS: usize = 400_000;

/// A stage as a pair of nested sets, at a degree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StageKey {
    pub(super) degree: u32,
    pub(super) outer: u32,
    pub(super) inner: u32,
}

/// A swap of a node to a slower, smaller mode: extra seconds and bytes freed.
#[derive(Debug, Clone, Copy, Default)]
struct NodeStep {
    cost: f64,
    save: f64,
}

/// Steps of the nodes at a degree with so many microbatches in flight.
#[derive(Debug)]
struct ByRatio {
    /// By node.
    steps: Vec<NodeStep>,
    /// Nodes that have one, by the ratio of what it costs to what it saves.
    order: Vec<u32>,
    /// By node: its place in that order; past its end for those without.
    places: Vec<u32>,
}

impl ByRatio {
    fn least_ratio(&self) -> f64 {
        self.order.first().map_or(f64::INFINITY, |&node| self.steps[node as usize].ratio())
    }
}

impl NodeStep {
    fn ratio(self) -> f64 {
        self.cost / self.save
    }
}

type Row = Box<[OnceLock<Arc<ByRatio>>]>;

/// By degree and microbatches in flight, made when first asked for; threads share them.
#[derive(Debug)]
struct Steps {
    by_degree: Vec<OnceLock<Row>>,
    /// In a row: more microbatches than these are asked for by few, which make their own.
    width: usize,
}

/// Decides whether stages keep to a load; remembers what it found.
pub(super) struct Oracle<'m, 'a> {
    model: &'m PiperModel<'a>,
    settings: PiperSettings,
    memory_bytes: f64,
    steps: Arc<Steps>,
    /// What decides most questions.
    prices: Prices,
    /// By degree: seconds on one replica by which differences of sums may be off.
    rooms: Vec<f64>,
    /// Bounds on the extra seconds of a stage by in flight.
    bounds: FxHashMap<(StageKey, u32), (f64, f64)>,
    /// Bounds on the loads of stages whose modes differ in more than compute, by (replicas, in flight).
    loads: FxHashMap<(StageKey, u32, u32), (f64, f64)>,
    most_answers: usize,
    /// Whether some knapsack was too large to be solved exactly.
    pub(super) unproven: bool,
}

impl<'m, 'a> Oracle<'m, 'a> {
    /// As many oracles as there are threads: they share the tables of prices, the steps, and the memory for remembered answers;
    /// `crews` such share the memory in all.
    pub(super) fn of_threads(
        threads: usize,
        crews: usize,
        model: &'m PiperModel<'a>,
        settings: &PiperSettings,
        memory_bytes: f64,
    ) -> impl Iterator<Item = Self> {
        let tables = Arc::new(Tables::new(model, memory_bytes, crews));
        let by_degree = model.degrees.iter().map(|_| OnceLock::new()).collect();
        let steps = Arc::new(Steps { by_degree, width: 2 * model.most_replicas as usize + 2 });
        (0..threads).map(move |_| Oracle::new(model, settings, (&tables, &steps), threads * crews))
    }

    fn new(
        model: &'m PiperModel<'a>,
        settings: &PiperSettings,
        (tables, steps): (&Arc<Tables>, &Arc<Steps>),
        threads: usize,
    ) -> Self {
        let most_d = model.replicas.last().copied().unwrap_or(1);
        Oracle {
            model,
            settings: *settings,
            memory_bytes: tables.memory_bytes(),
            steps: Arc::clone(steps),
            prices: Prices::new(Arc::clone(tables)),
            rooms: (0..model.degrees.len())
                .map(|degree| prices::rounding(model) * model.most_seconds(degree, most_d))
                .collect(),
            bounds: FxHashMap::default(),
            loads: FxHashMap::default(),
            most_answers: MOST_ANSWERS / threads.max(1),
            unproven: false,
        }
    }

    /// Memory per device that stages must fit into.
    pub(super) fn memory_bytes(&self) -> f64 {
        self.memory_bytes
    }

    /// Whether a stage with `y` microbatches in flight is certain to miss `target` with `d` replicas, of whose seconds its edges
    /// take `edges_s` at the least; false says nothing.
    #[inline]
    pub(super) fn is_out_of_reach(&self, key: StageKey, d: u32, y: u32, target: f64, edges_s: f64) -> bool {
        let (degree, ends) = (key.degree as usize, (key.outer as usize, key.inner as usize));
        let most = f64::from(d) * target - edges_s + self.rooms[degree];
        self.prices.is_out_of_reach(self.model, (degree, d, y), ends, most)
    }

    /// The same of every stage of `outer` in front of a set of a block.
    #[inline]
    pub(super) fn is_block_out_of_reach(
        &mut self,
        stage @ (degree, d, _): (usize, u32, u32),
        ends: (usize, Block),
        target: f64,
        edges_s: f64,
    ) -> bool {
        let most = f64::from(d) * target - edges_s + self.rooms[degree];
        self.prices.is_block_out_of_reach(self.model, stage, ends, most)
    }

    /// Whether the stage's load with `d` replicas may be at most `target` with no thought of memory; false is certain.
    #[inline]
    pub(super) fn fast_enough(&mut self, key: StageKey, stage: &StageCost, d: u32, target: f64) -> bool {
        if self.model.degrees[key.degree as usize].uniform {
            return self.model.load(stage.time_s, stage.parameters, stage.edge_bytes, d) <= target;
        }
        match self.prices.may_keep_to(self.model, asked(key, stage, d), target) {
            Some(answer) => answer,
            None => self.general(key, d, 0, target),
        }
    }

    /// Whether the stage can keep to `target` with `d` replicas and `y` microbatches in flight within its memory.
    #[inline]
    pub(super) fn fits(&mut self, key: StageKey, stage: &StageCost, d: u32, y: u32, target: f64) -> bool {
        let in_flight = f64::from(y);
        if stage.least_a * in_flight + stage.least_b > self.memory_bytes * (1.0 + 1e-9) {
            return false;
        }
        let uniform = self.model.degrees[key.degree as usize].uniform;
        if uniform && self.fits_fastest(key, stage, in_flight) {
            return self.model.load(stage.time_s, stage.parameters, stage.edge_bytes, d) <= target;
        }
        match self.prices.decided(self.model, asked(key, stage, d), y, target) {
            // The heuristics may need more than the best choice, never less.
            Some(true) if self.settings.is_heuristic() => {}
            Some(answer) if target.is_finite() => return answer,
            _ => {}
        }
        if !uniform {
            return self.general(key, d, y, target);
        }
        let load = self.model.load(stage.time_s, stage.parameters, stage.edge_bytes, d);
        self.extra_within(key, y, stage.memory_a * in_flight + stage.memory_b, (target - load) * f64::from(d))
    }

    /// The most microbatches in flight, within a range, with which the stage keeps to `target`; `None` if not even the
    /// range's start does. What fits with some number in flight fits with every smaller one.
    pub(super) fn most_in_flight(
        &mut self,
        key: StageKey,
        stage: &StageCost,
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

    /// Whether all nodes fit in their fastest modes.
    fn fits_fastest(&self, key: StageKey, stage: &StageCost, y: f64) -> bool {
        let memory = stage.memory_a * y + stage.memory_b;
        if self.model.whole_bytes || (memory - self.memory_bytes).abs() > 1e-9 * self.memory_bytes {
            return memory <= self.memory_bytes;
        }
        // Too close to call from differences of sums: add up in node order, as the check does.
        let degree = &self.model.degrees[key.degree as usize];
        let members = self.members(key);
        members.iter().map(|&v| degree.choices[v][degree.fastest[v]].memory(y)).sum::<f64>() <= self.memory_bytes
    }

    fn members(&self, key: StageKey) -> Vec<usize> {
        self.model.sets.difference(key.outer as usize, key.inner as usize)
    }

    /// Whether a stage that does not fit in its fastest modes can be made to fit for at most `budget` extra seconds.
    fn extra_within(&mut self, key: StageKey, y: u32, fast_bytes: f64, budget: f64) -> bool {
        if budget < 0.0 {
            return false;
        }
        if budget.is_infinite() {
            let choices = &self.model.degrees[key.degree as usize].choices;
            let in_flight = f64::from(y);
            let smallest =
                |v: usize| choices[v].iter().map(|choice| choice.memory(in_flight)).fold(f64::INFINITY, f64::min);
            return self.members(key).into_iter().map(smallest).sum::<f64>() <= self.memory_bytes;
        }
        // Not even at the best ratio of any node: the cheapest answer, and the most common one.
        let best = self.steps_by_ratio(key.degree, y).least_ratio();
        if (fast_bytes - self.memory_bytes) * (1.0 - 1e-9) * best > budget {
            return false;
        }
        if self.settings.is_heuristic() {
            return self.heuristic_within(key, y, fast_bytes, budget);
        }
        let (lower, upper) = self.bounds(key, y, fast_bytes);
        if upper <= budget || lower > budget {
            return upper <= budget;
        }
        let (lower, upper) = self.solved(key, y);
        self.remember(key, y, (lower, upper));
        if lower <= budget && upper > budget {
            self.unproven = true;
        }
        upper <= budget
    }

    /// Whether a heuristic stays within the budget for `y` or any larger number in flight: what fits with more in flight
    /// fits with fewer, though the heuristics do not always notice. The relaxation bounds them all from below and never
    /// falls, so it ends the walk.
    fn heuristic_within(&mut self, key: StageKey, y: u32, fast_bytes: f64, budget: f64) -> bool {
        let per_microbatch = if y == 0 { 0.0 } else { self.fast_bytes_per_microbatch(key) };
        for in_flight in y..=self.model.most_replicas.max(y) {
            let bytes = fast_bytes + per_microbatch * f64::from(in_flight - y);
            let (lower, mut upper) = self.bounds(key, in_flight, bytes);
            if lower > budget {
                return false;
            }
            let published =
                self.settings.knapsack == Knapsack::Greedy && self.settings.recompute != Recompute::AllOrNone;
            if !(published && upper.is_finite()) {
                upper = self.solved(key, in_flight).1;
                self.remember(key, in_flight, (lower, upper));
            }
            if upper <= budget {
                return true;
            }
        }
        false
    }

    fn fast_bytes_per_microbatch(&self, key: StageKey) -> f64 {
        let degree = &self.model.degrees[key.degree as usize];
        self.members(key).iter().map(|&v| degree.choices[v][degree.fastest[v]].memory_a).sum()
    }

    /// Known bounds on the extra seconds of a stage, from the relaxation at first.
    fn bounds(&mut self, key: StageKey, y: u32, fast_bytes: f64) -> (f64, f64) {
        if let Some(&known) = self.bounds.get(&(key, y)) {
            return known;
        }
        let relaxed = self.relaxed(key, y, fast_bytes);
        self.remember(key, y, relaxed)
    }

    fn remember(&mut self, key: StageKey, y: u32, bounds: (f64, f64)) -> (f64, f64) {
        if self.bounds.len() >= self.most_answers {
            self.bounds.clear();
        }
        self.bounds.insert((key, y), bounds);
        bounds
    }

    /// Steps of all nodes at a degree with `y` in flight, by ratio. With more than two modes these are the steps to the
    /// mode of least ratio only, which keeps the bound below valid: see [`Oracle::relaxed`].
    fn steps(&self, degree: u32, y: u32) -> ByRatio {
        let in_flight = f64::from(y);
        let degree = &self.model.degrees[degree as usize];
        let nodes = degree.choices.len();
        let (mut steps, mut by_ratio) = (vec![NodeStep::default(); nodes], vec![]);
        for (node, choices) in degree.choices.iter().enumerate() {
            let fastest = degree.fastest[node];
            let Some(fast) = choices.get(fastest) else { continue };
            let swaps = swaps_of(choices, fastest, |p| choices[p].time_s - fast.time_s, in_flight);
            let cheapest = swaps.iter().map(|s| s.cost / s.save).fold(f64::INFINITY, f64::min);
            let largest = swaps.iter().map(|s| s.save).fold(0.0, f64::max);
            steps[node] = match swaps.as_slice() {
                [] => continue,
                [swap] => NodeStep { cost: swap.cost, save: swap.save },
                // The least ratio for the largest saving: no choice of this node is cheaper per byte.
                _ => NodeStep { cost: cheapest * largest, save: largest },
            };
            by_ratio.push((steps[node].ratio(), node as u32));
        }
        by_ratio.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let order: Vec<u32> = by_ratio.into_iter().map(|(_, node)| node).collect();
        let mut places = vec![u32::MAX; nodes];
        (0..).zip(&order).for_each(|(place, &node)| places[node as usize] = place);
        ByRatio { steps, order, places }
    }

    /// [`Oracle::steps`], remembered.
    fn steps_by_ratio(&self, degree: u32, y: u32) -> Arc<ByRatio> {
        let row = self.steps.by_degree[degree as usize]
            .get_or_init(|| (0..self.steps.width).map(|_| OnceLock::new()).collect());
        let make = || Arc::new(self.steps(degree, y));
        row.get(y as usize).map_or_else(make, |known| Arc::clone(known.get_or_init(make)))
    }

    /// Bounds from the relaxation. The upper one is of a real choice only if no node has more than two modes.
    fn relaxed(&self, key: StageKey, y: u32, fast_bytes: f64) -> (f64, f64) {
        let ByRatio { steps, order, places } = &*self.steps_by_ratio(key.degree, y);
        let (sets, outer, inner) = (&self.model.sets, key.outer as usize, key.inner as usize);
        let place = |v: usize| Some(places[v]).filter(|&place| place < order.len() as u32);
        let mut members: Vec<u32> = sets.beyond(outer, inner).filter_map(place).collect();
        // In order: the few of a small stage sorted, those of a large one by going over all.
        if members.len() * 16 < order.len() {
            members.sort_unstable();
        } else {
            let is_member =
                |&(_, &v): &(u32, &u32)| sets.contains(outer, v as usize) && !sets.contains(inner, v as usize);
            members.clear();
            members.extend((0..).zip(order).filter(is_member).map(|(place, _)| place));
        }
        let members = members.iter().map(|&place| {
            let step = steps[order[place as usize] as usize];
            (step.cost, step.save)
        });
        // Differences of sums may be off in the last bits where bytes are not whole: leave room on either side.
        let room = if self.model.whole_bytes { 0.0 } else { 1e-11 * self.memory_bytes };
        let (lower, _) = knapsack::relaxed_bounds(members.clone(), fast_bytes - self.memory_bytes - room);
        let (_, upper) = knapsack::relaxed_bounds(members, fast_bytes - self.memory_bytes + room);
        let two_modes = self.model.degrees[key.degree as usize].choices.iter().all(|choices| choices.len() <= 2);
        (lower, if two_modes { upper } else { f64::INFINITY })
    }

    /// Bounds on the extra seconds after solving the knapsack.
    fn solved(&self, key: StageKey, y: u32) -> (f64, f64) {
        let degree = &self.model.degrees[key.degree as usize];
        let members = self.members(key);
        let time = |v: usize, choice: &Choice| choice.time_s - degree.choices[v][degree.fastest[v]].time_s;
        match pick(self.model, &self.settings, key.degree as usize, &members, f64::from(y), self.memory_bytes, &time) {
            Some(picked) => (picked.lower, picked.cost),
            None => (f64::INFINITY, f64::INFINITY),
        }
    }

    /// Whether a stage whose modes differ in more than compute keeps to `target`; `y` = 0 asks without thought of memory.
    fn general(&mut self, key: StageKey, d: u32, y: u32, target: f64) -> bool {
        let (lower, load) = self.general_load(key, d, y);
        // Only what lies between the two is left open.
        self.unproven |= lower <= target && target < load;
        // An infinite target asks about memory alone, and no modes may fit.
        load.is_finite() && load <= target
    }

    /// Bounds on its load.
    fn general_load(&mut self, key: StageKey, d: u32, y: u32) -> (f64, f64) {
        if let Some(&known) = self.loads.get(&(key, d, y)) {
            return known;
        }
        let members = self.members(key);
        let most = match y {
            0 => 0,
            _ if self.settings.is_heuristic() => self.model.most_replicas.max(y),
            _ => y,
        };
        // The heuristics are closed from above here too; exact answers never fall with more in flight.
        let (mut lower, mut load) = (f64::INFINITY, f64::INFINITY);
        for in_flight in y..=most {
            let memory = if y == 0 { f64::INFINITY } else { self.memory_bytes };
            match pick_for_load(self.model, &self.settings, key.degree as usize, &members, d, in_flight, memory) {
                Some(picked) => {
                    lower = lower.min(picked.lower);
                    load = load.min(picked.cost);
                }
                None => break,
            }
        }
        if self.loads.len() >= self.most_answers {
            self.loads.clear();
        }
        self.loads.insert((key, d, y), (lower, load));
        (lower, load)
    }
}

fn asked(key: StageKey, stage: &StageCost, d: u32) -> Asked<'_> {
    let StageKey { degree, outer, inner } = key;
    Asked { degree: degree as usize, outer: outer as usize, inner: inner as usize, stage, d }
}

//! Can the network be cut so that no stage takes longer than `T`? And with how few devices?
//!
//! The published recurrence minimises the largest load over (set, devices, replicas). Turned around: for a load `T` let
//! `F[D]` be the undominated pairs (replicas `s`, devices `j`) with which the set `D`, the pipeline's tail, can be run
//! with every stage at most `T`:
//!
//! ```text
//! F[∅] = {(0, 0)}
//! F[D] = undominated { (s + d, j + t·d) : D' ⊂ D, (s, j) ∈ F[D'], load(D \ D', t, d, ⌈(s + d) / d⌉) ≤ T }
//! ```
//!
//! Fewer replicas behind a stage never hurt it (its memory falls), so only undominated pairs matter, and for a fixed
//! `(D', t, s)` only the *smallest* `d` that keeps to `T`. As `s` grows that `d` never falls, so every `d` serves one
//! stretch of `F[D']`, whose end is found by bisection over the microbatches in flight.
//!
//! Two bounds discard most work. A set needs at least its device-seconds divided by `T` devices, so pairs that leave too
//! few for the rest are dropped, and for a stage on `m` devices the inner set's device-seconds must lie in a window as
//! wide as the slack `k·T − total`, which is small near the answer: inner sets are kept sorted by device-seconds and
//! only the windows are looked at. Where the slack is wide (tight memory), the inner sets are visited by a walk from the
//! largest down instead, which turns back where a stage is too slow or too large whatever follows.
//!
//! Where the number of stages is given, there is a table of `F` for every number of them, each made from the one before.
//!
//! Time `O(pairs in the windows · degrees · |F|)`, memory `O(sets · |F|)`, both times the number of stages where that is
//! given; no pair of sets is ever stored. Sets of one
//! size do not depend on each other and are shared out among threads where there are many; where there are few, the inner sets
//! of each are. `F` is the same for any number of threads.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
};

use rayon::prelude::*;

use super::{
    model::{Crossing, Model},
    modes::{Oracle, StageKey},
    rest::Rest,
    settings::Settings,
};
use crate::planner::Search;

/// Undominated (replicas, devices): replicas ascend, devices descend.
type Frontier = Vec<(u32, u32)>;

/// A tensor degree and the replicas it may have.
#[derive(Debug, Clone)]
pub(super) struct Allowed {
    /// Index into the model's degrees.
    pub(super) degree: usize,
    /// Replicas, ascending.
    pub(super) replicas: Vec<u32>,
}

/// One question: a load, memory, devices, and which degrees may be used.
#[derive(Debug, Clone)]
pub(super) struct Question<'q> {
    /// The load no stage may exceed, seconds per sample; infinite to ask for memory alone.
    pub(super) target: f64,
    /// Devices that may be used.
    pub(super) devices: u32,
    /// The most replicas all stages may have together.
    pub(super) most_replicas: u32,
    /// Degrees and replicas.
    pub(super) allowed: &'q [Allowed],
    /// Exactly so many stages, if that matters.
    pub(super) stages: Option<usize>,
    /// Shares of the whole search done before and after this probe, to report in between.
    pub(super) progress: (f64, f64),
}

/// A stage of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundStage {
    pub(super) outer: u32,
    pub(super) inner: u32,
    pub(super) degree: usize,
    pub(super) d: u32,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// A cut with the fewest devices, first stage first.
    Yes(Vec<FoundStage>),
    /// There is none.
    No,
    /// Stopped.
    Cancelled,
}

/// The question with everything that is known of its answer so far; read by all workers.
struct Probe<'p, 'm, 'a> {
    model: &'m Model<'a>,
    question: &'p Question<'p>,
    /// By set; where stages are counted, a table for every number of them.
    frontiers: Vec<Vec<Frontier>>,
    /// The table that a stage is put in front of: the one that is being filled, unless stages are counted.
    behind: usize,
    /// Numbers of devices a stage may take, ascending.
    stage_devices: Vec<u32>,
    /// What everything outside a set needs.
    rest: Option<Rest>,
}

/// What one thread needs to find frontiers.
struct Worker<'m, 'a> {
    oracle: Oracle<'m, 'a>,
    /// Fewest devices with so many replicas or fewer, for the set at hand.
    fewest: Vec<u32>,
    /// By set: the outer set whose walk saw it last.
    stamps: Vec<u32>,
    stack: Vec<u32>,
}

/// Those who answer questions about one model; they remember what they found out about its stages.
pub(super) struct Crew<'m, 'a> {
    model: &'m Model<'a>,
    workers: Vec<Worker<'m, 'a>>,
}

const NONE: u32 = u32::MAX;
/// With more inner sets than this in the windows of a set, walking down from it is faster than trying them all.
const MANY_CANDIDATES: usize = 1_000;
/// Slack for rounding when device-seconds are turned into whole devices.
const ROUNDING: f64 = 1e-9;

/// Sets of one size are shared out among threads if there are at least so many of them.
const SHARED_OUT: usize = 12;
/// Else the inner sets of each are, from this many smaller sets on.
const MANY_INNER: usize = 200;

/// Every so many inner sets from the first of its own on.
#[derive(Debug, Clone, Copy)]
struct Share {
    hand: usize,
    hands: usize,
}

impl Share {
    const ALL: Share = Share { hand: 0, hands: 1 };
}

impl<'m, 'a> Crew<'m, 'a> {
    /// As many workers as there are threads, or one where there is too little to share out.
    pub(super) fn new(model: &'m Model<'a>, settings: &Settings, memory_bytes: f64) -> Self {
        let many = model.widest_level() >= SHARED_OUT || model.sets.len() > MANY_INNER;
        let threads = if many { rayon::current_num_threads() } else { 1 };
        let worker = |_| Worker {
            oracle: Oracle::new(model, settings, memory_bytes, threads),
            fewest: vec![],
            stamps: vec![],
            stack: vec![],
        };
        Crew { model, workers: (0..threads).map(worker).collect() }
    }

    /// Whether some knapsack was too large to be solved exactly.
    pub(super) fn unproven(&self) -> bool {
        self.workers.iter().any(|worker| worker.oracle.unproven)
    }

    /// Answers one question.
    pub(super) fn ask(&mut self, question: &Question<'_>, search: &Search) -> Answer {
        let model = self.model;
        let mut stage_devices: Vec<u32> = question
            .allowed
            .iter()
            .flat_map(|allowed| allowed.replicas.iter().map(|&d| d.saturating_mul(model.degrees[allowed.degree].t)))
            .filter(|&m| m <= question.devices)
            .collect();
        stage_devices.sort_unstable();
        stage_devices.dedup();
        for worker in &mut self.workers {
            worker.fewest = vec![NONE; question.most_replicas as usize + 1];
            worker.stamps = vec![NONE; model.sets.len()];
        }
        let tables = 1 + question.stages.unwrap_or(0);
        let mut frontiers = vec![vec![vec![]; model.sets.len()]; tables];
        frontiers[0][0] = vec![(0, 0)];
        let memory_bytes = self.workers[0].oracle.memory_bytes();
        let rest = Rest::new(model, question.allowed, question.target, memory_bytes);
        let mut probe = Probe { model, question, frontiers, behind: 0, stage_devices, rest };
        probe.run(&mut self.workers, search)
    }
}

impl<'m, 'a> Probe<'_, 'm, 'a> {
    fn run(&mut self, workers: &mut [Worker<'m, 'a>], search: &Search) -> Answer {
        let full = self.model.full();
        if self.most_devices(0, &[]).is_none() {
            return Answer::No;
        }
        let (before, after) = self.question.progress;
        match self.question.stages {
            None => {
                if !self.fill(0, (before, after), workers, search) {
                    return Answer::Cancelled;
                }
            }
            Some(stages) => {
                for count in 1..=stages {
                    self.behind = count - 1;
                    let share = |done: usize| before + (after - before) * done as f64 / stages as f64;
                    if !self.fill(count, (share(count - 1), share(count)), workers, search) {
                        return Answer::Cancelled;
                    }
                }
            }
        }
        let whole = self.frontiers.len() - 1;
        match self.frontiers[whole][full].last() {
            None => Answer::No,
            Some(&(replicas, devices)) => Answer::Yes(self.stages(&mut workers[0].oracle, replicas, devices)),
        }
    }

    /// Fills a table, smaller sets first; false if it was cancelled.
    fn fill(
        &mut self,
        table: usize,
        (before, after): (f64, f64),
        workers: &mut [Worker<'m, 'a>],
        search: &Search,
    ) -> bool {
        let full = self.model.full();
        for level in self.model.levels() {
            search.report_fraction(before + (after - before) * level.start as f64 / full as f64);
            let found = if workers.len() > 1 && level.len() >= SHARED_OUT {
                self.level(level, workers, search)
            } else {
                level.map(|outer| Some((outer, self.alone(outer, workers, search)?))).collect()
            };
            let Some(found) = found else { return false };
            for (outer, frontier) in found {
                self.frontiers[table][outer] = frontier;
            }
        }
        true
    }

    /// The frontiers of a level's sets, each found by whoever is free; `None` if cancelled.
    fn level(
        &self,
        level: Range<usize>,
        workers: &mut [Worker<'m, 'a>],
        search: &Search,
    ) -> Option<Vec<(usize, Frontier)>> {
        // Who finds a frontier makes no difference to it.
        let next = AtomicUsize::new(level.start);
        let one = |worker: &mut Worker<'m, 'a>| {
            let mut found = vec![];
            loop {
                let outer = next.fetch_add(1, Ordering::Relaxed);
                if outer >= level.end || search.cancelled() {
                    return found;
                }
                found.push((outer, worker.frontier(self, outer, Share::ALL)));
            }
        };
        let found: Vec<Vec<(usize, Frontier)>> = workers.par_iter_mut().map(one).collect();
        (!search.cancelled()).then(|| found.into_iter().flatten().collect())
    }

    /// The frontier of one set, its inner sets shared out among all where there are many; `None` if cancelled.
    fn alone(&self, outer: usize, workers: &mut [Worker<'m, 'a>], search: &Search) -> Option<Frontier> {
        if search.cancelled() {
            return None;
        }
        let hands = workers.len();
        if hands == 1 || outer < MANY_INNER {
            return Some(workers[0].frontier(self, outer, Share::ALL));
        }
        let share = |(hand, worker): (usize, &mut Worker<'m, 'a>)| worker.frontier(self, outer, Share { hand, hands });
        let mut pairs: Frontier = workers.par_iter_mut().enumerate().flat_map_iter(share).collect();
        pairs.sort_unstable();
        let mut fewest = NONE;
        pairs.retain(|&(_, devices)| {
            let undominated = devices < fewest;
            fewest = fewest.min(devices);
            undominated
        });
        Some(pairs)
    }

    /// The pairs of a set that a stage is put in front of.
    fn pairs(&self, set: usize) -> &Frontier {
        &self.frontiers[self.behind][set]
    }

    /// Devices that so many device-seconds need at the least.
    fn devices_for(&self, device_seconds: f64) -> u32 {
        let devices = (device_seconds / self.question.target - ROUNDING).ceil();
        // Infinite for a target of 0 with work to do; 0 for an infinite target.
        if devices > 0.0 { devices.min(f64::from(NONE - 1)) as u32 } else { 0 }
    }

    /// Devices that a tail may take so that the rest can still be run; `crossings` are the edges into it.
    fn most_devices(&self, outer: usize, crossings: &[Crossing]) -> Option<u32> {
        let seconds = &self.model.device_seconds;
        let even = self.devices_for((seconds[self.model.full()] - seconds[outer]).max(0.0));
        let rest = self.rest.as_ref().map_or(0, |rest| rest.devices(outer, crossings));
        self.question.devices.checked_sub(even.max(rest))
    }

    /// Ranges of positions in the list of sets by device-seconds that may hold the inner set of a stage of `outer`.
    fn windows(&self, outer: usize, most: u32) -> Vec<(usize, usize)> {
        let seconds = &self.model.device_seconds;
        let order = &self.model.by_device_seconds;
        let target = self.question.target;
        if target.is_infinite() {
            return vec![(0, order.len())];
        }
        let at = |limit: f64| order.partition_point(|&set| seconds[set as usize] <= limit);
        let room = ROUNDING * target * f64::from(self.question.devices);
        let mut windows: Vec<(usize, usize)> = vec![];
        // Descending devices give ascending device-seconds of the inner set.
        for &m in self.stage_devices.iter().rev() {
            let Some(before) = most.checked_sub(m) else { continue };
            let lowest = seconds[outer] - f64::from(m) * target - room;
            let from = order.partition_point(|&set| seconds[set as usize] < lowest);
            let to = at((f64::from(before) * target + room).min(seconds[outer] + room));
            match windows.last_mut() {
                _ if from >= to => {}
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => windows.push((from, to)),
            }
        }
        windows
    }

    /// Walks back from the full set: the stages that reach (replicas, devices), first stage first.
    fn stages(&mut self, oracle: &mut Oracle<'m, 'a>, mut replicas: u32, mut devices: u32) -> Vec<FoundStage> {
        let mut stages = vec![];
        let mut outer = self.model.full();
        while outer != 0 {
            if let Some(count) = self.question.stages {
                self.behind = count - stages.len() - 1;
            }
            let (stage, s, j) = self
                .step_back(oracle, outer, replicas, devices)
                .expect("every pair of a frontier has a stage that made it");
            stages.push(stage);
            (outer, replicas, devices) = (stage.inner as usize, s, j);
        }
        stages
    }

    /// The first stage of `outer` that leaves a pair of the inner frontier within (replicas, devices).
    fn step_back(
        &self,
        oracle: &mut Oracle<'m, 'a>,
        outer: usize,
        replicas: u32,
        devices: u32,
    ) -> Option<(FoundStage, u32, u32)> {
        let crossings = self.model.crossings(outer);
        let target = self.question.target;
        for inner in 0..outer {
            // Cheap questions first: almost every inner set fails one of them.
            let within = |&(s, j): &(u32, u32)| s < replicas && j < devices;
            let may_fit = |allowed: &Allowed| {
                self.model.may_fit(allowed.degree, outer, inner, replicas, target, oracle.memory_bytes())
            };
            if !self.pairs(inner).iter().any(within)
                || !self.question.allowed.iter().any(may_fit)
                || !self.model.sets.is_subset(inner, outer)
            {
                continue;
            }
            for allowed in self.question.allowed {
                let Some(stage) = self.model.stage(allowed.degree, outer, inner, &crossings) else { continue };
                let key = StageKey { degree: allowed.degree as u32, outer: outer as u32, inner: inner as u32 };
                let t = self.model.degrees[allowed.degree].t;
                for &d in &allowed.replicas {
                    let (Some(most_s), Some(most_j)) =
                        (replicas.checked_sub(d), devices.checked_sub(t.saturating_mul(d)))
                    else {
                        break;
                    };
                    if !oracle.fast_enough(key, &stage, d, target) {
                        continue;
                    }
                    for &(s, j) in self.pairs(inner) {
                        if s <= most_s && j <= most_j && oracle.fits(key, &stage, d, (s + d).div_ceil(d), target) {
                            let found =
                                FoundStage { outer: outer as u32, inner: inner as u32, degree: allowed.degree, d };
                            return Some((found, s, j));
                        }
                    }
                }
            }
        }
        None
    }
}

impl Worker<'_, '_> {
    /// The undominated pairs of a set, from those of a share of all smaller ones.
    fn frontier(&mut self, probe: &Probe<'_, '_, '_>, outer: usize, share: Share) -> Frontier {
        let crossings = probe.model.crossings(outer);
        let Some(most) = probe.most_devices(outer, &crossings) else { return vec![] };
        let mut touched = usize::MAX;
        let windows = probe.windows(outer, most);
        let candidates: usize = windows.iter().map(|(from, to)| to - from).sum();
        if candidates > MANY_CANDIDATES && probe.model.sets.below(outer).is_some() {
            self.walk(probe, outer, most, &crossings, share, &mut touched);
        } else {
            for (from, to) in windows {
                for position in (from + share.hand..to).step_by(share.hands) {
                    let inner = probe.model.by_device_seconds[position] as usize;
                    let Some(&(_, devices)) = probe.pairs(inner).last() else { continue };
                    if devices < most && inner < outer && probe.model.sets.is_subset(inner, outer) {
                        self.extend_all(probe, outer, inner, most, &crossings, &mut touched);
                    }
                }
            }
        }
        self.collect(touched)
    }

    /// Visits the inner sets of `outer` from the largest down, each once, and turns back where the stage has become too
    /// slow or too large for any degree: larger stages only get worse.
    fn walk(
        &mut self,
        probe: &Probe<'_, '_, '_>,
        outer: usize,
        most: u32,
        crossings: &[Crossing],
        share: Share,
        touched: &mut usize,
    ) {
        self.stamps[outer] = outer as u32;
        self.stack.clear();
        self.stack.push(outer as u32);
        while let Some(set) = self.stack.pop() {
            for &inner in probe.model.sets.below(set as usize).unwrap_or_default() {
                let inner = inner as usize;
                if self.stamps[inner] == outer as u32 {
                    continue;
                }
                self.stamps[inner] = outer as u32;
                let may_fit = probe.question.allowed.iter().any(|allowed| {
                    let most_d = (most / probe.model.degrees[allowed.degree].t).min(probe.question.most_replicas);
                    probe.model.may_fit(
                        allowed.degree,
                        outer,
                        inner,
                        most_d,
                        probe.question.target,
                        self.oracle.memory_bytes(),
                    )
                });
                if !may_fit {
                    continue;
                }
                self.stack.push(inner as u32);
                let own = inner % share.hands == share.hand;
                if own && probe.pairs(inner).last().is_some_and(|&(_, devices)| devices < most) {
                    self.extend_all(probe, outer, inner, most, crossings, touched);
                }
            }
        }
    }

    fn extend_all(
        &mut self,
        probe: &Probe<'_, '_, '_>,
        outer: usize,
        inner: usize,
        most: u32,
        crossings: &[Crossing],
        touched: &mut usize,
    ) {
        for allowed in probe.question.allowed {
            self.extend(probe, allowed, (outer, inner), most, crossings, touched);
        }
    }

    /// Puts the stage `outer \ inner` at one degree in front of every pair of the inner frontier.
    fn extend(
        &mut self,
        probe: &Probe<'_, '_, '_>,
        allowed: &Allowed,
        (outer, inner): (usize, usize),
        most: u32,
        crossings: &[Crossing],
        touched: &mut usize,
    ) {
        let target = probe.question.target;
        let t = probe.model.degrees[allowed.degree].t;
        let pairs = probe.pairs(inner);
        let Some(least_d) = probe.model.least_replicas(allowed.degree, outer, inner, target) else { return };
        let promising = |d: u32| {
            let (last, devices) = (pairs[pairs.len() - 1], t.saturating_mul(d));
            devices.saturating_add(last.1) <= most
                && pairs
                    .iter()
                    .any(|&(s, j)| self.fewest.get((s + d) as usize).is_some_and(|&known| devices + j < known))
        };
        if !promising(least_d) {
            return;
        }
        let Some(stage) = probe.model.stage(allowed.degree, outer, inner, crossings) else { return };
        let key = StageKey { degree: allowed.degree as u32, outer: outer as u32, inner: inner as u32 };
        let mut next = 0;
        for &d in &allowed.replicas[allowed.replicas.partition_point(|&d| d < least_d)..] {
            // Pairs with too many replicas for this d have too many for every larger one.
            let reachable = pairs.partition_point(|&(s, _)| s + d <= probe.question.most_replicas);
            let devices = t.saturating_mul(d);
            // What is no better than known with d replicas is not with more of them either.
            let better = |&(s, j): &(u32, u32)| devices + j <= most && devices + j < self.fewest[(s + d) as usize];
            while next < reachable && !better(&pairs[next]) {
                next += 1;
            }
            if next >= reachable || devices.saturating_add(pairs[pairs.len() - 1].1) > most {
                return;
            }
            let last = (next..reachable).rev().find(|&i| better(&pairs[i])).unwrap_or(next);
            if !self.oracle.fast_enough(key, &stage, d, target) {
                continue;
            }
            let in_flight = |i: usize| (pairs[i].0 + d).div_ceil(d);
            let range = in_flight(next)..=in_flight(last);
            let Some(most_in_flight) = self.oracle.most_in_flight(key, &stage, d, range, target) else {
                continue;
            };
            for (i, &(s, j)) in pairs.iter().enumerate().take(last + 1).skip(next) {
                // A pair may lack devices where a later one, with fewer, does not.
                if devices + j <= most && in_flight(i) <= most_in_flight {
                    self.lower((s + d) as usize, devices + j, touched);
                }
            }
        }
    }

    /// Notes that so many devices do with `behind` replicas, and so with more.
    fn lower(&mut self, behind: usize, devices: u32, touched: &mut usize) {
        for known in self.fewest[behind..].iter_mut().take_while(|known| **known > devices) {
            *known = devices;
        }
        *touched = behind.min(*touched);
    }

    /// Takes the undominated pairs out of the scratch table and clears it.
    fn collect(&mut self, first: usize) -> Frontier {
        let mut frontier = vec![];
        let mut fewest = NONE;
        for (s, known) in self.fewest.iter_mut().enumerate().skip(first) {
            let devices = std::mem::replace(known, NONE);
            if devices < fewest {
                fewest = devices;
                frontier.push((s as u32, devices));
            }
        }
        frontier
    }
}

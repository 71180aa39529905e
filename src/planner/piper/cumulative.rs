//! The probe where warm-ups are rounded on from the last stage ([`WarmUp::Cumulative`]).
//!
//! A tail then holds `K = y · d` microbatches, `y = ⌈K' / d⌉ + 1` of them on each replica of its first stage, where `K'` is
//! what the tail behind that stage holds; no replica holds more than the `N / d` it is given. So `K` takes the place of the
//! sum of replicas:
//!
//! ```text
//! F[∅] = {(0, 0, 0)}
//! F[D] = undominated { (y·d, s + d, j + t·d) : D' ⊂ D, (K', s, j) ∈ F[D'], y = min(⌈K'/d⌉ + 1, N/d), load(D \ D', t, d, y) ≤ T }
//! ```
//!
//! A tail that holds less never hurts what comes before it, since `y` never falls as `K'` grows. But more replicas of a stage may
//! hold *less* (5 behind: 12 with four, 10 with five), so every `d` counts, not just the smallest that keeps to the
//! load. The replicas `s` matter only where fewer are allowed than devices make room for; else they are left out.
//!
//! Time `O(pairs in the windows · degrees · replicas · |F|)`, memory `O(sets · |F|)`, both times the number of stages where
//! that is given. Sets of one size are shared out among threads; the answer is the same for any number of them.
//!
//! [`WarmUp::Cumulative`]: crate::plan::WarmUp::Cumulative

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::{
    flow::SHARED_OUT,
    model::StageCost,
    modes::{Oracle, StageKey},
    probe::{Allowed, Answer, FoundStage, Probe},
    settings::in_flight,
    sources::Sources,
    worker::Worker,
};
use crate::planner::Search;

/// A way to run a set, the pipeline's tail.
#[derive(Debug, Clone, Copy)]
struct Tail {
    /// Microbatches in flight on the replicas of its first stage together.
    held: u32,
    /// Replicas of all its stages; 0 where their number does not matter.
    replicas: u32,
    devices: u32,
    /// Its first stage, and the tail behind that: the set and its position there.
    first: Option<(FoundStage, u32)>,
}

impl Tail {
    const NONE: Tail = Tail { held: 0, replicas: 0, devices: 0, first: None };

    fn is_within(&self, other: &Tail) -> bool {
        self.held <= other.held && self.replicas <= other.replicas && self.devices <= other.devices
    }
}

/// A question with the tails that are known so far.
pub(super) struct Tails<'t, 'p, 'm, 'a> {
    probe: &'t Probe<'p, 'm, 'a>,
    /// All sets.
    sources: Sources,
    /// Whether fewer replicas are allowed than devices make room for.
    counts_replicas: bool,
    /// By set, devices descending; where stages are counted, a table for every number of them.
    tails: Vec<Vec<Vec<Tail>>>,
    /// The table that a stage is put in front of.
    behind: usize,
}

/// Those of a set that were found so far, by what they hold.
#[derive(Default)]
struct Scratch {
    tails: Vec<Vec<Tail>>,
}

impl<'t, 'p, 'm, 'a> Tails<'t, 'p, 'm, 'a> {
    pub(super) fn new(probe: &'t Probe<'p, 'm, 'a>) -> Self {
        let question = probe.question;
        let narrowest = question.allowed.iter().map(|allowed| probe.model.degrees[allowed.degree].t).min().unwrap_or(1);
        let mut tails = vec![vec![vec![]; probe.model.sets.len()]; 1 + question.stages.unwrap_or(0)];
        tails[0][0] = vec![Tail::NONE];
        let counts_replicas = question.most_replicas < question.devices / narrowest;
        Tails { probe, sources: Sources::new(probe.model, false), counts_replicas, tails, behind: 0 }
    }

    pub(super) fn answer(mut self, workers: &mut [Worker<'m, 'a>], search: &Search) -> Answer {
        if self.probe.most_devices(0).is_none() {
            return Answer::No;
        }
        let (before, after) = self.probe.question.progress;
        let stages = self.probe.question.stages;
        let rounds = stages.unwrap_or(1);
        for round in 0..rounds {
            let share = |done: usize| before + (after - before) * done as f64 / rounds as f64;
            self.behind = round;
            let table = if stages.is_some() { round + 1 } else { 0 };
            if !self.fill(table, (share(round), share(round + 1)), workers, search) {
                return Answer::Cancelled;
            }
        }
        let full = self.probe.model.full();
        let mut table = self.tails.len() - 1;
        let Some(mut tail) = self.tails[table][full].last().copied() else { return Answer::No };
        let mut found = vec![];
        while let Some((stage, position)) = tail.first {
            found.push(stage);
            table = if stages.is_some() { table - 1 } else { table };
            tail = self.tails[table][stage.inner as usize][position as usize];
        }
        Answer::Yes(found)
    }

    /// Fills a table, smaller sets first; false if it was cancelled.
    fn fill(
        &mut self,
        table: usize,
        (before, after): (f64, f64),
        workers: &mut [Worker<'m, 'a>],
        search: &Search,
    ) -> bool {
        let full = self.probe.model.full();
        for level in self.probe.model.levels() {
            search.report_fraction(before + (after - before) * level.start as f64 / full as f64);
            for (outer, tails) in self.level(level, workers, search) {
                self.tails[table][outer] = tails;
            }
            if search.cancelled() {
                return false;
            }
        }
        true
    }

    /// The tails of a level's sets, each found by whoever is free.
    fn level(&self, level: Range<usize>, workers: &mut [Worker<'m, 'a>], search: &Search) -> Vec<(usize, Vec<Tail>)> {
        let hands = if level.len() >= SHARED_OUT { workers.len() } else { 1 };
        let next = AtomicUsize::new(level.start);
        let one = |worker: &mut Worker<'m, 'a>| {
            let (mut found, mut scratch) = (vec![], Scratch::default());
            loop {
                let outer = next.fetch_add(1, Ordering::Relaxed);
                if outer >= level.end || search.cancelled() {
                    return found;
                }
                self.stages_of(outer, &mut worker.oracle, &mut scratch, search);
                found.push((outer, scratch.undominated()));
            }
        };
        workers[..hands].par_iter_mut().flat_map_iter(one).collect()
    }

    /// Puts every stage of a set in front of every tail behind it.
    fn stages_of(&self, outer: usize, oracle: &mut Oracle<'m, 'a>, scratch: &mut Scratch, search: &Search) {
        let (Probe { model, question, .. }, sources) = (self.probe, &self.sources);
        let Some(most) = self.probe.most_devices(outer) else { return };
        let crossings = model.crossings(outer);
        let row = model.sets.row(outer);
        let mut windows = vec![];
        self.probe.windows(&self.sources.settled, outer, most, &mut windows);
        for (from, to) in windows {
            for position in from..to {
                if search.cancelled() {
                    return;
                }
                let inner = sources.settled[position].set as usize;
                let Some(last) = self.tails[self.behind][inner].last() else { continue };
                if inner >= outer || last.devices >= most || !sources.is_within(position, row) {
                    continue;
                }
                let Some((least, _)) = self.probe.least_stage((outer, inner), &crossings, 0) else { continue };
                if least.saturating_add(last.devices) > most {
                    continue;
                }
                for allowed in question.allowed {
                    let Some(stage) = model.stage(allowed.degree, outer, inner, &crossings) else { continue };
                    self.extend(allowed, (outer, inner), &stage, most, oracle, scratch);
                }
            }
        }
    }

    /// Puts the stage `outer \ inner` at one degree in front of the tails of `inner`.
    fn extend(
        &self,
        allowed: &Allowed,
        (outer, inner): (usize, usize),
        stage: &StageCost,
        most: u32,
        oracle: &mut Oracle<'m, 'a>,
        scratch: &mut Scratch,
    ) {
        let Probe { model, question, .. } = self.probe;
        let (target, microbatches) = (question.target, model.limits.microbatches);
        let tails = &self.tails[self.behind][inner];
        let t = model.degrees[allowed.degree].t;
        let key = StageKey { degree: allowed.degree as u32, outer: outer as u32, inner: inner as u32 };
        let least_d = model.least_replicas_of(stage, target);
        for &d in &allowed.replicas[allowed.replicas.partition_point(|&d| d < least_d)..] {
            let devices = t.saturating_mul(d);
            let ahead = |tail: &Tail, y: u32| Tail {
                held: y * d,
                replicas: if self.counts_replicas { tail.replicas + d } else { 0 },
                devices: tail.devices + devices,
                first: None,
            };
            let new = |tail: &Tail| {
                let next = ahead(tail, in_flight(tail.held, d, microbatches));
                let allowed = next.devices <= most && next.replicas <= question.most_replicas;
                (allowed && scratch.is_new(&next)).then_some(next)
            };
            if devices.saturating_add(tails[tails.len() - 1].devices) > most {
                return;
            }
            let promising: Vec<(u32, Tail)> =
                tails.iter().enumerate().filter_map(|(at, tail)| Some((at as u32, new(tail)?))).collect();
            let in_flight = promising.iter().map(|(_, tail)| tail.held / d);
            let (Some(fewest), Some(greatest)) = (in_flight.clone().min(), in_flight.max()) else { continue };
            if !oracle.fast_enough(key, stage, d, target) {
                continue;
            }
            let Some(fits) = oracle.most_in_flight(key, stage, d, fewest..=greatest, target) else { continue };
            let found = FoundStage { outer: outer as u32, inner: inner as u32, degree: allowed.degree, d };
            for (at, tail) in promising.into_iter().filter(|(_, tail)| tail.held / d <= fits) {
                scratch.add(Tail { first: Some((found, at)), ..tail });
            }
        }
    }
}

impl Scratch {
    /// Whether none that holds as many is as good.
    fn is_new(&self, tail: &Tail) -> bool {
        self.tails.get(tail.held as usize).is_none_or(|known| !known.iter().any(|known| known.is_within(tail)))
    }

    fn add(&mut self, tail: Tail) {
        let held = tail.held as usize;
        if self.tails.len() <= held {
            self.tails.resize_with(held + 1, Vec::new);
        }
        if self.is_new(&tail) {
            self.tails[held].retain(|known| !tail.is_within(known));
            self.tails[held].push(tail);
        }
    }

    /// Takes out what no other is as good as, devices descending.
    fn undominated(&mut self) -> Vec<Tail> {
        let mut found: Vec<Tail> = vec![];
        for tails in &mut self.tails {
            for tail in tails.drain(..) {
                if !found.iter().any(|known| known.is_within(&tail)) {
                    found.push(tail);
                }
            }
        }
        found.sort_by_key(|tail| (std::cmp::Reverse(tail.devices), tail.held, tail.replicas));
        found
    }
}

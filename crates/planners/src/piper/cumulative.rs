//! The decision problem where warm-ups are rounded on from the last stage ([`WarmUp::Cumulative`]).
//!
//! Let `K'` be the microbatches of the tail after its first stage. Each replica of that stage holds `y = ⌈K' / d⌉ + 1`,
//! so the tail holds `K = y · d`. No replica holds more than the `N / d` that it is given. So `K` takes the place of
//! the number of replicas:
//!
//! ```text
//! F[∅] = {(0, 0, 0)}
//! F[D] = pareto { (y·d, s + d, j + t·d) : D' ⊂ D, (K', s, j) ∈ F[D'], y = min(⌈K'/d⌉ + 1, N/d), load(D \ D', t, d, y) ≤ T }
//! ```
//!
//! A tail that holds less never hurts the stages before it, since `y` never falls as `K'` grows. But more replicas of a stage
//! may hold *less* (5 behind: 12 with four replicas, 10 with five), so every `d` counts, not only the smallest that keeps to
//! the load. The replicas `s` are left out where devices bound them anyway.
//!
//! Time `O(pairs in the windows · degrees · replicas · |F|)`, memory `O(sets · |F|)`, both times the number of stages where
//! that is given.
//!
//! [`WarmUp::Cumulative`]: plantui_core::plan::WarmUp::Cumulative

use super::{
    decide::{Answer, FoundStage, Probe, Prober, most_devices, rounds, stage_devices, windows},
    model::StageSums,
    modes::StageKey,
    settings::in_flight,
};
use plantui_core::search::Search;

/// Plan of a closed set, the tail of the pipeline.
#[derive(Debug, Clone, Copy)]
struct Tail {
    /// Microbatches in flight on the replicas of its first stage together.
    held: u32,
    /// Replicas of all its stages; 0 where devices bound their number.
    replicas: u32,
    devices: u32,
    /// Its first stage, and the position of the rest among the tails of that stage's inner set.
    first: Option<(FoundStage, u32)>,
}

impl Tail {
    const EMPTY: Tail = Tail { held: 0, replicas: 0, devices: 0, first: None };

    fn dominates(&self, other: &Tail) -> bool {
        self.held <= other.held && self.replicas <= other.replicas && self.devices <= other.devices
    }
}

/// Tables of one probe.
struct TailTables<'p> {
    probe: &'p Probe,
    stage_devices: Vec<u32>,
    /// True if fewer replicas are allowed than the devices could hold.
    counts_replicas: bool,
    /// Tails by set, devices descending; one table for each number of stages if that is given.
    tails: Vec<Vec<Vec<Tail>>>,
    /// Table that a stage is put in front of.
    behind: usize,
}

/// Tails of one set that were found so far, by the microbatches that they hold.
#[derive(Default)]
struct FoundTails {
    by_held: Vec<Vec<Tail>>,
}

pub(super) fn decide(prober: &mut Prober<'_, '_>, probe: &Probe, search: &Search) -> Answer {
    let model = prober.model;
    let narrowest = model.degrees.iter().map(|degree| degree.t).min().unwrap_or(1);
    let mut tables = TailTables {
        probe,
        stage_devices: stage_devices(model, probe),
        counts_replicas: probe.most_replicas < probe.devices / narrowest,
        tails: vec![vec![vec![]; model.sets.len()]; 1 + probe.stages.unwrap_or(0)],
        behind: 0,
    };
    tables.tails[0][0] = vec![Tail::EMPTY];
    let full = model.full();
    for (table, (before, after)) in rounds(probe) {
        tables.behind = table.saturating_sub(1);
        for outer in 1..=full {
            search.report_fraction(before + (after - before) * outer as f64 / full as f64);
            if search.cancelled() {
                return Answer::Cancelled;
            }
            tables.tails[table][outer] = tables.of_set(prober, outer);
        }
    }
    let mut table = tables.tails.len() - 1;
    let Some(mut tail) = tables.tails[table][full].last().copied() else { return Answer::No };
    let mut found = vec![];
    while let Some((stage, position)) = tail.first {
        found.push(stage);
        table = table.saturating_sub(1);
        tail = tables.tails[table][stage.inner as usize][position as usize];
    }
    Answer::Yes(found)
}

impl TailTables<'_> {
    /// Pareto-optimal tails of a set: every stage in front of every tail behind it.
    fn of_set(&self, prober: &mut Prober<'_, '_>, outer: usize) -> Vec<Tail> {
        let model = prober.model;
        let mut found = FoundTails::default();
        let Some(most) = most_devices(model, self.probe, outer) else { return vec![] };
        let crossings = model.crossings(outer);
        let windows = windows(model, self.probe, &self.stage_devices, outer, most);
        for position in windows.into_iter().flat_map(|(from, to)| from..to) {
            let inner = model.by_device_seconds[position] as usize;
            let Some(last) = self.tails[self.behind][inner].last() else { continue };
            if inner >= outer || last.devices >= most || !model.sets.is_subset(inner, outer) {
                continue;
            }
            for degree in 0..model.degrees.len() {
                if let Some(stage) = model.stage(degree, outer, inner, &crossings) {
                    self.extend(prober, degree, (outer, inner), &stage, most, &mut found);
                }
            }
        }
        found.pareto()
    }

    /// Puts the stage `outer \ inner` at one degree in front of the tails of `inner`.
    fn extend(
        &self,
        prober: &mut Prober<'_, '_>,
        degree: usize,
        (outer, inner): (usize, usize),
        stage: &StageSums,
        most: u32,
        found: &mut FoundTails,
    ) {
        let (model, target) = (prober.model, self.probe.target);
        let tails = &self.tails[self.behind][inner];
        let key = StageKey { degree: degree as u32, outer: outer as u32, inner: inner as u32 };
        let too_few = |&d: &u32| f64::from(d) * target < stage.time_s * (1.0 - 1e-9);
        for &d in model.replicas.iter().skip_while(|d| too_few(d)) {
            let devices = model.degrees[degree].t.saturating_mul(d);
            if devices.saturating_add(tails[tails.len() - 1].devices) > most {
                return;
            }
            if !prober.oracle.fast_enough(key, stage, d, target) {
                continue;
            }
            let first = FoundStage { outer: outer as u32, inner: inner as u32, degree, d };
            let ahead = |(tail, position): (&Tail, u32)| {
                let next = Tail {
                    held: in_flight(tail.held, d, model.limits.microbatches) * d,
                    replicas: if self.counts_replicas { tail.replicas + d } else { 0 },
                    devices: tail.devices + devices,
                    first: Some((first, position)),
                };
                let allowed = next.devices <= most && next.replicas <= self.probe.most_replicas;
                (allowed && !found.has_better(&next)).then_some(next)
            };
            let candidates: Vec<Tail> = tails.iter().zip(0..).filter_map(ahead).collect();
            let held = candidates.iter().map(|tail| tail.held / d);
            let (Some(fewest), Some(greatest)) = (held.clone().min(), held.max()) else { continue };
            let Some(fits) = prober.oracle.most_in_flight(key, stage, d, fewest..=greatest, target) else { continue };
            candidates.into_iter().filter(|tail| tail.held / d <= fits).for_each(|tail| found.add(tail));
        }
    }
}

impl FoundTails {
    /// True if one that holds as many dominates `tail`.
    fn has_better(&self, tail: &Tail) -> bool {
        self.by_held.get(tail.held as usize).is_some_and(|known| known.iter().any(|known| known.dominates(tail)))
    }

    fn add(&mut self, tail: Tail) {
        let held = tail.held as usize;
        if self.by_held.len() <= held {
            self.by_held.resize_with(held + 1, Vec::new);
        }
        if !self.has_better(&tail) {
            self.by_held[held].retain(|known| !tail.dominates(known));
            self.by_held[held].push(tail);
        }
    }

    /// Pareto-optimal tails, devices descending.
    fn pareto(self) -> Vec<Tail> {
        let mut found: Vec<Tail> = vec![];
        for tail in self.by_held.into_iter().flatten() {
            if !found.iter().any(|known| known.dominates(&tail)) {
                found.push(tail);
            }
        }
        found.sort_by_key(|tail| (std::cmp::Reverse(tail.devices), tail.held, tail.replicas));
        found
    }
}

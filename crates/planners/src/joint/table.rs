//! Costs of one tensor degree that depend neither on replicas nor on the number of stages: recomputation of stages, and
//! the least time of the last stages.
//!
//! A stage with `j − 1` stages behind it has `j` microbatches in flight. So `rest[j][a]`, the least `Σ x + 2 Σ c` of
//! `j` stages from unit `a` on, is one table for all pipelines. `O(stages · units · window)` time and
//! `O(stages · units)` memory, where a window is the units that fit a stage.

use super::{
    line::DegreeCosts,
    recompute::{Memo, RecomputeTime},
};

/// Limits of a stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct StageLimits {
    /// Number of parts of the model in it.
    pub(super) parts: u32,
    /// Microbatches in flight.
    pub(super) in_flight: f64,
    /// Maximum seconds of a microbatch.
    pub(super) most: f64,
}

/// Result of checking if units may form a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fit {
    /// Fits, with this lower bound on the seconds of recomputation.
    Yes(f64),
    /// Too few layers for its parts; a longer stage may fit.
    Short,
    /// Too much time or memory.
    Never,
}

/// Costs of a degree within a memory limit.
#[derive(Debug)]
pub(super) struct DegreeTable<'c> {
    pub(super) costs: &'c DegreeCosts,
    memory_bytes: f64,
    /// Relative tolerance of the memory limit for rounding, if bytes are not integers.
    rounding: f64,
    memo: Memo,
    /// Least time by stages and first unit, at `stages · (units + 1) + unit`; infinite if there is no split.
    rest: Vec<f64>,
    /// First unit from which that number of stages fits, by number of stages.
    reach: Vec<usize>,
}

impl<'c> DegreeTable<'c> {
    /// Costs within a memory limit and its tolerance, without the rows of `rest`: enough to evaluate a split.
    pub(super) fn bare(costs: &'c DegreeCosts, (memory_bytes, rounding): (f64, f64)) -> Self {
        let n = costs.len();
        let mut rest = vec![f64::INFINITY; n + 1];
        rest[n] = 0.0;
        DegreeTable { costs, memory_bytes, rounding, memo: Memo::default(), rest, reach: vec![n] }
    }

    /// Fills the rows for up to `most` stages; `None` if stopped.
    pub(super) fn filled(mut self, most: usize, stopped: &dyn Fn() -> bool) -> Option<Self> {
        for stages in 1..=most.min(self.costs.len()) {
            let begin = self.reaching(stages);
            self.reach.push(begin);
            let row = self.row(stages, stopped)?;
            self.rest.extend(row);
        }
        Some(self)
    }

    /// Lower bound on the first unit from which this number of stages can hold the rest.
    fn reaching(&mut self, stages: usize) -> usize {
        let n = self.costs.len();
        let from = self.reach[stages - 1];
        let ends = if stages == 1 { n..=n } else { from..=n + 1 - stages };
        self.earliest(ends, StageLimits { parts: 1, in_flight: stages as f64, most: f64::INFINITY })
    }

    /// Lower bound, by stage, on the first unit from which it and those behind it can hold the rest; the line's end if
    /// they cannot. The last entry is the line's end.
    pub(super) fn back(&mut self, count: usize, room: &dyn Fn(usize) -> StageLimits) -> Vec<usize> {
        let n = self.costs.len();
        let mut back = vec![n; count + 1];
        for s in (0..count).rev() {
            let ends = if s + 1 == count { n..=n } else { back[s + 1]..=n + s + 1 - count };
            back[s] = self.earliest(ends, room(s));
        }
        back
    }

    /// First unit from which a stage can hold everything up to one of `ends`; the end of the line if none can.
    fn earliest(&mut self, ends: std::ops::RangeInclusive<usize>, room: StageLimits) -> usize {
        let mut found = self.costs.len();
        for end in ends {
            let mut begin = None;
            for a in (0..end).rev() {
                match self.may_fit(a, end, room) {
                    Fit::Yes(_) => begin = Some(a),
                    Fit::Short => {}
                    Fit::Never => break,
                }
            }
            // A later end has no earlier begin, unless this end leaves too few layers.
            let Some(begin) = begin else { continue };
            if begin >= found {
                break;
            }
            let fits = |a: &usize| self.costs.swaps.grows() || matches!(self.fit(*a, end, room), Fit::Yes(_));
            found = (begin..found.min(end)).find(fits).unwrap_or(found);
        }
        found
    }

    /// Checks if units `a .. b` may form a stage.
    pub(super) fn fit(&mut self, a: usize, b: usize, room: StageLimits) -> Fit {
        if !self.costs.has_parts(a, b, room.parts) {
            return Fit::Short;
        }
        let fastest = self.costs.fastest(a, b);
        if fastest > room.most {
            return Fit::Never;
        }
        match self.least(a, b, room.in_flight) {
            Some(extra) if fastest + extra <= room.most => Fit::Yes(extra),
            _ => Fit::Never,
        }
    }

    /// Like `fit`, but `Never` also holds for every longer stage: any units may recompute.
    fn may_fit(&mut self, a: usize, b: usize, room: StageLimits) -> Fit {
        if self.costs.swaps.grows() {
            return self.fit(a, b, room);
        }
        let over = self.costs.fastest(a, b) > room.most
            || self.shave(a, b, room.in_flight) > self.costs.swaps.most_by_any(a, b, room.in_flight);
        match self.costs.has_parts(a, b, room.parts) {
            _ if over => Fit::Never,
            true => Fit::Yes(0.0),
            false => Fit::Short,
        }
    }

    /// First unit, from `least` on, from which a stage up to `end` holds everything; `end` if there is none.
    pub(super) fn furthest(&self, least: usize, end: usize, holds: impl Fn(usize) -> bool) -> usize {
        let mut found = end;
        for begin in (least..end).rev() {
            if holds(begin) {
                found = begin;
            } else if self.costs.swaps.grows() {
                break;
            }
        }
        found
    }

    fn row(&mut self, stages: usize, stopped: &dyn Fn() -> bool) -> Option<Vec<f64>> {
        let n = self.costs.len();
        let mut row = vec![f64::INFINITY; n + 1];
        let before: Vec<f64> = self.rest[(stages - 1) * (n + 1)..stages * (n + 1)].to_vec();
        // Least excess of the stages behind over their fastest modes.
        let above = |b: usize| before[b] - self.costs.fastest(b, n);
        let floor = (0..=n).map(above).filter(|above| above.is_finite()).fold(f64::INFINITY, f64::min);
        for (a, cell) in row.iter_mut().enumerate().take(n).skip(self.reach[stages]) {
            if stopped() {
                return None;
            }
            let all = self.costs.fastest(a, n);
            let mut best = f64::INFINITY;
            let last = if stages == 1 { n..=n } else { a + 1..=n - (stages - 1) };
            for b in last {
                let Some(extra) = self.least(a, b, stages as f64) else { break };
                if extra + floor >= best {
                    break;
                }
                let behind = before[b] - self.costs.fastest(b, n);
                let value = extra + 2.0 * self.costs.send(a, b, self.next(stages, b)) + behind;
                best = best.min(value);
            }
            *cell = all + best;
        }
        Some(row)
    }

    /// Lower bound on the end of the stage that starts at `b`, the first of `stages - 1`.
    fn next(&self, stages: usize, b: usize) -> usize {
        let n = self.costs.len();
        match stages {
            0..=2 => n,
            _ => (b + 1).max(self.reach[stages - 2]).min(n),
        }
    }

    /// True if units `a .. b` fit as a stage with `in_flight` microbatches in flight.
    pub(super) fn fits(&self, a: usize, b: usize, in_flight: f64) -> bool {
        let shave = self.shave(a, b, in_flight);
        shave <= 0.0 || self.costs.swaps.most_saved(a, b, in_flight) >= shave
    }

    /// Bytes by which units `a .. b` exceed the memory in their fastest modes.
    pub(super) fn shave(&self, a: usize, b: usize, in_flight: f64) -> f64 {
        let whole = self.costs.whole_bytes && in_flight.fract() == 0.0;
        let there = if whole { self.memory_bytes } else { self.memory_bytes * (1.0 + self.rounding) };
        self.costs.bytes(a, b, in_flight) - there
    }

    /// Lower bound on the recompute time of units `a .. b` as a stage with `in_flight` microbatches in flight; `None`
    /// if they do not fit.
    #[inline]
    pub(super) fn least(&mut self, a: usize, b: usize, in_flight: f64) -> Option<f64> {
        let shave = self.shave(a, b, in_flight);
        self.costs.swaps.least(a, b, in_flight, shave, &mut self.memo)
    }

    /// Recompute time of units `a .. b` as a stage with `in_flight` microbatches in flight; `None` if they do not fit.
    #[inline]
    pub(super) fn extra(&mut self, a: usize, b: usize, in_flight: f64) -> Option<RecomputeTime> {
        let shave = self.shave(a, b, in_flight);
        self.costs.swaps.extra(a, b, in_flight, shave, &mut self.memo)
    }

    /// Nodes that recompute in the same stage; `None` if it does not fit.
    pub(super) fn recomputing(&self, a: usize, b: usize, in_flight: f64) -> Option<Vec<usize>> {
        let shave = self.shave(a, b, in_flight);
        self.costs.swaps.choose(a, b, in_flight, shave)
    }

    /// Least memory with which exactly `stages` stages of `parts` parts hold everything; `None` if there are too few
    /// units. It may be one byte too large.
    pub(super) fn least_memory(&self, stages: usize, parts: u32, flight: &dyn Fn(usize) -> f64) -> Option<f64> {
        let n = self.costs.len();
        if stages == 0 || stages > n {
            return None;
        }
        let (mut low, mut high) = (0.0, 2.0 * self.costs.bytes(0, n, flight(stages - 1).max(flight(0))));
        if !self.holds(stages, parts, high, flight) {
            return None;
        }
        while high - low > (1e-12 * high).max(1.0) {
            let middle = (low + high) / 2.0;
            if self.holds(stages, parts, middle, flight) { high = middle } else { low = middle }
        }
        Some(high)
    }

    /// True if exactly `stages` stages of `parts` parts hold everything within a memory. `flight` gives the
    /// microbatches in flight by the number of stages behind.
    pub(super) fn holds(&self, stages: usize, parts: u32, memory: f64, flight: &dyn Fn(usize) -> f64) -> bool {
        let n = self.costs.len();
        if stages > n {
            return false;
        }
        let mut from = n;
        for j in 1..=stages {
            let flying = flight(j - 1);
            let needs =
                |a: usize, end: usize| self.costs.bytes(a, end, flying) - self.costs.swaps.most_saved(a, end, flying);
            let holds = |a: usize, end: usize| self.costs.has_parts(a, end, parts) && needs(a, end) <= memory;
            // Each stage in front needs a unit, and those behind have theirs.
            let ends = if j == 1 { n..=n } else { from..=n + 1 - j };
            let least = stages - j;
            let furthest = |end: usize| {
                let short = |a: &usize| !self.costs.has_parts(*a, end, parts);
                let begin = (least..end).rev().find(|a| !short(a))?;
                Some(self.furthest(least, begin + 1, |a| holds(a, end))).filter(|&a| a <= begin)
            };
            match ends.filter_map(furthest).next() {
                Some(begin) => from = begin,
                None => return false,
            }
        }
        from == 0
    }

    /// Memory for stages in bytes, and its rounding tolerance.
    pub(super) fn memory(&self) -> (f64, f64) {
        (self.memory_bytes, self.rounding)
    }

    /// Number of stages up to which there are rows.
    pub(super) fn stages(&self) -> usize {
        self.reach.len() - 1
    }

    /// Least `Σ x + 2 Σ c` of `stages` stages from `unit` on.
    pub(super) fn rest(&self, stages: usize, unit: usize) -> f64 {
        self.rest[stages * (self.costs.len() + 1) + unit]
    }
}

//! Search under schedules other than 1F1B.
//!
//! The bounds of these schedules ([`super::paths`]) are weaker. A class (degree, replicas, stages, schedule) is
//! discarded if its bound is no better than the incumbent. Otherwise closed forms give its plans: for the least longest
//! stage, and for slightly more, the split that recomputes and sends least. Then runs of cuts are moved by one while
//! that helps. Each split is simulated. Classes come in the order of an estimated time, so that the first plans are
//! good and most classes fail their bound. The rest determine the reported gap.
//!
//! `O(S · units · window)` time for a class and each time that its bound tries, the same memory; a simulation for each
//! split.

use super::{
    bounds::reduce_factor,
    interleave::Chain,
    kind::ScheduleKind,
    line::StageCost,
    paths::{self, Frame, PathLengths},
    search::{ClassSearch, LineSplit, all_splits},
    table::{DegreeTable, Fit, StageLimits},
    weighing::Timing,
};
use plantui_core::plan::Schedule;
use plantui_core::simulate::{Pipeline, PipelineStage, SimulatorSettings, Transfer, length_unless};

/// Factor on lower bounds that covers rounding errors in sums.
const SURE: f64 = 1.0 - 1e-9;
/// Relative excess of the longest stage over the least possible, tried in turn.
const ROOM: [f64; 5] = [1e-9, 0.002, 0.01, 0.03, 0.08];
/// Budget of operations for improving one split.
const MOST_OPERATIONS: usize = 400_000;
/// Number of classes whose best plan is improved, and the ratio to the incumbent that it must reach.
const MOST_POLISHED: usize = 8;
const NEAR: f64 = 0.95;

/// Class of plans with one degree, number of replicas, number of stages and schedule.
#[derive(Debug, Clone, Copy)]
struct ScheduleClass {
    table: usize,
    d: u32,
    stages: usize,
    kind: ScheduleKind,
    lower: f64,
    guess: f64,
}

/// Candidate stage.
#[derive(Debug, Clone, Copy)]
struct ScheduleArc {
    end: u32,
    cost: StageCost,
    extra: f64,
}

/// Candidate stages of a class within a time, with the least turn behind each position.
struct ScheduleArcs {
    frame: Frame,
    factor: f64,
    n: usize,
    /// Index of the first arc, by stage and first unit.
    first: Vec<u32>,
    arcs: Vec<ScheduleArc>,
    turn: Vec<f64>,
    /// Least time of the longest stage from there on, by stage and first unit.
    longest: Vec<f64>,
}

impl ClassSearch<'_, '_> {
    /// Searches all classes of these kinds. Returns a lower bound on their iteration times.
    pub(super) fn elsewhere(&mut self, kinds: &[ScheduleKind]) -> f64 {
        let mut classes = self.classes_of(kinds);
        classes.sort_by(|a, b| a.guess.total_cmp(&b.guess));
        self.found.counts[0] += classes.len();
        let mut promising: Vec<(ScheduleClass, LineSplit)> = vec![];
        for entry in &mut classes {
            if self.search.cancelled() {
                self.found.stopped = true;
                return 0.0;
            }
            if entry.lower < self.goal() {
                self.found.counts[1] += 1;
                let class = *entry;
                let (lower, split) = self.look_into(class);
                self.settle_candidate();
                entry.lower = lower;
                promising.extend(split.map(|split| (class, split)));
            }
        }
        promising.sort_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds));
        for (class, split) in promising.into_iter().take(MOST_POLISHED) {
            // Plans far from the incumbent are not improved.
            if split.seconds * NEAR <= self.best() {
                self.polish(class, split);
                self.settle_candidate();
            }
        }
        self.settle(&mut classes)
    }

    /// Raises the lowest class bounds, which decide the overall bound, and returns the latter.
    fn settle(&mut self, classes: &mut [ScheduleClass]) -> f64 {
        let mut known = vec![false; classes.len()];
        loop {
            let lowest = (0..classes.len()).min_by(|&a, &b| classes[a].lower.total_cmp(&classes[b].lower));
            let Some(lowest) = lowest else { return f64::INFINITY };
            let goal = self.goal();
            if known[lowest] || classes[lowest].lower >= goal || self.search.cancelled() {
                return classes[lowest].lower;
            }
            known[lowest] = true;
            let class = classes[lowest];
            let (frame, factor) = (self.frame(&class), self.factor(class.d));
            let arcs =
                ScheduleArcs::new(&mut self.tables[class.table], frame, factor, goal / f64::from(frame.microbatches));
            classes[lowest].lower = arcs.map_or(goal, |arcs| arcs.lower(class.lower, goal)).max(class.lower);
        }
    }

    fn frame(&self, class: &ScheduleClass) -> Frame {
        let costs = self.tables[class.table].costs;
        Frame {
            kind: class.kind,
            stages: class.stages,
            microbatches: self.scope.microbatches / class.d,
            forward: costs.forward_of(0, costs.len()),
            backward: costs.fastest(0, costs.len()) - costs.forward_of(0, costs.len()),
            sends: 0.0,
            halves: costs.halves,
        }
    }

    fn factor(&self, replicas: u32) -> f64 {
        reduce_factor(replicas, self.scope.bandwidth)
    }

    fn classes_of(&self, kinds: &[ScheduleKind]) -> Vec<ScheduleClass> {
        let mut classes = vec![];
        for (index, table) in self.tables.iter().enumerate() {
            let (costs, n) = (table.costs, table.costs.len());
            let (total, sends) = (costs.fastest(0, n), costs.forward_of(0, n));
            for d in self.scope.replicas() {
                let m = self.scope.microbatches / d;
                let most = (self.scope.devices / (d * costs.t)).min(m) as usize;
                for stages in (1..=most.min(n)).filter(|&stages| self.scope.may_use(stages, d, costs.t)) {
                    for &kind in kinds.iter().filter(|kind| self.scope.runs(**kind, stages, m)) {
                        let long = costs.has_parts(0, n, stages as u32 * kind.parts);
                        if kind.parts > 1 && !(long && costs.may_be_chain(stages)) {
                            continue;
                        }
                        let s = stages as f64;
                        let busy = f64::from(m) * (total / s).max(costs.heaviest);
                        // Estimate of the bubble from the schedule's paper.
                        let bubble = (s - 1.0) / s * idle(kind, sends, total);
                        let reduce = reduce_factor(d, self.scope.bandwidth) * costs.parameters_of(0, n) / s;
                        let (lower, guess) = (busy * SURE, busy + bubble + reduce);
                        classes.push(ScheduleClass { table: index, d, stages, kind, lower, guess });
                    }
                }
            }
        }
        classes
    }

    /// Bound of a class, and its best plan by closed forms.
    fn look_into(&mut self, class: ScheduleClass) -> (f64, Option<LineSplit>) {
        let goal = self.goal();
        let (frame, factor) = (self.frame(&class), self.factor(class.d));
        let m = f64::from(frame.microbatches);
        // Without an incumbent every candidate stage counts.
        let longest = if goal.is_finite() { goal / m } else { f64::INFINITY };
        let Some(arcs) = ScheduleArcs::new(&mut self.tables[class.table], frame, factor, longest) else {
            return (class.lower.max(goal), None);
        };
        let least = arcs.longest[0];
        let lower = class.lower.max(m * least * SURE);
        if lower >= goal || (goal.is_finite() && !arcs.may_be(goal)) {
            return (lower.max(goal), None);
        }
        let mut own: Option<LineSplit> = None;
        let mut tried: Vec<Vec<usize>> = ROOM.iter().filter_map(|room| arcs.cheapest(least * (1.0 + room))).collect();
        tried.dedup();
        let closed = tried.len();
        tried.extend(all_splits(arcs.n, class.stages));
        for (number, begins) in tried.into_iter().enumerate() {
            let most = if number < closed { self.best() / NEAR } else { self.best() };
            let Some(split) = self.simulated(class, begins, most) else { continue };
            self.publish(&split);
            if own.as_ref().is_none_or(|own| split.seconds < own.seconds) {
                own = Some(split);
            }
        }
        (lower, own)
    }

    /// Seconds of the incumbent.
    fn best(&self) -> f64 {
        self.found.best.as_ref().map_or(self.known, |best| best.seconds.min(self.known))
    }

    /// LineSplit with its simulated time; `None` if it does not fit or its bound is not below `most`.
    fn simulated(&mut self, class: ScheduleClass, begins: Vec<usize>, most: f64) -> Option<LineSplit> {
        let (frame, factor) = (self.frame(&class), self.factor(class.d));
        let m = frame.microbatches;
        let table = &mut self.tables[class.table];
        let (costs, count) = (table.costs, begins.len());
        let mut stages: Vec<StageCost> = Vec::with_capacity(count);
        let mut again = Vec::with_capacity(count);
        for s in 0..count {
            let (a, b) = (begins[s], begins.get(s + 1).copied().unwrap_or(costs.len()));
            if !costs.has_parts(a, b, class.kind.parts) {
                return None;
            }
            let extra = table.extra(a, b, class.kind.in_flight(count, count - 1 - s, m))?;
            let next = begins.get(s + 2).copied().unwrap_or(costs.len());
            stages.push(costs.stage(a, b, next, extra.chosen));
            again.push(extra.chosen);
        }
        if most < f64::INFINITY && paths::pipeline(&frame, &stages, factor) >= most {
            return None;
        }
        self.found.counts[2] += 1;
        let transfers = costs.transfers(&begins);
        let search = self.search;
        let time = |stages: &[StageCost], again: &[f64]| {
            if class.kind.schedule == Schedule::Interleaved {
                let parts = |cost: &StageCost| [cost.forward, cost.backward, factor * cost.parameters];
                let sends: Option<Vec<f64>> = (1..count).map(|to| sent(&transfers, to)).collect();
                let sends = sends.filter(|sends| sends.len() == transfers.len())?;
                let stages: Vec<[f64; 3]> = stages.iter().map(parts).collect();
                let (parts, microbatches) = (class.kind.parts as usize, m as usize);
                return Some(Chain { parts, microbatches, stages: &stages, sends: &sends }.seconds());
            }
            let pipeline = pipeline(class.kind, m, factor, (stages, again), &transfers);
            length_unless(&pipeline, class.kind.schedule, &|| search.cancelled()).filter(|&seconds| seconds > 0.0)
        };
        let timing = Timing {
            begins: &begins,
            stages: &stages,
            again: &again,
            in_flight: &|s| class.kind.in_flight(count, count - 1 - s, m),
            price: factor / f64::from(m),
            time: &time,
        };
        let (seconds, again) = timing.least(&self.tables[class.table])?;
        Some(LineSplit { table: class.table, d: class.d, kind: class.kind, begins, again, seconds })
    }

    /// Improves a split by moving its cuts.
    fn polish(&mut self, class: ScheduleClass, own: LineSplit) {
        let count = own.begins.len();
        let m = (self.scope.microbatches / own.d) as usize;
        // The simulator skips ahead once a long iteration is periodic.
        let each = count * class.kind.parts as usize * m.min(4 * count);
        self.climb(own, MOST_OPERATIONS, &|class_search, begins, most| {
            let split = class_search.simulated(class, begins, most);
            let took = count + if split.is_some() { each } else { 0 };
            (split, took)
        });
    }
}

/// Seconds of the transfer from the previous stage to `to`; `None` if there is none.
fn sent(transfers: &[(u32, u32, f64)], to: usize) -> Option<f64> {
    let own = transfers.iter().find(|&&(from, end, _)| end as usize == to && from as usize + 1 == to);
    own.map(|&(_, _, seconds)| seconds)
}

/// Simulator input for one replica of every stage, with the recompute seconds of each.
fn pipeline(
    kind: ScheduleKind,
    microbatches: u32,
    factor: f64,
    (stages, again): (&[StageCost], &[f64]),
    transfers: &[(u32, u32, f64)],
) -> Pipeline {
    let stage = |(cost, &recompute_s): (&StageCost, &f64)| PipelineStage {
        forward_s: cost.forward,
        backward_s: cost.backward,
        recompute_s,
        replicas: 1,
        all_reduce_s: factor * cost.parameters,
        ..PipelineStage::default()
    };
    let transfer =
        |&(from, to, seconds): &(u32, u32, f64)| Transfer { from: from as usize, to: to as usize, seconds, bytes: 0.0 };
    Pipeline {
        stages: stages.iter().zip(again).map(stage).collect(),
        transfers: transfers.iter().map(transfer).collect(),
        microbatches,
        settings: SimulatorSettings { virtual_stages: kind.parts, ..SimulatorSettings::default() },
        ..Pipeline::default()
    }
}

/// Bubble in seconds, without the factor `(S − 1) / S`, of stages that take `total` together, `forward` of it forward.
fn idle(kind: ScheduleKind, forward: f64, total: f64) -> f64 {
    let weights = paths::WEIGHTS * (total - forward);
    match kind.schedule {
        Schedule::Interleaved => total / f64::from(kind.parts),
        Schedule::InterleavedZeroBubble => (total - 2.0 * weights).max(0.0) / f64::from(kind.parts),
        Schedule::ZeroBubbleH1 => total - 2.0 * weights,
        Schedule::ZeroBubbleV => (total - 3.0 * weights).max(0.0) / 2.0,
        _ => total,
    }
}

impl ScheduleArcs {
    /// Candidate stages that take at most `most` seconds for a microbatch; `None` if they form no split.
    fn new(table: &mut DegreeTable<'_>, frame: Frame, factor: f64, most: f64) -> Option<Self> {
        let (n, count) = (table.costs.len(), frame.stages);
        let room = |s: usize| StageLimits {
            parts: frame.kind.parts,
            in_flight: frame.kind.in_flight(count, count - 1 - s, frame.microbatches),
            most,
        };
        let back = table.back(count, &room);
        let mut arcs = ScheduleArcs {
            frame,
            factor,
            n,
            first: Vec::with_capacity(count * n + 1),
            arcs: vec![],
            turn: vec![],
            longest: vec![],
        };
        let mut reached = vec![false; n + 1];
        reached[0] = true;
        for s in 0..count {
            let behind = count - 1 - s;
            let mut next = vec![false; n + 1];
            for (a, &open) in reached[..n].iter().enumerate() {
                arcs.first.push(arcs.arcs.len() as u32);
                if !open || a < back[s] {
                    continue;
                }
                let (from, to) = if behind == 0 { (n, n) } else { ((a + 1).max(back[s + 1]), n - behind) };
                for (b, ends) in next.iter_mut().enumerate().take(to + 1).skip(from) {
                    let extra = match table.fit(a, b, room(s)) {
                        Fit::Yes(extra) => extra,
                        Fit::Short => continue,
                        Fit::Never => break,
                    };
                    let reach = if behind < 2 { n } else { (b + 1).max(back[s + 2]).min(n) };
                    let cost = table.costs.stage(a, b, reach, extra);
                    arcs.arcs.push(ScheduleArc { end: b as u32, cost, extra });
                    *ends = true;
                }
            }
            reached = next;
        }
        arcs.first.push(arcs.arcs.len() as u32);
        arcs.weigh();
        arcs.longest[0].is_finite().then_some(arcs)
    }

    fn of(&self, stage: usize, unit: usize) -> &[ScheduleArc] {
        let at = stage * self.n + unit;
        &self.arcs[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// Fills the least turn and the least longest stage behind each position, from the end.
    fn weigh(&mut self) {
        let (n, count) = (self.n, self.frame.stages);
        let mut turn = vec![f64::INFINITY; (count + 1) * (n + 1)];
        let mut longest = turn.clone();
        let mut sends = turn.clone();
        (turn[count * (n + 1) + n], longest[count * (n + 1) + n], sends[count * (n + 1) + n]) = (0.0, 0.0, 0.0);
        for s in (0..count).rev() {
            for a in 0..n {
                let at = s * (n + 1) + a;
                for arc in self.of(s, a) {
                    let then = (s + 1) * (n + 1) + arc.end as usize;
                    turn[at] = turn[at].min(self.frame.turn(&arc.cost) + turn[then]);
                    longest[at] = longest[at].min(arc.cost.both().max(longest[then]));
                    sends[at] = sends[at].min(arc.cost.send + sends[then]);
                }
            }
        }
        (self.turn, self.longest) = (turn, longest);
        self.frame.sends = sends[0];
    }

    /// True unless no split can have all bounds within a time. Each sum is at its least independently.
    fn may_be(&self, time: f64) -> bool {
        let (n, count) = (self.n, self.frame.stages);
        let mut ways: Vec<Option<PathLengths>> = vec![None; n + 1];
        ways[0] = Some(PathLengths::NONE);
        for s in 0..count {
            let mut next: Vec<Option<PathLengths>> = vec![None; n + 1];
            for (a, before) in ways.iter().enumerate().take(n) {
                let Some(before) = before else { continue };
                for arc in self.of(s, a) {
                    let b = arc.end as usize;
                    let around = self.turn[(s + 1) * (n + 1) + b];
                    let reduce = self.factor * arc.cost.parameters;
                    if around == f64::INFINITY || self.frame.bound(s, &arc.cost, *before, around, reduce) > time {
                        continue;
                    }
                    let after = self.frame.after(*before, &arc.cost, reduce);
                    let known = next[b].get_or_insert(after);
                    *known = PathLengths {
                        there: known.there.min(after.there),
                        home: known.home.min(after.home),
                        end: known.end.min(after.end),
                    };
                }
            }
            ways = next;
        }
        ways[n].is_some()
    }

    /// Largest time between `low` and `high` that no split can be within, by bisection.
    fn lower(&self, mut low: f64, mut high: f64) -> f64 {
        if low >= high || !self.may_be(high) {
            return low.max(high);
        }
        while high - low > 5e-4 * high {
            let middle = (low + high) / 2.0;
            if self.may_be(middle) { high = middle } else { low = middle * SURE }
        }
        low
    }

    /// LineSplit with the least recomputation and transfers whose stages take at most `most`; first units of its stages.
    fn cheapest(&self, most: f64) -> Option<Vec<usize>> {
        let (n, count) = (self.n, self.frame.stages);
        let mut cost = vec![f64::INFINITY; (count + 1) * (n + 1)];
        let mut choice = vec![0u32; (count + 1) * (n + 1)];
        cost[count * (n + 1) + n] = 0.0;
        for s in (0..count).rev() {
            for a in 0..n {
                let at = s * (n + 1) + a;
                for arc in self.of(s, a).iter().filter(|arc| arc.cost.both() <= most) {
                    let behind = cost[(s + 1) * (n + 1) + arc.end as usize];
                    let value = arc.extra + 2.0 * arc.cost.send + behind;
                    if value < cost[at] {
                        (cost[at], choice[at]) = (value, arc.end);
                    }
                }
            }
        }
        if cost[0] == f64::INFINITY {
            return None;
        }
        let mut begins = vec![0];
        for s in 0..count - 1 {
            begins.push(choice[s * (n + 1) + begins[s]] as usize);
        }
        Some(begins)
    }
}

//! Decision problem: is there a split into `S` stages all of whose bounds ([`super::bounds`]) are at most `T`?
//!
//! Three passes over (stage, first unit). The first goes forward with the best of each sum alone (least way, most home,
//! least lead), and takes the rest behind from the table. The second goes backward and finds the least rest for those
//! sums. The third goes forward with Pareto-optimal states, each of one partial split. A state that exceeds `T` in any
//! pass is not part of such a split, so "no" is a proof for all splits of the class. "Yes" only says that a split's
//! bounds are within `T`: it may be simulated.
//!
//! Searching for plans, as opposed to proofs, adds one sum. With a period `P`, `late` says how far the stages so far
//! are behind it: `late ← max(0, late + x + 2c − P)`, with `late + x ≤ P`. This is the condition that no window takes
//! more than `P` for a microbatch, which the bounds of single stages do not cover.
//!
//! `O(S · units · window)` time for the first two passes, times the number of states for the third. The arcs take the
//! same memory and serve all `T` of a class.

use super::{
    bounds::{PrefixSums, StagePosition},
    line::{DegreeCosts, StageCost},
    table::{DegreeTable, Fit, StageLimits},
};

/// Maximum number of states at a position. More are merged into one that is at least as good as each, which weakens
/// only "no". Without a maximum, the search takes over 3 times as long.
const MOST_SUMS: usize = 24;

/// Number of stages and replicas at one tensor degree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PipelineShape {
    pub(super) stages: usize,
    /// Number of microbatches of a replica.
    pub(super) microbatches: u32,
    /// Seconds of an all-reduce per byte of parameters.
    pub(super) reduce: f64,
}

/// Candidate stage, by its end unit and least recompute time in seconds.
#[derive(Debug, Clone, Copy)]
struct StageArc {
    end: u32,
    extra: f64,
}

/// Candidate stages of a shape within a time.
pub(super) struct StageArcs {
    shape: PipelineShape,
    n: usize,
    /// First unit from which a stage and those behind it can hold the rest within the time, by stage.
    back: Vec<usize>,
    /// Least time of the longest stage from there on, by stage and first unit.
    heaviest: Vec<f64>,
    /// Index of the first arc, by stage and first unit.
    first: Vec<u32>,
    arcs: Vec<StageArc>,
}

/// State of the third pass. Its sums belong to one partial split.
#[derive(Debug, Clone, Copy)]
struct PartialSplit {
    before: PrefixSums,
    late: f64,
    /// True if the last stage may send more to the next than is counted.
    owes: bool,
    /// Largest bound so far.
    most: f64,
    /// Index of the previous state in the list of the last stage's first unit; and that unit.
    parent: u32,
    unit: u32,
}

/// Limits of a decision problem.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeProbe {
    pub(super) time: f64,
    /// Period that windows must keep; infinite for a proof.
    pub(super) period: f64,
}

impl StageArcs {
    /// Candidate stages whose own work fits `time`. Memory is proportional to their number.
    pub(super) fn new(table: &mut DegreeTable<'_>, shape: PipelineShape, time: f64) -> Self {
        let (n, count) = (table.costs.len(), shape.stages);
        let most = time / f64::from(shape.microbatches);
        let room = |s: usize| StageLimits { parts: 1, in_flight: (count - s) as f64, most };
        let back = table.back(count, &room);
        let mut arcs =
            StageArcs { shape, n, back, heaviest: vec![], first: Vec::with_capacity(count * n + 1), arcs: vec![] };
        // Furthest unit that the previous stages reach.
        let mut furthest = 0;
        for s in 0..count {
            let behind = count - 1 - s;
            let begin = if s == 0 { 0 } else { s };
            let mut next = 0;
            for a in 0..n {
                arcs.first.push(arcs.arcs.len() as u32);
                let possible = a >= begin && (s > 0 || a == 0) && a <= furthest && a >= arcs.back[s];
                if !possible {
                    continue;
                }
                let from = (a + 1).max(arcs.back[s + 1]);
                let (from, to) = if behind == 0 { (n, n) } else { (from, n - behind) };
                for b in from..=to {
                    let Fit::Yes(extra) = table.fit(a, b, room(s)) else { break };
                    arcs.arcs.push(StageArc { end: b as u32, extra });
                    next = next.max(b);
                }
            }
            furthest = next;
        }
        arcs.first.push(arcs.arcs.len() as u32);
        arcs.weigh(table.costs);
        arcs
    }

    /// Lower bound on a candidate's cost: the next stage reaches at least as far as the stages behind it require.
    #[inline]
    fn cost(&self, costs: &DegreeCosts, stage: usize, a: usize, arc: &StageArc) -> StageCost {
        let b = arc.end as usize;
        costs.stage(a, b, self.next(stage, b), arc.extra)
    }

    /// Lower bound on the end of the next stage, for a stage that ends at `b`.
    fn next(&self, stage: usize, b: usize) -> usize {
        self.back.get(stage + 2).map_or(self.n, |&back| back.max(b + 1).min(self.n))
    }

    fn of(&self, stage: usize, unit: usize) -> &[StageArc] {
        let at = stage * self.n + unit;
        &self.arcs[self.first[at] as usize..self.first[at + 1] as usize]
    }

    fn place(&self, stage: usize, arc: &StageArc, cost: &StageCost, around: f64, halves: bool) -> StagePosition {
        let behind = (self.shape.stages - 1 - stage) as f64;
        let heaviest = self.heaviest[(stage + 1) * (self.n + 1) + arc.end as usize].max(cost.both());
        StagePosition { microbatches: f64::from(self.shape.microbatches), behind, around, heaviest, halves }
    }

    /// Fills `heaviest`.
    fn weigh(&mut self, costs: &DegreeCosts) {
        let (n, count) = (self.n, self.shape.stages);
        self.heaviest = vec![f64::INFINITY; (count + 1) * (n + 1)];
        self.heaviest[count * (n + 1) + n] = 0.0;
        for s in (0..count).rev() {
            for a in 0..n {
                let behind = |arc: &StageArc| self.heaviest[(s + 1) * (n + 1) + arc.end as usize];
                let own = |arc: &StageArc| costs.fastest(a, arc.end as usize) + arc.extra;
                let least = self.of(s, a).iter().map(|arc| behind(arc).max(own(arc))).fold(f64::INFINITY, f64::min);
                self.heaviest[s * (n + 1) + a] = least;
            }
        }
    }

    /// Up to two splits within the time, by first units of stages, least bound first. Empty if there are none.
    pub(super) fn decide(&self, table: &DegreeTable<'_>, probe: TimeProbe) -> Vec<Vec<usize>> {
        let Some((before, rest)) = self.relaxed(table, probe) else { return vec![] };
        self.exact(table, probe, &before, &rest)
    }

    /// First two passes: the best of each sum before every position, and the least rest behind it.
    fn relaxed(&self, table: &DegreeTable<'_>, probe: TimeProbe) -> Option<(Vec<PrefixSums>, Vec<f64>)> {
        let (n, count, costs) = (self.n, self.shape.stages, table.costs);
        let never = PrefixSums { way: f64::INFINITY, home: f64::NEG_INFINITY, lead: f64::INFINITY };
        let mut before = vec![never; (count + 1) * (n + 1)];
        before[0] = PrefixSums::NOTHING;
        let mut late = vec![f64::INFINITY; (count + 1) * (n + 1)];
        late[0] = 0.0;
        for s in 0..count {
            let behind = count - 1 - s;
            for a in 0..n {
                let at = s * (n + 1) + a;
                let known = before[at];
                if known.way == f64::INFINITY {
                    continue;
                }
                for arc in self.of(s, a) {
                    let b = arc.end as usize;
                    let cost = self.cost(costs, s, a, arc);
                    let around = if behind == 0 { 0.0 } else { 2.0 * cost.send + table.rest(behind, b) };
                    if late[at] + cost.both() > probe.period {
                        continue;
                    }
                    let reduce = self.shape.reduce * cost.parameters;
                    if known.bound(&cost, reduce, self.place(s, arc, &cost, around, costs.halves)) > probe.time {
                        continue;
                    }
                    let next = known.after(&cost, reduce);
                    let then = (s + 1) * (n + 1) + b;
                    let best = &mut before[then];
                    best.way = best.way.min(next.way);
                    best.home = best.home.max(next.home);
                    best.lead = best.lead.min(next.lead);
                    late[then] = late[then].min((late[at] + cost.both() + 2.0 * cost.send - probe.period).max(0.0));
                }
            }
        }
        if before[count * (n + 1) + n].way == f64::INFINITY {
            return None;
        }
        let mut rest = vec![f64::INFINITY; (count + 1) * (n + 1)];
        rest[count * (n + 1) + n] = 0.0;
        for s in (0..count).rev() {
            for a in 0..n {
                let at = s * (n + 1) + a;
                if before[at].way == f64::INFINITY {
                    continue;
                }
                for arc in self.of(s, a) {
                    let b = arc.end as usize;
                    let behind = rest[(s + 1) * (n + 1) + b];
                    if behind == f64::INFINITY {
                        continue;
                    }
                    let cost = self.cost(costs, s, a, arc);
                    let around = 2.0 * cost.send + behind;
                    let around = if s + 1 == count { 0.0 } else { around };
                    if late[at] + cost.both() > probe.period {
                        continue;
                    }
                    let reduce = self.shape.reduce * cost.parameters;
                    if before[at].bound(&cost, reduce, self.place(s, arc, &cost, around, costs.halves)) > probe.time {
                        continue;
                    }
                    rest[at] = rest[at].min(cost.both() + around);
                }
            }
        }
        (rest[0] < f64::INFINITY).then_some((before, rest))
    }

    /// Third pass: splits within the limits of the probe.
    fn exact(&self, table: &DegreeTable<'_>, probe: TimeProbe, before: &[PrefixSums], rest: &[f64]) -> Vec<Vec<usize>> {
        let (n, count, costs) = (self.n, self.shape.stages, table.costs);
        let mut lists: Vec<Vec<PartialSplit>> = vec![vec![]; (count + 1) * (n + 1)];
        lists[0].push(PartialSplit {
            before: PrefixSums::NOTHING,
            late: 0.0,
            owes: false,
            most: 0.0,
            parent: 0,
            unit: 0,
        });
        let rules = DominanceRules { tolerance: probe.time * 1e-5 / count as f64, reduces: self.shape.reduce > 0.0 };
        for s in 0..count {
            for a in 0..n {
                let at = s * (n + 1) + a;
                if before[at].way == f64::INFINITY || rest[at] == f64::INFINITY || lists[at].is_empty() {
                    continue;
                }
                let states = std::mem::take(&mut lists[at]);
                for arc in self.of(s, a) {
                    let b = arc.end as usize;
                    let then = (s + 1) * (n + 1) + b;
                    if rest[then] == f64::INFINITY {
                        continue;
                    }
                    let cost = self.cost(costs, s, a, arc);
                    let around = if s + 1 == count { 0.0 } else { 2.0 * cost.send + rest[then] };
                    let place = self.place(s, arc, &cost, around, costs.halves);
                    let owes = costs.passing(a, b, self.next(s, b)) > 0.0;
                    for (parent, state) in states.iter().enumerate() {
                        let debt = self.debt(costs, s, state, a, b);
                        let paid = PrefixSums {
                            way: state.before.way + 2.0 * debt,
                            home: state.before.home + debt,
                            lead: state.before.lead,
                        };
                        let state =
                            PartialSplit { before: paid, owes, parent: parent as u32, unit: a as u32, ..*state };
                        self.extend(&cost, place, probe, state, rules, &mut lists[then]);
                    }
                }
                lists[at] = states;
            }
        }
        self.splits(&lists)
    }

    /// Adds a stage to a state whose parent is already set, and inserts the result.
    fn extend(
        &self,
        cost: &StageCost,
        place: StagePosition,
        probe: TimeProbe,
        state: PartialSplit,
        rules: DominanceRules,
        list: &mut Vec<PartialSplit>,
    ) {
        if state.late + cost.both() > probe.period {
            return;
        }
        let reduce = self.shape.reduce * cost.parameters;
        let bound = state.before.bound(cost, reduce, place);
        if bound > probe.time {
            return;
        }
        let late = (state.late + cost.both() + 2.0 * cost.send - probe.period).max(0.0);
        let before = state.before.after(cost, reduce);
        insert(list, PartialSplit { before, late, most: state.most.max(bound), ..state }, rules);
    }

    /// Seconds that the previous stage sends to units `a .. b` beyond the amount counted. They are added once this
    /// stage's end is fixed.
    fn debt(&self, costs: &DegreeCosts, stage: usize, state: &PartialSplit, a: usize, b: usize) -> f64 {
        if stage == 0 || !state.owes {
            return 0.0;
        }
        let before = state.unit as usize;
        (costs.passing(before, a, self.next(stage - 1, a)) - costs.passing(before, a, b)).max(0.0)
    }

    /// Splits of the two final states with the least bound.
    fn splits(&self, lists: &[Vec<PartialSplit>]) -> Vec<Vec<usize>> {
        let (n, count) = (self.n, self.shape.stages);
        let mut ends: Vec<&PartialSplit> = lists[count * (n + 1) + n].iter().collect();
        ends.sort_by(|a, b| a.most.total_cmp(&b.most));
        let back = |end: &&PartialSplit| {
            let mut begins = vec![0; count];
            let mut state = **end;
            for s in (0..count).rev() {
                begins[s] = state.unit as usize;
                state = lists[s * (n + 1) + state.unit as usize][state.parent as usize];
            }
            begins
        };
        ends.iter().take(2).map(back).collect()
    }
}

/// Tolerances of dominance between states.
#[derive(Debug, Clone, Copy)]
struct DominanceRules {
    /// Amount by which sums may be worse.
    tolerance: f64,
    /// True if there are all-reduces.
    reduces: bool,
}

/// Inserts a state unless it is dominated, and removes the states that it dominates.
fn insert(list: &mut Vec<PartialSplit>, next: PartialSplit, rules: DominanceRules) {
    let as_good = |a: &PartialSplit, b: &PartialSplit, room: f64| {
        let debts = !a.owes || a.unit == b.unit;
        let plain = debts && a.before.way <= b.before.way + room && a.late <= b.late + room;
        plain && (!rules.reduces || (a.before.home >= b.before.home - room && a.before.lead <= b.before.lead + room))
    };
    if list.iter().any(|known| as_good(known, &next, rules.tolerance)) {
        return;
    }
    // No state has a parent index into a list that is still being filled.
    list.retain(|known| !as_good(&next, known, 0.0));
    list.push(next);
    if list.len() > MOST_SUMS {
        let worst = (1..list.len()).max_by(|&i, &j| list[i].most.total_cmp(&list[j].most)).unwrap_or(0);
        let gone = list.swap_remove(worst);
        let into = &mut list[0];
        into.before.way = into.before.way.min(gone.before.way);
        into.before.home = into.before.home.max(gone.before.home);
        into.before.lead = into.before.lead.min(gone.before.lead);
        into.late = into.late.min(gone.late);
        into.owes &= gone.owes && into.unit == gone.unit;
    }
}

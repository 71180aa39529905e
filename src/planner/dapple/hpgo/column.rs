//! A column of a table of straight pipelines: prefixes of so many stages that occupy one set of devices, by last state.
//!
//! With `C(k, j)` the compute of the states after `k` up to `j`, and `w(k)` the least bottleneck of what ends with `k` and sends
//! its output on, a column is
//!
//! ```text
//! b(j)  =  min over k before j of  max(w(k), C(k, j))
//! ```
//!
//! In a chain `C` falls as `k` grows and grows with `j`. The `k` whose compute is at least the least way `w` among the later
//! ones are the first few, more of them as `j` grows: the last of these and the least way behind them are all that is looked at,
//! and both move on only, so that a column takes `O(L)`. Where states branch, the `k` are looked at by growing compute, until it
//! is more than what is known already.

use std::{cell::OnceCell, collections::VecDeque, ops::Range};

use fixedbitset::FixedBitSet;
use smallvec::SmallVec;

use super::{model::HpgoModel, placement::Devices, reach::Reach};
use crate::planner::Search;

/// Sums along a chain are off by less.
const ROUNDING: f64 = 1e-9;
/// So many last stages of a prefix take no memory from the heap.
const FEW: usize = 128;

/// Where the last stage of a prefix may sit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// The column of the row before.
    pub(super) column: u32,
    /// The number of the last stage's devices.
    pub(super) last: u32,
}

/// What led to a cell.
#[derive(Debug, Clone, Copy)]
struct Trace {
    /// Last state of the stage before.
    before: u32,
    /// Which of the column's sources.
    source: u32,
}

/// A way to a set: from where, and by source of that column the seconds a byte takes, if it is offered.
pub(super) type Way = (Source, Vec<Option<f64>>);

/// A set that may be occupied with one stage more.
pub(super) struct Arrival {
    pub(super) occupied: Devices,
    /// In the order of columns.
    pub(super) ways: Vec<Way>,
}

/// The prefixes that occupy one set.
pub(super) struct Column {
    pub(super) occupied: Devices,
    pub(super) sources: Vec<Source>,
    /// The first state that there are cells for.
    first: usize,
    /// By state from there: the least bottleneck; infinite where no prefix ends.
    block_s: Vec<f64>,
    traces: Vec<Trace>,
}

impl Column {
    /// Forgets all but what led to each cell.
    pub(super) fn keep_traces(&mut self) {
        self.block_s = vec![];
    }

    /// The states that there are cells for.
    pub(super) fn states(&self) -> Range<usize> {
        self.first..self.first + self.traces.len()
    }

    /// The least bottleneck of the prefixes that end with the last state of all.
    pub(super) fn last_block_s(&self) -> f64 {
        self.block_s.last().copied().unwrap_or(f64::INFINITY)
    }

    /// The sources that led to any cell.
    pub(super) fn used_sources(&self) -> Vec<usize> {
        let mut used = vec![false; self.sources.len()];
        let traces = self.block_s.iter().zip(&self.traces).filter(|(block_s, _)| block_s.is_finite());
        traces.for_each(|(_, trace)| used[trace.source as usize] = true);
        (0..used.len()).filter(|&at| used[at]).collect()
    }

    /// Last state of the stage before, and where it sits, of the prefix that ends with a state.
    pub(super) fn trace(&self, j: usize) -> (usize, Source) {
        let Trace { before, source } = self.traces[j - self.first];
        (before as usize, self.sources[source as usize])
    }
}

/// What the last stage of a prefix may be that ends with some state.
#[derive(Debug, Clone, Copy)]
struct Last {
    /// Seconds of its states.
    compute_s: f64,
    /// The last state of the stage before.
    before: u32,
}

/// By the state that a stage ends with, what it may be, least compute first: found when it is asked for. Where all are asked
/// for, 16 bytes for each pair of states.
pub(super) struct Pairs(Vec<OnceCell<Box<[Last]>>>);

impl Pairs {
    /// For so many states.
    pub(super) fn new(states: usize) -> Self {
        Pairs((0..states).map(|_| OnceCell::new()).collect())
    }
}

/// What a table is made of.
#[derive(Clone, Copy)]
pub(super) struct Within<'a> {
    pub(super) model: &'a HpgoModel<'a>,
    pub(super) pairs: &'a Pairs,
    /// What may be followed by as many stages as there are to be.
    pub(super) reach: &'a Reach,
    /// Whether each state covers all that the one before it covers.
    pub(super) chain: bool,
    /// Stages of the whole pipeline, and such pipelines side by side.
    pub(super) count: u32,
    pub(super) pipelines: u32,
    /// Nothing with a larger bottleneck is kept.
    pub(super) bound_s: f64,
}

/// A bottleneck, and the last state of the stage before; infinite where there is none.
pub(super) type Least = (f64, u32);

/// No prefix.
const NOTHING: Least = (f64::INFINITY, u32::MAX);

impl Within<'_> {
    /// Seconds of the states from one to another.
    #[inline]
    fn compute_s(&self, from: usize, to: usize) -> f64 {
        self.model.compute_s(from, to) / f64::from(self.pipelines)
    }

    /// Whether so many stages may end with a state: what those before and after it compute adds up to what lies on either side,
    /// whatever the states, and enough stages fit behind it.
    fn may_end(&self, j: usize, stages: u32) -> bool {
        let last = self.model.states() - 1;
        let within = |stages: u32| self.bound_s * f64::from(stages) * (1.0 + ROUNDING);
        let left = || j == last || self.compute_s(j + 1, last) <= within(self.count - stages);
        let sums = (stages < self.count || j == last) && self.compute_s(0, j) <= within(stages) && left();
        sums && self.reach.may_end(j, stages)
    }

    /// From the first state that so many stages may end with to one past the last.
    pub(super) fn ends(&self, stages: u32) -> Range<usize> {
        let mut states = 0..self.model.states();
        let first = states.find(|&j| self.may_end(j, stages));
        let last = states.rfind(|&j| self.may_end(j, stages)).or(first);
        first.zip(last).map_or(0..0, |(first, last)| first..last + 1)
    }

    /// The only column of one stage.
    pub(super) fn first_column(&self, occupied: Devices, source: Source) -> Column {
        let ends = self.ends(1);
        let of = |j| match self.compute_s(0, j) {
            block_s if block_s <= self.bound_s && self.may_end(j, 1) => block_s,
            _ => f64::INFINITY,
        };
        let block_s: Vec<f64> = ends.clone().map(of).collect();
        let traces = vec![Trace { before: 0, source: 0 }; block_s.len()];
        Column { occupied, sources: vec![source], first: ends.start, block_s, traces }
    }

    /// By state the least bottleneck of what ends there and sends its output to a set; infinite where none is within the bound.
    pub(super) fn ways(&self, before: &[Column], arrival: &Arrival) -> Vec<f64> {
        let mut least = vec![f64::INFINITY; self.model.states()];
        for way in &arrival.ways {
            for k in before[way.0.column as usize].states() {
                let way_s = self.way_s(before, way, k);
                if way_s <= self.bound_s {
                    least[k] = least[k].min(way_s);
                }
            }
        }
        least
    }

    /// The bottleneck of a way behind a state.
    #[inline]
    fn way_s(&self, before: &[Column], (source, per_byte): &Way, k: usize) -> f64 {
        let column = &before[source.column as usize];
        let at = k - column.first;
        match per_byte[column.traces[at].source as usize] {
            // Larger than that are costs that only rounding makes infinite.
            Some(seconds) if column.block_s[at].is_finite() => {
                column.block_s[at].max((2.0 * self.model.output_bytes(k) * seconds).min(f64::MAX))
            }
            _ => f64::INFINITY,
        }
    }

    /// The cells of a column from what is least by state.
    pub(super) fn column(&self, before: &[Column], arrival: &Arrival, first: usize, least: &[Least]) -> Column {
        let is_there = |(block_s, _): &Least| block_s.is_finite();
        let from = least.iter().position(is_there).unwrap_or(least.len());
        let least = &least[from..least.iter().rposition(is_there).map_or(from, |last| last + 1)];
        let trace = |&(block_s, k): &Least| {
            let reaches = |way: &Way| {
                before[way.0.column as usize].states().contains(&(k as usize))
                    && self.way_s(before, way, k as usize) <= block_s
            };
            let source = arrival.ways.iter().position(reaches).filter(|_| block_s.is_finite()).unwrap_or(0);
            Trace { before: k, source: source as u32 }
        };
        Column {
            occupied: arrival.occupied,
            sources: arrival.ways.iter().map(|&(source, _)| source).collect(),
            first: first + from,
            block_s: least.iter().map(|&(block_s, _)| block_s).collect(),
            traces: least.iter().map(trace).collect(),
        }
    }

    /// Of a chain: by last state the least bottleneck; of equal ones that with the longest last stage. `None` if cancelled.
    pub(super) fn along_chain(&self, ways: &[f64], ends: Range<usize>, search: &Search) -> Option<Vec<Least>> {
        let mut least = Vec::with_capacity(ends.len());
        // Up to `open` each state is followed by as much compute as the least way from there on takes; of those from there on up
        // to `next`, the ways that are less than all behind them, ascending.
        let mut waiting: VecDeque<usize> = VecDeque::new();
        let (mut open, mut next) = (0, 0);
        for j in ends {
            if search.cancelled() {
                return None;
            }
            for k in (next..j).filter(|&k| ways[k] < f64::INFINITY) {
                while waiting.back().is_some_and(|&last| ways[last] > ways[k]) {
                    waiting.pop_back();
                }
                waiting.push_back(k);
            }
            next = j;
            while let Some(&first) = waiting.front()
                && self.compute_s(open + 1, j) >= ways[first]
            {
                if first == open {
                    waiting.pop_front();
                }
                open += 1;
            }
            let mut best = NOTHING;
            for k in waiting.front().copied().into_iter().chain((0..open).rev()) {
                let compute_s = self.compute_s(k + 1, j);
                if compute_s > best.0.min(self.bound_s) {
                    break;
                }
                let block_s = ways[k].max(compute_s);
                if block_s <= best.0 && block_s < f64::INFINITY {
                    best = (block_s, k as u32);
                }
            }
            least.push(best);
        }
        Some(least)
    }

    /// What a stage may be that ends with a state.
    fn ending(&self, j: usize) -> &[Last] {
        self.pairs.0[j].get_or_init(|| {
            let last = |k: usize| Last { compute_s: self.compute_s(k + 1, j), before: k as u32 };
            // Where branches are short that is nearly their order already.
            let mut all: Box<[Last]> = self.model.before_backwards(j).map(last).collect();
            all.sort_by(|a, b| a.compute_s.total_cmp(&b.compute_s));
            all
        })
    }

    /// Of any states: for each of these ways by state the least bottleneck with this last state; of equal ones that with the
    /// longest last stage. `sends` tells behind which states there is any way.
    pub(super) fn of_pairs(&self, ways: &[Vec<f64>], sends: &FixedBitSet, j: usize, stages: u32) -> Vec<Least> {
        if !self.may_end(j, stages) {
            return vec![NOTHING; ways.len()];
        }
        let ending = self.ending(j);
        if let [ways] = ways {
            return vec![self.least(ways, ending)];
        }
        let within = ending.iter().take_while(|last| last.compute_s <= self.bound_s);
        let ending: SmallVec<[Last; FEW]> =
            within.filter(|last| sends.contains(last.before as usize)).copied().collect();
        ways.iter().map(|ways| self.least(ways, &ending)).collect()
    }

    /// The least bottleneck behind ways by state, of what a stage may be, least compute first.
    #[inline]
    fn least(&self, ways: &[f64], ending: &[Last]) -> Least {
        let (mut least, mut worst) = (NOTHING, self.bound_s.min(f64::MAX));
        for last in ending {
            if last.compute_s > worst {
                break;
            }
            let way_s = ways[last.before as usize];
            if way_s <= worst {
                worst = way_s.max(last.compute_s);
                least = if worst < least.0 { (worst, last.before) } else { (worst, last.before.min(least.1)) };
            }
        }
        least
    }
}

//! Column of a table of straight pipelines: prefixes with a given number of stages on one set of devices, by last
//! state.
//!
//! Let `C(k, j)` be the compute of the states after `k` up to `j`. Let `w(k)`, the *way* behind `k`, be the least
//! bottleneck of a prefix that ends with `k` and sends its output on. A column is
//!
//! ```text
//! b(j)  =  min over k before j of  max(w(k), C(k, j))
//! ```
//!
//! In a chain, `C` decreases with `k` and increases with `j`. The first few `k` have a compute of at least the least
//! `w` among the later ones, and their number grows with `j`. Only the last of these `k` and the least way behind them
//! are evaluated. Both only move forward, so a column takes `O(L)`. If states branch, the `k` are visited by increasing
//! compute, until it exceeds the best bottleneck found.

use std::{cell::OnceCell, collections::VecDeque, ops::Range};

use super::{model::HpgoModel, placement::Devices, reach::Reach};
use plantui_core::search::Search;

/// Predecessor column and devices of the last stage of a prefix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// Column of the row before.
    pub(super) column: u32,
    /// Number of the last stage's set of devices.
    pub(super) last: u32,
}

/// Origin of a cell.
#[derive(Debug, Clone, Copy)]
struct Trace {
    /// Last state of the stage before.
    before: u32,
    /// Index of the column's source.
    source: u32,
}

/// Way to a set: its source, and for each source of that column the seconds per byte, if the transfer is offered.
pub(super) type Way = (Source, Vec<Option<f64>>);

/// Set of devices that may be occupied after one more stage.
pub(super) struct Arrival {
    pub(super) occupied: Devices,
    /// Sorted by column.
    pub(super) ways: Vec<Way>,
}

/// Prefixes that occupy one set.
pub(super) struct Column {
    pub(super) occupied: Devices,
    pub(super) sources: Vec<Source>,
    /// First state with a cell.
    first: usize,
    /// Least bottleneck by state, from `first`; infinite if no prefix ends there.
    block_s: Vec<f64>,
    traces: Vec<Trace>,
}

impl Column {
    /// Drops all data except the origins of the cells.
    pub(super) fn keep_traces(&mut self) {
        self.block_s = vec![];
    }

    /// States with cells.
    pub(super) fn states(&self) -> Range<usize> {
        self.first..self.first + self.traces.len()
    }

    /// Least bottleneck of the prefixes that end with the last state.
    pub(super) fn last_block_s(&self) -> f64 {
        self.block_s.last().copied().unwrap_or(f64::INFINITY)
    }

    /// Returns the sources that lead to any cell.
    pub(super) fn used_sources(&self) -> Vec<usize> {
        let mut used = vec![false; self.sources.len()];
        let traces = self.block_s.iter().zip(&self.traces).filter(|(block_s, _)| block_s.is_finite());
        traces.for_each(|(_, trace)| used[trace.source as usize] = true);
        (0..used.len()).filter(|&at| used[at]).collect()
    }

    /// Returns the last state of the stage before, and its source, for the prefix that ends with `j`.
    pub(super) fn trace(&self, j: usize) -> (usize, Source) {
        let Trace { before, source } = self.traces[j - self.first];
        (before as usize, self.sources[source as usize])
    }
}

/// Candidate for the last stage of a prefix that ends with a given state.
#[derive(Debug, Clone, Copy)]
struct Last {
    /// Compute of the stage, seconds.
    compute_s: f64,
    /// Last state of the stage before.
    before: u32,
}

/// Candidates for the last stage by its last state, sorted by compute. Computed on first use. If all are used, 16 bytes
/// for each pair of states.
pub(super) struct Pairs(Vec<OnceCell<Box<[Last]>>>);

impl Pairs {
    /// Creates an empty list for this many states.
    pub(super) fn new(states: usize) -> Self {
        Pairs((0..states).map(|_| OnceCell::new()).collect())
    }
}

/// Inputs of a table.
pub(super) struct Within<'a> {
    pub(super) model: &'a HpgoModel<'a>,
    pub(super) pairs: &'a Pairs,
    /// States that enough stages can follow.
    pub(super) reach: &'a Reach,
    /// True if each state covers the state before it.
    pub(super) chain: bool,
    /// Stages of the whole pipeline, and number of parallel pipelines.
    pub(super) count: u32,
    pub(super) pipelines: u32,
}

/// Least bottleneck, and the last state of the stage before; infinite if there is none.
pub(super) type Least = (f64, u32);

/// No prefix.
const NOTHING: Least = (f64::INFINITY, u32::MAX);

impl Within<'_> {
    /// Seconds of the states from `from` to `to`.
    #[inline]
    fn compute_s(&self, from: usize, to: usize) -> f64 {
        self.model.compute_s(from, to) / f64::from(self.pipelines)
    }

    /// True if `stages` stages may end with state `j`: enough stages must fit behind it, and the last stage ends with the
    /// last state.
    fn may_end(&self, j: usize, stages: u32) -> bool {
        (stages < self.count || j == self.model.states() - 1) && self.reach.may_end(j, stages)
    }

    /// Range from the first to the last state with which `stages` stages may end.
    pub(super) fn ends(&self, stages: u32) -> Range<usize> {
        let mut states = 0..self.model.states();
        let first = states.find(|&j| self.may_end(j, stages));
        let last = states.rfind(|&j| self.may_end(j, stages)).or(first);
        first.zip(last).map_or(0..0, |(first, last)| first..last + 1)
    }

    /// Returns the only column of one stage.
    pub(super) fn first_column(&self, occupied: Devices, source: Source) -> Column {
        let ends = self.ends(1);
        let of = |j| if self.may_end(j, 1) { self.compute_s(0, j) } else { f64::INFINITY };
        let block_s: Vec<f64> = ends.clone().map(of).collect();
        let traces = vec![Trace { before: 0, source: 0 }; block_s.len()];
        Column { occupied, sources: vec![source], first: ends.start, block_s, traces }
    }

    /// Least bottleneck, by state, of prefixes that end there and send their output to a set; infinite if there is none.
    pub(super) fn ways(&self, before: &[Column], arrival: &Arrival) -> Vec<f64> {
        let mut least = vec![f64::INFINITY; self.model.states()];
        for way in &arrival.ways {
            for k in before[way.0.column as usize].states() {
                least[k] = least[k].min(self.way_s(before, way, k));
            }
        }
        least
    }

    /// Bottleneck of a way behind state `k`.
    #[inline]
    fn way_s(&self, before: &[Column], (source, per_byte): &Way, k: usize) -> f64 {
        let column = &before[source.column as usize];
        let at = k - column.first;
        match per_byte[column.traces[at].source as usize] {
            // Caps costs that only rounding makes infinite.
            Some(seconds) if column.block_s[at].is_finite() => {
                column.block_s[at].max((2.0 * self.model.output_bytes(k) * seconds).min(f64::MAX))
            }
            _ => f64::INFINITY,
        }
    }

    /// Builds the cells of a column from the least bottlenecks by state.
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

    /// For a chain: least bottleneck by last state; among equal ones the longest last stage. `None` if cancelled.
    pub(super) fn along_chain(&self, ways: &[f64], ends: Range<usize>, search: &Search) -> Option<Vec<Least>> {
        let mut least = Vec::with_capacity(ends.len());
        // Each `k` below `open` is followed by at least as much compute as the least way from `open` on. `waiting`
        // holds those `k` in `open..next` whose way is at most that of every later one, ascending.
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
                if compute_s > best.0 {
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

    /// Returns the candidates for a stage that ends with `j`.
    fn ending(&self, j: usize) -> &[Last] {
        self.pairs.0[j].get_or_init(|| {
            let last = |k: usize| Last { compute_s: self.compute_s(k + 1, j), before: k as u32 };
            // This order is nearly sorted if branches are short.
            let mut all: Box<[Last]> = self.model.before_backwards(j).map(last).collect();
            all.sort_by(|a, b| a.compute_s.total_cmp(&b.compute_s));
            all
        })
    }

    /// For any states: least bottleneck with last state `j` for each of the ways; among equal ones the longest last
    /// stage.
    pub(super) fn of_pairs(&self, ways: &[Vec<f64>], j: usize, stages: u32) -> Vec<Least> {
        if !self.may_end(j, stages) {
            return vec![NOTHING; ways.len()];
        }
        let ending = self.ending(j);
        ways.iter().map(|ways| least(ways, ending)).collect()
    }
}

/// Least bottleneck over the candidates for the last stage, sorted by compute.
#[inline]
fn least(ways: &[f64], ending: &[Last]) -> Least {
    let (mut least, mut worst) = (NOTHING, f64::MAX);
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

//! A row of a table of straight pipelines: the columns of one stage more, made by threads in step.
//!
//! In a chain each column is found by itself. Where states branch, the ways to all sets come first, then by last state what is
//! least behind them: so what a stage may be is gone through once for all columns.

use std::{ops::Range, sync::OnceLock};

use fixedbitset::FixedBitSet;

use super::column::{Arrival, Column, Least, Within};
use crate::planner::{Search, team::Pieces};

/// Cells that are few enough for one thread.
const FEW: usize = 2_000;

/// A row in the making.
#[derive(Default)]
pub(super) struct Row {
    /// The columns of the row before.
    pub(super) before: Vec<Column>,
    arrivals: Vec<Arrival>,
    stages: u32,
    /// States that a stage may end with.
    ends: Range<usize>,
    /// By arrival and state the least bottleneck of what leads there: as each is found, and once all are.
    ways: Vec<OnceLock<Vec<f64>>>,
    all_ways: Vec<Vec<f64>>,
    /// The states with a way behind them to any arrival.
    sends: FixedBitSet,
    /// By state that a stage may end with, and arrival.
    least: Vec<OnceLock<Vec<Least>>>,
    /// By arrival.
    columns: Vec<OnceLock<Column>>,
    step: Step,
}

/// What the next pieces are.
#[derive(Debug, Clone, Copy, Default)]
enum Step {
    Ways,
    Least,
    #[default]
    Columns,
}

impl Row {
    /// Does a piece of the step at hand, unless the search was cancelled.
    pub(super) fn piece(&self, within: &Within<'_>, at: usize, search: &Search) {
        if search.cancelled() {
            return;
        }
        let ways = || within.ways(&self.before, &self.arrivals[at]);
        match self.step {
            Step::Ways => _ = self.ways[at].set(ways()),
            Step::Least => {
                let least = within.of_pairs(&self.all_ways, &self.sends, self.ends.start + at, self.stages);
                _ = self.least[at].set(least);
            }
            Step::Columns => {
                let least: Option<Vec<Least>> = if within.chain {
                    within.along_chain(&ways(), self.ends.clone(), search)
                } else {
                    self.least.iter().map(|least| least.get()?.get(at).copied()).collect()
                };
                if let Some(least) = least {
                    let column = within.column(&self.before, &self.arrivals[at], self.ends.start, &least);
                    _ = self.columns[at].set(column);
                }
            }
        }
    }
}

/// Makes the columns of one stage more, which ends as the `stages`-th; `None` if the search was cancelled. `together` has the
/// pieces of a step done, by all threads if it is told that they are much.
pub(super) fn make(
    row: &Pieces<Row>,
    within: &Within<'_>,
    arrivals: Vec<Arrival>,
    stages: u32,
    together: &dyn Fn(bool),
) -> Option<Vec<Column>> {
    let (ends, states, count) = (within.ends(stages), within.model.states(), arrivals.len());
    {
        let mut row = row.task();
        row.ways = none(count);
        row.least = none(ends.len());
        row.columns = none(count);
        (row.arrivals, row.stages, row.ends) = (arrivals, stages, ends.clone());
    }
    let done = |step: Step, pieces: usize, cells: usize| {
        row.task().step = step;
        row.offer(pieces);
        together(cells > FEW);
    };
    if !within.chain {
        done(Step::Ways, count, count * states);
        {
            let row = &mut *row.task();
            row.all_ways = std::mem::take(&mut row.ways).into_iter().filter_map(OnceLock::into_inner).collect();
            row.sends = FixedBitSet::with_capacity(states);
            // Of a single arrival nobody asks.
            for ways in row.all_ways.iter().filter(|_| count > 1) {
                row.sends.extend((0..states).filter(|&k| ways[k] < f64::INFINITY));
            }
        }
        done(Step::Least, ends.len(), ends.len() * states);
    }
    done(Step::Columns, count, count * states);
    let columns = std::mem::take(&mut row.task().columns);
    columns.into_iter().map(OnceLock::into_inner).collect()
}

fn none<T>(count: usize) -> Vec<OnceLock<T>> {
    (0..count).map(|_| OnceLock::new()).collect()
}

//! The best cut of a chain of layers: `best[r][i] = min over j of max(value of layers i .. j with r in flight, best[r − 1][j])`.

use std::cell::Cell;

use super::stage::Ways;
use crate::planner::Search;

/// Where the stages end, and what the worst of them is worth.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cuts {
    pub(super) value: f64,
    /// First layers of the stages after the first.
    pub(super) starts: Vec<usize>,
}

/// By first layer, of the cuts into so many stages from there on: what the worst stage is worth, and where the first ends.
struct Row {
    values: Vec<f64>,
    ends: Vec<u32>,
}

/// The cuts into no stages: only of nothing.
fn nothing(count: usize) -> Vec<f64> {
    let mut values = vec![f64::INFINITY; count + 1];
    values[count] = f64::NEG_INFINITY;
    values
}

/// The cuts into one stage more than those of `rest`, as far as they are worth less than `limit`; `None` if cancelled.
fn row(ways: &mut Ways<'_, '_>, stages: usize, rest: &[f64], limit: f64, search: &Search) -> Option<Row> {
    let count = ways.costs.len();
    let mut row = Row { values: vec![f64::INFINITY; count + 1], ends: vec![0; count] };
    for first in 0..count {
        if search.cancelled() {
            return None;
        }
        let best = Cell::new((f64::INFINITY, 0));
        ways.stretches(first, stages as u32, &mut || limit.min(best.get().0), &mut |last, value| {
            let worst = value.max(rest[last + 1]);
            if worst < best.get().0 && worst < limit {
                best.set((worst, last as u32 + 1));
            }
        });
        (row.values[first], row.ends[first]) = best.get();
    }
    Some(row)
}

/// The best cut into any number of stages that `allowed` lets through, up to `most`, if it is worth less than `known`.
/// Ends early when the search is cancelled.
pub(super) fn best(
    ways: &mut Ways<'_, '_>,
    most: usize,
    allowed: &dyn Fn(usize) -> bool,
    known: f64,
    search: &Search,
) -> Option<Cuts> {
    let count = ways.costs.len();
    let mut limit = known;
    let mut rest = nothing(count);
    let mut ends: Vec<Vec<u32>> = vec![];
    let mut found = None;
    for stages in 1..=most.min(count) {
        let Some(next) = row(ways, stages, &rest, limit, search) else { break };
        rest = next.values;
        ends.push(next.ends);
        if rest[0] < limit && allowed(stages) {
            limit = rest[0];
            let mut starts = vec![];
            let mut at = 0;
            for row in ends.iter().rev() {
                at = row[at] as usize;
                starts.push(at);
            }
            starts.pop();
            found = Some(Cuts { value: limit, starts });
        }
        if rest.iter().all(|value| value.is_infinite()) {
            break;
        }
    }
    found
}

/// The numbers of stages, up to `most`, for which there is a cut worth less than `limit`; `None` if cancelled.
pub(super) fn possible(ways: &mut Ways<'_, '_>, most: usize, limit: f64, search: &Search) -> Option<Vec<usize>> {
    let count = ways.costs.len();
    let mut rest = nothing(count);
    let mut possible = vec![];
    for stages in 1..=most.min(count) {
        rest = row(ways, stages, &rest, limit, search)?.values;
        if rest[0] < limit {
            possible.push(stages);
        }
        if rest.iter().all(|value| value.is_infinite()) {
            break;
        }
    }
    Some(possible)
}

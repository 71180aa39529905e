//! Row of a table of straight pipelines: the columns with one stage more than those of the row before.
//!
//! In a chain each column is computed independently. If states branch, the ways to all sets of devices come first. Then
//! the least bottlenecks follow by last state, so the candidates for a last stage are visited once for all columns.

use fixedbitset::FixedBitSet;

use super::column::{Arrival, Column, Least, Within};
use plantui_core::search::Search;

/// Returns the columns of prefixes with `stages` stages from the row before; `None` if cancelled.
pub(super) fn columns(
    within: &Within<'_>,
    before: &[Column],
    arrivals: &[Arrival],
    stages: u32,
    search: &Search,
) -> Option<Vec<Column>> {
    let ends = within.ends(stages);
    let ways = |arrival| within.ways(before, arrival);
    let least: Vec<Vec<Least>> = if within.chain {
        let column = |arrival| within.along_chain(&ways(arrival), ends.clone(), search);
        arrivals.iter().map(column).collect::<Option<_>>()?
    } else {
        let ways: Vec<Vec<f64>> = arrivals.iter().map(ways).collect();
        // States with a way to any arrival; not needed for a single arrival.
        let mut sends = FixedBitSet::with_capacity(within.model.states());
        for ways in ways.iter().filter(|_| arrivals.len() > 1) {
            sends.extend((0..ways.len()).filter(|&k| ways[k] < f64::INFINITY));
        }
        let mut by_arrival = vec![Vec::with_capacity(ends.len()); arrivals.len()];
        for end in ends.clone() {
            if search.cancelled() {
                return None;
            }
            let of_end = within.of_pairs(&ways, &sends, end, stages);
            by_arrival.iter_mut().zip(of_end).for_each(|(list, least)| list.push(least));
        }
        by_arrival
    };
    let column = |(arrival, least): (&Arrival, &Vec<Least>)| within.column(before, arrival, ends.start, least);
    Some(arrivals.iter().zip(&least).map(column).collect())
}

//! Row of a table of straight pipelines: the columns with one stage more than those of the row before.
//!
//! In a chain each column is computed independently. If states branch, the ways to all sets of devices come first. Then
//! the least bottlenecks follow by last state, so that all columns use the candidates for a last stage while these are
//! in the cache.

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
        let mut by_arrival = vec![Vec::with_capacity(ends.len()); arrivals.len()];
        for end in ends.clone() {
            if search.cancelled() {
                return None;
            }
            let of_end = within.of_pairs(&ways, end, stages);
            by_arrival.iter_mut().zip(of_end).for_each(|(list, least)| list.push(least));
        }
        by_arrival
    };
    let column = |(arrival, least): (&Arrival, &Vec<Least>)| within.column(before, arrival, ends.start, least);
    Some(arrivals.iter().zip(&least).map(column).collect())
}

//! A plan along the whole of a line that is thinned out for the search, where none of the thinned line's plans fits.
//!
//! Runs of many nodes are coarse: the first stages of a long pipeline, which hold the most microbatches in flight, may have
//! room for a few nodes only. Here stages are filled from the network's end, each with as many nodes as memory and a load
//! allow, and the load is lowered by bisection for every tensor degree and for numbers of stages doubled each time. Filling
//! takes the fewest stages that hold all, so where it fails for all numbers of stages, no plan fits at all.
//! `O(degrees · stages · HALVINGS · nodes)` time.

use super::{search::Hunt, table::Table};

/// Halvings of the load for one degree and number of stages.
const HALVINGS: usize = 10;

impl Hunt<'_, '_> {
    /// Publishes the best plan that is found so; a search that is stopped ends with the first.
    pub(super) fn along_the_whole(&mut self) {
        for index in 0..self.tables.len() {
            let costs = self.tables[index].costs;
            let most = self.scope.most_stages(costs.t, costs.len());
            let doubled = std::iter::successors(Some(1usize), |stages| Some(stages * 2));
            let mut counts: Vec<usize> = doubled.take_while(|&stages| stages < most).chain([most]).collect();
            counts.retain(|&stages| stages > 0);
            // Most stages hold most: where these do not, fewer do not.
            for stages in counts.into_iter().rev() {
                if self.search.cancelled() && (self.found.best.is_some() || !self.search.deadline_passed()) {
                    return;
                }
                let Some(begins) = lowered(&self.tables[index], stages, self.scope.stages) else { break };
                let fits = |d: &u32| {
                    let devices = begins.len() as u32 * d * costs.t;
                    devices <= self.scope.devices && self.scope.may_use(begins.len(), *d, costs.t)
                };
                let Some(d) = self.scope.replicas().into_iter().rev().find(fits) else { continue };
                if let Some(split) = self.evaluated(index, d, begins, f64::INFINITY) {
                    self.publish(&split);
                }
            }
        }
    }
}

/// Stages of at most so many with the least load found; `None` if memory has no room for all.
fn lowered(table: &Table<'_>, stages: usize, asked: Option<usize>) -> Option<Vec<usize>> {
    let n = table.costs.len();
    let mut found = filled(table, stages, f64::INFINITY)?;
    let total = table.costs.fastest(0, n);
    let (mut low, mut high) = (total / stages as f64, total);
    for _ in 0..HALVINGS {
        let middle = (low * high).sqrt();
        match filled(table, stages, middle) {
            Some(better) => (high, found) = (middle, better),
            None => low = middle,
        }
    }
    Some(found).filter(|found| asked.is_none_or(|asked| asked == found.len()))
}

/// Stages of at most so many, filled from the end, none above a load in its fastest ways: where each begins.
fn filled(table: &Table<'_>, stages: usize, load: f64) -> Option<Vec<usize>> {
    let mut begins = vec![];
    let mut end = table.costs.len();
    while end > 0 {
        if begins.len() == stages {
            return None;
        }
        let in_flight = (begins.len() + 1) as f64;
        let begin = table
            .furthest(0, end, |begin| table.costs.fastest(begin, end) <= load && table.fits(begin, end, in_flight));
        if begin == end {
            return None;
        }
        begins.push(begin);
        end = begin;
    }
    begins.reverse();
    Some(begins)
}

//! Plans along the whole line, for networks whose line is thinned for the search and none of whose thinned plans fits.
//!
//! Units of many nodes are coarse. The first stages of a long pipeline hold the most microbatches in flight and may fit
//! only a few nodes. Here stages are filled from the network's end, each with as many nodes as memory and a load allow.
//! Bisection lowers the load for every tensor degree and for numbers of stages doubled each time. Filling takes the
//! fewest stages that hold everything, so if it fails for all numbers of stages, no plan fits.
//! `O(degrees · stages · HALVINGS · nodes)` time.

use super::{
    ProfileSearch, build,
    line::UnitLine,
    search::{ClassSearch, FoundPlan, LineSplit, RouteTime, SearchScope},
    table::DegreeTable,
};
use crate::engine_layers::Rule;
use plantui_core::{plan::Plan, search::Search};

/// Bisection steps of the load for one degree and number of stages. The load ends within a factor of `S^(1/1024)`.
const HALVINGS: usize = 10;

/// State of the search along the whole line.
#[derive(Default)]
pub(super) struct AlongWhole {
    /// Whole line, if the search thins it and 1F1B is requested.
    pub(super) line: Option<UnitLine>,
    pub(super) tried: bool,
    pub(super) plan: Option<(f64, Plan)>,
}

impl ProfileSearch<'_> {
    /// Plans along the whole line, if there is one and it was not tried. It goes past the deadline until it has a plan,
    /// if any fits.
    pub(super) fn search_whole(&self, whole: &mut AlongWhole, rule: Rule, scope: SearchScope, search: &Search) {
        let Some(line) = whole.line.as_ref().filter(|_| !whole.tried) else { return };
        let costs = self.costs(line, None, rule);
        let judge = |split: &LineSplit, tables: &[DegreeTable<'_>]| self.judge(line, scope, split, tables);
        let mut publish = |split: &LineSplit, tables: &[DegreeTable<'_>]| {
            self.publish(split.seconds, build::plan(self.profile, line, scope.microbatches, split, tables));
        };
        let mut class_search = ClassSearch {
            scope,
            tables: costs.iter().map(|costs| DegreeTable::bare(costs, self.memory())).collect(),
            search,
            known: f64::INFINITY,
            publish: &mut publish,
            bounded: &|_| {},
            found: FoundPlan::default(),
            judge: self.judged.map(|_| &judge as &RouteTime<'_>),
            candidate: None,
        };
        class_search.along_the_whole();
        class_search.settle_candidate();
        let ClassSearch { tables, found, .. } = class_search;
        let plan = found.best.as_ref().and_then(|split| self.built(line, scope, split, &tables));
        (whole.plan, whole.tried) = (plan, true);
    }
}

impl ClassSearch<'_, '_> {
    /// Publishes the best plan found. After a deadline it ends with the first plan, after a cancellation at once.
    pub(super) fn along_the_whole(&mut self) {
        for index in 0..self.tables.len() {
            let costs = self.tables[index].costs;
            let most = self.scope.most_stages(costs.t, costs.len());
            let doubled = std::iter::successors(Some(1usize), |stages| Some(stages * 2));
            let mut counts: Vec<usize> = doubled.take_while(|&stages| stages < most).chain([most]).collect();
            counts.retain(|&stages| stages > 0);
            // The largest number of stages holds most: if it fails, smaller ones fail.
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

/// First units of at most `stages` stages with the least load found; `None` if memory does not hold everything.
fn lowered(table: &DegreeTable<'_>, stages: usize, asked: Option<usize>) -> Option<Vec<usize>> {
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

/// First units of at most `stages` stages, filled from the end, with at most `load` seconds each in the fastest modes.
fn filled(table: &DegreeTable<'_>, stages: usize, load: f64) -> Option<Vec<usize>> {
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

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use crate::{self as planner, Options, Problem, Status};
    use plantui_core::{
        cluster::GivenLimits,
        family,
        search::Search,
        workload::{Workload, formats::piper},
    };

    /// A chain of so many nodes of ten bytes each on machines of 23: two fit a device, a unit of the thinned line does not.
    fn chain(nodes: usize) -> Workload {
        let sync = |id: Option<usize>| id.map_or(String::new(), |id| format!("\"{id}\": 0"));
        let node = |v: usize| {
            let (before, after) = (sync(v.checked_sub(1)), sync(Some(v + 1).filter(|&next| next < nodes)));
            let seconds = 1.0 + (v * 7 % 10) as f64 / 10.0;
            format!(
                r#"{{"id": {v}, "TMPCs": {{"1": [{{"id": "vanilla", "timePerSample": {seconds}, "parameterSize": 1, "memoryUsageA": 0, "memoryUsageB": 10, "syncTimeFw": {{{before}}}, "syncTimeBw": {{{after}}}}}]}}}}"#
            )
        };
        let edge = |v: usize| format!(r#"{{"sourceId": {v}, "destId": {}, "communicationCost": 0}}"#, v + 1);
        let list: Vec<String> = (0..nodes).map(node).collect();
        let edges: Vec<String> = (0..nodes - 1).map(edge).collect();
        let text = format!(
            r#"{{"maxMemoryPerDevice": 23, "maxDevices": 1024, "bandwidth": 1e9, "mbsInBatch": 1024, "nodes": [{}], "edges": [{}]}}"#,
            list.join(", "),
            edges.join(", ")
        );
        piper::read(&text, "chain.json", "chain").unwrap()
    }

    #[test]
    fn a_plan_that_only_the_whole_line_has_is_found_whatever_the_deadline() {
        let workload = Arc::new(chain(1200));
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let joint = planner::find("joint").unwrap();
        let options = Options::defaults(joint.options());
        let problem = Problem { workload, limits, options };
        for deadline in [Some(Duration::ZERO), Some(Duration::from_millis(200)), None] {
            let outcome = joint.plan(&problem, &Search::new(deadline, 0));
            let plan = outcome.plan.expect("600 stages of two nodes hold all");
            assert!(plan.stages.iter().all(|stage| stage.nodes.len() <= 2), "{deadline:?}");
            // Of plans along the thinned line there are none, so nothing is proven of those there are.
            assert_eq!((outcome.status, outcome.lower_bound), (Status::Feasible, None), "{deadline:?}");
        }
    }
}

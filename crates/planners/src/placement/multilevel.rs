//! Multilevel partitioning of the class graph: coarsen, split the coarsest level, refine on the way back.
//!
//! The scheme of Karypis and Kumar (*A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs*, SIAM
//! J. Sci. Comput. 1998). Heavy-edge matching merges classes with much traffic until few are left (`level`). These are
//! assigned along a topological order, and largest first. Every level is then refined by moves as in Fiduccia and
//! Mattheyses (DAC 1982): a pass keeps its best prefix (`refine`). It replaces Scotch and METIS without a system
//! package.
//!
//! The objective differs: partitioners balance weights and then minimise the cut; here every level uses the load of the
//! busiest accelerator, transfers included. Memory comes first, as bytes over the limit. Classes that no accelerator
//! can run go to one CPU if there is one. Splits need not be contiguous. Only the bound on all splits is proven; after
//! a split that attains it, no run is started. The first split along the graph (`first_plan`), refined, is one more
//! candidate, so no result is worse than it.
//!
//! A move considers only the classes of the busiest accelerator, so a run takes `O(moves · devices · pins)`. Runs are
//! independent and parallel. Results depend on the seed alone. Memory is `O(nets · devices)` per thread.

mod level;
mod refine;

use std::sync::atomic::{AtomicU32, Ordering};

use super::{
    DeviceKind, PlacementLimits, PlacementResult, Split,
    baselines::scored,
    classes::{ClassGraph, Partition},
    first_plan::{self, FirstPlan},
};
use crate::Status;
use level::GraphLevel;
use plantui_core::{graph::Dag, random::SplitMix, search::Search, workload::placement::PlacementProfile};
use refine::{RefinementState, StateValue, meets};

/// Coarsening stops at this many vertices per device.
const COARSEST_PER_DEVICE: usize = 8;
/// Costs are cut off at this multiple of the first split's load. No good split has such a load, and subtracting a cost
/// then leaves no more rounding error than the sums have anyway.
const COUNTED: f64 = 4.0;

/// Best of `runs` runs with different random matchings. `improved` receives the first split, before any run.
pub fn plan(
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &PlacementLimits,
    runs: u32,
    search: &Search,
    improved: &dyn Fn(f64, &Split),
) -> PlacementResult {
    if limits.accelerators == 0 {
        let note = "the partitioner needs at least one accelerator".to_string();
        return PlacementResult { notes: vec![note], ..PlacementResult::without(Status::Infeasible) };
    }
    // More devices than nodes are useless, but cost memory.
    let accelerators = limits.accelerators.min(dag.len().max(1) as u32);
    let limits = &PlacementLimits { accelerators, ..*limits };
    let FirstPlan { lower_bound, split: first } = first_plan::plan(dag, profile, limits);
    search.report_bound(lower_bound);
    first.iter().for_each(|(value, split)| improved(*value, split));
    let classes = ClassGraph::new(dag, profile, &Partition::by_colour(profile)).partition;
    let counts = |levels: usize| vec![("classes", classes.len() as f64), ("levels", levels as f64)];
    let bounded = |mut placed: PlacementResult, levels| {
        placed.lower_bound = Some(lower_bound);
        placed.counts = counts(levels);
        // A split over its memory is reported with its need by the caller, which returns no such plan.
        placed.notes.clear();
        placed
    };
    if let Some((_, split)) = first.as_ref().filter(|(value, _)| meets(*value, lower_bound)) {
        return bounded(scored(dag, profile, limits, split.clone()), 0);
    }
    let counted = first.as_ref().map_or(f64::INFINITY, |(value, _)| COUNTED * value);
    let finest = GraphLevel::finest(dag, profile, &classes, counted);
    let begun = first.as_ref().and_then(|(_, split)| devices(split, &classes, limits));
    let ended = AtomicU32::new(0);
    // First run whose split attains the bound. Later runs cannot be better; an earlier one may be as good.
    let met = AtomicU32::new(u32::MAX);
    let question = MultilevelProblem { finest: &finest, limits, lower_bound };
    let mut found = search.map(0..1 + runs.max(1), |run| {
        if met.load(Ordering::Relaxed) < run {
            return None;
        }
        let found = match run {
            0 => {
                let start = begun.clone().unwrap_or_else(|| finest.along_order(limits));
                Some(question.refined(&finest, start, 0, search))
            }
            _ => question.one_run(search.seed(), run, search),
        };
        if found.as_ref().is_some_and(|found| found.value.meets(lower_bound)) {
            met.fetch_min(run, Ordering::Relaxed);
        }
        let ended = 1 + ended.fetch_add(1, Ordering::Relaxed);
        search.report_fraction(f64::from(ended) / f64::from(runs.max(1) + 1));
        found
    });
    let met = met.into_inner();
    // Some of the later runs had already started, so they are dropped for a repeatable result.
    found.truncate((met as usize).saturating_add(1));
    let found: Vec<Refinement> = found.into_iter().flatten().collect();
    let levels = found.iter().map(|found| found.levels).max().unwrap_or(0);
    // Ties: the first run, independent of the threads.
    let best = found.into_iter().reduce(|best, other| if other.value.is_less(&best.value) { other } else { best });
    let refined = best.map(|found| scored(dag, profile, limits, split(&found.device, &classes, limits, dag.len())));
    let first = first.map(|(_, split)| scored(dag, profile, limits, split));
    let worth = |placed: &PlacementResult| if placed.notes.is_empty() { placed.max_load } else { None };
    let better = |refined: PlacementResult, first: PlacementResult| match (worth(&refined), worth(&first)) {
        (Some(value), Some(known)) if value <= known => refined,
        (_, Some(_)) => first,
        _ => refined,
    };
    let placed = match (refined, first) {
        (Some(refined), Some(first)) => better(refined, first),
        (one, other) => one.or(other).unwrap_or_else(|| PlacementResult::without(Status::Cancelled)),
    };
    let mut placed = bounded(placed, levels);
    if search.cancelled() && met == u32::MAX {
        placed.status = Status::Cancelled;
    }
    placed
}

/// Split of an assignment of classes.
fn split(device: &[u32], classes: &Partition, limits: &PlacementLimits, nodes: usize) -> Split {
    let mut stages = vec![(DeviceKind::Accelerator, vec![]); limits.accelerators as usize];
    stages.push((DeviceKind::Cpu, vec![]));
    for node in 0..nodes {
        stages[device[classes.class(node)] as usize].1.push(node);
    }
    stages.retain(|(_, nodes)| !nodes.is_empty());
    Split::from_stages(stages)
}

/// Result of a run.
struct Refinement {
    value: StateValue,
    device: Vec<u32>,
    levels: usize,
}

/// Device of every class in a split; `None` if it has more than one CPU.
fn devices(split: &Split, classes: &Partition, limits: &PlacementLimits) -> Option<Vec<u32>> {
    if split.used(DeviceKind::Cpu) > 1 {
        return None;
    }
    let mut device = vec![0; classes.len()];
    let mut accelerator = 0;
    for held in split.devices.iter().filter(|held| !held.nodes.is_empty()) {
        let number = if held.kind == DeviceKind::Cpu { limits.accelerators } else { accelerator };
        accelerator += u32::from(held.kind == DeviceKind::Accelerator);
        held.nodes.iter().for_each(|&node| device[classes.class(node)] = number);
    }
    Some(device)
}

/// Input that all runs share.
struct MultilevelProblem<'a> {
    finest: &'a GraphLevel,
    limits: &'a PlacementLimits,
    lower_bound: f64,
}

impl MultilevelProblem<'_> {
    /// Refines a start on one level.
    fn refined(&self, level: &GraphLevel, start: Vec<u32>, levels: usize, search: &Search) -> Refinement {
        let device = match RefinementState::new(level, self.limits, self.lower_bound, start) {
            Ok(mut state) => {
                state.refine(search);
                state.into_devices()
            }
            Err(too_large) => too_large,
        };
        Refinement { value: level.value(&device, self.limits), device, levels }
    }

    /// Coarsens, splits the coarsest level in two ways and refines the better one down to the finest; `None` if
    /// cancelled before.
    fn one_run(&self, seed: u64, run: u32, search: &Search) -> Option<Refinement> {
        let MultilevelProblem { finest, limits, .. } = *self;
        let mut random = SplitMix::new(seed ^ u64::from(run).wrapping_mul(0x2545_f491_4f6c_dd1d));
        let few = COARSEST_PER_DEVICE * limits.accelerators as usize;
        // Each level, with the vertex of the next coarser level for each of its vertices.
        let mut coarser: Vec<(GraphLevel, Vec<u32>)> = vec![];
        loop {
            if search.cancelled() {
                return None;
            }
            let last = coarser.last().map_or(finest, |(level, _)| level);
            if last.len() <= few {
                break;
            }
            let (group, groups) = last.matching(limits, &mut random);
            // If hardly anything matches, further levels only cost time.
            if (last.len() - groups) * 20 < last.len() {
                break;
            }
            let merged = last.merged(&group, groups);
            coarser.push((merged, group));
        }
        let levels = coarser.len() + 1;
        let coarsest = coarser.last().map_or(finest, |(level, _)| level);
        let starts = [coarsest.along_order(limits), coarsest.largest_first(limits, &mut random)];
        let [first, second] = starts.map(|start| self.refined(coarsest, start, levels, search));
        let mut best = if second.value.is_less(&first.value) { second } else { first };
        for at in (0..coarser.len()).rev() {
            let level = if at == 0 { finest } else { &coarser[at - 1].0 };
            let projected = coarser[at].1.iter().map(|&group| best.device[group as usize]).collect();
            best = self.refined(level, projected, levels, search);
        }
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::workload::PlacementNode;

    /// Two bundles of four nodes with much traffic inside and little between.
    fn bundles() -> (Dag, PlacementProfile) {
        let mut edges = vec![];
        for first in [0u32, 4] {
            edges.extend([(first, first + 1), (first, first + 2), (first + 1, first + 3), (first + 2, first + 3)]);
        }
        edges.push((3, 4));
        let node = |v: usize| PlacementNode {
            cpu_time: 50.0,
            accelerator_time: 10.0,
            supported: true,
            backward: false,
            size_bytes: 1.0,
            colour_class: None,
            layer: None,
            transfer: if v == 3 { 1.0 } else { 8.0 },
        };
        (Dag::new(8, edges).unwrap(), (0..8).map(node).collect::<Vec<_>>().into())
    }

    fn limits(accelerators: u32, cpus: u32, memory_bytes: f64) -> PlacementLimits {
        PlacementLimits { accelerators, cpus, memory_bytes }
    }

    #[test]
    fn bundles_stay_together() {
        let (dag, profile) = bundles();
        let placed = plan(&dag, &profile, &limits(2, 0, 100.0), 4, &Search::default(), &|_, _| ());
        assert_eq!(placed.max_load, Some(41.0));
    }

    #[test]
    fn memory_comes_before_load() {
        let (dag, mut profile) = bundles();
        for v in 0..4 {
            profile.nodes[v].size_bytes = 2.0;
        }
        // The first bundle needs 8: it has to be torn.
        let limits = limits(2, 0, 6.0);
        let placed = plan(&dag, &profile, &limits, 4, &Search::default(), &|_, _| ());
        let split = placed.split.unwrap();
        let score = split.score(&dag, &profile);
        assert_eq!(score.over_memory(&split, 6.0).count(), 0, "{:?}", score.loads);
        assert!(placed.max_load.unwrap() > 41.0);
    }

    #[test]
    fn what_no_accelerator_runs_goes_to_the_cpu() {
        let (dag, mut profile) = bundles();
        profile.nodes[7].supported = false;
        let placed = plan(&dag, &profile, &limits(2, 1, 100.0), 4, &Search::default(), &|_, _| ());
        let cpu: Vec<_> = placed.split.unwrap().devices.into_iter().filter(|d| d.kind == DeviceKind::Cpu).collect();
        assert_eq!(cpu.len(), 1);
        assert_eq!(cpu[0].nodes, [7]);
    }

    #[test]
    fn no_run_is_made_where_the_first_split_meets_the_bound() {
        let (dag, mut profile) = bundles();
        profile.nodes.iter_mut().for_each(|node| node.transfer = 0.0);
        let asked = std::cell::Cell::new(0);
        let placed =
            plan(&dag, &profile, &limits(2, 0, 100.0), 4, &Search::default(), &|_, _| asked.set(asked.get() + 1));
        assert_eq!((placed.max_load, asked.get()), (Some(40.0), 1));
        assert_eq!(placed.counts, [("classes", 8.0), ("levels", 0.0)]);
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let (dag, profile) = bundles();
        let planned = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| plan(&dag, &profile, &limits(3, 0, 100.0), 8, &Search::default(), &|_, _| ()))
        };
        assert_eq!(planned(1), planned(4));
    }

    #[test]
    fn a_cancelled_search_has_the_first_split() {
        let (dag, profile) = bundles();
        let search = Search::default();
        search.cancel();
        let placed = plan(&dag, &profile, &limits(2, 0, 100.0), 4, &search, &|_, _| ());
        assert_eq!((placed.status, placed.max_load), (Status::Cancelled, Some(41.0)));
        assert!(placed.lower_bound.is_some_and(|bound| (bound - 40.0).abs() < 1e-9), "{:?}", placed.lower_bound);
    }
}

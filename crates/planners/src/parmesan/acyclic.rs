//! Dynamic program over all acyclic partitions of a small cluster graph. Stages form a DAG, and no order of the
//! clusters is fixed beforehand.
//!
//! ```text
//! G[s][U][d] = min over U' ⊂ U and r ≤ d of  max( stage(U \ U', r), cut(U'), G[s−1][U'][d−r] )
//! ```
//!
//! `U` and `U'` are sets closed under successors. `U \ U'` is a stage that precedes all of `U'` in a topological order
//! of the stages. `cut(U')` is all data that enters `U'`, once per producer, one way. Two stages without a path between
//! them run side by side: only their numbers order them. On a chain of clusters this equals
//! [`chain`](super::stages::chain).
//!
//! Time is `O(nested pairs · devices · widths · stages)`; each state takes a few bytes. Graphs that need more than
//! [`MOST_STEPS`] steps are left to the chain.

use super::{
    coarsen::CostGraph,
    stages::{ChainCuts, MachineModel},
};
use plantui_core::{
    graph::{Dag, Enumeration, SuccessorSets},
    search::Search,
};

/// Number of closed sets above which a graph is left to the chain. It bounds the time of the enumeration.
const MOST_SETS: usize = 1000;
/// Number of steps of the program above which a graph is left to the chain. It bounds the time of the program.
const MOST_STEPS: usize = 20_000_000;

/// Partition into stages with its bottleneck (seconds): the stage of each cluster, and the devices of each stage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClusterPartition {
    pub(super) bottleneck: f64,
    pub(super) stage: Vec<usize>,
    pub(super) widths: Vec<usize>,
}

impl ClusterPartition {
    /// Converts cuts of a chain of `clusters` clusters.
    pub(super) fn of_chain((bottleneck, cuts): (f64, ChainCuts), clusters: usize) -> Self {
        let (mut stage, mut from) = (vec![0; clusters], 0);
        for (number, &(to, _)) in cuts.iter().enumerate() {
            stage[from..to].fill(number);
            from = to;
        }
        ClusterPartition { bottleneck, stage, widths: cuts.iter().map(|cut| cut.1).collect() }
    }
}

/// Sums over a set of clusters.
#[derive(Debug, Clone, Copy, Default)]
struct ClosedSetSums {
    seconds: f64,
    parameters: f64,
    kept: f64,
    /// Bytes that enter the set.
    into: f64,
}

fn sums(fine: &CostGraph, part: &[usize], sets: &SuccessorSets, set: usize) -> ClosedSetSums {
    let mut sums = ClosedSetSums::default();
    for (v, &own) in part.iter().enumerate() {
        if sets.contains(set, own) {
            sums.seconds += fine.seconds[v];
            sums.parameters += fine.parameters[v];
            sums.kept += fine.kept[v];
        } else if fine.out[v].iter().any(|&w| sets.contains(set, part[w])) {
            sums.into += fine.bytes[v];
        }
    }
    sums
}

/// Best acyclic partition of the clusters for every number of stages, fewest stages first. `part` gives the cluster of
/// each vertex. `None` if there are too many sets or steps, if the clusters form a chain, or if the search was
/// cancelled.
pub(super) fn splits(
    fine: &CostGraph,
    part: &[usize],
    clusters: usize,
    machine: &MachineModel,
    most_stages: usize,
    search: &Search,
) -> Option<Vec<ClusterPartition>> {
    let (n, devices) = (clusters, machine.devices);
    let graph = fine.quotient(part, n);
    let edges = (0..n).flat_map(|v| graph.out[v].iter().map(move |&w| (v as u32, w as u32))).collect();
    let dag = Dag::new(n, edges).ok()?;
    let Enumeration::Complete(sets) = SuccessorSets::enumerate(&dag, MOST_SETS, &|| search.cancelled()) else {
        return None;
    };
    if sets.len() == n + 1 {
        return None;
    }
    let most_stages = most_stages.min(n).min(devices);
    // By set: the closed subsets that may remain after a stage is removed.
    let within = |inner: usize, set: usize| sets.size(inner) < sets.size(set) && sets.is_subset(inner, set);
    let inner = |set: usize| (0..set).filter(|&inner| within(inner, set)).map(|inner| inner as u32).collect();
    let nested: Vec<Vec<u32>> = (0..sets.len()).map(inner).collect();
    let pairs: usize = nested.iter().map(Vec::len).sum();
    if pairs.saturating_mul(devices * machine.widths.len() * most_stages) > MOST_STEPS {
        return None;
    }
    let mut all = vec![];
    for set in 0..sets.len() {
        if search.cancelled() {
            return None;
        }
        all.push(sums(fine, part, &sets, set));
    }
    let sums = all;
    let width = devices + 1;
    let mut later = vec![f64::INFINITY; sets.len() * width];
    later[..width].fill(0.0);
    let mut choices: Vec<Vec<(u32, u32)>> = vec![];
    let mut found = vec![];
    for stages in 1..=most_stages {
        let mut now = vec![f64::INFINITY; sets.len() * width];
        let mut choice = vec![(0, 0); sets.len() * width];
        for (set, inner) in nested.iter().enumerate() {
            if search.cancelled() {
                return None;
            }
            let whole = sums[set];
            for &rest in inner {
                let left = sums[rest as usize];
                let over = machine.cut_s(left.into);
                let between = if machine.overlap { 0.0 } else { 2.0 * (over + machine.cut_s(whole.into)) };
                for &r in &machine.widths {
                    let parameters = whole.parameters - left.parameters;
                    if !machine.fits(parameters, whole.kept - left.kept, r, stages - 1) {
                        continue;
                    }
                    let own = machine.stage_s(whole.seconds - left.seconds, parameters, r) + between;
                    let own = if machine.overlap { own.max(over) } else { own };
                    for d in r..=devices {
                        let value = own.max(later[rest as usize * width + d - r]);
                        if value < now[set * width + d] {
                            now[set * width + d] = value;
                            choice[set * width + d] = (rest, r as u32);
                        }
                    }
                }
            }
        }
        choices.push(choice);
        let full = sets.len() - 1;
        let bottleneck = now[full * width + devices];
        if bottleneck.is_finite() {
            let (mut at, mut left) = (full, devices);
            let mut split = ClusterPartition { bottleneck, stage: vec![0; n], widths: vec![] };
            for choice in choices.iter().rev() {
                let (rest, r) = choice[at * width + left];
                for v in sets.difference(at, rest as usize) {
                    split.stage[v] = split.widths.len();
                }
                split.widths.push(r as usize);
                (at, left) = (rest as usize, left - r as usize);
            }
            found.push(split);
        }
        later = now;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{coarsen::tests::random_graph, stages::chain},
        *,
    };
    use plantui_core::random::SplitMix;

    fn machine(round: usize, devices: usize) -> MachineModel {
        MachineModel {
            devices,
            widths: (1..=devices).collect(),
            bandwidth: 1.0 + (round % 7) as f64,
            reduce_s: (0..=devices).map(|r| if r > 1 { 0.5 * (r - 1) as f64 / r as f64 } else { 0.0 }).collect(),
            microbatches: 4.0,
            overlap: round.is_multiple_of(2),
            memory: f64::INFINITY,
            state: 1.0,
        }
    }

    /// Bottleneck of a partition whose stages are in a topological order, with the best devices for each.
    fn worth(
        graph: &CostGraph,
        machine: &MachineModel,
        stage: &[usize],
        stages: usize,
        from: usize,
        devices: usize,
    ) -> f64 {
        if from == stages {
            return 0.0;
        }
        let into = |first: usize| -> f64 {
            let crosses = |v: &usize| stage[*v] < first && graph.out[*v].iter().any(|&w| stage[w] >= first);
            (0..graph.len()).filter(crosses).map(|v| graph.bytes[v]).sum()
        };
        let own = |values: &[f64]| -> f64 { (0..graph.len()).filter(|&v| stage[v] == from).map(|v| values[v]).sum() };
        let over = machine.cut_s(into(from + 1));
        let each = (1..=devices).map(|r| {
            let alone = machine.stage_s(own(&graph.seconds), own(&graph.parameters), r);
            let alone = match machine.overlap {
                true => alone.max(over),
                false => alone + 2.0 * (over + machine.cut_s(into(from))),
            };
            alone.max(worth(graph, machine, stage, stages, from + 1, devices - r))
        });
        each.fold(f64::INFINITY, f64::min)
    }

    /// Tries all assignments of vertices to stages without a backward edge or an empty stage. Keeps the best for each
    /// number of stages.
    fn brute(graph: &CostGraph, machine: &MachineModel, stage: &mut Vec<usize>, best: &mut [f64]) {
        let v = stage.len();
        if v == graph.len() {
            let stages = stage.iter().max().unwrap() + 1;
            if (0..stages).all(|number| stage.contains(&number)) {
                best[stages] = best[stages].min(worth(graph, machine, stage, stages, 0, machine.devices));
            }
            return;
        }
        // Vertices of these graphs are numbered in a topological order.
        let earliest = graph.into[v].iter().map(|&u| stage[u]).max().unwrap_or(0);
        for own in earliest..machine.devices {
            stage.push(own);
            brute(graph, machine, stage, best);
            stage.pop();
        }
    }

    #[test]
    fn no_acyclic_partition_is_better() {
        let mut random = SplitMix::new(3);
        let (mut beaten, mut compared) = (0, 0);
        for round in 0..160 {
            let (n, devices) = (1 + round % 10, 1 + round / 10 % 3);
            let graph = random_graph(&mut random, n);
            let machine = machine(round, devices);
            let order: Vec<usize> = (0..n).collect();
            let along = chain(&graph, &order, n, &machine, &Search::default());
            let alone = || along.iter().map(|found| ClusterPartition::of_chain(found.clone(), n)).collect();
            // Of a chain there is one order.
            let found = splits(&graph, &order, n, &machine, devices, &Search::default()).unwrap_or_else(alone);
            let mut best = vec![f64::INFINITY; devices + 1];
            brute(&graph, &machine, &mut vec![], &mut best);
            for split in &found {
                let stages = split.widths.len();
                let expected = best[stages];
                assert!((split.bottleneck - expected).abs() <= 1e-9 * expected, "{round}: {split:?} {expected}");
                assert!(split.widths.iter().sum::<usize>() <= devices);
                let forward = |v: usize| graph.out[v].iter().all(|&w| split.stage[v] <= split.stage[w]);
                assert!((0..n).all(forward), "{split:?}");
                compared += 1;
            }
            assert_eq!(found.len(), best.iter().filter(|best| best.is_finite()).count());
            // Never worse than along one order, and on branches now and then better.
            for (bottleneck, cuts) in along {
                let own = found.iter().find(|split| split.widths.len() == cuts.len()).unwrap();
                assert!(own.bottleneck <= bottleneck * (1.0 + 1e-12));
                beaten += usize::from(own.bottleneck < bottleneck * (1.0 - 1e-9));
            }
        }
        assert!(compared > 200 && beaten > 10, "{compared} {beaten}");
    }

    #[test]
    fn a_graph_of_many_branches_is_left_to_the_chain() {
        // 40 vertices side by side: 2^40 sets.
        let graph = CostGraph {
            out: vec![vec![]; 40],
            into: vec![vec![]; 40],
            seconds: vec![1.0; 40],
            bytes: vec![1.0; 40],
            parameters: vec![1.0; 40],
            kept: vec![1.0; 40],
            order: (0..40).collect(),
        };
        let part: Vec<usize> = (0..40).collect();
        assert!(splits(&graph, &part, 40, &machine(0, 4), 4, &Search::default()).is_none());
    }

    #[test]
    fn a_stopped_search_goes_through_no_partitions() {
        let graph = random_graph(&mut SplitMix::new(5), 8);
        let order: Vec<usize> = (0..8).collect();
        let search = Search::default();
        assert!(splits(&graph, &order, 8, &machine(0, 2), 2, &search).is_some());
        search.cancel();
        assert!(splits(&graph, &order, 8, &machine(0, 2), 2, &search).is_none());
    }
}

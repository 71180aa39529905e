//! Partitions for one pair of `k` and `comm_coef`, in either flow.
//!
//! With `new_flow`: coarsen to `k` clusters, cut them into stages, then uncoarsen while vertices move across stage
//! borders. Without it: coarsen, refine the `k` clusters against one another, then cut them into stages. Stages come
//! from a chain of the clusters and, if the graph is small enough, also from all acyclic partitions
//! ([`super::acyclic`]). Only a few numbers of stages go on: those with the shortest estimated iteration, which is
//! `(M − 1) · bottleneck` plus the time of one microbatch through all stages.

use super::{
    acyclic::{ClusterPartition, splits},
    coarsen::{CostGraph, Merges, coarsen},
    refine::StageRefinement,
    stages::{MachineModel, chain},
};
use plantui_core::search::Search;

/// Numbers of stages kept from each source. Without this limit, planning takes over 6 times the CPU time (resnet50, no
/// replicas, 128 devices).
const KEPT: usize = 4;

/// Partition: the stage of each vertex, and the devices of each stage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct VertexPartition {
    pub(super) stage: Vec<usize>,
    pub(super) widths: Vec<usize>,
}

/// One point of the parameter search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SearchPoint {
    pub(super) k: usize,
    pub(super) comm_coef: f64,
    pub(super) new_flow: bool,
    /// True if stages may form a DAG.
    pub(super) dag: bool,
}

/// Partitions of a point, most promising first; none if the search was cancelled.
pub(super) fn candidates(
    fine: &CostGraph,
    machine: &MachineModel,
    point: SearchPoint,
    search: &Search,
) -> Vec<VertexPartition> {
    let merges = coarsen(fine, point.k, point.comm_coef, machine.bandwidth, search);
    if search.cancelled() {
        return vec![];
    }
    let (mut part, count) = merges.level(fine, point.k);
    if !point.new_flow {
        let alone = MachineModel { memory: f64::INFINITY, ..machine.clone() };
        part = uncoarsened(fine, &alone, &merges, part, &vec![1; count], search);
    }
    let along = chain(fine, &part, count, machine, search);
    let along = along.into_iter().map(|cuts| ClusterPartition::of_chain(cuts, count)).collect();
    let among_all = point.dag.then(|| splits(fine, &part, count, machine, machine.devices, search)).flatten();
    // The better split before refinement may be the worse one after it, so the best of both sources go on.
    let mut found = promising(fine, machine, &part, along);
    found.extend(promising(fine, machine, &part, among_all.unwrap_or_default()));
    let refined = found.into_iter().map(|VertexPartition { stage, widths }| {
        let stage = if point.new_flow { uncoarsened(fine, machine, &merges, stage, &widths, search) } else { stage };
        VertexPartition { stage, widths }
    });
    refined.collect()
}

/// Most promising splits of clusters, by estimated iteration time, as partitions of the vertices.
fn promising(
    fine: &CostGraph,
    machine: &MachineModel,
    part: &[usize],
    splits: Vec<ClusterPartition>,
) -> Vec<VertexPartition> {
    let promise = |ClusterPartition { bottleneck, stage, widths }: ClusterPartition| {
        let stage: Vec<usize> = part.iter().map(|&cluster| stage[cluster]).collect();
        let fill: f64 = (0..fine.len()).map(|v| fine.seconds[v] / widths[stage[v]] as f64).sum();
        ((machine.microbatches - 1.0) * bottleneck + fill, VertexPartition { stage, widths })
    };
    let mut found: Vec<(f64, VertexPartition)> = splits.into_iter().map(promise).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.truncate(KEPT);
    found.into_iter().map(|found| found.1).collect()
}

/// Refines the parts at every level, from coarse to fine.
fn uncoarsened(
    fine: &CostGraph,
    machine: &MachineModel,
    merges: &Merges,
    mut part: Vec<usize>,
    widths: &[usize],
    search: &Search,
) -> Vec<usize> {
    if widths.len() < 2 {
        return part;
    }
    let mut count = 2 * widths.len();
    loop {
        let count_now = count.min(fine.len());
        let (cluster, clusters) = merges.level(fine, count_now);
        let mut own = vec![0; clusters];
        (0..fine.len()).for_each(|v| own[cluster[v]] = part[v]);
        // A level may be coarser than the parts: then nothing can move at it.
        let whole = (0..fine.len()).all(|v| own[cluster[v]] == part[v]);
        if whole {
            let quotient = fine.quotient(&cluster, clusters);
            let refined = StageRefinement::new(&quotient, machine, widths, own).run(search);
            (0..fine.len()).for_each(|v| part[v] = refined[cluster[v]]);
        }
        if count_now == fine.len() || search.cancelled() {
            return part;
        }
        count *= 2;
    }
}

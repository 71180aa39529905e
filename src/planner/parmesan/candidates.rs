//! Partitions for one pair of `k` and `comm_coef`, in either flow.
//!
//! `new_flow`: coarsen to `k` clusters, part them into stages, take clusters apart again while vertices move over the
//! borders of stages. Without it: coarsen, refine the `k` parts against one another, then part them. Stages come from all
//! acyclic partitions of the clusters where those can be gone through ([`super::acyclic`]), else from a chain of them. Of
//! the numbers of stages the few go on that promise the shortest batch, `(M − 1) · bottleneck + fill`.

use super::{
    acyclic::{Split, splits},
    coarsen::{Fine, Merges, coarsen},
    refine::Refinement,
    stages::{Machine, chain},
};
use crate::planner::Search;

/// Numbers of stages that go on.
const KEPT: usize = 4;

/// A partition: by vertex its stage, and by stage its devices.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Partition {
    pub(super) stage: Vec<usize>,
    pub(super) widths: Vec<usize>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) k: usize,
    pub(super) comm_coef: f64,
    pub(super) new_flow: bool,
    /// Whether stages may form a DAG.
    pub(super) dag: bool,
}

/// The partitions of a point, the most promising first; none if somebody stopped the search.
pub(super) fn candidates(fine: &Fine, machine: &Machine, point: Point, search: &Search) -> Vec<Partition> {
    let merges = coarsen(fine, point.k, point.comm_coef, machine.bandwidth, search);
    after(fine, machine, &merges, point, search)
}

/// The same after the merges of its `k` and `comm_coef`.
pub(super) fn after(fine: &Fine, machine: &Machine, merges: &Merges, point: Point, search: &Search) -> Vec<Partition> {
    if search.cancelled() {
        return vec![];
    }
    let (mut part, count) = merges.level(fine, point.k);
    if !point.new_flow {
        let alone = Machine { memory: f64::INFINITY, ..machine.clone() };
        part = uncoarsened(fine, &alone, merges, part, &vec![1; count], search);
    }
    let along = chain(fine, &part, count, machine, search);
    let along = along.into_iter().map(|cuts| Split::of_chain(cuts, count)).collect();
    let among_all = point.dag.then(|| splits(fine, &part, count, machine, machine.devices, search)).flatten();
    // What is better before vertices move need not be so after: of both the best go on.
    let mut found = promising(fine, machine, &part, along);
    found.extend(promising(fine, machine, &part, among_all.unwrap_or_default()));
    let refined = found.into_iter().map(|Partition { stage, widths }| {
        let stage = if point.new_flow { uncoarsened(fine, machine, merges, stage, &widths, search) } else { stage };
        Partition { stage, widths }
    });
    refined.collect()
}

/// The few of some splits of clusters that promise the shortest batch, as partitions of the vertices.
fn promising(fine: &Fine, machine: &Machine, part: &[usize], splits: Vec<Split>) -> Vec<Partition> {
    let promise = |Split { bottleneck, stage, widths }: Split| {
        let stage: Vec<usize> = part.iter().map(|&cluster| stage[cluster]).collect();
        let fill: f64 = (0..fine.len()).map(|v| fine.seconds[v] / widths[stage[v]] as f64).sum();
        ((machine.microbatches - 1.0) * bottleneck + fill, Partition { stage, widths })
    };
    let mut found: Vec<(f64, Partition)> = splits.into_iter().map(promise).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.truncate(KEPT);
    found.into_iter().map(|found| found.1).collect()
}

/// Parts of vertices after refinement at every level, from coarse to fine.
fn uncoarsened(
    fine: &Fine,
    machine: &Machine,
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
        // A level may be coarser than the parts are: then there is nothing to move.
        let whole = (0..fine.len()).all(|v| own[cluster[v]] == part[v]);
        if whole {
            let quotient = fine.quotient(&cluster, clusters);
            let refined = Refinement::new(&quotient, machine, widths, own).run(search);
            (0..fine.len()).for_each(|v| part[v] = refined[cluster[v]]);
        }
        if count_now == fine.len() || search.cancelled() {
            return part;
        }
        count *= 2;
    }
}

//! Partitions for one pair of `k` and `comm_coef`, in either flow.
//!
//! `new_flow`: coarsen to `k` clusters, cut their chain into stages, take clusters apart again while vertices move over the
//! borders of stages. Without it: coarsen, refine the `k` parts against one another, then cut their chain. Of the numbers of
//! stages the few go on that promise the shortest batch, `(M − 1) · bottleneck + fill`.

use super::{
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
}

/// The partitions of a point, the most promising first; none if somebody stopped the search.
pub(super) fn candidates(fine: &Fine, machine: &Machine, point: Point, search: &Search) -> Vec<Partition> {
    let merges = coarsen(fine, point.k, point.comm_coef, machine.bandwidth, search);
    if search.cancelled() {
        return vec![];
    }
    let (mut part, count) = merges.level(fine, point.k);
    if !point.new_flow {
        let alone = Machine { memory: f64::INFINITY, ..machine.clone() };
        part = uncoarsened(fine, &alone, &merges, part, &vec![1; count]);
    }
    let mut found = vec![];
    for (bottleneck, cuts) in chain(fine, &part, count, machine, machine.devices) {
        let mut stage_of = vec![0; count];
        let mut from = 0;
        for (stage, &(to, _)) in cuts.iter().enumerate() {
            stage_of[from..to].fill(stage);
            from = to;
        }
        let widths: Vec<usize> = cuts.iter().map(|cut| cut.1).collect();
        let stage: Vec<usize> = part.iter().map(|&cluster| stage_of[cluster]).collect();
        let fill: f64 = (0..fine.len()).map(|v| fine.seconds[v] / widths[stage[v]] as f64).sum();
        found.push(((machine.microbatches - 1.0) * bottleneck + fill, Partition { stage, widths }));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.truncate(KEPT);
    let refined = found.into_iter().map(|(_, partition)| {
        let Partition { stage, widths } = partition;
        let stage = if point.new_flow { uncoarsened(fine, machine, &merges, stage, &widths) } else { stage };
        Partition { stage, widths }
    });
    refined.collect()
}

/// Parts of vertices after refinement at every level, from coarse to fine.
fn uncoarsened(fine: &Fine, machine: &Machine, merges: &Merges, mut part: Vec<usize>, widths: &[usize]) -> Vec<usize> {
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
            let refined = Refinement::new(&quotient, machine, widths, own).run();
            (0..fine.len()).for_each(|v| part[v] = refined[cluster[v]]);
        }
        if count_now == fine.len() {
            return part;
        }
        count *= 2;
    }
}

//! Warm start: linear pipelines with the same number of devices on every stage, cut from the network's end.
//!
//! Not in the paper. If memory is small and many stages are needed, a search over coarse places finds no plan and one
//! over fine places takes long. Here a stage is as long as its memory and a bound on its compute allow, and the
//! smallest sufficient bound is found by bisection. Cuts start at the end, because the microbatches in flight in a
//! stage follow from the stages behind it. `O(positions · log(devices))` time for a chain, up to a constant.

use super::costs::{Costs, Recompute};
use plantui_core::search::Search;

/// Number of bisection steps for the bound on a stage's compute.
const BOUNDS: usize = 16;
/// A stage is not lengthened further once it does not fit at this many consecutive positions.
const MISFITS: usize = 8;

/// Linear pipeline: positions that bound each stage, from the first stage on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Devices of each stage.
    pub(super) replicas: u32,
    pub(super) stages: Vec<(usize, usize)>,
}

/// For 1, 2, 4, ... devices per stage: the linear pipeline whose longest stage is shortest, among those that bisection
/// finds. A warm start, without a bound.
pub(super) fn rows<'a>(
    costs: &'a Costs,
    (devices, widest): (u32, u32),
    recompute: Recompute,
    search: &'a Search,
) -> impl Iterator<Item = Row> + 'a {
    let doubled = std::iter::successors(Some(1u32), |replicas| replicas.checked_mul(2));
    doubled.take_while(move |&replicas| replicas <= devices.min(widest)).filter_map(move |replicas| {
        let most = (devices / replicas) as usize;
        let total_s = costs.compute_s(0, costs.end());
        // Feasibility is checked even after the deadline: any plan is better than none.
        let row = |bound_s: f64| cut(costs, replicas, most, bound_s, recompute);
        let mut best = row(total_s)?;
        let (mut too_little, mut enough) = (total_s / most as f64, total_s);
        for _ in (0..BOUNDS).take_while(|_| !search.cancelled()) {
            let bound_s = (too_little * enough).sqrt();
            match row(bound_s) {
                Some(stages) => (best, enough) = (stages, bound_s),
                None => too_little = bound_s,
            }
        }
        Some(Row { replicas, stages: best })
    })
}

/// Returns at most `most` stages that fit and compute at most `bound_s` seconds on one device each, if they suffice.
fn cut(costs: &Costs, replicas: u32, most: usize, bound_s: f64, recompute: Recompute) -> Option<Vec<(usize, usize)>> {
    let mut stages = vec![];
    let mut to = costs.end();
    while to > 0 {
        if stages.len() == most {
            return None;
        }
        let (mut longest, mut misfits) = (None, 0);
        for from in (0..to).rev() {
            if !costs.later(from).contains(to) {
                continue;
            }
            let fits = costs.compute_s(from, to) <= bound_s
                && costs.stage(from, to, replicas, stages.len(), recompute).is_some();
            if fits {
                (longest, misfits) = (Some(from), 0);
            } else {
                misfits += 1;
                if misfits == MISFITS {
                    break;
                }
            }
        }
        let from = longest?;
        stages.push((from, to));
        to = from;
    }
    stages.reverse();
    Some(stages)
}

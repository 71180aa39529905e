//! First plans: stages in a row with as many devices each, cut off from the network's end.
//!
//! Not the paper's. Where little memory asks for many stages, a coarse look finds no plan and a fine one takes long; here a stage is
//! as long as its memory and a bound on its compute allow, and the least bound with which the stages suffice is searched for.
//! From the end, since what is in flight in a stage follows from the stages behind it. `O(positions · log(devices))` time but for
//! a constant, for a chain.

use super::costs::{Costs, Recompute};
use crate::planner::Search;

/// Bounds on a stage's compute that are tried, each half way between one that was too small and one that was not.
const BOUNDS: usize = 16;
/// Positions in a row at which a stage does not fit, after which no longer one is tried.
const MISFITS: usize = 8;

/// Stages in a row, by the positions between which they lie, from the first on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Devices of each stage.
    pub(super) replicas: u32,
    pub(super) stages: Vec<(usize, usize)>,
}

/// For 1, 2, 4 and so on devices a stage the row with the least compute in its longest stage that was found, if any.
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
        // Whether there is a row at all is always looked for, whatever the deadline: a plan is better than none.
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

/// At most so many stages that fit and compute no longer than that on one device, if so many suffice.
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

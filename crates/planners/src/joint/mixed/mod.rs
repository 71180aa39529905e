//! Joint for clusters of several kinds of devices: the stages, kinds, tensor degrees, data degree and micro-batch with the
//! least iteration time.
//!
//! Stages are in a row. Each is on one kind with one tensor degree, and all have the same number of replicas. For each
//! number of microbatches only the smallest data degree is tried: a larger one takes more devices for the same steps, and
//! reduces gradients over more of them. Cases
//! are tried in the order of a lower bound, each by an exact dynamic program. The objective is the closed form
//! of [`plantui_core::family::mixed::iteration`]. `O(cases · states · labels · types · layers)`.

mod case;
mod labels;

use plantui_core::{family::mixed::iteration::KindPipeline, search::Search, workload::mixed::MixedProfile};

use case::Case;
use labels::{Labels, MOST_KINDS};

/// Plan with the least iteration time.
#[derive(Debug, Clone, PartialEq)]
pub struct MixedPlan {
    /// Its stages; `None` if nothing fits.
    pub pipeline: Option<KindPipeline>,
    /// Its iteration time, seconds.
    pub iteration_s: f64,
    /// Lower bound on all plans of the space, seconds.
    pub bound_s: f64,
    /// Cases that were searched.
    pub cases: usize,
    /// True if the search was stopped before its end.
    pub stopped: bool,
}

impl MixedPlan {
    const NONE: MixedPlan =
        MixedPlan { pipeline: None, iteration_s: f64::INFINITY, bound_s: f64::INFINITY, cases: 0, stopped: false };
}

/// More kinds of devices than are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("has {0} kinds of devices; at most {MOST_KINDS} are planned: leave some out")]
pub struct TooManyKinds(usize);

/// Data degrees, one for each number of microbatches of a replica: the smallest.
fn data_degrees(batch: u32, micro_batch: u32, devices: u32) -> Vec<u32> {
    let microbatches = |data: u32| batch.div_ceil(micro_batch.saturating_mul(data).max(1));
    let most = devices.min(batch);
    (1..=most).filter(|&data| data == 1 || microbatches(data) < microbatches(data - 1)).collect()
}

/// Plans a batch on a cluster.
///
/// # Errors
/// [`TooManyKinds`].
pub fn plan(profile: &MixedProfile, batch: u32, search: &Search) -> Result<MixedPlan, TooManyKinds> {
    if profile.kinds.len() > MOST_KINDS {
        return Err(TooManyKinds(profile.kinds.len()));
    }
    let mut sizes: Vec<u32> = profile.costs.iter().map(|costs| costs.micro_batch).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let layers = profile.output_bytes.len();
    let mut cases: Vec<(f64, Case<'_>)> = vec![];
    for &micro_batch in &sizes {
        for data in data_degrees(batch, micro_batch, profile.devices()) {
            if search.cancelled() {
                // Cases that are not there yet may hold anything.
                return Ok(MixedPlan { stopped: true, bound_s: 0.0, ..MixedPlan::NONE });
            }
            let case = Case::new(profile, batch, data, micro_batch);
            let rest = case.rest(0, layers);
            let bound_s = case.iteration_s(rest.slowest_s, rest.through_s, rest.reduction_s);
            if bound_s.is_finite() {
                cases.push((bound_s, case));
            }
        }
    }
    cases.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found = MixedPlan::NONE;
    for (number, (bound_s, case)) in cases.iter().enumerate() {
        if search.cancelled() {
            // Cases that were not searched may hold anything above their own bounds.
            found.stopped = true;
            found.bound_s = found.bound_s.min(*bound_s);
            break;
        }
        if *bound_s >= found.iteration_s {
            break;
        }
        search.report_fraction(number as f64 / cases.len() as f64);
        let result = Labels::new(case, batch, found.iteration_s).search(&|| search.cancelled());
        found.cases += 1;
        found.stopped |= result.stopped;
        found.bound_s = found.bound_s.min(if result.stopped { *bound_s } else { result.bound_s });
        if let Some((seconds, pipeline)) = result.best {
            found.iteration_s = seconds;
            found.pipeline = Some(pipeline);
        }
    }
    found.bound_s = found.bound_s.min(found.iteration_s);
    Ok(found)
}

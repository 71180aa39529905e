//! Joint for clusters of several kinds of devices: the stages, kinds, tensor degrees, data degree and micro-batch with the
//! least iteration time in closed form.
//!
//! Stages are in a row. Each is on one kind with one tensor degree, and all have the same number of replicas. Data degrees
//! and micro-batches are those that divide the batch. Under Sailor's rules any are allowed, and for each number of
//! microbatches the smallest data degree is tried, if replicas divide nothing: a larger one takes more devices for the same
//! steps, and reduces gradients over more of them. Cases are tried in the order of a lower bound, each by an exact dynamic program.
//! The objective is the closed form of [`plantui_core::family::mixed::iteration`].
//! `O(cases · states · labels · types · layers)`.

mod case;
mod labels;

use plantui_core::{
    cluster::{LimitKind, Limits},
    family::mixed::{iteration::KindPipeline, layout},
    search::Search,
    workload::mixed::{MixedProfile, TimeRule},
};

use super::settings::JointSettings;
use crate::{Infeasible, Outcome, Status, pipeline_options::Recompute};
use case::Case;
use labels::{Labels, MOST_KINDS};

/// Plans that are searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixedSpace {
    /// Devices of all kinds together, at most.
    pub devices: u32,
    /// Tensor degree of every stage; `None` leaves it free.
    pub tensor: Option<u32>,
    /// Replicas of every stage; `None` leaves them free.
    pub data: Option<u32>,
    /// Sequences of a microbatch; `None` leaves them free.
    pub micro_batch: Option<u32>,
    /// Number of stages; `None` leaves it free.
    pub stages: Option<usize>,
    /// Recomputation that all stages must have; `None` leaves it free.
    pub recompute: Option<bool>,
    /// True if all stages have one tensor degree, as engines run them.
    pub uniform: bool,
    /// Share of every device's memory that stays free.
    pub headroom: f64,
}

impl MixedSpace {
    /// All plans on so many devices.
    pub fn all(devices: u32) -> Self {
        MixedSpace {
            devices,
            tensor: None,
            data: None,
            micro_batch: None,
            stages: None,
            recompute: None,
            uniform: false,
            headroom: 0.0,
        }
    }

    fn of(settings: &JointSettings, limits: &Limits) -> Self {
        MixedSpace {
            devices: limits.devices,
            tensor: if settings.tensor_parallel { settings.degree } else { Some(1) },
            data: if settings.data_parallel { settings.data } else { Some(1) },
            micro_batch: settings.micro_batch,
            stages: settings.stages,
            recompute: match settings.recompute {
                Recompute::Auto | Recompute::AllOrNone => None,
                Recompute::Always => Some(true),
                Recompute::Never => Some(false),
            },
            uniform: settings.engine.is_some(),
            headroom: settings.headroom,
        }
    }

    /// Profile with the costs that plans of the space may use.
    fn narrowed(&self, profile: &MixedProfile) -> MixedProfile {
        let mut own = profile.clone();
        own.costs.retain(|costs| {
            self.tensor.is_none_or(|tensor| costs.tensor == tensor)
                && self.micro_batch.is_none_or(|size| costs.micro_batch == size)
                && self.recompute.is_none_or(|recompute| costs.recompute == recompute)
        });
        own.kinds.iter_mut().for_each(|kind| kind.memory_bytes *= 1.0 - self.headroom);
        own
    }
}

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

    /// Faster of two plans, with a bound on both spaces.
    fn better(self, other: MixedPlan) -> MixedPlan {
        let (bound_s, cases) = (self.bound_s.min(other.bound_s), self.cases + other.cases);
        let stopped = self.stopped || other.stopped;
        let faster = if other.iteration_s < self.iteration_s { other } else { self };
        MixedPlan { bound_s, cases, stopped, ..faster }
    }
}

/// More kinds of devices than are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("has {0} kinds of devices; at most {MOST_KINDS} are planned: leave some out")]
pub struct TooManyKinds(usize);

/// Data degrees to try: those with which whole microbatches divide the batch, or the smallest for each number of
/// microbatches.
fn data_degrees(profile: &MixedProfile, batch: u32, micro_batch: u32, space: &MixedSpace) -> Vec<u32> {
    if let Some(data) = space.data {
        let divides = batch.is_multiple_of(micro_batch.saturating_mul(data).max(1));
        return if divides || profile.rule == TimeRule::Sailor { vec![data] } else { vec![] };
    }
    let samples = |data: u32| micro_batch.saturating_mul(data).max(1);
    let most = profile.devices().min(space.devices).min(batch);
    let mut all = profile.costs.iter().flat_map(|costs| &costs.layers);
    let divides = all.any(|layer| layer.state_bytes.divided > 0.0 || layer.update_s.divided > 0.0);
    let tried = |&data: &u32| match profile.rule {
        TimeRule::Stages => batch.is_multiple_of(samples(data)),
        TimeRule::Sailor => data == 1 || divides || batch.div_ceil(samples(data)) < batch.div_ceil(samples(data - 1)),
    };
    (1..=most).filter(tried).collect()
}

/// Plans a batch on a cluster.
///
/// # Errors
/// [`TooManyKinds`].
pub fn plan(
    profile: &MixedProfile,
    batch: u32,
    space: &MixedSpace,
    search: &Search,
) -> Result<MixedPlan, TooManyKinds> {
    if profile.kinds.len() > MOST_KINDS {
        return Err(TooManyKinds(profile.kinds.len()));
    }
    let profile = space.narrowed(profile);
    if !space.uniform || space.tensor.is_some() {
        return Ok(plan_within(&profile, batch, space, search));
    }
    let mut degrees: Vec<u32> = profile.costs.iter().map(|costs| costs.tensor).collect();
    degrees.sort_unstable();
    degrees.dedup();
    let of_degree = |tensor: u32| {
        let space = MixedSpace { tensor: Some(tensor), headroom: 0.0, ..*space };
        plan_within(&space.narrowed(&profile), batch, &space, search)
    };
    Ok(degrees.into_iter().map(of_degree).fold(MixedPlan::NONE, MixedPlan::better))
}

fn plan_within(profile: &MixedProfile, batch: u32, space: &MixedSpace, search: &Search) -> MixedPlan {
    let mut sizes: Vec<u32> = profile.costs.iter().map(|costs| costs.micro_batch).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let layers = profile.output_bytes.len();
    let mut cases: Vec<(f64, Case<'_>)> = vec![];
    for &micro_batch in &sizes {
        for data in data_degrees(profile, batch, micro_batch, space) {
            if search.cancelled() {
                // Cases that are not there yet may hold anything.
                return MixedPlan { stopped: true, bound_s: 0.0, ..MixedPlan::NONE };
            }
            let case = Case::new(profile, (batch, space.devices), data, micro_batch);
            let rest = case.rest(0, layers);
            let all: Vec<u32> = profile.kinds.iter().map(|kind| kind.count).collect();
            let priced_s = case.priced_s(case.compute_left_s(layers, &all), 0.0, rest.reduction_s);
            let bound_s = case.iteration_s(rest.slowest_s, rest.through_s, rest.reduction_s).max(priced_s);
            if bound_s.is_finite() {
                cases.push((bound_s, case));
            }
        }
    }
    cases.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found = MixedPlan::NONE;
    for (bound_s, case) in &cases {
        if *bound_s >= found.iteration_s {
            break;
        }
        let result = Labels::new(case, batch, space.stages, found.iteration_s).first(&|| search.cancelled());
        if let Some((seconds, pipeline)) = result.best {
            found.iteration_s = seconds;
            found.pipeline = Some(pipeline);
        }
    }
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
        let result = Labels::new(case, batch, space.stages, found.iteration_s).search(&|| search.cancelled());
        found.cases += 1;
        found.stopped |= result.stopped;
        found.bound_s = found.bound_s.min(if result.stopped { *bound_s } else { result.bound_s });
        if let Some((seconds, pipeline)) = result.best {
            found.iteration_s = seconds;
            found.pipeline = Some(pipeline);
        }
    }
    found.bound_s = found.bound_s.min(found.iteration_s);
    found
}

/// Plans a batch under limits, with the planner's settings.
pub(super) fn outcome(profile: &MixedProfile, limits: &Limits, settings: &JointSettings, search: &Search) -> Outcome {
    let (batch, space) = (limits.samples(), MixedSpace::of(settings, limits));
    let found = match plan(profile, batch, &space, search) {
        Ok(found) => found,
        Err(error) => return Outcome::refused(format!("The workload {error}.")),
    };
    let Some(pipeline) = &found.pipeline else {
        return if found.stopped {
            Outcome::new(Status::Cancelled)
        } else {
            infeasible(profile, batch, &space, search)
        };
    };
    let proven = found.bound_s >= found.iteration_s * (1.0 - super::CLOSED);
    let status = match (found.stopped, proven) {
        (true, _) => Status::Cancelled,
        (false, true) => Status::Optimal,
        (false, false) => Status::Feasible,
    };
    let mut outcome = Outcome {
        plan: Some(layout::plan(profile, pipeline)),
        objective: Some(found.iteration_s),
        lower_bound: Some(found.bound_s).filter(|bound| *bound > 0.0),
        proven_among: Some("stages on one kind of device and one tensor degree each, all with as many replicas".into()),
        ..Outcome::new(status)
    };
    outcome.statistics.counts.push(("cases", found.cases as f64));
    for (kind, taken) in profile.kinds.iter().zip(pipeline.devices(profile.kinds.len())) {
        if taken < u64::from(kind.count) {
            let (count, id) = (kind.count, &kind.id);
            outcome.notes.push(format!("{taken} of {count} {id} are used: no searched plan with more is faster"));
        }
    }
    outcome
}

/// Outcome without a plan, with the limit in the way.
fn infeasible(profile: &MixedProfile, batch: u32, space: &MixedSpace, search: &Search) -> Outcome {
    let mut roomy = profile.clone();
    roomy.kinds.iter_mut().for_each(|kind| kind.memory_bytes = f64::MAX);
    let anyhow = plan(&roomy, batch, space, search).ok().and_then(|found| found.pipeline);
    let story = match anyhow {
        Some(_) => Infeasible {
            limits: vec![LimitKind::Devices],
            explanation: format!(
                "No cut of the layers fits the memory of {}: more devices, or a kind with more memory, would.",
                profile.kinds_text()
            ),
            ..Infeasible::default()
        },
        None => Infeasible {
            explanation: format!(
                "No kind has costs for these settings on enough devices: there are {}.",
                profile.kinds_text()
            ),
            ..Infeasible::default()
        },
    };
    Outcome { infeasible: Some(story), ..Outcome::new(Status::Infeasible) }
}

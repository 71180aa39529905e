//! Joint for clusters of several kinds of devices: the stages, kinds, tensor degrees, data degree and micro-batch with the
//! least iteration time in closed form.
//!
//! Stages are in a row. Each is on one kind with one tensor degree, and all have the same number of replicas. Data degrees
//! and micro-batches are those that divide the batch. Under Sailor's rules any are allowed, and for each number of
//! microbatches the smallest data degree is tried: replicas divide nothing there, and a larger one takes more devices for the
//! same steps, and reduces gradients over more of them. Cases are tried in the order of a lower bound, each by an exact
//! dynamic program.
//! The objective is the closed form of [`plantui_core::family::mixed::iteration`].
//! `O(cases · states · labels · types · layers)`.

mod case;
mod labels;

use plantui_core::{
    cluster::{LimitKind, Limits},
    family::mixed::{
        iteration::{KindPipeline, KindStageCost},
        layout,
    },
    plan::{Measure, Plan},
    search::Search,
    workload::mixed::{DeviceKind, MixedProfile, TimeRule},
};

use super::settings::{JointSettings, OPTIONS};
use crate::{Alternative, Infeasible, OptionError, OptionSpec, Outcome, Problem, Status, pipeline_options::Recompute};
use case::Case;
use labels::{Labels, MOST_KINDS};

/// Objective of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MixedGoal {
    /// Least iteration time.
    Time,
    /// Least cost of an iteration. Every kind has a price.
    Cost,
}

impl MixedGoal {
    /// Value of a plan of so many seconds, which costs so much.
    fn of(self, seconds: f64, cost: f64) -> f64 {
        if self == MixedGoal::Cost { cost } else { seconds }
    }
}

/// Share by which a plan may exceed a limit: sums of times and prices are off in their last digits.
const SLACK: f64 = 1e-9;

/// Plans that are searched, and for what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixedSpace {
    /// Objective.
    pub goal: MixedGoal,
    /// Iteration time, at most, seconds; infinite without a limit.
    pub most_s: f64,
    /// Price of the devices of a plan for an hour, at most; infinite without a limit.
    pub most_per_hour: f64,
    /// Cost of an iteration, at most; infinite without a limit.
    pub most_cost: f64,
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
    /// True if all stages recompute, or none.
    pub one_rule: bool,
    /// Share of every device's memory that stays free.
    pub headroom: f64,
    /// Share of the value within which a plan is good enough.
    pub gap: f64,
}

impl MixedSpace {
    /// All plans on so many devices.
    pub fn all(devices: u32) -> Self {
        MixedSpace {
            goal: MixedGoal::Time,
            most_s: f64::INFINITY,
            most_per_hour: f64::INFINITY,
            most_cost: f64::INFINITY,
            devices,
            tensor: None,
            data: None,
            micro_batch: None,
            stages: None,
            recompute: None,
            uniform: false,
            one_rule: false,
            headroom: 0.0,
            gap: 0.0,
        }
    }

    /// True if a time and a cost are within the limits.
    fn allows(&self, seconds: f64, cost: f64) -> bool {
        seconds <= self.most_s * (1.0 + SLACK) && cost <= self.most_cost * (1.0 + SLACK)
    }

    fn of(settings: &JointSettings, limits: &Limits) -> Self {
        let above_0 = |value: f64| if value > 0.0 { value } else { f64::INFINITY };
        MixedSpace {
            goal: if settings.cheapest { MixedGoal::Cost } else { MixedGoal::Time },
            most_s: above_0(settings.most_s),
            most_per_hour: above_0(settings.most_per_hour),
            most_cost: above_0(settings.most_cost),
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
            one_rule: settings.engine.is_some() || settings.recompute == Recompute::AllOrNone,
            headroom: settings.headroom,
            gap: 0.0,
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

/// Best plan.
#[derive(Debug, Clone, PartialEq)]
pub struct MixedPlan {
    /// Its stages; `None` if nothing fits.
    pub pipeline: Option<KindPipeline>,
    /// Its iteration time, seconds, or the cost of an iteration.
    pub value: f64,
    /// Lower bound on the value of all plans of the space.
    pub bound: f64,
    /// Cases that were searched.
    pub cases: usize,
    /// True if the search was stopped before its end.
    pub stopped: bool,
}

impl MixedPlan {
    const NONE: MixedPlan =
        MixedPlan { pipeline: None, value: f64::INFINITY, bound: f64::INFINITY, cases: 0, stopped: false };

    /// Better of two plans, with a bound on both spaces.
    fn better(self, other: MixedPlan) -> MixedPlan {
        let (bound, cases) = (self.bound.min(other.bound), self.cases + other.cases);
        let stopped = self.stopped || other.stopped;
        let better = if other.value < self.value { other } else { self };
        MixedPlan { bound, cases, stopped, ..better }
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
    let tried = |&data: &u32| match profile.rule {
        TimeRule::Stages => batch.is_multiple_of(samples(data)),
        TimeRule::Sailor => data == 1 || batch.div_ceil(samples(data)) < batch.div_ceil(samples(data - 1)),
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
    plan_below(profile, batch, space, f64::INFINITY, search)
}

/// Plans a batch on a cluster, if there is a plan with a value below `most`.
fn plan_below(
    profile: &MixedProfile,
    batch: u32,
    space: &MixedSpace,
    most: f64,
    search: &Search,
) -> Result<MixedPlan, TooManyKinds> {
    if profile.kinds.len() > MOST_KINDS {
        return Err(TooManyKinds(profile.kinds.len()));
    }
    let profile = space.narrowed(profile);
    let mut degrees: Vec<u32> = profile.costs.iter().map(|costs| costs.tensor).collect();
    degrees.sort_unstable();
    degrees.dedup();
    let tensors = if space.uniform && space.tensor.is_none() {
        degrees.into_iter().map(Some).collect()
    } else {
        vec![space.tensor]
    };
    let again =
        if space.one_rule && space.recompute.is_none() { vec![Some(false), Some(true)] } else { vec![space.recompute] };
    let mut found = MixedPlan::NONE;
    for &tensor in &tensors {
        for &recompute in &again {
            let one = MixedSpace { tensor, recompute, headroom: 0.0, ..*space };
            found = found.better(plan_within(&one.narrowed(&profile), batch, &one, most, search));
        }
    }
    Ok(found)
}

fn plan_within(profile: &MixedProfile, batch: u32, space: &MixedSpace, most: f64, search: &Search) -> MixedPlan {
    let mut sizes: Vec<u32> = profile.costs.iter().map(|costs| costs.micro_batch).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let layers = profile.output_bytes.len();
    let mut cases: Vec<(f64, Case<'_>)> = vec![];
    for &micro_batch in &sizes {
        for data in data_degrees(profile, batch, micro_batch, space) {
            if search.cancelled() {
                // Cases that are not there yet may hold anything.
                return MixedPlan { stopped: true, bound: 0.0, ..MixedPlan::NONE };
            }
            let case = Case::new(profile, (batch, space.devices), data, micro_batch);
            let rest = case.rest(0, layers);
            let priced_s = case.priced_s(case.compute_left_s(layers, &case.all()), 0.0, rest.reduction_s, 0);
            let bound_s = case.iteration_s(rest.slowest_s, rest.through_s, rest.reduction_s, 0).max(priced_s);
            let cost = case.cost(bound_s, 0.0, 0.0, layers);
            let bound = space.goal.of(bound_s, cost);
            if bound.is_finite() && space.allows(bound_s, cost) {
                cases.push((bound, case));
            }
        }
    }
    cases.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found = MixedPlan { value: most, ..MixedPlan::NONE };
    for (bound, case) in &cases {
        if *bound >= found.value * (1.0 - space.gap) {
            break;
        }
        if let Some((value, pipeline)) = Labels::new(case, batch, space, found.value).first(&|| search.cancelled()).best
        {
            found.value = value;
            found.pipeline = Some(pipeline);
        }
    }
    for (number, (bound, case)) in cases.iter().enumerate() {
        if search.cancelled() {
            // Cases that were not searched may hold anything above their own bounds.
            found.stopped = true;
            found.bound = found.bound.min(*bound);
            break;
        }
        if *bound >= found.value * (1.0 - space.gap) {
            break;
        }
        search.report_fraction(number as f64 / cases.len() as f64);
        let result = Labels::new(case, batch, space, found.value).search(&|| search.cancelled());
        found.cases += 1;
        found.stopped |= result.stopped;
        found.bound = found.bound.min(if result.stopped { *bound } else { result.bound });
        if let Some((value, pipeline)) = result.best {
            found.value = value;
            found.pipeline = Some(pipeline);
        }
    }
    found.bound = found.bound.min(found.value * (1.0 - space.gap));
    found
}

/// Times of the plans of the front, at most, over that of the fastest.
const SLOWER: [f64; 6] = [1.1, 1.25, 1.5, 2.0, 3.0, f64::INFINITY];

/// Share of the cost within which a plan of the front is good enough.
const FRONT_GAP: f64 = 0.01;

/// Plans that are slower than a fastest one, and cheaper the slower they may be. The cheapest for each time limit.
fn cheaper(
    profile: &MixedProfile,
    batch: u32,
    space: &MixedSpace,
    fastest: &MixedPlan,
    search: &Search,
) -> Vec<KindPipeline> {
    let cost = |pipeline: &KindPipeline| pipeline.time_and_cost(profile).and_then(|(_, cost)| cost);
    let mut front: Vec<KindPipeline> = fastest.pipeline.iter().cloned().collect();
    let Some(mut least) = front.first().and_then(cost) else { return vec![] };
    for slower in SLOWER {
        let most_s = (slower * fastest.value).min(space.most_s);
        let space = MixedSpace { goal: MixedGoal::Cost, most_s, gap: FRONT_GAP, ..*space };
        let found = plan_below(profile, batch, &space, least, search).ok().and_then(|found| found.pipeline);
        if let Some(pipeline) = found.filter(|_| !search.cancelled())
            && let Some(cost) = cost(&pipeline).filter(|cost| *cost < least * (1.0 - super::CLOSED))
        {
            least = cost;
            front.push(pipeline);
        }
    }
    front
}

/// Refuses options on the cost if a kind has no price.
///
/// # Errors
/// [`OptionError::Unsuited`] with the kind.
pub(super) fn check_prices(problem: &Problem, profile: &MixedProfile) -> Result<(), OptionError> {
    let options = &problem.options;
    let names = ["minimise", "most_per_hour", "most_cost"];
    let set = |spec: &&OptionSpec| options.get(spec.name).is_some_and(|value| value != spec.default_value());
    let asked = OPTIONS.iter().filter(|spec| names.contains(&spec.name)).find(set);
    let Some((spec, DeviceKind { id, count, .. })) = asked.zip(unpriced(profile)) else { return Ok(()) };
    Err(OptionError::Unsuited {
        workload: problem.workload.name.clone(),
        name: spec.name.into(),
        value: options.get(spec.name).map_or_else(String::new, |value| value.text()),
        why: format!("{id} has no price"),
        repair: format!("write --devices {count}x{id}:PRICE, for an hour"),
    })
}

/// First kind with devices and without a price.
fn unpriced(profile: &MixedProfile) -> Option<&DeviceKind> {
    profile.kinds.iter().find(|kind| kind.count > 0 && kind.price_per_hour.is_none())
}

/// Plans a batch under limits, with the planner's settings.
pub(super) fn outcome(profile: &MixedProfile, limits: &Limits, settings: &JointSettings, search: &Search) -> Outcome {
    let (batch, space) = (limits.samples(), MixedSpace::of(settings, limits));
    let limited = space.most_per_hour.is_finite() || space.most_cost.is_finite();
    if (limited || space.goal == MixedGoal::Cost || settings.lists_cheaper)
        && let Some(DeviceKind { id, count, .. }) = unpriced(profile)
    {
        return Outcome::refused(format!("{id} has no price: write --devices {count}x{id}:PRICE, for an hour."));
    }
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
    let measure = if space.goal == MixedGoal::Cost { Measure::IterationCost } else { Measure::PipelineTime };
    let planned = |pipeline: &KindPipeline| Plan { measure, ..layout::plan(profile, pipeline) };
    let proven = found.bound >= found.value * (1.0 - super::CLOSED);
    let status = match (found.stopped, proven) {
        (true, _) => Status::Cancelled,
        (false, true) => Status::Optimal,
        (false, false) => Status::Feasible,
    };
    let mut outcome = Outcome {
        plan: Some(planned(pipeline)),
        objective: Some(found.value),
        lower_bound: Some(found.bound).filter(|bound| *bound > 0.0),
        proven_among: Some("stages on one kind of device and one tensor degree each, all with as many replicas".into()),
        ..Outcome::new(status)
    };
    outcome.statistics.counts.push(("cases", found.cases as f64));
    if settings.lists_cheaper && status != Status::Cancelled {
        let alternative = |pipeline: KindPipeline| {
            let costs = pipeline.costs(profile)?;
            let memory_bytes = costs.iter().map(KindStageCost::memory_bytes).fold(0.0, f64::max);
            Some(Alternative { plan: planned(&pipeline), value: pipeline.iteration_s(profile, &costs), memory_bytes })
        };
        outcome.alternatives =
            cheaper(profile, batch, &space, &found, search).into_iter().filter_map(alternative).collect();
        if search.cancelled() {
            outcome.notes.push("the list of cheaper plans is not whole: the search was stopped".into());
        }
    }
    if settings.anywhere {
        outcome.notes.push("space=any changes nothing on several kinds of devices".into());
    }
    // With a limit besides the kinds, that may be the reason.
    let free = status == Status::Optimal && space == MixedSpace::all(profile.devices());
    for (kind, taken) in profile.kinds.iter().zip(pipeline.devices(profile.kinds.len())) {
        if taken < u64::from(kind.count) {
            let (count, id) = (kind.count, &kind.id);
            let why = if free { ": no plan with more is faster" } else { "" };
            outcome.notes.push(format!("{taken} of {count} {id} are used{why}"));
        }
    }
    outcome
}

/// Outcome without a plan, with the limit in the way.
fn infeasible(profile: &MixedProfile, batch: u32, space: &MixedSpace, search: &Search) -> Outcome {
    let free = MixedSpace { most_s: f64::INFINITY, most_per_hour: f64::INFINITY, most_cost: f64::INFINITY, ..*space };
    if free != *space && plan(profile, batch, &free, search).is_ok_and(|found| found.pipeline.is_some()) {
        let limits =
            [(space.most_s, "most_seconds"), (space.most_per_hour, "most_per_hour"), (space.most_cost, "most_cost")];
        let given = limits.into_iter().filter(|(most, _)| most.is_finite()).map(|(_, name)| name);
        let given = given.collect::<Vec<_>>().join(" and ");
        let explanation = format!("No plan keeps {given}: raise what is limited there.");
        let story = Infeasible { explanation, ..Infeasible::default() };
        return Outcome { infeasible: Some(story), ..Outcome::new(Status::Infeasible) };
    }
    let mut roomy = profile.clone();
    roomy.kinds.iter_mut().for_each(|kind| kind.memory_bytes = f64::MAX);
    let anyhow = plan(&roomy, batch, &free, search).ok().and_then(|found| found.pipeline);
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
                "No kind has costs for these settings on enough devices, with replicas and microbatches that divide a batch of \
                 {batch}: there are {}.",
                profile.kinds_text()
            ),
            ..Infeasible::default()
        },
    };
    Outcome { infeasible: Some(story), ..Outcome::new(Status::Infeasible) }
}

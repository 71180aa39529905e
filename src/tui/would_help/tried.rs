//! Re-plan and its simulated iteration, compared with that of the shown plan.
//!
//! One simulation per result, beside its re-plan. The list is sorted again with each, `O(answers log answers)`.

use crate::{
    cluster::LimitKind,
    family::training::{Fits, evidence},
    planner::Search,
    run::Simulation,
    simulate::{Setup, Timeline},
    study::explain::{Certainty, Change, ExplainedPlan, Replan},
    units,
};

/// Result of a query, with its simulated effect.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tui) struct Tried {
    /// The re-plan.
    pub answer: Replan,
    /// Its simulated iteration; `None` if there is no plan, or the simulation was stopped.
    pub simulated: Option<Simulated>,
    /// True if another option gains by giving up the margin of the memory model, which the shown plan has.
    pub closer: bool,
}

/// Simulated iteration of a re-plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::tui) struct Simulated {
    /// Samples per second relative to the shown plan: 1.2 is 1.2x faster.
    pub rate: f64,
    /// Iteration time, seconds, if the batch size is the same.
    pub batch_s: Option<f64>,
}

impl Tried {
    /// Simulates a result that can be applied, if the shown plan's rate `now` (samples per second) is known.
    pub(in crate::tui) fn new(
        base: &ExplainedPlan,
        answer: Replan,
        (setup, now): (Setup, Option<f64>),
        search: &Search,
    ) -> Self {
        let simulated = now.filter(|_| settable_one(&answer)).and_then(|now| {
            let timeline = timeline(base, Some(&answer), setup, search)?;
            let limits = answer.question.change.apply(&base.problem, base.planner).limits;
            let before = &base.problem.limits;
            let same = (limits.microbatches, limits.samples()) == (before.microbatches, before.samples());
            let rate = rate(&timeline) / now;
            let batch_s = same.then_some(timeline.iteration_s);
            rate.is_finite().then_some(Simulated { rate, batch_s })
        });
        let closer = !matches!(answer.question.change, Change::Limit(..)) && fits_closely(base, Some(&answer));
        Tried { simulated, closer: closer && !fits_closely(base, None), answer }
    }

    /// Speed-up: simulated, or else by the planner's model; `None` without a plan.
    pub(in crate::tui) fn rate(&self) -> Option<f64> {
        self.simulated.map(|simulated| simulated.rate).or_else(|| {
            let change = self.answer.change?;
            Some(if self.answer.less_is_better { 1.0 / (1.0 + change) } else { 1.0 + change })
        })
    }

    /// Relative difference, above 0 if the change makes the plan faster.
    pub(in crate::tui) fn gain(&self) -> Option<f64> {
        self.rate().map(|rate| rate - 1.0)
    }

    /// Text: `1.98x` if it helps, `5%` if it hurts. A value of the model has a sign unless it is proven.
    pub(in crate::tui) fn told(&self) -> String {
        let sign = match (self.simulated, self.answer.certainty) {
            (Some(_), _) | (None, Certainty::Exact) => "",
            (None, Certainty::AtLeast) => "≥",
            (None, Certainty::AtMost) => "≤",
            (None, Certainty::About) => "~",
        };
        match self.rate() {
            Some(rate) if rate >= 1.0 && rate.is_finite() => format!("{sign}{rate:.2}x"),
            Some(rate) if rate <= 0.5 => format!("{sign}{:.2}x", 1.0 / rate),
            Some(rate) => format!("{sign}{}", units::percent_whole(1.0 / rate - 1.0)),
            None => "no plan".into(),
        }
    }
}

/// True if a plan fits, but not with the error of the memory model added.
fn fits_closely(base: &ExplainedPlan, answer: Option<&Replan>) -> bool {
    let (problem, plan) = match answer.map(|answer| (answer, answer.plan.as_ref())) {
        Some((answer, Some(plan))) => (answer.question.change.apply(&base.problem, base.planner), plan),
        Some((_, None)) => return false,
        None => (base.problem.clone(), &base.plan),
    };
    let profile = problem.workload.training();
    let evidence = profile.and_then(|profile| evidence(profile, &problem.limits, plan));
    evidence.is_some_and(|evidence| evidence.fits == Fits::Close)
}

/// Samples per second of a simulated iteration, or iterations per second if the number of samples is unknown.
pub(in crate::tui) fn rate(timeline: &Timeline) -> f64 {
    if timeline.samples_per_s > 0.0 { timeline.samples_per_s } else { 1.0 / timeline.iteration_s }
}

/// Samples per second of the shown plan, or of a result's.
pub(in crate::tui) fn simulated(
    base: &ExplainedPlan,
    answer: Option<&Replan>,
    setup: Setup,
    search: &Search,
) -> Option<f64> {
    timeline(base, answer, setup, search).map(|timeline| rate(&timeline)).filter(|rate| *rate > 0.0 && rate.is_finite())
}

fn timeline(base: &ExplainedPlan, answer: Option<&Replan>, setup: Setup, search: &Search) -> Option<Timeline> {
    let (problem, plan) = match answer {
        Some(answer) => (answer.question.change.apply(&base.problem, base.planner), answer.plan.as_ref()?),
        None => (base.problem.clone(), &base.plan),
    };
    let simulation = Simulation::within(&problem.workload, &problem.limits, plan, setup, search).ok()?;
    Some(simulation.timeline)
}

/// Relative difference below which a result is left out as equal.
const TOLD: f64 = 5e-4;

/// Results that can be applied and have an effect, best first: simulated ones, then those of the model alone, then
/// those without a plan. Equal ones keep the order of the queries.
pub(super) fn settable(all: &[Tried]) -> Vec<Tried> {
    let told = |tried: &&Tried| !tried.closer && tried.gain().is_none_or(|gain| gain.abs() >= TOLD);
    let mut rows: Vec<Tried> = all.iter().filter(|tried| settable_one(&tried.answer)).filter(told).cloned().collect();
    let key = |tried: &Tried| (tried.simulated.is_some(), tried.rate().unwrap_or(f64::NEG_INFINITY));
    rows.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    let costlier: Vec<bool> = rows.iter().map(|row| rows.iter().any(|other| cheaper(other, row))).collect();
    rows.into_iter().zip(costlier).filter_map(|(row, costlier)| (!costlier).then_some(row)).collect()
}

/// True if one change has the same effect as another with less of the same limit. Does not apply to microbatches, which
/// cost nothing.
fn cheaper(one: &Tried, other: &Tried) -> bool {
    let limit = |tried: &Tried| match tried.answer.question.change {
        Change::Limit(LimitKind::Microbatches | LimitKind::Batch, _) => None,
        Change::Limit(kind, value) => Some((kind, value)),
        _ => None,
    };
    let (Some((kind, less)), Some((same, more))) = (limit(one), limit(other)) else { return false };
    let alike = |a: f64, b: f64| (a - b).abs() <= TOLD * a.abs().max(b.abs());
    let rates = one.rate().zip(other.rate());
    let simulated = one.simulated.is_some() == other.simulated.is_some();
    kind == same && less < more && simulated && rates.is_some_and(|(a, b)| alike(a, b))
}

fn settable_one(answer: &Replan) -> bool {
    answer.question.topic.bound().is_none() && answer.question.change.flags().is_some()
}

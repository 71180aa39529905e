//! A re-plan and its simulated batch, held against the batch of the plan at hand.
//!
//! One simulation an answer, beside its re-plan; the list is sorted anew with each, `O(answers log answers)`.

use crate::{
    cluster::LimitKind,
    planner::Search,
    run::Simulation,
    simulate::{Setup, Timeline},
    study::explain::{Answer, Base, Certainty, Change},
    units,
};

/// An answer, and what it is worth in the simulator.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tui) struct Tried {
    /// The re-plan.
    pub answer: Answer,
    /// Its simulated batch; `None` where there is no plan, or the simulator was given up.
    pub simulated: Option<Simulated>,
}

/// The simulated batch of a re-plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::tui) struct Simulated {
    /// Samples a second against those of the plan at hand: 1.2 is 1.2x faster.
    pub rate: f64,
    /// Time of the batch, seconds, where it is the same batch.
    pub batch_s: Option<f64>,
}

impl Tried {
    /// Simulates an answer, where it can be set and the plan at hand does `now` samples a second.
    pub(super) fn new(base: &Base, answer: Answer, (setup, now): (Setup, Option<f64>), search: &Search) -> Self {
        let simulated = now.filter(|_| settable_one(&answer)).and_then(|now| {
            let timeline = timeline(base, Some(&answer), setup, search)?;
            let limits = answer.question.change.apply(&base.problem, base.planner).limits;
            let before = &base.problem.limits;
            let same = (limits.microbatches, limits.samples()) == (before.microbatches, before.samples());
            let rate = rate(&timeline) / now;
            let batch_s = same.then_some(timeline.iteration_s);
            rate.is_finite().then_some(Simulated { rate, batch_s })
        });
        Tried { answer, simulated }
    }

    /// How many times as fast, simulated, or by the planner's model where there is no simulation; `None` without a plan.
    pub(in crate::tui) fn rate(&self) -> Option<f64> {
        self.simulated.map(|simulated| simulated.rate).or_else(|| {
            let change = self.answer.change?;
            Some(if self.answer.less_is_better { 1.0 / (1.0 + change) } else { 1.0 + change })
        })
    }

    /// The difference, above 0 where the change makes the plan faster.
    pub(in crate::tui) fn gain(&self) -> Option<f64> {
        self.rate().map(|rate| rate - 1.0)
    }

    /// `1.98x` where it helps, `5%` where it hurts; what only the model says has a sign where that is not proven.
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

/// Samples a second of a simulated batch; batches a second where it is not known what a sample is.
pub(super) fn rate(timeline: &Timeline) -> f64 {
    if timeline.samples_per_s > 0.0 { timeline.samples_per_s } else { 1.0 / timeline.iteration_s }
}

/// Samples a second of the plan at hand, or of an answer's.
pub(super) fn simulated(base: &Base, answer: Option<&Answer>, setup: Setup, search: &Search) -> Option<f64> {
    timeline(base, answer, setup, search).map(|timeline| rate(&timeline)).filter(|rate| *rate > 0.0 && rate.is_finite())
}

fn timeline(base: &Base, answer: Option<&Answer>, setup: Setup, search: &Search) -> Option<Timeline> {
    let (problem, plan) = match answer {
        Some(answer) => (answer.question.change.apply(&base.problem, base.planner), answer.plan.as_ref()?),
        None => (base.problem.clone(), &base.plan),
    };
    let simulation = Simulation::within(&problem.workload, &problem.limits, plan, setup, search).ok()?;
    Some(simulation.timeline)
}

/// Smaller differences would be told as none, and say nothing to who looks for what to set.
const TOLD: f64 = 5e-4;

/// What can be set of all answers and changes something, the best first: simulated ones before those that only the model knows, and those
/// without a plan last. Equals stay in the order they were asked.
pub(super) fn settable(all: &[Tried]) -> Vec<Tried> {
    let told = |tried: &&Tried| tried.gain().is_none_or(|gain| gain.abs() >= TOLD);
    let mut rows: Vec<Tried> = all.iter().filter(|tried| settable_one(&tried.answer)).filter(told).cloned().collect();
    let key = |tried: &Tried| (tried.simulated.is_some(), tried.rate().unwrap_or(f64::NEG_INFINITY));
    rows.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    let costlier: Vec<bool> = rows.iter().map(|row| rows.iter().any(|other| cheaper(other, row))).collect();
    rows.into_iter().zip(costlier).filter_map(|(row, costlier)| (!costlier).then_some(row)).collect()
}

/// Whether one change does what another does with less of the same limit. More microbatches cost nothing: they are kept.
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

fn settable_one(answer: &Answer) -> bool {
    answer.question.topic.bound().is_none() && answer.question.change.flags().is_some()
}

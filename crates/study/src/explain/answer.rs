//! Answer to a question: a re-plan, compared with the base.

use std::time::Duration;

use super::{Change, ChangeQuery, ExplainedPlan};
use crate::{losses::Losses, run};
use plantui_core::{
    cluster::Limits,
    family::{self, check},
    plan::{Measure, Plan, Score},
    search::Search,
    units,
    workload::Workload,
};
use plantui_planners::{Fault, Infeasible, Options, Outcome, Problem, REPORT, Status, for_engines};

/// Certainty of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// Both plans are proven optimal.
    Exact,
    /// The re-plan is not proven optimal: the gain may be larger.
    AtLeast,
    /// The base is not proven optimal: part of the gain may be possible without the change.
    AtMost,
    /// Neither plan is proven optimal.
    About,
}

/// Re-plan and its comparison with the base.
#[derive(Debug, Clone, PartialEq)]
pub struct Replan {
    /// Question that it answers.
    pub question: ChangeQuery,
    /// Label of the change.
    pub label: String,
    /// Status of the re-plan.
    pub status: Status,
    /// Value of its plan, in the base's unit; `None` without a plan, or with one of another measure.
    pub value: Option<f64>,
    /// Relative difference from the base's value: -0.1 is a tenth less.
    pub change: Option<f64>,
    /// True if smaller values are better.
    pub less_is_better: bool,
    /// Certainty of the difference.
    pub certainty: Certainty,
    /// Excess of each part of the simulated iteration in seconds, the largest first: warm-up, transfers, all-reduce,
    /// steady-state compute and waits. Only for plans measured by it; empty if the batch sizes differ.
    pub parts: Vec<(&'static str, f64)>,
    /// Plan of the re-plan.
    pub plan: Option<Plan>,
    /// Reason for a missing plan.
    pub reason: Option<String>,
    /// Seconds of the re-plan.
    pub seconds: f64,
    /// Bug of the planner in the re-plan; the answer is void then.
    pub fault: Option<Fault>,
}

impl Replan {
    /// Relative difference, positive if the change improves the plan.
    pub fn gain(&self) -> Option<f64> {
        self.change.map(|change| if self.less_is_better { -change } else { change })
    }

    /// Difference for people: `-10.9%`, `+38.6% at most`, `about -2.0%`.
    pub fn difference(&self) -> Option<String> {
        self.with_certainty(signed_percent(self.change?))
    }

    /// Difference in words, for places where a sign could be misread: `1.94x faster`, `5.6% slower at most`.
    pub fn in_words(&self) -> Option<String> {
        let change = self.change?;
        let rate = if self.less_is_better { 1.0 / (1.0 + change) } else { 1.0 + change };
        self.with_certainty(units::faster(rate))
    }

    fn with_certainty(&self, difference: String) -> Option<String> {
        Some(match (self.certainty, self.gain()? >= 0.0) {
            (Certainty::Exact, _) => difference,
            (Certainty::AtLeast, true) | (Certainty::AtMost, false) => format!("{difference} at least"),
            (Certainty::AtMost, true) | (Certainty::AtLeast, false) => format!("{difference} at most"),
            (Certainty::About, _) => format!("about {difference}"),
        })
    }
}

/// Percentage with its sign: `+4.2%`, `-0.3%`, `0.0%`.
fn signed_percent(share: f64) -> String {
    let tenths = (share * 1000.0).round() / 10.0;
    match tenths {
        0.0 => "0.0%".into(),
        tenths if tenths.abs() >= 1000.0 => format!("{tenths:+.0}%"),
        tenths => format!("{tenths:+.1}%"),
    }
}

/// Value of a plan, comparable under different limits: operations are converted to seconds.
pub(super) fn comparable_value(score: &Score, limits: &Limits) -> f64 {
    match score.measure {
        Measure::OperatorCost(_) if limits.flops_per_s.is_some() => score.value / limits.flops(),
        _ => score.value,
    }
}

/// Unit of a plan's value.
pub(super) fn unit(measure: Measure) -> &'static str {
    match measure {
        Measure::OperatorCost(_) => "s",
        _ => measure.unit(),
    }
}

/// Plan's value with its unit.
pub(super) fn show(measure: Measure, value: f64) -> String {
    match measure {
        Measure::OperatorCost(_) => format!("{}/iteration", units::seconds(value)),
        _ => measure.show(value),
    }
}

impl ExplainedPlan {
    /// Answers one question within the time `share`. Returns `None` as soon as `whole` is cancelled.
    pub fn replan(&self, question: &ChangeQuery, share: Option<Duration>, whole: &Search) -> Option<Replan> {
        let search = whole.part(share);
        let changed = question.change.apply(&self.problem, self.planner);
        let run = match question.change {
            Change::EngineFeasible => engine_feasible(&changed, self.score.measure, &search),
            _ => run::plan(self.planner, &changed, &search),
        };
        let (outcome, score, fault) = match run {
            Ok((outcome, score)) => (outcome, score, None),
            Err(fault) => (unanswered(&fault), None, Some(fault)),
        };
        if whole.cancelled() {
            return None;
        }
        let mut proven = outcome.status == Status::Optimal;
        let measured = score.filter(|score| score.is_valid() && self.comparable(score.measure, &question.change));
        let mut found =
            outcome.plan.zip(measured).map(|(plan, score)| (comparable_value(&score, &changed.limits), plan));
        // A proven answer covers the base plan; one that the options forbid, such as a dearer one, does not count.
        let is_open = matches!(outcome.status, Status::Feasible | Status::Cancelled);
        if let Some(kept) = self.base_under_limits(question, &changed.workload, &changed.limits).filter(|_| is_open)
            && found.as_ref().is_none_or(|(value, _)| self.is_better(kept.0, *value))
        {
            found = Some(kept);
            proven = false;
        }
        let (value, plan) = found.unzip();
        let base_proven = self.status == Status::Optimal;
        // Batches of different sizes are compared by their work.
        let work = self.batch(&self.problem.limits) / self.batch(&changed.limits);
        let label = question.change.label(&self.problem);
        let parts = match &plan {
            Some(plan) if work == 1.0 => self.parts(&changed, plan, whole),
            _ => vec![],
        };
        Some(Replan {
            question: question.clone(),
            label: if work == 1.0 { label } else { format!("{label} (per sample)") },
            status: outcome.status,
            value,
            change: value.map(|value| value / self.value() * work - 1.0).filter(|change| change.is_finite()),
            less_is_better: !self.score.measure.larger_is_better(),
            certainty: match (base_proven, proven) {
                (true, true) => Certainty::Exact,
                (true, false) => Certainty::AtLeast,
                (false, true) => Certainty::AtMost,
                (false, false) => Certainty::About,
            },
            parts,
            plan,
            reason: outcome.infeasible.map(|story| story.explanation),
            seconds: search.elapsed().as_secs_f64(),
            fault,
        })
    }

    /// Excess of each part of an iteration.
    fn parts(&self, changed: &Problem, plan: &Plan, whole: &Search) -> Vec<(&'static str, f64)> {
        if !family::of(&changed.workload).simulates(self.score.measure) {
            return vec![];
        }
        let lost = |problem: &Problem, plan: &Plan| {
            Losses::of_plan(&problem.workload, &problem.limits, plan, &|| whole.cancelled())
        };
        let both = lost(changed, plan).zip(lost(&self.problem, &self.plan));
        both.map(|(theirs, own)| theirs.beyond(&own)).unwrap_or_default()
    }

    /// Size of a batch, if plans are measured by iteration time.
    fn batch(&self, limits: &Limits) -> f64 {
        match self.score.measure {
            Measure::IterationTime | Measure::PipelineTime | Measure::IterationCost => {
                f64::from(family::of(&self.problem.workload).parts_of_a_batch(limits))
            }
            _ => 1.0,
        }
    }

    fn is_better(&self, value: f64, than: f64) -> bool {
        let apart = (value - than).abs() > 1e-9 * than.abs();
        apart && self.score.measure.is_better(value, than)
    }

    /// Base plan and its value under other limits, if it satisfies them.
    fn base_under_limits(&self, question: &ChangeQuery, workload: &Workload, limits: &Limits) -> Option<(f64, Plan)> {
        if !matches!(question.change, Change::Limit(..) | Change::EveryDegree) {
            return None;
        }
        let first_cpu = |limits| family::of(workload).first_cpu(limits);
        let plan = self.plan.clone().with_cpus_behind(first_cpu(&self.problem.limits), first_cpu(limits));
        let score = check(workload, limits, &plan);
        score.is_valid().then(|| (comparable_value(&score, limits), plan))
    }

    /// True if a value is comparable with the base's. A resource option is part of the measure.
    fn comparable(&self, measure: Measure, change: &Change) -> bool {
        match change {
            Change::Option(_, plantui_planners::OptionValue::Number(_)) | Change::FreeLinks => {
                measure.name() == self.score.measure.name()
            }
            _ => measure == self.score.measure,
        }
    }
}

/// Outcome of a planner that failed: nothing is known.
fn unanswered(fault: &Fault) -> Outcome {
    let explanation = format!("a bug of plantui: {fault}; {REPORT}");
    let story = Infeasible { explanation, ..Infeasible::default() };
    Outcome { infeasible: Some(story), ..Outcome::new(Status::Cancelled) }
}

/// Plan with the least simulated iteration time among those that training engines run unchanged, valued by `measure`. Nothing
/// is proven about that value.
fn engine_feasible(problem: &Problem, measure: Measure, search: &Search) -> Result<(Outcome, Option<Score>), Fault> {
    let Some(planner) = for_engines(&problem.workload) else {
        return Ok((Outcome::new(Status::Infeasible), None));
    };
    let options = Options::parse(planner.info().id, planner.options(), ["space=engine"]).unwrap_or_default();
    let (mut outcome, score) = run::plan(planner, &Problem { options, ..problem.clone() }, search)?;
    let Some(plan) = &mut outcome.plan else { return Ok((outcome, score)) };
    plan.measure = measure;
    let score = check(&problem.workload, &problem.limits, plan);
    outcome.objective = Some(score.value);
    outcome.not_proven();
    Ok((outcome, Some(score)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use plantui_core::{cluster::GivenLimits, workload};
    use plantui_planners::{find, liar::Liar};

    #[test]
    fn a_planner_that_fails_in_a_replan_ends_no_other() {
        let workload = Arc::new(workload::builtin());
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let planner = find("equal-partition").unwrap();
        let problem = Problem { workload, limits, options: Options::defaults(planner.options()) };
        let (outcome, score) = run::plan(planner, &problem, &Search::default()).unwrap();
        let base = ExplainedPlan::new(&Liar::Panics, &problem, &outcome, score.as_ref()).unwrap();
        let questions = base.questions();
        let answers = questions.iter().map(|question| base.replan(question, None, &Search::default()).unwrap());
        let (failed, others): (Vec<Replan>, Vec<Replan>) = answers.partition(|answer| answer.fault.is_some());
        assert!(failed.len() > 5 && others.iter().all(|answer| answer.question.change == Change::EngineFeasible));
        assert!(failed.iter().all(|answer| answer.reason.as_ref().is_some_and(|why| why.contains("no such table"))));
    }
}

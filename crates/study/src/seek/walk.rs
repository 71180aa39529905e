//! Test of values until the least is found: by bisection if that is sound, else from the least upwards.

use std::time::Duration;

use super::{SeekCertainty, SeekMethod, SeekProbe, SeekQuery, SeekResult, monotone, places};
use crate::run::Run;
use plantui_core::{
    cluster::LimitKind,
    family::kinds::KindCount,
    plan::{Measure, Score},
    search::Search,
    simulate::{LEAST_TIME, Setup},
    units,
};
use plantui_planners::{self as planner, Fault, Outcome, Planner, Problem, REPORT, Status};

/// Problem of a search, and its settings.
#[derive(Clone)]
pub struct SeekProblem<'a> {
    /// Planner of the re-plans.
    pub planner: &'static dyn Planner,
    /// Problem without the sought limit; the limit's value in it is the start of the search.
    pub problem: &'a Problem,
    /// Settings of the simulation.
    pub setup: Setup,
    /// Time limit of each re-plan.
    pub each: Option<Duration>,
}

/// Most refinements of an answer that is a plan's own memory; each is a re-plan.
const SHARPENINGS: usize = 24;
/// Factor to a size just below: a plan that needs all of it no longer fits.
const JUST_BELOW: f64 = 1.0 - 1e-9;

/// Finds the least value. `report` is called with each tested value. A search that ends early returns its results so
/// far.
pub fn seek(
    base: &SeekProblem<'_>,
    question: &SeekQuery,
    search: &Search,
    report: &mut dyn FnMut(&SeekProbe),
) -> SeekResult {
    let mut walk =
        SeekState { base, question, search, report, curve: vec![], run: None, nearest: None, stopped: false };
    let now = base.problem.limits.get(question.least);
    let begin = match question.among.as_deref() {
        Some([]) | None => now,
        Some(values) => values[values.len() / 2],
    };
    let objection = walk.probe(begin).and_then(|first| monotone::objection(question, &first));
    let (method, certainty) = match (objection, question.among.as_deref()) {
        (Some(why), values) => (SeekMethod::Sweep(why), walk.upwards(values, now)),
        (None, Some(values)) => (SeekMethod::Bisection, walk.halve_list(values)),
        (None, None) => (SeekMethod::Bisection, walk.halve(now)),
    };
    walk.finish(method, certainty)
}

struct SeekState<'a> {
    base: &'a SeekProblem<'a>,
    question: &'a SeekQuery,
    search: &'a Search,
    report: &'a mut dyn FnMut(&SeekProbe),
    curve: Vec<SeekProbe>,
    /// Run of the least value that reaches the goal.
    run: Option<(f64, Run)>,
    /// Run of the value nearest to the goal, as long as none reaches it.
    nearest: Option<(f64, f64, Run)>,
    stopped: bool,
}

impl SeekState<'_> {
    /// Plans with one value, at most once. `None` if the search has ended.
    fn probe(&mut self, value: f64) -> Option<SeekProbe> {
        if let Some(known) = self.curve.iter().find(|step| step.value == value) {
            return Some(known.clone());
        }
        if self.stopped || self.search.cancelled() {
            self.stopped = true;
            return None;
        }
        let SeekProblem { planner, problem, setup, each } = self.base;
        let part = self.search.part(*each);
        let limits = problem.limits.with(self.question.least, value);
        let found = Run::new(*planner, Problem { limits, ..(*problem).clone() }, &part);
        // A re-plan that ended with the whole search is not evidence for the value.
        let whole = |run: &Run| matches!(run.outcome.status, Status::Optimal | Status::Infeasible);
        if self.search.cancelled() && !found.as_ref().is_ok_and(whole) {
            self.stopped = true;
            return None;
        }
        let seconds = part.elapsed().as_secs_f64();
        let step = match found {
            Err(fault) => failed(value, fault, seconds),
            Ok(mut run) => {
                run.simulate(*setup, &part.follow(LEAST_TIME));
                let step = self.step(value, &run, seconds);
                self.keep(&step, run);
                step
            }
        };
        (self.report)(&step);
        self.curve.push(step.clone());
        Some(step)
    }

    fn step(&self, value: f64, run: &Run, seconds: f64) -> SeekProbe {
        let goal = &self.question.goal;
        let (figure, outcome) = (goal.of(run), &run.outcome);
        let plan = outcome.plan.as_ref().filter(|_| run.score.as_ref().is_some_and(Score::is_valid));
        let bound_fails = !goal.is_simulated()
            && goal.is_what_is_planned_for()
            && outcome.lower_bound.is_some_and(|bound| !goal.is_reached_by(bound));
        let reaches_goal = figure.is_some_and(|figure| goal.is_reached_by(figure));
        SeekProbe {
            value,
            status: outcome.status,
            figure,
            reaches_goal,
            ruled_out: !reaches_goal && (outcome.status == Status::Infeasible || bound_fails),
            stages: plan.map(|plan| plan.stages.len()),
            devices: plan.map(plantui_core::plan::Plan::devices_used),
            seconds,
            why: if figure.is_some() { String::new() } else { why(outcome) },
            fault: None,
        }
    }

    fn keep(&mut self, step: &SeekProbe, mut run: Run) {
        if step.reaches_goal {
            if self.run.as_ref().is_none_or(|(least, _)| step.value < *least) {
                self.run = Some((step.value, run));
            }
        } else if let Some(figure) = step.figure {
            // Nearer to the goal, or as near with a smaller value.
            let nearer = self.nearest.as_ref().is_none_or(|(value, than, _)| {
                self.question.goal.is_nearer(figure, *than) || (figure == *than && step.value < *value)
            });
            if nearer {
                run.simulation = None;
                self.nearest = Some((step.value, figure, run));
            }
        }
    }

    /// Finds the least value of a list by bisection.
    fn halve_list(&mut self, values: &[f64]) -> SeekCertainty {
        let (mut fails, mut holds) = (None, values.len());
        loop {
            let first = fails.map_or(0, |place: usize| place + 1);
            if first >= holds {
                break;
            }
            let middle = first.midpoint(holds - 1);
            match self.probe(values[middle]) {
                None => return stopped(),
                Some(step) if step.reaches_goal => holds = middle,
                Some(_) => fails = Some(middle),
            }
        }
        fails.map_or(SeekCertainty::Proven, |place| self.proven_at(values[place]))
    }

    /// Finds the least value by doubling or halving from the current one, and then by bisection.
    fn halve(&mut self, now: f64) -> SeekCertainty {
        let kind = self.question.least;
        let (least, most) = (places::least(kind, now), places::most(kind, now).min(self.cap()));
        let Some(first) = self.probe(now) else { return stopped() };
        let (mut fails, mut holds) = (None, None);
        if first.reaches_goal {
            holds = Some(self.snapped(&first));
            let mut next = now;
            while next > least && fails.is_none() {
                next = self.further(kind, next.min(holds.unwrap_or(next)), least, false);
                let Some(step) = self.probe(next) else { return stopped() };
                if step.reaches_goal { holds = Some(self.snapped(&step)) } else { fails = Some(next) }
            }
        } else {
            fails = Some(now);
            if !kind.is_count() {
                // Test without any limit first: if that fails, every value fails.
                let Some(step) = self.probe(most) else { return stopped() };
                if !step.reaches_goal {
                    return self.proven_at(most);
                }
                holds = Some(self.snapped(&step)).filter(|&size| size < most);
            }
            let mut next = now;
            while next < most && holds.is_none_or(|holds| next * 2.0 < holds) {
                next = self.further(kind, next, most, true);
                let Some(step) = self.probe(next) else { return stopped() };
                if step.reaches_goal {
                    holds = Some(self.snapped(&step));
                    break;
                }
                fails = Some(next);
            }
        }
        let Some(mut holds) = holds else { return self.proven_at(most) };
        let Some(mut fails) = fails else { return SeekCertainty::Proven };
        while let Some(middle) = places::middle(kind, fails, holds) {
            let Some(step) = self.probe(middle) else { return stopped() };
            if step.reaches_goal { holds = self.snapped(&step) } else { fails = middle }
        }
        self.settle(holds, fails)
    }

    /// Next value outwards: double or half, and finally the end.
    fn further(&self, kind: LimitKind, from: f64, end: f64, up: bool) -> f64 {
        // Doubling the largest size would mean no limit, and half of no limit is no limit.
        let next = match (up, from * 2.0) {
            (true, twice) if twice > units::LARGEST => end,
            (true, twice) => twice.max(1.0),
            (false, _) => from.min(units::LARGEST) / 2.0,
        };
        let next = if kind.is_count() { next.floor() } else { next };
        if up { next.min(end) } else { next.max(end) }
    }

    /// Amount of the limit that a successful plan uses: the plan is valid with this amount too.
    fn snapped(&self, step: &SeekProbe) -> f64 {
        let Some((_, run)) = self.run.as_ref().filter(|(value, _)| *value == step.value) else { return step.value };
        let Some(score) = &run.score else { return step.value };
        match self.question.least {
            LimitKind::Memory if self.question.goal.measure != Measure::IterationTime => {
                let peak = score.peak_memory_bytes();
                if peak > 0.0 { peak.min(step.value) } else { step.value }
            }
            LimitKind::Devices if score.measure == Measure::TimePerSample => {
                step.devices.map_or(step.value, f64::from).min(step.value)
            }
            _ => step.value,
        }
    }

    /// Makes the answer a tested value; for memory, refines it to the last byte.
    fn settle(&mut self, mut holds: f64, mut fails: f64) -> SeekCertainty {
        for _ in 0..SHARPENINGS {
            let Some(step) = self.probe(holds) else { return stopped() };
            if !step.reaches_goal || self.question.least != LimitKind::Memory {
                break;
            }
            let below = holds * JUST_BELOW;
            if below <= fails {
                break;
            }
            let Some(step) = self.probe(below) else { return stopped() };
            if !step.reaches_goal {
                fails = below;
                break;
            }
            holds = self.snapped(&step);
        }
        self.proven_at(fails)
    }

    /// Certainty that a value and every smaller one fail.
    fn proven_at(&self, fails: f64) -> SeekCertainty {
        let ruled_out = self.curve.iter().any(|step| step.value >= fails && step.ruled_out && !step.reaches_goal);
        if ruled_out {
            return SeekCertainty::Proven;
        }
        let shown = self.question.least.format(fails);
        let kind = self.question.least.label();
        SeekCertainty::Open(format!(
            "the re-plan with {kind} {shown} stopped early or failed, so a smaller value may do; give each more time \
            (--each)"
        ))
    }

    /// Largest value that can change a plan: of devices, those that the kinds have together.
    fn cap(&self) -> f64 {
        match &KindCount::of(&self.base.problem.workload)[..] {
            [] => f64::INFINITY,
            _ if self.question.least != LimitKind::Devices => f64::INFINITY,
            kinds => f64::from(KindCount::sum(kinds)),
        }
    }

    /// Tests values upwards until one reaches the goal, then the values just below it.
    fn upwards(&mut self, values: Option<&[f64]>, now: f64) -> SeekCertainty {
        let kind = self.question.least;
        let steps = || places::ladder(kind, now).into_iter().filter(|value| *value <= self.cap()).collect();
        let all = values.map_or_else(steps, <[f64]>::to_vec);
        let (mut before, mut found) = (None, None);
        for &value in &all {
            let Some(step) = self.probe(value) else { return stopped() };
            if step.reaches_goal {
                found = Some(value);
                break;
            }
            before = Some(value);
        }
        if let (Some(low), Some(high), None) = (before, found, values) {
            for value in places::between(kind, low, high) {
                let Some(step) = self.probe(value) else { return stopped() };
                if step.reaches_goal {
                    found = Some(value);
                    break;
                }
            }
        }
        let below = |step: &&SeekProbe| found.is_none_or(|found| step.value < found);
        let asked = self.curve.iter().filter(below).count();
        let Some(found) = found else {
            return SeekCertainty::Open(format!("{asked} values of {} were planned", kind.label()));
        };
        let there_are = values.map_or_else(
            || if kind.is_count() { found - places::least(kind, now) } else { f64::INFINITY },
            |values| values.iter().filter(|&&value| value < found).count() as f64,
        );
        if asked as f64 >= there_are {
            return SeekCertainty::EveryValueTested;
        }
        SeekCertainty::Open(format!("{asked} of the smaller values were planned and fail; one between them may do"))
    }

    fn finish(mut self, method: SeekMethod, certainty: SeekCertainty) -> SeekResult {
        self.curve.sort_by(|a, b| a.value.total_cmp(&b.value));
        let answer = self.run.as_ref().map(|(value, _)| *value);
        let fails = |step: &&SeekProbe| !step.reaches_goal && answer.is_none_or(|answer| step.value < answer);
        let below = self.curve.iter().filter(fails).map(|step| step.value).next_back();
        let run = self.run.map(|(_, run)| run).or(self.nearest.map(|(_, _, run)| run));
        let Problem { workload, options, .. } = self.base.problem;
        let own = run.as_ref().and_then(|run| run.outcome.proven_among.clone());
        let among = own.or_else(|| planner::among(self.base.planner, workload, options, None));
        SeekResult {
            question: self.question.clone(),
            planner: self.base.planner,
            initial_value: self.base.problem.limits.get(self.question.least),
            method,
            answer,
            below,
            certainty,
            among,
            run,
            stopped: self.stopped,
            curve: self.curve,
        }
    }
}

fn stopped() -> SeekCertainty {
    SeekCertainty::Open("stopped before all the values that decide it were planned".into())
}

fn why(outcome: &Outcome) -> String {
    match (&outcome.infeasible, outcome.status) {
        (Some(story), _) => story.explanation.clone(),
        (None, Status::Cancelled) => "stopped before a plan was found".into(),
        (None, _) => "no figure".into(),
    }
}

fn failed(value: f64, fault: Fault, seconds: f64) -> SeekProbe {
    SeekProbe {
        value,
        status: Status::Cancelled,
        figure: None,
        reaches_goal: false,
        ruled_out: false,
        stages: None,
        devices: None,
        seconds,
        why: format!("a bug of plantui: {fault}; {REPORT}"),
        fault: Some(fault),
    }
}

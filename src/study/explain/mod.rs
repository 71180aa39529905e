//! What limits a plan, what would help, and what else could be run: every figure is that of a re-plan.
//!
//! A [`Base`] is a plan to explain. It raises [`Question`]s, each the same problem with one [`Change`], in the order in
//! which answers tend to matter; [`Base::ask`] plans one and holds it against the base; [`Explanation`] puts answers
//! together:
//!
//! * *what binds*: a limit taken away (memory, links, the divisors of the microbatch count, tensor degrees that nodes lack)
//!   or doubled (devices). It binds if the plan gets better, and the difference between both plans says how: see [`Cause`];
//! * *what would help*: one limit or option moved to the next value that makes sense;
//! * *the next best*: what else could be run under the same limits, and how much worse it is.
//!
//! No planner is known by name: questions come from the limits, options and [tunables](crate::planner::Tunable) that a planner
//! declares. One re-plan for each question, so the cost is about thirty times that of the plan; a deadline for each keeps it
//! bounded. Where a changed limit leaves the plan at hand valid and the re-plan found nothing
//! better, that plan is the answer, so a search that was cut short never makes more devices look worse.

mod answer;
mod bottleneck;
mod cause;
mod change;
mod question;

use crate::{
    cluster::LimitKind,
    family,
    plan::{Plan, Score},
    planner::{Outcome, Planner, Problem, Status},
    workload::Workload,
};

pub use answer::{Answer, Certainty};
pub use bottleneck::{Bottleneck, BusyLink, Part, stage_name};
pub use cause::{Cause, CauseKind};
pub use change::Change;
pub use question::{Question, Topic};

/// Smaller differences than this are none, relative.
pub const NOTICEABLE: f64 = 5e-4;

/// A plan to explain, with what it is the answer to.
#[derive(Clone)]
pub struct Base {
    /// Who planned.
    pub planner: &'static dyn Planner,
    /// What was asked.
    pub problem: Problem,
    /// How it ended.
    pub status: Status,
    /// The plans that the proof speaks of, where those are not all.
    pub proven_among: Option<String>,
    /// The plan.
    pub plan: Plan,
    /// Its independent score.
    pub score: Score,
}

impl Base {
    /// The base of a planner's outcome; `None` where there is no valid plan.
    pub fn new(
        planner: &'static dyn Planner,
        problem: &Problem,
        outcome: &Outcome,
        score: Option<&Score>,
    ) -> Option<Self> {
        let score = score.filter(|score| score.is_valid())?.clone();
        let plan = outcome.plan.clone()?;
        let proven_among = outcome.proven_among.clone();
        Some(Base { planner, problem: problem.clone(), status: outcome.status, proven_among, plan, score })
    }

    /// What the plan is worth, in the unit of [`Base::show`].
    pub fn value(&self) -> f64 {
        answer::worth(&self.score, &self.problem.limits)
    }

    /// The unit of values.
    pub fn unit(&self) -> &'static str {
        answer::unit(self.score.measure)
    }

    /// A value with its unit. Operators are told in seconds, since a rate of operations may be what is moved.
    pub fn show(&self, value: f64) -> String {
        answer::show(self.score.measure, value)
    }
}

/// The limits that a planner's plans of a workload must keep: its own, unless it converts.
pub fn limits_of(planner: &dyn Planner, workload: &Workload) -> &'static [LimitKind] {
    if planner.is_native(workload) { planner.limits_for(workload) } else { family::of(workload).limits() }
}

/// Everything there is to say about a plan.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// Answers as they came.
    answers: Vec<Answer>,
}

impl Explanation {
    /// Adds an answer.
    pub fn add(&mut self, answer: Answer) {
        self.answers.push(answer);
    }

    /// All answers, as they came.
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// What binds, the most costly first.
    pub fn causes(&self, base: &Base) -> Vec<Cause> {
        let all = &self.answers;
        let mut causes: Vec<Cause> = all.iter().filter_map(|answer| cause::cause(base, answer, all)).collect();
        causes.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        causes
    }

    /// Limits that were taken away without effect, as they are called.
    pub fn free(&self, base: &Base) -> Vec<&'static str> {
        let asked = self.answers.iter().filter(|answer| answer.gain().is_some());
        asked
            .filter(|answer| cause::cause(base, answer, &self.answers).is_none())
            .filter_map(|answer| answer.question.topic.bound())
            .map(CauseKind::title)
            .collect()
    }

    /// What would help or hurt: limits that were moved and options that give a better plan, the best first.
    pub fn help(&self) -> Vec<&Answer> {
        let better = |answer: &Answer| answer.gain().is_some_and(|gain| gain > NOTICEABLE);
        self.sorted(|answer| match answer.question.topic {
            Topic::Limit => true,
            Topic::Option => better(answer),
            Topic::Binds(_) | Topic::NextBest => false,
        })
    }

    /// What else could be run under the same limits, the best first.
    pub fn next_best(&self) -> Vec<&Answer> {
        let better = |answer: &Answer| answer.gain().is_some_and(|gain| gain > NOTICEABLE);
        self.sorted(|answer| match answer.question.topic {
            Topic::NextBest => true,
            Topic::Option => !better(answer),
            Topic::Binds(_) | Topic::Limit => false,
        })
    }

    fn sorted(&self, wanted: impl Fn(&Answer) -> bool) -> Vec<&Answer> {
        let mut rows: Vec<&Answer> = self.answers.iter().filter(|answer| wanted(answer)).collect();
        let key = |answer: &Answer| answer.gain().unwrap_or(f64::NEG_INFINITY);
        // Stable: equals stay in the order they were asked.
        rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
        rows
    }
}

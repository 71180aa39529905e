//! Asks for the least of a limit with which a goal is reached: `least devices for time_per_sample<=25ms`.
//!
//! Every value that is looked at is a re-plan, checked as any plan, and simulated where the goal is a simulated figure.
//! Where the answer is monotone, that is, where more of the limit never makes the planner's proven best worse
//! (`monotone`), it is found by bisection: `O(log n)` re-plans for `n` values, and everything below the answer is known
//! to fail without being asked. Elsewhere values are asked from the least upwards until one reaches the goal; what was
//! asked is told, and nothing is claimed of what was not. Beside the re-plans nothing takes time; of their plans only the
//! best so far is kept.

mod goal;
mod monotone;
mod places;
mod walk;

use crate::{
    cluster::LimitKind,
    planner::{Fault, Planner, Status},
    run::Run,
    units,
};

pub use goal::{Figure, Goal, GoalError, example, names};
pub use walk::{Asked, seek};

/// The limits that a question may ask the least of.
pub const SOUGHT: [LimitKind; 4] =
    [LimitKind::Devices, LimitKind::Memory, LimitKind::Bandwidth, LimitKind::Microbatches];

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The least of what.
    pub least: LimitKind,
    /// For what.
    pub goal: Goal,
    /// The values that may be the answer, ascending; `None`: all there are.
    pub among: Option<Vec<f64>>,
}

impl Question {
    /// In words: `least devices for planned time per sample at most 25.00 ms/sample`.
    pub fn told(&self) -> String {
        format!("least {} for {}", self.least.label(), self.goal.told())
    }
}

/// One value that was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The limit's value.
    pub value: f64,
    /// How planning ended.
    pub status: Status,
    /// The goal's figure there, if there is a plan.
    pub figure: Option<f64>,
    /// Whether the plan reaches the goal.
    pub holds: bool,
    /// Whether it is proven that no plan of the planner's does: there is none at all, or the bound on the best fails, too.
    pub ruled_out: bool,
    /// Stages of the plan.
    pub stages: Option<usize>,
    /// Devices that it uses.
    pub devices: Option<u32>,
    /// Seconds that the re-plan took.
    pub seconds: f64,
    /// Why there is no figure; else empty.
    pub why: String,
    /// What the planner did that is a bug.
    pub fault: Option<Fault>,
}

/// How the values to ask were chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Method {
    /// Halving, since more of the limit never makes the best plan worse.
    Bisection,
    /// From the least upwards, for the reason told.
    Sweep(String),
}

/// How sure it is that no smaller value does.
#[derive(Debug, Clone, PartialEq)]
pub enum Certainty {
    /// Proven for every smaller value.
    Proven,
    /// Every smaller value there is was asked, and the planner's plan there fails.
    EveryAsked,
    /// What stands in the way, a sentence.
    Open(String),
}

/// What came of a question.
pub struct Sought {
    /// What was asked.
    pub question: Question,
    /// Who planned.
    pub planner: &'static dyn Planner,
    /// What the limit was where the question was asked: other values of it are told in its unit.
    pub stood: f64,
    /// How the values were chosen.
    pub method: Method,
    /// The values that were asked, ascending: the curve walked.
    pub curve: Vec<Step>,
    /// The least value found that reaches the goal.
    pub answer: Option<f64>,
    /// The largest value asked below it (without an answer: of all) that fails.
    pub below: Option<f64>,
    /// How sure it is that no smaller value does, or without an answer, that none does at all.
    pub certainty: Certainty,
    /// The plans that a proof speaks of, where those are not all.
    pub among: Option<String>,
    /// The plan of the answer, or of the value that comes nearest to the goal.
    pub run: Option<Run>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

impl Sought {
    /// The step of the answer, or without one, that which comes nearest to the goal (of several the least of the limit).
    pub fn nearest(&self) -> Option<&Step> {
        if let Some(answer) = self.answer {
            return self.curve.iter().find(|step| step.value == answer);
        }
        let goal = &self.question.goal;
        self.curve.iter().filter(|step| step.figure.is_some()).reduce(|best, step| {
            let nearer = step.figure.zip(best.figure).is_some_and(|(figure, than)| goal.is_nearer(figure, than));
            if nearer { step } else { best }
        })
    }

    /// What is known where the certainty is [`Certainty::Proven`], in words that say of which plans: `proven: no plan reaches
    /// the goal with less`, `proven among contiguous splits in a row: none reaches the goal with less`.
    pub fn proof(&self) -> String {
        let less = if self.answer.is_some() { " with less" } else { "" };
        match &self.among {
            None => format!("proven: no plan reaches the goal{less}"),
            Some(plans) => format!("proven among {plans}: none reaches the goal{less}"),
        }
    }

    /// A value of the limit: `52`, `7.42 GiB`, `1.93 GB/s`.
    pub fn shown(&self, value: f64) -> String {
        match self.question.least {
            LimitKind::Memory | LimitKind::Bandwidth if value.is_infinite() => "unlimited".into(),
            LimitKind::Memory => units::bytes_like(value, self.stood),
            LimitKind::Bandwidth => units::bandwidth_like(value, self.stood),
            kind => kind.format(value),
        }
    }

    /// A value of the limit with what it counts, as it reads in a sentence: `52 devices`, `7.42 GiB memory`.
    pub fn told(&self, value: f64) -> String {
        match self.question.least {
            kind @ (LimitKind::Memory | LimitKind::Bandwidth) if value.is_infinite() => {
                format!("unlimited {}", kind.label())
            }
            LimitKind::Memory => format!("{} memory", self.shown(value)),
            LimitKind::Bandwidth => self.shown(value),
            kind => kind.counted(value),
        }
    }

    /// Flags that set the answer: `--devices 42`.
    pub fn flags(&self) -> Option<String> {
        self.answer.map(|value| flags(self.question.least, value))
    }
}

/// The flag that sets a limit to a value, to the last byte.
pub fn flags(kind: LimitKind, value: f64) -> String {
    let shown = kind.format(value);
    let exact = match kind.parse(&shown) {
        Ok(read) if read == value => shown.replace(' ', ""),
        _ => units::exact_number(value.min(units::LARGEST)),
    };
    format!("{} {exact}", kind.flag())
}

//! Search for the least value of a limit that reaches a goal: `least devices for time_per_sample<=25ms`.
//!
//! Every tested value is a re-plan, checked like any plan, and simulated if the goal is a simulated figure. The search
//! bisects if it is monotone, that is, if more of the limit never makes the planner's proven optimum worse
//! (`monotone`). Then `n` values need `O(log n)` re-plans, and all values below the answer are known to fail. Otherwise
//! it tests values upwards from the least until one reaches the goal; it lists the tested values and claims nothing
//! about others. Only the re-plans take time, and only the best plan so far is kept.

mod goal;
mod monotone;
mod places;
mod walk;

use crate::run::Run;
use plantui_core::{cluster::LimitKind, units};
use plantui_planners::{Fault, Planner, Status};

pub use goal::{Goal, GoalError, GoalFigure, example, names};
pub use walk::{SeekProblem, seek};

/// Limits that can be minimised.
pub const SOUGHT: [LimitKind; 4] =
    [LimitKind::Devices, LimitKind::Memory, LimitKind::Bandwidth, LimitKind::Microbatches];

/// Question of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SeekQuery {
    /// Limit to minimise.
    pub least: LimitKind,
    /// Goal to reach.
    pub goal: Goal,
    /// Values that the answer may have, ascending; `None`: all values.
    pub among: Option<Vec<f64>>,
}

impl SeekQuery {
    /// Question in words: `least devices for planned time per sample at most 25.00 ms/sample`.
    pub fn summary(&self) -> String {
        format!("least {} for {}", self.least.label(), self.goal.summary())
    }
}

/// Value that was tested.
#[derive(Debug, Clone, PartialEq)]
pub struct SeekProbe {
    /// Value of the limit.
    pub value: f64,
    /// Status of the re-plan.
    pub status: Status,
    /// Figure of the goal, if there is a plan.
    pub figure: Option<f64>,
    /// True if the plan reaches the goal.
    pub reaches_goal: bool,
    /// True if the value is proven to fail: there is no plan, or even the bound on the best plan misses the goal.
    pub ruled_out: bool,
    /// Number of stages of the plan.
    pub stages: Option<usize>,
    /// Number of devices that the plan uses.
    pub devices: Option<u32>,
    /// Seconds of the re-plan.
    pub seconds: f64,
    /// Reason for a missing figure; else empty.
    pub why: String,
    /// Bug of the planner.
    pub fault: Option<Fault>,
}

/// Method of the search.
#[derive(Debug, Clone, PartialEq)]
pub enum SeekMethod {
    /// Bisection: more of the limit never makes the best plan worse.
    Bisection,
    /// From the least value upwards; the field is the reason.
    Sweep(String),
}

/// Certainty that no smaller value reaches the goal.
#[derive(Debug, Clone, PartialEq)]
pub enum SeekCertainty {
    /// Proven for every smaller value.
    Proven,
    /// Every smaller value was tested, and the planner's plan fails there.
    EveryValueTested,
    /// Reason why it is uncertain, as a sentence.
    Open(String),
}

/// Result of a search.
pub struct SeekResult {
    /// Question of the search.
    pub question: SeekQuery,
    /// Planner of the re-plans.
    pub planner: &'static dyn Planner,
    /// Limit's value before the search; other values are shown in its unit.
    pub initial_value: f64,
    /// Method that was used.
    pub method: SeekMethod,
    /// Tested values, ascending.
    pub curve: Vec<SeekProbe>,
    /// Least value found that reaches the goal.
    pub answer: Option<f64>,
    /// Largest failing value below the answer; without an answer, the largest of all.
    pub below: Option<f64>,
    /// Certainty that no smaller value reaches the goal; without an answer, that no value does.
    pub certainty: SeekCertainty,
    /// Plans that a proof covers, if not all.
    pub among: Option<String>,
    /// Run of the answer, or of the value nearest to the goal.
    pub run: Option<Run>,
    /// True if the search was stopped early.
    pub stopped: bool,
}

impl std::fmt::Debug for SeekResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeekResult")
            .field("question", &self.question)
            .field("answer", &self.answer)
            .finish_non_exhaustive()
    }
}

impl SeekResult {
    /// Step of the answer; without one, the step nearest to the goal, and the least value on ties.
    pub fn nearest(&self) -> Option<&SeekProbe> {
        if let Some(answer) = self.answer {
            return self.curve.iter().find(|step| step.value == answer);
        }
        let goal = &self.question.goal;
        self.curve.iter().filter(|step| step.figure.is_some()).reduce(|best, step| {
            let nearer = step.figure.zip(best.figure).is_some_and(|(figure, than)| goal.is_nearer(figure, than));
            if nearer { step } else { best }
        })
    }

    /// Statement for [`SeekCertainty::Proven`] that names the plans: `proven: no plan reaches the goal with less`,
    /// `proven among contiguous splits in a row: none reaches the goal with less`.
    pub fn proof(&self) -> String {
        let less = if self.answer.is_some() { " with less" } else { "" };
        match &self.among {
            None => format!("proven: no plan reaches the goal{less}"),
            Some(plans) => format!("proven for {plans}: none reaches the goal{less}"),
        }
    }

    /// Value of the limit: `52`, `7.42 GiB`, `1.93 GB/s`.
    pub fn shown(&self, value: f64) -> String {
        match self.question.least {
            LimitKind::Memory | LimitKind::Bandwidth if value.is_infinite() => "unlimited".into(),
            LimitKind::Memory => units::bytes_like(value, self.initial_value),
            LimitKind::Bandwidth => units::bandwidth_like(value, self.initial_value),
            kind => kind.format(value),
        }
    }

    /// Value of the limit with its noun, for sentences: `52 devices`, `7.42 GiB memory`.
    pub fn describe_value(&self, value: f64) -> String {
        match self.question.least {
            kind @ (LimitKind::Memory | LimitKind::Bandwidth) if value.is_infinite() => {
                format!("unlimited {}", kind.label())
            }
            LimitKind::Memory => format!("{} memory", self.shown(value)),
            LimitKind::Bandwidth => self.shown(value),
            kind => kind.counted(value),
        }
    }

    /// Flag that sets the answer: `--devices 42`.
    pub fn flags(&self) -> Option<String> {
        self.answer.map(|value| flags(self.question.least, value))
    }
}

/// Flag that sets a limit to an exact value.
pub fn flags(kind: LimitKind, value: f64) -> String {
    let shown = kind.format(value);
    let exact = match kind.parse(&shown) {
        Ok(read) if read == value => shown.replace(' ', ""),
        _ => units::exact_number(value.min(units::LARGEST)),
    };
    format!("{} {exact}", kind.flag())
}

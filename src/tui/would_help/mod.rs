//! Suggestions: the plan on the screen, planned again with one limit or option changed at a time, and simulated.
//!
//! Figures and order are those of the simulated iteration, under the settings of the one on the screen. A planner's
//! model ignores warm-up, drain and schedule, so a change that it rates highly may help little. See [`Tried`].

pub(super) mod links;
pub(super) mod published;
pub(super) mod tried;

use std::{sync::Arc, time::Instant};

pub(super) use self::{links::Widened, tried::Tried};
use super::shown::ShownRun;
use crate::{
    simulate::Setup,
    study::{
        explain::{Cause, ExplainedPlan, Explanation},
        rivals::Rival,
    },
};

/// Phase of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// No plan to study.
    #[default]
    Idle,
    /// Waiting until this time.
    Resting(Instant),
    /// Slow planner: waiting for a request of the user.
    Unasked,
    /// Study running.
    Asking,
    /// Study done.
    Done,
}

/// Plan, with schedule and settings of its simulation.
#[derive(Clone)]
pub(super) struct Of {
    /// The plan.
    pub shown: Arc<ShownRun>,
    /// Schedule and settings of its simulation.
    pub setup: Setup,
}

impl PartialEq for Of {
    fn eq(&self, other: &Of) -> bool {
        Arc::ptr_eq(&self.shown, &other.shown) && self.setup == other.setup
    }
}

/// State of the panel.
#[derive(Default)]
pub(super) struct WouldHelp {
    /// Phase of the study.
    pub phase: Phase,
    /// True if the user hid the panel.
    pub folded: bool,
    /// Suggestions, best first.
    pub rows: Vec<Tried>,
    /// Links of the topology at twice the bandwidth, if that helps, best first.
    pub wider: Vec<Widened>,
    /// Plans of published planners in the simulator, fastest first.
    pub rivals: Vec<Rival>,
    /// Binding limits, most costly first.
    pub causes: Vec<Cause>,
    /// True if `rows` belong to the shown plan.
    pub fresh: bool,
    /// Number of results so far, and of all.
    pub answered: (usize, usize),
    /// True if the first row is to be selected as soon as there is one.
    pub wanted: bool,
    /// Index of the selected row, while the panel has the focus.
    pub selected: Option<usize>,
    /// First visible row, and number of rows side by side, at the last drawing.
    pub layout: (usize, usize),
    /// True if the panel fitted at the last drawing.
    pub drawn: bool,
    /// Plan of the current or the next study.
    pub of: Option<Of>,
    /// Inputs of the study; `None` until it starts.
    pub base: Option<Arc<ExplainedPlan>>,
    /// Plan that the results so far belong to.
    pub asked: Option<Of>,
    /// Explanation of the results so far.
    pub explanation: Explanation,
    /// All results so far, in the order of the queries.
    pub tried: Vec<Tried>,
}

impl WouldHelp {
    /// Time at which the screen must wake to start a study, if nothing else wakes it.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Resting(due) => Some(due),
            _ => None,
        }
    }

    /// Drops the plan of the study. The results so far stay, muted.
    pub(super) fn leave(&mut self) {
        self.phase = Phase::Idle;
        self.of = None;
        self.fresh = false;
        self.wanted = false;
        self.selected = None;
    }

    /// Drops the results, which belong to another workload.
    pub(super) fn forget(&mut self) {
        self.of = None;
        self.asked = None;
        self.rows.clear();
        self.wider.clear();
        self.rivals.clear();
        self.causes.clear();
    }

    /// Moves the selection with the wheel.
    pub(super) fn scroll(&mut self, down: bool) {
        let (first, beside) = self.layout;
        let at = self.selected.unwrap_or(first);
        let last = self.rows.len().saturating_sub(1);
        if self.fresh {
            self.selected = Some(if down { (at + beside.max(1)).min(last) } else { at.saturating_sub(beside.max(1)) });
        }
    }

    /// Adds a result. The list stays sorted, and the selected row stays selected.
    pub(super) fn take(&mut self, tried: Tried) {
        let Some(base) = self.base.clone() else { return };
        let selected = self.selected.filter(|_| self.fresh).and_then(|row| self.rows.get(row)).cloned();
        self.explanation.add(tried.answer.clone());
        self.tried.push(tried);
        self.answered.0 += 1;
        self.rows = tried::settable(&self.tried);
        self.causes = self.explanation.causes(&base);
        self.fresh = true;
        let same = |a: &Tried, b: &Tried| a.answer.question.change == b.answer.question.change;
        self.selected = selected.and_then(|kept| self.rows.iter().position(|row| same(row, &kept)));
        if !self.rows.is_empty() && std::mem::take(&mut self.wanted) {
            self.selected = Some(0);
        }
    }
}

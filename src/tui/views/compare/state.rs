//! State of the Compare view: plans, their order, pins, and what is open.
//!
//! A planner has one row, its newest answer; a pin has one until it is unpinned. A changed limit removes no row but
//! marks it as old, so that old and new figures can be compared.

use std::sync::Arc;

use super::{compared::Compared, pins::Pins};
use crate::{
    study::{
        columns::Column,
        compare::{ComparedPlan, share_bounds},
    },
    tui::{shown::ShownRun, simulated::Simulated},
    workload::Workload,
};

/// Answer of a planner.
#[derive(Debug, Clone)]
pub(in crate::tui) enum Answer {
    /// A plan, or a proof that there is none.
    Plan(Box<Compared>),
    /// The planner refuses its current options.
    Refused(String),
    /// The planner failed.
    Failed(String),
}

/// Plan of the table, by its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Key {
    /// Index of a planner.
    Planner(usize),
    /// The shown plan, if it comes from neither a planner's run nor a pin.
    Other,
    /// Number of a pin.
    Pin(u64),
}

/// Row that can be selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Row {
    /// Plan, or planner that found none.
    Plan(Key),
    /// Planner that failed.
    Failed(usize),
    /// Planner without an answer yet.
    Waiting(usize),
    /// Row that folds and unfolds the planners that cannot plan.
    Folded,
    /// Planner that cannot plan.
    Refused(usize),
}

/// Relation of a row's figures to the inputs at the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Terms {
    /// Same inputs.
    Current,
    /// From before a change: of limits, options, schedule, settings of the simulator, or the file.
    Old,
    /// A pin's own limits.
    OtherLimits,
}

/// Two plans, and the first visible row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) struct Side {
    /// Plan at the left: the baseline of the other.
    pub first: Key,
    /// Plan at the right.
    pub second: Key,
    /// Number of rows scrolled past.
    pub top: usize,
}

/// Preview, and the state before it.
#[derive(Debug, Clone)]
pub(in crate::tui) struct Preview {
    /// Name of the previewed plan in the table.
    pub name: String,
    /// Run that was shown.
    pub(super) shown: Option<Arc<ShownRun>>,
    /// Its timeline.
    pub(super) simulated: Option<Arc<Simulated>>,
    /// Reason why there was no plan.
    pub(super) refusal: Option<String>,
    /// True if the last run was stopped before it had a plan.
    pub(super) stopped: bool,
}

/// State of the view.
#[derive(Debug)]
pub(in crate::tui) struct CompareState {
    /// Newest answers of planners, ordered by index.
    pub answers: Vec<(usize, Answer)>,
    /// Last plan of the planner at the left.
    pub planned: Option<(usize, Arc<ShownRun>)>,
    /// The shown plan, if no other row holds it.
    pub other: Option<Compared>,
    /// Pinned plans.
    pub pins: Pins,
    /// Planners without an answer yet.
    pub queue: Vec<usize>,
    /// Column to sort by.
    pub sort: Column,
    /// True to show the worst first.
    pub reversed: bool,
    /// Selected row; the first one if it no longer exists.
    pub cursor: Option<Row>,
    /// Marked plans, at most two.
    pub marked: Vec<Key>,
    /// True to list the planners that cannot plan.
    pub unfolded: bool,
    /// Two plans side by side, if open.
    pub side: Option<Side>,
    /// Preview of a plan in the other views, if any.
    pub preview: Option<Preview>,
}

/// State of the view, by the name that all views share.
pub(in crate::tui) type State = CompareState;

impl CompareState {
    /// Stores the scroll position of the two plans side by side; `None` if one of them no longer exists.
    pub(in crate::tui) fn laid_out(&mut self, side: Option<Side>) {
        self.side = side;
    }
}

impl Default for CompareState {
    fn default() -> Self {
        CompareState {
            answers: vec![],
            planned: None,
            other: None,
            pins: Pins::default(),
            queue: vec![],
            sort: Column::Time,
            reversed: false,
            cursor: None,
            marked: vec![],
            unfolded: false,
            side: None,
            preview: None,
        }
    }
}

impl CompareState {
    /// Answer of a planner, if any.
    pub(in crate::tui) fn answer(&self, planner: usize) -> Option<&Answer> {
        self.answers.iter().find(|(known, _)| *known == planner).map(|(_, answer)| answer)
    }

    /// Stores the newest answer of a planner.
    pub(super) fn take_answer(&mut self, planner: usize, answer: Answer) {
        self.queue.retain(|&waiting| waiting != planner);
        match self.answers.iter_mut().find(|(known, _)| *known == planner) {
            Some((_, known)) => *known = answer,
            None => {
                self.answers.push((planner, answer));
                self.answers.sort_by_key(|(planner, _)| *planner);
            }
        }
        let Some(Answer::Plan(new)) = self.answer(planner) else { return };
        let (workload, limits) = (new.shown.workload.clone(), new.shown.limits.clone());
        let alike = |shown: &ShownRun| Arc::ptr_eq(&shown.workload, &workload) && shown.limits == limits;
        let mut entries: Vec<&mut ComparedPlan> = (self.answers.iter_mut())
            .filter_map(|(_, answer)| match answer {
                Answer::Plan(compared) if alike(&compared.shown) => Some(&mut compared.entry),
                _ => None,
            })
            .collect();
        share_bounds(&mut entries);
    }

    /// All plans on the table, including pins of other workloads.
    pub(super) fn compared_plans(&mut self) -> impl Iterator<Item = (Key, &mut Compared)> {
        let answers = self.answers.iter_mut().filter_map(|(planner, answer)| match answer {
            Answer::Plan(compared) => Some((Key::Planner(*planner), compared.as_mut())),
            _ => None,
        });
        let other = self.other.iter_mut().map(|compared| (Key::Other, compared));
        let pins = self.pins.list.iter_mut().map(|pin| (Key::Pin(pin.id), &mut pin.compared));
        answers.chain(other).chain(pins)
    }

    /// Drops the answers of planners, which depend on the old file. Pins are measured again.
    pub(in crate::tui) fn forget_answers(&mut self) {
        self.answers.clear();
        self.planned = None;
        self.other = None;
        self.side = None;
        self.preview = None;
        self.marked.retain(|key| matches!(key, Key::Pin(_)));
    }

    /// Drops the results of a workload that is no longer shown. Pins are kept for its return.
    pub(in crate::tui) fn forget_results(&mut self) {
        let old = std::mem::take(self);
        *self = CompareState { pins: old.pins, sort: old.sort, reversed: old.reversed, ..CompareState::default() };
    }
}

/// True if plans of one workload fit the other: it was loaded again, perhaps after a change.
pub(in crate::tui) fn alike(one: &Workload, other: &Workload) -> bool {
    let ids = |workload: &Workload| workload.nodes.iter().map(|node| node.id).collect::<Vec<_>>();
    one.name == other.name && one.format == other.format && ids(one) == ids(other)
}

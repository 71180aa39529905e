//! State of the Compare view: rows of the table, their order, and the study that fills it.
//!
//! A planner has one row, its newest answer; a pin has one until it is unpinned. The shown plan is on the table without
//! a query: its figures come from the timeline that was simulated anyway. Running all planners is a study beside
//! planning, and its rows arrive one by one. A changed limit removes no row but marks it as old, so that old and new
//! figures can be compared.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{compared::Compared, pins::Pins, preview::Preview, side::Side};
use crate::{
    planner::{Planner, Problem, Search, Status, panic_message},
    run,
    simulate::{LEAST_TIME, Setup},
    study::{
        columns::{self, Column},
        compare::{ComparedPlan, TIME_FOR_EACH},
    },
    tui::{
        model::{Model, Session, Tone},
        shown::ShownRun,
        simulated::Simulated,
        studies::{Finding, StudyKind, Work},
        update::Effects,
    },
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

    fn take_answer(&mut self, planner: usize, answer: Answer) {
        self.queue.retain(|&waiting| waiting != planner);
        match self.answers.iter_mut().find(|(known, _)| *known == planner) {
            Some((_, known)) => *known = answer,
            None => {
                self.answers.push((planner, answer));
                self.answers.sort_by_key(|(planner, _)| *planner);
            }
        }
    }

    /// All plans on the table, including pins of other workloads.
    fn compared_plans(&mut self) -> impl Iterator<Item = (Key, &mut Compared)> {
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

impl Session {
    /// Time limit of each planner when all are run.
    pub(in crate::tui) fn time_for_each(&self) -> Duration {
        self.deadline.map_or(TIME_FOR_EACH, |deadline| deadline.min(TIME_FOR_EACH))
    }
}

impl Model {
    /// Rows of the table, from the top.
    pub(in crate::tui) fn compare_rows(&self) -> Vec<Row> {
        let state = &self.views.compare;
        let mut plans: Vec<(Key, &ComparedPlan)> = vec![];
        let (mut failed, mut refused) = (vec![], vec![]);
        for (planner, answer) in &state.answers {
            match answer {
                Answer::Plan(compared) => plans.push((Key::Planner(*planner), &compared.entry)),
                Answer::Failed(_) => failed.push(Row::Failed(*planner)),
                Answer::Refused(_) => refused.push(*planner),
            }
        }
        plans.extend(self.other_compared().map(|compared| (Key::Other, &compared.entry)));
        plans.extend(self.pins_here().map(|pin| (Key::Pin(pin.id), &pin.compared.entry)));
        columns::sort(&mut plans, |(_, entry)| entry, Some(state.sort), state.reversed);
        let mut rows: Vec<Row> = plans.into_iter().map(|(key, _)| Row::Plan(key)).collect();
        rows.extend(failed);
        if self.planning.studying(StudyKind::Compare) {
            let waiting = state.queue.iter().filter(|&&planner| state.answer(planner).is_none());
            rows.extend(waiting.map(|&planner| Row::Waiting(planner)));
        }
        refused.extend((0..self.session.planners.len()).filter(|&planner| self.session.refusals[planner].is_some()));
        if !refused.is_empty() {
            rows.push(Row::Folded);
            if state.unfolded {
                rows.extend(refused.into_iter().map(Row::Refused));
            }
        }
        rows
    }

    /// Number of planners that cannot plan this workload.
    pub(in crate::tui) fn compare_refused(&self) -> usize {
        let unset = self.views.compare.answers.iter().filter(|(_, answer)| matches!(answer, Answer::Refused(_)));
        unset.count() + self.session.refusals.iter().flatten().count()
    }

    /// Index of the selected row.
    pub(in crate::tui) fn compare_cursor(&self, rows: &[Row]) -> usize {
        self.views.compare.cursor.and_then(|row| rows.iter().position(|other| *other == row)).unwrap_or(0)
    }

    /// Plan of the table.
    pub(in crate::tui) fn compared(&self, key: Key) -> Option<&Compared> {
        match key {
            Key::Planner(planner) => match self.views.compare.answer(planner)? {
                Answer::Plan(compared) => Some(compared),
                _ => None,
            },
            Key::Other => self.other_compared(),
            Key::Pin(id) => self.views.compare.pins.get(id).map(|pin| &pin.compared),
        }
    }

    /// Name of a plan of the table.
    pub(in crate::tui) fn compared_name(&self, key: Key) -> &str {
        match key {
            Key::Planner(planner) => self.session.planners[planner].info().name,
            Key::Other => self.views.compare.other.as_ref().map_or("", |compared| &compared.entry.name),
            Key::Pin(id) => self.views.compare.pins.get(id).map_or("", |pin| &pin.name),
        }
    }

    /// The shown plan, if no other row holds it.
    fn other_compared(&self) -> Option<&Compared> {
        let shown = self.planning.shown.as_ref()?;
        self.views.compare.other.as_ref().filter(|other| other.is_of(shown))
    }

    /// Relation of a plan's figures to the inputs at the left.
    pub(in crate::tui) fn terms(&self, key: Key) -> Terms {
        let Some(compared) = self.compared(key) else { return Terms::Old };
        // The file was reloaded since.
        if !Arc::ptr_eq(&compared.shown.workload, &self.session.workload) {
            return Terms::Old;
        }
        let same_limits = compared.shown.limits == self.session.limits && compared.setup == self.simulation.setup;
        match key {
            Key::Planner(planner) if same_limits && compared.shown.options == self.session.options[planner] => {
                Terms::Current
            }
            Key::Planner(_) => Terms::Old,
            _ if same_limits => Terms::Current,
            Key::Pin(_) if compared.setup == self.simulation.setup => Terms::OtherLimits,
            _ => Terms::Old,
        }
    }

    /// Fastest simulated plans under the limits in force: one among plans simulated as iterations, one among those
    /// simulated as a single sample. A class with one plan has no fastest, and plans that exceed the memory do not
    /// count.
    pub(in crate::tui) fn fastest(&self, rows: &[Row]) -> Vec<Key> {
        let mut fastest = vec![];
        for alone in [true, false] {
            let mut plans = vec![];
            for row in rows {
                let Row::Plan(key) = *row else { continue };
                let compared = self.compared(key).filter(|compared| !compared.overflows());
                // A plan that violates a limit has figures, but cannot run.
                let compared = compared.filter(|compared| compared.entry.value().is_some());
                let simulated = compared.and_then(|compared| compared.entry.simulated.as_ref());
                if let Some(simulated) = simulated
                    && self.terms(key) == Terms::Current
                    && compared.is_some_and(|compared| compared.entry.runs_alone() == alone)
                {
                    plans.push((key, simulated.samples_per_s));
                }
            }
            if plans.len() > 1 {
                let best = plans.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best });
                fastest.extend(best.map(|(key, _)| key));
            }
        }
        fastest
    }

    /// Adds a result of the planner at the left to the table.
    pub(in crate::tui) fn note_planned(&mut self, shown: &Arc<ShownRun>) {
        let Some(planner) = self.session.planners.iter().position(|planner| planner.info().id == shown.planner.id)
        else {
            return;
        };
        if shown.outcome.plan.is_none() && shown.outcome.status == Status::Cancelled {
            return;
        }
        self.views.compare.planned = Some((planner, shown.clone()));
        if shown.outcome.plan.is_none() {
            let compared = Compared::new(shown.clone(), None, self.simulation.setup);
            self.views.compare.take_answer(planner, Answer::Plan(Box::new(compared)));
        }
    }

    /// Stores the figures of a timeline.
    pub(in crate::tui) fn note_simulated(&mut self, simulated: &Simulated) {
        let compared = Compared::of(simulated);
        let planned = self.views.compare.planned.as_ref().filter(|(_, shown)| compared.is_of(shown));
        if let Some(&(planner, _)) = planned {
            self.views.compare.take_answer(planner, Answer::Plan(Box::new(compared.clone())));
        }
        let mut known = planned_is(&self.views.compare, &compared);
        for (_, other) in self.views.compare.compared_plans().filter(|(_, other)| other.is_of(&compared.shown)) {
            *other = compared.clone();
            known = true;
        }
        if !known {
            self.views.compare.other = Some(compared);
        }
    }

    /// Runs every planner without an answer for the inputs at the left.
    pub(in crate::tui) fn compare_all(&mut self) -> Effects {
        let able = (0..self.session.planners.len()).filter(|&planner| self.session.refusals[planner].is_none());
        // Planners that use the others would plan the same again.
        let able =
            able.filter(|&planner| planner == self.session.planner || self.session.planners[planner].stands_alone());
        let planning =
            self.planning.running.as_ref().is_some_and(|running| running.planning).then_some(self.session.planner);
        let answered = |planner: usize| match self.views.compare.answer(planner) {
            Some(Answer::Plan(compared)) => {
                compared.entry.status != Some(Status::Cancelled) && self.terms(Key::Planner(planner)) == Terms::Current
            }
            _ => planning == Some(planner),
        };
        let mut queue: Vec<usize> = able.filter(|&planner| !answered(planner)).collect();
        if queue.is_empty() {
            self.message = Some((Tone::Done, "every planner that can has planned under these limits".into()));
            return vec![];
        }
        // Planners that need no conversion come first.
        queue.sort_by_key(|&planner| !self.session.is_native(planner));
        self.views.compare.queue = queue;
        self.begin_compare()
    }

    /// Simulates plans of another setup again, and continues the pending planners.
    pub(in crate::tui) fn compare_again(&mut self) -> Effects {
        if !self.planning.studying(StudyKind::Compare) {
            self.views.compare.queue.clear();
        }
        self.begin_compare()
    }

    fn begin_compare(&mut self) -> Effects {
        let setup = self.simulation.setup;
        let workload = self.session.workload.clone();
        let old = |compared: &Compared| {
            let same = Arc::ptr_eq(&compared.shown.workload, &workload);
            (same && compared.setup != setup) || (!same && alike(&compared.shown.workload, &workload))
        };
        let others = self.views.compare.compared_plans().filter(|(_, compared)| old(compared));
        let again: Vec<(Key, Arc<ShownRun>)> = others.map(|(key, compared)| (key, compared.shown.clone())).collect();
        let problem = |planner: usize| Problem {
            workload: self.session.workload.clone(),
            limits: self.session.limits.clone(),
            options: self.session.options[planner].clone(),
        };
        let asked =
            self.views.compare.queue.iter().map(|&planner| (planner, self.session.planners[planner], problem(planner)));
        let asked: Vec<(usize, &'static dyn Planner, Problem)> = asked.collect();
        if again.is_empty() && asked.is_empty() {
            return vec![];
        }
        let each = self.session.time_for_each();
        let work: Work = Box::new(move |search: &Search, tell: &mut dyn FnMut(Finding)| {
            for (key, shown) in again {
                if search.cancelled() {
                    return;
                }
                let compared =
                    Compared::simulate(of_workload(shown, &workload), setup, &search.part(Some(each.max(LEAST_TIME))));
                tell(Box::new(move |model: &mut Model| model.replace_compared(key, compared)));
            }
            for (planner, who, problem) in asked {
                if search.cancelled() {
                    return;
                }
                if let Some(answer) = ask(who, &problem, &search.part(Some(each)), setup) {
                    tell(Box::new(move |model: &mut Model| model.views.compare.take_answer(planner, answer)));
                }
            }
        });
        vec![self.begin_study(StudyKind::Compare, work)]
    }

    fn replace_compared(&mut self, key: Key, new: Compared) {
        // An answer that arrived meanwhile is another plan; a pin remains the same.
        let same = |other: &Compared| matches!(key, Key::Pin(_)) || other.is_of(&new.shown);
        if let Some((_, known)) =
            self.views.compare.compared_plans().find(|(known, other)| *known == key && same(other))
        {
            // The remarks of the file's reader are more informative than those of the check.
            let (status, remarks) = (known.entry.status, std::mem::take(&mut known.entry.remarks));
            let unchanged = known.is_of(&new.shown);
            *known = new;
            // A proof is invalid after a change of the file; an unknown status stays unknown.
            if unchanged || status.is_none() {
                known.entry.status = status;
            }
            if unchanged {
                known.entry.remarks = remarks;
            }
        }
    }

    /// Cancels the study, because its answers would be for other limits.
    pub(in crate::tui) fn compare_outdated(&mut self) {
        self.planning.cancel_study(StudyKind::Compare);
        self.views.compare.queue.clear();
    }
}

/// True if plans of one workload fit the other: it was loaded again, perhaps after a change.
pub(in crate::tui) fn alike(one: &Workload, other: &Workload) -> bool {
    let ids = |workload: &Workload| workload.nodes.iter().map(|node| node.id).collect::<Vec<_>>();
    one.name == other.name && one.format == other.format && ids(one) == ids(other)
}

/// Run of the same plan for this workload, measured again if it belonged to another one.
fn of_workload(shown: Arc<ShownRun>, workload: &Arc<Workload>) -> Arc<ShownRun> {
    match &shown.outcome.plan {
        Some(plan) if !Arc::ptr_eq(&shown.workload, workload) => {
            let (limits, options) = (shown.limits.clone(), shown.options.clone());
            let problem = Problem { workload: workload.clone(), limits, options };
            Arc::new(ShownRun::of_plan(shown.planner, &problem, plan.clone()))
        }
        _ => shown,
    }
}

fn planned_is(state: &CompareState, compared: &Compared) -> bool {
    state.planned.as_ref().is_some_and(|(_, shown)| compared.is_of(shown))
}

/// Runs one planner and simulates its plan. `None` if it was stopped before it had one.
fn ask(planner: &'static dyn Planner, problem: &Problem, search: &Search, setup: Setup) -> Option<Answer> {
    if let Err(error) = planner.check_options(problem) {
        return Some(Answer::Refused(error.to_string()));
    }
    let begun = Instant::now();
    let asked = catch_unwind(AssertUnwindSafe(|| {
        let (outcome, score) = match run::plan(planner, problem, search) {
            Ok(found) => found,
            Err(fault) => {
                return Some(Answer::Failed(format!("a bug of plantui, please report it: {fault}")));
            }
        };
        if outcome.status == Status::Cancelled && outcome.plan.is_none() {
            let why = "the time was up before it had a plan";
            return search.deadline_passed().then(|| Answer::Failed(why.into()));
        }
        let seconds = begun.elapsed().as_secs_f64();
        let shown = Arc::new(ShownRun::new(planner.info(), problem, outcome, score, seconds));
        Some(Answer::Plan(Box::new(Compared::simulate(shown, setup, &search.follow(LEAST_TIME)))))
    }));
    asked.unwrap_or_else(|payload| {
        let what = panic_message(payload.as_ref());
        Some(Answer::Failed(format!("a bug of plantui, please report it: {what}")))
    })
}

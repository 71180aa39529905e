//! The Compare view's state: who stands on the table, in which order, and how plans get there.
//!
//! A planner has one row, its newest answer; a pin has one for as long as it is pinned. The plan that is shown stands on the
//! table without being asked for: its timeline was simulated anyway, and its figures come from that. Asking every planner is
//! a study of its own beside the planning; rows arrive one by one. Nothing is thrown away when a limit changes: a row says
//! that it is old, because an old figure next to a new one is what one wants to see.

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
        model::{Model, Tone},
        shown::ShownRun,
        simulated::Simulated,
        studies::{Finding, StudyKind, Work},
        update::Effects,
    },
    workload::Workload,
};

/// What came of asking a planner.
#[derive(Debug, Clone)]
pub(in crate::tui) enum Answer {
    /// A plan, or a proof that there is none.
    Plan(Box<Compared>),
    /// It cannot be asked with its options as they are.
    Refused(String),
    /// It fell over.
    Failed(String),
}

/// A plan of the table by who stands behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Key {
    /// A planner, by its place in the list.
    Planner(usize),
    /// The plan that is shown, where no planner's run and no pin is behind it.
    Other,
    /// A pin, by its number.
    Pin(u64),
}

/// A row that can be selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Row {
    /// A plan, or a planner that found none.
    Plan(Key),
    /// A planner that fell over.
    Failed(usize),
    /// A planner that is still to answer.
    Waiting(usize),
    /// The row that folds and unfolds the planners that cannot.
    Folded,
    /// A planner that cannot.
    Refused(usize),
}

/// Whether a row's figures belong to what stands at the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Terms {
    /// They do.
    Current,
    /// They are from before a change: of other limits, options, schedule or settings of the simulator, or of the file as it was.
    Old,
    /// They are of other limits: a pin's own.
    OtherLimits,
}

/// State of the view.
#[derive(Debug)]
pub(in crate::tui) struct CompareState {
    /// The newest answer of each planner that gave one, in the order of their places.
    pub answers: Vec<(usize, Answer)>,
    /// The last plan that the planner at the left made.
    pub planned: Option<(usize, Arc<ShownRun>)>,
    /// The plan that is shown, where nothing else on the table is it.
    pub other: Option<Compared>,
    /// Plans that were put aside.
    pub pins: Pins,
    /// Planners that are still to answer.
    pub queue: Vec<usize>,
    /// What is sorted by, and whether the worst comes first.
    pub sort: Column,
    /// Whether the worst comes first.
    pub reversed: bool,
    /// The selected row; the first one where there is no such row any more.
    pub cursor: Option<Row>,
    /// Marked plans, at most two.
    pub marked: Vec<Key>,
    /// Whether the planners that cannot are listed.
    pub unfolded: bool,
    /// Two plans side by side.
    pub side: Option<Side>,
    /// The plan of the table that is shown in the other views.
    pub preview: Option<Preview>,
}

impl CompareState {
    /// Keeps how far down the two plans side by side were drawn; `None` where one of them is gone.
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
    /// The answer of a planner, if it gave one.
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

    /// All plans on the table, pins of other workloads included.
    fn compared_plans(&mut self) -> impl Iterator<Item = (Key, &mut Compared)> {
        let answers = self.answers.iter_mut().filter_map(|(planner, answer)| match answer {
            Answer::Plan(compared) => Some((Key::Planner(*planner), compared.as_mut())),
            _ => None,
        });
        let other = self.other.iter_mut().map(|compared| (Key::Other, compared));
        let pins = self.pins.list.iter_mut().map(|pin| (Key::Pin(pin.id), &mut pin.compared));
        answers.chain(other).chain(pins)
    }

    /// Forgets the answers of planners, which were about the file as it was; pins are measured again.
    pub(in crate::tui) fn forget_answers(&mut self) {
        self.answers.clear();
        self.planned = None;
        self.other = None;
        self.side = None;
        self.preview = None;
        self.marked.retain(|key| matches!(key, Key::Pin(_)));
    }

    /// Forgets what belongs to a workload that is no longer there; pins stay for when it comes back.
    pub(in crate::tui) fn forget_results(&mut self) {
        let old = std::mem::take(self);
        *self = CompareState { pins: old.pins, sort: old.sort, reversed: old.reversed, ..CompareState::default() };
    }
}

impl Model {
    /// The rows of the table, from the top.
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
        if self.studying(StudyKind::Compare) {
            let waiting = state.queue.iter().filter(|&&planner| state.answer(planner).is_none());
            rows.extend(waiting.map(|&planner| Row::Waiting(planner)));
        }
        refused.extend((0..self.planners.len()).filter(|&planner| self.refusals[planner].is_some()));
        if !refused.is_empty() {
            rows.push(Row::Folded);
            if state.unfolded {
                rows.extend(refused.into_iter().map(Row::Refused));
            }
        }
        rows
    }

    /// How many planners cannot plan this workload.
    pub(in crate::tui) fn compare_refused(&self) -> usize {
        let unset = self.views.compare.answers.iter().filter(|(_, answer)| matches!(answer, Answer::Refused(_)));
        unset.count() + self.refusals.iter().flatten().count()
    }

    /// The place of the selected row.
    pub(in crate::tui) fn compare_cursor(&self, rows: &[Row]) -> usize {
        self.views.compare.cursor.and_then(|row| rows.iter().position(|other| *other == row)).unwrap_or(0)
    }

    /// A plan of the table.
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

    /// What a plan of the table is called.
    pub(in crate::tui) fn compared_name(&self, key: Key) -> &str {
        match key {
            Key::Planner(planner) => self.planners[planner].info().name,
            Key::Other => self.views.compare.other.as_ref().map_or("", |compared| &compared.entry.name),
            Key::Pin(id) => self.views.compare.pins.get(id).map_or("", |pin| &pin.name),
        }
    }

    /// The plan that is shown, where nobody else on the table is behind it.
    fn other_compared(&self) -> Option<&Compared> {
        let shown = self.shown.as_ref()?;
        self.views.compare.other.as_ref().filter(|other| other.is_of(shown))
    }

    /// Whether the figures of a plan belong to what stands at the left.
    pub(in crate::tui) fn terms(&self, key: Key) -> Terms {
        let Some(compared) = self.compared(key) else { return Terms::Old };
        // The file was read again since.
        if !Arc::ptr_eq(&compared.shown.workload, &self.workload) {
            return Terms::Old;
        }
        let same_limits = compared.shown.limits == self.limits && compared.setup == self.setup;
        match key {
            Key::Planner(planner) if same_limits && compared.shown.options == self.options[planner] => Terms::Current,
            Key::Planner(_) => Terms::Old,
            _ if same_limits => Terms::Current,
            Key::Pin(_) if compared.setup == self.setup => Terms::OtherLimits,
            _ => Terms::Old,
        }
    }

    /// The fastest plans in the simulator under the limits in force: one among those that are simulated as batches, one among
    /// those that are simulated as a single sample. Alone on the table nobody is the fastest, and nobody who needs more memory
    /// than there is.
    pub(in crate::tui) fn fastest(&self, rows: &[Row]) -> Vec<Key> {
        let mut fastest = vec![];
        for alone in [true, false] {
            let mut plans = vec![];
            for row in rows {
                let Row::Plan(key) = *row else { continue };
                let compared = self.compared(key).filter(|compared| !compared.overflows());
                // One that breaks a rule has figures, but nobody can run it.
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

    /// The longest that each planner may take when all are asked.
    pub(in crate::tui) fn time_for_each(&self) -> Duration {
        self.deadline.map_or(TIME_FOR_EACH, |deadline| deadline.min(TIME_FOR_EACH))
    }

    /// Puts a result of the planner at the left on the table.
    pub(in crate::tui) fn note_planned(&mut self, shown: &Arc<ShownRun>) {
        let Some(planner) = self.planners.iter().position(|planner| planner.info().id == shown.planner.id) else {
            return;
        };
        if shown.outcome.plan.is_none() && shown.outcome.status == Status::Cancelled {
            return;
        }
        self.views.compare.planned = Some((planner, shown.clone()));
        if shown.outcome.plan.is_none() {
            let compared = Compared::new(shown.clone(), None, self.setup);
            self.views.compare.take_answer(planner, Answer::Plan(Box::new(compared)));
        }
    }

    /// Takes the figures of a timeline.
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

    /// Asks every planner that has no answer for what stands at the left.
    pub(in crate::tui) fn compare_all(&mut self) -> Effects {
        let able = (0..self.planners.len()).filter(|&planner| self.refusals[planner].is_none());
        // Who asks the others would plan the same plans once more.
        let able = able.filter(|&planner| planner == self.planner || !self.planners[planner].asks_others());
        let planning = self.running.as_ref().is_some_and(|running| running.planning).then_some(self.planner);
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
        // Those that plan the workload as it is are the ones to hear first.
        queue.sort_by_key(|&planner| !self.is_native(planner));
        self.views.compare.queue = queue;
        self.begin_compare()
    }

    /// Simulates again what was simulated otherwise, and goes on with those that were to be asked.
    pub(in crate::tui) fn compare_again(&mut self) -> Effects {
        if !self.studying(StudyKind::Compare) {
            self.views.compare.queue.clear();
        }
        self.begin_compare()
    }

    fn begin_compare(&mut self) -> Effects {
        let setup = self.setup;
        let workload = self.workload.clone();
        let old = |compared: &Compared| {
            let same = Arc::ptr_eq(&compared.shown.workload, &workload);
            (same && compared.setup != setup) || (!same && alike(&compared.shown.workload, &workload))
        };
        let others = self.views.compare.compared_plans().filter(|(_, compared)| old(compared));
        let again: Vec<(Key, Arc<ShownRun>)> = others.map(|(key, compared)| (key, compared.shown.clone())).collect();
        let problem = |planner: usize| Problem {
            workload: self.workload.clone(),
            limits: self.limits.clone(),
            options: self.options[planner].clone(),
        };
        let asked = self.views.compare.queue.iter().map(|&planner| (planner, self.planners[planner], problem(planner)));
        let asked: Vec<(usize, &'static dyn Planner, Problem)> = asked.collect();
        if again.is_empty() && asked.is_empty() {
            return vec![];
        }
        let each = self.time_for_each();
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
        // An answer that came meanwhile is of another plan; a pin stays what it is.
        let same = |other: &Compared| matches!(key, Key::Pin(_)) || other.is_of(&new.shown);
        if let Some((_, known)) =
            self.views.compare.compared_plans().find(|(known, other)| *known == key && same(other))
        {
            // Who read it from a file says more than who scored it.
            let (status, remarks) = (known.entry.status, std::mem::take(&mut known.entry.remarks));
            let unchanged = known.is_of(&new.shown);
            *known = new;
            // A proof does not outlive a change of the file; where none was known, none is known now.
            if unchanged || status.is_none() {
                known.entry.status = status;
            }
            if unchanged {
                known.entry.remarks = remarks;
            }
        }
    }

    /// What was asked under other limits would come too late.
    pub(in crate::tui) fn compare_outdated(&mut self) {
        self.cancel_study(StudyKind::Compare);
        self.views.compare.queue.clear();
    }
}

/// Whether plans of one workload could be plans of the other: it was loaded again, perhaps after a change.
pub(in crate::tui) fn alike(one: &Workload, other: &Workload) -> bool {
    let ids = |workload: &Workload| workload.nodes.iter().map(|node| node.id).collect::<Vec<_>>();
    one.name == other.name && one.format == other.format && ids(one) == ids(other)
}

/// The plan under this workload: measured anew where it was of another one.
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

/// Asks one planner and simulates its plan. Nothing where it was stopped before it had any.
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

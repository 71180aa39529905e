//! Runs of all planners for the table, and the figures of plans that are shown.
//!
//! The shown plan is on the table without a query: its figures come from the timeline that was simulated anyway.
//! Running all planners is a study beside planning, and its rows arrive one by one.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use super::{
    compared::Compared,
    state::{Answer, CompareState, Key, Terms, alike},
};
use crate::{
    planner::{Planner, Problem, Search, Status, panic_message},
    run,
    simulate::{LEAST_TIME, Setup},
    tui::{
        effect::Effects,
        model::{Model, Tone},
        shown::ShownRun,
        simulated::Simulated,
        studies::StudyKind,
        study_job::{Finding, Work},
    },
    workload::Workload,
};

impl Model {
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

    /// True if a planner that only runs others could plan this workload.
    pub(super) fn has_planner_of_planners(&self) -> bool {
        let mut able =
            self.session.planners.iter().zip(&self.session.refusals).filter(|(_, refusal)| refusal.is_none());
        able.any(|(planner, _)| !planner.stands_alone())
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
            self.message = Some((Tone::Done, "all suitable planners have planned under these limits".into()));
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
        // A pin of a model is a record: other hardware or another sequence does not change it.
        let trained = workload.training().is_some();
        let kept = |key: &Key, compared: &Compared| {
            trained && matches!(key, Key::Pin(_)) && !Arc::ptr_eq(&compared.shown.workload, &workload)
        };
        let others =
            self.views.compare.compared_plans().filter(|(key, compared)| old(compared) && !kept(key, compared));
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
            let why = "its time was up before it had a plan";
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

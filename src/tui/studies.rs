//! Studies of many plans, answered beside the shown plan.
//!
//! Each study has its own thread, so that it neither waits for the planner nor replaces a job. It delivers its result
//! in pieces; each [`Finding`] is a change of the state. Only the newest study of a kind counts: starting another
//! cancels it and drops its later findings.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{
    model::{Model, Planning},
    update::Effect,
    worker::{News, Report},
};
use crate::planner::{Search, panic_message};

/// Kinds of studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StudyKind {
    /// All planners, compared.
    Compare,
    /// One limit over a range.
    Sweep,
    /// Limits changed one at a time.
    Help,
    /// Least value of a limit that reaches a goal.
    Ask,
    /// Incumbent of the running search.
    Incumbent,
    /// Timeline of an edited plan.
    Edited,
}

const KINDS: usize = 6;

/// Part of a result, as a change of the state.
pub(super) type Finding = Box<dyn FnOnce(&mut Model) + Send>;

/// Work of a study on its thread. It polls [`Search::cancelled`] often and delivers each finding.
pub(super) type Work = Box<dyn FnOnce(&Search, &mut dyn FnMut(Finding)) + Send>;

/// Study to start.
pub(super) struct Study {
    kind: StudyKind,
    id: u64,
    search: Search,
    work: Work,
}

/// Running studies, by kind.
#[derive(Debug, Default)]
pub(super) struct Studies {
    count: u64,
    running: [Option<(u64, Search)>; KINDS],
}

impl Planning {
    /// Cancels a study, if it is running. Its findings so far are kept.
    pub(super) fn cancel_study(&mut self, kind: StudyKind) {
        if let Some((_, search)) = self.studies.running[kind as usize].take() {
            search.cancel();
        }
    }

    /// Requests a study to end; later findings still count. Returns true if it was running.
    pub(super) fn stop_study(&self, kind: StudyKind) -> bool {
        let running = self.studies.running[kind as usize].as_ref();
        running.inspect(|(_, search)| search.cancel()).is_some()
    }

    /// True if a study of this kind is running.
    pub(super) fn studying(&self, kind: StudyKind) -> bool {
        self.studies.running[kind as usize].is_some()
    }
}

impl Model {
    /// Starts a study and cancels an older one of its kind.
    pub(super) fn begin_study(&mut self, kind: StudyKind, work: Work) -> Effect {
        self.planning.cancel_study(kind);
        let search = Search::new(None, self.session.seed);
        self.planning.studies.count += 1;
        let id = self.planning.studies.count;
        self.planning.studies.running[kind as usize] = Some((id, search.clone()));
        Effect::Study(Study { kind, id, search, work })
    }

    /// Applies a finding, unless a newer study replaced its own.
    pub(super) fn take_finding(&mut self, kind: StudyKind, id: u64, finding: Option<Finding>) {
        if self.planning.studies.running[kind as usize].as_ref().is_none_or(|(running, _)| *running != id) {
            return;
        }
        match finding {
            Some(finding) => finding(self),
            None => self.planning.studies.running[kind as usize] = None,
        }
    }
}

/// Runs a study on the caller's thread. The last report marks its end.
pub(super) fn perform(study: Study, tell: &mut dyn FnMut(Report)) {
    let Study { kind, id, search, work } = study;
    let mut report = |news| tell(Report { job: 0, news });
    let mut found = |finding| report(News::Found { kind, id, finding: Some(finding) });
    let result = catch_unwind(AssertUnwindSafe(|| work(&search, &mut found)));
    if let Err(payload) = result {
        report(News::ErrandCrashed(panic_message(payload.as_ref())));
    }
    report(News::Found { kind, id, finding: None });
}

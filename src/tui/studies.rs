//! Questions asked of many plans, answered beside the plan that is shown.
//!
//! Each study has a thread of its own, so that it never waits for the planner nor pushes a plan aside. It hands over its
//! answer piece by piece; each [`Finding`] says itself how it changes the state. Of one kind only the newest study
//! counts: beginning another cancels it, and what an older one still says is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{
    model::Model,
    update::Effect,
    worker::{News, Report},
};
use crate::planner::{Search, panic_message};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StudyKind {
    /// All planners side by side.
    Compare,
    /// One limit over a range.
    Sweep,
    /// One limit moved at a time.
    Help,
    /// The least of a limit for a goal.
    Ask,
    /// The best plan so far of the search under way.
    Incumbent,
    /// The timeline of an edited plan.
    Edited,
}

const KINDS: usize = 6;

/// A piece of an answer.
pub(super) type Finding = Box<dyn FnOnce(&mut Model) + Send>;

/// What a study does on its thread: ask [`Search::cancelled`] often, hand over each finding.
pub(super) type Work = Box<dyn FnOnce(&Search, &mut dyn FnMut(Finding)) + Send>;

/// A study on its way to its thread.
pub(super) struct Study {
    kind: StudyKind,
    id: u64,
    search: Search,
    work: Work,
}

/// The studies under way, by kind.
#[derive(Debug, Default)]
pub(super) struct Studies {
    count: u64,
    running: [Option<(u64, Search)>; KINDS],
}

impl Model {
    /// Begins a study; an older one of its kind ends.
    pub(super) fn begin_study(&mut self, kind: StudyKind, work: Work) -> Effect {
        self.cancel_study(kind);
        let search = Search::new(None, self.seed);
        self.studies.count += 1;
        let id = self.studies.count;
        self.studies.running[kind as usize] = Some((id, search.clone()));
        Effect::Study(Study { kind, id, search, work })
    }

    /// Ends a study, if there is one; what it found so far stays.
    pub(super) fn cancel_study(&mut self, kind: StudyKind) {
        if let Some((_, search)) = self.studies.running[kind as usize].take() {
            search.cancel();
        }
    }

    /// Asks a study to end as soon as it can; what it still finds counts. Whether there was one.
    pub(super) fn stop_study(&self, kind: StudyKind) -> bool {
        let running = self.studies.running[kind as usize].as_ref();
        running.inspect(|(_, search)| search.cancel()).is_some()
    }

    /// Whether a study of a kind is under way.
    pub(super) fn studying(&self, kind: StudyKind) -> bool {
        self.studies.running[kind as usize].is_some()
    }

    /// Takes what a study found, unless another has taken its place.
    pub(super) fn take_finding(&mut self, kind: StudyKind, id: u64, finding: Option<Finding>) {
        if self.studies.running[kind as usize].as_ref().is_none_or(|(running, _)| *running != id) {
            return;
        }
        match finding {
            Some(finding) => finding(self),
            None => self.studies.running[kind as usize] = None,
        }
    }
}

/// Does a study on the caller's thread; the last report says that it is done.
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

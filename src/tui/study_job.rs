//! Study on its own thread, so that it neither waits for the planner nor replaces a job.
//!
//! It delivers its result in pieces; each [`Finding`] is a change of the state.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{
    model::Model,
    studies::StudyKind,
    worker::{News, Report},
};
use crate::planner::{Search, panic_message};

/// Part of a result, as a change of the state.
pub(super) type Finding = Box<dyn FnOnce(&mut Model) + Send>;

/// Work of a study on its thread. It polls [`Search::cancelled`] often and delivers each finding.
pub(super) type Work = Box<dyn FnOnce(&Search, &mut dyn FnMut(Finding)) + Send>;

/// Study to start.
pub(super) struct Study {
    /// Kind of the study.
    pub(super) kind: StudyKind,
    /// Number of the study.
    pub(super) id: u64,
    /// Handle for cancellation.
    pub(super) search: Search,
    /// Work on the thread.
    pub(super) work: Work,
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

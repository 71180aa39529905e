//! Running studies of many plans, answered beside the shown plan.
//!
//! Only the newest study of a kind counts: starting another cancels it and drops its later findings. See
//! [`study_job`](super::study_job) for their work.

use crate::planner::Search;

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
    /// All schedules of the shown plan.
    Schedules,
    /// Timeline of an edited schedule.
    EditedSchedule,
    /// Other values of an axis of the layout.
    Axis,
    /// Other hardware.
    Hardware,
    /// Changes under which something fits.
    Remedies,
}

const KINDS: usize = 11;

/// Running studies, by kind.
#[derive(Debug, Default)]
pub(super) struct Studies {
    count: u64,
    running: [Option<(u64, Search)>; KINDS],
}

impl Studies {
    /// Records a study that starts. Returns its number.
    pub(super) fn begin(&mut self, kind: StudyKind, search: Search) -> u64 {
        self.count += 1;
        self.running[kind as usize] = Some((self.count, search));
        self.count
    }

    /// Records the end of a study.
    pub(super) fn end(&mut self, kind: StudyKind) {
        self.running[kind as usize] = None;
    }

    /// Cancels a study, if it is running. Its findings so far are kept.
    pub(super) fn cancel(&mut self, kind: StudyKind) {
        if let Some((_, search)) = self.running[kind as usize].take() {
            search.cancel();
        }
    }

    /// Requests a study to end; later findings still count. Returns true if it was running.
    pub(super) fn stop(&self, kind: StudyKind) -> bool {
        let running = self.running[kind as usize].as_ref();
        running.inspect(|(_, search)| search.cancel()).is_some()
    }

    /// True if a study of this kind is running.
    pub(super) fn are_running(&self, kind: StudyKind) -> bool {
        self.running[kind as usize].is_some()
    }

    /// True if the running study of a kind has this number.
    pub(super) fn is_current(&self, kind: StudyKind, id: u64) -> bool {
        self.running[kind as usize].as_ref().is_some_and(|(running, _)| *running == id)
    }
}

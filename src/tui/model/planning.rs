//! Plans: the shown one, the search for the next, and studies beside it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    planner::{Incumbent, Search},
    tui::{
        changes::Changes,
        convergence::Convergence,
        edits::Edits,
        remedies::Remedies,
        shown::{ShownRun, Standing},
        studies::{Studies, StudyKind},
        update::LimitStep,
        would_help::{Phase, WouldHelp},
    },
};

/// Running job.
#[derive(Debug, Clone)]
pub(in crate::tui) struct Running {
    /// Number of the job.
    pub(in crate::tui) job: u64,
    /// Search to read its progress from.
    pub(in crate::tui) search: Search,
    /// Time of the first request; earlier than `begun` if the job replaced one without a result.
    pub(in crate::tui) since: Instant,
    /// Start of this job.
    pub(in crate::tui) begun: Instant,
    /// True while waiting for a plan.
    pub(in crate::tui) planning: bool,
}

/// Last incumbent taken from a running search.
#[derive(Debug)]
pub(in crate::tui) struct Looked {
    /// Job of the search.
    pub(in crate::tui) job: u64,
    /// Time at which it was taken.
    pub(in crate::tui) at: Instant,
    /// The incumbent.
    pub(in crate::tui) incumbent: Arc<Incumbent>,
    /// Proven bound at that time.
    pub(in crate::tui) bound: Option<f64>,
}

/// Delay after the last request before old figures are dimmed, so that nothing flickers under a held key.
pub(in crate::tui) const PATIENCE: Duration = Duration::from_millis(300);

/// Duration of a search from which the header shows its progress.
pub(in crate::tui) const PROGRESS: Duration = Duration::from_secs(2);

/// Longest time between two requests of a held key.
const HELD: Duration = Duration::from_millis(150);

/// Most bytes drawn in a second under a held key.
const HELD_BYTES: u64 = 90_000;

/// Minimum time between two frames under a held key that asks for plans.
const HELD_FRAME: Duration = Duration::from_millis(100);

/// Minimum duration of a search whose course is shown.
pub(in crate::tui) const LONG: Duration = Duration::from_millis(400);

/// Plans: the shown one, the search for the next, and studies beside it.
pub(in crate::tui) struct Planning {
    /// Last result.
    pub(in crate::tui) shown: Option<Arc<ShownRun>>,
    /// Edits by hand of its plan.
    pub(in crate::tui) edits: Edits,
    /// Running job.
    pub(in crate::tui) running: Option<Running>,
    /// Last incumbent taken from it.
    pub(in crate::tui) looked: Option<Looked>,
    /// Course of the last search.
    pub(in crate::tui) convergence: Convergence,
    /// True if that course is shown.
    pub(in crate::tui) chart: bool,
    /// Reason why the chosen planner cannot plan this workload.
    pub(in crate::tui) refusal: Option<String>,
    /// True if the last run was stopped before it had a plan.
    pub(in crate::tui) stopped: bool,
    /// Incremented whenever the data that trees are built from changes.
    pub(in crate::tui) generation: u64,
    /// Number of jobs so far.
    pub(in crate::tui) jobs: u64,
    /// Studies that run beside planning.
    pub(in crate::tui) studies: Studies,
    /// Suggestions of limits and options to change.
    pub(in crate::tui) would_help: WouldHelp,
    /// Step of a limit whose plan is awaited.
    pub(in crate::tui) step: Option<LimitStep>,
    /// Remedies where nothing fits.
    pub(in crate::tui) remedies: Remedies,
    /// Effect of the last change.
    pub(in crate::tui) changes: Changes,
    /// Times of the last two requests.
    pub(in crate::tui) asked: [Option<Instant>; 2],
}

impl Planning {
    /// Records a request.
    pub(in crate::tui) fn ask(&mut self, now: Instant) {
        self.asked = [self.asked[1], Some(now)];
    }

    /// Minimum time between two frames after one of some bytes: longer while a held key asks for one plan after the other,
    /// so that a slow line keeps up.
    pub(in crate::tui) fn frame(&self, usual: Duration, now: Instant, bytes: u64) -> Duration {
        let [Some(before), Some(last)] = self.asked else { return usual };
        let held = last.saturating_duration_since(before) < HELD && now.saturating_duration_since(last) < HELD;
        let line = Duration::from_millis(1000 * bytes / HELD_BYTES);
        if held { HELD_FRAME.max(line) } else { usual }
    }

    /// True while waiting for a plan.
    pub(in crate::tui) fn planning(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.planning)
    }

    /// True if the shown plan is the incumbent of the running search.
    pub(in crate::tui) fn best_so_far_shown(&self) -> bool {
        let job = self.running.as_ref().filter(|running| running.planning).map(|running| running.job);
        match self.shown.as_ref().map(|shown| shown.standing) {
            Some(Standing::BestSoFar { job: shown }) => job == Some(shown),
            _ => false,
        }
    }

    /// Effect of the last edit.
    pub(in crate::tui) fn last_edit(&self) -> Option<&str> {
        self.edits.last()
    }

    /// Sets a planner's new plan as the baseline of the edited plan on the screen.
    pub(in crate::tui) fn take_base(&mut self, base: Arc<ShownRun>) {
        self.edits.base = Some(base);
        self.generation += 1;
    }

    /// Drops all edits, with the workload they belong to.
    pub(in crate::tui) fn forget_edits(&mut self) {
        self.edits = Edits::default();
        self.cancel_study(StudyKind::Edited);
    }

    /// Cancels a study, if it is running. Its findings so far are kept.
    pub(in crate::tui) fn cancel_study(&mut self, kind: StudyKind) {
        self.studies.cancel(kind);
    }

    /// Requests a study to end; later findings still count. Returns true if it was running.
    pub(in crate::tui) fn stop_study(&self, kind: StudyKind) -> bool {
        self.studies.stop(kind)
    }

    /// True if a study of this kind is running.
    pub(in crate::tui) fn studying(&self, kind: StudyKind) -> bool {
        self.studies.are_running(kind)
    }

    /// Cancels the study of what would help a plan that is no longer in force.
    pub(in crate::tui) fn leave_what_would_help(&mut self) {
        if self.would_help.phase != Phase::Idle {
            self.cancel_study(StudyKind::Help);
            self.would_help.leave();
        }
    }

    /// Also drops the results, which belong to another workload.
    pub(in crate::tui) fn forget_what_would_help(&mut self) {
        self.leave_what_would_help();
        self.would_help.forget();
    }

    /// Hides or shows what would help. While hidden, no study runs.
    pub(in crate::tui) fn fold_what_would_help(&mut self) {
        self.would_help.folded = !self.would_help.folded;
        self.would_help.selected = None;
        if self.would_help.folded {
            self.leave_what_would_help();
        }
    }
}

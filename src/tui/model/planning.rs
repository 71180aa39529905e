//! Plans: the shown one, the search for the next, and studies beside it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::super::{
    changes::Changes, convergence::Convergence, edits::Edits, incumbent::Looked, shown::ShownRun, studies::Studies,
    would_help::WouldHelp,
};
use crate::planner::Search;

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

/// Delay before the screen shows that it is planning, so that quick plans do not flicker.
pub(in crate::tui) const PATIENCE: Duration = Duration::from_millis(80);

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
    /// Effect of the last change.
    pub(in crate::tui) changes: Changes,
}

//! Effects of a transition outside of the state.

use super::{side_job::SideJob, study_job::Study, worker::Job};

/// Effect outside of the state.
pub(super) enum Effect {
    /// Submits a job to the worker.
    Submit(Job),
    /// Runs a side job.
    Aside(SideJob),
    /// Starts a study.
    Study(Study),
    /// Copies text to the terminal's clipboard.
    Clipboard(String),
    /// Suspends to the shell.
    Suspend,
    /// Quits.
    Quit,
}

/// Effects of one event.
pub(super) type Effects = Vec<Effect>;

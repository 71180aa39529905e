//! Periodic check whether a run was stopped.

/// Operations between two checks: about a millisecond.
const OFTEN: usize = 1 << 14;

/// Counts work and polls `stopped` at intervals of it.
pub(super) struct Patience<'a> {
    stopped: &'a dyn Fn() -> bool,
    done: usize,
    lost: bool,
}

impl<'a> Patience<'a> {
    pub(super) fn new(stopped: &'a dyn Fn() -> bool) -> Self {
        Patience { stopped, done: 0, lost: false }
    }

    /// Adds finished work. Returns true once the run was stopped.
    pub(super) fn lost_after(&mut self, operations: usize) -> bool {
        self.done += operations;
        if self.done >= OFTEN {
            self.done = 0;
            self.lost = self.lost || (self.stopped)();
        }
        self.lost
    }

    /// True if the run was stopped at the last check.
    pub(super) fn lost(&self) -> bool {
        self.lost
    }
}

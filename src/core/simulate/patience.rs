//! Whether anybody still waits for a run, asked now and then.

/// Operations between two looks at whether to go on: about a millisecond.
const OFTEN: usize = 1 << 14;

/// Counts work and asks after every so much of it whether to go on.
pub(super) struct Patience<'a> {
    stopped: &'a dyn Fn() -> bool,
    done: usize,
    lost: bool,
}

impl<'a> Patience<'a> {
    pub(super) fn new(stopped: &'a dyn Fn() -> bool) -> Self {
        Patience { stopped, done: 0, lost: false }
    }

    /// Notes work done; true once nobody waits any more.
    pub(super) fn lost_after(&mut self, operations: usize) -> bool {
        self.done += operations;
        if self.done >= OFTEN {
            self.done = 0;
            self.lost = self.lost || (self.stopped)();
        }
        self.lost
    }

    /// Whether nobody waited any more when it was last asked.
    pub(super) fn lost(&self) -> bool {
        self.lost
    }
}

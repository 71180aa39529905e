//! One thread that waits for deadlines, so that those who search need not read the clock: that takes some ten times as long
//! as to look at a flag, and inner loops look often.
//!
//! It is started with the first deadline and sleeps until the next one. `O(log n)` to add one of n.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    thread,
    time::Instant,
};

use super::Control;

/// What is due when.
struct Due {
    at: Instant,
    what: Weak<Control>,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// All that is waited for.
#[derive(Default)]
struct Deadlines {
    due: Mutex<Waiting>,
    sooner: Condvar,
}

/// What is due, the next first.
#[derive(Default)]
struct Waiting {
    due: BinaryHeap<Reverse<Due>>,
    /// With so many those that nobody searches under any more are forgotten.
    many: usize,
}

/// Fewer than these are never looked through.
const FEW: usize = 64;

/// Has a search expire at an instant; `false` where no thread can be had that waits for it.
pub(super) fn expire(at: Instant, what: Weak<Control>) -> bool {
    static DEADLINES: OnceLock<Option<&'static Deadlines>> = OnceLock::new();
    let started = DEADLINES.get_or_init(|| {
        let deadlines: &'static Deadlines = Box::leak(Box::default());
        let thread = thread::Builder::new().name("deadlines".into());
        thread.spawn(|| deadlines.wait()).ok().map(|_| deadlines)
    });
    let Some(deadlines) = started else { return false };
    deadlines.locked().add(Due { at, what });
    deadlines.sooner.notify_one();
    true
}

impl Waiting {
    fn add(&mut self, due: Due) {
        if self.due.len() >= self.many.max(FEW) {
            self.due.retain(|Reverse(due)| due.what.strong_count() > 0);
            self.many = 2 * self.due.len();
        }
        self.due.push(Reverse(due));
    }
}

impl Deadlines {
    fn locked(&self) -> MutexGuard<'_, Waiting> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets searches expire, for ever.
    fn wait(&self) {
        let mut waiting = self.locked();
        loop {
            let now = Instant::now();
            waiting = match waiting.due.peek() {
                None => self.sooner.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(Reverse(next)) if next.at > now => {
                    let left = next.at - now;
                    self.sooner.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    if let Some(Reverse(due)) = waiting.due.pop()
                        && let Some(control) = due.what.upgrade()
                    {
                        control.expire();
                    }
                    waiting
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;

    #[test]
    fn what_nobody_waits_for_any_more_is_forgotten() {
        let mut waiting = Waiting::default();
        let kept: Vec<Arc<Control>> = (0..10).map(|_| Control::new(None, None, None)).collect();
        let soon = Instant::now();
        for control in &kept {
            waiting.add(Due { at: soon + Duration::from_secs(9), what: Arc::downgrade(control) });
        }
        for second in 0..10_000 {
            let gone = Arc::downgrade(&Control::new(None, None, None));
            waiting.add(Due { at: soon + Duration::from_secs(second), what: gone });
        }
        assert!(waiting.due.len() <= FEW);
        assert_eq!(waiting.due.iter().filter(|Reverse(due)| due.what.strong_count() > 0).count(), kept.len());
    }
}

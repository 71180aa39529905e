//! Ctrl-C during a search: the first one stops the search and keeps the best plan, the second ends the program. If
//! something [follows](Interrupt::follows) the search, the second stops that, and the third ends the program.
//!
//! The thread that waits for the signal lives as long as the process, because a signal handler cannot be uninstalled.
//! After the result is written, the thread emulates the default action of the system.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use signal_hook::{consts::SIGINT, iterator::Signals, low_level};

use super::Failure;
use crate::planner::Search;

/// Guard: while it lives, the first Ctrl-C cancels the search. It must outlive the writing of the result.
#[must_use]
pub(crate) struct Interrupt {
    armed: Arc<AtomicBool>,
    pressed: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs the Ctrl-C handler for a search.
    ///
    /// # Errors
    /// [`Failure`] if the system refuses a signal handler.
    pub(super) fn cancels(search: &Search) -> Result<Self, Failure> {
        let armed = Arc::new(AtomicBool::new(true));
        let mut signals = Signals::new([SIGINT])
            .map_err(|error| Failure::refused(format!("cannot listen for Ctrl-C: {error}"), ""))?;
        let pressed = Arc::new(AtomicBool::new(false));
        let (flag, noted, search) = (Arc::clone(&armed), Arc::clone(&pressed), search.clone());
        thread::spawn(move || {
            for signal in signals.forever() {
                if flag.swap(false, Ordering::Relaxed) {
                    noted.store(true, Ordering::Relaxed);
                    search.cancel();
                } else if low_level::emulate_default_handler(signal).is_err() {
                    // 128 + SIGINT, as a shell reports it.
                    low_level::exit(130);
                }
            }
        });
        Ok(Interrupt { armed, pressed })
    }

    /// Rearms the handler: the next Ctrl-C stops whatever [`Search::follow`]s the search. If nothing follows, as during
    /// the writing of the plan, that Ctrl-C has no effect, so a late key press does not lose the result.
    pub(super) fn follows(&self) {
        self.armed.store(true, Ordering::Relaxed);
    }

    /// True if Ctrl-C was pressed.
    pub(super) fn pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.armed.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_first_ctrl_c_cancels_the_search() {
        let search = Search::default();
        let interrupt = Interrupt::cancels(&search).unwrap();
        assert!(!interrupt.pressed() && !search.cancelled());
        low_level::raise(SIGINT).unwrap();
        // Another thread handles the signal; the minute only ends a test that fails.
        let patience = Instant::now() + Duration::from_secs(60);
        while !search.cancelled() && Instant::now() < patience {
            thread::yield_now();
        }
        assert!(interrupt.pressed() && search.cancelled() && !search.deadline_passed());
        // The next Ctrl-C stops what follows the search.
        let after = search.follow(Duration::ZERO);
        interrupt.follows();
        assert!(!after.cancelled());
        low_level::raise(SIGINT).unwrap();
        while !after.cancelled() && Instant::now() < patience {
            thread::yield_now();
        }
        assert!(after.cancelled());
    }
}

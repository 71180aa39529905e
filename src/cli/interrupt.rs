//! Ctrl-C while a planner runs: once stops the search and keeps the best plan, twice ends the program. Where something
//! [follows](Interrupt::follows) the search, the second stops that, and the third ends the program.
//!
//! The thread that waits for the signal lives as long as the process: a handler once installed cannot be given back to
//! the system, so from when the result is written on the thread does what the system would have done.

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

/// While this lives, the first Ctrl-C cancels the search: it must outlive the writing of what was found.
#[must_use]
pub(crate) struct Interrupt {
    armed: Arc<AtomicBool>,
    pressed: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens for Ctrl-C on behalf of a search.
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

    /// Whatever [`Search::follow`]s the search is stopped by the next Ctrl-C, and where nothing does, as where the plan is
    /// being written, that one is let pass: what was searched for is not lost to a key that came too late.
    pub(super) fn follows(&self) {
        self.armed.store(true, Ordering::Relaxed);
    }

    /// Whether Ctrl-C was pressed.
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
        // The signal is handled on another thread; a minute is only there to end a test that fails.
        let patience = Instant::now() + Duration::from_secs(60);
        while !search.cancelled() && Instant::now() < patience {
            thread::yield_now();
        }
        assert!(interrupt.pressed() && search.cancelled() && !search.deadline_passed());
        // What follows the search is stopped by the next.
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

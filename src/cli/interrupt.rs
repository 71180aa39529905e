//! Ctrl-C while a planner runs: once stops the search and keeps the best plan, twice ends the program.
//!
//! The thread that waits for the signal lives as long as the process: a handler once installed cannot be given back to
//! the system, so from the end of the search on the thread does what the system would have done.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use signal_hook::{consts::SIGINT, iterator::Signals, low_level};

use crate::planner::Search;

/// While this lives, the first Ctrl-C cancels the search.
pub(super) struct Interrupt {
    armed: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens for Ctrl-C on behalf of a search.
    ///
    /// # Errors
    /// If the system refuses a signal handler.
    pub(super) fn cancels(search: &Search) -> io::Result<Self> {
        let armed = Arc::new(AtomicBool::new(true));
        let mut signals = Signals::new([SIGINT])?;
        let (flag, search) = (Arc::clone(&armed), search.clone());
        thread::spawn(move || {
            for signal in signals.forever() {
                if flag.swap(false, Ordering::Relaxed) {
                    search.cancel();
                } else if low_level::emulate_default_handler(signal).is_err() {
                    // 128 + SIGINT, as a shell reports it.
                    low_level::exit(130);
                }
            }
        });
        Ok(Interrupt { armed })
    }

    /// Whether Ctrl-C was pressed.
    pub(super) fn pressed(&self) -> bool {
        !self.armed.load(Ordering::Relaxed)
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
    }
}

//! Ctrl-C during a search: the first one stops the search and keeps the best plan, the second ends the program. If
//! something [follows](Interrupt::follows) the search, the second stops that, and the third ends the program.
//!
//! The thread that waits for Ctrl-C lives as long as the process, because a handler cannot be uninstalled. Without a
//! search to stop, it does what the system does by default. In `plantui serve` a message takes the place of Ctrl-C.

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use super::Failure;
use crate::{planner::Search, streams};

/// Guard: while it lives, the first Ctrl-C cancels the search. It must outlive the writing of the result.
#[must_use]
pub(crate) struct Interrupt(Arc<Stop>);

/// Search that Ctrl-C stops.
struct Stop {
    search: Search,
    armed: AtomicBool,
    pressed: AtomicBool,
}

/// Searches under way.
static STOPS: Mutex<Vec<Arc<Stop>>> = Mutex::new(vec![]);

fn stops() -> MutexGuard<'static, Vec<Arc<Stop>>> {
    STOPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops the searches under way, as Ctrl-C does; false if there is none left to stop.
pub(super) fn press() -> bool {
    let mut stopped = false;
    for stop in stops().iter().filter(|stop| stop.armed.swap(false, Ordering::Relaxed)) {
        stop.pressed.store(true, Ordering::Relaxed);
        stop.search.cancel();
        stopped = true;
    }
    stopped
}

/// True if the next search is to be stopped as soon as it begins.
static NEXT: AtomicBool = AtomicBool::new(false);

/// Stops the next search as soon as it begins, or no longer does so.
pub(super) fn press_next(stops: bool) {
    NEXT.store(stops, Ordering::Relaxed);
}

impl Interrupt {
    /// Makes the next Ctrl-C cancel a search.
    ///
    /// # Errors
    /// [`Failure`] if the system refuses a handler.
    pub(super) fn cancels(search: &Search) -> Result<Self, Failure> {
        static LISTENS: OnceLock<Result<(), String>> = OnceLock::new();
        let (armed, pressed) = (AtomicBool::new(true), AtomicBool::new(false));
        // Before the handler exists, so that a key pressed right after does not end the program.
        let interrupt = Interrupt(Arc::new(Stop { search: search.clone(), armed, pressed }));
        stops().push(Arc::clone(&interrupt.0));
        if !streams::is_call() {
            let listens = LISTENS.get_or_init(|| listen().map_err(|error| error.to_string()));
            listens.clone().map_err(|error| Failure::refused(format!("cannot listen for Ctrl-C: {error}"), ""))?;
        }
        if NEXT.swap(false, Ordering::Relaxed) {
            press();
        }
        Ok(interrupt)
    }

    /// Rearms the handler: the next Ctrl-C stops whatever [`Search::follow`]s the search. If nothing follows, as during
    /// the writing of the plan, that Ctrl-C has no effect, so a late key press does not lose the result.
    pub(super) fn follows(&self) {
        self.0.armed.store(true, Ordering::Relaxed);
    }

    /// True if Ctrl-C was pressed.
    pub(super) fn pressed(&self) -> bool {
        self.0.pressed.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        stops().retain(|stop| !Arc::ptr_eq(stop, &self.0));
    }
}

/// Starts the thread that waits for Ctrl-C.
#[cfg(unix)]
fn listen() -> std::io::Result<()> {
    use signal_hook::{consts::SIGINT, iterator::Signals, low_level};
    let mut signals = Signals::new([SIGINT])?;
    std::thread::Builder::new().name("ctrl-c".into()).spawn(move || {
        for signal in signals.forever() {
            if !press() && low_level::emulate_default_handler(signal).is_err() {
                // 128 + SIGINT, as a shell reports it.
                low_level::exit(130);
            }
        }
    })?;
    Ok(())
}

/// Starts the thread that waits for Ctrl-C.
#[cfg(not(unix))]
fn listen() -> Result<(), ctrlc::Error> {
    /// Exit code of a program that Ctrl-C ended (`STATUS_CONTROL_C_EXIT`).
    const CONTROL_C: u32 = 0xC000_013A;
    ctrlc::set_handler(|| {
        if !press() {
            std::process::exit(CONTROL_C as i32);
        }
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        thread,
        time::{Duration, Instant},
    };

    use signal_hook::{consts::SIGINT, low_level};

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

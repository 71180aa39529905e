//! Work with progress: a second thread draws the progress while it runs.

use std::{panic, sync::mpsc, thread, time::Duration};

use super::{
    interrupt::Interrupt,
    progress::{SearchBar, Timer},
};
use crate::{plan::Measure, planner::Search, simulate::LEAST_TIME};

/// Interval between two drawings of the bar.
pub(super) const FRAME: Duration = Duration::from_millis(50);

/// Plans while a bar shows the progress of the search.
pub(super) fn watched<T>(
    (title, measure): (&'static str, Measure),
    search: &Search,
    interrupt: &Interrupt,
    work: impl FnOnce() -> T,
) -> T {
    let mut bar = SearchBar::new(title, measure);
    drawn(|| bar.update(search, interrupt.pressed()), work)
}

/// Simulates the result of a search, within the rest of its deadline and until Ctrl-C.
pub(super) fn simulating<T>(search: &Search, interrupt: &Interrupt, work: impl FnOnce(&Search) -> T) -> T {
    let after = search.follow(LEAST_TIME);
    interrupt.follows();
    let mut timer = Timer::new("simulating");
    drawn(|| timer.update(), || work(&after))
}

/// Maps while the elapsed time is shown.
pub(super) fn mapping<T>(work: impl FnOnce() -> T) -> T {
    let mut timer = Timer::new("mapping");
    drawn(|| timer.update(), work)
}

/// Works on this thread while another one draws.
fn drawn<T>(mut draw: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let (done, running) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while running.recv_timeout(FRAME) == Err(mpsc::RecvTimeoutError::Timeout) {
                draw();
            }
        });
        // If the work panics, the bar must end first, or the scope would wait for it forever.
        let found = panic::catch_unwind(panic::AssertUnwindSafe(work));
        drop(done);
        found.unwrap_or_else(|bug| panic::resume_unwind(bug))
    })
}

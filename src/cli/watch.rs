//! Work that is watched: while it lasts, a second thread draws how far it is.

use std::{panic, sync::mpsc, thread, time::Duration};

use super::{
    interrupt::Interrupt,
    progress::{Bar, Timer},
};
use crate::{plan::Measure, planner::Search, simulate::LEAST_TIME};

/// How often the bar is drawn.
pub(super) const FRAME: Duration = Duration::from_millis(50);

/// Plans, while a bar shows how far the search is.
pub(super) fn watched<T>(
    (title, measure): (&'static str, Measure),
    search: &Search,
    interrupt: &Interrupt,
    work: impl FnOnce() -> T,
) -> T {
    let mut bar = Bar::new(title, measure);
    drawn(|| bar.update(search, interrupt.pressed()), work)
}

/// Simulates what a search has found, for what is left of its deadline and until Ctrl-C.
pub(super) fn simulating<T>(search: &Search, interrupt: &Interrupt, work: impl FnOnce(&Search) -> T) -> T {
    let after = search.follow(LEAST_TIME);
    interrupt.follows();
    let mut timer = Timer::new("simulating");
    drawn(|| timer.update(), || work(&after))
}

/// Maps, while the time is shown that it takes.
pub(super) fn mapping<T>(work: impl FnOnce() -> T) -> T {
    let mut timer = Timer::new("mapping");
    drawn(|| timer.update(), work)
}

/// Works on this thread while another draws.
fn drawn<T>(mut draw: impl FnMut() + Send, work: impl FnOnce() -> T) -> T {
    let (done, running) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while running.recv_timeout(FRAME) == Err(mpsc::RecvTimeoutError::Timeout) {
                draw();
            }
        });
        // Should the work panic, the bar must end first, or the scope would wait for it for ever.
        let found = panic::catch_unwind(panic::AssertUnwindSafe(work));
        drop(done);
        found.unwrap_or_else(|bug| panic::resume_unwind(bug))
    })
}

//! Windows: no signals, no hangup, no stop.

use std::io;

use crossbeam_channel::{Receiver, never};

use super::Signal;

/// Input of the console, independent of the standard streams.
pub(in crate::tui) const TERMINAL: &str = "CONIN$";

/// Returns a channel that stays silent.
///
/// # Errors
/// None.
#[allow(clippy::unnecessary_wraps)]
pub(in crate::tui) fn signals() -> io::Result<Receiver<Signal>> {
    Ok(never())
}

/// Returns a channel that stays silent: the system ends a program whose window is closed.
///
/// # Errors
/// None.
#[allow(clippy::unnecessary_wraps)]
pub(in crate::tui) fn hangups() -> io::Result<Receiver<()>> {
    Ok(never())
}

/// True if an error means that the terminal is gone.
pub(in crate::tui) fn is_loss(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// False: a console has no job control.
pub(in crate::tui) fn stops_usefully() -> bool {
    false
}

/// Does nothing, because nothing could resume the process.
///
/// # Errors
/// None.
#[allow(clippy::unnecessary_wraps)]
pub(in crate::tui) fn stop_here() -> io::Result<()> {
    Ok(())
}

/// Ends the process with a code that says so.
///
/// # Errors
/// None.
pub(in crate::tui) fn end_as(_: i32) -> io::Result<()> {
    std::process::exit(1)
}

/// Ends the process after the terminal was lost.
///
/// # Errors
/// None.
pub(in crate::tui) fn end_as_hangup() -> io::Result<()> {
    std::process::exit(1)
}

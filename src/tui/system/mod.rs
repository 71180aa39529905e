//! Reports of the operating system to the screen: signals, and the loss of the terminal.
//!
//! Unix sends signals and detects a hangup. On Windows neither exists: Ctrl-C is a key in raw mode, and the system ends a
//! program whose window is closed.

#[cfg(unix)]
#[path = "unix.rs"]
mod here;
#[cfg(not(unix))]
#[path = "windows.rs"]
mod here;

pub(super) use here::{TERMINAL, end_as, end_as_hangup, hangups, is_loss, signals, stop_here, stops_usefully};

/// Signal that concerns the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code))]
pub(super) enum Signal {
    /// The user asks for a stop (Ctrl-Z of another terminal, `kill -TSTP`).
    Suspend,
    /// The process goes on after a stop.
    Resume,
    /// The process is to end, by this signal.
    End(i32),
}

//! Unix: signals, and detection of a lost terminal.
//!
//! The system sends SIGHUP only to processes controlled by the terminal, so a program in its own session gets none. The
//! thread that reads keys detects nothing either: crossterm reads the end of the input as "nothing yet" and polls
//! without pause. So a thread sleeps in [`hangups`] until the system reports that the other end is closed.

use std::{
    fs::File,
    io::{self, IsTerminal},
    thread,
    time::Duration,
};

use crossbeam_channel::{Receiver, bounded, unbounded};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{getpgrp, getsid},
};
use signal_hook::{
    consts::{
        SIGABRT, SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGTSTP, SIGUSR1, SIGUSR2,
        SIGVTALRM, SIGXCPU, SIGXFSZ,
    },
    iterator::Signals,
    low_level::emulate_default_handler,
};

use super::Signal;

/// Controlling terminal of the process, independent of its standard streams.
pub(in crate::tui) const TERMINAL: &str = "/dev/tty";

/// Time that a terminating signal allows for restoring the terminal.
const PATIENCE: Duration = Duration::from_secs(3);

/// Signals that restore the terminal and end the program.
const ENDS: [i32; 13] = [
    SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGABRT, SIGALRM, SIGVTALRM, SIGXCPU, SIGXFSZ, SIGSYS, SIGTRAP,
];

/// Returns a channel of the signals that concern the screen.
///
/// # Errors
/// If signal handlers or the thread cannot be created.
pub(in crate::tui) fn signals() -> io::Result<Receiver<Signal>> {
    let (sender, receiver) = unbounded();
    let mut signals = Signals::new(ENDS.into_iter().chain([SIGTSTP, SIGCONT]))?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            let told = match signal {
                SIGTSTP => Signal::Suspend,
                SIGCONT => Signal::Resume,
                _ => Signal::End(signal),
            };
            if sender.send(told).is_err() {
                break;
            }
            if let Signal::End(signal) = told {
                // The loop may be blocked on a terminal that accepts no output.
                thread::sleep(PATIENCE);
                drop(emulate_default_handler(signal));
            }
        }
    })?;
    Ok(receiver)
}

/// True if somebody can resume the process after a stop. A shell with job control gives each job its own process group.
/// In the group of the session's leader, as under `xterm -e plantui`, a stopped program hangs for good.
pub(in crate::tui) fn stops_usefully() -> bool {
    getsid(None).is_ok_and(|session| session != getpgrp())
}

/// Stops the process; returns when it is resumed.
///
/// # Errors
/// If the system refuses.
pub(in crate::tui) fn stop_here() -> io::Result<()> {
    emulate_default_handler(SIGTSTP)
}

/// Ends the process as this signal would have.
///
/// # Errors
/// If the system refuses.
pub(in crate::tui) fn end_as(signal: i32) -> io::Result<()> {
    emulate_default_handler(signal)
}

/// Ends the process as after a hangup, however the loss of the terminal was detected.
///
/// # Errors
/// If the system refuses.
pub(in crate::tui) fn end_as_hangup() -> io::Result<()> {
    emulate_default_handler(SIGHUP)
}

/// Returns a channel that gets one message when the terminal for output or for keys is gone. It is closed without a
/// message if the system cannot detect that.
///
/// # Errors
/// If no thread can be created.
pub(in crate::tui) fn hangups() -> io::Result<Receiver<()>> {
    let (sender, receiver) = bounded(1);
    thread::Builder::new().name("hangup".into()).spawn(move || {
        if sleep_until_gone().unwrap_or(false) {
            sender.send(()).ok();
        }
    })?;
    Ok(receiver)
}

/// Returns when a terminal is gone; false if the system cannot watch them.
fn sleep_until_gone() -> io::Result<bool> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    // As in crossterm: keys come from standard input if it is a terminal, else from the controlling terminal.
    let controlling = if stdin.is_terminal() { None } else { Some(File::open(TERMINAL)?) };
    let keys = match &controlling {
        Some(file) => PollFd::new(file, PollFlags::empty()),
        None => PollFd::new(&stdin, PollFlags::empty()),
    };
    // No events are requested: poll always reports hangups and errors.
    let mut watched = [PollFd::new(&stdout, PollFlags::empty()), keys];
    loop {
        match poll(&mut watched, None) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(watched.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))),
            Err(error) => return Err(error.into()),
        }
    }
}

/// True if an error means that the terminal is gone.
pub(in crate::tui) fn is_loss(error: &io::Error) -> bool {
    let told = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    // EIO: the other end of a pseudo-terminal is closed; ENXIO: the device no longer exists.
    error.kind() == io::ErrorKind::BrokenPipe || told(Errno::IO) || told(Errno::NXIO)
}

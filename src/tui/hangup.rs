//! Noticing that the terminal has gone: its window was closed, its connection was cut.
//!
//! The system sends SIGHUP to whom the terminal controls, and to nobody else: a program that was started in a session of
//! its own hears nothing. The thread that reads keys does not notice either, because crossterm takes the end of the input
//! for "nothing yet" and asks again without pause. So a thread sleeps here until the system says that the other end is closed.

use std::{
    fs::File,
    io::{self, IsTerminal},
    thread,
};

use crossbeam_channel::{Receiver, bounded};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};

/// A channel that is sent to once, when the terminal that is drawn on or the one that keys come from has gone. It is
/// closed without a word where the system cannot tell.
///
/// # Errors
/// If no thread can be made.
pub(super) fn listen() -> io::Result<Receiver<()>> {
    let (sender, receiver) = bounded(1);
    thread::Builder::new().name("hangup".into()).spawn(move || {
        if sleep_until_gone().unwrap_or(false) {
            sender.send(()).ok();
        }
    })?;
    Ok(receiver)
}

/// Returns when a terminal has gone; false where the system cannot watch them.
fn sleep_until_gone() -> io::Result<bool> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    // As crossterm does: keys come from standard input if that is a terminal, else from the one that controls us.
    let controlling = if stdin.is_terminal() { None } else { Some(File::open(TERMINAL)?) };
    let keys = match &controlling {
        Some(file) => PollFd::new(file, PollFlags::empty()),
        None => PollFd::new(&stdin, PollFlags::empty()),
    };
    // Nothing is asked for: what has gone is told unasked.
    let mut watched = [PollFd::new(&stdout, PollFlags::empty()), keys];
    loop {
        match poll(&mut watched, None) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(watched.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The terminal that controls the process, whatever its standard streams are.
pub(super) const TERMINAL: &str = "/dev/tty";

/// Whether an error says that the terminal has gone.
pub(super) fn caused(error: &io::Error) -> bool {
    let told = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    // EIO: the other end of a pseudo-terminal is closed; ENXIO: there is no device any more.
    error.kind() == io::ErrorKind::BrokenPipe || told(Errno::IO) || told(Errno::NXIO)
}

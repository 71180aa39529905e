//! Detection of a lost terminal: its window was closed or its connection was cut.
//!
//! The system sends SIGHUP only to processes controlled by the terminal, so a program in its own session gets none. The
//! thread that reads keys detects nothing either: crossterm reads the end of the input as "nothing yet" and polls
//! without pause. So a thread sleeps here until the system reports that the other end is closed.

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

/// Returns a channel that gets one message when the terminal for output or for keys is gone. It is closed without a
/// message if the system cannot detect that.
///
/// # Errors
/// If no thread can be created.
pub(super) fn listen() -> io::Result<Receiver<()>> {
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

/// Controlling terminal of the process, independent of its standard streams.
pub(super) const TERMINAL: &str = "/dev/tty";

/// True if an error means that the terminal is gone.
pub(super) fn caused(error: &io::Error) -> bool {
    let told = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    // EIO: the other end of a pseudo-terminal is closed; ENXIO: the device no longer exists.
    error.kind() == io::ErrorKind::BrokenPipe || told(Errno::IO) || told(Errno::NXIO)
}

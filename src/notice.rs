//! What is said on standard error beside a result: notes, errors and their hints.
//!
//! Nobody may be left to read them: the terminal's window was closed, the pipe's reader has gone, the disk is full. The
//! macros of the standard library panic then; here the words are lost and the exit code alone tells how it ended.

use std::io::{self, Write};

use crate::text::{single_line, visible};

/// Says what a user should know of a result that stands.
pub(crate) fn note(text: &str) {
    whole(&format!("note: {}\n", single_line(text)));
}

/// Says what went wrong.
pub(crate) fn error(text: &str) {
    whole(&format!("error: {}\n", single_line(text)));
}

/// Says what the program itself did wrong.
pub(crate) fn bug(text: &str) {
    whole(&format!("bug: {}\n", single_line(text)));
}

/// Says what to do about it; nothing if there is nothing to do.
pub(crate) fn hint(text: &str) {
    if !text.is_empty() {
        whole(&format!("hint: {}\n", single_line(text)));
    }
}

/// Writes a text of several lines, with whatever a terminal would obey made [`visible`].
pub(crate) fn whole(text: &str) {
    let mut stream = io::stderr().lock();
    // Whoever cannot be told cannot be told of that either.
    drop(stream.write_all(visible(text).as_bytes()).and_then(|()| stream.flush()));
}

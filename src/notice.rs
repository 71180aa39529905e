//! Messages on standard error beside a result: notes, errors and hints.
//!
//! Standard error may be unusable: the terminal is closed, the pipe's reader has exited, the disk is full. The standard
//! library's macros panic then; here the message is lost and only the exit code reports the outcome.

use crate::{
    streams,
    text::{single_line, visible},
};

/// Prints a note on a valid result.
pub(crate) fn note(text: &str) {
    whole(&format!("note: {}\n", single_line(text)));
}

/// Prints an error.
pub(crate) fn error(text: &str) {
    whole(&format!("error: {}\n", single_line(text)));
}

/// Prints a bug of the program itself.
pub(crate) fn bug(text: &str) {
    whole(&format!("bug: {}\n", single_line(text)));
}

/// Prints a repair, unless it is empty.
pub(crate) fn hint(text: &str) {
    if !text.is_empty() {
        whole(&format!("hint: {}\n", single_line(text)));
    }
}

/// Writes a text of several lines, with terminal control characters made [`visible`].
pub(crate) fn whole(text: &str) {
    streams::message(&visible(text));
}

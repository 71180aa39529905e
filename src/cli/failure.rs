//! End of a command: exit codes, and the two lines of an expected error or of a bug.

use std::io;

use crate::{
    cluster::LimitError,
    config::ConfigError,
    generate::GenerateError,
    notice,
    planner::{Fault, OptionError, REPORT},
    source::LoadError,
};

/// End of a command that was used correctly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    /// Success.
    Done,
    /// There is no feasible plan, or the plan that was checked is not valid.
    NoPlan,
    /// The deadline or Ctrl-C ended the command before any plan was found.
    Stopped,
    /// The only result is a planner's bug.
    Bug,
}

/// Exit code of a bug: an internal software error in `sysexits.h`.
pub(super) const BUG: u8 = 70;

impl CommandEnd {
    /// Exit code: 0, 1, 3 or 70. Code 2 is a [`Failure`].
    pub fn exit_code(self) -> u8 {
        match self {
            CommandEnd::Done => 0,
            CommandEnd::NoPlan => 1,
            CommandEnd::Stopped => 3,
            CommandEnd::Bug => BUG,
        }
    }
}

/// Reason why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Wrong use or input: a sentence, and the repair (may be empty).
    Refused {
        /// Sentence about the problem.
        message: String,
        /// Repair.
        hint: String,
    },
    /// Planner bug, independent of the input.
    Bug(String),
    /// The reader of standard output has exited; this is not an error.
    ReaderLeft,
}

impl Failure {
    /// Refusal with a hint; an empty hint is not shown.
    pub fn refused(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::Refused { message: message.into(), hint: hint.into() }
    }

    /// Failure to write to `place`.
    pub fn writing(place: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
            io::ErrorKind::NotFound => {
                Failure::refused(format!("{place} cannot be written: its directory does not exist"), "create it first")
            }
            io::ErrorKind::PermissionDenied => {
                Failure::refused(format!("{place} may not be written"), "choose a place that you may write to")
            }
            _ => Failure::refused(format!("{place} cannot be written: {error}"), ""),
        }
    }

    /// Prints the error to standard error and returns the exit code.
    pub fn report(&self) -> u8 {
        let (message, hint) = match self {
            Failure::Refused { message, hint } => (message, hint),
            Failure::Bug(what) => {
                print_bug(what);
                return BUG;
            }
            Failure::ReaderLeft => return 0,
        };
        notice::error(message);
        notice::hint(hint);
        2
    }
}

/// Prints a planner's bug and the repair to standard error.
pub(super) fn print_bug(what: &(impl ToString + ?Sized)) {
    notice::bug(&what.to_string());
    notice::hint(REPORT);
}

impl From<GenerateError> for Failure {
    fn from(error: GenerateError) -> Self {
        match error {
            GenerateError::Config(error) => error.into(),
            error @ GenerateError::Setting { .. } => Failure::refused(error.to_string(), ""),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::refused(error.to_string(), error.repair)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure::Bug(fault.to_string())
    }
}

impl From<LoadError> for Failure {
    fn from(mut error: LoadError) -> Self {
        if error.file == super::input::STANDARD_INPUT {
            error.file = "standard input".into();
        }
        let hint = std::mem::take(&mut error.repair);
        Failure::refused(error.to_string(), hint)
    }
}

impl Failure {
    /// Failure for a workload that lacks a limit, or that has one too large.
    pub(crate) fn lacks(source: &str, limit: &LimitError) -> Self {
        Failure::refused(format!("{source}: {limit}"), "")
    }
}

impl From<OptionError> for Failure {
    fn from(error: OptionError) -> Self {
        if let OptionError::File(error) = error {
            return error.into();
        }
        if let OptionError::Unsuited { repair, .. } = &error {
            return Failure::refused(error.to_string(), repair);
        }
        Failure::refused(error.to_string(), "`plantui planners` lists every planner with its options")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_error_becomes_a_sentence_and_a_hint() {
        let error = LoadError::at("-", "nodes", "is empty", "a workload needs at least one node").on_line(Some(3));
        let expected = Failure::refused("standard input:3: nodes is empty", "a workload needs at least one node");
        assert_eq!(Failure::from(error), expected);
    }

    #[test]
    fn a_reader_that_leaves_is_no_error() {
        let failure = Failure::writing("standard output", &io::ErrorKind::BrokenPipe.into());
        assert_eq!(failure, Failure::ReaderLeft);
        assert!(matches!(
            Failure::writing("x/y.json", &io::ErrorKind::NotFound.into()),
            Failure::Refused { message, .. } if message.contains("x/y.json") && message.contains("directory")
        ));
    }
}

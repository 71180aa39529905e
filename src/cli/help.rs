//! Help whose examples stay as they are written: a call is copied as one line, however narrow the terminal.
//!
//! The parser wraps all that stands below the options at its spaces. Those of examples are replaced by others at which it
//! does not wrap, and put back where help is printed.

use std::ffi::OsString;

use clap::{Command, CommandFactory, FromArgMatches, builder::StyledStr};

use super::{Cli, output};

/// A space at which nothing is wrapped.
const KEPT: char = '\u{a0}';

/// Reads arguments.
///
/// # Errors
/// clap's error, or its help text, which [`printed`] turns into text.
pub(super) fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = kept(Cli::command());
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The command and all below it, their examples not to be wrapped.
fn kept(command: Command) -> Command {
    let examples = command.get_after_long_help().map(ToString::to_string);
    let command = command.mut_subcommands(kept);
    match examples {
        Some(examples) => command.after_long_help(lines_kept(&examples)),
        None => command,
    }
}

/// The text, every line that begins with two spaces in one piece.
fn lines_kept(text: &str) -> String {
    let lines = text.lines().map(|line| match line.starts_with("  ") {
        true => line.replace(' ', &KEPT.to_string()),
        false => line.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Help as it is printed, in colours on a terminal that wants them.
pub(super) fn printed(help: &StyledStr) -> String {
    let text = if output::shows_colours() { help.ansi().to_string() } else { help.to_string() };
    text.replace(KEPT, " ")
}

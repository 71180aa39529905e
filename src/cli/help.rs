//! Help text whose examples are never wrapped, so that a call can be copied as one line from a narrow terminal.
//!
//! clap wraps text at spaces. The spaces of examples are replaced by no-break spaces before clap sees them, and put back when
//! help is printed.

use std::ffi::OsString;

use clap::{Command, CommandFactory, FromArgMatches, builder::StyledStr};

use super::{Cli, output};

/// No-break space.
const KEPT: char = '\u{a0}';

/// Parses the arguments.
///
/// # Errors
/// clap's error, or its help text, which [`printed`] turns into text.
pub(super) fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = kept(Cli::command());
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The command and its subcommands, with examples that clap does not wrap.
fn kept(command: Command) -> Command {
    let examples = command.get_after_long_help().map(ToString::to_string);
    let command = command.mut_subcommands(kept);
    match examples {
        Some(examples) => command.after_long_help(lines_kept(&examples)),
        None => command,
    }
}

/// The text with no-break spaces in every line that begins with two spaces.
fn lines_kept(text: &str) -> String {
    let lines = text.lines().map(|line| match line.starts_with("  ") {
        true => line.replace(' ', &KEPT.to_string()),
        false => line.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Help text as printed, coloured on a terminal that shows colours.
pub(super) fn printed(help: &StyledStr) -> String {
    let text = if output::shows_colours() { help.ansi().to_string() } else { help.to_string() };
    text.replace(KEPT, " ")
}

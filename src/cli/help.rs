//! Help text with unwrapped examples, so that a command can be copied as one line from a narrow terminal.
//!
//! clap wraps text at spaces. The spaces of examples become no-break spaces before clap formats them, and are restored
//! when help is printed.

use std::ffi::OsString;

use clap::{Command, CommandFactory, FromArgMatches, builder::StyledStr};

use super::{Cli, output};

/// No-break space.
const NO_BREAK_SPACE: char = '\u{a0}';

/// Parses the arguments.
///
/// # Errors
/// clap's error or help text, which [`printed`] converts to text.
pub(super) fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = with_unwrapped_examples(Cli::command());
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Command and its subcommands, with examples that clap does not wrap.
fn with_unwrapped_examples(command: Command) -> Command {
    let examples = command.get_after_long_help().map(ToString::to_string);
    let command = command.mut_subcommands(with_unwrapped_examples);
    match examples {
        Some(examples) => command.after_long_help(with_no_break_spaces(&examples)),
        None => command,
    }
}

/// Text with no-break spaces in every line that begins with two spaces.
fn with_no_break_spaces(text: &str) -> String {
    let lines = text.lines().map(|line| match line.starts_with("  ") {
        true => line.replace(' ', &NO_BREAK_SPACE.to_string()),
        false => line.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Help text as printed, coloured on a terminal that shows colours.
pub(super) fn printed(help: &StyledStr) -> String {
    let text = if output::shows_colours() { help.ansi().to_string() } else { help.to_string() };
    text.replace(NO_BREAK_SPACE, " ")
}

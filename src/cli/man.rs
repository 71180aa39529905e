//! `plantui man`: prints manual pages, one for each command, or all commands as JSON for generators of documentation.

use std::{fs, path::PathBuf};

use clap::{Arg, ArgAction, Args, Command, CommandFactory, builder::StyledStr};
use clap_mangen::Man;
use serde::Serialize;

use super::{
    Cli, CommandEnd, Failure, input,
    output::{self, Destination},
};

const EXAMPLES: &str = "\
Examples:
  plantui man | man -l -
  plantui man --directory ~/.local/share/man/man1

Without --directory all pages go to standard output.";

/// Print the manual pages
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Writes a file for every page into this directory, and creates the directory
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Lets --directory replace files
    #[arg(long, requires = "directory")]
    force: bool,
    /// Prints a JSON array of all commands with their options in place of the pages
    #[arg(long, conflicts_with = "directory")]
    json: bool,
}

/// Command in the JSON array; the first is `plantui` itself.
#[derive(Debug, Serialize)]
struct CommandPart {
    name: String,
    about: String,
    usage: String,
    options: Vec<OptionPart>,
    /// Examples and notes below the options.
    after: String,
}

/// Argument or option of a command.
#[derive(Debug, Serialize)]
struct OptionPart {
    /// Name without dashes.
    name: String,
    /// As the command's help shows it: `<WORKLOAD>`, `-o, --output <FILE>`.
    shown: String,
    positional: bool,
    short: Option<char>,
    aliases: Vec<String>,
    /// Placeholder of the value; `None` for a switch.
    value: Option<String>,
    help: String,
    heading: Option<String>,
    required: bool,
    /// True if it may be given several times.
    repeated: bool,
    default: Option<String>,
    values: Vec<ValuePart>,
}

/// Possible value of an option.
#[derive(Debug, Serialize)]
struct ValuePart {
    name: String,
    help: String,
}

impl ManArgs {
    /// Prints or writes the pages.
    ///
    /// # Errors
    /// [`Failure`] if a page cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        if self.json {
            let commands = std::iter::once(&command).chain(command.get_subcommands());
            output::print(&output::json(&commands.map(command_part).collect::<Vec<_>>()))?;
            return Ok(CommandEnd::Done);
        }
        let mut pages = vec![];
        collect(&command, &mut pages);
        match &self.directory {
            None => output::print(&pages.into_iter().map(|(_, page)| page).collect::<String>())?,
            Some(directory) => {
                fs::create_dir_all(directory).map_err(|error| Failure::writing(&input::shown(directory), &error))?;
                for (name, page) in &pages {
                    Destination::new(Some(&directory.join(name)), self.force).write(page)?;
                }
            }
        }
        Ok(CommandEnd::Done)
    }
}

/// Collects file name and text of the page of a command and all its subcommands.
fn collect(command: &Command, pages: &mut Vec<(String, String)>) {
    let man = Man::new(command.clone());
    let mut page = vec![];
    man.render(&mut page).expect("memory takes every write");
    pages.push((man.get_filename(), String::from_utf8_lossy(&page).into_owned()));
    for subcommand in command.get_subcommands() {
        collect(subcommand, pages);
    }
}

fn command_part(command: &Command) -> CommandPart {
    let text = |styled: Option<&StyledStr>| styled.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    CommandPart {
        name: command.get_name().into(),
        about: text(command.get_about()),
        usage: usage.trim_start_matches("Usage:").trim().into(),
        options: command.get_arguments().filter(|arg| !arg.is_hide_set()).map(option_part).collect(),
        after: text(command.get_after_long_help().or(command.get_after_help())),
    }
}

fn option_part(arg: &Arg) -> OptionPart {
    let value = arg.get_num_args().is_some_and(|range| range.takes_values());
    let values =
        arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let possible = if value { arg.get_possible_values() } else { vec![] };
    let shown = |help: Option<&StyledStr>| help.map(ToString::to_string).unwrap_or_default();
    let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let many =
        matches!(arg.get_action(), ArgAction::Append) || arg.get_num_args().is_some_and(|range| range.max_values() > 1);
    OptionPart {
        name: arg.get_long().map_or_else(|| arg.get_id().to_string(), ToString::to_string),
        shown: option_name(arg, value.then_some(values.as_str())),
        positional: arg.is_positional(),
        short: arg.get_short(),
        aliases: arg.get_visible_aliases().unwrap_or_default().into_iter().map(ToString::to_string).collect(),
        value: value.then_some(values),
        help: shown(arg.get_long_help().or(arg.get_help())),
        heading: arg.get_help_heading().map(ToString::to_string),
        required: arg.is_required_set(),
        repeated: many,
        default: (value && !default.is_empty()).then(|| default.join(",")),
        values: possible
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| ValuePart { name: value.get_name().into(), help: shown(value.get_help()) })
            .collect(),
    }
}

/// Name of an argument as help shows it.
fn option_name(arg: &Arg, value: Option<&str>) -> String {
    if arg.is_positional() {
        return arg.to_string();
    }
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let long = arg.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    match value {
        Some(value) => format!("{short}{long} <{value}>"),
        None => format!("{short}{long}"),
    }
}

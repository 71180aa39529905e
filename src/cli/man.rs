//! `plantui man`: prints manual pages, one for each command.

use std::{fs, path::PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

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
}

impl ManArgs {
    /// Prints or writes the pages.
    ///
    /// # Errors
    /// [`Failure`] if a page cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
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

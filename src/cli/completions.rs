//! `plantui completions`: prints a shell script that completes plantui's arguments.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::{Cli, CommandEnd, Failure, output};

const EXAMPLES: &str = "\
Examples:
  plantui completions bash > ~/.local/share/bash-completion/completions/plantui
  plantui completions zsh > ~/.zfunc/_plantui
  plantui completions fish > ~/.config/fish/completions/plantui.fish";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints the script.
    ///
    /// # Errors
    /// [`Failure`] if standard output cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        // Into memory first: clap panics on a failed write, and a closed pipe is not a bug.
        let mut script = vec![];
        generate(self.shell, &mut Cli::command(), "plantui", &mut script);
        output::print(&String::from_utf8_lossy(&script))?;
        Ok(CommandEnd::Done)
    }
}

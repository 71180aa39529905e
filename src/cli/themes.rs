//! `plantui themes`: lists the values of `--theme`.

use clap::Args;

use super::{CommandEnd, Failure, output, report::line};
use crate::tui::theme;

const EXAMPLES: &str = "\
Examples:
  plantui themes
  plantui model.json --theme light

A TOML file in that last folder adds a theme, or replaces the built-in one of the same name.";

/// List the colour themes of the screen
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ThemesArgs {
    /// Prints a JSON array in place of the text
    #[arg(long)]
    json: bool,
}

impl ThemesArgs {
    /// Prints the list.
    ///
    /// # Errors
    /// [`Failure`] if standard output cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let folder = theme::user_directory();
        let names = theme::names(folder.as_deref());
        if self.json {
            output::print(&output::json(&names))?;
            return Ok(CommandEnd::Done);
        }
        let mut text = String::new();
        for name in &names {
            line(&mut text, format_args!("{name}"));
        }
        if let Some(folder) = folder {
            line(&mut text, format_args!("your own: {}", super::input::shown(&folder)));
        }
        output::print(&text)?;
        Ok(CommandEnd::Done)
    }
}

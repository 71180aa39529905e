//! Detection of misspelt commands, which would otherwise be reported as missing files.

use std::path::Path;

use clap::{Command, CommandFactory};

use super::{Cli, Failure};

/// Failure if the first word is neither a command nor a file, but similar to a command.
pub(super) fn failure(first_word: Option<&str>) -> Option<Failure> {
    let word = first_word.filter(|word| !word.starts_with('-') && !Path::new(word).exists())?;
    let command = Cli::command();
    let near = crate::text::nearest(word, command.get_subcommands().map(Command::get_name));
    let near = near.filter(|near| *near != word && word != "help")?;
    let hint = format!("did you mean `plantui {near}`?");
    Some(Failure::refused(format!("there is no command and no file `{}`", crate::source::error::printable(word)), hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_misspelled_commands() {
        let hint = |word| match failure(Some(word)) {
            Some(Failure::Refused { hint, .. }) => hint,
            _ => String::new(),
        };
        assert!(hint("plna").contains("plantui plan"));
        assert!(hint("plannners").contains("plantui planners"));
        for word in ["plan", "help", "-", "--json", "model.json", "Cargo.toml"] {
            assert_eq!(hint(word), "", "{word}");
        }
    }
}

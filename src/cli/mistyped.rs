//! A command that is misspelled must not be taken for a file that is missing.

use std::path::Path;

use clap::{Command, CommandFactory};

use super::{Cli, Failure};

/// Edits after which a word is no longer taken for a misspelling.
const MOST_EDITS: usize = 2;

/// What to say if the first word is neither a command nor a file, but nearly a command.
pub(super) fn failure(first_word: Option<&str>) -> Option<Failure> {
    let word = first_word.filter(|word| !word.starts_with('-') && !Path::new(word).exists())?;
    let command = Cli::command();
    let near = nearest(word, command.get_subcommands().map(Command::get_name)).filter(|_| word != "help")?;
    let hint = format!("did you mean `plantui {near}`?");
    Some(Failure::refused(format!("there is no command and no file `{}`", crate::source::error::printable(word)), hint))
}

/// The name that a word is a misspelling of; none where it is one of them.
pub(super) fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    names.min_by_key(|name| edits(word, name)).filter(|near| (1..=MOST_EDITS).contains(&edits(word, near)))
}

/// Insertions, deletions and substitutions from one word to another (Wagner and Fischer 1974), row by row.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &b) in to.iter().enumerate() {
            let substituted = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (from, to, count) in [("plan", "plan", 0), ("plna", "plan", 2), ("chek", "check", 1), ("", "man", 3)] {
            assert_eq!(edits(from, to), count, "{from} {to}");
        }
    }

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

//! `plantui terms`, also `plantui help terms`: explains the terms of the field, with a picture each.

use std::ffi::OsString;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::{CommandEnd, Failure, output, report::line};
use crate::schemas::DocumentSchema;
use crate::{
    source::error::printable,
    terms::{self, Term},
};

const EXAMPLES: &str = "\
Examples:
  plantui terms                     all of them
  plantui terms bubble              one
  plantui help terms all-reduce     the same through `help`
  plantui explain model.json --why  those that an explanation uses";

/// Explain bubble, microbatch, 1F1B, recompute and other words, each with a picture
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TermsArgs {
    /// Only these words
    word: Vec<String>,
    /// Prints a JSON array in place of the text
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Prints the page docs/src/background/terms.md
    #[arg(long, conflicts_with = "word")]
    markdown: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TermPart {
    name: &'static str,
    also: &'static [&'static str],
    text: &'static str,
    picture: &'static str,
}

impl TermsArgs {
    /// Prints the requested terms.
    ///
    /// # Errors
    /// [`Failure`] for an unknown word, or if standard output cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        if self.markdown {
            output::print(&terms::markdown())?;
            return Ok(CommandEnd::Done);
        }
        // A term of several words needs no quotes: `terms tensor parallel`.
        let found = match self.word.join(" ") {
            word if word.is_empty() => terms::all().collect(),
            word => match terms::find(&word) {
                Some(term) => vec![term],
                None => self.word.iter().map(|word| find(word)).collect::<Result<Vec<_>, _>>()?,
            },
        };
        output::print(&if self.json {
            let parts = found.iter().map(|&&Term { name, also, text, picture }| TermPart { name, also, text, picture });
            output::json(&parts.collect::<Vec<_>>())
        } else {
            text(&found)
        })?;
        Ok(CommandEnd::Done)
    }
}

fn find(word: &str) -> Result<&'static Term, Failure> {
    terms::find(word).ok_or_else(|| {
        let near = crate::text::nearest(word, terms::all().map(|term| term.name));
        let hint = match near {
            Some(near) => format!("did you mean `{near}`? `plantui terms` lists all"),
            None => "`plantui terms` lists all".into(),
        };
        Failure::refused(format!("there is no term `{}`", printable(word)), hint)
    })
}

/// Text of the terms, one below the other.
pub(super) fn text(found: &[&Term]) -> String {
    let mut text = String::new();
    for (place, term) in found.iter().enumerate() {
        if place > 0 {
            text.push('\n');
        }
        let also = if term.also.is_empty() { String::new() } else { format!("  ({})", term.also.join(", ")) };
        line(&mut text, format_args!("{}{also}", term.name));
        for wrapped in wrap(term.text) {
            line(&mut text, format_args!("  {wrapped}"));
        }
        for drawn in term.picture.trim_end().lines() {
            line(&mut text, format_args!("    {drawn}"));
        }
    }
    text
}

/// Columns of a line of text.
const WIDTH: usize = 96;

fn wrap(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(last) if last.len() + 1 + word.len() <= WIDTH => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// Turns `plantui help terms WORD` into `plantui terms WORD`: clap's own `help` would show the usage of the command.
pub(super) fn from_help(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is = |place: usize, word: &str| arguments.get(place).is_some_and(|argument| argument == word);
    if is(1, "help") && is(2, "terms") {
        arguments.remove(1);
    }
    arguments
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<Vec<TermPart>>("terms")
}

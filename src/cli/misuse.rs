//! What is said of arguments that make no sense.
//!
//! The parser repeats what was typed. That may come from a stranger (a script that passes file names on), so what it repeats
//! is made visible first, each on one line, and the whole message is a [`notice`] like any other.

use std::{error::Error, process::ExitCode};

use clap::error::{ContextKind, ContextValue};

use super::Failure;
use crate::{notice, text::visible_line};

/// Says what the parser has to say, be it help or an error, and gives the exit code.
pub(super) fn report(mut error: clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Help and version hold nothing but our own words, and are a result like any other.
        return match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => Failure::writing("standard output", &error).report(),
        };
    }
    let told: Vec<(ContextKind, ContextValue)> = error.context().map(|(kind, value)| (kind, value.clone())).collect();
    let mut hostile = false;
    for (kind, value) in told {
        let mut shown = |text: &String| {
            let shown = visible_line(text);
            hostile |= shown != *text;
            shown
        };
        match value {
            ContextValue::String(text) => drop(error.insert(kind, ContextValue::String(shown(&text)))),
            ContextValue::Strings(texts) => {
                drop(error.insert(kind, ContextValue::Strings(texts.iter().map(shown).collect())));
            }
            _ => {}
        }
    }
    if hostile {
        // Some suggestions repeat what was typed in the middle of other words.
        drop(error.remove(ContextKind::Suggested));
    }
    // A parser of values may repeat what it was given, too.
    let why = error.source().map(ToString::to_string).unwrap_or_default();
    let told = error.to_string();
    notice::whole(&if why.is_empty() { told } else { told.replace(&why, &visible_line(&why)) });
    ExitCode::from(2)
}

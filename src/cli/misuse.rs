//! What is said of arguments that make no sense.
//!
//! The parser repeats what was typed. That may come from a stranger (a script that passes file names on), so what it repeats
//! is made visible first, each on one line, and the whole message is a [`notice`] like any other.

use std::{error::Error, process::ExitCode};

use clap::error::{ContextKind, ContextValue};

use super::{Failure, help, output};
use crate::{notice, text::visible_line};

/// What an error begins with that [`super::topology_input`] makes of a topology.
const OWN: &str = "error: --topology: ";

/// Says what the parser has to say, be it help or an error, and gives the exit code.
pub(super) fn report(mut error: clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Help and version hold nothing but our own words, and are a result like any other.
        return match output::print_own(&help::printed(&error.render())) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(),
        };
    }
    // What our own readers of arguments refuse has no need of the usage.
    if let Some(told) = error.to_string().strip_prefix(OWN) {
        let told = told.split("\n\nUsage:").next().unwrap_or(told).trim();
        let (message, hint) = told.split_once("; ").unwrap_or((told, ""));
        return Failure::refused(message, hint).report();
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
    notice::whole(&repeated(&error).unwrap_or_else(|| error.to_string()));
    ExitCode::from(2)
}

/// The message where a parser of values repeats what it was given, as far as a terminal would obey it.
fn repeated(error: &clap::Error) -> Option<String> {
    let why = error.source()?.to_string();
    let shown = visible_line(&why);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let (value, argument) = (text(ContextKind::InvalidValue), text(ContextKind::InvalidArg));
    (shown != why).then(|| {
        format!("error: invalid value '{value}' for '{argument}': {shown}\n\nFor more information, try '--help'.\n")
    })
}

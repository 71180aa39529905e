//! Messages about invalid arguments.
//!
//! The parser repeats the arguments, which may come from untrusted input (a script that passes file names). So the
//! repeated text is made visible first, each on one line, and the whole message is a [`notice`] like any other.

use std::error::Error;

use clap::error::{ContextKind, ContextValue};

use super::{Failure, help, output};
use crate::{notice, text::visible_line};

/// Prefix of an error about a topology from [`super::topology_input`].
const OWN: &str = "error: --topology: ";

/// Prints the parser's help or error, and returns the exit code.
pub(super) fn report(mut error: clap::Error) -> u8 {
    if !error.use_stderr() {
        // Help and version contain only trusted text, and are a result like any other.
        return match output::print_own(&help::printed(&error.render())) {
            Ok(()) => 0,
            Err(failure) => failure.report(),
        };
    }
    // Errors of our own argument parsers are clear without the usage.
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
        // Some suggestions repeat the argument in the middle of other words.
        drop(error.remove(ContextKind::Suggested));
    }
    notice::whole(&repeated(&error).unwrap_or_else(|| error.to_string()));
    2
}

/// Message for a value parser that repeats its input, with control characters made visible. `None` if there are none.
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

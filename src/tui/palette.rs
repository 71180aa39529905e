//! Commands of the palette: the actions of the table, the export formats of the shown plan, and values: `devices 128`.
//!
//! A format is found by all its names, `perfetto` as well as `trace`.

use super::{
    action::{Scope, TABLE},
    export_form::ExportFormat,
    keymap::Keymap,
};
use crate::{
    cluster::LimitKind,
    planner::{OptionSpec, OptionValue},
    workload::Workload,
};

/// Command of the palette.
#[derive(Debug, Clone)]
pub(super) enum Command {
    /// Sets what the typed text names.
    Set(Box<Assignment>),
    /// Index of an entry of the action table.
    Entry(usize),
    /// Opens the export form on a format.
    Export(ExportFormat),
}

/// Typed name and value, with their effect.
#[derive(Debug, Clone)]
pub(super) struct Assignment {
    /// The assignment as it was understood: `devices 128`.
    pub(super) title: String,
    /// Value before, or the problem.
    pub(super) help: String,
    /// Value to set, or the reason why it cannot be set.
    pub(super) what: Result<Assigned, String>,
}

/// Value for a limit, a dial, an option, the planner or the theme.
#[derive(Debug, Clone)]
pub(super) enum Assigned {
    Limit(LimitKind, f64),
    Workload(Box<Workload>),
    Option(&'static OptionSpec, OptionValue),
    Planner(usize),
    /// Tokens to train on.
    Tokens(f64),
    /// Days within which training is to be done.
    Within(f64),
    /// Hardware, and the price of one device of it for an hour, dollars.
    Price(String, f64),
    Theme(String),
}

impl Command {
    /// Title in the palette.
    pub(super) fn title(&self) -> String {
        match self {
            Command::Set(own) => own.title.clone(),
            Command::Entry(i) => TABLE[*i].title.into(),
            Command::Export(format) => format!("Export as {}", format.title),
        }
    }

    /// Help, one line.
    pub(super) fn help(&self) -> &str {
        match self {
            Command::Set(own) => &own.help,
            Command::Entry(i) => TABLE[*i].help,
            Command::Export(format) => format.help,
        }
    }

    /// Key of the same action, if any.
    pub(super) fn key(&self, keymap: &Keymap) -> String {
        match self {
            Command::Entry(i) => keymap.shown(*i),
            Command::Set(_) | Command::Export(_) => String::new(),
        }
    }

    /// Text to search.
    pub(super) fn text(&self, keymap: &Keymap) -> String {
        let more = match self {
            Command::Set(_) => String::new(),
            Command::Entry(i) => format!("{} {}", TABLE[*i].scope.title(), keymap.all_shown(*i)),
            Command::Export(format) => format.keywords.into(),
        };
        format!("{} {} {more}", self.title(), self.help())
    }

    /// Sort key without a search text: the view's keys come first, then common general actions, exports, and the rest.
    pub(super) fn rank(&self, in_force: &[Scope]) -> usize {
        let Command::Entry(i) = self else { return 2 };
        let entry = &TABLE[*i];
        match (entry.scope, entry.hint.is_empty()) {
            (Scope::Lists | Scope::Panel, _) => 6,
            (Scope::Everywhere, false) => 1,
            (Scope::Everywhere, true) => 4,
            (scope, _) if !in_force.contains(&scope) => 5,
            (_, false) => 0,
            (_, true) => 3,
        }
    }
}

//! What the palette offers: the actions of the table, and every format that the shown plan can leave in.
//!
//! While nothing is typed, what is done most where the user is stands first: the keys of the view, what is done everywhere,
//! exports, then the rest. Formats are found by all that they are called, `perfetto` as well as `trace`.

use super::{
    action::{Action, Scope, TABLE},
    export_form::ExportFormat,
    keymap::Keymap,
    model::Model,
    update::Effects,
    widget::filter::Filter,
};
use crate::export::formats;

/// Something the palette can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// An entry of the action table, by place.
    Entry(usize),
    /// Open the export form on a format.
    Export(ExportFormat),
}

impl Command {
    /// As the palette calls it.
    pub(super) fn title(self) -> String {
        match self {
            Command::Entry(i) => TABLE[i].title.into(),
            Command::Export(format) => format!("Export as {}", format.title),
        }
    }

    /// What it does, in a line.
    pub(super) fn help(self) -> &'static str {
        match self {
            Command::Entry(i) => TABLE[i].help,
            Command::Export(format) => format.help,
        }
    }

    /// The key that does the same, if there is one.
    pub(super) fn key(self, keymap: &Keymap) -> String {
        match self {
            Command::Entry(i) => keymap.shown(i),
            Command::Export(_) => String::new(),
        }
    }

    /// What is searched.
    fn text(self, keymap: &Keymap) -> String {
        let more = match self {
            Command::Entry(i) => format!("{} {}", TABLE[i].scope.title(), keymap.all_shown(i)),
            Command::Export(format) => format.keywords.into(),
        };
        format!("{} {} {more}", self.title(), self.help())
    }

    /// How far from the top it stands while nothing is typed.
    fn rank(self, in_force: &[Scope]) -> usize {
        let Command::Entry(i) = self else { return 2 };
        let entry = &TABLE[i];
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

impl Model {
    /// What the palette lists, best first.
    pub(super) fn palette(&self, filter: &Filter) -> Vec<Command> {
        // What it would open is open already.
        let entries = (0..TABLE.len()).filter(|&i| TABLE[i].action != Action::Palette).map(Command::Entry);
        let exports = formats::of(&self.workload).map(Command::Export);
        let mut all: Vec<Command> = entries.chain(exports).collect();
        let scopes = self.scopes();
        all.sort_by_key(|command| command.rank(&scopes));
        let texts: Vec<String> = all.iter().map(|command| command.text(&self.keymap)).collect();
        filter.matches(&texts).into_iter().map(|at| all[at]).collect()
    }

    /// Does what was chosen in the palette.
    pub(super) fn command(&mut self, command: Command) -> Effects {
        match command {
            Command::Entry(i) => self.run_entry(i),
            Command::Export(format) => self.open_export(Some(format)),
        }
    }
}

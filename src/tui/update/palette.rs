//! Contents of the palette, and its commands.

use crate::{
    export::formats,
    tui::{
        action::{Action, TABLE},
        effect::Effects,
        model::Model,
        palette::Command,
        widget::filter::Filter,
    },
};

impl Model {
    /// Commands that match, best first.
    pub(in crate::tui) fn palette(&self, filter: &Filter) -> Vec<Command> {
        // The palette is open already.
        let entries = (0..TABLE.len()).filter(|&i| TABLE[i].action != Action::Palette).map(Command::Entry);
        let exports = formats::of(&self.session.workload).map(Command::Export);
        let mut all: Vec<Command> = entries.chain(exports).collect();
        let scopes = self.scopes();
        all.sort_by_key(|command| command.rank(&scopes));
        let texts: Vec<String> = all.iter().map(|command| command.text(&self.appearance.keymap)).collect();
        filter.matches(&texts).into_iter().map(|at| all[at]).collect()
    }

    /// Runs a command.
    pub(in crate::tui) fn command(&mut self, command: Command) -> Effects {
        match command {
            Command::Entry(i) => self.run_entry(i),
            Command::Export(format) => self.open_export(Some(format)),
        }
    }
}

//! What may lie over the screen, and what it remembers while it does.

use tui_input::Input;

use super::{
    action::{Scope, TABLE},
    ask::AskForm,
    export_form::ExportForm,
    keymap::Keymap,
    open_form::OpenForm,
    widget::filter::Filter,
};

/// The overlay that is open.
#[derive(Debug, Clone)]
pub(super) enum Overlay {
    /// Every key.
    Help(Filter),
    /// Actions by name.
    Palette(Filter),
    /// Write the plan to a file.
    Export(Box<ExportForm>),
    /// Load another workload.
    Open(OpenForm),
    /// Text to look for in a tree.
    Find(Input),
    /// Values to sweep over.
    Range(Input),
    /// The least of a limit for a goal.
    Ask(Box<AskForm>),
    /// The name of a pin, by its number.
    Rename(u64, Input),
}

/// Entries of the action table for the help, by place: while nothing is typed, what is heard where the user is first.
pub(super) fn help_order(filter: &Filter, keymap: &Keymap, in_force: &[Scope]) -> Vec<usize> {
    let mut matches = filter.matches(&table_texts(keymap));
    if filter.input.value().trim().is_empty() {
        matches.sort_by_key(|&i| !in_force.contains(&TABLE[i].scope));
    }
    matches
}

/// What is searched in help and palette: a text for each entry of the action table.
pub(super) fn table_texts(keymap: &Keymap) -> Vec<String> {
    let text = |(i, e): (usize, &super::action::Entry)| {
        format!("{} {} {} {}", e.title, e.scope.title(), e.help, keymap.all_shown(i))
    };
    TABLE.iter().enumerate().map(text).collect()
}

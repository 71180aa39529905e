//! What may lie over the screen, and what it remembers while it does.

use tui_input::Input;

use super::{action::TABLE, keymap, widget::filter::Filter};

/// The overlay that is open.
#[derive(Debug, Clone)]
pub(super) enum Overlay {
    /// Every key.
    Help(Filter),
    /// Actions by name.
    Palette(Filter),
    /// Text to look for in a tree.
    Find(Input),
}

/// What is searched in help and palette: a text for each entry of the action table.
pub(super) fn table_texts() -> Vec<String> {
    let text = |e: &super::action::Entry| {
        let keys: Vec<String> = e.keys.iter().map(|k| keymap::shown(k)).collect();
        format!("{} {} {} {}", e.title, e.scope.title(), e.help, keys.join(" "))
    };
    TABLE.iter().map(text).collect()
}

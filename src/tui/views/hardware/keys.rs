//! Tab and keys of the view.

use crate::tui::{
    action::{Action as A, Entry, Scope, entry},
    views::list::{Tab, Uses, View},
};

/// Scope of the keys.
pub(super) const HERE: Scope = Scope::Of(View::Hardware);

/// Tab of the view.
pub(in crate::tui) const TAB: Tab = Tab {
    title: "Hardware",
    help: "speed, days and cost (`:price`) of the same training on other accelerators, more or fewer",
    uses: Uses::NONE,
    scopes: &[HERE],
};

/// Keys of the view. If two entries have the same key, the first wins.
pub(in crate::tui) const KEYS: &[Entry] = &[
    entry(HERE, A::CursorLeft, &["left"], "Fewer devices", "the cell to the left", "walk"),
    entry(HERE, A::CursorRight, &["right"], "More devices", "the cell to the right", ""),
    entry(HERE, A::Preview, &["enter"], "Take this cell", "plan for this hardware and number of devices", "take it"),
    entry(HERE, A::SweepAgain, &["r"], "Plan again", "around the current number of devices", "again"),
];

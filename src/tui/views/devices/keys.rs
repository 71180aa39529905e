//! Tab and keys of the view.

use crate::tui::{
    action::{Action as A, Entry, Scope, entry},
    views::list::{Tab, Uses, View},
};

/// Scope of the keys.
pub(super) const HERE: Scope = Scope::Of(View::Devices);

/// Tab of the view.
pub(in crate::tui) const TAB: Tab = Tab {
    title: "Devices",
    help: "load and memory of each device",
    uses: Uses { plan: true, ..Uses::NONE },
    scopes: &[HERE],
};

/// Keys of the view. If two entries have the same key, the first wins.
pub(in crate::tui) const KEYS: &[Entry] = &[
    entry(HERE, A::Toggle, &["enter", "space"], "Unfold replicas", "one row for each device", "unfold"),
    entry(HERE, A::CursorLeft, &["left"], "Device before", "in the groups: the device to the left", ""),
    entry(HERE, A::CursorRight, &["right"], "Next device", "in the groups: the device to the right", ""),
];

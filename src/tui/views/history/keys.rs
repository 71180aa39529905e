//! Tab and keys of the view.

use crate::tui::{
    action::{Action as A, Entry, Scope, entry},
    views::list::{Tab, Uses, View},
};

/// Scope of the keys.
pub(super) const HERE: Scope = Scope::Of(View::History);

/// Tab of the view.
pub(in crate::tui) const TAB: Tab = Tab {
    title: "History",
    help: "the plans that were on the screen, and what changed from one to the next",
    uses: Uses::NONE,
    scopes: &[HERE],
};

/// Keys of the view. If two entries have the same key, the first wins.
pub(in crate::tui) const KEYS: &[Entry] = &[
    entry(HERE, A::Preview, &["enter"], "Go back", "plan again with the inputs of this try", "go back"),
    entry(HERE, A::Mark, &["space"], "Mark", "mark two tries: the last lines tell what differs", "mark"),
];

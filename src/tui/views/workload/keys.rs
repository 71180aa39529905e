//! Tab and keys of the view.

use crate::tui::{
    action::{Action as A, Entry, Scope, entry},
    views::list::{Tab, Uses, View},
};

/// Scope of the keys.
pub(super) const HERE: Scope = Scope::Of(View::Workload);

/// Tab of the view.
pub(in crate::tui) const TAB: Tab = Tab {
    title: "Workload",
    help: "the network: layers, edges, findings",
    uses: Uses::NONE,
    scopes: &[HERE, Scope::Tree],
};

/// Keys of the view. If two entries have the same key, the first wins.
pub(in crate::tui) const KEYS: &[Entry] =
    &[entry(HERE, A::NextSection, &["s"], "Next section", "layers, edges, findings, about", "section")];

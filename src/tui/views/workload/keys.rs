//! The keys of the view.

use crate::tui::{
    action::{Action as A, Entry, Scope, entry},
    views::View,
};

/// Where they are heard.
pub(super) const HERE: Scope = Scope::Of(View::Workload);

/// Where two have one key, the first wins.
pub(in crate::tui) const KEYS: &[Entry] =
    &[entry(HERE, A::NextSection, &["s"], "Next section", "layers, edges, findings, about", "section")];

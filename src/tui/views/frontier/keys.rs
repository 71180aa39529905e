//! Tab and keys of the view.

use crate::tui::{
    action::{Action as A, Entry, Scope, entry},
    views::list::{Tab, Uses, View},
};

/// Scope of the keys.
pub(super) const HERE: Scope = Scope::Of(View::Frontier);

/// Tab of the view.
pub(in crate::tui) const TAB: Tab = Tab {
    title: "Frontier",
    help: "layouts of a model to be trained, time against memory",
    uses: Uses { plan: true, ..Uses::NONE },
    scopes: &[HERE],
};

/// Keys of the view. If two entries have the same key, the first wins.
pub(in crate::tui) const KEYS: &[Entry] = &[
    entry(HERE, A::CursorLeft, &["left"], "Less memory", "the next layout with less memory", "walk"),
    entry(HERE, A::CursorRight, &["right"], "More memory", "the next layout with more memory", ""),
    entry(
        HERE,
        A::Preview,
        &["enter"],
        "Take this layout",
        "show it in all views; 0 returns to the planner's",
        "take it",
    ),
    entry(HERE, A::PlannersPlan, &["0"], "Planner's plan", "leave the layout that was taken", ""),
    entry(HERE, A::Mark, &["space"], "Mark", "mark two layouts: the last lines tell what differs", "mark"),
    entry(
        HERE,
        A::SideBySide,
        &["v"],
        "Side by side",
        "two layouts: parts of time and memory, and each change",
        "side by side",
    ),
    entry(HERE, A::FilterAxis, &["F"], "Only alike", "only layouts with this TP; again PP, DP, then all", "only TP"),
    entry(HERE, A::SortNext, &["s"], "Sort", "by time, or by memory", "sort"),
];

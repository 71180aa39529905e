//! Tab and keys of the view.

use crate::tui::{
    action::{Action as A, Entry, Scope, entry},
    views::list::{Tab, Uses, View},
};

/// Scope of the keys.
pub(super) const HERE: Scope = Scope::Of(View::Compare);

/// Tab of the view.
pub(in crate::tui) const TAB: Tab = Tab {
    title: "Compare",
    help: "plans side by side in one simulator",
    uses: Uses { simulator: true, ..Uses::NONE },
    scopes: &[HERE],
};

/// Keys of the view. If two entries have the same key, the first wins.
pub(in crate::tui) const KEYS: &[Entry] = &[
    entry(HERE, A::CompareAll, &["a"], "Run all planners", "plan with every suitable planner", "all"),
    entry(HERE, A::Preview, &["enter"], "Show this plan", "show it in the other views; Esc returns", "show"),
    entry(HERE, A::Mark, &["space"], "Mark", "mark a plan; side by side: swap the two", "mark"),
    entry(HERE, A::SideBySide, &["v"], "Side by side", "two marked plans, stage by stage", "side by side"),
    entry(HERE, A::SortNext, &[">"], "Sort by next", "sort by the column to the right", "sort"),
    entry(HERE, A::SortPrevious, &["<"], "Sort by previous", "sort by the column to the left", ""),
    entry(HERE, A::SortReverse, &["r"], "Reverse order", "worst first, or best first", ""),
    entry(HERE, A::Schedules, &["s"], "Schedules", "simulate all plans under another schedule", "schedules"),
    entry(HERE, A::NextSchedule, &["]"], "Next schedule", "simulate all plans under the next schedule", ""),
    entry(HERE, A::RenamePin, &["n"], "Name pin", "rename the selected pin", ""),
];

//! Tab and keys of the view.

use crate::tui::{
    action::{Action as A, Entry, Scope, entry},
    views::list::{Tab, Uses, View},
};

/// Scope of the keys.
pub(super) const HERE: Scope = Scope::Of(View::Timeline);

/// Tab of the view.
pub(in crate::tui) const TAB: Tab = Tab {
    title: "Timeline",
    help: "one simulated iteration, event by event",
    uses: Uses { plan: true, playhead: true, simulator: true, ..Uses::NONE },
    scopes: &[HERE],
};

/// Keys of the view. If two entries have the same key, the first wins.
pub(in crate::tui) const KEYS: &[Entry] = &[
    entry(HERE, A::CursorLeft, &["left"], "Cursor left", "move the cursor back in time", "cursor"),
    entry(HERE, A::CursorRight, &["right"], "Cursor right", "move the cursor forward in time", ""),
    entry(HERE, A::ZoomIn, &["+"], "Zoom in", "half as much time, around the cursor", "zoom"),
    entry(HERE, A::ZoomOut, &["-", "_"], "Zoom out", "twice as much time, around the cursor", ""),
    entry(HERE, A::ZoomWhole, &["0"], "Whole iteration", "from the first event to the last", "whole"),
    entry(HERE, A::PanLeft, &["shift-left", "H"], "Pan left", "half a screen back", ""),
    entry(HERE, A::PanRight, &["shift-right", "L"], "Pan right", "half a screen on", ""),
    entry(HERE, A::NextEvent, &["n", "."], "Next event", "cursor to the next event of the row", "event"),
    entry(HERE, A::PreviousEvent, &["N", ","], "Previous event", "cursor to the previous event", ""),
    entry(HERE, A::PlayBatch, &["space"], "Play", "play or pause: the cursor runs through the iteration", "play"),
    entry(HERE, A::Slower, &["<"], "Slower", "play half as fast", ""),
    entry(HERE, A::Faster, &[">"], "Faster", "play twice as fast", ""),
    entry(HERE, A::Toggle, &["enter"], "Show replicas", "one row for each replica of the stage", "replicas"),
    entry(HERE, A::Schedules, &["s"], "Schedules", "all schedules of the plan, with time and memory", "schedules"),
    entry(HERE, A::EditSchedule, &["E"], "Edit schedule", "move a pass of the schedule by hand", "edit"),
    entry(HERE, A::NextSchedule, &["]"], "Next schedule", "simulate the plan under another schedule", ""),
    entry(
        HERE,
        A::PlanForSchedule,
        &["v"],
        "Plan for a schedule",
        "plan again for a schedule that this plan cannot run",
        "",
    ),
    entry(HERE, A::MarkPath, &["x"], "Critical path", "mark the critical path of the iteration", "path"),
];

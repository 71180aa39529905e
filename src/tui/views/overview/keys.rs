//! Tab and keys of the view.

use crate::tui::{
    action::{Action as A, Entry, Scope, entry},
    views::list::{Tab, Uses, View},
};

/// Scope of the keys.
pub(in crate::tui) const HERE: Scope = Scope::Of(View::Overview);

/// Tab of the view.
pub(in crate::tui) const TAB: Tab = Tab {
    title: "Overview",
    help: "the plan as a picture: devices and the iteration",
    uses: Uses { plan: true, playhead: true, simulator: true, help: true },
    scopes: &[HERE, Scope::Stages],
};

/// Keys of the view. If two entries have the same key, the first wins.
pub(in crate::tui) const KEYS: &[Entry] = &[
    entry(HERE, A::PlayBatch, &["space"], "Play", "play or pause the simulated iteration; Esc ends it", "play"),
    entry(HERE, A::PreviousEvent, &[","], "Event before", "step to the previous event of any stage", "event"),
    entry(HERE, A::NextEvent, &["."], "Next event", "step to the next event of any stage", ""),
    entry(HERE, A::Slower, &["<"], "Slower", "play half as fast", "speed"),
    entry(HERE, A::Faster, &[">"], "Faster", "play twice as fast", ""),
    entry(HERE, A::CursorLeft, &["left"], "Device before", "the device to the left on the map", "walk"),
    entry(HERE, A::CursorRight, &["right"], "Next device", "the device to the right on the map", ""),
];

//! Tab and keys of the view.

use crate::tui::{
    action::{Action as A, Entry, Scope, entry},
    views::list::{Tab, Uses, View},
};

/// Scope of the keys.
pub(super) const HERE: Scope = Scope::Of(View::Sweep);

/// Tab of the view.
pub(in crate::tui) const TAB: Tab =
    Tab { title: "Sweep", help: "the objective over a limit", uses: Uses::NONE, scopes: &[HERE] };

/// Keys of the view. If two entries have the same key, the first wins.
pub(in crate::tui) const KEYS: &[Entry] = &[
    entry(HERE, A::CursorLeft, &["left"], "Read to the left", "the point with less of the limit", "read"),
    entry(HERE, A::CursorRight, &["right"], "Read to the right", "the point with more of the limit", ""),
    entry(HERE, A::TakePoint, &["enter"], "Take this value", "set the limit to the point and plan", "take it"),
    entry(HERE, A::SweepAxis, &["x"], "Next limit", "sweep the next limit of the planner", "limit"),
    entry(HERE, A::SweepFiner, &["+"], "Finer steps", "values closer to the current one", "steps"),
    entry(HERE, A::SweepWider, &["-", "_"], "Wider steps", "values further from the current one", ""),
    entry(
        HERE,
        A::SweepLines,
        &["s"],
        "Next lines",
        "this planner, all planners, or the values of one option",
        "lines",
    ),
    entry(HERE, A::SweepRange, &["t"], "Type a range", "values of the limit, such as 8..512:x2", "range"),
    entry(HERE, A::SweepSecond, &["y"], "Second limit", "a map over two limits, or one limit again", "second limit"),
    entry(HERE, A::SweepScales, &["L"], "Linear or logarithmic", "choose logarithmic axes", ""),
    entry(
        HERE,
        A::SweepFigure,
        &["v"],
        "Next figure",
        "draw the objective, iteration time, throughput, idle time, memory, devices or planning time",
        "figure",
    ),
    entry(HERE, A::SweepAgain, &["r"], "Sweep again", "around the current values", "again"),
];

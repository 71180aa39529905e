//! What several places of the screen call the same.

use ratatui::text::Span;

use crate::{
    planner::Status,
    tui::theme::{Role, Theme},
    units,
};

/// A plan proven to be as near to the best is as good as any.
const NEAR: f64 = 0.03;

/// A sign and a word for how a run ended.
pub(in crate::tui) fn status(status: Status, gap: Option<f64>, theme: &Theme) -> Span<'static> {
    match status {
        Status::Optimal => Span::styled("✓ optimal", theme.bold(Role::Good)),
        // Near enough that it is no warning.
        Status::Feasible if gap.is_some_and(|gap| gap <= NEAR) => {
            let gap = units::percent(gap.unwrap_or_default());
            Span::styled(format!("≈ within {gap}"), theme.bold(Role::Good))
        }
        Status::Feasible => {
            let gap = gap.map(|g| format!(", gap {}", units::percent(g))).unwrap_or_default();
            Span::styled(format!("≈ feasible{gap}"), theme.bold(Role::Warning))
        }
        Status::Infeasible => Span::styled("✗ infeasible", theme.bold(Role::Bad)),
        Status::Cancelled => {
            let gap = gap.map(|g| format!(", gap {}", units::percent(g))).unwrap_or_default();
            Span::styled(format!("■ stopped, best so far{gap}"), theme.bold(Role::Warning))
        }
    }
}

/// What stands over bars of memory.
pub(in crate::tui) fn memory_title(limit: f64) -> String {
    match units::bytes_exact(limit).as_str() {
        "unlimited" => "memory, no limit".into(),
        limit => format!("memory, limit {limit}"),
    }
}

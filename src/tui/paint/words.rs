//! What several places of the screen call the same.

use ratatui::text::Span;

use crate::{
    planner::{Status, WEAK_GAP},
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
        Status::Feasible => Span::styled(format!("≈ feasible{}", open_gap(gap)), theme.bold(Role::Warning)),
        Status::Infeasible => Span::styled("✗ infeasible", theme.bold(Role::Bad)),
        Status::Cancelled => {
            Span::styled(format!("■ stopped, best so far{}", open_gap(gap)), theme.bold(Role::Warning))
        }
    }
}

/// A gap behind another word, if one is known.
fn open_gap(gap: Option<f64>) -> String {
    match gap {
        None => String::new(),
        Some(gap) if gap > WEAK_GAP => ", bound too weak".into(),
        Some(gap) => format!(", gap {}", units::percent(gap)),
    }
}

/// What stands over bars of memory.
pub(in crate::tui) fn memory_title(limit: f64) -> String {
    match units::bytes_exact(limit).as_str() {
        "unlimited" => "memory, no limit".into(),
        limit => format!("memory, limit {limit}"),
    }
}

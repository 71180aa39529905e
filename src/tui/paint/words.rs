//! Words used at several places of the screen.

use ratatui::text::Span;

use crate::{
    planner::{Status, WEAK_GAP},
    tui::theme::{Role, Theme},
    units,
};

/// Proven gap below which a plan is not marked with a warning.
pub(in crate::tui) const NEAR: f64 = 0.03;

/// Idle fraction of an iteration from which it is marked.
pub(in crate::tui) const MUCH_IDLE: f64 = 0.2;

/// Sign and word for the end of a run.
pub(in crate::tui) fn status(status: Status, gap: Option<f64>, theme: &Theme) -> Span<'static> {
    match status {
        Status::Optimal => Span::styled("✓ optimal", theme.bold(Role::Good)),
        // Close enough to need no warning.
        Status::Feasible if gap.is_some_and(|gap| gap <= NEAR) => {
            let gap = units::gap(gap.unwrap_or_default());
            Span::styled(format!("≈ within {gap}"), theme.bold(Role::Good))
        }
        Status::Feasible => Span::styled(format!("≈ feasible{}", open_gap(gap)), theme.bold(Role::Warning)),
        Status::Infeasible => Span::styled("✗ infeasible", theme.bold(Role::Bad)),
        Status::Cancelled => {
            Span::styled(format!("■ stopped, best so far{}", open_gap(gap)), theme.bold(Role::Warning))
        }
    }
}

/// Text of a gap after another word, if known.
fn open_gap(gap: Option<f64>) -> String {
    match gap {
        None => String::new(),
        Some(gap) if gap > WEAK_GAP => ", bound too weak".into(),
        Some(gap) => format!(", gap {}", units::gap(gap)),
    }
}

/// Title over bars of memory.
pub(in crate::tui) fn memory_title(limit: f64) -> String {
    match units::bytes_exact(limit).as_str() {
        "unlimited" => "memory, no limit".into(),
        limit => format!("memory, limit {limit}"),
    }
}

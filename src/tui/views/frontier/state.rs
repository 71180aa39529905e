//! Selected and marked layouts.

use super::beside::Pair;
use crate::tui::layout_bar::Axis;

/// State of the view.
#[derive(Debug, Default)]
pub(in crate::tui) struct State {
    /// Index of the selected row.
    pub cursor: usize,
    /// Numbers of the marked layouts, oldest first; at most two.
    pub marked: Vec<usize>,
    /// True if rows are in the order of memory instead of time.
    pub by_memory: bool,
    /// Axis whose value all rows share, if only some layouts are listed.
    pub only: Option<(Axis, u32)>,
    /// Two layouts side by side, in place of the chart.
    pub beside: Option<Box<Pair>>,
}

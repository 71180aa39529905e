//! Selected and marked layouts.

/// State of the view.
#[derive(Debug, Default)]
pub(in crate::tui) struct State {
    /// Index of the selected row.
    pub cursor: usize,
    /// Numbers of the marked layouts, oldest first; at most two.
    pub marked: Vec<usize>,
    /// True if rows are in the order of memory instead of time.
    pub by_memory: bool,
}

//! Left panel: its cursor, and the value being typed.

use super::super::adjust::Editing;

/// Left panel: its cursor, and the value being typed.
pub(in crate::tui) struct Panel {
    /// True if the left panel is folded; `None`: depends on the width.
    pub(in crate::tui) folded: Option<bool>,
    /// Selected row of the left panel.
    pub(in crate::tui) cursor: usize,
    /// True if planners that cannot plan this workload are listed.
    pub(in crate::tui) others_unfolded: bool,
    /// Value being typed.
    pub(in crate::tui) editing: Option<Editing>,
}

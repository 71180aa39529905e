//! Left panel: its cursor, and the value being typed.

use tui_input::Input;

use crate::tui::{panel_rows::PanelRow, place::Tone};

/// Value being typed.
#[derive(Debug, Clone)]
pub(in crate::tui) struct Editing {
    /// Edited row: a limit, an option that takes a number or a file, or a setting that takes a number.
    pub(in crate::tui) row: PanelRow,
    /// Text typed so far.
    pub(in crate::tui) input: Input,
    /// True until something is typed: the first letter then replaces the old value.
    pub(in crate::tui) untouched: bool,
    /// Reason why the value is refused.
    pub(in crate::tui) error: Option<String>,
    /// Note on the value before it is confirmed: does the file exist?
    pub(in crate::tui) known: Option<(Tone, String)>,
}

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

//! Knobs of the layout.

use crate::tui::layout_bar::AxisTrials;

/// State of the knobs.
#[derive(Debug, Default)]
pub(in crate::tui) struct LayoutKnobs {
    /// Index of the selected knob among those that turn.
    pub(in crate::tui) at: usize,
    /// Other values of a knob.
    pub(in crate::tui) trials: Option<AxisTrials>,
}

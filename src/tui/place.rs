//! Parts of the screen: focus, click targets, tone of a message.

use super::{panel_rows::PanelRow, views::list::View};
use crate::study::columns::Column;

/// Part with the focus, which receives the arrow keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// The left panel.
    Panel,
    /// Knobs of the layout, over the view.
    Layout,
    /// The view.
    View,
}

/// Tone of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Something was done.
    Done,
    /// Something cannot be done.
    Refused,
}

/// Target of a click.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hit {
    /// Tab of a view.
    Tab(View),
    /// Row of the left panel.
    Panel(PanelRow),
    /// Arrow that decreases or increases a row of the left panel.
    Step(PanelRow, bool),
    /// Inside the left panel, beside its rows.
    PanelArea,
    /// Index of a knob of the layout.
    Knob(usize),
    /// Inside the view.
    ViewArea,
    /// Index of a row of a list.
    ListRow(usize),
    /// Head of a column to sort by.
    Sort(Column),
    /// Index of a suggestion.
    Suggestion(usize),
    /// Area between the suggestions.
    Suggestions,
    /// Index of a value along the sweep's chart.
    Place(usize),
    /// Index of a remedy, where nothing fits.
    Remedy(usize),
    /// Column of the timeline, from its left edge.
    Time(usize),
    /// Strip of Overview.
    Strip,
}

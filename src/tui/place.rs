//! Places of the screen: who hears the arrow keys, what a click means, how a message is meant.

use super::panel_rows::PanelRow;
pub use super::views::View;
use crate::study::columns::Column;

/// Who hears the arrow keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// The panel at the left.
    Panel,
    /// The view.
    View,
}

/// How a message is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Something was done.
    Done,
    /// Something cannot be done.
    Refused,
}

/// What a click at a place means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hit {
    /// A view's tab.
    Tab(View),
    /// A row of the left panel.
    Panel(PanelRow),
    /// The arrow that decreases or increases a row of the left panel.
    Step(PanelRow, bool),
    /// Inside the left panel, beside its rows.
    PanelArea,
    /// Inside the view.
    ViewArea,
    /// A row of a list, by its place.
    ListRow(usize),
    /// The head of a column to sort by.
    Sort(Column),
    /// Something that would help, by its place.
    Suggestion(usize),
    /// Among these, beside each.
    Suggestions,
    /// A value along the sweep's chart, by its place.
    Place(usize),
    /// A column of the timeline, from its left edge.
    Time(usize),
    /// The strip of Overview.
    Strip,
}

//! Places of the screen: its views, who hears the arrow keys, what a click means, how a message is meant.

use super::panel_rows::PanelRow;
use crate::study::columns::Column;

/// One of the views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// The plan as a picture.
    Overview,
    /// Which nodes form a stage, on how many devices.
    Stages,
    /// How busy and how full each device is.
    Devices,
    /// The batch, event by event.
    Timeline,
    /// Every planner's plan, and those that were pinned, on one table.
    Compare,
    /// The objective over a limit.
    Sweep,
    /// The network itself.
    Workload,
}

impl View {
    /// All views, in the order of their keys.
    pub const ALL: [View; 7] =
        [View::Overview, View::Stages, View::Devices, View::Timeline, View::Compare, View::Sweep, View::Workload];

    /// As the tab names it.
    pub fn title(self) -> &'static str {
        match self {
            View::Overview => "Overview",
            View::Stages => "Stages",
            View::Devices => "Devices",
            View::Timeline => "Timeline",
            View::Compare => "Compare",
            View::Sweep => "Sweep",
            View::Workload => "Workload",
        }
    }
}

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

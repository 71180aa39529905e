//! Rows of the left panel and its sections.

use crate::{cluster::LimitKind, simulate::SimulatorSetting};

/// Row of the left panel that can be selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PanelRow {
    /// Index of a planner.
    Planner(usize),
    /// Row that folds and unfolds the planners that cannot plan this workload.
    Others,
    /// A limit.
    Limit(LimitKind),
    /// Index of a dial of the workload.
    Dial(usize),
    /// Index of an option of the planner.
    Option(usize),
    /// The schedule.
    Schedule,
    /// Setting of the simulator.
    Setting(SimulatorSetting),
}

/// Section of the panel with its own title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PanelSection {
    /// Planners.
    Planner,
    /// Limits on the plan.
    Limits,
    /// Options of the planner.
    Options,
    /// Settings of the simulator.
    Setup,
}

impl PanelSection {
    /// All sections, from the top.
    pub(super) const ALL: [PanelSection; 4] =
        [PanelSection::Planner, PanelSection::Limits, PanelSection::Options, PanelSection::Setup];

    /// Title in the panel.
    pub(super) fn title(self) -> &'static str {
        match self {
            PanelSection::Planner => "Planner",
            PanelSection::Limits => "Limits",
            PanelSection::Options => "Options",
            PanelSection::Setup => "Simulator",
        }
    }
}

impl PanelRow {
    /// Section of the row.
    pub(super) fn section(self) -> PanelSection {
        match self {
            PanelRow::Planner(_) | PanelRow::Others => PanelSection::Planner,
            PanelRow::Limit(_) | PanelRow::Dial(_) => PanelSection::Limits,
            PanelRow::Option(_) => PanelSection::Options,
            PanelRow::Schedule | PanelRow::Setting(_) => PanelSection::Setup,
        }
    }
}

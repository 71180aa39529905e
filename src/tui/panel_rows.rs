//! Rows of the left panel in order: planners, limits, options, simulator settings.
//!
//! Planners that cannot plan the workload are folded into one row, so that the limits stay visible.

use super::{
    model::{Focus, Model, Simulation},
    views::WITH_TIMELINE,
};
use crate::{
    cluster::LimitKind,
    simulate::{Schedule, SimulatorSetting},
    study::explain::limits_of,
};

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

impl Simulation {
    /// Schedule other than the first.
    fn other_schedule(&self) -> Schedule {
        Some(self.setup.schedule).filter(|schedule| *schedule != Schedule::ALL[0]).unwrap_or(Schedule::GPipe)
    }

    /// Reason why a simulator row has no effect on the shown plan; `None` if it has one.
    pub(super) fn ignored(&self, row: PanelRow) -> Option<String> {
        let pipeline = self.simulated.as_ref().map(|simulated| &simulated.pipeline);
        match row {
            PanelRow::Setting(setting) => setting.unused(&self.setup, pipeline).map(str::to_string),
            PanelRow::Schedule => pipeline.filter(|pipeline| pipeline.runs_once())?.refusal(self.other_schedule()),
            _ => None,
        }
    }
}

impl Model {
    /// Rows of the left panel, from the top. They always include the planner in force. Planners that would convert the
    /// workload come last.
    pub(super) fn panel_rows(&self) -> Vec<PanelRow> {
        let others = self.other_planners();
        let mut planners: Vec<usize> = (0..self.session.planners.len()).filter(|i| !others.contains(i)).collect();
        planners.sort_by_key(|&i| self.session.refusals[i].is_none() && !self.session.is_native(i));
        let mut rows: Vec<PanelRow> = planners.into_iter().map(PanelRow::Planner).collect();
        if !others.is_empty() {
            rows.push(PanelRow::Others);
            if self.panel.others_unfolded {
                rows.extend(others.into_iter().map(PanelRow::Planner));
            }
        }
        rows.extend(
            limits_of(self.session.current_planner(), &self.session.workload).iter().map(|&kind| PanelRow::Limit(kind)),
        );
        rows.extend((0..self.session.dials.len()).map(PanelRow::Dial));
        let ignored = self.session.current_planner().ignores(&self.session.workload);
        let offered = |&i: &usize| !ignored.contains(&self.session.specs()[i].name);
        rows.extend((0..self.session.specs().len()).filter(offered).map(PanelRow::Option));
        // Simulator settings have no effect in views without simulation.
        if self.view.room().uses().simulator {
            rows.push(PanelRow::Schedule);
            rows.extend(SimulatorSetting::ALL.map(PanelRow::Setting));
        }
        rows
    }

    /// Moves the focus to the simulator rows.
    pub(super) fn go_to_simulator_rows(&mut self) {
        // A view that simulates many plans keeps its place: its rows apply to all of them.
        let many = self.view.room().uses().simulator && !self.view.room().uses().plan;
        if !many {
            self.view = WITH_TIMELINE;
        }
        self.focus = Focus::Panel;
        self.select_panel_row(PanelRow::Schedule);
    }

    /// Planners behind the folding row: those that cannot plan this workload, unless none can.
    pub(super) fn other_planners(&self) -> Vec<usize> {
        if self.session.refusals.iter().all(Option::is_some) {
            return vec![];
        }
        let refused = (0..self.session.planners.len()).filter(|&i| self.session.refusals[i].is_some());
        // The planner in force must stay visible.
        refused.filter(|&i| self.panel.others_unfolded || i != self.session.planner).collect()
    }

    /// Selected row of the left panel.
    pub(super) fn panel_row(&self) -> Option<PanelRow> {
        let rows = self.panel_rows();
        rows.get(self.panel.cursor.min(rows.len().saturating_sub(1))).copied()
    }

    /// Selects a row of the left panel, or the first limit if there is no such row.
    pub(super) fn select_panel_row(&mut self, row: PanelRow) {
        let rows = self.panel_rows();
        let first_limit = || rows.iter().position(|r| r.section() == PanelSection::Limits);
        self.panel.cursor = rows.iter().position(|r| *r == row).or_else(first_limit).unwrap_or(0);
    }

    /// Shows or hides the planners that cannot plan this workload. The selected row stays selected.
    pub(super) fn fold_others(&mut self, unfolded: bool) {
        let row = self.panel_row();
        self.panel.others_unfolded = unfolded;
        self.select_panel_row(row.unwrap_or(PanelRow::Others));
    }
}

//! The rows of the left panel: planners, limits, options, how plans are simulated, in the order in which the arrow keys go through them.
//!
//! Planners that cannot plan the workload are folded into one row, so that a long list stays short enough to leave the
//! limits in sight.

use super::{
    model::{Focus, Model},
    views::WITH_TIMELINE,
};
use crate::{
    cluster::LimitKind,
    simulate::{Schedule, Setting},
    study::explain::limits_of,
};

/// A row of the left panel that can be selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PanelRow {
    /// A planner, by its place in the list.
    Planner(usize),
    /// The row that folds and unfolds the planners that cannot plan this workload.
    Others,
    /// A limit.
    Limit(LimitKind),
    /// Something of the workload itself, by its place among its dials.
    Dial(usize),
    /// An option of the planner, by its place in its list.
    Option(usize),
    /// The schedule.
    Schedule,
    /// A setting of the simulator.
    Setting(Setting),
}

/// A part of the panel with a title of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PanelSection {
    /// Who plans.
    Planner,
    /// What a plan must keep.
    Limits,
    /// How the planner goes about it.
    Options,
    /// How the simulator runs the plan.
    Setup,
}

impl PanelSection {
    /// All sections from the top.
    pub(super) const ALL: [PanelSection; 4] =
        [PanelSection::Planner, PanelSection::Limits, PanelSection::Options, PanelSection::Setup];

    /// As the panel names it.
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
    /// The part of the panel it is in.
    pub(super) fn section(self) -> PanelSection {
        match self {
            PanelRow::Planner(_) | PanelRow::Others => PanelSection::Planner,
            PanelRow::Limit(_) | PanelRow::Dial(_) => PanelSection::Limits,
            PanelRow::Option(_) => PanelSection::Options,
            PanelRow::Schedule | PanelRow::Setting(_) => PanelSection::Setup,
        }
    }
}

impl Model {
    /// Rows of the left panel, from the top. The planner in force is always among them; those that would plan a converted
    /// workload come after those that plan this one.
    pub(super) fn panel_rows(&self) -> Vec<PanelRow> {
        let others = self.other_planners();
        let mut planners: Vec<usize> = (0..self.planners.len()).filter(|i| !others.contains(i)).collect();
        planners.sort_by_key(|&i| self.refusals[i].is_none() && !self.is_native(i));
        let mut rows: Vec<PanelRow> = planners.into_iter().map(PanelRow::Planner).collect();
        if !others.is_empty() {
            rows.push(PanelRow::Others);
            if self.others_unfolded {
                rows.extend(others.into_iter().map(PanelRow::Planner));
            }
        }
        rows.extend(limits_of(self.current_planner(), &self.workload).iter().map(|&kind| PanelRow::Limit(kind)));
        rows.extend((0..self.dials.len()).map(PanelRow::Dial));
        let unheard = self.current_planner().unheard(&self.workload);
        let heard = |&i: &usize| !unheard.contains(&self.specs()[i].name);
        rows.extend((0..self.specs().len()).filter(heard).map(PanelRow::Option));
        // Where nothing is simulated, how it is simulated matters to nobody.
        if self.view.room().uses().simulator {
            rows.push(PanelRow::Schedule);
            rows.extend(Setting::ALL.map(PanelRow::Setting));
        }
        rows
    }

    /// Goes to the rows that say how plans are simulated.
    pub(super) fn go_to_simulator_rows(&mut self) {
        // Where many plans are simulated alike there is none to go to.
        let many = self.view.room().uses().simulator && !self.view.room().uses().plan;
        if !many {
            self.view = WITH_TIMELINE;
        }
        self.focus = Focus::Panel;
        self.select_panel_row(PanelRow::Schedule);
    }

    /// Why a row of the simulator's changes nothing about what is shown, in words; `None` where it does.
    pub(super) fn unheard(&self, row: PanelRow) -> Option<String> {
        let pipeline = self.simulated.as_ref().map(|simulated| &simulated.pipeline);
        match row {
            PanelRow::Setting(setting) => setting.unused(&self.setup, pipeline).map(str::to_string),
            PanelRow::Schedule => pipeline.filter(|pipeline| pipeline.runs_once())?.refusal(self.other_schedule()),
            _ => None,
        }
    }

    /// A schedule that is not the first.
    fn other_schedule(&self) -> Schedule {
        Some(self.setup.schedule).filter(|schedule| *schedule != Schedule::ALL[0]).unwrap_or(Schedule::GPipe)
    }

    /// The planners behind the folding row: those that cannot plan this workload, unless none can.
    pub(super) fn other_planners(&self) -> Vec<usize> {
        if self.refusals.iter().all(Option::is_some) {
            return vec![];
        }
        let refused = (0..self.planners.len()).filter(|&i| self.refusals[i].is_some());
        // Folded away, the planner in force could not be seen.
        refused.filter(|&i| self.others_unfolded || i != self.planner).collect()
    }

    /// The selected row of the left panel.
    pub(super) fn panel_row(&self) -> Option<PanelRow> {
        let rows = self.panel_rows();
        rows.get(self.panel_cursor.min(rows.len().saturating_sub(1))).copied()
    }

    /// Selects a row of the left panel; the first limit where there is no such row.
    pub(super) fn select_panel_row(&mut self, row: PanelRow) {
        let rows = self.panel_rows();
        let first_limit = || rows.iter().position(|r| r.section() == PanelSection::Limits);
        self.panel_cursor = rows.iter().position(|r| *r == row).or_else(first_limit).unwrap_or(0);
    }

    /// Shows or hides the planners that cannot plan this workload; the selected row stays selected.
    pub(super) fn fold_others(&mut self, unfolded: bool) {
        let row = self.panel_row();
        self.others_unfolded = unfolded;
        self.select_panel_row(row.unwrap_or(PanelRow::Others));
    }
}

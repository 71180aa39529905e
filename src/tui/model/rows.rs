//! Rows of the left panel in order: planners, limits, options, simulator settings.
//!
//! Planners that cannot plan the workload are folded into one row, so that the limits stay visible.

use super::Model;
use crate::{
    plan::Schedule,
    simulate::SimulatorSetting,
    study::explain::limits_of,
    tui::{
        layout_bar::Axis,
        panel_rows::{PanelRow, PanelSection},
    },
};

/// Settings that never change a model to be trained: its replicas are equal, both passes have times of their own, and
/// virtual stages belong to the layout.
const NEVER_OF_MODELS: [SimulatorSetting; 3] =
    [SimulatorSetting::WarmUp, SimulatorSetting::ForwardShare, SimulatorSetting::VirtualStages];

/// Options that switch an axis off, as its knob does with a degree of 1.
const SWITCHES: [&str; 2] = ["data_parallel", "tensor_parallel"];

impl Model {
    /// Rows of the left panel, from the top. They always include the planner in force. Planners that would convert the
    /// workload come last.
    pub(in crate::tui) fn panel_rows(&self) -> Vec<PanelRow> {
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
        // The axes of a layout are knobs of the title.
        let titled = self.session.workload.training().is_some();
        let offered = |&i: &usize| {
            let name = self.session.specs()[i].name;
            let knob = SWITCHES.contains(&name) || Axis::ALL.iter().any(|axis| axis.option() == name);
            !(ignored.contains(&name) || titled && knob)
        };
        rows.extend((0..self.session.specs().len()).filter(offered).map(PanelRow::Option));
        // Simulator settings have no effect in views without simulation.
        if self.view.uses().simulator {
            // The schedule of a model belongs to its layout; Timeline lists what others would take.
            rows.extend((!titled).then_some(PanelRow::Schedule));
            let idle: &[SimulatorSetting] = if titled { &NEVER_OF_MODELS } else { &[] };
            let sliced = self.simulation.setup.schedule == Schedule::Seq1F1B;
            let offered = |setting: &SimulatorSetting| {
                !idle.contains(setting) && (sliced || *setting != SimulatorSetting::SequenceSlices)
            };
            let offered = SimulatorSetting::ALL.into_iter().filter(offered);
            rows.extend(offered.map(PanelRow::Setting));
        }
        rows
    }

    /// Planners behind the folding row: those that cannot plan this workload, unless none can.
    pub(in crate::tui) fn other_planners(&self) -> Vec<usize> {
        if self.session.refusals.iter().all(Option::is_some) {
            return vec![];
        }
        let refused = (0..self.session.planners.len()).filter(|&i| self.session.refusals[i].is_some());
        // The planner in force must stay visible.
        refused.filter(|&i| self.panel.others_unfolded || i != self.session.planner).collect()
    }

    /// Selected row of the left panel.
    pub(in crate::tui) fn panel_row(&self) -> Option<PanelRow> {
        let rows = self.panel_rows();
        rows.get(self.panel.cursor.min(rows.len().saturating_sub(1))).copied()
    }

    /// Selects a row of the left panel, or the first limit if there is no such row.
    pub(in crate::tui) fn select_panel_row(&mut self, row: PanelRow) {
        let rows = self.panel_rows();
        let first_limit = || rows.iter().position(|r| r.section() == PanelSection::Limits);
        self.panel.cursor = rows.iter().position(|r| *r == row).or_else(first_limit).unwrap_or(0);
    }
}

//! Rows and actions of Devices.

use super::state::DeviceRow;
use crate::tui::{
    action::Action,
    model::Model,
    widget::list::{moved, toggle},
};

impl Model {
    /// Rows of the view, from the top.
    pub(crate) fn device_rows(&self) -> Vec<DeviceRow> {
        let Some(shown) = &self.planning.shown else { return vec![] };
        let Some((plan, _)) = shown.plan() else { return vec![] };
        let mut rows = vec![];
        for (i, stage) in plan.stages.iter().enumerate() {
            rows.push(DeviceRow::Stage(i));
            if self.views.devices.unfolded.contains(&i) {
                rows.extend(stage.devices.iter().map(|&device| DeviceRow::Device(i, device)));
            }
        }
        if !shown.names.unused.is_empty() {
            rows.push(DeviceRow::Unused);
        }
        rows
    }

    /// Performs an action of the view.
    pub(super) fn act_in_devices(&mut self, action: Action) {
        let rows = self.device_rows();
        let state = &mut self.views.devices;
        match (action, rows.get(state.cursor)) {
            (Action::Toggle, Some(row)) => toggle(&mut state.unfolded, row.stage()),
            (Action::Toggle, None) => {}
            _ => state.cursor = moved(state.cursor, action, rows.len()),
        }
    }
}

//! Actions of Devices.

use crate::tui::{
    action::Action,
    model::Model,
    update::{moved, toggle},
};

impl Model {
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

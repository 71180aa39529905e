//! Rows and actions of Devices.

use super::{groups, state::DeviceRow};
use crate::tui::{
    action::Action,
    model::{Focus, Model, View},
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
        if self.views.devices.groups {
            self.walk_groups(action);
            return;
        }
        let rows = self.device_rows();
        let state = &mut self.views.devices;
        match (action, rows.get(state.cursor)) {
            (Action::Toggle, Some(row)) => toggle(&mut state.unfolded, row.stage()),
            (Action::Toggle, None) => {}
            _ => state.cursor = moved(state.cursor, action, rows.len()),
        }
    }

    /// Shows the groups of devices or leaves them.
    pub(in crate::tui) fn toggle_groups(&mut self) {
        let there = std::mem::replace(&mut self.view, View::Devices) == View::Devices;
        self.views.devices.groups = !(there && self.views.devices.groups);
        self.focus = Focus::View;
    }

    /// Moves to another device: left and right to a neighbour, up and down to the next row.
    fn walk_groups(&mut self, action: Action) {
        let Some(shown) = self.planning.shown.clone() else { return };
        let Some((plan, _)) = shown.plan() else { return };
        let (last, row) = (plan.devices().count().saturating_sub(1), groups::row_width(&shown));
        let rank = &mut self.views.devices.rank;
        *rank = match action {
            Action::CursorLeft => rank.saturating_sub(1),
            Action::CursorRight => *rank + 1,
            Action::Up => rank.checked_sub(row).unwrap_or(*rank),
            Action::Down if *rank + row <= last => *rank + row,
            Action::First | Action::PageUp => 0,
            Action::Last | Action::PageDown => last,
            _ => *rank,
        }
        .min(last);
    }
}

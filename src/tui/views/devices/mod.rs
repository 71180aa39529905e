//! Devices: load and memory of each device, and traffic between stages.

mod draw;
mod fails;
mod groups;
pub(super) mod keys;
mod operators;
pub(super) mod state;
mod update;

use ratatui::{
    Frame,
    layout::{Position, Rect},
};

use self::{
    keys::TAB,
    state::{DeviceRow, State},
};
use crate::tui::{
    action::Action,
    effect::Effects,
    marks::Marks,
    model::{Hit, Model},
    views::{ViewBehaviour, list::Tab},
};

/// The view.
pub(super) struct Devices;

impl ViewBehaviour for Devices {
    fn tab(&self) -> &'static Tab {
        &TAB
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
        let Some(shown) = &model.planning.shown else { return };
        let Some((plan, score)) = shown.plan() else { return };
        if let Some(failed) = model.failed() {
            fails::draw(frame, area, model, marks, failed);
        } else if let Some(own) = &model.views.devices.groups {
            groups::draw(frame, area, model, shown, (plan, own));
        } else {
            draw::draw(frame, area, model, marks, shown, plan, score);
        }
    }

    fn act(&self, model: &mut Model, action: Action) -> Effects {
        if model.failed().is_some() {
            return model.act_on_failed(action);
        }
        model.act_in_devices(action);
        vec![]
    }

    fn hints(&self, model: &Model) -> &'static [(Action, &'static str)] {
        match (model.failed().is_some(), model.views.devices.groups.is_some()) {
            (true, _) => &[(Action::Toggle, "plan for it"), (Action::FailMachine, "revive")],
            (false, true) => &[
                (Action::Groups, "leave"),
                (Action::Toggle, "its row in the list"),
                (Action::FailMachine, "its machine fails"),
            ],
            (false, false) => &[],
        }
    }

    fn stage(&self, model: &Model) -> Option<usize> {
        match model.device_rows().get(model.views.devices.cursor)? {
            DeviceRow::Stage(stage) | DeviceRow::Device(stage, _) => Some(*stage),
            DeviceRow::Unused => None,
        }
    }

    fn point_at(&self, model: &mut Model, stage: usize) {
        if let Some(row) = model.device_rows().iter().position(|row| row.stage() == stage) {
            model.views.devices.cursor = row;
        }
    }

    fn leave_last(&self, model: &mut Model) -> bool {
        model.views.devices.failed.take().is_some() || model.views.devices.groups.take().is_some()
    }

    fn click(&self, model: &mut Model, hit: Hit, _: Position) -> Effects {
        match hit {
            Hit::ListRow(row) if model.failed().is_some() => model.select_way(row),
            Hit::ListRow(row) if model.views.devices.cursor == row => return model.act(Action::Toggle),
            Hit::ListRow(row) => model.views.devices.cursor = row,
            _ => {}
        }
        vec![]
    }

    fn plan_changed(&self, model: &mut Model) {
        let last = model.device_rows().len().saturating_sub(1);
        model.views.devices.cursor = model.views.devices.cursor.min(last);
        if model.views.devices.groups.is_some() {
            model.views.devices.groups = model.groups_of_plan();
        }
    }

    fn forget(&self, model: &mut Model) {
        model.views.devices = State::default();
    }
}

//! Devices: load and memory of each device, and traffic between stages.

mod draw;
mod keys;
mod operators;
mod state;
mod update;

use ratatui::{
    Frame,
    layout::{Position, Rect},
};

use crate::tui::{
    action::{Action, Scope},
    marks::Marks,
    model::{Hit, Model},
    update::Effects,
    views::{Room, Tab, Uses},
};

pub(super) use keys::KEYS;
pub(super) use state::State;

pub(super) const TAB: Tab = Tab { title: "Devices", help: "how busy and how full each device is" };

/// The view.
pub(super) struct Devices;

impl Room for Devices {
    fn hears(&self) -> &'static [Scope] {
        &[keys::HERE]
    }

    fn uses(&self) -> Uses {
        Uses { plan: true, ..Uses::default() }
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
        let Some(shown) = &model.planning.shown else { return };
        let Some((plan, score)) = shown.plan() else { return };
        draw::draw(frame, area, model, marks, shown, plan, score);
    }

    fn act(&self, model: &mut Model, action: Action) -> Effects {
        model.act_in_devices(action);
        vec![]
    }

    fn click(&self, model: &mut Model, hit: Hit, _: Position) -> Effects {
        match hit {
            Hit::ListRow(row) if model.views.devices.cursor == row => return model.act(Action::Toggle),
            Hit::ListRow(row) => model.views.devices.cursor = row,
            _ => {}
        }
        vec![]
    }

    fn plan_changed(&self, model: &mut Model) {
        let last = model.device_rows().len().saturating_sub(1);
        model.views.devices.cursor = model.views.devices.cursor.min(last);
    }

    fn forget(&self, model: &mut Model) {
        model.views.devices = State::default();
    }
}

//! Hardware: the same training on other accelerators and other numbers of them.

mod draw;
pub(super) mod keys;
pub(super) mod state;
mod update;

use ratatui::{
    Frame,
    layout::{Position, Rect},
};

use self::{keys::TAB, state::State};
use crate::tui::{
    action::Action,
    effect::Effects,
    marks::Marks,
    model::{Hit, Model},
    views::{ViewBehaviour, list::Tab},
};

/// The view.
pub(super) struct Hardware;

impl ViewBehaviour for Hardware {
    fn tab(&self) -> &'static Tab {
        &TAB
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
        draw::draw(frame, area, model, marks);
    }

    fn opened(&self, model: &mut Model) -> Effects {
        model.fill_hardware()
    }

    fn act(&self, model: &mut Model, action: Action) -> Effects {
        model.act_in_hardware(action)
    }

    fn click(&self, model: &mut Model, hit: Hit, _: Position) -> Effects {
        let Hit::ListRow(cell) = hit else { return vec![] };
        model.click_in_hardware(cell)
    }

    fn forget(&self, model: &mut Model) {
        model.views.hardware =
            State { tokens: model.views.hardware.tokens, within: model.views.hardware.within, ..State::default() };
    }
}

//! History: the plans that were on the screen, with what changed from one to the next.

mod draw;
pub(super) mod keys;
pub(in crate::tui) mod state;
mod update;

use ratatui::{
    Frame,
    layout::{Position, Rect},
};

use self::keys::TAB;
use crate::tui::{
    action::Action,
    effect::Effects,
    marks::Marks,
    model::{Hit, Model},
    views::{ViewBehaviour, list::Tab},
};

/// The view.
pub(super) struct History;

impl ViewBehaviour for History {
    fn tab(&self) -> &'static Tab {
        &TAB
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
        draw::draw(frame, area, model, marks);
    }

    fn act(&self, model: &mut Model, action: Action) -> Effects {
        model.act_in_history(action)
    }

    fn click(&self, model: &mut Model, hit: Hit, _: Position) -> Effects {
        match hit {
            Hit::ListRow(row) if model.views.history.cursor == row => return model.act(Action::Preview),
            Hit::ListRow(row) => model.views.history.cursor = row,
            _ => {}
        }
        vec![]
    }
}

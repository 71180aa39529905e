//! Sweep: the objective over one limit, or over two.

mod curves;
mod draw;
mod heat;
mod inputs;
pub(super) mod keys;
mod side;
pub(super) mod state;
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
pub(super) struct Sweep;

impl ViewBehaviour for Sweep {
    fn tab(&self) -> &'static Tab {
        &TAB
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
        draw::draw(frame, area, model, marks);
    }

    /// Opens the sweep and leaves the focus as it is, because the left panel has the sweep's inputs.
    fn opened(&self, model: &mut Model) -> Effects {
        model.open_sweep()
    }

    fn act(&self, model: &mut Model, action: Action) -> Effects {
        model.act_in_sweep(action)
    }

    fn click(&self, model: &mut Model, hit: Hit, _: Position) -> Effects {
        match hit {
            Hit::ListRow(row) => model.views.sweep.line = row,
            Hit::Place(place) => model.views.sweep.cursor = place,
            _ => {}
        }
        vec![]
    }

    fn leave(&self, model: &mut Model) -> bool {
        model.planning.stop_sweep()
    }
}

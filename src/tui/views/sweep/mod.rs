//! Sweep: the objective over one limit, or over two.

mod curves;
mod draw;
mod heat;
mod keys;
mod side;
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
pub(super) use state::SweepState as State;

pub(super) const TAB: Tab = Tab { title: "Sweep", help: "the objective over a limit" };

/// The view.
pub(super) struct Sweep;

impl Room for Sweep {
    fn hears(&self) -> &'static [Scope] {
        &[keys::HERE]
    }

    fn uses(&self) -> Uses {
        Uses::default()
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

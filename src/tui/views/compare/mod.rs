//! Compare: plans of all planners, and pinned ones, in one table.

mod beside;
mod cells;
mod columns;
pub(in crate::tui) mod compared;
mod detail;
mod draw;
mod keys;
mod pictures;
pub(in crate::tui) mod pins;
pub(in crate::tui) mod preview;
pub(in crate::tui) mod side;
mod stages;
pub(in crate::tui) mod state;
mod table;
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
pub(super) use side::Side;
pub(super) use state::CompareState as State;

pub(super) const TAB: Tab = Tab { title: "Compare", help: "plans side by side in one simulator" };

/// The view.
pub(super) struct Compare;

impl Room for Compare {
    fn hears(&self) -> &'static [Scope] {
        &[keys::HERE]
    }

    fn uses(&self) -> Uses {
        Uses { simulator: true, ..Uses::default() }
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
        draw::draw(frame, area, model, marks);
    }

    fn act(&self, model: &mut Model, action: Action) -> Effects {
        model.act_in_compare(action)
    }

    fn click(&self, model: &mut Model, hit: Hit, _: Position) -> Effects {
        match hit {
            Hit::ListRow(row) => return model.click_in_compare(row),
            Hit::Sort(column) => model.sort_by(column),
            _ => {}
        }
        vec![]
    }

    fn leave(&self, model: &mut Model) -> bool {
        model.leave_compare()
    }

    fn forget(&self, model: &mut Model) {
        model.compare_outdated();
        model.views.compare.forget_results();
    }
}

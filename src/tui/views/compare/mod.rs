//! Compare: plans of all planners, and pinned ones, in one table.

mod beside;
mod cells;
mod columns;
pub(in crate::tui) mod compared;
mod detail;
mod draw;
pub(super) mod keys;
mod pictures;
mod pinning;
pub(in crate::tui) mod pins;
mod preview;
mod rows;
mod runs;
mod side;
mod stages;
pub(in crate::tui) mod state;
mod table;
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
pub(super) struct Compare;

impl ViewBehaviour for Compare {
    fn tab(&self) -> &'static Tab {
        &TAB
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

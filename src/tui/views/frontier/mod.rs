//! Frontier: layouts of a model to be trained, time against memory.

mod arguments;
mod beside;
mod chart;
mod draw;
pub(super) mod keys;
mod points;
pub(super) mod state;
mod table;
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
pub(super) struct Frontier;

impl ViewBehaviour for Frontier {
    fn tab(&self) -> &'static Tab {
        &TAB
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
        let Some(shown) = &model.planning.shown else { return };
        draw::draw(frame, area, model, marks, shown);
    }

    fn opened(&self, model: &mut Model) -> Effects {
        model.open_frontier();
        vec![]
    }

    fn hints(&self, model: &Model) -> &'static [(Action, &'static str)] {
        if model.views.frontier.beside.is_some() {
            &[(Action::Back, "all layouts"), (Action::Preview, "take it")]
        } else {
            &[]
        }
    }

    fn leave_last(&self, model: &mut Model) -> bool {
        model.views.frontier.beside.take().is_some()
    }

    fn act(&self, model: &mut Model, action: Action) -> Effects {
        model.act_in_frontier(action)
    }

    fn click(&self, model: &mut Model, hit: Hit, _: Position) -> Effects {
        match hit {
            Hit::ListRow(row) if model.views.frontier.cursor == row => return model.act(Action::Preview),
            Hit::ListRow(row) => model.views.frontier.cursor = row,
            _ => {}
        }
        vec![]
    }

    fn plan_changed(&self, model: &mut Model) {
        model.views.frontier.beside = None;
        // An edited plan keeps the layouts that it was chosen from.
        if !model.edited() {
            model.views.frontier = State { by_memory: model.views.frontier.by_memory, ..State::default() };
        }
    }

    fn forget(&self, model: &mut Model) {
        model.views.frontier = State::default();
    }
}

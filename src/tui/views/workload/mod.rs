//! Workload: the network itself.

mod draw;
pub(super) mod keys;
mod nodes;
mod profile;
pub(super) mod state;
mod update;

use ratatui::{
    Frame,
    layout::{Position, Rect},
};

use self::{
    keys::{HERE, TAB},
    state::Section,
};
use crate::tui::{
    action::{Action, Scope},
    effect::Effects,
    marks::Marks,
    model::{Hit, Model},
    views::{ViewBehaviour, list::Tab},
    widget::tree::TreePane,
};

/// The view.
pub(super) struct Workload;

impl ViewBehaviour for Workload {
    fn tab(&self) -> &'static Tab {
        &TAB
    }

    fn scopes(&self, model: &Model) -> &'static [Scope] {
        if model.views.workload.section == Section::Nodes { TAB.scopes } else { &[HERE] }
    }

    fn turn_to(&self, model: &mut Model, scope: Scope) -> bool {
        if scope == Scope::Tree {
            model.views.workload.section = Section::Nodes;
        }
        TAB.scopes.contains(&scope)
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
        draw::draw(frame, area, model, marks);
    }

    fn act(&self, model: &mut Model, action: Action) -> Effects {
        model.act_in_workload(action);
        vec![]
    }

    fn click(&self, model: &mut Model, hit: Hit, position: Position) -> Effects {
        let state = &mut model.views.workload;
        match hit {
            Hit::ListRow(row) => state.cursor = row,
            Hit::ViewArea if state.section == Section::Nodes => state.nodes.click(position),
            _ => {}
        }
        vec![]
    }

    fn scroll(&self, model: &mut Model, _: Hit, down: bool) -> bool {
        let state = &mut model.views.workload;
        if state.section == Section::Nodes {
            state.nodes.scroll(down);
        }
        state.section == Section::Nodes
    }

    fn tree<'a>(&self, model: &'a mut Model) -> Option<&'a mut TreePane> {
        Some(&mut model.views.workload.nodes)
    }

    fn forget(&self, model: &mut Model) {
        model.views.workload.cursor = 0;
    }
}

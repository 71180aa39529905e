//! Workload: the network itself.

mod draw;
mod keys;
mod nodes;
mod profile;
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
    widget::tree::TreePane,
};

pub(super) use keys::KEYS;
use state::Section;
pub(super) use state::State;

pub(super) const TAB: Tab = Tab { title: "Workload", help: "the network: layers, edges, findings" };

/// The view.
pub(super) struct Workload;

impl Room for Workload {
    fn hears(&self) -> &'static [Scope] {
        &[keys::HERE, Scope::Tree]
    }

    fn scopes(&self, model: &Model) -> &'static [Scope] {
        if model.views.workload.section == Section::Nodes { self.hears() } else { &[keys::HERE] }
    }

    fn turn_to(&self, model: &mut Model, scope: Scope) -> bool {
        if scope == Scope::Tree {
            model.views.workload.section = Section::Nodes;
        }
        self.hears().contains(&scope)
    }

    fn uses(&self) -> Uses {
        Uses::default()
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

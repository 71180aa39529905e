//! Stages: nodes and devices of each stage, and suggestions.

mod draw;
pub(super) mod keys;
pub(super) mod state;
pub(in crate::tui) mod tree;
mod would_help;

use ratatui::{
    Frame,
    layout::{Position, Rect},
};

use self::keys::TAB;
use crate::{
    family::edit::Edit,
    tui::{
        action::{Action, Scope},
        effect::Effects,
        marks::Marks,
        model::{Hit, Model},
        views::{ViewBehaviour, list::Tab},
        widget::tree::TreePane,
    },
};

/// The view.
pub(super) struct Stages;

impl ViewBehaviour for Stages {
    fn tab(&self) -> &'static Tab {
        &TAB
    }

    fn idle(&self, model: &Model) -> &'static [Scope] {
        // Without a plan there are no stages to edit or unfold.
        let planless = model.planning.shown.as_ref().is_none_or(|shown| shown.plan().is_none());
        if planless { &[Scope::Stages, Scope::Tree, Scope::Lists] } else { &[] }
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
        let Some(shown) = &model.planning.shown else { return };
        let Some((plan, score)) = shown.plan() else { return };
        draw::draw(frame, area, model, marks, shown, plan, score);
    }

    fn act(&self, model: &mut Model, action: Action) -> Effects {
        model.views.stages.act(action);
        vec![]
    }

    fn click(&self, model: &mut Model, hit: Hit, position: Position) -> Effects {
        if hit == Hit::ViewArea {
            model.views.stages.click(position);
        }
        vec![]
    }

    fn scroll(&self, model: &mut Model, _: Hit, down: bool) -> bool {
        model.views.stages.scroll(down);
        true
    }

    fn tree<'a>(&self, model: &'a mut Model) -> Option<&'a mut TreePane> {
        Some(&mut model.views.stages)
    }

    fn stage(&self, model: &Model) -> Option<usize> {
        model.views.stages.selected().first().map(|&stage| stage as usize)
    }

    fn point_at(&self, model: &mut Model, stage: usize) {
        model.views.stages.select(&[stage as u32]);
    }

    fn edited_row(&self, model: &Model) -> Vec<u32> {
        model.views.stages.selected().to_vec()
    }

    fn follow(&self, model: &mut Model, edit: &Edit) {
        let Some(shown) = &model.planning.shown else { return };
        let Some((plan, _)) = shown.plan() else { return };
        let state = &mut model.views.stages;
        match edit {
            Edit::Move { nodes, .. } | Edit::Choice { nodes, .. } if state.selected().len() > 1 => {
                let path = nodes.first().map(|&node| tree::path_of(&shown.workload, plan, node));
                state.select(&path.unwrap_or_default());
            }
            Edit::Merge { stage } | Edit::Split { stage, .. } => state.select(&[*stage as u32]),
            _ => {}
        }
    }
}

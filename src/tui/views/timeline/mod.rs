//! Timeline: the iteration, event by event.

mod cursor;
mod draw;
mod head;
pub(super) mod keys;
mod rows;
pub(super) mod state;
mod update;
mod whole;

use std::sync::Arc;

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
    simulated::Simulated,
    views::{ViewBehaviour, list::Tab},
};

/// The view.
pub(super) struct Timeline;

impl ViewBehaviour for Timeline {
    fn tab(&self) -> &'static Tab {
        &TAB
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
        let Some(shown) = &model.planning.shown else { return };
        draw::draw(frame, area, model, marks, shown);
    }

    fn outdated(&self, model: &Model) -> bool {
        let (Some(simulated), Some(shown)) = (&model.simulation.simulated, &model.planning.shown) else { return false };
        !Arc::ptr_eq(&simulated.shown, shown)
    }

    fn act(&self, model: &mut Model, action: Action) -> Effects {
        model.act_in_timeline(action);
        vec![]
    }

    fn click(&self, model: &mut Model, hit: Hit, position: Position) -> Effects {
        match hit {
            Hit::ListRow(row) => model.views.timeline.row = row,
            Hit::Time(column) => model.click_on_time(column, position),
            _ => {}
        }
        vec![]
    }

    fn drag(&self, model: &mut Model, hit: Hit, _: Position) {
        if let Hit::Time(column) = hit {
            model.put_cursor(column);
        }
    }

    fn scroll(&self, model: &mut Model, hit: Hit, down: bool) -> bool {
        let Hit::Time(column) = hit else { return false };
        model.zoom_at(column, down);
        true
    }

    fn stage(&self, model: &Model) -> Option<usize> {
        let rows = model.timeline_rows(model.simulation.simulated.as_ref()?);
        rows.get(model.views.timeline.row).map(|&(stage, _)| stage)
    }

    fn point_at(&self, model: &mut Model, stage: usize) {
        let Some(simulated) = &model.simulation.simulated else { return };
        if let Some(row) = model.timeline_rows(simulated).iter().position(|&(of, _)| of == stage) {
            model.views.timeline.row = row;
        }
    }

    fn seek(&self, model: &mut Model, batch_s: f64) {
        model.views.timeline.show(model.simulation.playing.at_s, batch_s);
    }

    fn simulated(&self, model: &mut Model, simulated: &Simulated) {
        let batch = simulated.timeline.iteration_s;
        model.views.timeline.begin(simulated.warm_up_s(), batch);
        model.views.timeline.fit(batch);
    }

    fn forget(&self, model: &mut Model) {
        model.views.timeline = State::default();
    }
}

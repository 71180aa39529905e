//! Overview: the plan as a picture.
//!
//! ```text
//! 39.82 s → 31.95 s    1.25x faster    24.9%    78.4 of 80 GiB       figures
//! Cluster  126 of 128 devices                              legend  | Stage 4
//! ██ ██ ██ ██  ██ ██ ██ ██    a cell a device: hue stage,          | forward    109.7 ms
//! ▆▆ ▆▆ ▆▆ ▆▆  ██ ██ ██ ██    height memory, brightness load       | ..
//! Transfers  who sends to whom, as arcs                            |
//! Batch    256 microbatches, 1F1B                          legend  | What would help
//!  1 ▐██▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇   a row a stage                 | 2x devices    1.98x
//!    ├─ warm-up ─┤├──── steady ────┤├─ drain ─┤
//! ```
//! In narrow places, stage and suggestions are lines below. Playback moves a playhead over the strip, and cells of the
//! map show the activity of their devices at that time.

mod arcs;
mod areas;
mod below;
mod draw;
mod figures;
mod handovers;
pub(super) mod keys;
mod operators;
mod side;
pub(in crate::tui) mod slide;
pub(super) mod state;
mod traffic;
mod update;

use ratatui::{
    Frame,
    layout::{Position, Rect},
};

use self::{keys::TAB, state::State};
use crate::{
    family::edit::Edit,
    tui::{
        action::Action,
        effect::Effects,
        marks::Marks,
        model::{Hit, Model},
        views::{ViewBehaviour, list::Tab},
    },
};
pub(in crate::tui) use keys::HERE;

/// The view.
pub(super) struct Overview;

impl ViewBehaviour for Overview {
    fn tab(&self) -> &'static Tab {
        &TAB
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
        let Some(shown) = &model.planning.shown else { return };
        let Some((plan, score)) = shown.plan() else { return };
        draw::draw(frame, area, model, marks, shown, plan, score);
    }

    fn act(&self, model: &mut Model, action: Action) -> Effects {
        model.act_in_overview(action);
        vec![]
    }

    fn click(&self, model: &mut Model, hit: Hit, position: Position) -> Effects {
        match hit {
            Hit::Strip => model.click_on_strip(position),
            _ => model.click_in_overview(position),
        }
        vec![]
    }

    fn drag(&self, model: &mut Model, hit: Hit, position: Position) {
        if hit == Hit::Strip {
            model.click_on_strip(position);
        }
    }

    fn scroll(&self, model: &mut Model, hit: Hit, down: bool) -> bool {
        if hit == Hit::Strip {
            model.step_event(down);
        }
        hit == Hit::Strip
    }

    fn leave_last(&self, model: &mut Model) -> bool {
        model.simulation.leave_playhead()
    }

    fn stage(&self, model: &Model) -> Option<usize> {
        model.views.overview.stage().filter(|_| model.views.overview.walked)
    }

    fn point_at(&self, model: &mut Model, stage: usize) {
        model.views.overview.point_at(stage);
    }

    fn edited_row(&self, model: &Model) -> Vec<u32> {
        model.views.overview.stage().map(|stage| stage as u32).into_iter().collect()
    }

    fn follow(&self, model: &mut Model, _: &Edit) {
        model.views.overview.wanted = model.views.overview.stage();
    }

    fn forget(&self, model: &mut Model) {
        model.views.overview = State::default();
    }
}

//! Actions and clicks of Overview.

use ratatui::layout::Position;

use crate::tui::{
    action::Action,
    model::{Model, Simulation},
    paint::strip::Rows,
    playing::Playhead,
    widget::list::moved,
};

impl Simulation {
    /// Removes the playhead. Returns true if there was one.
    pub(in crate::tui) fn leave_playhead(&mut self) -> bool {
        std::mem::take(&mut self.playing.head) != Playhead::Away
    }
}

impl Model {
    /// Performs an action of the view.
    pub(in crate::tui) fn act_in_overview(&mut self, action: Action) {
        match action {
            Action::NextEvent => self.step_event(true),
            Action::PreviousEvent => self.step_event(false),
            _ => self.walk_map(action),
        }
    }

    /// Device under the cursor of Overview.
    pub(in crate::tui) fn device_on_overview(&self) -> Option<u32> {
        self.views.overview.device()
    }

    fn walk_map(&mut self, action: Action) {
        let overview = &mut self.views.overview;
        let Some((_, map)) = &overview.map else { return };
        let count = map.atlas.seats.len();
        let at = overview.cursor.min(count.saturating_sub(1));
        overview.walked = true;
        overview.cursor = match action {
            Action::CursorLeft => map.along(at, false),
            Action::CursorRight => map.along(at, true),
            Action::Up => map.beside(at, false),
            Action::Down => map.beside(at, true),
            _ => moved(at, action, count),
        };
    }

    /// Selects the device of a click on the map.
    pub(in crate::tui) fn click_in_overview(&mut self, position: Position) {
        let area = self.views.overview.area;
        if !area.contains(position) {
            return;
        }
        let found =
            self.views.overview.map.as_ref().and_then(|(_, map)| map.seat_at(position.x - area.x, position.y - area.y));
        self.views.overview.walked = true;
        self.views.overview.cursor = found.unwrap_or(self.views.overview.cursor);
    }

    /// Moves the playhead to a click on the strip, and the cursor to the first device of that stage.
    pub(in crate::tui) fn click_on_strip(&mut self, position: Position) {
        let strip = self.views.overview.strip;
        let (Some(axis), Some(simulated)) = (self.views.overview.axis, self.simulation.simulated.clone()) else {
            return;
        };
        let batch = simulated.timeline.iteration_s;
        if !strip.contains(position) || batch <= 0.0 {
            return;
        }
        let rows = Rows::new(simulated.timeline.replicas.len(), strip.height);
        self.views.overview.select_stage(rows.stage_at(position.y - strip.y));
        self.hold_at(axis.time(position.x - strip.x), batch);
    }
}

//! Actions and mouse events of Timeline.

use ratatui::layout::Position;

use crate::tui::{
    action::Action,
    model::{Hit, Model},
    simulated::Lane,
    widget::list::{moved, toggle},
};

impl Model {
    /// Performs an action of the view.
    pub(super) fn act_in_timeline(&mut self, action: Action) {
        let Some(simulated) = self.simulation.simulated.clone() else { return };
        let rows = self.timeline_rows(&simulated);
        let batch = simulated.timeline.iteration_s;
        let cursor = self.simulation.playing.at_s;
        let state = &mut self.views.timeline;
        match action {
            Action::CursorLeft | Action::CursorRight => {
                let columns = if action == Action::CursorLeft { -1.0 } else { 1.0 };
                let at = state.stepped(columns, cursor, batch);
                self.put_playhead(at, batch);
            }
            Action::PanLeft => self.simulation.playing.at_s = state.pan(-0.5, cursor, batch),
            Action::PanRight => self.simulation.playing.at_s = state.pan(0.5, cursor, batch),
            Action::ZoomIn => state.zoom(0.5, cursor, batch),
            Action::ZoomOut => state.zoom(2.0, cursor, batch),
            Action::ZoomWhole => state.whole(),
            Action::MarkPath => state.path = !state.path,
            Action::NextEvent | Action::PreviousEvent => {
                if let Some(&(stage, replica)) = rows.get(state.row) {
                    let replica = replica.unwrap_or(0);
                    let forwards = action == Action::NextEvent;
                    // A step back from within an event goes to the event before it, not to its own start.
                    let here = simulated.at(Lane::Compute, stage, replica, cursor).filter(|_| !forwards);
                    let found = simulated.neighbour(stage, replica, here.map_or(cursor, |e| e.start_s), forwards);
                    if let Some(start) = found {
                        // Just inside the event, so that the cursor is on it.
                        let length =
                            simulated.at(Lane::Compute, stage, replica, start).map_or(0.0, |e| e.end_s - start);
                        self.put_playhead(start + length * 1e-3, batch);
                    }
                }
            }
            Action::Toggle => {
                if let Some(&(stage, _)) = rows.get(state.row) {
                    toggle(&mut state.unfolded, stage);
                }
            }
            _ => state.row = moved(state.row, action, rows.len()),
        }
        let count = self.timeline_rows(&simulated).len();
        self.views.timeline.row = self.views.timeline.row.min(count.saturating_sub(1));
    }

    /// Moves the cursor to the middle of a column.
    pub(super) fn put_cursor(&mut self, column: usize) {
        if let Some(simulated) = &self.simulation.simulated {
            let batch = simulated.timeline.iteration_s;
            let (from, to) = self.views.timeline.window(batch);
            let columns = f64::from(self.views.timeline.columns.max(1));
            self.put_playhead(from + (column as f64 + 0.5) / columns * (to - from), batch);
        }
    }

    /// Handles a click on a column of the grid: selects the row, and moves the cursor.
    pub(super) fn click_on_time(&mut self, column: usize, position: Position) {
        // The row's area is below that of the column.
        let row = self.appearance.hits.iter().find_map(|(area, hit)| match hit {
            Hit::ListRow(row) if area.y <= position.y && position.y < area.bottom() => Some(*row),
            _ => None,
        });
        if let Some(row) = row {
            self.views.timeline.row = row;
        }
        self.put_cursor(column);
    }

    /// Zooms around the time of the column under the wheel.
    pub(super) fn zoom_at(&mut self, column: usize, out: bool) {
        let Some(simulated) = &self.simulation.simulated else { return };
        let (batch, state) = (simulated.timeline.iteration_s, &mut self.views.timeline);
        let (from, to) = state.window(batch);
        let share = (column as f64 + 0.5) / f64::from(state.columns.max(1));
        state.zoom(if out { 1.25 } else { 0.8 }, from + share * (to - from), batch);
    }
}

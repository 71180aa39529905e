//! What Overview knows beside the plan: the cursor on the map, and where the map was drawn last.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::arcs::Arcs;
use crate::tui::paint::map_layout::MapLayout;

/// State of the view.
#[derive(Debug, Clone, Default)]
pub(in crate::tui) struct State {
    /// The seat under the cursor, by place in the last map.
    pub cursor: usize,
    /// The stage that the cursor goes with into the next map, after an edit that may give its device to another.
    pub wanted: Option<usize>,
    /// The last map and what it depends on: the plan, the width and the height.
    pub map: Option<((u64, u16, u16), Arc<MapLayout>)>,
    /// What is drawn below it: who talks to whom.
    pub arcs: Option<Arc<Arcs>>,
    /// Where it was drawn.
    pub area: Rect,
    /// Where the strip was.
    pub strip: Rect,
}

impl State {
    /// Keeps what drawing laid out.
    pub(in crate::tui) fn laid_out(&mut self, laid: Self) {
        *self = laid;
    }

    /// The stage under the cursor.
    pub(in crate::tui) fn stage(&self) -> Option<usize> {
        let (_, map) = self.map.as_ref()?;
        map.atlas.seats.get(self.cursor.min(map.atlas.seats.len().saturating_sub(1)))?.stage
    }

    /// Puts the cursor on the first device of a stage.
    pub(in crate::tui) fn select_stage(&mut self, stage: usize) {
        if let Some((_, map)) = &self.map {
            let found = map.atlas.seats.iter().position(|seat| seat.stage == Some(stage));
            self.cursor = found.unwrap_or(self.cursor);
        }
    }
}

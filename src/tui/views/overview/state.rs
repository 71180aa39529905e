//! State of Overview: the cursor on the map, and areas of the last drawing.

use std::sync::Arc;

use ratatui::layout::Rect;

use super::arcs::Arcs;
use crate::tui::paint::{axis::Axis, map_layout::MapLayout};

/// Inputs of a map: another plan, size or source of the loads makes a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) struct MapKey {
    /// Number of the shown plan.
    pub generation: u64,
    /// Width and height of the area, cells.
    pub size: (u16, u16),
    /// True if loads are as simulated.
    pub paced: bool,
}

/// State of the view.
#[derive(Debug, Clone, Default)]
pub(in crate::tui) struct State {
    /// Index in the last map of the seat under the cursor.
    pub cursor: usize,
    /// True once the cursor was moved; until then it is on the limiting stage.
    pub walked: bool,
    /// Stage that the cursor follows into the next map after an edit, which may give its device to another stage.
    pub wanted: Option<usize>,
    /// Last map with its key.
    pub map: Option<(MapKey, Arc<MapLayout>)>,
    /// Arcs of the transfers below the map.
    pub arcs: Option<Arc<Arcs>>,
    /// Area of the map.
    pub area: Rect,
    /// Area of the strip.
    pub strip: Rect,
    /// Times of its columns.
    pub axis: Option<Axis>,
}

impl State {
    /// Stores the layout of a drawing.
    pub(in crate::tui) fn laid_out(&mut self, laid: Self) {
        *self = laid;
    }

    /// Puts the cursor on a stage of the next map.
    pub(in crate::tui) fn point_at(&mut self, stage: usize) {
        (self.wanted, self.walked, self.map) = (Some(stage), true, None);
    }

    /// Stage under the cursor.
    pub(in crate::tui) fn stage(&self) -> Option<usize> {
        let (_, map) = self.map.as_ref()?;
        map.atlas.seats.get(self.cursor.min(map.atlas.seats.len().saturating_sub(1)))?.stage
    }

    /// Device under the cursor, or the first of those that its cell stands for.
    pub(super) fn device(&self) -> Option<u32> {
        let (_, map) = self.map.as_ref()?;
        map.atlas.seats.get(self.cursor).map(|seat| seat.device)
    }

    /// Moves the cursor to the first device of a stage.
    pub(in crate::tui) fn select_stage(&mut self, stage: usize) {
        if let Some((_, map)) = &self.map {
            let found = map.atlas.seats.iter().position(|seat| seat.stage == Some(stage));
            self.walked = true;
            self.cursor = found.unwrap_or(self.cursor);
        }
    }
}

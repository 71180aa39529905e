//! Areas of the view, by arithmetic.

use ratatui::layout::Rect;

use super::arcs::Arcs;
use crate::tui::{
    paint::{atlas::Atlas, map_layout::MapLayout, strip::Rows},
    shown::ShownRun,
    simulated::Simulated,
};

/// Minimum width at which stage and suggestions stand beside the picture.
const WIDE: u16 = 104;
/// Width of that part, and of the gap before it, columns.
const SIDE: u16 = 28;
const GAP: u16 = 1;
/// Minimum height of the map, rows.
const LEAST_MAP: u16 = 6;
/// Maximum height of the map of a model, rows.
const TALLEST_MAP: u16 = 12;
/// Minimum height of the strip, rows.
const LEAST_STRIP: u16 = 3;
/// Minimum height at which figures have their names below them, and blank lines.
const TALL: u16 = 27;

/// Least and most rows of the memory below the strip, with its title.
const MEMORY: (u16, u16) = (4, 10);

/// Number of stages above which the strip takes the rows of the memory.
const MANY: usize = 20;

/// Parts of the view.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Areas {
    pub figures: Rect,
    pub map_title: Rect,
    pub map: Rect,
    pub batch_title: Rect,
    pub names: Rect,
    pub strip: Rect,
    pub phases: Rect,
    /// Memory of a stage below the strip, with its title; empty if there is no room.
    pub memory: Rect,
    /// Part beside the picture.
    pub side: Option<Rect>,
    /// Part below it.
    pub below: Rect,
}

/// Rows of map and strip from which a stage has more than one row.
const ROOMY: u16 = 20;

/// Rows that map and strip do not get: figures, blank line, and the part below.
fn shared(area: Rect) -> (u16, u16, u16) {
    let tall = area.height >= TALL;
    let figures = if tall { 2 } else { 1 };
    let air = u16::from(area.height >= 18);
    let below = match area.width {
        WIDE.. => 0,
        _ if tall => 2,
        _ => 1,
    };
    (figures, air, below)
}

/// Height of the map of a model, which depends on the area alone.
pub(super) fn steady_map(area: Rect) -> u16 {
    let (figures, air, below) = shared(area);
    let between = u16::from(area.height >= TALL);
    let room = area.height.saturating_sub(figures + air + 3 + between + below);
    let memory = if room > ROOMY + 2 * MEMORY.0 { 2 * MEMORY.0 } else { 0 };
    ((room - memory) * 2 / 5).min(TALLEST_MAP)
}

/// Width and maximum height of the map.
fn map_room(area: Rect, stages: usize) -> (u16, u16) {
    let (figures, air, below) = shared(area);
    let side = if area.width >= WIDE { SIDE + GAP } else { 0 };
    // Titles of map and strip, and the line of phases.
    let between = u16::from(area.height >= TALL);
    let room = area.height.saturating_sub(figures + air + 3 + between + below);
    // In a large area the strip grows rather than the cells of the map.
    let rows = 1 + u16::from(room >= ROOMY) + u16::from(room >= ROOMY + ROOMY / 2);
    let few = (stages as u16).clamp(LEAST_STRIP, (room / 2).max(LEAST_STRIP));
    let strip = (stages as u16).saturating_mul(rows).min(room * 2 / 5).max(few);
    let most = room.saturating_sub(strip).max(LEAST_MAP.min(room.saturating_sub(LEAST_STRIP)));
    (area.width.saturating_sub(side), most)
}

impl Areas {
    /// Parts of the view, given the height of the map.
    ///
    /// `memory` is true if the strip leaves room for the memory.
    pub(super) fn new(area: Rect, map_rows: u16, (stages, memory): (usize, bool), names: u16) -> Areas {
        let (figures, air, below) = shared(area);
        let side = if area.width >= WIDE { SIDE + GAP } else { 0 };
        let picture = Rect { width: area.width - side, ..area };
        let line = |y: u16, height: u16| {
            let y = (picture.y + y).min(picture.bottom());
            Rect { y, height: height.min(picture.bottom() - y), ..picture }
        };
        let map_title = figures + air;
        let map = map_title + 1;
        let tall = area.height >= TALL;
        let between = u16::from(tall);
        let batch_title = map + map_rows + between;
        let strip = batch_title + 1;
        let room = area.height.saturating_sub(strip + 1 + below);
        // Of many stages, the strip takes all.
        let own = if room > 2 * ROOMY { 8 } else { 5 };
        let kept = if memory && stages <= MANY && room > ROOMY / 2 + own { own + 1 } else { 0 };
        let strip_rows = Rows::new(stages, room - kept).height(stages).min(room - kept);
        // Use rows that the strip leaves free.
        let below = if below == 1 && strip_rows < room { 2 } else { below };
        let strip_line = line(strip, strip_rows);
        let names = names.min(picture.width / 3);
        Areas {
            figures: Rect { height: figures.min(area.height), ..area },
            map_title: line(map_title, 1),
            map: line(map, map_rows),
            batch_title: line(batch_title, 1),
            names: Rect { width: names, ..strip_line },
            strip: Rect { x: strip_line.x + names, width: strip_line.width - names, ..strip_line },
            phases: Rect { x: picture.x + names, width: picture.width - names, ..line(strip + strip_rows, 1) },
            memory: if memory {
                // It keeps its place at the end, whatever the strip.
                line(area.height.saturating_sub(below + kept.saturating_sub(1)), kept.saturating_sub(1))
            } else {
                let from = strip + strip_rows + 2;
                let free = (area.height - below.min(area.height)).saturating_sub(from + u16::from(below > 0));
                line(from, if free >= MEMORY.0 { free.min(MEMORY.1) } else { 0 })
            },
            side: (side > 0).then(|| {
                let top = (area.y + map_title).min(area.bottom());
                Rect { x: area.right() - SIDE, y: top, width: SIDE, height: area.bottom() - top }
            }),
            below: line(area.height.saturating_sub(below), below),
        }
    }
}

/// Minimum height of cells to which a map shrinks for arcs, rows.
const LEAST_CELL: u16 = 2;
/// Heights of arcs to try, rows.
const ARCS: [usize; 4] = [6, 4, 2, 1];

/// Map in its area, with the transfers below it if both fit.
pub(super) fn map(
    shown: &ShownRun,
    simulated: Option<&Simulated>,
    area: Rect,
    stages: usize,
) -> Option<(MapLayout, Option<Arcs>)> {
    let atlas = Atlas::of(shown, simulated);
    let (width, mut height) = map_room(area, stages);
    if shown.workload.training().is_some() {
        height = steady_map(area);
    }
    let whole = MapLayout::new(&atlas, width, height)?;
    // Stages of a model pass on to the next one only.
    if area.height < TALL || shown.workload.training().is_some() {
        return Some((whole, None));
    }
    for rows in ARCS {
        // Arcs that do not fit here would not fit fewer rows in a smaller map; try the next height.
        let Some(arcs) = Arcs::new(shown, &whole, width, rows) else { continue };
        let own = 1 + arcs.rows();
        if whole.rows + own <= height {
            return Some((whole, Some(arcs)));
        }
        let smaller = MapLayout::new(&atlas, width, height.saturating_sub(own));
        let Some(smaller) = smaller.filter(|map| map.size.height >= LEAST_CELL.min(whole.size.height)) else {
            continue;
        };
        let again = Arcs::new(shown, &smaller, width, rows);
        if let Some(arcs) = again.filter(|arcs| smaller.rows + 1 + arcs.rows() <= height) {
            return Some((smaller, Some(arcs)));
        }
    }
    Some((whole, None))
}

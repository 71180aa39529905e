//! Where everything lies, by arithmetic.

use ratatui::layout::Rect;

use super::arcs::Arcs;
use crate::tui::{
    paint::{atlas::Atlas, map_layout::MapLayout, strip::Rows},
    shown::ShownRun,
};

/// From this width on stage and help stand beside the picture.
const WIDE: u16 = 104;
/// Columns of what stands there, and before it.
const SIDE: u16 = 30;
const GAP: u16 = 3;
/// Rows that the map keeps.
const LEAST_MAP: u16 = 6;
/// Rows that the strip keeps.
const LEAST_STRIP: u16 = 3;
/// From this height on figures have their names below them, and air.
const TALL: u16 = 27;

/// The parts of the view.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Areas {
    pub figures: Rect,
    pub map_title: Rect,
    pub map: Rect,
    pub batch_title: Rect,
    pub names: Rect,
    pub strip: Rect,
    pub phases: Rect,
    /// Beside the picture.
    pub side: Option<Rect>,
    /// Below it.
    pub below: Rect,
}

/// From so many rows for map and strip on a stage has more than one.
const ROOMY: u16 = 28;

/// How much of a height map and strip may share.
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

/// Width and most height of the map.
pub(super) fn map_room(area: Rect, stages: usize) -> (u16, u16) {
    let (figures, air, below) = shared(area);
    let side = if area.width >= WIDE { SIDE + GAP } else { 0 };
    // Titles of both, the line of phases.
    let between = u16::from(area.height >= TALL);
    let room = area.height.saturating_sub(figures + air + 3 + between + below);
    // Where there is much room the strip has more of it, not the cells of the map.
    let rows = 1 + u16::from(room >= ROOMY) + u16::from(room >= ROOMY + ROOMY / 2);
    let few = (stages as u16).clamp(LEAST_STRIP, (room / 2).max(LEAST_STRIP));
    let strip = (stages as u16).saturating_mul(rows).min(room * 2 / 5).max(few);
    let most = room.saturating_sub(strip).max(LEAST_MAP.min(room.saturating_sub(LEAST_STRIP)));
    (area.width.saturating_sub(side), most)
}

impl Areas {
    /// The parts, once it is known how many rows the map takes.
    pub(super) fn new(area: Rect, map_rows: u16, stages: usize, names: u16) -> Areas {
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
        let strip_rows = Rows::new(stages, room).height(stages).min(room);
        // What the strip leaves free is not left blank.
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
            side: (side > 0).then(|| {
                let top = (area.y + map_title).min(area.bottom());
                Rect { x: area.right() - SIDE, y: top, width: SIDE, height: area.bottom() - top }
            }),
            below: line(area.height.saturating_sub(below), below),
        }
    }
}

/// Cells of a map give way to arcs down to so many rows.
const LEAST_CELL: u16 = 2;
/// Rows that arcs may take, from the most to the fewest.
const ARCS: [usize; 4] = [6, 4, 2, 1];

/// The map in the room it has, and who talks to whom below it, where there is room for both.
pub(super) fn map(shown: &ShownRun, area: Rect, stages: usize) -> Option<(MapLayout, Option<Arcs>)> {
    let atlas = Atlas::of(shown);
    let (width, height) = map_room(area, stages);
    let whole = MapLayout::new(&atlas, width, height)?;
    if area.height < TALL {
        return Some((whole, None));
    }
    for rows in ARCS {
        // None fit fewer rows in a smaller map that do not fit these: the next may.
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

//! Where everything lies, by arithmetic.

use ratatui::layout::Rect;

use crate::tui::paint::{atlas::Atlas, map_layout::MapLayout, strip::Rows};

/// From this width on stage and help stand beside the picture.
const WIDE: u16 = 104;
/// Columns of what stands there, and before it.
const SIDE: u16 = 30;
const GAP: u16 = 3;
/// Columns for numbers and hues of stages at the left of the strip.
const NAMES: u16 = 5;
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

/// Columns that the names of so many rows take, the longest name so long.
pub(super) fn names_width(longest: usize) -> u16 {
    (longest as u16 + 3).clamp(NAMES, 10)
}

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

/// The map in the room it has.
pub(super) fn map(atlas: &Atlas, area: Rect, stages: usize) -> Option<MapLayout> {
    let (width, height) = map_room(area, stages);
    MapLayout::new(atlas, width, height)
}

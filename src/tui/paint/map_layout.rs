//! Layout of the cells of a map: the largest cells that fit, in lines, with groups apart.
//!
//! Cell sizes are tried from large to small. The smallest are half a character high; if even those do not fit, a cell
//! stands for two devices, then four, and so on. `O(devices)` per size tried.

use super::{
    atlas::{Atlas, Group},
    map_grid,
};

/// Size of cells and of the gaps between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) struct CellSize {
    /// Width of a cell, columns.
    pub width: u16,
    /// Height of a cell, rows; 0: half a row, with two devices stacked.
    pub height: u16,
    /// Columns between devices, between replicas, and between groups.
    pub(super) gaps: [u16; 3],
    /// Rows between lines.
    pub(super) between: u16,
    /// True if groups have names over them.
    pub(super) named: bool,
}

pub(super) const fn size(width: u16, height: u16, gaps: [u16; 3], between: u16, named: bool) -> CellSize {
    CellSize { width, height, gaps, between, named }
}

/// Sizes from the largest to the smallest.
const SIZES: [CellSize; 18] = [
    size(14, 6, [2, 3, 5], 1, true),
    size(12, 5, [2, 3, 5], 1, true),
    size(10, 4, [2, 3, 4], 1, true),
    size(8, 4, [2, 3, 4], 1, true),
    size(8, 3, [2, 3, 4], 1, true),
    size(6, 3, [1, 2, 4], 1, true),
    size(5, 2, [1, 2, 3], 1, true),
    size(4, 2, [1, 2, 3], 1, true),
    size(3, 2, [1, 2, 3], 1, true),
    size(2, 2, [1, 2, 2], 1, true),
    size(2, 2, [1, 1, 2], 1, false),
    size(2, 1, [1, 1, 2], 1, true),
    size(2, 1, [1, 1, 2], 1, false),
    size(2, 1, [1, 1, 2], 0, false),
    size(1, 0, [1, 1, 2], 1, false),
    size(1, 1, [1, 1, 2], 0, false),
    size(1, 0, [1, 1, 2], 0, false),
    size(1, 0, [0, 0, 1], 0, false),
];

/// Minimum width of a large cell, columns.
const LARGE: u16 = 4;
/// Maximum size of a group that is kept on one line, devices.
const A_LINE: usize = 16;

/// Columns for the number of a line's first machine, if names have no line of their own.
const NUMBERS: u16 = 4;

/// Map that fits.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tui) struct MapLayout {
    /// Size of the cells.
    pub size: CellSize,
    /// Devices; thinned if a cell stands for several.
    pub atlas: Atlas,
    /// By seat: column, row, and true for the lower half of that row.
    pub places: Vec<(u16, u16, bool)>,
    /// Names of groups with column and row.
    pub names: Vec<(u16, u16, String)>,
    /// Height of the map, rows.
    pub rows: u16,
    /// Devices per cell.
    pub stands_for: usize,
}

impl MapLayout {
    /// Map of all devices for a width and height; `None` if it cannot fit.
    pub(in crate::tui) fn new(atlas: &Atlas, width: u16, height: u16) -> Option<MapLayout> {
        if atlas.seats.is_empty() || width == 0 || height == 0 {
            return None;
        }
        if let Some(layout) = atlas.grid.and_then(|grid| map_grid::lay(atlas, grid, (width, height))) {
            return Some(layout);
        }
        let named = atlas.groups.iter().any(|group| !group.name.is_empty());
        let mut tried = SIZES.iter().filter(|size| named || !size.named || size.height > 1);
        // Prefer one line per group over larger cells.
        let mut large = tried.clone().filter(|size| size.width >= LARGE);
        if let Some(layout) = large.find_map(|&size| lay(atlas, size, (width, height), 1, true)) {
            return Some(layout);
        }
        if let Some(layout) = tried.find_map(|&size| lay(atlas, size, (width, height), 1, false)) {
            return Some(layout);
        }
        let mut count = 2;
        while count <= atlas.seats.len() * 2 {
            let thin = atlas.thinned(count);
            let last = SIZES[SIZES.len() - 2..].iter();
            if let Some(layout) = last.clone().find_map(|&size| lay(&thin, size, (width, height), count, false)) {
                return Some(layout);
            }
            count *= 2;
        }
        None
    }

    /// Seat at a place of the map, if any.
    pub(in crate::tui) fn seat_at(&self, column: u16, row: u16) -> Option<usize> {
        let rows = self.size.height.max(1);
        self.places
            .iter()
            .position(|&(x, y, _)| (x..x + self.size.width).contains(&column) && (y..y + rows).contains(&row))
    }

    /// Next or previous seat of the same line; at its end, of the next or previous line.
    pub(in crate::tui) fn along(&self, seat: usize, right: bool) -> usize {
        let order = |&(x, y, low): &(u16, u16, bool)| (y, low, x);
        let Some(here) = self.places.get(seat).map(order) else { return 0 };
        let others = self.places.iter().map(order).enumerate();
        let next = match right {
            true => others.filter(|(_, place)| *place > here).min_by_key(|(_, place)| *place),
            false => others.filter(|(_, place)| *place < here).max_by_key(|(_, place)| *place),
        };
        next.map_or(seat, |(i, _)| i)
    }

    /// Nearest seat in the next or the previous line.
    pub(in crate::tui) fn beside(&self, seat: usize, down: bool) -> usize {
        let Some(&(x, y, low)) = self.places.get(seat) else { return 0 };
        let here = (y, low);
        let lines = self.places.iter().map(|&(_, y, low)| (y, low));
        let line = if down { lines.filter(|l| *l > here).min() } else { lines.filter(|l| *l < here).max() };
        let Some(line) = line else { return seat };
        let on_line = self.places.iter().enumerate().filter(|(_, (_, y, low))| (*y, *low) == line);
        on_line.min_by_key(|(_, (other, _, _))| other.abs_diff(x)).map_or(seat, |(i, _)| i)
    }
}

/// Width of a group on one line, columns.
pub(super) fn line_of(atlas: &Atlas, group: &Group, size: CellSize) -> u16 {
    let begins = |i: usize| atlas.seats[i].begins && !group.whole;
    let alone = |i: usize| begins(i) && (i + 1 >= group.seats.end || begins(i + 1));
    let gap = |i: usize| if begins(i) && !alone(i) { size.gaps[1] } else { size.gaps[0] };
    let gaps: u16 = group.seats.clone().skip(1).map(gap).sum();
    group.seats.len() as u16 * size.width + gaps
}

/// Places cells of a size, if they fit; `together` keeps each small group on one line.
fn lay(
    atlas: &Atlas,
    size: CellSize,
    (width, height): (u16, u16),
    stands_for: usize,
    together: bool,
) -> Option<MapLayout> {
    let any_name = atlas.groups.iter().any(|group| !group.name.is_empty());
    let over = size.named && any_name;
    let left = if any_name && !over && atlas.groups.len() > 1 && atlas.groups[0].whole { NUMBERS } else { 0 };
    let pile: usize = if size.height == 0 { 2 } else { 1 };
    let rows = size.height.max(1) + u16::from(over);
    let (mut x, mut y) = (left, 0u16);
    let mut places = vec![(0, 0, false); atlas.seats.len()];
    let mut names = vec![];
    for group in &atlas.groups {
        let mut begin = group.seats.start;
        let together = together && group.seats.len() <= A_LINE;
        let line = if together { line_of(atlas, group, size) } else { 0 };
        if together && line > width.saturating_sub(left) {
            return None;
        }
        while begin < group.seats.end {
            // Unit that stays together: the group, else a replica; stacked cells need the whole run of a stage.
            let end = if group.whole || pile > 1 {
                group.seats.end
            } else {
                (begin + 1..group.seats.end).find(|&i| atlas.seats[i].begins).unwrap_or(group.seats.end)
            };
            let columns = (end - begin).div_ceil(pile);
            let piece = columns as u16 * (size.width + size.gaps[0]) - size.gaps[0].min(columns as u16);
            let first = begin == group.seats.start;
            let gap = match (x > left, first) {
                (false, _) => 0,
                (true, true) => size.gaps[2],
                (true, false) if end - begin > 1 => size.gaps[1],
                (true, false) => size.gaps[0],
            };
            let fits = x + gap + piece <= width;
            // A group with a name over it also needs the width of the name.
            let named = !over || !first || x + gap + group.name.len() as u16 <= width;
            let apart = together && first && x > left && x + gap + line > width;
            if apart || x > left && (!fits || !named) && (piece <= width - left || !fits && x > width * 3 / 4) {
                y += rows + size.between;
                x = left;
            } else {
                x += gap;
            }
            if first && !group.name.is_empty() && (over || (left > 0 && x == left)) {
                let name = if over { group.name.clone() } else { group.name.replace("machine ", "") };
                names.push((if over { x } else { 0 }, y, name));
            }
            for column in 0..columns {
                if x + size.width > width {
                    y += rows + size.between;
                    x = left;
                }
                if y + rows > height {
                    return None;
                }
                for (level, seat) in (begin + column * pile..end.min(begin + (column + 1) * pile)).enumerate() {
                    places[seat] = (x, y + u16::from(over), level == 1);
                }
                x += size.width + size.gaps[0];
            }
            x -= size.gaps[0];
            begin = end;
        }
    }
    let rows = y + rows;
    (rows <= height).then(|| MapLayout { size, atlas: atlas.clone(), places, names, rows, stands_for })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::paint::atlas::{Group, Seat};

    /// Groups of so many devices, replicas of so many.
    fn atlas(groups: &[usize], replica: usize, whole: bool) -> Atlas {
        let mut atlas = Atlas::default();
        for (i, &count) in groups.iter().enumerate() {
            let first = atlas.seats.len();
            atlas.seats.extend((0..count).map(|at| Seat {
                device: (first + at) as u32,
                number: 1,
                stage: Some(i),
                replica: (at / replica) as u32,
                memory: Some(0.5),
                load: 1.0,
                begins: at % replica == 0,
                stands_for: 1,
            }));
            let name = if whole { format!("machine {}", i + 1) } else { String::new() };
            atlas.groups.push(Group { name, seats: first..first + count, whole });
        }
        atlas
    }

    #[test]
    fn cells_lie_inside_and_never_on_one_another() {
        for atlas in [
            atlas(&[1], 1, false),
            atlas(&[8; 16], 8, true),
            atlas(&[2, 16, 4, 8, 90], 2, false),
            atlas(&[512], 8, false),
            atlas(&[100; 60], 4, false),
        ] {
            for (width, height) in [(1, 1), (7, 3), (58, 6), (76, 6), (98, 15), (160, 40), (220, 60)] {
                let Some(layout) = MapLayout::new(&atlas, width, height) else {
                    assert!(width < 10, "{width} x {height}");
                    continue;
                };
                let rows = layout.size.height.max(1);
                let mut taken = std::collections::BTreeSet::new();
                for &(x, y, low) in &layout.places {
                    assert!(x + layout.size.width <= width && y + rows <= height, "{width} x {height}: {x} {y}");
                    for column in x..x + layout.size.width {
                        for row in y..y + rows {
                            assert!(taken.insert((column, row, low)), "{width} x {height}: {column} {row} twice");
                        }
                    }
                }
                let devices: u32 = layout.atlas.seats.iter().map(|seat| seat.stands_for).sum();
                assert_eq!(devices as usize, atlas.seats.len());
                assert!(layout.rows <= height);
            }
        }
    }

    #[test]
    fn more_room_makes_larger_cells() {
        let atlas = atlas(&[8; 16], 8, true);
        let area = |width, height| {
            let layout = MapLayout::new(&atlas, width, height).unwrap();
            (layout.size.width * layout.size.height.max(1), layout.names.len())
        };
        assert_eq!(area(98, 15), (4, 16));
        assert!(area(98, 6).0 < 4 && area(160, 40).0 > 4);
        assert_eq!(MapLayout::new(&atlas, 98, 2).unwrap().stands_for, 1);
        assert!(MapLayout::new(&atlas, 24, 3).unwrap().stands_for > 1);
    }

    #[test]
    fn a_stage_has_a_line_of_its_own_where_there_is_room() {
        let layout = MapLayout::new(&atlas(&[16; 4], 8, false), 135, 37).unwrap();
        for group in &layout.atlas.groups {
            let lines: Vec<u16> = group.seats.clone().map(|seat| layout.places[seat].1).collect();
            assert!(lines.iter().all(|line| *line == lines[0]), "{lines:?}");
        }
        // A machine is never half on the line of another.
        let layout = MapLayout::new(&atlas(&[8, 8], 1, true), 86, 16).unwrap();
        assert_ne!(layout.places[7].1, layout.places[8].1);
        assert_eq!(layout.places[0].1, layout.places[7].1);
    }

    #[test]
    fn the_cursor_walks_to_the_nearest_cell_of_the_next_line() {
        let atlas = atlas(&[8; 16], 8, true);
        let layout = MapLayout::new(&atlas, 98, 15).unwrap();
        assert_eq!(layout.beside(0, true), 32);
        assert_eq!(layout.beside(33, false), 1);
        assert_eq!((layout.beside(3, false), layout.beside(127, true)), (3, 127));
        let (x, y, _) = layout.places[40];
        assert_eq!(layout.seat_at(x + 1, y), Some(40));
        assert_eq!(layout.seat_at(x + 2, y), None);
    }
}

//! Wires as lines of a character grid below a row of columns. A wire between two columns is an arc, a hub is a line
//! that joins its wires, and farther hubs are lower.
//!
//! Arcs take the first free row, short ones first. Wires leave a column in such an order that its arcs do not cross. At
//! other crossings the fuller wire is on top. `O(wires · rows)`.

use crate::tui::paint::topology::wiring::{Wire, Wiring};

/// Directions of a cell's lines.
const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;

/// Cells between a column's wires and the next column.
const MARGIN: usize = 1;
/// Maximum width of a column, cells.
const WIDEST: usize = 14;
/// Minimum width of a column, cells: a number must fit.
const NARROWEST: usize = 4;

/// Cell: directions and load of its horizontal and its vertical line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Cell {
    across: u8,
    across_share: f64,
    down: u8,
    down_share: f64,
    /// True if both lines belong together.
    joint: bool,
}

/// Sign of the picture.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tui) enum Sign {
    Blank,
    /// Line with its load relative to the fullest; 0 carries nothing.
    Line(char, f64),
    /// Letter of a hub's name.
    Letter(char),
}

/// Lines below the columns.
#[derive(Debug, Clone, Default)]
pub(in crate::tui) struct Grid {
    /// Width of a column, cells.
    pub pitch: usize,
    width: usize,
    cells: Vec<Vec<Cell>>,
    names: Vec<(usize, usize, String)>,
}

impl Grid {
    /// Grid of the wires in a width; `None` if the columns do not fit side by side.
    pub(in crate::tui) fn new(wiring: &Wiring, width: usize) -> Option<Grid> {
        let count = wiring.columns.len();
        let most = (0..count).map(|column| wiring.degree(column)).max().unwrap_or(0);
        let longest = wiring.columns.iter().map(|name| name.chars().count() + 3).max().unwrap_or(0);
        let least = (most + MARGIN).max(longest).max(NARROWEST);
        let pitch = (width / count.max(1)).min(WIDEST.max(least));
        if pitch < least || count < 2 {
            return None;
        }
        let mut grid = Grid { pitch, width, ..Grid::default() };
        let places: Vec<(usize, usize)> = (0..count).map(|column| (column * pitch, pitch)).collect();
        grid.lay(wiring, &places);
        Some(grid)
    }

    /// Grid of the wires below columns with these starts and widths; `None` if they do not fit.
    pub(in crate::tui) fn below(wiring: &Wiring, width: usize, places: &[(usize, usize)]) -> Option<Grid> {
        let fits = |(column, &(first, cells)): (usize, &(usize, usize))| {
            wiring.degree(column) <= cells && first + cells <= width
        };
        if places.len() != wiring.columns.len() || places.len() < 2 || !places.iter().enumerate().all(fits) {
            return None;
        }
        let mut grid = Grid { width, ..Grid::default() };
        // The right end of a column is already free.
        let places: Vec<(usize, usize)> = places.iter().map(|&(first, cells)| (first, cells + MARGIN)).collect();
        grid.lay(wiring, &places);
        Some(grid)
    }

    /// Height of the grid, rows.
    pub(in crate::tui) fn rows(&self) -> usize {
        self.cells.len()
    }

    fn lay(&mut self, wiring: &Wiring, places: &[(usize, usize)]) {
        let count = wiring.columns.len();
        let levels = levels(wiring);
        let slots = slots(wiring, places);
        // Start of a wire: the column's slot above all rows, or the middle and row of a hub.
        let mut hubs: Vec<Option<(usize, usize)>> = vec![None; wiring.hubs.len()];
        let leaves = |wire: usize, end: usize, hubs: &[Option<(usize, usize)>]| match end.checked_sub(count) {
            None => Some((slots[wire][usize::from(wiring.wires[wire].ends[1] == end)], None)),
            Some(hub) => hubs[hub].map(|(x, row)| (x, Some(row))),
        };
        let deepest = levels.iter().flatten().copied().max().unwrap_or(0);
        for level in 0..=deepest {
            let first = self.cells.len();
            if level > 0 {
                let here = (count..levels.len()).filter(|&hub| levels[hub] == Some(level));
                for hub in here {
                    let hangs = wiring.wires.iter().enumerate().filter_map(|(i, wire)| {
                        let other = other_end(wire, hub)?;
                        let nearer = levels[other].is_some_and(|other| other < level);
                        let (x, row) = leaves(i, other, &hubs).filter(|_| nearer)?;
                        Some((x, row.map_or(0, |row| row + 1), wire.share))
                    });
                    let hangs: Vec<(usize, usize, f64)> = hangs.collect();
                    hubs[hub - count] = self.hub(&hangs, first, &wiring.hubs[hub - count]);
                }
            }
            // Arcs between two vertices of one level.
            let first = self.cells.len();
            let mut arcs: Vec<[(usize, usize, f64); 2]> = vec![];
            for (i, wire) in wiring.wires.iter().enumerate() {
                if wire.ends.iter().all(|&end| levels[end] == Some(level)) {
                    let ends = wire.ends.map(|end| leaves(i, end, &hubs));
                    if let [Some(a), Some(b)] = ends {
                        arcs.push([a, b].map(|(x, row)| (x, row.map_or(0, |row| row + 1), wire.share)));
                    }
                }
            }
            arcs.sort_by_key(|[a, b]| (a.0.abs_diff(b.0), a.0.min(b.0)));
            for arc in arcs {
                self.net(&arc, first, 0);
            }
        }
    }

    /// Adds a hub in the first free row from `first` on. Returns the column and row for wires to lower vertices.
    fn hub(&mut self, hangs: &[(usize, usize, f64)], first: usize, name: &str) -> Option<(usize, usize)> {
        if hangs.is_empty() {
            return None;
        }
        let (row, right) = self.net(hangs, first, name.chars().count() + 2);
        let mut xs: Vec<usize> = hangs.iter().map(|hang| hang.0).collect();
        xs.sort_unstable();
        if hangs.len() > 1 {
            self.cells[row][right].across |= RIGHT;
            self.names.push((right + 1, row, format!(" {name}")));
        } else {
            self.cells[row][right] = Cell::default();
            self.names.push((right, row, name.to_string()));
        }
        Some((xs[xs.len() / 2], row))
    }

    /// Joins ends by a line in the first free row from `first` on, with `more` free cells behind it. An end is a
    /// column, the first row of its vertical line, and a load. Returns the row and the line's right end.
    fn net(&mut self, ends: &[(usize, usize, f64)], first: usize, more: usize) -> (usize, usize) {
        let left = ends.iter().map(|end| end.0).min().unwrap_or(0);
        let right = ends.iter().map(|end| end.0).max().unwrap_or(0);
        let share = ends.iter().map(|end| end.2).fold(0.0, f64::max);
        let until = (right + more).min(self.width.saturating_sub(1));
        let free = |grid: &Grid, row: usize| {
            let taken = |x: usize| {
                let cell = grid.cells[row][x];
                cell.across != 0 || cell.joint
            };
            let named = |x: usize| {
                grid.names.iter().any(|(from, on, name)| *on == row && (*from..*from + name.len() + 1).contains(&x))
            };
            !(left.saturating_sub(1)..=until).any(|x| taken(x) || named(x))
        };
        let row = (first..self.cells.len()).find(|&row| free(self, row)).unwrap_or(self.cells.len());
        while self.cells.len() <= row {
            self.cells.push(vec![Cell::default(); self.width]);
        }
        for x in left..=right {
            let cell = &mut self.cells[row][x];
            cell.across = if x > left { LEFT } else { 0 } | if x < right { RIGHT } else { 0 };
            cell.across_share = share;
        }
        for &(x, from, share) in ends {
            for above in from..row {
                let cell = &mut self.cells[above][x];
                cell.down |= UP | DOWN;
                cell.down_share = cell.down_share.max(share);
            }
            let cell = &mut self.cells[row][x];
            cell.down |= UP;
            cell.down_share = cell.down_share.max(share);
            cell.joint = true;
        }
        (row, right)
    }

    /// Signs of a row.
    pub(in crate::tui) fn signs(&self, row: usize) -> Vec<Sign> {
        let mut signs: Vec<Sign> = self.cells[row].iter().map(Cell::sign).collect();
        for (from, _, name) in self.names.iter().filter(|(_, on, _)| *on == row) {
            for (at, letter) in name.chars().enumerate() {
                if let Some(sign) = signs.get_mut(from + at) {
                    *sign = Sign::Letter(letter);
                }
            }
        }
        signs
    }
}

impl Cell {
    fn sign(&self) -> Sign {
        let (lines, share) = match (self.across, self.down) {
            (0, 0) => return Sign::Blank,
            (across, down) if self.joint => (across | down, self.across_share.max(self.down_share)),
            (across, 0) => (across, self.across_share),
            (0, down) => (down, self.down_share),
            // At a crossing, the fuller line is on top.
            (across, _) if self.across_share > self.down_share => (across, self.across_share),
            (_, down) => (down, self.down_share),
        };
        let sign = match lines {
            l if l & !(UP | DOWN) == 0 => straight(share, ['┆', '│', '┃']),
            l if l & !(LEFT | RIGHT) == 0 => straight(share, ['┄', '─', '━']),
            l if l == UP | RIGHT => '╰',
            l if l == UP | LEFT => '╯',
            l if l == DOWN | RIGHT => '╭',
            l if l == DOWN | LEFT => '╮',
            l if l == UP | LEFT | RIGHT => '┴',
            l if l == DOWN | LEFT | RIGHT => '┬',
            l if l == UP | DOWN | RIGHT => '├',
            l if l == UP | DOWN | LEFT => '┤',
            _ => '┼',
        };
        Sign::Line(sign, share)
    }
}

/// Load from which a link counts as one of the fullest.
pub(in crate::tui) const FULLEST: f64 = 0.999;

fn straight(share: f64, [idle, some, most]: [char; 3]) -> char {
    match share {
        share if share >= FULLEST => most,
        share if share > 0.0 => some,
        _ => idle,
    }
}

fn other_end(wire: &Wire, end: usize) -> Option<usize> {
    match wire.ends {
        [a, b] if a == end => Some(b),
        [a, b] if b == end => Some(a),
        _ => None,
    }
}

/// Number of hubs between each vertex and the nearest column; columns are 0.
fn levels(wiring: &Wiring) -> Vec<Option<usize>> {
    let count = wiring.columns.len();
    let mut levels: Vec<Option<usize>> = (0..count + wiring.hubs.len()).map(|v| (v < count).then_some(0)).collect();
    for level in 0..wiring.hubs.len() {
        for wire in &wiring.wires {
            for [near, far] in [wire.ends, [wire.ends[1], wire.ends[0]]] {
                if levels[near] == Some(level) && levels[far].is_none() {
                    levels[far] = Some(level + 1);
                }
            }
        }
    }
    levels
}

/// Columns at which each wire leaves its ends: to the left short ones first, then down, then to the right long ones
/// first.
fn slots(wiring: &Wiring, places: &[(usize, usize)]) -> Vec<[usize; 2]> {
    let count = wiring.columns.len();
    let mut slots = vec![[0; 2]; wiring.wires.len()];
    for column in 0..count {
        let own = wiring.wires.iter().enumerate().filter_map(|(i, wire)| Some((i, other_end(wire, column)?)));
        let mut own: Vec<(usize, usize)> = own.collect();
        own.sort_by_key(|&(_, other)| match other {
            other if other >= count => (1, other),
            other if other < column => (0, column - other),
            other => (2, count - (other - column)),
        });
        let (first, cells) = places[column];
        let step = ((cells - MARGIN) / own.len().max(1)).max(1);
        for (at, (wire, _)) in own.into_iter().enumerate() {
            slots[wire][usize::from(wiring.wires[wire].ends[1] == column)] = first + at * step;
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(grid: &Grid) -> Vec<String> {
        let sign = |sign: Sign| match sign {
            Sign::Blank => ' ',
            Sign::Line(c, _) | Sign::Letter(c) => c,
        };
        let row = |row| grid.signs(row).into_iter().map(sign).collect::<String>().trim_end().to_string();
        (0..grid.rows()).map(row).collect()
    }

    fn wiring(columns: usize, hubs: &[&str], wires: &[(usize, usize, f64)]) -> Wiring {
        Wiring {
            columns: (0..columns).map(|i| format!("gpu{i}")).collect(),
            devices: (0..columns).map(|i| vec![i as u32]).collect(),
            hubs: hubs.iter().map(ToString::to_string).collect(),
            wires: wires.iter().map(|&(a, b, share)| Wire { ends: [a, b], share }).collect(),
        }
    }

    #[test]
    fn arcs_do_not_share_a_row_where_they_overlap() {
        let grid = Grid::new(&wiring(3, &[], &[(0, 1, 0.5), (1, 2, 0.5), (0, 2, 1.0)]), 24).unwrap();
        assert_eq!(grid.pitch, 8);
        assert_eq!(text(&grid), ["┃  ╰────╯  ╰────╯  ┃", "╰━━━━━━━━━━━━━━━━━━╯"]);
    }

    #[test]
    fn a_hub_is_a_line_that_all_hang_on() {
        let wires = [(0, 3, 1.0), (1, 3, 0.5), (2, 3, 0.0), (0, 4, 0.0)];
        let grid = Grid::new(&wiring(3, &["switch", "nic"], &wires), 36).unwrap();
        let text = text(&grid);
        assert!(text[0].ends_with("switch") && text[0].contains('┴'), "{text:?}");
        assert!(text.iter().any(|row| row.contains("nic")), "{text:?}");
    }

    #[test]
    fn what_is_further_away_lies_further_down() {
        let wires = [(0, 2, 1.0), (1, 3, 1.0), (2, 4, 1.0), (3, 4, 1.0)];
        let grid = Grid::new(&wiring(2, &["nic0", "nic1", "leaf"], &wires), 30).unwrap();
        let text = text(&grid);
        let row = |name: &str| text.iter().position(|row| row.contains(name)).unwrap_or_else(|| panic!("{text:?}"));
        assert!(row("nic0") == row("nic1") && row("leaf") > row("nic0"), "{text:?}");
    }

    #[test]
    fn what_is_too_narrow_is_not_drawn() {
        assert!(Grid::new(&wiring(8, &[], &[(0, 1, 1.0)]), 40).is_none());
        assert!(Grid::new(&wiring(1, &[], &[]), 40).is_none());
    }
}

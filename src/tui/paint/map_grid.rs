//! Layout of a map as a grid: a column for each stage, in it a box for each machine.
//!
//! Sizes of cells are tried from large to small: large ones also in several bands of columns, then smaller ones, then
//! halves of a row. If single devices do not fit, a cell is a machine, then two, and the cells of a stage are a block.
//! `O(devices)` per size tried.

use super::{
    atlas::{Atlas, Group, Seat},
    map_layout::{CellSize, MapLayout, line_of, size},
};

/// Sizes from the largest to the smallest.
const SIZES: [CellSize; 19] = [
    size(4, 3, [1, 2, 4], 1, true),
    size(4, 2, [1, 2, 4], 1, true),
    size(3, 3, [1, 2, 3], 1, true),
    size(3, 2, [1, 2, 3], 1, true),
    size(2, 3, [1, 2, 3], 1, true),
    size(2, 2, [1, 2, 2], 1, true),
    size(2, 2, [1, 1, 2], 1, true),
    size(2, 2, [1, 1, 1], 1, true),
    size(2, 2, [1, 1, 2], 1, false),
    size(1, 2, [1, 2, 3], 1, true),
    size(1, 2, [1, 1, 2], 1, true),
    size(1, 2, [1, 2, 3], 1, false),
    size(1, 2, [1, 1, 2], 1, false),
    size(1, 2, [1, 1, 2], 0, false),
    size(2, 1, [1, 1, 2], 0, false),
    size(1, 1, [1, 2, 2], 0, false),
    size(1, 1, [1, 1, 2], 0, false),
    size(1, 0, [0, 1, 2], 0, false),
    size(1, 0, [0, 0, 1], 0, false),
];
/// Sizes of cells that are machines.
const BLOCKS: [CellSize; 4] = [
    size(2, 2, [1, 1, 2], 0, true),
    size(2, 1, [1, 1, 2], 0, true),
    size(1, 0, [0, 0, 2], 0, true),
    size(1, 0, [0, 0, 1], 0, false),
];
/// Most columns by which two boxes are apart.
const APART: u16 = 9;
/// Most bands of large cells.
const FEW_BANDS: usize = 3;
/// Devices above which cells are machines rather than halves of a row.
const MANY: usize = 512;
/// Most bands.
const BANDS: usize = 8;

/// Layout of a grid with so many groups in a column, each of so many devices, in a width and height.
pub(super) fn lay(atlas: &Atlas, (rows, machine): (usize, usize), room: (u16, u16)) -> Option<MapLayout> {
    // Halves of a row are slabs if there are too many.
    let halves = if atlas.seats.len() > MANY { 0 } else { BANDS };
    let large = |size: &CellSize| size.width > 1 && size.height > 1;
    let whole = |size: &CellSize| size.height > 0;
    let sizes = |fits: &dyn Fn(&CellSize) -> bool| SIZES.into_iter().filter(fits).collect::<Vec<_>>();
    let kinds = [(sizes(&large), FEW_BANDS), (sizes(&whole), BANDS), (sizes(&|size| !whole(size)), halves)];
    for (sizes, most) in kinds {
        for bands in 1..=most {
            if let Some(layout) = sizes.iter().find_map(|&size| boxes(atlas, size, rows, bands, room)) {
                return Some(layout);
            }
        }
    }
    let mut count = machine;
    while count <= 2 * atlas.seats.len() {
        if let Some(layout) = BLOCKS.iter().find_map(|&size| blocks(atlas, size, rows * machine, count, room)) {
            return Some(layout);
        }
        count *= 2;
    }
    None
}

/// Layout with a cell for each device.
fn boxes(atlas: &Atlas, size: CellSize, rows: usize, bands: usize, (width, height): (u16, u16)) -> Option<MapLayout> {
    let columns = atlas.groups.len().div_ceil(rows);
    let own = atlas.groups.iter().map(|group| line_of(atlas, group, size)).max()?;
    let across = columns.div_ceil(bands);
    let least = across as u16 * (own + size.gaps[2]) - size.gaps[2];
    if least > width || bands > columns {
        return None;
    }
    let spread = if across > 1 { (width - own) / (across as u16 - 1) } else { 0 };
    let pitch = spread.min(own + APART);
    let step = size.height.max(1) + u16::from(size.named) + size.between;
    let pile = if size.height == 0 { 2 } else { 1 };
    // The last line is for the mark below the cells.
    let band = rows.min(atlas.groups.len()).div_ceil(pile) as u16 * step + u16::from(bands > 1 && size.between == 0);
    let all = band * bands as u16;
    if all > height {
        return None;
    }
    let mut places = vec![(0, 0, false); atlas.seats.len()];
    let mut names = vec![];
    for (i, group) in atlas.groups.iter().enumerate() {
        let (column, row) = (i / rows, i % rows);
        let mut x = (column % across) as u16 * pitch;
        let y = (column / across) as u16 * band + (row / pile) as u16 * step;
        if size.named {
            names.extend(names_of(atlas, group, row == 0, own).into_iter().map(|(at, name)| (x + at, y, name)));
        }
        for (seat, place) in places.iter_mut().enumerate().take(group.seats.end).skip(group.seats.start) {
            let gap = if atlas.seats[seat].begins { size.gaps[1] } else { size.gaps[0] };
            x += if seat == group.seats.start { 0 } else { gap };
            *place = (x, y + u16::from(size.named), row % pile == 1);
            x += size.width;
        }
    }
    Some(MapLayout { size, atlas: atlas.clone(), places, names, rows: all, stands_for: 1 })
}

/// Names over a box with their columns: its machine, and over the first of a wide one at the right its stage.
fn names_of(atlas: &Atlas, group: &Group, first: bool, width: u16) -> Vec<(u16, String)> {
    let seat = &atlas.seats[group.seats.start];
    let stage = if seat.stage.is_some() { format!("stage {}", seat.number) } else { "idle".into() };
    let right = usize::from(width).checked_sub(group.name.len() + 1 + stage.len());
    match (right, first) {
        (Some(_), true) => vec![(0, group.name.clone()), (width - stage.len() as u16, stage)],
        _ => vec![(0, group.name.clone())],
    }
}

/// Layout with a cell for every `count` devices of a column of `column` devices.
fn blocks(
    atlas: &Atlas,
    size: CellSize,
    column: usize,
    count: usize,
    (width, height): (u16, u16),
) -> Option<MapLayout> {
    let mut thin = Atlas { told: atlas.told.clone(), full: atlas.full, grid: atlas.grid, ..Atlas::default() };
    for seats in atlas.seats.chunks(column) {
        let first = thin.seats.len();
        thin.seats.extend(seats.chunks(count).enumerate().map(|(i, seats)| Seat::merged(seats, i == 0)));
        let name = if seats[0].stage.is_some() { format!("stage {}", seats[0].number) } else { "idle".into() };
        thin.groups.push(Group { name, seats: first..thin.seats.len(), whole: false });
    }
    let columns = thin.groups.len();
    let cells = column.div_ceil(count);
    let pile = if size.height == 0 { 2 } else { 1 };
    let cell = size.width + size.gaps[0];
    for bands in 1..=columns.min(BANDS) {
        let across = columns.div_ceil(bands) as u16;
        let own = ((width + size.gaps[2]) / across).saturating_sub(size.gaps[2]);
        let wide = usize::from((own + size.gaps[0]) / cell).min(cells);
        let named = size.named && own >= 8;
        let lines = cells.div_ceil(wide.max(1) * pile) as u16 * size.height.max(1);
        let band = lines + u16::from(named) + u16::from(bands > 1);
        if wide == 0 || band * bands as u16 > height {
            continue;
        }
        let pitch = if across > 1 { own + size.gaps[2] } else { own };
        let corner = |i: usize| ((i as u16 % across) * pitch, (i as u16 / across) * band);
        let mut places = vec![(0, 0, false); thin.seats.len()];
        let mut names = vec![];
        for (i, group) in thin.groups.iter().enumerate() {
            let (x, y) = corner(i);
            names.extend(named.then(|| (x, y, group.name.clone())));
            for (at, place) in places[group.seats.clone()].iter_mut().enumerate() {
                let line = at / wide;
                let down = (line / pile) as u16 * size.height.max(1);
                *place = (x + (at % wide) as u16 * cell, y + u16::from(named) + down, line % pile == 1);
            }
        }
        return Some(MapLayout { size, atlas: thin, places, names, rows: band * bands as u16, stands_for: count });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stages of so many machines of eight.
    fn atlas(stages: usize, machines: usize) -> Atlas {
        let mut atlas = Atlas { grid: Some((machines, 8)), ..Atlas::default() };
        for device in 0..stages * machines * 8 {
            let stage = device / (machines * 8);
            atlas.seats.push(Seat {
                device: device as u32,
                number: stage + 1,
                stage: Some(stage),
                replica: 0,
                memory: Some(0.5),
                load: 1.0,
                begins: device % 4 == 0,
                stands_for: 1,
            });
        }
        let groups = (0..stages * machines).map(|i| Group {
            name: format!("machine {i}"),
            seats: 8 * i..8 * (i + 1),
            whole: false,
        });
        atlas.groups = groups.collect();
        atlas
    }

    #[test]
    fn cells_lie_inside_and_never_on_one_another() {
        for (stages, machines) in [(1, 1), (4, 2), (16, 4), (3, 7), (32, 16), (16, 128), (16, 1024)] {
            let atlas = atlas(stages, machines);
            for room in [(58, 6), (87, 9), (98, 14), (127, 30), (237, 50)] {
                let layout = lay(&atlas, (machines, 8), room).unwrap();
                let mut taken = std::collections::HashSet::new();
                for &(x, y, low) in &layout.places {
                    assert!(x + layout.size.width <= room.0 && y + layout.size.height.max(1) <= room.1);
                    for column in x..x + layout.size.width {
                        for row in y..y + layout.size.height.max(1) {
                            assert!(taken.insert((column, row, low)), "{stages} x {machines} in {room:?}");
                        }
                    }
                }
                let devices: u32 = layout.atlas.seats.iter().map(|seat| seat.stands_for).sum();
                assert_eq!(devices as usize, stages * machines * 8);
                assert!(layout.rows <= room.1);
            }
        }
    }

    #[test]
    fn a_column_is_a_stage_and_a_row_a_machine() {
        let layout = lay(&atlas(4, 2), (2, 8), (98, 12)).unwrap();
        let [first, below, beside] = [0, 8, 16].map(|seat| layout.places[seat]);
        assert_eq!((first.0, first.1), (below.0, below.1 - 4));
        assert!(beside.0 > first.0 && beside.1 == first.1);
        let names: Vec<&str> = layout.names.iter().map(|(_, _, name)| name.as_str()).collect();
        assert_eq!(names[..3], ["machine 0", "stage 1", "machine 1"]);
        assert_eq!((layout.along(7, true), layout.along(16, false), layout.beside(0, true)), (16, 7, 8));
    }
}

//! Straight pipelines: `s` stages of one device each, as many such pipelines side by side as there are devices for.
//!
//! A table over (last state, stages, occupied devices) with the least bottleneck. Time `O(L² · s · placements)`, memory
//! `O(L · s · placements)`.

use rustc_hash::FxHashMap;

use super::{
    length::Stage,
    model::HpgoModel,
    placement::{self, Devices},
};
use crate::planner::Search;

/// The least bottleneck of a prefix on some devices.
#[derive(Debug, Clone, Copy)]
struct Cell {
    occupied: Devices,
    block_s: f64,
    /// Devices of the last stage.
    last: Devices,
    /// Last state of the stage before, and the position of its cell.
    before: (usize, usize),
}

/// A straight pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Straight {
    /// Its stages.
    pub stages: Vec<Stage>,
    /// Pipelines side by side.
    pub pipelines: u32,
    /// Seconds of its slowest stage or link for the whole batch.
    pub block_s: f64,
}

/// The straight pipeline of `count` stages with the least bottleneck; `None` if there is none, or if cancelled.
pub(crate) fn plan(model: &HpgoModel<'_>, count: u32, search: &Search) -> Option<Straight> {
    let states = model.states();
    let pipelines = model.devices / count;
    if pipelines == 0 || (count > 1 && count * pipelines < model.devices) {
        return None;
    }
    let first = placement::next_of_fresh(&model.machines, pipelines)?;
    // Cells by stages, then last state; ordered by occupied devices.
    let init = |j: usize| {
        let block_s = model.compute_s(0, j) / f64::from(pipelines);
        vec![Cell { occupied: first, block_s, last: first, before: (0, 0) }]
    };
    let mut table: Vec<Vec<Vec<Cell>>> = vec![(0..states).map(init).collect()];
    let mut offers = Offers { pipelines, known: FxHashMap::default(), lists: vec![] };
    for _ in 1..count {
        let previous = &table[table.len() - 1];
        // Asked for once, not for every state that a stage may end at.
        let offered: Vec<Vec<usize>> =
            previous.iter().map(|cells| cells.iter().map(|cell| offers.of(model, cell)).collect()).collect();
        let mut row: Vec<Vec<Cell>> = vec![vec![]; states];
        for (j, cells) in row.iter_mut().enumerate().skip(1) {
            if search.cancelled() {
                return None;
            }
            for k in model.before(j) {
                let compute = model.compute_s(k + 1, j) / f64::from(pipelines);
                let bytes = 2.0 * model.output_bytes(k);
                for (at, (cell, &list)) in previous[k].iter().zip(&offered[k]).enumerate() {
                    for &(set, per_byte) in &offers.lists[list] {
                        let block_s = cell.block_s.max(compute).max(bytes * per_byte);
                        improve(cells, Cell { occupied: cell.occupied | set, block_s, last: set, before: (k, at) });
                    }
                }
            }
            cells.sort_by_key(|cell| cell.occupied);
        }
        table.push(row);
    }
    traced(model, &table, pipelines)
}

/// Keeps a cell if it is the first on its devices or strictly better.
fn improve(cells: &mut Vec<Cell>, new: Cell) {
    match cells.iter_mut().find(|cell| cell.occupied == new.occupied) {
        Some(known) if new.block_s < known.block_s => *known = new,
        Some(_) => {}
        None => cells.push(new),
    }
}

/// Placements after a cell with the seconds a byte takes to them; few different ones are ever asked for.
struct Offers {
    pipelines: u32,
    /// By what is occupied and the devices of the last stage, which of the lists it is.
    known: FxHashMap<(Devices, Devices), usize>,
    lists: Vec<Vec<(Devices, f64)>>,
}

impl Offers {
    /// Which list is that of a cell.
    fn of(&mut self, model: &HpgoModel<'_>, cell: &Cell) -> usize {
        *self.known.entry((cell.occupied, cell.last)).or_insert_with(|| {
            let sets = placement::next_of_each(&model.machines, cell.occupied, 1, self.pipelines);
            self.lists.push(sets.into_iter().map(|set| (set, model.per_byte(cell.last, set))).collect());
            self.lists.len() - 1
        })
    }
}

/// Follows the best cell back to the first stage.
fn traced(model: &HpgoModel<'_>, table: &[Vec<Vec<Cell>>], pipelines: u32) -> Option<Straight> {
    let last = model.states() - 1;
    let cells = &table.last()?[last];
    let mut best = *cells.first()?;
    for cell in &cells[1..] {
        if cell.block_s < best.block_s {
            best = *cell;
        }
    }
    let block_s = best.block_s;
    let (mut cell, mut to) = (best, last);
    let mut stages = vec![];
    for row in (0..table.len()).rev() {
        let (k, at) = cell.before;
        let from = if row == 0 { 0 } else { k + 1 };
        stages.push(model.stage(from, to, 1, cell.last));
        if row > 0 {
            cell = table[row - 1][k][at];
            to = k;
        }
    }
    stages.reverse();
    Some(Straight { stages, pipelines, block_s })
}

//! Straight pipelines: `s` stages of one device each, as many such pipelines side by side as there are devices for.
//!
//! A table over (last state, stages, occupied devices) with the least bottleneck. Time `O(L² · s · placements)`, memory
//! `O(L · s · placements)`.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{
    length::Stage,
    model::HpgoModel,
    placement::{self, Devices},
};
use crate::planner::Search;

/// Ends of stages that are few enough for one thread.
const FEW: usize = 32;
/// No cell.
const NONE: usize = usize::MAX;

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
    let mut offers = Offers { pipelines, known: FxHashMap::default(), sets: FxHashMap::default() };
    for _ in 1..count {
        let previous = &table[table.len() - 1];
        // Asked for once, not for every state that a stage may end at.
        let offered: Vec<Vec<Vec<Offer>>> =
            previous.iter().map(|cells| cells.iter().map(|cell| offers.of(model, cell)).collect()).collect();
        let sets = offers.sets.len();
        let mut row: Vec<Vec<Cell>> = vec![vec![]; states];
        // Where a stage may end is known of no other.
        row.par_iter_mut().enumerate().skip(1).with_min_len(FEW).for_each_init(
            || vec![NONE; sets],
            |slots, (j, cells)| {
                if search.cancelled() {
                    return;
                }
                for k in model.before(j) {
                    let compute = model.compute_s(k + 1, j) / f64::from(pipelines);
                    let bytes = 2.0 * model.output_bytes(k);
                    for (at, (cell, offers)) in previous[k].iter().zip(&offered[k]).enumerate() {
                        for &Offer { after, set, last, per_byte } in offers {
                            let block_s = cell.block_s.max(compute).max(bytes * per_byte);
                            let new = Cell { occupied: after, block_s, last, before: (k, at) };
                            improve(cells, &mut slots[set], new);
                        }
                    }
                }
                cells.sort_by_key(|cell| cell.occupied);
                slots.fill(NONE);
            },
        );
        if search.cancelled() {
            return None;
        }
        table.push(row);
    }
    traced(model, &table, pipelines)
}

/// Keeps a cell if it is the first on its devices or strictly better; `slot` is where that is.
fn improve(cells: &mut Vec<Cell>, slot: &mut usize, new: Cell) {
    match cells.get_mut(*slot) {
        Some(known) if new.block_s < known.block_s => *known = new,
        Some(_) => {}
        None => {
            *slot = cells.len();
            cells.push(new);
        }
    }
}

/// Where the next stage can sit.
#[derive(Debug, Clone, Copy)]
struct Offer {
    /// What is occupied with it, and which of all such sets that is.
    after: Devices,
    set: usize,
    /// Its own devices, and the seconds a byte takes to them.
    last: Devices,
    per_byte: f64,
}

/// Placements after cells; few different ones are ever asked for.
struct Offers {
    pipelines: u32,
    /// By what is occupied and the devices of the last stage.
    known: FxHashMap<(Devices, Devices), Vec<Offer>>,
    /// All occupied sets there are.
    sets: FxHashMap<Devices, usize>,
}

impl Offers {
    /// Those after a cell.
    fn of(&mut self, model: &HpgoModel<'_>, cell: &Cell) -> Vec<Offer> {
        let Offers { pipelines, known, sets } = self;
        let found = known.entry((cell.occupied, cell.last)).or_insert_with(|| {
            let offer = |last: Devices| {
                let (after, count) = (cell.occupied | last, sets.len());
                Offer {
                    after,
                    set: *sets.entry(after).or_insert(count),
                    last,
                    per_byte: model.per_byte(cell.last, last),
                }
            };
            placement::next_of_each(&model.machines, cell.occupied, 1, *pipelines).into_iter().map(offer).collect()
        });
        found.clone()
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

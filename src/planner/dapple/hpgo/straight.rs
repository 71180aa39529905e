//! Straight pipelines: `s` stages of one device each, as many such pipelines side by side as there are devices for.
//!
//! A table over (last state, stages, occupied devices) with the least bottleneck. Where a stage may sit behind a state follows
//! from that state alone, so the ways from it are looked through once for each state rather than for each stage that may
//! begin there: by occupied set, those of which each is better than all before it. Before that a table that puts every stage on
//! the devices that are reached fastest finds a bottleneck that can be had: what exceeds it, or leaves more compute than the
//! stages that follow can do within it, is not kept, unless nothing else is left. Stages are tried from the shortest on; of a chain no
//! longer one is tried once its compute alone is more than what is known on every set. Time `O(L² · s · sets)` and memory
//! `O(L · s · sets)`, both at worst; mostly only few states are left for each number of stages. Of a table that grows beyond
//! [`MOST_TRACES`] nothing is found.

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
/// No state.
const NONE: u32 = u32::MAX;
/// Bottlenecks that are tried one after the other before any may do, as multiples of one that can be had.
const ROOM: [f64; 3] = [1.0, 1.25, 2.0];
/// A range of a chain takes as long as one within it but for the rounding of sums.
const ROUNDING: f64 = 1e-9;

/// So much of a table is kept at the most, 12 bytes each.
const MOST_TRACES: usize = 60 << 20;

/// The least bottleneck of a prefix on some devices.
#[derive(Debug, Clone, Copy)]
struct Cell {
    block_s: f64,
    /// The number of the set that is occupied.
    occupied: u32,
    trace: Trace,
}

/// How a cell came about: what is kept of those of earlier rows.
#[derive(Debug, Clone, Copy)]
struct Trace {
    /// The number of the last stage's devices.
    last: u32,
    /// Last state of the stage before, and the position of its cell.
    before: (u32, u32),
}

/// A table: its last row, and what led to it.
struct Filled {
    /// By last state.
    cells: Vec<Vec<Cell>>,
    /// By stages, then last state.
    traces: Vec<Vec<Vec<Trace>>>,
}

/// Why there is no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoTable {
    /// Nobody waits for it any more.
    Cancelled,
    /// It would be larger than is kept.
    TooLarge,
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

/// The straight pipeline of `count` stages with the least bottleneck, if there is one.
///
/// # Errors
/// [`NoTable`] if the search was cancelled or needs more memory than it is given.
pub(crate) fn plan(model: &HpgoModel<'_>, count: u32, search: &Search) -> Result<Option<Straight>, NoTable> {
    let pipelines = model.devices / count;
    if pipelines == 0 || (count > 1 && count * pipelines < model.devices) {
        return Ok(None);
    }
    let Some(first) = placement::next_of_fresh(&model.machines, pipelines) else { return Ok(None) };
    let mut offers = Offers { pipelines, fastest: true, known: FxHashMap::default(), sets: Sets::default() };
    let first = offers.sets.number(first);
    let chain = model.is_chain();
    let quick =
        Filling { model, chain, count, first, bound_s: f64::INFINITY, traced: false, search }.table(&mut offers)?;
    let known_s = quick.best().map_or(f64::INFINITY, |cell| cell.block_s);
    offers.fastest = false;
    // Of the ways to a set the one with the least bottleneck is kept, wherever its last stage is, from where the next one may be
    // farther than it was in the quick table: so what was found there need not be found again.
    let wider = ROOM.into_iter().map(|room| known_s * room).take_while(|bound_s| bound_s.is_finite());
    for bound_s in wider.chain([f64::INFINITY]) {
        let table = Filling { model, chain, count, first, bound_s, traced: true, search }.table(&mut offers)?;
        if let Some(straight) = traced(model, &offers.sets, &table, pipelines) {
            return Ok(Some(straight));
        }
    }
    Ok(None)
}

/// A table to be filled.
struct Filling<'a> {
    model: &'a HpgoModel<'a>,
    /// Whether each state covers all that the one before it covers.
    chain: bool,
    /// Stages of the whole pipeline.
    count: u32,
    /// The number of the first stage's devices.
    first: u32,
    /// Nothing with a larger bottleneck is kept.
    bound_s: f64,
    /// Whether it is to be known what led to each cell.
    traced: bool,
    search: &'a Search,
}

impl Filling<'_> {
    /// Its cells, ordered by occupied devices: those that a pipeline within the bound may come by.
    fn table(&self, offers: &mut Offers) -> Result<Filled, NoTable> {
        let &Filling { model, first, bound_s, search, .. } = self;
        let init = |j: usize| {
            let block_s = model.compute_s(0, j) / f64::from(offers.pipelines);
            let cell = Cell { block_s, occupied: first, trace: Trace { last: first, before: (0, 0) } };
            if block_s <= bound_s && self.may_end(j, 1, offers.pipelines) { vec![cell] } else { vec![] }
        };
        let mut cells: Vec<Vec<Cell>> = (0..model.states()).map(init).collect();
        let (mut traces, mut kept) = (vec![], 0);
        for stages in 2..=self.count {
            if self.traced {
                kept += cells.iter().map(Vec::len).sum::<usize>();
                if kept > MOST_TRACES {
                    return Err(NoTable::TooLarge);
                }
                traces.push(cells.iter().map(|cells| cells.iter().map(|cell| cell.trace).collect()).collect());
            }
            let occupied = offers.behind(model, &cells);
            let ways = |(k, cells): (usize, &Vec<Cell>)| offers.ways(2.0 * model.output_bytes(k), cells, &occupied);
            let ways: Vec<Ways> = cells.par_iter().enumerate().with_min_len(FEW).map(ways).collect();
            // Where a stage may end is known of no other.
            let end = |least: &mut Vec<(f64, u32)>, j: usize| {
                if search.cancelled() || !self.may_end(j, stages, offers.pipelines) {
                    return vec![];
                }
                self.end(j, &ways, least, &occupied, offers.pipelines)
            };
            cells = (0..model.states()).into_par_iter().with_min_len(FEW).map_init(Vec::new, end).collect();
            if search.cancelled() {
                return Err(NoTable::Cancelled);
            }
        }
        Ok(Filled { cells, traces })
    }

    /// Whether so many stages may end with a state: what those after them compute adds up to what lies behind, whatever the states.
    fn may_end(&self, j: usize, stages: u32, pipelines: u32) -> bool {
        let last = self.model.states() - 1;
        let left = |from| self.model.compute_s(from, last) / f64::from(pipelines);
        j == last || left(j + 1) <= self.bound_s * f64::from(self.count - stages) * (1.0 + ROUNDING)
    }

    /// The cells with a last stage that ends with a state, for the sets that may be occupied then; `least` is room to work in.
    fn end(&self, j: usize, ways: &[Ways], least: &mut Vec<(f64, u32)>, occupied: &[u32], pipelines: u32) -> Vec<Cell> {
        let &Filling { model, chain, bound_s, .. } = self;
        least.clear();
        least.resize(occupied.len(), (f64::INFINITY, NONE));
        let mut worst = bound_s;
        for k in model.before_backwards(j) {
            let compute = model.compute_s(k + 1, j) / f64::from(pipelines);
            if compute > worst {
                if chain && compute > worst * (1.0 + ROUNDING) {
                    break;
                }
                continue;
            }
            let mut any = false;
            for (known, &way) in least.iter_mut().zip(&ways[k].least) {
                let block_s = way.max(compute);
                // Of equal ones that with the longest last stage, if there is a way at all.
                if block_s <= known.0 && way < f64::INFINITY {
                    *known = (block_s, k as u32);
                    any = true;
                }
            }
            if any {
                worst = bound_s.min(least.iter().fold(0.0, |worst: f64, known| worst.max(known.0)));
            }
        }
        let cell = |(slot, &(block_s, k)): (usize, &(f64, u32))| {
            let step = ways.get(k as usize).filter(|_| block_s <= bound_s)?.first_within(slot, block_s)?;
            let trace = Trace { last: step.last, before: (k, step.at) };
            Some(Cell { block_s, occupied: occupied[slot], trace })
        };
        least.iter().enumerate().filter_map(cell).collect()
    }
}

impl Filled {
    /// The first of the best cells of the whole network.
    fn best(&self) -> Option<&Cell> {
        self.cells.last()?.iter().reduce(|best, cell| if cell.block_s < best.block_s { cell } else { best })
    }
}

/// Sets of devices by number.
#[derive(Default)]
struct Sets {
    all: Vec<Devices>,
    numbers: FxHashMap<Devices, u32>,
}

impl Sets {
    fn number(&mut self, set: Devices) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(set).or_insert(next);
        if number == next {
            self.all.push(set);
        }
        number
    }

    fn get(&self, number: u32) -> Devices {
        self.all[number as usize]
    }
}

/// Where the next stage can sit.
#[derive(Debug, Clone, Copy)]
struct Offer {
    /// What is occupied with it.
    after: u32,
    /// Its own devices, and the seconds a byte takes to them.
    last: u32,
    per_byte: f64,
}

/// Placements after cells; few different ones are ever asked for.
struct Offers {
    pipelines: u32,
    /// Whether only the first of those that are reached fastest is offered.
    fastest: bool,
    /// By what is occupied and the devices of the last stage.
    known: FxHashMap<(u32, u32), Vec<Offer>>,
    sets: Sets,
}

impl Offers {
    /// What may be occupied with one stage more behind any of these cells, in the order of sets.
    fn behind(&mut self, model: &HpgoModel<'_>, cells: &[Vec<Cell>]) -> Vec<u32> {
        let Offers { pipelines, fastest, known, sets } = self;
        known.clear();
        let mut after = vec![];
        for cell in cells.iter().flatten() {
            known.entry((cell.occupied, cell.trace.last)).or_insert_with(|| {
                let (occupied, before) = (sets.get(cell.occupied), sets.get(cell.trace.last));
                let offered = placement::next_of_each(&model.machines, occupied, 1, *pipelines);
                let offer = |last: Devices| Offer {
                    after: sets.number(occupied | last),
                    last: sets.number(last),
                    per_byte: model.per_byte(before, last),
                };
                let mut offers: Vec<Offer> = offered.into_iter().map(offer).collect();
                if *fastest {
                    let first = offers.iter().copied().reduce(|a, b| if b.per_byte < a.per_byte { b } else { a });
                    offers = first.into_iter().collect();
                }
                after.extend(offers.iter().map(|offer| offer.after));
                offers
            });
        }
        after.sort_unstable_by_key(|&set| sets.get(set));
        after.dedup();
        after
    }

    /// The ways from a state's cells to what may be occupied next, for so many bytes.
    fn ways(&self, bytes: f64, cells: &[Cell], occupied: &[u32]) -> Ways {
        if cells.is_empty() {
            return Ways { least: vec![], steps: vec![] };
        }
        let mut ways = Ways { least: vec![f64::INFINITY; occupied.len()], steps: vec![] };
        for (at, cell) in cells.iter().enumerate() {
            for offer in &self.known[&(cell.occupied, cell.trace.last)] {
                let set = self.sets.get(offer.after);
                let Ok(slot) = occupied.binary_search_by_key(&set, |&set| self.sets.get(set)) else { continue };
                // Larger than that are costs that only rounding makes infinite.
                let block_s = cell.block_s.max(bytes * offer.per_byte).min(f64::MAX);
                if block_s < ways.least[slot] {
                    ways.least[slot] = block_s;
                    ways.steps.push(Step { slot: slot as u32, block_s, at: at as u32, last: offer.last });
                }
            }
        }
        ways
    }
}

/// The ways from a state to the next stage's devices.
struct Ways {
    /// The least bottleneck, the next stage's compute aside, by occupied set; empty if there is none to any.
    least: Vec<f64>,
    /// In their order, those that are better than all before them to the same set.
    steps: Vec<Step>,
}

#[derive(Clone, Copy)]
struct Step {
    slot: u32,
    block_s: f64,
    /// The position of the cell it starts from, and the devices of the next stage.
    at: u32,
    last: u32,
}

impl Ways {
    /// The first to a set with no more than this bottleneck.
    fn first_within(&self, slot: usize, block_s: f64) -> Option<&Step> {
        self.steps.iter().find(|step| step.slot as usize == slot && step.block_s <= block_s)
    }
}

/// Follows the best cell back to the first stage.
fn traced(model: &HpgoModel<'_>, sets: &Sets, table: &Filled, pipelines: u32) -> Option<Straight> {
    let best = table.best()?;
    let (mut trace, mut to) = (best.trace, model.states() - 1);
    let mut stages = vec![];
    for row in table.traces.iter().rev() {
        let (k, at) = (trace.before.0 as usize, trace.before.1 as usize);
        stages.push(model.stage(k + 1, to, 1, sets.get(trace.last)));
        trace = row[k][at];
        to = k;
    }
    stages.push(model.stage(0, to, 1, sets.get(trace.last)));
    stages.reverse();
    Some(Straight { stages, pipelines, block_s: best.block_s })
}

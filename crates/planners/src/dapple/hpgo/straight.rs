//! Straight pipelines: `s` stages of one device each, with as many parallel pipelines as the devices allow.
//!
//! The table over (stages, occupied devices, last state) holds the least bottleneck. It has a row for each number of
//! stages, with a [`Column`] for each set that may be occupied. The devices that a stage may take depend only on the
//! devices occupied before.
//!
//! First a quick table puts every stage on the devices that are reached fastest, and finds a feasible bottleneck. The
//! full table drops cells above this bottleneck, or with more compute left than the remaining stages can do within it.
//! It is repeated with larger bounds only if nothing is left.
//!
//! Worst case: time `O(L · s · sets)` if the states are a chain, `O(L² · s · sets)` if they branch; memory
//! `O(L · s · sets)`, plus `O(L²)` if they branch. A table larger than [`MOST_TRACES`] gives no result.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{
    column::{Arrival, Column, Pairs, Source, Within},
    length::Stage,
    model::HpgoModel,
    placement::{self, Devices},
    reach::Reach,
    row,
};
use plantui_core::search::Search;

/// Bounds on the bottleneck that are tried in order before no bound, as multiples of a feasible bottleneck.
const ROOM: [f64; 3] = [1.0, 1.25, 2.0];
/// Largest number of stored cells, 8 bytes each.
const MOST_TRACES: usize = 90 << 20;

/// Reason why there is no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoTable {
    /// The search was cancelled.
    Cancelled,
    /// The table exceeds the memory limit.
    TooLarge,
}

/// A straight pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Straight {
    /// Stages in pipeline order.
    pub stages: Vec<Stage>,
    /// Number of parallel pipelines.
    pub pipelines: u32,
    /// Seconds of the slowest stage or link for the whole batch.
    pub block_s: f64,
}

/// Returns the straight pipeline of `count` stages with the least bottleneck, if there is one.
///
/// # Errors
/// [`NoTable`] if the search was cancelled or needs too much memory.
pub(crate) fn plan(model: &HpgoModel<'_>, count: u32, search: &Search) -> Result<Option<Straight>, NoTable> {
    let pipelines = model.devices / count;
    if pipelines == 0 || (count > 1 && count * pipelines < model.devices) {
        return Ok(None);
    }
    let Some(first) = placement::next_of_fresh(&model.machines, pipelines) else { return Ok(None) };
    let (mut sets, pairs) = (Sets::default(), &Pairs::new(model.states()));
    let table = |sets: &mut Sets, bound_s, fastest, traced| {
        let reach = &Reach::of(model, (count, pipelines), bound_s, search).ok_or(NoTable::Cancelled)?;
        let within = Within { model, pairs, reach, chain: model.is_chain(), count, pipelines, bound_s };
        Filling { within, first, fastest, traced, search }.table(sets)
    };
    let quick = table(&mut sets, f64::INFINITY, true, false)?;
    let known_s = quick.best().map_or(f64::INFINITY, Column::last_block_s);
    // For each set only the prefix with the least bottleneck is kept, wherever its last stage is. From there the next
    // stage may be farther than in the quick table. So the bound from the quick table can be too small for the full
    // table.
    let wider = ROOM.into_iter().map(|room| known_s * room).take_while(|bound_s| bound_s.is_finite());
    for bound_s in wider.chain([f64::INFINITY]) {
        let filled = table(&mut sets, bound_s, false, true)?;
        if let Some(best) = filled.best() {
            let (stages, block_s) = (filled.traced(model, &sets, best), best.last_block_s());
            return Ok(Some(Straight { stages, pipelines, block_s }));
        }
    }
    Ok(None)
}

/// A table to be filled.
#[derive(Clone, Copy)]
struct Filling<'a> {
    within: Within<'a>,
    /// Devices of the first stage.
    first: Devices,
    /// True if the next stage is only put on the first of the devices that are reached fastest.
    fastest: bool,
    /// True if the origin of each cell is stored.
    traced: bool,
    search: &'a Search,
}

/// Filled table: its last row, and the origins of the cells in the rows before.
struct Filled {
    last: Vec<Column>,
    before: Vec<Vec<Column>>,
}

impl Filling<'_> {
    /// Computes the cells of pipelines within the bound.
    fn table(&self, sets: &mut Sets) -> Result<Filled, NoTable> {
        let source = Source { column: 0, last: sets.number(self.first) };
        let mut last = vec![self.within.first_column(self.first, source)];
        let (mut before, mut kept) = (vec![], 0);
        for stages in 2..=self.within.count {
            let arrivals = self.arrivals(&last, sets);
            if arrivals.is_empty() {
                return Ok(Filled { last: vec![], before });
            }
            let columns =
                row::columns(&self.within, &last, &arrivals, stages, self.search).ok_or(NoTable::Cancelled)?;
            let mut done = std::mem::replace(&mut last, columns);
            if self.traced {
                done.iter_mut().for_each(Column::keep_traces);
                kept += done.iter().map(|column| column.states().len()).sum::<usize>();
                if kept > MOST_TRACES {
                    return Err(NoTable::TooLarge);
                }
                before.push(done);
            }
        }
        Ok(Filled { last, before })
    }

    /// Returns the sets that may be occupied with one stage more than in these columns, in the order of sets.
    fn arrivals(&self, row: &[Column], sets: &mut Sets) -> Vec<Arrival> {
        let Within { model, pipelines, .. } = self.within;
        let mut arrivals: BTreeMap<Devices, Arrival> = BTreeMap::new();
        for (column, from) in (0..).zip(row) {
            let offered = placement::next_of_each(&model.machines, from.occupied, 1, pipelines);
            let mut per_byte = vec![vec![None; from.sources.len()]; offered.len()];
            for at in from.used_sources() {
                let before = sets.get(from.sources[at].last);
                let seconds: Vec<f64> = offered.iter().map(|&last| model.per_byte(before, last)).collect();
                let fastest = (0..offered.len()).reduce(|a, b| if seconds[b] < seconds[a] { b } else { a });
                for (i, &seconds) in seconds.iter().enumerate().filter(|&(i, _)| !self.fastest || fastest == Some(i)) {
                    per_byte[i][at] = Some(seconds);
                }
            }
            for (last, per_byte) in
                offered.into_iter().zip(per_byte).filter(|(_, per_byte)| per_byte.iter().any(Option::is_some))
            {
                let occupied = from.occupied | last;
                let arrival = arrivals.entry(occupied).or_insert_with(|| Arrival { occupied, ways: vec![] });
                arrival.ways.push((Source { column, last: sets.number(last) }, per_byte));
            }
        }
        arrivals.into_values().collect()
    }
}

impl Filled {
    /// Returns the first of the columns with the least bottleneck of the whole network.
    fn best(&self) -> Option<&Column> {
        let best = self
            .last
            .iter()
            .reduce(|best, other| if other.last_block_s() < best.last_block_s() { other } else { best });
        best.filter(|best| best.last_block_s().is_finite())
    }

    /// Returns the stages that lead to a column of the last row.
    fn traced(&self, model: &HpgoModel<'_>, sets: &Sets, best: &Column) -> Vec<Stage> {
        let (mut column, mut to) = (best, model.states() - 1);
        let mut stages = vec![];
        for row in self.before.iter().rev() {
            let (k, source) = column.trace(to);
            stages.push(model.stage(k + 1, to, 1, sets.get(source.last)));
            (column, to) = (&row[source.column as usize], k);
        }
        stages.push(model.stage(0, to, 1, sets.get(column.sources[0].last)));
        stages.reverse();
        stages
    }
}

/// Numbered sets of devices.
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

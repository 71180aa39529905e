//! Straight pipelines: `s` stages of one device each, with as many parallel pipelines as the devices allow.
//!
//! The table over (stages, occupied devices, last state) holds the least bottleneck. It has a row for each number of
//! stages, with a [`Column`] for each set that may be occupied. The devices that a stage may take depend only on the
//! devices occupied before.
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
    let pairs = &Pairs::new(model.states());
    let reach = &Reach::of(model, count, search).ok_or(NoTable::Cancelled)?;
    let within = Within { model, pairs, reach, chain: model.is_chain(), count, pipelines };
    let mut sets = Sets::default();
    let filled = Filling { within, first, search }.table(&mut sets)?;
    Ok(filled.best().map(|best| {
        let (stages, block_s) = (filled.traced(model, &sets, best), best.last_block_s());
        Straight { stages, pipelines, block_s }
    }))
}

/// A table to be filled.
struct Filling<'a> {
    within: Within<'a>,
    /// Devices of the first stage.
    first: Devices,
    search: &'a Search,
}

/// Filled table: its last row, and the origins of the cells in the rows before.
struct Filled {
    last: Vec<Column>,
    before: Vec<Vec<Column>>,
}

impl Filling<'_> {
    /// Computes all cells.
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
            done.iter_mut().for_each(Column::keep_traces);
            kept += done.iter().map(|column| column.states().len()).sum::<usize>();
            if kept > MOST_TRACES {
                return Err(NoTable::TooLarge);
            }
            before.push(done);
        }
        Ok(Filled { last, before })
    }

    /// Returns the sets that may be occupied with one stage more than in these columns, in the order of sets.
    fn arrivals(&self, row: &[Column], sets: &mut Sets) -> Vec<Arrival> {
        let Within { model, pipelines, .. } = self.within;
        let mut arrivals: BTreeMap<Devices, Arrival> = BTreeMap::new();
        for (column, from) in (0..).zip(row) {
            let used = from.used_sources();
            if used.is_empty() {
                continue;
            }
            for last in placement::next_of_each(&model.machines, from.occupied, 1, pipelines) {
                let mut per_byte = vec![None; from.sources.len()];
                for &at in &used {
                    per_byte[at] = Some(model.per_byte(sets.get(from.sources[at].last), last));
                }
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

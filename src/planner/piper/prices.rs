//! Bounds on what a stage costs within its memory, in constant time.
//!
//! A price on every byte lets each node of a stage choose its mode by itself: what the nodes then pay, less the price of
//! the memory there is, bounds the cost of every choice that fits from below (Lagrange), and if what they chose does fit, it
//! is such a choice. Between two neighbouring prices, some of the nodes that change their mind do: one of them too many at
//! the most. Choices do not depend on the stage, so sums over admissible sets serve all stages at once.
//!
//! A handful of prices decides almost every question that the search asks; only what lies between its two bounds goes to
//! the knapsack. What is within rounding of a bound counts as undecided.
//!
//! Sums are kept as narrow whole numbers ([`super::counts`]); what these are off by is rounding, too.
//!
//! A table for each (degree, replicas, microbatches in flight) that is asked about, `O(sets · prices)` time and memory; no
//! more are made once [`MOST_BYTES`] are full. Threads share them: whoever needs one first makes it, and who needs it meanwhile
//! makes that of one microbatch more, then waits.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use super::{
    blocks::{Block, SIZES},
    counts::{Counts, Figures, PRICES, Sums, Units, at_each},
    model::{Choice, Degree, PiperModel, StageCost},
};

/// Bytes of tables.
const MOST_BYTES: usize = 64 << 20;

/// Tables are made for blocks once stages were to be decided on, at least one for so many sets.
const WORTH_A_TABLE: usize = 8;

/// What is paid and held by a node in some mode, or by the nodes of a stage at some price.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    cost: f64,
    bytes: f64,
}

/// Sums by set for one degree, number of replicas and of microbatches in flight.
struct Table {
    /// Seconds a byte, ascending; the first is 0.
    prices: Figures,
    /// By price: the most that one node pays more than at the price before.
    steps: Figures,
    /// By set.
    counts: Vec<Counts>,
    /// What they are numbers of.
    units: Units,
    /// By what differences of them may be off.
    off: Sums,
    /// By size of blocks and block: the most that one of its sets pays, memory included.
    most_paid: [Vec<Figures>; SIZES.len()],
    /// What the memory there is is worth at each price, and what is paid may be off by.
    worth: Figures,
}

/// The tables made so far.
pub(super) struct Tables {
    /// By degree and position of the replicas (0 where they make no difference), then by microbatches in flight.
    rows: Vec<Vec<OnceLock<Row>>>,
    /// Tables in a row: more microbatches than this less one are never in flight on a replica.
    width: usize,
    /// How many more there is memory for.
    left: AtomicUsize,
    memory_bytes: f64,
}

type Row = Box<[Place]>;

/// Where a table is, or will be.
#[derive(Default)]
struct Place {
    /// Whether somebody has begun to make it.
    begun: AtomicBool,
    /// `None` where there was no memory left for one.
    table: OnceLock<Option<Box<Table>>>,
}

/// The tables, as one thread asks them.
pub(super) struct Prices {
    tables: Arc<Tables>,
    /// Stages that were to be decided on.
    decided: usize,
    /// Sums by set, while a table is made of them.
    sums: Vec<Sums>,
}

/// A stage to be decided on.
#[derive(Clone, Copy)]
pub(super) struct Asked<'s> {
    pub(super) degree: usize,
    pub(super) outer: usize,
    pub(super) inner: usize,
    pub(super) stage: &'s StageCost,
    pub(super) d: u32,
}

impl Tables {
    /// None yet; `crews` such share the memory.
    pub(super) fn new(model: &PiperModel<'_>, memory_bytes: f64, crews: usize) -> Self {
        let size = model.sets.len() * size_of::<Counts>();
        let left = if model.far_apart { 0 } else { MOST_BYTES / crews.max(1) / size.max(1) };
        let row = |degree: &Degree| {
            let rows = if degree.uniform { 1 } else { model.replicas.len() };
            (0..rows).map(|_| OnceLock::new()).collect()
        };
        let rows = model.degrees.iter().map(row).collect();
        // Where warm-ups are rounded on, a stage adds up to two microbatches for each replica; else one.
        let width = 2 * model.most_replicas as usize + 2;
        Tables { rows, width, left: left.into(), memory_bytes }
    }

    /// A table that was made already.
    #[inline]
    fn known(&self, model: &PiperModel<'_>, (degree, d, y): (usize, u32, u32)) -> Option<&Table> {
        let row = self.rows[degree].get(row(model, degree, d)?)?.get()?;
        row.get(y as usize)?.table.get()?.as_deref()
    }

    /// A table, made now if there is memory left for it.
    fn table(&self, model: &PiperModel<'_>, (degree, d, y): (usize, u32, u32), sums: &mut Vec<Sums>) -> Option<&Table> {
        let row = self.rows[degree].get(row(model, degree, d)?)?;
        if row.get().is_none() && self.left.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let row = row.get_or_init(|| (0..self.width).map(|_| Place::default()).collect());
        let place = row.get(y as usize)?;
        if let Some(table) = place.table.get() {
            return table.as_deref();
        }
        let mut make = |y: u32| {
            let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            taken.ok().and_then(|_| Table::new(model, (degree, d, y), self.memory_bytes, sums)).map(Box::new)
        };
        // While another makes this one, the next, which is asked for soon; not the last one there is memory for.
        if place.begun.swap(true, Ordering::Relaxed)
            && self.left.load(Ordering::Relaxed) > 1
            && let Some(next) = row.get(y as usize + 1)
            && !next.begun.swap(true, Ordering::Relaxed)
        {
            next.table.get_or_init(|| make(y + 1));
        }
        place.table.get_or_init(|| make(y)).as_deref()
    }

    pub(super) fn memory_bytes(&self) -> f64 {
        self.memory_bytes
    }
}

/// Which of a degree's rows of tables is that of so many replicas.
#[inline]
fn row(model: &PiperModel<'_>, degree: usize, d: u32) -> Option<usize> {
    if model.degrees[degree].uniform { Some(0) } else { model.replicas.binary_search(&d).ok() }
}

impl Prices {
    pub(super) fn new(tables: Arc<Tables>) -> Self {
        Prices { tables, decided: 0, sums: vec![] }
    }

    /// Whether the stage may keep to `target` with no thought of memory, going by the cheapest mode of each node and the
    /// cheapest of each edge; `None` if there is no table to tell.
    pub(super) fn may_keep_to(&mut self, model: &PiperModel<'_>, asked: Asked<'_>, target: f64) -> Option<bool> {
        let room = self.room(model, asked);
        let table = self.tables.table(model, (asked.degree, asked.d, 1), &mut self.sums)?;
        let cost = table.stage(asked.outer, asked.inner).cost[0] - table.off.cost[0];
        let least = cost + beside(model, asked, asked.stage.edge_least);
        Some(least - room <= target * f64::from(asked.d))
    }

    /// Whether the stage can keep to `target` with `y` microbatches in flight, if the bounds tell.
    pub(super) fn decided(&mut self, model: &PiperModel<'_>, asked: Asked<'_>, y: u32, target: f64) -> Option<bool> {
        let memory_bytes = self.tables.memory_bytes;
        self.decided += 1;
        let room = self.room(model, asked);
        let table = self.tables.table(model, (asked.degree, asked.d, y), &mut self.sums)?;
        let (stage, off) = (table.stage(asked.outer, asked.inner), &table.off);
        let budget = target * f64::from(asked.d);
        let most_lower = budget - beside(model, asked, asked.stage.edge_least) + room;
        let mut upper = f64::INFINITY;
        for i in 0..PRICES {
            let (cost, bytes) = (stage.cost[i], stage.bytes[i]);
            if cost - off.cost[i] + table.prices[i] * (bytes - off.bytes[i] - memory_bytes) > most_lower {
                return Some(false);
            }
            if upper.is_infinite() && bytes + off.bytes[i] <= memory_bytes {
                upper = cost + off.cost[i];
                if let Some(before) = i.checked_sub(1) {
                    let over = stage.bytes[before] + off.bytes[before] - memory_bytes;
                    let part = table.prices[i] * over + table.steps[i];
                    upper = upper.min(stage.cost[before] + off.cost[before] + part);
                }
            }
        }
        (upper + beside(model, asked, asked.stage.edge_most) + room <= budget).then_some(true)
    }

    /// Whether a stage at a degree with `d` replicas and `y` microbatches in flight on each is certain to cost more than `most`
    /// seconds on one replica beside its edges and all-reduces; false where there is no table to tell.
    #[inline]
    pub(super) fn is_out_of_reach(
        &self,
        model: &PiperModel<'_>,
        stage: (usize, u32, u32),
        (outer, inner): (usize, usize),
        most: f64,
    ) -> bool {
        self.tables
            .known(model, stage)
            .is_some_and(|table| table.least_s(&table.stage(outer, inner).paid(&table.prices)) > most)
    }

    /// Whether every stage of `outer` in front of a set of a block is.
    #[inline]
    pub(super) fn is_block_out_of_reach(
        &mut self,
        model: &PiperModel<'_>,
        stage: (usize, u32, u32),
        (outer, (size, block)): (usize, Block),
        most: f64,
    ) -> bool {
        // Where memory is no matter a table would tell nothing that sums do not.
        if self.decided * WORTH_A_TABLE < model.sets.len() && self.tables.known(model, stage).is_none() {
            return false;
        }
        let Some(table) = self.tables.table(model, stage, &mut self.sums) else { return false };
        let outer = table.units.sums(&table.counts[outer]).paid(&table.prices);
        let inner = &table.most_paid[size][block];
        table.least_s(&at_each(|i| outer[i] - inner[i])) > most
    }

    /// Seconds by which differences of sums may be off.
    fn room(&self, model: &PiperModel<'_>, asked: Asked<'_>) -> f64 {
        rounding(model) * model.most_seconds(asked.degree, asked.d)
    }
}

/// By what share of the whole a difference of sums may be off.
pub(super) fn rounding(model: &PiperModel<'_>) -> f64 {
    8.0 * f64::EPSILON * (model.dag.len() as f64 + 64.0)
}

/// Bytes by which differences of sums may be off, and what rounding may make of the memory.
fn bytes_room(model: &PiperModel<'_>, memory_bytes: f64, all_bytes: f64) -> f64 {
    (1e-9 * memory_bytes).max(rounding(model) * all_bytes)
}

/// Seconds of a stage on one replica that its nodes' choices do not change.
fn beside(model: &PiperModel<'_>, asked: Asked<'_>, edge_bytes: f64) -> f64 {
    let parameters = if model.degrees[asked.degree].uniform { asked.stage.parameters } else { 0.0 };
    model.load(0.0, parameters, edge_bytes, asked.d) * f64::from(asked.d)
}

impl Table {
    /// What the nodes of a stage come to.
    #[inline]
    fn stage(&self, outer: usize, inner: usize) -> Sums {
        self.units.between(&self.counts[outer], &self.counts[inner])
    }

    /// Seconds of a stage on one replica at the least, from what its nodes pay at each price.
    #[inline]
    fn least_s(&self, paid: &Figures) -> f64 {
        let (mut least, worth) = (f64::NEG_INFINITY, &self.worth);
        for i in 0..PRICES {
            least = larger(least, paid[i] - worth[i]);
        }
        least
    }

    /// `None` where sums cannot be counted. `sums` is room to work in.
    fn new(
        model: &PiperModel<'_>,
        (degree, d, y): (usize, u32, u32),
        memory_bytes: f64,
        sums: &mut Vec<Sums>,
    ) -> Option<Self> {
        let degree = &model.degrees[degree];
        let options = Options::new(model, degree, (d, f64::from(y)), memory_bytes);
        let prices = prices(&options);
        let chosen: Vec<Sums> = options.by_node().map(|options| cheapest(options, &prices)).collect();
        let mut steps = [0.0; PRICES];
        for (i, step) in steps.iter_mut().enumerate().skip(1) {
            *step = chosen.iter().map(|node| node.cost[i] - node.cost[i - 1]).fold(0.0, f64::max);
        }
        model.smaller.sum_up(&model.sets, sums, |sum: &mut Sums, v| sum.add(&chosen[v]));
        let all = sums.last()?;
        let paid = all.paid(&prices);
        let units = Units::new(all).filter(|_| paid.iter().all(|paid| paid.is_finite()))?;
        let mut off = units.off();
        off.bytes = off.bytes.map(|off| off + bytes_room(model, memory_bytes, all.bytes[0]));
        let off_paid = off.paid(&prices);
        let worth = at_each(|i| prices[i] * memory_bytes + off_paid[i] + rounding(model) * paid[i]);
        let counts: Vec<Counts> = sums.iter().map(|sums| units.counts(sums)).collect();
        let most = |block: &[u32]| {
            let mut most = [f64::NEG_INFINITY; PRICES];
            for &set in block {
                let paid = sums[set as usize].paid(&prices);
                most = at_each(|i| larger(most[i], paid[i]));
            }
            most
        };
        let most_paid = SIZES.map(|size| model.by_device_seconds.chunks(size).map(most).collect());
        Some(Table { prices, steps, counts, units, off, most_paid, worth })
    }
}

/// The larger of two numbers. (`f64::max` also looks whether they are some, which takes longer.)
#[inline]
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Modes by node: what they cost beside edges, and what they hold; those that fit, where any does.
struct Options {
    all: Vec<Sum>,
    ends: Vec<usize>,
}

impl Options {
    fn new(model: &PiperModel<'_>, degree: &Degree, (d, in_flight): (u32, f64), memory_bytes: f64) -> Self {
        let fits = |sum: &Sum| sum.bytes <= memory_bytes * (1.0 + 1e-9);
        // Seconds on one replica for a parameter, where modes differ in them.
        let all_reduce_s = if degree.uniform { 0.0 } else { model.load(0.0, 1.0, 0.0, d) * f64::from(d) };
        let cost = |choice: &Choice| choice.time_s + all_reduce_s * choice.parameters;
        let mut all: Vec<Sum> = Vec::with_capacity(degree.choices.iter().map(Vec::len).sum());
        let ends = degree.choices.iter().map(|choices| {
            let options = choices.iter().map(|choice| Sum { cost: cost(choice), bytes: choice.memory(in_flight) });
            let start = all.len();
            all.extend(options.clone().filter(fits));
            if all.len() == start {
                all.extend(options);
            }
            all.len()
        });
        let ends = ends.collect();
        Options { all, ends }
    }

    fn by_node(&self) -> impl Iterator<Item = &[Sum]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.all[start..end])
    }
}

/// The cheapest option at each price; of equals the smallest. Nothing for a node without options.
fn cheapest(options: &[Sum], prices: &Figures) -> Sums {
    let Some((&first, others)) = options.split_first() else { return Sums::default() };
    let paid = |sum: Sum| -> Figures { at_each(|i| sum.cost + prices[i] * sum.bytes) };
    let mut least = Sums { cost: [first.cost; PRICES], bytes: [first.bytes; PRICES] };
    let mut least_paid = paid(first);
    // At all prices at once, without a branch.
    for &option in others {
        let paid = paid(option);
        for i in 0..PRICES {
            let better = (paid[i] < least_paid[i]) | ((paid[i] == least_paid[i]) & (option.bytes < least.bytes[i]));
            least_paid[i] = if better { paid[i] } else { least_paid[i] };
            least.cost[i] = if better { option.cost } else { least.cost[i] };
            least.bytes[i] = if better { option.bytes } else { least.bytes[i] };
        }
    }
    least
}

/// Prices at which about as many nodes each change their minds; at the last one all have.
fn prices(options: &Options) -> Figures {
    let mut ratios = vec![];
    for options in options.by_node() {
        let fastest = options.iter().copied().reduce(|a, b| {
            let faster = b.cost < a.cost || (b.cost == a.cost && b.bytes < a.bytes);
            if faster { b } else { a }
        });
        let Some(fastest) = fastest else { continue };
        let slower = options.iter().filter(|option| option.bytes < fastest.bytes);
        ratios.extend(slower.map(|option| (option.cost - fastest.cost) / (fastest.bytes - option.bytes)));
    }
    ratios.retain(|ratio| ratio.is_finite());
    let Some(largest) = ratios.iter().copied().reduce(f64::max) else { return [0.0; PRICES] };
    let mut prices = [0.0; PRICES];
    // Those from so many on are no less than the price before.
    let (count, mut from) = (ratios.len(), 0);
    for (i, price) in prices.iter_mut().enumerate().take(PRICES - 1).skip(1) {
        let at = count * i / (PRICES - 1);
        *price = *ratios[from..].select_nth_unstable_by(at - from, f64::total_cmp).1;
        from = at;
    }
    prices[PRICES - 1] = 2.0 * largest;
    prices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::random::SplitMix;

    /// Nodes of one to four modes, some of which cost the same.
    fn options(random: &mut SplitMix, nodes: usize) -> Options {
        let mut options = Options { all: vec![], ends: vec![] };
        for _ in 0..nodes {
            for _ in 0..1 + random.below(4) {
                let (cost, bytes) = (random.below(5) as f64, random.below(5) as f64);
                options.all.push(Sum { cost, bytes });
            }
            options.ends.push(options.all.len());
        }
        options
    }

    #[test]
    fn the_cheapest_mode_is_chosen_at_every_price() {
        let mut random = SplitMix::new(1);
        for nodes in 1..60 {
            let options = options(&mut random, nodes);
            let prices = prices(&options);
            assert!(prices.is_sorted() && prices[0] == 0.0, "{prices:?}");
            for options in options.by_node() {
                let chosen = cheapest(options, &prices);
                for (i, price) in prices.iter().enumerate() {
                    let paid = |sum: &Sum| (sum.cost + price * sum.bytes, sum.bytes);
                    let least = options.iter().map(paid).reduce(|a, b| if b < a { b } else { a }).unwrap();
                    assert_eq!(paid(&Sum { cost: chosen.cost[i], bytes: chosen.bytes[i] }), least);
                }
                // At the last price all have changed their minds.
                let smallest = options.iter().map(|sum| sum.bytes).fold(f64::INFINITY, f64::min);
                assert_eq!(
                    chosen.bytes[PRICES - 1],
                    if prices[1..] == [0.0; PRICES - 1] { chosen.bytes[0] } else { smallest }
                );
            }
        }
        assert_eq!(cheapest(&[], &[1.0; PRICES]).cost, [0.0; PRICES]);
    }
}

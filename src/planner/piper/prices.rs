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
//! A table for each (degree, replicas, microbatches in flight) that is asked about, `O(sets · prices)` time and memory; no
//! more are made once [`MOST_BYTES`] are full. Threads share them: whoever needs one first makes it, and others that need it
//! meanwhile wait.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use super::{
    blocks::{Block, SIZES},
    model::{Choice, Degree, PiperModel, StageCost},
};

/// Prices in a table.
const PRICES: usize = 8;
/// Bytes of tables.
const MOST_BYTES: usize = 192 << 20;

/// Tables are made for blocks once stages were to be decided on, at least one for so many sets.
const WORTH_A_TABLE: usize = 8;

/// What the nodes of a set pay and hold at one price.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    cost: f64,
    bytes: f64,
}

type Sums = [Sum; PRICES];

/// Sums by set for one degree, number of replicas and of microbatches in flight.
struct Table {
    /// Seconds a byte, ascending; the first is 0.
    prices: [f64; PRICES],
    /// By price: the most that one node pays more than at the price before.
    steps: [f64; PRICES],
    sums: Vec<Sums>,
    /// By set: what its nodes pay at each price, memory included.
    paid: Vec<[f64; PRICES]>,
    /// By size of blocks and block: the most that one of its sets pays.
    most_paid: [Vec<[f64; PRICES]>; SIZES.len()],
    /// What the memory there is is worth at each price, and what sums may be off by.
    worth: [f64; PRICES],
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

/// `None` where there was no memory left for one.
type Row = Box<[OnceLock<Option<Box<Table>>>]>;

/// The tables, as one thread asks them.
pub(super) struct Prices {
    tables: Arc<Tables>,
    /// Stages that were to be decided on.
    decided: usize,
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
        let size = model.sets.len() * (size_of::<Sums>() + size_of::<[f64; PRICES]>());
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
        row.get(y as usize)?.get()?.as_deref()
    }

    /// A table, made now if there is memory left for it.
    fn table(&self, model: &PiperModel<'_>, degree: usize, d: u32, y: u32) -> Option<&Table> {
        let row = self.rows[degree].get(row(model, degree, d)?)?;
        if row.get().is_none() && self.left.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let row = row.get_or_init(|| (0..self.width).map(|_| OnceLock::new()).collect());
        let make = || {
            let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            taken.is_ok().then(|| Box::new(Table::new(model, degree, d, y, self.memory_bytes)))
        };
        row.get(y as usize)?.get_or_init(make).as_deref()
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
        Prices { tables, decided: 0 }
    }

    /// Whether the stage may keep to `target` with no thought of memory, going by the cheapest mode of each node and the
    /// cheapest of each edge; `None` if there is no table to tell.
    pub(super) fn may_keep_to(&mut self, model: &PiperModel<'_>, asked: Asked<'_>, target: f64) -> Option<bool> {
        let d = asked.d;
        let room = self.room(model, asked);
        let table = self.tables.table(model, asked.degree, d, 1)?;
        let cost = table.sums[asked.outer][0].cost - table.sums[asked.inner][0].cost;
        let least = cost + beside(model, asked, asked.stage.edge_least);
        Some(least - room <= target * f64::from(d))
    }

    /// Whether the stage can keep to `target` with `y` microbatches in flight, if the bounds tell.
    pub(super) fn decided(&mut self, model: &PiperModel<'_>, asked: Asked<'_>, y: u32, target: f64) -> Option<bool> {
        let memory_bytes = self.tables.memory_bytes;
        self.decided += 1;
        let room = self.room(model, asked);
        let table = self.tables.table(model, asked.degree, asked.d, y)?;
        let (outer, inner) = (&table.sums[asked.outer], &table.sums[asked.inner]);
        let all_bytes = table.sums[table.sums.len() - 1][0].bytes;
        let bytes_room = bytes_room(model, memory_bytes, all_bytes);
        let budget = target * f64::from(asked.d);
        let most_lower = budget - beside(model, asked, asked.stage.edge_least) + room;
        let (mut upper, mut over) = (f64::INFINITY, Sum::default());
        for i in 0..PRICES {
            let now = Sum { cost: outer[i].cost - inner[i].cost, bytes: outer[i].bytes - inner[i].bytes };
            if now.cost + table.prices[i] * (now.bytes - memory_bytes - bytes_room) > most_lower {
                return Some(false);
            }
            if upper.is_infinite() {
                if now.bytes + bytes_room <= memory_bytes {
                    upper = now.cost;
                    if i > 0 {
                        let part = table.prices[i] * (over.bytes - memory_bytes + bytes_room) + table.steps[i];
                        upper = upper.min(over.cost + part);
                    }
                }
                over = now;
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
            .is_some_and(|table| table.least_s(&table.paid[outer], &table.paid[inner]) > most)
    }

    /// Whether every stage of `outer` in front of a set of a block is.
    #[inline]
    pub(super) fn is_block_out_of_reach(
        &mut self,
        model: &PiperModel<'_>,
        stage @ (degree, d, y): (usize, u32, u32),
        (outer, (size, block)): (usize, Block),
        most: f64,
    ) -> bool {
        // Where memory is no matter a table would tell nothing that sums do not.
        if self.decided * WORTH_A_TABLE < model.sets.len() && self.tables.known(model, stage).is_none() {
            return false;
        }
        let Some(table) = self.tables.table(model, degree, d, y) else { return false };
        table.least_s(&table.paid[outer], &table.most_paid[size][block]) > most
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
    /// Seconds of a stage on one replica at the least, from what two sets pay.
    #[inline]
    fn least_s(&self, outer: &[f64; PRICES], inner: &[f64; PRICES]) -> f64 {
        let mut least = f64::NEG_INFINITY;
        for i in 0..PRICES {
            least = least.max(outer[i] - inner[i] - self.worth[i]);
        }
        least
    }

    fn new(model: &PiperModel<'_>, degree: usize, d: u32, y: u32, memory_bytes: f64) -> Self {
        let degree = &model.degrees[degree];
        let in_flight = f64::from(y);
        let options = Options::new(model, degree, (d, in_flight), memory_bytes);
        let prices = prices(&options);
        let chosen: Vec<Sums> = options.by_node().map(|options| prices.map(|price| choice(options, price))).collect();
        let mut steps = [0.0; PRICES];
        for i in 1..PRICES {
            steps[i] = chosen.iter().map(|sums| sums[i].cost - sums[i - 1].cost).fold(0.0, f64::max);
        }
        let mut sums: Vec<Sums> = Vec::with_capacity(model.sets.len());
        sums.push(Sums::default());
        for set in 1..model.sets.len() {
            let within = model.within[set] as usize;
            let mut sum = sums[within];
            for v in model.sets.beyond(set, within) {
                for (sum, node) in sum.iter_mut().zip(&chosen[v]) {
                    sum.cost += node.cost;
                    sum.bytes += node.bytes;
                }
            }
            sums.push(sum);
        }
        let paid: Vec<[f64; PRICES]> =
            sums.iter().map(|sums| std::array::from_fn(|i| sums[i].cost + prices[i] * sums[i].bytes)).collect();
        let full = sums.len() - 1;
        let memory_bytes = memory_bytes + bytes_room(model, memory_bytes, sums[full][0].bytes);
        let worth = std::array::from_fn(|i| prices[i] * memory_bytes + rounding(model) * paid[full][i]);
        let most = |block: &[u32]| {
            block.iter().fold([f64::NEG_INFINITY; PRICES], |most: [f64; PRICES], &set| {
                std::array::from_fn(|i| most[i].max(paid[set as usize][i]))
            })
        };
        let most_paid = SIZES.map(|size| model.by_device_seconds.chunks(size).map(most).collect());
        Table { prices, steps, sums, paid, most_paid, worth }
    }
}

/// Modes by node: what they cost beside edges, and what they hold; those that fit, where any does.
struct Options {
    all: Vec<Sum>,
    ends: Vec<usize>,
}

impl Options {
    fn new(model: &PiperModel<'_>, degree: &Degree, (d, in_flight): (u32, f64), memory_bytes: f64) -> Self {
        let fits = |sum: &Sum| sum.bytes <= memory_bytes * (1.0 + 1e-9);
        let mut all: Vec<Sum> = vec![];
        let ends = degree.choices.iter().map(|choices| {
            let options = choices
                .iter()
                .map(|choice| Sum { cost: cost(model, degree, choice, d), bytes: choice.memory(in_flight) });
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

/// Seconds of a mode on one replica beside its edges; its parameters only where modes differ in them.
fn cost(model: &PiperModel<'_>, degree: &Degree, choice: &Choice, d: u32) -> f64 {
    let parameters = if degree.uniform { 0.0 } else { choice.parameters };
    choice.time_s + model.load(0.0, parameters, 0.0, d) * f64::from(d)
}

/// The cheapest option at a price; of equals the smallest. Nothing for a node without options.
fn choice(options: &[Sum], price: f64) -> Sum {
    let paid = |sum: &Sum| sum.cost + price * sum.bytes;
    let better = |a: Sum, b: Sum| {
        let order = paid(&b).total_cmp(&paid(&a)).then(b.bytes.total_cmp(&a.bytes));
        if order.is_lt() { b } else { a }
    };
    options.iter().copied().reduce(better).unwrap_or_default()
}

/// Prices at which about as many nodes each change their minds; at the last one all have.
fn prices(options: &Options) -> [f64; PRICES] {
    let mut ratios = vec![];
    for options in options.by_node() {
        let fastest = choice(options, 0.0);
        let slower = options.iter().filter(|option| option.bytes < fastest.bytes);
        ratios.extend(slower.map(|option| (option.cost - fastest.cost) / (fastest.bytes - option.bytes)));
    }
    ratios.retain(|ratio| ratio.is_finite());
    ratios.sort_by(f64::total_cmp);
    let mut prices = [0.0; PRICES];
    if let Some(&largest) = ratios.last() {
        for (i, price) in prices.iter_mut().enumerate().skip(1) {
            *price = ratios[(ratios.len() * i / (PRICES - 1)).min(ratios.len() - 1)];
        }
        prices[PRICES - 1] = 2.0 * largest;
    }
    prices
}

//! One table of the best contiguous split: for every closed set the least max-load below a bound, by CPUs and accelerators.
//!
//! From each closed set a walk goes down to those below it ([`Walk`]). What keeps the walks short:
//!
//! * Each closed set knows, for every number of devices, how much compute the largest closed set within it has that holds a value
//!   (`near`). A walk only goes where an entry that it still works for has such a closed set within one device's reach;
//!   a closed set from which no device reaches any is not walked from at all.
//! * It also turns back where what it holds sends so much to classes outside its closed set, which it never reaches, that no
//!   device has the time.
//! * A closed set is of no use to larger ones if the closed set with one class more has values as good everywhere, and that class
//!   computes for longer than all its transfers take: whatever comes later is no worse off without the class, since it
//!   saves the compute and at most its transfers are added. (Whichever stages a class leaves and enters, what they then
//!   send is at most what they sent before and what the class sends alone.)
//!
//! Closed sets of one size are independent of one another and shared among threads. Memory
//! `O(sets · (c + 1)(f + 1))`, time `O(pairs · degree)` at worst, with far fewer pairs than there are.

use std::{
    ops::Range,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    super::{
        DeviceKind,
        lattice::{Lattice, Onward, Refused, Walk},
        load::{ClassCosts, Sums},
        need::Need,
        packing::Packing,
    },
    ROUNDING, Stage,
};
use crate::planner::{Search, team::in_step};

/// The values of all closed sets, by CPUs and accelerators.
pub(super) struct Table<'a> {
    lattice: &'a Lattice,
    costs: &'a ClassCosts,
    /// What every closed set sums to.
    sums: Vec<Sums>,
    cpus: usize,
    accelerators: usize,
    upper: f64,
    memory: f64,
    /// `values[(set · (cpus + 1) + c) · (accelerators + 1) + f]`; infinite where not below the bound or of no use.
    values: Vec<f64>,
    /// The most compute of a closed set with a value within each, itself included; rounded up, so that it never says too little.
    /// By the same places on accelerators, then where there are CPUs by the same on those.
    near: Vec<f32>,
    /// The least value of each closed set that larger ones may build on.
    least: Vec<f64>,
    /// Whether a class computes for longer than its transfers take.
    heavy: Vec<bool>,
    need: Need,
    prefixes: Packing,
    suffixes: Packing,
    full: Sums,
}

/// There is no closed set with a value within this one.
const NOWHERE: f32 = -1.0;

/// At least so much compute.
fn rounded_up(time: f64) -> f32 {
    (time as f32).next_up()
}

/// At most so much compute; nothing is less than none.
#[inline]
fn rounded_down(time: f64) -> f32 {
    (time.max(0.0) as f32).next_down()
}

/// Memory of a table that is through.
#[derive(Debug, Default)]
pub(super) struct Space {
    values: Vec<f64>,
    near: Vec<f32>,
    least: Vec<f64>,
    sums: Vec<Sums>,
}

/// A number of CPUs, and the least and most accelerators with which a closed set is of use beside them.
type Useful = (usize, usize, usize);

/// The entries of a closed set that have no good enough value yet, by their places in its row, and the entries of others that
/// they build on.
#[derive(Debug, Default)]
struct Open {
    entries: Vec<usize>,
    /// Entries with one accelerator less.
    before_accelerator: Vec<usize>,
    /// Entries with one CPU less.
    before_cpu: Vec<usize>,
}

impl Open {
    /// Begins with these entries, in the memory of the last ones.
    fn begin(&mut self, entries: impl Iterator<Item = usize>, row: usize) {
        self.entries.clear();
        self.entries.extend(entries);
        self.find_sources(row);
    }

    fn find_sources(&mut self, row: usize) {
        let Open { entries, before_accelerator, before_cpu } = self;
        before_accelerator.clear();
        before_accelerator.extend(entries.iter().filter(|&at| at % row > 0).map(|at| at - 1));
        before_cpu.clear();
        before_cpu.extend(entries.iter().filter_map(|at| at.checked_sub(row)));
    }

    /// Keeps what has no value below the bound up to `enough`.
    fn keep_open(&mut self, here: &mut [f64], row: usize, upper: f64, enough: f64) {
        let before = self.entries.len();
        self.entries.retain(|&at| {
            take_fewer(here, at, row);
            here[at] >= upper || here[at] > enough
        });
        if self.entries.len() < before {
            self.find_sources(row);
        }
    }

    /// Whether none builds on a closed set that holds as much as an accelerator and a CPU must find there, of those that `near`
    /// knows of.
    #[inline]
    fn far(&self, near: &[f32], accelerator: f64, cpu: f64) -> bool {
        let (least, cpus) = (rounded_down(accelerator), near.len() / 2);
        self.before_accelerator.iter().all(|&at| near[at] < least)
            && (cpu == f64::INFINITY || self.before_cpu.iter().all(|&at| near[cpus + at] < rounded_down(cpu)))
    }
}

/// What one thread needs to visit closed sets, and what it found out about those of a level.
struct Visitor<'a> {
    walk: Walk<'a>,
    ranges: Vec<Useful>,
    open: Open,
    sets: Vec<usize>,
    /// Their rows, one after the other, and the least value of each.
    values: Vec<f64>,
    near: Vec<f32>,
    least: Vec<f64>,
    /// What they make useless, of the level before.
    useless: Vec<usize>,
    pairs: u64,
}

/// The closed sets of a size that nobody has taken yet, so many at a time.
#[derive(Debug, Default)]
struct Level {
    next: AtomicUsize,
    end: usize,
    few: usize,
}

impl<'a> Visitor<'a> {
    fn new(lattice: &'a Lattice, costs: &'a ClassCosts) -> Self {
        let (walk, open) = (Walk::new(lattice, costs), Open::default());
        let (sets, values, near, least) = (vec![], vec![], vec![], vec![]);
        Visitor { walk, ranges: vec![], open, sets, values, near, least, useless: vec![], pairs: 0 }
    }

    /// Visits some closed sets of a level, until none is left.
    fn visit_some(&mut self, table: &Table<'_>, level: &Level, enough: f64, search: &Search) {
        let Visitor { walk, ranges, open, sets, values, near, least, useless, pairs } = self;
        let (cells, width) = (table.cells(), table.width());
        loop {
            let from = level.next.fetch_add(level.few, Ordering::Relaxed);
            if from >= level.end {
                return;
            }
            for set in from..level.end.min(from + level.few) {
                let places = (values.len(), near.len());
                sets.push(set);
                values.resize(places.0 + cells, f64::INFINITY);
                near.resize(places.1 + width, NOWHERE);
                let (values, near) = (&mut values[places.0..], &mut near[places.1..]);
                table.approach(set, &table.near, near);
                *pairs += table.visit(set, enough, (values, near), (walk, ranges, open), search);
                let own = least_of(values);
                least.push(own);
                if own.is_finite() {
                    useless.extend(table.made_useless(set, values, enough));
                    table.arrive(set, values, near);
                }
            }
        }
    }

    /// Notes in the table what was found out, and adds to the closed sets that are useless now; the number of pairs looked at.
    fn hand_over(&mut self, table: &mut Table<'_>, useless: &mut Vec<usize>) -> u64 {
        let (cells, width) = (table.cells(), table.width());
        let rows = self.values.chunks_exact(cells).zip(self.near.chunks_exact(width));
        for ((&set, &least), (values, near)) in self.sets.iter().zip(&self.least).zip(rows) {
            table.values[set * cells..(set + 1) * cells].copy_from_slice(values);
            table.near[set * width..(set + 1) * width].copy_from_slice(near);
            table.least[set] = least;
        }
        self.sets.clear();
        self.values.clear();
        self.near.clear();
        self.least.clear();
        useless.append(&mut self.useless);
        std::mem::take(&mut self.pairs)
    }
}

/// Closed sets that a thread takes at a time: so many parts for each thread, unless they are large.
const PARTS_OF_A_THREAD: usize = 8;
const MOST_AT_A_TIME: usize = 16;
/// A class computes for longer than its transfers take if it does by so much of the bound: more than what sums are off by.
const MARGIN: f64 = ROUNDING;

impl<'a> Table<'a> {
    pub(super) fn new(
        lattice: &'a Lattice,
        costs: &'a ClassCosts,
        cpus: usize,
        accelerators: usize,
        upper: f64,
        memory: f64,
        Space { mut values, mut near, mut least, mut sums }: Space,
    ) -> Self {
        let cells = (cpus + 1) * (accelerators + 1);
        // What is known of larger closed sets is found out before it is asked for, unless there is no need to.
        values.resize(cells * lattice.len(), f64::INFINITY);
        values[cells * (lattice.len() - 1)..].fill(f64::INFINITY);
        values[..cells].fill(0.0);
        let width = width(cells, cpus);
        near.resize(width * lattice.len(), NOWHERE);
        near[..width].fill(rounded_up(0.0));
        least.clear();
        least.resize(lattice.len(), f64::INFINITY);
        least[0] = 0.0;
        let transfers = |x: usize| costs.nets(x).iter().map(|&net| costs.net_cost(net as usize)).sum::<f64>();
        let heavy = |x: usize| {
            let spare = costs.accelerator[x] - transfers(x);
            spare > MARGIN * upper || (costs.accelerator[x] == 0.0 && spare == 0.0)
        };
        let (prefixes, (suffixes, ())) = rayon::join(
            || Packing::of_prefixes(lattice, costs, cpus, upper),
            || rayon::join(|| Packing::of_suffixes(lattice, costs, cpus, upper), || lattice.sum_up(costs, &mut sums)),
        );
        let full = sums[lattice.len() - 1];
        Table {
            lattice,
            costs,
            sums,
            cpus,
            accelerators,
            upper,
            memory,
            values,
            near,
            least,
            heavy: (0..costs.len()).map(heavy).collect(),
            need: Need::new(costs, cpus, upper, memory),
            prefixes,
            suffixes,
            full,
        }
    }

    /// The memory of the table, for the next one.
    pub(super) fn into_space(self) -> Space {
        Space { values: self.values, near: self.near, least: self.least, sums: self.sums }
    }

    fn cells(&self) -> usize {
        (self.cpus + 1) * (self.accelerators + 1)
    }

    /// What is known to lie within one set takes so many places.
    fn width(&self) -> usize {
        width(self.cells(), self.cpus)
    }

    /// The least and most accelerators with which a closed set is of use beside `c` CPUs; none if the first is larger.
    fn useful(&self, set: usize, c: usize, inside: &Sums) -> (usize, usize) {
        let outside = Sums {
            cpu: 0.0,
            accelerator: self.full.accelerator - inside.accelerator,
            cut: inside.cut,
            size: self.full.size - inside.size,
            ..Sums::default()
        };
        let least = self.need.accelerators(c, inside).max(self.prefixes.fewest(set, c) as usize);
        let rest = self.need.accelerators(self.cpus - c, &outside);
        let rest = rest.max(self.suffixes.fewest(set, self.cpus - c) as usize);
        if rest > self.accelerators { (1, 0) } else { (least, self.accelerators - rest) }
    }

    /// Fills the table by size of closed set, unless the whole obviously needs more devices, where values up to `enough` need
    /// not be the least; the number of pairs looked at.
    ///
    /// Closed sets of one size know nothing of one another: they are shared among threads.
    pub(super) fn fill(&mut self, enough: f64, round: i32, search: &Search) -> Result<u64, Refused> {
        let (least, most) = self.useful(self.lattice.len() - 1, self.cpus, &self.full);
        if least > most {
            return Ok(0);
        }
        // How many rounds there will be is not known: each is half of what is left.
        let share = 0.5_f64.powi(round);
        let (lattice, costs) = (self.lattice, self.costs);
        let levels = lattice.levels();
        let widest = levels.iter().map(ExactSizeIterator::len).max().unwrap_or(1);
        let threads = rayon::current_num_threads().min(widest);
        let visitor = |_| Mutex::new(Visitor::new(lattice, costs));
        let visitors: Vec<Mutex<Visitor<'_>>> = (0..threads).map(visitor).collect();
        // Read by all while they visit, written by who leads in between.
        let shared = RwLock::new((self, Level::default()));
        let work = |own: usize, _| {
            let shared = shared.read().unwrap_or_else(PoisonError::into_inner);
            let (table, level) = &*shared;
            let mut visitor = visitors[own].lock().unwrap_or_else(PoisonError::into_inner);
            visitor.visit_some(table, level, enough, search);
        };
        in_step(threads, work, |all| {
            let mut pairs = 0;
            for (size, level) in levels.iter().enumerate().skip(1) {
                if search.cancelled() {
                    return Err(Refused::Cancelled);
                }
                search.report_fraction(1.0 - share * (2.0 - level.end as f64 / lattice.len() as f64));
                let few = (level.len() / (PARTS_OF_A_THREAD * threads)).clamp(1, MOST_AT_A_TIME);
                shared.write().unwrap_or_else(PoisonError::into_inner).1 =
                    Level { next: level.start.into(), end: level.end, few };
                let hands = if level.len() > 1 {
                    all()
                } else {
                    work(0, 1);
                    1
                };
                let table = &mut *shared.write().unwrap_or_else(PoisonError::into_inner).0;
                let mut useless = vec![];
                for visitor in &visitors[..hands] {
                    let mut visitor = visitor.lock().unwrap_or_else(PoisonError::into_inner);
                    pairs += visitor.hand_over(table, &mut useless);
                }
                if size > 1 {
                    table.forsake(useless, levels[size - 1].clone(), level.clone());
                }
            }
            if search.cancelled() { Err(Refused::Cancelled) } else { Ok(pairs) }
        })
    }

    /// Learns what lies within a closed set and is smaller: what lies within those below.
    fn approach(&self, set: usize, below: &[f32], here: &mut [f32]) {
        here.fill(NOWHERE);
        for &(lower, _) in self.lattice.below(set) {
            let lower = lower as usize * here.len();
            for (at, &other) in below[lower..lower + here.len()].iter().enumerate() {
                here[at] = here[at].max(other);
            }
        }
    }

    /// Adds a closed set with these values to what lies within it.
    fn arrive(&self, set: usize, values: &[f64], near: &mut [f32]) {
        let Sums { accelerator, cpu, .. } = self.sums[set];
        for (near, own) in near.chunks_exact_mut(values.len()).zip([accelerator, cpu]) {
            let own = rounded_up(own);
            let here = near.iter_mut().zip(values).filter(|(_, value)| value.is_finite());
            here.for_each(|(near, _)| *near = near.max(own));
        }
    }

    /// The closed sets with a class less that are of no use to larger ones beside a set with these values, of which there are.
    fn made_useless(&self, set: usize, values: &[f64], enough: f64) -> impl Iterator<Item = usize> {
        let cells = self.cells();
        let as_good = move |(&more, &less): (&f64, &f64)| less == f64::INFINITY || more <= less.max(enough);
        let useless = move |&(below, class): &(u32, u32)| {
            let below = below as usize;
            let row = &self.values[below * cells..(below + 1) * cells];
            let useless = self.heavy[class as usize] && self.least[below].is_finite();
            (useless && values.iter().zip(row).all(as_good)).then_some(below)
        };
        self.lattice.below(set).iter().filter_map(useless)
    }

    /// Leaves closed sets of a level out of what follows that the next one makes useless.
    fn forsake(&mut self, useless: Vec<usize>, smaller: Range<usize>, larger: Range<usize>) {
        if useless.is_empty() {
            return;
        }
        let (lattice, cells, width) = (self.lattice, self.cells(), self.width());
        let mut forsaken = vec![false; smaller.len()];
        for set in useless {
            self.least[set] = f64::INFINITY;
            forsaken[set - smaller.start] = true;
        }
        // They are no longer within themselves, nor within those of the next level.
        let lost = |set: &usize| lattice.below(*set).iter().any(|&(below, _)| forsaken[below as usize - smaller.start]);
        let mut near = std::mem::take(&mut self.near);
        for set in smaller.clone().filter(|set| forsaken[set - smaller.start]).chain(larger.filter(lost)) {
            let (below, rest) = near.split_at_mut(set * width);
            self.approach(set, below, &mut rest[..width]);
            if self.least[set].is_finite() {
                self.arrive(set, &self.values[set * cells..(set + 1) * cells], &mut rest[..width]);
            }
        }
        self.near = near;
    }

    /// Finds the values of one closed set from those of smaller ones; the number of pairs looked at.
    fn visit(
        &self,
        set: usize,
        enough: f64,
        (here, near_here): (&mut [f64], &[f32]),
        (walk, ranges, open): (&mut Walk<'_>, &mut Vec<Useful>, &mut Open),
        search: &Search,
    ) -> u64 {
        let row = self.accelerators + 1;
        let (cells, width) = (self.cells(), self.width());
        let inside = self.sums[set];
        let useful = (0..=self.cpus).map(|c| (c, self.useful(set, c, &inside)));
        ranges.clear();
        ranges.extend(useful.filter(|(_, (least, most))| least <= most).map(|(c, (least, most))| (c, least, most)));
        if ranges.is_empty() {
            return 0;
        }
        let entries = |&(c, from, to): &Useful| c * row + from..=c * row + to;
        open.begin(ranges.iter().flat_map(entries), row);
        // A little less, so that rounding rules out nothing.
        let reach = |sum: f64| sum - self.upper * (1.0 + 1e-9);
        let reach = (reach(inside.accelerator), reach(inside.cpu));
        if open.far(near_here, reach.0, reach.1) || search.cancelled() {
            return 0;
        }
        let (upper, memory) = (self.upper, self.memory);
        let any_cpu = self.cpus > 0;
        let mut pairs = 0;
        walk.down(set, |j, sums| {
            pairs += 1;
            let mut better = false;
            let accelerator_ends =
                sums.accelerator + sums.locked >= upper || sums.size > memory || sums.unsupported > 0 || row == 1;
            let cpu = if any_cpu { sums.cpu } else { f64::INFINITY };
            if self.least[j] < upper {
                let there = &self.values[j * cells..(j + 1) * cells];
                let load = if accelerator_ends { f64::INFINITY } else { sums.accelerator + sums.cut };
                if load < upper {
                    for &(c, from, to) in &*ranges {
                        let (from, base) = (from.max(1), c * row);
                        if from <= to {
                            let source = &there[base + from - 1..base + to];
                            better |= improve(&mut here[base + from..=base + to], source, load);
                        }
                    }
                }
                if cpu < upper {
                    for &(c, from, to) in ranges.iter().filter(|range| range.0 > 0) {
                        let base = c * row;
                        let source = &there[base - row + from..=base - row + to];
                        better |= improve(&mut here[base + from..=base + to], source, cpu);
                    }
                }
            }
            if better {
                open.keep_open(here, row, upper, enough);
                if open.entries.is_empty() {
                    return Onward::Stop;
                }
            }
            let by_accelerator = if accelerator_ends { f64::INFINITY } else { reach.0 + sums.locked };
            let by_cpu = if cpu < upper { reach.1 } else { f64::INFINITY };
            if open.far(&self.near[j * width..(j + 1) * width], by_accelerator, by_cpu) {
                Onward::Past
            } else {
                Onward::Below
            }
        });
        // What is not below the bound is of no use.
        for at in ranges.iter().flat_map(entries) {
            take_fewer(here, at, row);
            if here[at] >= upper {
                here[at] = f64::INFINITY;
            }
        }
        pairs
    }

    fn value(&self, set: usize, c: usize, f: usize) -> f64 {
        self.values[(set * (self.cpus + 1) + c) * (self.accelerators + 1) + f]
    }

    /// The value of the best split below the bound.
    pub(super) fn best(&self) -> Option<f64> {
        Some(self.value(self.lattice.len() - 1, self.cpus, self.accelerators)).filter(|value| value.is_finite())
    }

    /// The stages of the best split, first to last: the choices are found again by walking once per stage.
    pub(super) fn stages(&self) -> Vec<Stage> {
        let mut walk = Walk::new(self.lattice, self.costs);
        let mut stages = vec![];
        let (mut set, mut c, mut f) = (self.lattice.len() - 1, self.cpus, self.accelerators);
        while set > 0 {
            let value = self.value(set, c, f);
            if f > 0 && self.value(set, c, f - 1) == value {
                f -= 1;
                continue;
            }
            if c > 0 && self.value(set, c - 1, f) == value {
                c -= 1;
                continue;
            }
            let mut choice = None;
            let (values, row, cells) = (&self.values, self.accelerators + 1, (self.cpus + 1) * (self.accelerators + 1));
            let (upper, memory) = (self.upper, self.memory);
            walk.down(set, |j, sums| {
                let at = j * cells + c * row + f;
                let load = sums.on_accelerator(memory);
                if f > 0 && values[at - 1].max(load) == value {
                    choice = Some((j, DeviceKind::Accelerator));
                }
                if choice.is_none() && c > 0 && values[at - row].max(sums.cpu) == value {
                    choice = Some((j, DeviceKind::Cpu));
                }
                if choice.is_some() {
                    Onward::Stop
                } else if (f > 0 && sums.accelerator < upper && sums.unsupported == 0 && sums.size <= memory)
                    || (c > 0 && sums.cpu < upper)
                {
                    Onward::Below
                } else {
                    Onward::Past
                }
            });
            let (below, kind) = choice.expect("every value of the table comes from a pair");
            stages.push(Stage { kind, classes: self.lattice.between(set, below) });
            match kind {
                DeviceKind::Accelerator => f -= 1,
                DeviceKind::Cpu => c -= 1,
            }
            set = below;
        }
        stages.reverse();
        stages
    }
}

/// What is known to lie within a set of so many values: once for accelerators, and once for CPUs where there are any.
fn width(cells: usize, cpus: usize) -> usize {
    if cpus > 0 { 2 * cells } else { cells }
}

/// Takes over where a device of a load makes something better of the values below; whether it did anywhere.
#[inline]
fn improve(target: &mut [f64], source: &[f64], load: f64) -> bool {
    let mut better = false;
    // By place, in line and without a branch: see `lies_within`.
    let cells = target.len().min(source.len());
    let (target, source) = (&mut target[..cells], &source[..cells]);
    for at in 0..cells {
        let value = if source[at] > load { source[at] } else { load };
        better |= value < target[at];
        target[at] = if value < target[at] { value } else { target[at] };
    }
    better
}

/// A device may stay empty: takes over what one accelerator or CPU less is enough for.
#[inline]
fn take_fewer(here: &mut [f64], at: usize, row: usize) {
    let fewer_accelerators = if !at.is_multiple_of(row) { here[at - 1] } else { f64::INFINITY };
    let fewer_cpus = if at >= row { here[at - row] } else { f64::INFINITY };
    here[at] = here[at].min(fewer_accelerators).min(fewer_cpus);
}

fn least_of(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

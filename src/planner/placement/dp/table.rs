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
//! * A walk that gets longer than a look through all that larger sets may build on is given up for that look ([`Bases`]). Both find
//!   the same values, but for those that are good enough.
//!
//! Closed sets of one size are independent of one another and shared among threads (`fill`). Memory
//! `O(sets · (c + 1)(f + 1))`, time `O(pairs · degree)` at worst, with far fewer pairs than there are.

mod fill;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::{
    super::{
        DeviceKind,
        lattice::{Lattice, Onward, Walk},
        load::{ClassCosts, Sums},
        need::Need,
        packing::Packing,
    },
    ROUNDING, Stage,
    bases::{Bases, Compute, Outer},
};
use crate::planner::Search;

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
    /// The sets whose rows hold some, but the empty one.
    valued: Vec<usize>,
    /// The most compute of a closed set with a value within each, itself included; rounded up, so that it never says too little.
    /// By the same places on accelerators, then where there are CPUs by the same on those.
    near: Vec<f32>,
    /// The least value of each closed set that larger ones may build on.
    least: Vec<f64>,
    /// The closed sets that larger ones may build on, of the sizes that are through.
    bases: Bases,
    /// After how many pairs a walk is given up for a look through them that takes so many steps.
    patience: fn(u64) -> u64,
    forsaken: Forsaken,
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

/// Closed sets of a level that are of no use to larger ones.
#[derive(Debug, Default)]
struct Forsaken {
    first: usize,
    /// What they compute on an accelerator and on a CPU, by set from the first of the level on; none where one is of use.
    compute: Vec<Option<[f32; 2]>>,
}

/// Memory of a table that is through.
#[derive(Debug, Default)]
pub(super) struct Space {
    values: Vec<f64>,
    valued: Vec<usize>,
    near: Vec<f32>,
    least: Vec<f64>,
    sums: Vec<Sums>,
    bases: Bases,
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

/// What one thread needs to find the values of a closed set.
struct Tools<'a> {
    walk: Walk<'a>,
    ranges: Vec<Useful>,
    open: Open,
    outer: Outer,
    /// Whether a walk took longer than a look at all bases.
    tired: bool,
}

/// A walk is given up for a look through all bases once it has gone to a closed set for every so many steps of that look; to so
/// many at least.
const STEPS_OF_A_PAIR: u64 = 12;
const LEAST_PATIENCE: u64 = 128;
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
        Space { mut values, mut valued, mut near, mut least, mut sums, mut bases }: Space,
    ) -> Self {
        let cells = (cpus + 1) * (accelerators + 1);
        values.resize(cells * lattice.len(), f64::INFINITY);
        valued.drain(..).for_each(|set| values[cells * set..cells * (set + 1)].fill(f64::INFINITY));
        values[..cells].fill(0.0);
        // What lies within larger ones is found out before it is asked for.
        let width = width(cells, cpus);
        near.resize(width * lattice.len(), NOWHERE);
        near[..width].fill(rounded_up(0.0));
        least.clear();
        least.resize(lattice.len(), f64::INFINITY);
        least[0] = 0.0;
        bases.begin(costs.len());
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
            valued,
            near,
            least,
            bases,
            patience: |steps| LEAST_PATIENCE.max(steps / STEPS_OF_A_PAIR),
            forsaken: Forsaken::default(),
            heavy: (0..costs.len()).map(heavy).collect(),
            need: Need::new(costs, cpus, upper, memory),
            prefixes,
            suffixes,
            full,
        }
    }

    /// The memory of the table, for the next one.
    pub(super) fn into_space(self) -> Space {
        Space {
            values: self.values,
            valued: self.valued,
            near: self.near,
            least: self.least,
            sums: self.sums,
            bases: self.bases,
        }
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

    /// Learns what lies within a closed set and is smaller, that is within those below; nothing was known.
    fn approach(&self, set: usize, here: &mut [f32]) {
        for &(lower, _) in self.lattice.below(set) {
            let lower = lower as usize * here.len();
            for (at, &other) in self.near[lower..lower + here.len()].iter().enumerate() {
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
        // Having no value is not good enough, whatever is.
        let as_good = move |(&more, &less): (&f64, &f64)| {
            less == f64::INFINITY || (more < f64::INFINITY && more <= less.max(enough))
        };
        let useless = move |&(below, class): &(u32, u32)| {
            let below = below as usize;
            let row = &self.values[below * cells..(below + 1) * cells];
            let useless = self.heavy[class as usize] && self.least[below].is_finite();
            (useless && values.iter().zip(row).all(as_good)).then_some(below)
        };
        self.lattice.below(set).iter().filter_map(useless)
    }

    /// Leaves closed sets of a level out of what follows that the next one makes useless.
    fn forsake(&mut self, useless: &[usize], level: &Range<usize>) {
        let Table { forsaken: Forsaken { first, compute }, least, sums, .. } = self;
        *first = level.start;
        compute.clear();
        compute.resize(level.len(), None);
        for &set in useless {
            least[set] = f64::INFINITY;
            let Sums { accelerator, cpu, .. } = sums[set];
            compute[set - level.start] = Some([accelerator, cpu].map(rounded_up));
        }
    }

    /// Whether something may have left a closed set, since sets of the level before or of its own were forsaken: they are no longer
    /// within themselves, nor within those of the next level where they were the most.
    fn has_lost(&self, set: usize) -> bool {
        let Forsaken { first, compute } = &self.forsaken;
        if let Some(own) = compute.get(set - first) {
            return own.is_some();
        }
        let (cells, width) = (self.cells(), self.width());
        let near = &self.near[set * width..(set + 1) * width];
        let most = |own: [f32; 2]| near.chunks_exact(cells).zip(own).any(|(near, own)| near.contains(&own));
        self.lattice.below(set).iter().filter_map(|&(below, _)| compute[below as usize - first]).any(most)
    }

    /// Adds the closed sets of a level to those that larger ones may build on.
    fn gather(&mut self, level: &Range<usize>) {
        let Table { bases, lattice, least, sums, .. } = self;
        for set in level.clone().filter(|&set| least[set].is_finite()) {
            let Sums { accelerator, cpu, .. } = sums[set];
            bases.push(set, Compute { accelerator, cpu });
        }
        bases.draw(lattice);
    }

    /// Finds the values of one closed set from those of smaller ones; the number of pairs looked at.
    fn visit(
        &self,
        set: usize,
        enough: f64,
        (here, near_here): (&mut [f64], &[f32]),
        tools: &mut Tools<'_>,
        search: &Search,
    ) -> u64 {
        let Tools { walk, ranges, open, .. } = &mut *tools;
        let row = self.accelerators + 1;
        let width = self.width();
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
        let least = Compute { accelerator: reach.0, cpu: if self.cpus > 0 { reach.1 } else { f64::INFINITY } };
        let patience = (self.patience)(self.bases.steps(self.lattice, set, least));
        let ready = self.bases.ready();
        let (upper, mut pairs, mut tired) = (self.upper, 0, false);
        walk.down(set, |j, sums| {
            pairs += 1;
            let (load, cpu) = self.loads(sums);
            if self.least[j] < upper && self.build(j, (load, cpu), ranges, here) {
                open.keep_open(here, row, upper, enough);
                if open.entries.is_empty() {
                    return Onward::Stop;
                }
            }
            let by_accelerator = if load == f64::INFINITY { load } else { reach.0 + sums.locked };
            let by_cpu = if cpu < upper { reach.1 } else { f64::INFINITY };
            if open.far(&self.near[j * width..(j + 1) * width], by_accelerator, by_cpu) {
                return Onward::Past;
            }
            tired |= pairs >= patience;
            if tired && ready { Onward::Stop } else { Onward::Below }
        });
        if tired && ready {
            pairs += self.look(set, least, enough, here, tools);
        }
        let Tools { ranges, tired: any_tired, .. } = tools;
        *any_tired |= tired;
        // What is not below the bound is of no use.
        for at in ranges.iter().flat_map(entries) {
            take_fewer(here, at, row);
            if here[at] >= upper {
                here[at] = f64::INFINITY;
            }
        }
        pairs
    }

    /// Finds the values of a closed set from those of all bases that a device may reach; how many were looked at.
    fn look(&self, set: usize, least: Compute, enough: f64, here: &mut [f64], tools: &mut Tools<'_>) -> u64 {
        let Tools { walk, ranges, open, outer, .. } = tools;
        let lower = self.lattice.below(set);
        // Which of the level before are of use is not known yet.
        for &(below, class) in lower.iter().filter(|&&(below, _)| self.least[below as usize] < self.upper) {
            self.build_on(below as usize, [class].into_iter(), enough, here, (walk, ranges, open));
        }
        let mut look = self.bases.look(self.lattice, set, least, outer);
        while !open.entries.is_empty()
            && let Some(below) = look.next_base()
        {
            self.build_on(below, look.between(), enough, here, (walk, ranges, open));
        }
        (lower.len() + look.looked()) as u64
    }

    /// Takes over what builds on a closed set with a device of these classes, the last first.
    fn build_on(
        &self,
        below: usize,
        classes: impl Iterator<Item = u32> + Clone,
        enough: f64,
        here: &mut [f64],
        (walk, ranges, open): (&mut Walk<'_>, &[Useful], &mut Open),
    ) {
        let (row, cells) = (self.accelerators + 1, self.cells());
        let there = &self.values[below * cells..(below + 1) * cells];
        let better = |sources: &[usize], step: usize| sources.iter().any(|&at| there[at] < here[at + step]);
        if !better(&open.before_accelerator, 1) && !better(&open.before_cpu, row) {
            return;
        }
        let fits = |(load, cpu): (f64, f64)| load < f64::INFINITY || cpu < self.upper;
        let loads = self.loads(&walk.sum(classes, |sums| fits(self.loads(sums))));
        if self.build(below, loads, ranges, here) {
            open.keep_open(here, row, self.upper, enough);
        }
    }

    /// The loads of a device on an accelerator and on a CPU; infinite where no accelerator may hold so much or more, or there is none.
    #[inline(always)]
    fn loads(&self, sums: &Sums) -> (f64, f64) {
        let none = sums.accelerator + sums.locked >= self.upper || sums.size > self.memory;
        let none = none || sums.unsupported > 0 || self.accelerators == 0;
        let accelerator = if none { f64::INFINITY } else { sums.accelerator + sums.cut };
        (accelerator, if self.cpus > 0 { sums.cpu } else { f64::INFINITY })
    }

    /// Takes over what builds on a closed set with a device of these loads; whether anything is better.
    #[inline(always)]
    fn build(&self, below: usize, (load, cpu): (f64, f64), ranges: &[Useful], here: &mut [f64]) -> bool {
        let (row, cells) = (self.accelerators + 1, self.cells());
        let there = &self.values[below * cells..(below + 1) * cells];
        let mut better = false;
        if load < self.upper {
            for &(c, from, to) in ranges {
                let (from, base) = (from.max(1), c * row);
                if from <= to {
                    let source = &there[base + from - 1..base + to];
                    better |= improve(&mut here[base + from..=base + to], source, load);
                }
            }
        }
        if cpu < self.upper {
            for &(c, from, to) in ranges.iter().filter(|range| range.0 > 0) {
                let base = c * row;
                let source = &there[base - row + from..=base - row + to];
                better |= improve(&mut here[base + from..=base + to], source, cpu);
            }
        }
        better
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

//! One table of the best contiguous split: for every closed set the least max-load below a bound, by CPUs and accelerators.
//!
//! From each closed set a walk goes down to those below it ([`Walk`]). What keeps the walks short:
//!
//! * Each closed set knows, for the numbers of devices that matter, how much compute the largest closed set within it has that
//!   holds a value ([`Near`]). A walk only goes where an entry that it still works for has such a closed set within one device's reach;
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
//! Memory
//! `O(sets · (c + 1)(f + 1))` at worst, with cells only for devices that a set is of use with (`windows`), time
//! `O(pairs · degree)` at worst, with far fewer pairs than there are.

mod near;
#[cfg(test)]
mod tests;
mod values;
mod windows;

use std::ops::Range;

use self::{
    near::Near,
    values::Values,
    windows::Span,
};
use super::{
    super::{
        DeviceKind, PlacementLimits,
        lattice::{Lattice, Onward, Refused, Visit, Walk},
        load::{ClassCosts, Sums},
        need::Need,
        packing::Packing,
    },
    ROUNDING, Stage,
    bases::{Bases, Compute, Outer},
    devices,
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
    /// The least max-load of each closed set by CPUs and accelerators; infinite where not below the bound or of no use.
    values: Values,
    /// What lies within each closed set that a device may build on.
    near: Near,
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
    packings: Packings,
    full: Sums,
}

/// What prefixes and suffixes need below a bound, that of the table or one that is a little larger.
#[derive(Debug)]
struct Packings {
    bound: f64,
    prefixes: Packing,
    suffixes: Packing,
}

impl Packings {
    /// Below a bound that is so little larger, relative, hardly a set needs less: finding out takes longer than those are looked at.
    const CLOSE: f64 = 5e-3;

    /// Whether they do for a lower bound.
    fn will_do(&self, upper: f64) -> bool {
        upper <= self.bound && self.bound <= upper * (1.0 + Packings::CLOSE)
    }
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
    values: Values,
    near: Near,
    least: Vec<f64>,
    sums: Vec<Sums>,
    packings: Option<Packings>,
    bases: Bases,
}

/// Entries of a closed set: a number of CPUs, and the accelerators beside them, from one number to before another.
#[derive(Debug, Clone, Copy)]
struct Useful {
    c: usize,
    from: usize,
    to: usize,
}

impl Useful {
    /// The places in a row of values, in rows of so many numbers of accelerators.
    fn places(self, row: usize) -> Range<usize> {
        self.c * row + self.from..self.c * row + self.to
    }
}

/// The entries of a closed set that have no good enough value yet. Values with more accelerators are no larger: what is good
/// enough is behind them.
#[derive(Debug, Default)]
struct Open(Vec<Useful>);

impl Open {
    /// Keeps what has no value below the bound up to `enough`.
    fn keep_open(&mut self, here: &mut [f64], row: usize, upper: f64, enough: f64) {
        self.0.retain_mut(|entries| {
            entries.places(row).for_each(|at| take_fewer(here, at, row));
            let open = |&value: &f64| value >= upper || value > enough;
            entries.to = entries.from + here[entries.places(row)].iter().take_while(|value| open(value)).count();
            entries.from < entries.to
        });
    }
}

/// A walk down from a closed set for its values.
struct Descent<'t, 'a> {
    table: &'t Table<'a>,
    /// Its entries without a good enough value, and the values so far.
    open: &'t mut Open,
    here: &'t mut [f64],
    /// So much of its compute is more than what an accelerator or a CPU does.
    reach: (f64, f64),
    enough: f64,
    /// Closed sets so far, and after how many a look would take no longer.
    pairs: u64,
    patience: u64,
    /// Whether they were more.
    tired: bool,
}

/// As much as a base must compute that an accelerator or a CPU builds on; none is there where one holds too much.
type Aim = (f64, f64);

impl Descent<'_, '_> {
    /// What to look for where a device holds so much, or more.
    #[inline(always)]
    fn aim(&self, (load, cpu): (f64, f64), held: &Sums) -> Aim {
        let by_accelerator = if load == f64::INFINITY { load } else { self.reach.0 + held.locked };
        (by_accelerator, if cpu < self.table.upper { self.reach.1 } else { f64::INFINITY })
    }
}

impl Visit<Aim> for Descent<'_, '_> {
    #[inline(always)]
    fn is_worth(&mut self, set: usize, aim: Aim) -> bool {
        self.pairs += 1;
        !self.table.near.far(set, &self.open.0, aim)
    }

    #[inline(always)]
    fn visit(&mut self, set: usize, held: &Sums) -> Onward<Aim> {
        let table = self.table;
        let loads = table.loads(held);
        if table.least[set] < table.upper && table.build(set, loads, &self.open.0, self.here) {
            self.open.keep_open(self.here, table.accelerators + 1, table.upper, self.enough);
            if self.open.0.is_empty() {
                return Onward::Stop;
            }
        }
        let aim = self.aim(loads, held);
        if aim == (f64::INFINITY, f64::INFINITY) {
            return Onward::Past;
        }
        self.tired |= self.pairs >= self.patience;
        if self.tired && table.bases.ready() { Onward::Stop } else { Onward::Below(aim) }
    }
}

/// What is needed to find the values of a closed set.
struct Tools<'a> {
    walk: Walk<'a, Aim>,
    /// What is of use, and what of it is open.
    ranges: Vec<Useful>,
    open: Open,
    /// The values so far.
    here: Vec<f64>,
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
        limits: &PlacementLimits,
        upper: f64,
        Space { values, near, mut least, mut sums, packings, mut bases }: Space,
    ) -> Self {
        let [cpus, accelerators] = devices(limits, costs);
        debug_assert!(accelerators + 1 < usize::from(u16::MAX), "a table of so many devices is refused");
        let memory = limits.memory_bytes;
        least.clear();
        least.resize(lattice.len(), f64::INFINITY);
        least[0] = 0.0;
        bases.begin(costs.len());
        let transfers = |x: usize| costs.nets(x).iter().map(|&net| costs.net_cost(net as usize)).sum::<f64>();
        let heavy = |x: usize| {
            let spare = costs.accelerator[x] - transfers(x);
            spare > MARGIN * upper || (costs.accelerator[x] == 0.0 && spare == 0.0)
        };
        let pack = || Packings {
            bound: upper,
            prefixes: Packing::of_prefixes(lattice, costs, cpus, upper),
            suffixes: Packing::of_suffixes(lattice, costs, cpus, upper),
        };
        let packings = packings.filter(|packings| packings.will_do(upper)).unwrap_or_else(pack);
        lattice.sum_up(costs, &mut sums);
        let full = sums[lattice.len() - 1];
        let mut table = Table {
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
            bases,
            patience: |steps| LEAST_PATIENCE.max(steps / STEPS_OF_A_PAIR),
            forsaken: Forsaken::default(),
            heavy: (0..costs.len()).map(heavy).collect(),
            need: Need::new(costs, cpus, upper, memory),
            packings,
            full,
        };
        table.begin();
        table
    }

    /// Finds out with what each closed set is of use, and lays out what is known of them.
    fn begin(&mut self) {
        let row = self.cpus + 1;
        let useful = |at: usize| self.useful(at / row, at % row, &self.sums[at / row]);
        let mut useful: Vec<Span> = (0..row * self.lattice.len()).map(useful).collect();
        self.near.begin(self.lattice, &useful, row);
        // Nothing is on whatever devices there are.
        useful[..row].fill(Span::new(0, self.accelerators));
        self.values.begin(&useful, row);
    }

    /// The memory of the table, for the next one.
    pub(super) fn into_space(self) -> Space {
        Space {
            values: self.values,
            near: self.near,
            least: self.least,
            sums: self.sums,
            packings: Some(self.packings),
            bases: self.bases,
        }
    }

    fn cells(&self) -> usize {
        (self.cpus + 1) * (self.accelerators + 1)
    }

    /// The numbers of accelerators with which a closed set is of use beside `c` CPUs.
    fn useful(&self, set: usize, c: usize, inside: &Sums) -> Span {
        let outside = Sums {
            cpu: 0.0,
            accelerator: self.full.accelerator - inside.accelerator,
            cut: inside.cut,
            size: self.full.size - inside.size,
            ..Sums::default()
        };
        let least = self.need.accelerators(c, inside).max(self.packings.prefixes.fewest(set, c) as usize);
        let rest = self.need.accelerators(self.cpus - c, &outside);
        let rest = rest.max(self.packings.suffixes.fewest(set, self.cpus - c) as usize);
        self.accelerators.checked_sub(rest).map_or(Span::NONE, |most| Span::new(least, most))
    }

    /// The closed sets with a class less that are of no use to larger ones beside a set with these values, of which there are.
    fn made_useless(&self, set: usize, here: &[f64], enough: f64) -> impl Iterator<Item = usize> {
        let row = self.accelerators + 1;
        let useless = move |&(below, class): &(u32, u32)| {
            let below = below as usize;
            // Having no value is not good enough, whatever is.
            let as_good = |(less, &more): (f64, &f64)| {
                less == f64::INFINITY || (more < f64::INFINITY && more <= less.max(enough))
            };
            let values =
                |entries: Useful| self.values.of(below, entries).iter().copied().zip(&here[entries.places(row)]);
            let useless = self.heavy[class as usize] && self.least[below].is_finite();
            (useless && self.values.useful(below).flat_map(values).all(as_good)).then_some(below)
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
            compute[set - level.start] = Some(near::compute(&sums[set]));
        }
    }

    /// Whether something may have left a closed set, since sets of the level before or of its own were forsaken: they are no longer
    /// within themselves, nor within those of the next level where they were the most.
    fn has_lost(&self, set: usize) -> bool {
        let Forsaken { first, compute } = &self.forsaken;
        if let Some(own) = compute.get(set - first) {
            return own.is_some();
        }
        let most = |own: [f32; 2]| self.near.contains(set, own);
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

    /// Finds the values of one closed set from those of smaller ones, into `tools.here`; the number of pairs looked at, if there may
    /// be values.
    fn visit(&self, set: usize, enough: f64, tools: &mut Tools<'_>, search: &Search) -> Option<u64> {
        let Tools { walk, ranges, open, here, .. } = &mut *tools;
        let row = self.accelerators + 1;
        let inside = self.sums[set];
        ranges.clear();
        ranges.extend(self.values.useful(set));
        open.0.clone_from(ranges);
        // A little less, so that rounding rules out nothing.
        let reach = |sum: f64| sum - self.upper * (1.0 + 1e-9);
        let reach = (reach(inside.accelerator), reach(inside.cpu));
        if self.near.far(set, &open.0, reach) || search.cancelled() {
            return None;
        }
        here.clear();
        here.resize(self.cells(), f64::INFINITY);
        let least = Compute { accelerator: reach.0, cpu: if self.cpus > 0 { reach.1 } else { f64::INFINITY } };
        let patience = (self.patience)(self.bases.steps(self.lattice, set, least));
        let mut descent = Descent { table: self, open, here, reach, enough, pairs: 0, patience, tired: false };
        walk.down(set, reach, &mut descent);
        let Descent { mut pairs, tired, .. } = descent;
        if tired && self.bases.ready() {
            pairs += self.look(set, least, enough, tools);
        }
        let Tools { ranges, here, tired: any_tired, .. } = tools;
        *any_tired |= tired;
        // More devices than are good enough are as good. What is not below the bound is of no use.
        for at in ranges.iter().flat_map(|entries| entries.places(row)) {
            take_fewer(here, at, row);
            if here[at] >= self.upper {
                here[at] = f64::INFINITY;
            }
        }
        Some(pairs)
    }

    /// Finds the values of a closed set from those of all bases that a device may reach; how many were looked at.
    fn look(&self, set: usize, least: Compute, enough: f64, tools: &mut Tools<'_>) -> u64 {
        let Tools { walk, open, here, outer, .. } = tools;
        let lower = self.lattice.below(set);
        // Which of the level before are of use is not known yet.
        for &(below, class) in lower.iter().filter(|&&(below, _)| self.least[below as usize] < self.upper) {
            self.build_on(below as usize, [class].into_iter(), enough, here, (walk, open));
        }
        let mut look = self.bases.look(self.lattice, set, least, outer);
        while !open.0.is_empty()
            && let Some(below) = look.next_base()
        {
            self.build_on(below, look.between(), enough, here, (walk, open));
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
        (walk, open): (&mut Walk<'_, Aim>, &mut Open),
    ) {
        let row = self.accelerators + 1;
        // Whether entries with a device more than those below may become better.
        let better = |c: usize, (first, there): (usize, &[f64]), more: usize| {
            there.iter().zip(&here[c * row + first + more..]).any(|(there, here)| there < here)
        };
        let better = |&Useful { c, from, to }: &Useful| {
            better(c, self.values.within(below, c, from.saturating_sub(1), to - 1), 1)
                || (c > 0 && better(c, self.values.within(below, c - 1, from, to), 0))
        };
        if !open.0.iter().any(better) {
            return;
        }
        let fits = |(load, cpu): (f64, f64)| load < f64::INFINITY || cpu < self.upper;
        let loads = self.loads(&walk.sum(classes, |sums| fits(self.loads(sums))));
        if self.build(below, loads, &open.0, here) {
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

    /// Takes over what builds on a closed set with a device of these loads, where nothing is good enough yet; whether anything is better.
    #[inline(always)]
    fn build(&self, below: usize, (load, cpu): (f64, f64), open: &[Useful], here: &mut [f64]) -> bool {
        let row = self.accelerators + 1;
        let mut better = false;
        for &Useful { c, from, to } in open {
            if load < self.upper {
                let (first, there) = self.values.within(below, c, from.saturating_sub(1), to - 1);
                better |= improve(&mut here[c * row + first + 1..], there, load);
            }
            if c > 0 && cpu < self.upper {
                let (first, there) = self.values.within(below, c - 1, from, to);
                better |= improve(&mut here[c * row + first..], there, cpu);
            }
        }
        better
    }

    /// Writes the values of a closed set, the least of which is known.
    fn note(&mut self, set: usize, here: &[f64], least: f64) {
        self.least[set] = least;
        let row = self.accelerators + 1;
        for entries in self.values.useful(set).collect::<Vec<_>>() {
            self.values.of_mut(set, entries).copy_from_slice(&here[entries.places(row)]);
        }
    }

    /// Adds a closed set to what lies within it, with what it has values.
    fn arrive(&mut self, set: usize) {
        let own = near::compute(&self.sums[set]);
        for entries in self.values.useful(set) {
            for (accelerators, value) in (entries.from..).zip(self.values.of(set, entries)) {
                if value.is_finite() {
                    self.near.arrive(set, own, entries.c, accelerators);
                }
            }
        }
    }

    /// Finds anew what lies within a closed set if something has left.
    fn settle(&mut self, set: usize) {
        if self.has_lost(set) {
            self.near.approach(self.lattice, set);
            if self.least[set].is_finite() {
                self.arrive(set);
            }
        }
    }

    /// Fills the table by size of closed set, unless the whole obviously needs more devices, where values up to `enough` need
    /// not be the least; the number of pairs looked at.
    pub(super) fn fill(&mut self, enough: f64, round: i32, search: &Search) -> Result<u64, Refused> {
        if self.values.useful(self.lattice.len() - 1).all(|entries| entries.c < self.cpus) {
            return Ok(0);
        }
        // How many rounds there will be is not known: each is half of what is left.
        let share = 0.5_f64.powi(round);
        let levels = self.lattice.levels();
        let walk = Walk::new(self.lattice, self.costs);
        let (open, outer) = (Open::default(), Outer::default());
        let mut tools = Tools { walk, ranges: vec![], open, here: vec![], outer, tired: false };
        let (mut pairs, mut useless) = (0, vec![]);
        for (smaller, level) in levels.iter().zip(&levels[1..]) {
            if search.cancelled() {
                return Err(Refused::Cancelled);
            }
            search.report_fraction(1.0 - share * (2.0 - level.end as f64 / self.lattice.len() as f64));
            useless.clear();
            for set in level.clone() {
                if !self.near.approach(self.lattice, set) {
                    continue;
                }
                let Some(visited) = self.visit(set, enough, &mut tools, search) else { continue };
                pairs += visited;
                let least = tools.here.iter().copied().fold(f64::INFINITY, f64::min);
                if least < f64::INFINITY {
                    self.note(set, &tools.here, least);
                    useless.extend(self.made_useless(set, &tools.here, enough));
                    self.arrive(set);
                }
            }
            if std::mem::take(&mut tools.tired) {
                self.bases.want();
            }
            self.forsake(&useless, smaller);
            if !useless.is_empty() {
                smaller.clone().chain(level.clone()).for_each(|set| self.settle(set));
            }
            self.gather(smaller);
        }
        if search.cancelled() { Err(Refused::Cancelled) } else { Ok(pairs) }
    }

    /// The value of the best split below the bound.
    pub(super) fn best(&self) -> Option<f64> {
        Some(self.values.get(self.lattice.len() - 1, self.cpus, self.accelerators)).filter(|value| value.is_finite())
    }

    /// The stages of the best split, first to last: the choices are found again by walking once per stage.
    pub(super) fn stages(&self) -> Vec<Stage> {
        let mut walk = Walk::new(self.lattice, self.costs);
        let mut stages = vec![];
        let (mut set, mut c, mut f) = (self.lattice.len() - 1, self.cpus, self.accelerators);
        while set > 0 {
            let value = self.values.get(set, c, f);
            if f > 0 && self.values.get(set, c, f - 1) == value {
                f -= 1;
                continue;
            }
            if c > 0 && self.values.get(set, c - 1, f) == value {
                c -= 1;
                continue;
            }
            let mut choice = None;
            let (upper, memory) = (self.upper, self.memory);
            let mut find = |j: usize, sums: &Sums| {
                let load = sums.on_accelerator(memory);
                if f > 0 && self.values.get(j, c, f - 1).max(load) == value {
                    choice = Some((j, DeviceKind::Accelerator));
                }
                if choice.is_none() && c > 0 && self.values.get(j, c - 1, f).max(sums.cpu) == value {
                    choice = Some((j, DeviceKind::Cpu));
                }
                if choice.is_some() {
                    Onward::Stop
                } else if (f > 0 && sums.accelerator < upper && sums.unsupported == 0 && sums.size <= memory)
                    || (c > 0 && sums.cpu < upper)
                {
                    Onward::Below(())
                } else {
                    Onward::Past
                }
            };
            walk.down(set, (), &mut find);
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

/// Takes over where a device of a load makes something better of the values below; whether it did anywhere.
#[inline]
fn improve(target: &mut [f64], source: &[f64], load: f64) -> bool {
    let mut better = false;
    for (target, &source) in target.iter_mut().zip(source) {
        let value = source.max(load);
        better |= value < *target;
        *target = target.min(value);
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

//! Table of the best contiguous split: for every closed set the least max-load below a bound, by CPUs and accelerators.
//!
//! From each closed set a walk goes down to those below it ([`LatticeWalk`]). It turns back where the difference
//! exceeds a device, and where no closed set further down has a value that an open entry could use
//! ([`ReachableCompute`]). To know this, each closed set keeps, for every number of devices, the largest compute of a
//! closed set inside it that has a value.
//!
//! Memory `O(sets · (c + 1)(f + 1))` at worst, with cells only for the numbers of devices that the bound leaves to a
//! set ([`windows`]). Time `O(pairs · degree)` at worst; far fewer pairs are visited.

mod near;
mod values;
mod windows;

use std::ops::Range;

use self::{near::ReachableCompute, values::SetValues, windows::AcceleratorRange};
use super::{
    super::{
        DeviceKind, PlacementLimits,
        lattice::{Lattice, LatticeRefusal, LatticeWalk, NextStep, SetVisitor},
        load::{ClassCosts, Sums},
        need::AcceleratorNeed,
    },
    ClassStage, devices,
};
use plantui_core::search::Search;

/// Values of all closed sets, by CPUs and accelerators.
pub(super) struct SplitTable<'a> {
    lattice: &'a Lattice,
    costs: &'a ClassCosts,
    /// Sums over the classes of every closed set.
    sums: Vec<Sums>,
    cpus: usize,
    accelerators: usize,
    upper: f64,
    memory: f64,
    /// Least max-load of each closed set by CPUs and accelerators; infinite if not below the bound.
    values: SetValues,
    /// Compute within each closed set that a device may build on.
    near: ReachableCompute,
    /// Least value of each closed set.
    least: Vec<f64>,
}

/// Entries of a closed set: a number of CPUs, and a range of numbers of accelerators beside them.
#[derive(Debug, Clone, Copy)]
struct DeviceEntries {
    c: usize,
    from: usize,
    to: usize,
}

impl DeviceEntries {
    /// Positions in a table of values with `row` numbers of accelerators per number of CPUs.
    fn places(self, row: usize) -> Range<usize> {
        self.c * row + self.from..self.c * row + self.to
    }
}

/// Entries of a closed set that still need a good enough value. Values with more accelerators are no larger, so entries
/// with good enough values come last.
#[derive(Debug, Default)]
struct OpenEntries(Vec<DeviceEntries>);

impl OpenEntries {
    /// Drops entries with a value below the bound and at most `enough`.
    fn keep_open(&mut self, here: &mut [f64], row: usize, upper: f64, enough: f64) {
        self.0.retain_mut(|entries| {
            entries.places(row).for_each(|at| take_fewer(here, at, row));
            let open = |&value: &f64| value >= upper || value > enough;
            entries.to = entries.from + here[entries.places(row)].iter().take_while(|value| open(value)).count();
            entries.from < entries.to
        });
    }
}

/// Walk down from a closed set that finds its values.
struct SetDescent<'t, 'a> {
    table: &'t SplitTable<'a>,
    /// Entries without a good enough value.
    open: &'t mut OpenEntries,
    /// Values so far.
    here: &'t mut [f64],
    /// Compute of the set minus the most that one accelerator can take, and that one CPU can take.
    reach: (f64, f64),
    enough: f64,
    /// Closed sets visited.
    pairs: u64,
}

/// Least compute of a smaller closed set that one accelerator or one CPU completes to this set; infinite if the device
/// already holds too much.
type ComputeAim = (f64, f64);

impl SetVisitor<ComputeAim> for SetDescent<'_, '_> {
    #[inline(always)]
    fn is_worth(&mut self, set: usize, aim: ComputeAim) -> bool {
        self.pairs += 1;
        !self.table.near.far(set, &self.open.0, aim)
    }

    #[inline(always)]
    fn visit(&mut self, set: usize, held: &Sums) -> NextStep<ComputeAim> {
        let table = self.table;
        let (load, cpu) = table.loads(held);
        if table.least[set] < table.upper && table.build(set, (load, cpu), &self.open.0, self.here) {
            self.open.keep_open(self.here, table.accelerators + 1, table.upper, self.enough);
            if self.open.0.is_empty() {
                return NextStep::Stop;
            }
        }
        let by_accelerator = if load == f64::INFINITY { load } else { self.reach.0 + held.locked };
        let by_cpu = if cpu < table.upper { self.reach.1 } else { f64::INFINITY };
        if by_accelerator == f64::INFINITY && by_cpu == f64::INFINITY {
            return NextStep::Past;
        }
        NextStep::Below((by_accelerator, by_cpu))
    }
}

impl<'a> SplitTable<'a> {
    /// Lays out the cells for the numbers of devices with which each closed set is of use.
    pub(super) fn new(lattice: &'a Lattice, costs: &'a ClassCosts, limits: &PlacementLimits, upper: f64) -> Self {
        let [cpus, accelerators] = devices(limits, costs);
        debug_assert!(accelerators + 1 < usize::from(u16::MAX), "a table of so many devices is refused");
        let memory = limits.memory_bytes;
        let mut least = vec![f64::INFINITY; lattice.len()];
        least[0] = 0.0;
        let sums = lattice.sum_up(costs);
        let (full, need) = (sums[lattice.len() - 1], AcceleratorNeed::new(costs, cpus, upper, memory));
        // Enough accelerators beside `c` CPUs for the set, and enough left for the rest.
        let span = |c: usize, inside: &Sums| {
            let outside = Sums {
                cpu: 0.0,
                accelerator: full.accelerator - inside.accelerator,
                cut: inside.cut,
                size: full.size - inside.size,
                ..Sums::default()
            };
            let fewest = need.accelerators(c, inside);
            let rest = need.accelerators(cpus - c, &outside);
            accelerators.checked_sub(rest).map_or(AcceleratorRange::NONE, |most| AcceleratorRange::new(fewest, most))
        };
        let row = cpus + 1;
        let mut useful: Vec<AcceleratorRange> =
            (0..row * lattice.len()).map(|at| span(at % row, &sums[at / row])).collect();
        let near = ReachableCompute::new(lattice, &useful, row);
        // The empty set needs no devices: all numbers of devices are useful.
        useful[..row].fill(AcceleratorRange::new(0, accelerators));
        let values = SetValues::new(&useful, row);
        SplitTable { lattice, costs, sums, cpus, accelerators, upper, memory, values, near, least }
    }

    /// Fills the table by size of closed set, unless a lower bound shows that the whole set needs more devices. Values
    /// up to `enough` may be larger than the least. Returns the number of pairs visited.
    ///
    /// # Errors
    /// [`LatticeRefusal::Cancelled`].
    pub(super) fn fill(&mut self, enough: f64, round: i32, search: &Search) -> Result<u64, LatticeRefusal> {
        if self.values.useful(self.lattice.len() - 1).all(|entries| entries.c < self.cpus) {
            return Ok(0);
        }
        // The number of rounds is not known: each counts for half of what is left.
        let share = 0.5_f64.powi(round);
        let mut walk = LatticeWalk::new(self.lattice, self.costs);
        let (mut open, mut here, mut pairs) = (OpenEntries::default(), vec![], 0);
        for set in 1..self.lattice.len() {
            if search.cancelled() {
                return Err(LatticeRefusal::Cancelled);
            }
            search.report_fraction(1.0 - share * (2.0 - set as f64 / self.lattice.len() as f64));
            if self.near.approach(self.lattice, set) {
                pairs += self.find_values(set, enough, &mut walk, &mut open, &mut here);
            }
        }
        Ok(pairs)
    }

    /// Finds and writes the values of one closed set from those of smaller ones; the number of pairs visited.
    fn find_values(
        &mut self,
        set: usize,
        enough: f64,
        walk: &mut LatticeWalk<'a, ComputeAim>,
        open: &mut OpenEntries,
        here: &mut Vec<f64>,
    ) -> u64 {
        let row = self.accelerators + 1;
        let inside = self.sums[set];
        let useful: Vec<DeviceEntries> = self.values.useful(set).collect();
        open.0.clone_from(&useful);
        // A little less, against rounding.
        let reach = |sum: f64| sum - self.upper * (1.0 + 1e-9);
        let reach = (reach(inside.accelerator), reach(inside.cpu));
        if self.near.far(set, &open.0, reach) {
            return 0;
        }
        here.clear();
        here.resize((self.cpus + 1) * row, f64::INFINITY);
        let mut descent = SetDescent { table: self, open, here, reach, enough, pairs: 0 };
        walk.down(set, reach, &mut descent);
        let pairs = descent.pairs;
        // Entries with more devices than the first good enough one have its value. Values at or above the bound do not count.
        let mut least = f64::INFINITY;
        for at in useful.iter().flat_map(|entries| entries.places(row)) {
            take_fewer(here, at, row);
            if here[at] >= self.upper {
                here[at] = f64::INFINITY;
            }
            least = least.min(here[at]);
        }
        if least.is_finite() {
            self.least[set] = least;
            let compute = near::compute(&inside);
            for &entries in &useful {
                let own = &here[entries.places(row)];
                self.values.of_mut(set, entries).copy_from_slice(own);
                let finite = (entries.from..).zip(own).filter(|(_, value)| value.is_finite());
                finite.for_each(|(accelerators, _)| self.near.arrive(set, compute, entries.c, accelerators));
            }
        }
        pairs
    }

    /// Loads of a device on an accelerator and on a CPU; infinite if it exceeds an accelerator's memory, or there is no
    /// such device.
    #[inline(always)]
    fn loads(&self, sums: &Sums) -> (f64, f64) {
        let none = sums.accelerator + sums.locked >= self.upper || sums.size > self.memory;
        let none = none || sums.unsupported > 0 || self.accelerators == 0;
        let accelerator = if none { f64::INFINITY } else { sums.accelerator + sums.cut };
        (accelerator, if self.cpus > 0 { sums.cpu } else { f64::INFINITY })
    }

    /// Improves the open entries by a device of these loads on top of a closed set below; true if any is better.
    #[inline(always)]
    fn build(&self, below: usize, (load, cpu): (f64, f64), open: &[DeviceEntries], here: &mut [f64]) -> bool {
        let row = self.accelerators + 1;
        let mut better = false;
        for &DeviceEntries { c, from, to } in open {
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

    /// Value of the best split below the bound.
    pub(super) fn best(&self) -> Option<f64> {
        Some(self.values.get(self.lattice.len() - 1, self.cpus, self.accelerators)).filter(|value| value.is_finite())
    }

    /// Stages of the best split, first to last. The choices are found again by one walk per stage.
    pub(super) fn stages(&self) -> Vec<ClassStage> {
        let mut walk = LatticeWalk::new(self.lattice, self.costs);
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
                    NextStep::Stop
                } else if (f > 0 && sums.accelerator < upper && sums.unsupported == 0 && sums.size <= memory)
                    || (c > 0 && sums.cpu < upper)
                {
                    NextStep::Below(())
                } else {
                    NextStep::Past
                }
            };
            walk.down(set, (), &mut find);
            let (below, kind) = choice.expect("every value of the table comes from a pair");
            stages.push(ClassStage { kind, classes: self.lattice.between(set, below) });
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

/// Improves values by a device of a load on top of values below; true if any is better.
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

/// Takes the value with one accelerator or CPU fewer, if it is smaller: a device may stay empty.
#[inline]
fn take_fewer(here: &mut [f64], at: usize, row: usize) {
    let fewer_accelerators = if !at.is_multiple_of(row) { here[at - 1] } else { f64::INFINITY };
    let fewer_cpus = if at >= row { here[at - row] } else { f64::INFINITY };
    here[at] = here[at].min(fewer_accelerators).min(fewer_cpus);
}

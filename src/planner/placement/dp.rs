//! The best contiguous split: dynamic programming over the ideals of the class order (section 4 of the paper).
//!
//! `T[c][f](I)`, the least max-load of `c` CPUs and `f` accelerators that together hold the ideal `I`, is the least over
//! ideals `J` below `I` of `max(T[c][f-1](J), load of I \ J)`, and likewise with a CPU. The published program stores
//! every pair `(I, J)`; here each ideal is walked down instead ([`Walk`]), one class at a time, so memory is
//! `O(ideals · (c + 1)(f + 1))` and time `O(pairs · degree)` at worst.
//!
//! Far fewer pairs are seen than there are. The linearised split ([`super::linearise`]) is nearly optimal and costs next
//! to nothing; with its value as a bound, a walk stops where the difference is too much for any device, and an ideal is
//! only of use with `f` accelerators if the bound leaves room for it in `f` and for the rest in the others: compute and
//! the transfers across its border have to be paid by somebody (`Need`), and classes that are larger than what a device has
//! left cannot be split to fill it (`super::packing`). On balanced graphs hardly an ideal is of use.
//!
//! The table is filled several times, each time with a value that is good enough. A walk stops once
//! every entry it works for has such a value, and it goes far down first, where nearly full devices are. The first time
//! everything below the bound will do, so that only the question whether there is a better split is answered; often there
//! is none. A result above what was good enough is exact; one below is the next bound, and good enough is then what lies
//! further down. GNMT's training takes 0.2 million pairs so, not the 9.3 million of one exact table.
//!
//! A walk also stops where what it holds sends so much to classes outside its ideal, which it never reaches, that no device
//! has the time. Ideals of one size are independent of one another; where they take long they are shared among threads.
//!
//! Each table is filled with costs cut off at twice its bound ([`ClassCosts::bounded`]), so that what enters a sum of
//! transfers leaves it without a trace; the bound of the next is the split's load added up from its parts. With costs from
//! 1 to 1e30 the first table may be wrong by 1e14, and the next one knows.

use rayon::prelude::*;

use super::{
    DeviceKind, Placed, PlacementLimits,
    classes::{ClassGraph, Partition},
    lattice::{Lattice, Onward, Refused, Walk},
    linearise,
    load::{ClassCosts, Sums},
    need::{Need, lower_bound},
    packing::Packing,
    split::Split,
};
use crate::{
    graph::Dag,
    planner::{Search, Status},
    workload::placement::PlacementProfile,
};

/// More ideals than this are not planned exactly; the published program refuses more, too.
pub const MOST_IDEALS: usize = 60_000;
/// How far down from the best split to what no split beats a good enough value lies after the first round; twice as far
/// after each further one.
const FIRST_SHARE: f64 = 0.2;
/// A value so much below the bound that its table was filled with is not yet believed to be the least: costs up to twice
/// that bound were added and taken away.
const COARSEST: f64 = 64.0;
/// A split is better if it is by more than this, relative: what sums of costs up to twice the bound may be off by.
const ROUNDING: f64 = 1e-11;
/// The largest table, in numbers (512 MiB).
const MOST_CELLS: usize = 1 << 26;

/// Options of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DpOptions {
    /// Whether classes that meet in a layer are one.
    pub contract_layers: bool,
    /// More ideals than this are not enumerated; then the linearised split is the result.
    pub most_ideals: usize,
}

impl Default for DpOptions {
    fn default() -> Self {
        DpOptions { contract_layers: false, most_ideals: MOST_IDEALS }
    }
}

/// Classes in their order with their costs, ready for the search.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Classes and their order.
    pub graph: ClassGraph,
    /// What they cost.
    pub costs: ClassCosts,
}

impl Prepared {
    /// Orders and prices a partition: cycles and free leaves are merged.
    pub fn new(dag: &Dag, profile: &PlacementProfile, partition: &Partition) -> Self {
        let graph = ClassGraph::new(dag, profile, partition).without_free_leaves(dag, profile);
        let costs = ClassCosts::new(dag, profile, &graph.partition);
        Prepared { graph, costs }
    }

    /// The partition that the options ask for, ordered and priced.
    pub fn with_options(dag: &Dag, profile: &PlacementProfile, contract_layers: bool) -> Self {
        let colours = Partition::by_colour(profile);
        let partition = if contract_layers { colours.with_layers(profile) } else { colours };
        Prepared::new(dag, profile, &partition)
    }

    /// The split of a list of stages over classes.
    pub fn split(&self, stages: &[Stage]) -> Split {
        let members = self.graph.partition.members();
        Split::from_stages(
            stages
                .iter()
                .map(|stage| (stage.kind, stage.classes.iter().flat_map(|&class| members[class].clone()).collect())),
        )
    }
}

/// One device of a contiguous split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Accelerator or CPU.
    pub kind: DeviceKind,
    /// The classes it holds.
    pub classes: Vec<usize>,
}

/// What a search over one order found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The best split better than the bound given, first stage first, with its max-load.
    pub best: Option<(f64, Vec<Stage>)>,
    /// Number of ideals.
    pub ideals: usize,
    /// Number of pairs of ideals that were looked at.
    pub pairs: u64,
    /// Whether nothing is better; otherwise the caller asked to stop.
    pub proven: bool,
}

/// The best contiguous split within the limits.
pub fn plan(
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &PlacementLimits,
    options: &DpOptions,
    search: &Search,
) -> Placed {
    let prepared = Prepared::with_options(dag, profile, options.contract_layers);
    let linear = linearise::along(&prepared, limits, search);
    if matches!(linear.found, Err(Refused::Cancelled)) {
        return linear.placed(&prepared);
    }
    let order = prepared.graph.order();
    // There is no other order: what is best along this one is best.
    if is_chain(&order) && linear.found.as_ref().is_ok_and(|found| found.proven) {
        let status = if linear.best.is_some() { Status::Optimal } else { Status::Infeasible };
        let placed = linear.placed(&prepared);
        return Placed { status, lower_bound: placed.max_load.or(placed.lower_bound), ..placed };
    }
    let upper = linear.value().unwrap_or(f64::INFINITY);
    let bound = linear.bound;
    let mut counts = vec![("classes", prepared.costs.len() as f64)];
    let (status, best, lower_bound, notes) =
        match solve(&order, &prepared.costs, limits, upper, options.most_ideals, search) {
            Ok(found) => {
                counts.push(("ideals", found.ideals as f64));
                counts.push(("pairs", found.pairs as f64));
                let best = found.best.or(linear.best);
                let value = best.as_ref().map(|(value, _)| *value);
                let status = match &best {
                    _ if !found.proven => Status::Cancelled,
                    Some(_) => Status::Optimal,
                    None => Status::Infeasible,
                };
                (status, best, if found.proven { value } else { Some(bound) }, vec![])
            }
            Err(Refused::Cancelled) => (Status::Cancelled, linear.best, Some(bound), vec![]),
            Err(Refused::TooMany(found)) => {
                let note = format!(
                    "the graph has more than {found} sets at which a pipeline can be cut: the split is the best along \
                     one order of its classes, without proof"
                );
                (Status::Feasible, linear.best, Some(bound), vec![note])
            }
        };
    Placed {
        status,
        max_load: best.as_ref().map(|(value, _)| *value),
        split: best.map(|(_, stages)| prepared.split(&stages)),
        lower_bound,
        notes,
        counts,
    }
}

/// Whether the order is of all classes: then there is one way to linearise it.
fn is_chain(order: &Dag) -> bool {
    let follows = |pair: &[u32]| order.successors(pair[0] as usize).any(|next| next == pair[1] as usize);
    order.topological_order().windows(2).all(follows)
}

/// The best split along an order that is better than `upper`.
///
/// # Errors
/// [`Refused`] where there are too many ideals, or the search was cancelled.
pub fn solve(
    order: &Dag,
    costs: &ClassCosts,
    limits: &PlacementLimits,
    upper: f64,
    most_ideals: usize,
    search: &Search,
) -> Result<Found, Refused> {
    solve_over(&Lattice::new(order, most_ideals, search)?, costs, limits, upper, search)
}

/// The best split along a lattice that is better than `upper`.
///
/// # Errors
/// [`Refused`] where the table would be too large, or the search was cancelled.
pub fn solve_over(
    lattice: &Lattice,
    costs: &ClassCosts,
    limits: &PlacementLimits,
    upper: f64,
    search: &Search,
) -> Result<Found, Refused> {
    let kinds = |limit: u32| (limit as usize).min(costs.len());
    let (cpus, accelerators) = (kinds(limits.cpus), kinds(limits.accelerators));
    if (cpus + 1).saturating_mul(accelerators + 1).saturating_mul(lattice.len()) > MOST_CELLS {
        return Err(Refused::TooMany(lattice.len()));
    }
    let lower = lower_bound(costs, limits);
    let mut found = Found { best: None, ideals: lattice.len(), pairs: 0, proven: true };
    let (mut upper, mut enough) = (upper, upper);
    for round in 1.. {
        let priced = costs.bounded(upper, limits.memory_bytes);
        let below = upper * (1.0 - ROUNDING);
        let mut table = Table::new(lattice, &priced, cpus, accelerators, below, limits.memory_bytes);
        match table.fill(enough, round, search) {
            Ok(pairs) => found.pairs += pairs,
            Err(_) if found.best.is_some() => {
                found.proven = false;
                break;
            }
            Err(refused) => return Err(refused),
        }
        let Some(claimed) = table.best() else { break };
        let stages = table.stages();
        // What the table says is worth no more than its rounding: the split is what it adds up to.
        let value = stages.iter().map(|stage| costs.load(stage.kind, &stage.classes)).fold(0.0, f64::max);
        if value >= upper {
            found.proven = false;
            break;
        }
        found.best = Some((value, stages));
        if (claimed > enough && upper <= COARSEST * value) || value <= lower {
            break;
        }
        upper = value;
        enough = value - (value - lower) * (FIRST_SHARE * 2.0_f64.powi(round - 1)).min(1.0);
    }
    Ok(found)
}

/// The values of all ideals, by CPUs and accelerators.
struct Table<'a> {
    lattice: &'a Lattice,
    costs: &'a ClassCosts,
    /// What every ideal sums to.
    sums: Vec<Sums>,
    cpus: usize,
    accelerators: usize,
    upper: f64,
    memory: f64,
    /// `values[(ideal · (cpus + 1) + c) · (accelerators + 1) + f]`; infinite where not below the bound or of no use.
    values: Vec<f64>,
    marks: Vec<Mark>,
    need: Need,
    prefixes: Packing,
    suffixes: Packing,
    full: Sums,
}

/// What larger ideals ask of one before they look at its values.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// The least of its values.
    least: f64,
    /// The most compute on accelerators, and on CPUs, of an ideal with a value within it, itself included.
    nearest: (f64, f64),
}

/// A number of CPUs, and the least and most accelerators with which an ideal is of use beside them.
type Useful = (usize, usize, usize);

/// What an ideal's walk gave.
#[derive(Debug, Clone, Copy)]
struct Visited {
    mark: Mark,
    pairs: u64,
}

/// Levels of which the one before took so many pairs are shared among threads.
const SHARED_PAIRS: u64 = 4_000;

impl<'a> Table<'a> {
    fn new(
        lattice: &'a Lattice,
        costs: &'a ClassCosts,
        cpus: usize,
        accelerators: usize,
        upper: f64,
        memory: f64,
    ) -> Self {
        let cells = (cpus + 1) * (accelerators + 1);
        let mut values = vec![f64::INFINITY; cells * lattice.len()];
        values[..cells].fill(0.0);
        let mut marks = vec![Mark { least: f64::INFINITY, nearest: (0.0, 0.0) }; lattice.len()];
        marks[0].least = 0.0;
        let sums = lattice.sums(costs);
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
            marks,
            need: Need::new(costs, cpus, upper, memory),
            prefixes: Packing::of_prefixes(lattice, costs, cpus, upper),
            suffixes: Packing::of_suffixes(lattice, costs, cpus, upper),
            full,
        }
    }

    /// The least and most accelerators with which an ideal is of use beside `c` CPUs; none if the first is larger.
    fn useful(&self, ideal: usize, c: usize, inside: &Sums) -> (usize, usize) {
        let outside = Sums {
            cpu: 0.0,
            accelerator: self.full.accelerator - inside.accelerator,
            cut: inside.cut,
            size: self.full.size - inside.size,
            ..Sums::default()
        };
        let least = self.need.accelerators(c, inside).max(self.prefixes.fewest(ideal, c) as usize);
        let rest = self.need.accelerators(self.cpus - c, &outside);
        let rest = rest.max(self.suffixes.fewest(ideal, self.cpus - c) as usize);
        if rest > self.accelerators { (1, 0) } else { (least, self.accelerators - rest) }
    }

    /// Fills the table by size of ideal, where values up to `enough` need not be the least; the number of pairs looked at.
    /// Ideals of one size know nothing of one another: where there is much to do they are shared among threads.
    fn fill(&mut self, enough: f64, round: i32, search: &Search) -> Result<u64, Refused> {
        // How many rounds there will be is not known: each is half of what is left.
        let share = 0.5_f64.powi(round);
        let cells = (self.cpus + 1) * (self.accelerators + 1);
        let mut values = std::mem::take(&mut self.values);
        let mut walk = Walk::new(self.lattice, self.costs);
        let (mut pairs, mut before) = (0, 0);
        for level in self.lattice.levels().into_iter().skip(1) {
            if search.cancelled() {
                return Err(Refused::Cancelled);
            }
            search.report_fraction(1.0 - share * (2.0 - level.end as f64 / self.lattice.len() as f64));
            let (below, rest) = values.split_at_mut(level.start * cells);
            let rows = &mut rest[..level.len() * cells];
            let visited: Vec<Visited> = if level.len() > 1 && before > SHARED_PAIRS {
                let one = |walk: &mut Walk<'_>, (ideal, row): (usize, &mut [f64])| {
                    self.visit(ideal, enough, below, row, walk, search)
                };
                let walks = || Walk::new(self.lattice, self.costs);
                let rows = rows.par_chunks_exact_mut(cells).with_max_len(1);
                level.clone().into_par_iter().with_max_len(1).zip(rows).map_init(walks, one).collect()
            } else {
                let rows = level.clone().zip(rows.chunks_exact_mut(cells));
                rows.map(|(ideal, row)| self.visit(ideal, enough, below, row, &mut walk, search)).collect()
            };
            before = 0;
            for (ideal, visited) in level.zip(visited) {
                self.marks[ideal] = visited.mark;
                before += visited.pairs;
            }
            pairs += before;
        }
        self.values = values;
        if search.cancelled() { Err(Refused::Cancelled) } else { Ok(pairs) }
    }

    /// Finds the values of one ideal from those below it.
    fn visit(
        &self,
        ideal: usize,
        enough: f64,
        below: &[f64],
        here: &mut [f64],
        walk: &mut Walk<'_>,
        search: &Search,
    ) -> Visited {
        let row = self.accelerators + 1;
        let cells = (self.cpus + 1) * row;
        let mut nearest = (0.0, 0.0);
        for &(below, _) in self.lattice.below(ideal) {
            let (accelerator, cpu) = self.marks[below as usize].nearest;
            nearest = (f64::max(nearest.0, accelerator), f64::max(nearest.1, cpu));
        }
        let inside = self.sums[ideal];
        let mut visited = Visited { mark: Mark { least: f64::INFINITY, nearest }, pairs: 0 };
        let useful = (0..=self.cpus).map(|c| (c, self.useful(ideal, c, &inside)));
        let ranges: Vec<Useful> =
            useful.filter(|(_, (least, most))| least <= most).map(|(c, (least, most))| (c, least, most)).collect();
        // No device reaches from here down to an ideal with a value. A little less, so that rounding rules out nothing.
        let (accelerator_reach, cpu_reach) =
            (inside.accelerator - self.upper * (1.0 + 1e-9), inside.cpu - self.upper * (1.0 + 1e-9));
        let any_cpu = self.cpus > 0;
        let far = |nearest: (f64, f64), locked: f64| {
            nearest.0 < accelerator_reach + locked && !(any_cpu && nearest.1 >= cpu_reach)
        };
        if ranges.is_empty() || far(nearest, 0.0) || search.cancelled() {
            return visited;
        }
        let (upper, memory) = (self.upper, self.memory);
        let is_enough = |value: f64| value < upper && value <= enough;
        let mut pairs = 0;
        walk.down(ideal, |j, sums| {
            pairs += 1;
            let mut better = false;
            let accelerator_ends =
                sums.accelerator + sums.locked >= upper || sums.size > memory || sums.unsupported > 0 || row == 1;
            let cpu = if any_cpu { sums.cpu } else { f64::INFINITY };
            let Mark { least, nearest } = self.marks[j];
            if least < upper {
                let there = &below[j * cells..(j + 1) * cells];
                let load = if accelerator_ends { f64::INFINITY } else { sums.accelerator + sums.cut };
                if load < upper {
                    for &(c, from, to) in &ranges {
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
            if better && ranges.iter().all(|&(c, from, _)| is_enough(here[c * row + from])) {
                Onward::Stop
            } else if (!accelerator_ends || cpu < upper) && !far(nearest, sums.locked) {
                Onward::Below
            } else {
                Onward::Past
            }
        });
        visited.pairs = pairs;
        // A device may stay empty; and what is not below the bound is of no use.
        for &(c, from, to) in &ranges {
            for f in from..=to {
                let at = c * row + f;
                let fewer_accelerators = if f > 0 { here[at - 1] } else { f64::INFINITY };
                let fewer_cpus = if c > 0 { here[at - row] } else { f64::INFINITY };
                let value = here[at].min(fewer_accelerators).min(fewer_cpus);
                here[at] = if value < upper { value } else { f64::INFINITY };
                visited.mark.least = visited.mark.least.min(here[at]);
            }
        }
        if visited.mark.least.is_finite() {
            visited.mark.nearest = (inside.accelerator, inside.cpu);
        }
        visited
    }

    fn value(&self, ideal: usize, c: usize, f: usize) -> f64 {
        self.values[(ideal * (self.cpus + 1) + c) * (self.accelerators + 1) + f]
    }

    fn best(&self) -> Option<f64> {
        Some(self.value(self.lattice.len() - 1, self.cpus, self.accelerators)).filter(|value| value.is_finite())
    }

    /// The stages of the best split, first to last: the choices are found again by walking once per stage.
    fn stages(&self) -> Vec<Stage> {
        let mut walk = Walk::new(self.lattice, self.costs);
        let mut stages = vec![];
        let (mut ideal, mut c, mut f) = (self.lattice.len() - 1, self.cpus, self.accelerators);
        while ideal > 0 {
            let value = self.value(ideal, c, f);
            if f > 0 && self.value(ideal, c, f - 1) == value {
                f -= 1;
                continue;
            }
            if c > 0 && self.value(ideal, c - 1, f) == value {
                c -= 1;
                continue;
            }
            let mut choice = None;
            let (values, row, cells) = (&self.values, self.accelerators + 1, (self.cpus + 1) * (self.accelerators + 1));
            let (upper, memory) = (self.upper, self.memory);
            walk.down(ideal, |j, sums| {
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
            stages.push(Stage { kind, classes: self.lattice.between(ideal, below) });
            match kind {
                DeviceKind::Accelerator => f -= 1,
                DeviceKind::Cpu => c -= 1,
            }
            ideal = below;
        }
        stages.reverse();
        stages
    }
}

/// Takes over where a device of a load makes something better of the values below; whether it did anywhere.
#[inline]
fn improve(target: &mut [f64], source: &[f64], load: f64) -> bool {
    let mut better = false;
    for (t, &s) in target.iter_mut().zip(source) {
        let value = if s > load { s } else { load };
        better |= value < *t;
        *t = if value < *t { value } else { *t };
    }
    better
}

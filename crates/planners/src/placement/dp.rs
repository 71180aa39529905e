//! Best contiguous split: dynamic programming over the closed sets of the class order (section 4 of the paper).
//!
//! `T[c][f](I)`, the least max-load of `c` CPUs and `f` accelerators that together hold the set `I`, is the least over
//! closed sets `J` below `I` of `max(T[c][f-1](J), load of I \ J)`, and likewise with a CPU. The published program stores
//! every pair `(I, J)`; here each set is walked down instead (`LatticeWalk`), one class at a time, so memory is
//! `O(sets · (c + 1)(f + 1))` and time `O(pairs · degree)` at worst.
//!
//! Few pairs are visited. The linearised split ([`super::linearise`]) is nearly optimal and costs next to nothing. Its
//! value is an upper bound: a walk stops where the difference is too much for any device. A closed set with `f`
//! accelerators is pruned if the bound leaves too few accelerators for the rest (`need`).
//!
//! The table is filled several times, each time for a decision problem: is there a split with a value below `T`? `T` lies
//! between the lower bound and the incumbent (`SplitSearch`). A walk stops once every entry it works for has a good enough
//! value. When the two are close, or if probes cost much the same wherever `T` lies, the best split itself is searched.
//!
//! Leaves that take no time are first given to the class of their neighbour, where they keep their memory. A probe with costs
//! that hold wherever these leaves are (`OrderedClasses::at_least`) proves the result; if it fails, the classes are searched as
//! they are.
//!
//! Each table is filled with costs cut off at twice its bound (`ClassCosts::bounded`), so that a transfer leaves no trace in a sum
//! after it is subtracted. The bound of the next table is the load of the split, added up from its parts.

mod table;

use self::table::SplitTable;
use super::{
    DeviceKind, PlacementLimits, PlacementResult,
    classes::{ClassGraph, Partition},
    lattice::{Lattice, LatticeRefusal},
    linearise,
    load::ClassCosts,
    need::lower_bound,
    split::Split,
};
use crate::Status;
use plantui_core::{graph::Dag, search::Search, workload::placement::PlacementProfile};

/// Number of closed sets up to which a graph is planned exactly; the published program refuses more, too.
pub const MOST_IDEALS: usize = 60_000;
/// Position of the first probe between the incumbent (0) and the lower bound (1); doubled after each split found. With 0.5 instead,
/// InceptionV3 training (6 devices) takes 1.43 times the CPU time.
const FIRST_SHARE: f64 = 0.4;
/// Relative gap below which the best split itself is searched.
const NARROW: f64 = 2e-3;
/// Number of probes in a row without a split after which the best split itself is searched. The last probe must have
/// taken at least one in `ONE_IN` of the pairs of the last probe with a split. Without this rule, InceptionV3 training
/// (2 devices) takes 2.2 times the CPU time.
const DENIED_IN_A_ROW: u32 = 2;
const ONE_IN: u64 = 4;
/// A value this many times below the bound of its table is not yet the least: sums held costs up to twice that bound.
const COARSEST: f64 = 64.0;
/// Relative difference above which a split is better: sums of costs up to twice the bound may be off by less.
const COMPARISON_TOLERANCE: f64 = 1e-11;
/// Closed sets per class from which a split is improved along its own orders. Without improvement, InceptionV3 inference
/// (12 devices) takes 11 times the CPU time.
const MANY_ORDERS: usize = 4;
/// Space of the proof if separating leaves from their neighbours takes too long.
pub(super) const WITH_LEAVES: &str = "with leaves of no cost next to a neighbour";
/// Upper bound on the cells of a table, 16 bytes each.
const MOST_CELLS: usize = 50_000_000;

/// Options of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DpOptions {
    /// True to merge classes that meet in a layer.
    pub contract_layers: bool,
    /// Upper bound on the closed sets; above it the linearised split is the result.
    pub most_ideals: usize,
}

impl Default for DpOptions {
    fn default() -> Self {
        DpOptions { contract_layers: false, most_ideals: MOST_IDEALS }
    }
}

/// Classes in their order with their costs, ready for the search.
#[derive(Debug, Clone)]
pub struct OrderedClasses {
    /// Classes and their order.
    pub graph: ClassGraph,
    /// Their costs.
    pub costs: ClassCosts,
    /// Lower bounds on the costs if leaves that were merged into a neighbour may be anywhere; `None` if equal to `costs`.
    at_least: Option<ClassCosts>,
}

impl OrderedClasses {
    /// Orders a partition and computes its costs; cycles and free leaves are merged.
    pub fn new(dag: &Dag, profile: &PlacementProfile, partition: &Partition) -> Self {
        let whole = ClassGraph::new(dag, profile, partition);
        let (graph, given) = whole.without_free_leaves(dag, profile);
        let costs = ClassCosts::new(dag, profile, &graph.partition);
        let kept = |node: usize| !given[whole.partition.class(node)];
        let at_least = given.contains(&true).then(|| ClassCosts::of_nodes(dag, profile, &graph.partition, kept));
        OrderedClasses { graph, at_least: at_least.filter(|least| *least != costs), costs }
    }

    /// Same for the partition that the options require.
    pub fn with_options(dag: &Dag, profile: &PlacementProfile, contract_layers: bool) -> Self {
        OrderedClasses::new(dag, profile, &OrderedClasses::partition(profile, contract_layers))
    }

    /// Same with free leaves as classes of their own.
    pub(super) fn whole(dag: &Dag, profile: &PlacementProfile, contract_layers: bool) -> Self {
        let graph = ClassGraph::new(dag, profile, &OrderedClasses::partition(profile, contract_layers));
        let costs = ClassCosts::new(dag, profile, &graph.partition);
        OrderedClasses { graph, costs, at_least: None }
    }

    fn partition(profile: &PlacementProfile, contract_layers: bool) -> Partition {
        let colours = Partition::by_colour(profile);
        if contract_layers { colours.with_layers(profile) } else { colours }
    }

    /// Lower bounds on the costs, wherever merged leaves are.
    pub(super) fn at_least(&self) -> &ClassCosts {
        self.at_least.as_ref().unwrap_or(&self.costs)
    }

    /// Split of a list of stages over classes.
    pub fn split(&self, stages: &[ClassStage]) -> Split {
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
pub struct ClassStage {
    /// Accelerator or CPU.
    pub kind: DeviceKind,
    /// Classes on it.
    pub classes: Vec<usize>,
}

/// Result of a search over one order.
#[derive(Debug, Clone, PartialEq)]
pub struct DpResult {
    /// Best split below the given bound, first stage first, with its max-load.
    pub best: Option<(f64, Vec<ClassStage>)>,
    /// Number of closed sets.
    pub sets: usize,
    /// Number of pairs of closed sets visited.
    pub pairs: u64,
    /// True if no split is better; false if the search was cancelled.
    pub proven: bool,
    /// True if no split is better at the costs that hold wherever leaves are.
    pub anywhere: bool,
}

/// Best contiguous split within the limits.
pub fn plan(
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &PlacementLimits,
    options: &DpOptions,
    search: &Search,
) -> PlacementResult {
    let prepared = OrderedClasses::with_options(dag, profile, options.contract_layers);
    let (mut placed, lattice, anywhere) = plan_over(&prepared, limits, options, search);
    let Some(costs) = prepared.at_least.as_ref().filter(|_| !anywhere) else { return placed };
    if !matches!(placed.status, Status::Optimal | Status::Infeasible) {
        return placed;
    }
    let whole = || plan_over(&OrderedClasses::whole(dag, profile, options.contract_layers), limits, options, search).0;
    let Some(upper) = placed.max_load else {
        // A class too large for every device is too large wherever leaves are.
        return if lower_bound(costs, limits).is_finite() { whole() } else { placed };
    };
    let lattice = lattice.unwrap_or_else(|| Lattice::chain(prepared.graph.order().topological_order()));
    // Any better split disproves the result.
    let any = SplitProbe { below: upper, enough: upper };
    match decide(&lattice, costs, limits, any, 1, &search.quiet()) {
        Ok((None, pairs)) => {
            let of_pairs = placed.counts.iter_mut().find(|(name, _)| *name == "pairs");
            of_pairs.into_iter().for_each(|(_, count)| *count += pairs as f64);
            placed
        }
        Ok((Some(_), _)) => better_of(placed, whole()),
        Err(_) => PlacementResult { among: Some(WITH_LEAVES), ..placed },
    }
}

/// Better one of the split over merged classes and the split over all classes.
fn better_of(merged: PlacementResult, whole: PlacementResult) -> PlacementResult {
    let value = |placed: &PlacementResult| placed.max_load.unwrap_or(f64::INFINITY);
    match whole.status {
        _ if value(&whole) < value(&merged) => whole,
        Status::Optimal | Status::Infeasible => merged,
        _ => PlacementResult { among: Some(WITH_LEAVES), ..merged },
    }
}

/// Best contiguous split of these classes; their closed sets if there are several orders and not too many sets; true if no split is
/// better wherever leaves are.
fn plan_over(
    prepared: &OrderedClasses,
    limits: &PlacementLimits,
    options: &DpOptions,
    search: &Search,
) -> (PlacementResult, Option<Lattice>, bool) {
    let order = prepared.graph.order();
    let one_order = is_chain(&order);
    let enumerate = || Lattice::new(&order, options.most_ideals, search);
    let linear = linearise::along(prepared, limits, search);
    if matches!(linear.found, Err(LatticeRefusal::Cancelled)) {
        return (linear.placed(prepared), None, false);
    }
    // With one order, the best split along it is the best.
    if one_order && linear.found.as_ref().is_ok_and(|found| found.proven) {
        let status = if linear.best.is_some() { Status::Optimal } else { Status::Infeasible };
        let placed = linear.placed(prepared);
        return (
            PlacementResult { status, lower_bound: placed.max_load.or(placed.lower_bound), ..placed },
            None,
            false,
        );
    }
    let upper = linear.value().unwrap_or(f64::INFINITY);
    let bound = linear.bound;
    let mut counts = vec![("classes", prepared.costs.len() as f64)];
    let lattice = enumerate();
    let found = lattice
        .as_ref()
        .map_err(|refused| *refused)
        .and_then(|lattice| solve_over(lattice, &prepared.costs, prepared.at_least.as_ref(), limits, upper, search));
    let anywhere = found.as_ref().is_ok_and(|found| found.anywhere);
    let (status, best, lower_bound, notes) = match found {
        Ok(found) => {
            counts.push(("closed_sets", found.sets as f64));
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
        Err(LatticeRefusal::Cancelled) => (Status::Cancelled, linear.best, Some(bound), vec![]),
        Err(LatticeRefusal::TooMany(found)) => {
            let along = match &linear.best {
                Some(_) => "the split is the best along one order of its classes, without proof",
                None => "along one order of its classes nothing fits; other orders were not tried",
            };
            let note = format!("the graph has more than {found} sets at which a pipeline can be cut: {along}");
            (Status::Feasible, linear.best, Some(bound), vec![note])
        }
    };
    let placed = PlacementResult {
        status,
        max_load: best.as_ref().map(|(value, _)| *value),
        split: best.map(|(_, stages)| prepared.split(&stages)),
        lower_bound,
        among: None,
        notes,
        counts,
    };
    (placed, lattice.ok(), anywhere)
}

/// True if the order is total, so that there is one way to linearise it.
fn is_chain(order: &Dag) -> bool {
    let follows = |pair: &[u32]| order.successors(pair[0] as usize).any(|next| next == pair[1] as usize);
    order.topological_order().windows(2).all(follows)
}

/// Best split along a lattice below `upper`. With costs `at_least` that hold wherever leaves are, the result also says if no split is
/// better at these, as far as that takes no probe of its own.
///
/// # Errors
/// `LatticeRefusal` where the table would be too large, or the search was cancelled.
pub fn solve_over(
    lattice: &Lattice,
    costs: &ClassCosts,
    at_least: Option<&ClassCosts>,
    limits: &PlacementLimits,
    upper: f64,
    search: &Search,
) -> Result<DpResult, LatticeRefusal> {
    let [cpus, accelerators] = devices(limits, costs);
    if (cpus + 1).saturating_mul(accelerators + 1).saturating_mul(lattice.len()) > MOST_CELLS {
        return Err(LatticeRefusal::TooMany(lattice.len()));
    }
    let mut found = DpResult { best: None, sets: lattice.len(), pairs: 0, proven: true, anywhere: false };
    let mut state = SplitSearch::new(lower_bound(costs, limits), upper);
    for round in 1.. {
        let probe = state.probe();
        let SplitProbe { below, enough } = probe;
        // Without a split at the least costs there is none at the others. A split found at the least costs may be one, too.
        let least = at_least.filter(|_| enough >= state.upper);
        let answer = |costs| decide(lattice, costs, limits, probe, round, search);
        let mut answered = answer(least.unwrap_or(costs));
        let mut anywhere = least.is_some();
        if anywhere
            && let Ok((Some((_, stages)), pairs)) = &answered
            && !(fits(stages, costs, limits) && worth(stages, costs) < state.upper)
        {
            (found.pairs, anywhere) = (found.pairs + pairs, false);
            answered = answer(costs);
        }
        let (split, pairs) = match answered {
            Ok(answered) => answered,
            Err(_) if found.best.is_some() => {
                found.proven = false;
                break;
            }
            Err(refused) => return Err(refused),
        };
        found.pairs += pairs;
        let Some((claimed, stages)) = split else {
            if below >= state.upper {
                found.anywhere = anywhere;
                break;
            }
            state.denied(below, pairs);
            continue;
        };
        // The value of the table is off by rounding: the split is added up again.
        let value = worth(&stages, costs);
        if value >= state.upper {
            found.proven = false;
            break;
        }
        let exact = claimed > enough && below <= COARSEST * value;
        let best = found.best.insert((value, stages));
        if exact || value <= state.low {
            break;
        }
        if lattice.len() >= MANY_ORDERS * costs.len() {
            let quiet = search.quiet();
            for step in [0, usize::MAX] {
                found.pairs += improve_along_order(lattice, step, best, costs, limits, &quiet);
            }
        }
        state.found(below, best.0, pairs);
    }
    Ok(found)
}

/// Answer to a probe: the split with its value by the table, if there is one, and the number of pairs visited.
type ProbeOutcome = (Option<(f64, Vec<ClassStage>)>, u64);

/// Decides a probe along a lattice.
///
/// # Errors
/// `LatticeRefusal` if the search was cancelled.
fn decide(
    lattice: &Lattice,
    costs: &ClassCosts,
    limits: &PlacementLimits,
    SplitProbe { below, enough }: SplitProbe,
    round: i32,
    search: &Search,
) -> Result<ProbeOutcome, LatticeRefusal> {
    let priced = costs.bounded(below, limits.memory_bytes);
    let mut table = SplitTable::new(lattice, &priced, limits, below * (1.0 - COMPARISON_TOLERANCE));
    let pairs = table.fill(enough, round, search)?;
    Ok((table.best().map(|claimed| (claimed, table.stages())), pairs))
}

/// True if the accelerators support the classes of these stages and have the memory for them.
fn fits(stages: &[ClassStage], costs: &ClassCosts, limits: &PlacementLimits) -> bool {
    let on_accelerators = stages.iter().filter(|stage| stage.kind == DeviceKind::Accelerator);
    on_accelerators.into_iter().all(|stage| {
        let bytes: f64 = stage.classes.iter().map(|&class| costs.size[class]).sum();
        bytes <= limits.memory_bytes && stage.classes.iter().all(|&class| costs.supported[class])
    })
}

/// Replaces a split by the best one along an order in which its stages follow each other, if that is better; returns the number
/// of pairs visited. Costs little beside a table over all orders, and a split that is only good enough is seldom the best.
///
/// Within a stage, classes come in the order in which they leave the full set: each time by step number `step` down, or the last.
fn improve_along_order(
    lattice: &Lattice,
    step: usize,
    best: &mut (f64, Vec<ClassStage>),
    costs: &ClassCosts,
    limits: &PlacementLimits,
    search: &Search,
) -> u64 {
    let down = |set: usize| {
        let below = lattice.below(set);
        below.get(step.min(below.len().max(1) - 1)).map(|&(below, class)| (below as usize, class))
    };
    let mut left_after = vec![0; costs.len()];
    let left = std::iter::successors(down(lattice.len() - 1), |&(set, _)| down(set));
    left.enumerate().for_each(|(count, (_, class))| left_after[class as usize] = count);
    let mut order = vec![];
    for stage in &best.1 {
        let from = order.len();
        order.extend(stage.classes.iter().map(|&class| class as u32));
        order[from..].sort_unstable_by_key(|&class| std::cmp::Reverse(left_after[class as usize]));
    }
    let (lattice, below) = (Lattice::chain(&order), best.0);
    let probe = SplitProbe { below, enough: 0.0 };
    let Ok((split, pairs)) = decide(&lattice, costs, limits, probe, 1, search) else { return 0 };
    if let Some((_, stages)) = split {
        let value = worth(&stages, costs);
        if value < below {
            *best = (value, stages);
        }
    }
    pairs
}

/// CPUs and accelerators, at most one of each per class.
fn devices(limits: &PlacementLimits, costs: &ClassCosts) -> [usize; 2] {
    [limits.cpus, limits.accelerators].map(|limit| (limit as usize).min(costs.len()))
}

/// Largest load of these stages, added up from their parts.
fn worth(stages: &[ClassStage], costs: &ClassCosts) -> f64 {
    stages.iter().map(|stage| costs.load(stage.kind, &stage.classes)).fold(0.0, f64::max)
}

/// Decision problem that one table answers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SplitProbe {
    /// Is there a split with a value below this one?
    below: f64,
    /// Values up to this one are as good as any.
    enough: f64,
}

/// State of the search between its lower bound and its incumbent.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SplitSearch {
    /// Proven lower bound.
    low: f64,
    /// Value of the incumbent.
    upper: f64,
    /// Position of the next probe between the two, from above.
    share: f64,
    just_below: IncumbentProbe,
    /// Probes in a row without a split.
    denials: u32,
    /// Pairs visited by the last probe with a split, and by the last one without.
    pairs_found: u64,
    pairs_denied: u64,
}

/// State of the probe just below the incumbent, which ends the search if it finds no split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IncumbentProbe {
    /// Not yet decided.
    Nothing,
    /// Decided for the first incumbent, or for one far from the lower bound.
    Early,
    /// Decided for an incumbent close to the lower bound, and there was a better split.
    Late,
}

impl SplitSearch {
    fn new(low: f64, upper: f64) -> Self {
        let just_below = IncumbentProbe::Nothing;
        SplitSearch { low, upper, share: FIRST_SHARE, just_below, denials: 0, pairs_found: 0, pairs_denied: 0 }
    }

    /// Next probe. First just below the incumbent, which often proves it. Then further down, until the gap is small or probes cost
    /// much the same; then just below the incumbent again; last the best split itself, however long that takes.
    fn probe(&self) -> SplitProbe {
        let SplitSearch { low, upper, share, just_below, .. } = *self;
        let narrow = upper - low <= NARROW * upper;
        if just_below == IncumbentProbe::Nothing || !upper.is_finite() || narrow {
            return SplitProbe { below: upper, enough: if just_below == IncumbentProbe::Late { low } else { upper } };
        }
        if self.denials >= DENIED_IN_A_ROW && ONE_IN.saturating_mul(self.pairs_denied) >= self.pairs_found {
            return SplitProbe { below: upper, enough: low };
        }
        // Values may be of any order of magnitude.
        let middle =
            if upper > 4.0 * low { (low * upper).sqrt().max(upper * 1e-6) } else { upper - (upper - low) * share };
        SplitProbe { below: middle, enough: middle }
    }

    /// Notes that no split is below a value, and the pairs visited.
    fn denied(&mut self, below: f64, pairs: u64) {
        self.low = below;
        self.share = FIRST_SHARE;
        self.denials += 1;
        self.pairs_denied = pairs;
    }

    /// Notes that a split below a value was found, and the pairs visited.
    fn found(&mut self, below: f64, value: f64, pairs: u64) {
        if below >= self.upper && self.upper.is_finite() {
            let narrow = self.upper - self.low <= NARROW * self.upper;
            self.just_below = if narrow { IncumbentProbe::Late } else { IncumbentProbe::Early };
        }
        self.upper = value;
        self.share = (2.0 * self.share).min(0.5);
        self.denials = 0;
        self.pairs_found = pairs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::random::SplitMix;

    /// Probes until the best split is known, for splits with these values and the number of pairs by bound. Returns the best value and
    /// the probes.
    fn seek(low: f64, values: &[f64], pairs: impl Fn(f64) -> u64) -> (f64, Vec<SplitProbe>) {
        let mut state = SplitSearch::new(low, values[0]);
        let mut probes = vec![];
        loop {
            let probe = state.probe();
            let SplitProbe { below, enough } = probe;
            probes.push(probe);
            // Any good enough split may be found; this finds the worst.
            let good = values.iter().copied().filter(|&value| value < below.min(enough)).reduce(f64::max);
            match good.or(values.iter().copied().filter(|&value| value < below).reduce(f64::min)) {
                None if below >= state.upper => return (state.upper, probes),
                None => state.denied(below, pairs(below)),
                Some(value) if value > enough || value <= state.low => return (value, probes),
                Some(value) => state.found(below, value, pairs(below)),
            }
        }
    }

    #[test]
    fn with_probes_of_equal_cost_the_best_split_is_searched_after_two_failures() {
        let values = [150.0, 140.0, 139.0];
        let (best, probes) = seek(60.0, &values, |_| 1_000);
        assert_eq!(best, 139.0);
        let last = probes[3];
        assert_eq!((probes.len(), last.below), (4, 140.0));
        assert!(probes[1].below < probes[2].below && last.enough == probes[2].below, "{probes:?}");
        // Probes that cost more the higher they are, little by little.
        let (best, probes) = seek(60.0, &values, |below| (1e6 * (below / values[0]).powi(24)) as u64);
        assert_eq!(best, 139.0);
        let dear = probes[1..].iter().filter(|probe| probe.below > 139.5);
        assert!(probes.len() > 6 && dear.count() <= 2, "{probes:?}");
    }

    #[test]
    fn the_best_is_found_whatever_probes_cost() {
        for seed in 0..3_000 {
            let mut random = SplitMix::new(seed);
            let low = random.below(1_000) as f64 / 10.0;
            let mut values: Vec<f64> =
                (0..=random.below(20)).map(|_| low + random.below(10_000) as f64 / 90.0).collect();
            values.sort_by(|a, b| b.total_cmp(a));
            let power = random.below(20) as i32;
            let (best, probes) = seek(low, &values, |below| (1e3 * (below / values[0]).powi(power)) as u64);
            assert_eq!(best, *values.last().unwrap(), "seed {seed}: {probes:?}");
            assert!(probes.len() < 60, "seed {seed}: {probes:?}");
        }
    }
}

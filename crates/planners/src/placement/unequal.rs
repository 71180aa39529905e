//! Best contiguous split over accelerators of several kinds, each with a speed and a memory.
//!
//! The dynamic program of [`super::dp`] with a number of devices for every kind: `T[used](I)`, the least max-load of these
//! devices that together hold the closed set `I`, is the least over closed sets `J` below and over kinds of
//! `max(T[used without one](J), load of I \ J on that kind)`. An accelerator of speed `s` takes its nodes' times divided by
//! `s`; transfers take their time on every kind. The best split along one order comes first and is the upper bound of the
//! search over all orders. `O(pairs of closed sets · states of devices · kinds)` time, `O(closed sets · states)` memory.
//!
//! The paper has one kind (Tarnawski et al., NeurIPS 2020, section 4); several are its program with more counters.

use super::{
    DeviceKind,
    classes::Partition,
    dp::{MOST_IDEALS, OrderedClasses, WITH_LEAVES},
    lattice::{Lattice, LatticeRefusal, LatticeWalk, NextStep},
    linearise,
    load::{ClassCosts, Sums},
    need,
};
use plantui_core::{graph::Dag, search::Search, workload::placement::PlacementProfile};

/// Upper bound on the cells of a table, 8 bytes each.
const MOST_CELLS: usize = 100_000_000;
/// Relative difference above which a split is better.
const COMPARISON_TOLERANCE: f64 = 1e-11;
/// Factor between the thresholds for a first split.
const THRESHOLD_STEP: f64 = 4.0;

/// Accelerators of a kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KindLimits {
    /// Number of the first.
    pub first: u32,
    /// How many there are.
    pub count: u32,
    /// Speed: times on an accelerator are divided by it.
    pub speed: f64,
    /// Maximum sum of sizes on one, bytes.
    pub memory_bytes: f64,
}

/// Devices of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct UnequalLimits {
    /// Kinds of accelerators.
    pub kinds: Vec<KindLimits>,
    /// Accelerators of all kinds together, at most.
    pub accelerators: u32,
    /// CPUs, at most.
    pub cpus: u32,
}

impl UnequalLimits {
    /// Number of accelerators that there are.
    pub(super) fn all(&self) -> u32 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }

    /// Numbers and speeds of the accelerators that a plan may have, fastest first.
    pub(super) fn fastest(&self) -> Vec<(u32, f64)> {
        let each = self.kinds.iter().flat_map(|kind| (kind.first..kind.first + kind.count).map(|n| (n, kind.speed)));
        let mut all: Vec<(u32, f64)> = each.collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.truncate(self.accelerators as usize);
        all
    }

    /// Lower bound on the max-load of all splits of these classes, contiguous or not.
    pub(super) fn lower_bound(&self, costs: &ClassCosts) -> f64 {
        let alone = |class: usize| {
            let fits = |kind: &&KindLimits| costs.supported[class] && costs.size[class] <= kind.memory_bytes;
            let times = self.kinds.iter().filter(fits).map(|kind| costs.accelerator[class] / kind.speed);
            times.fold(f64::INFINITY, f64::min)
        };
        let speed = self.fastest().iter().map(|(_, speed)| speed).sum();
        need::bound_of(costs, alone, speed, self.cpus)
    }

    fn largest_memory(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.memory_bytes).fold(0.0, f64::max)
    }

    fn largest_speed(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.speed).fold(1.0, f64::max)
    }

    /// Load of a device of a kind, or of a CPU, summed from its parts.
    pub(super) fn load(&self, costs: &ClassCosts, kind: Option<usize>, classes: &[usize]) -> f64 {
        match kind {
            None => costs.load(DeviceKind::Cpu, classes),
            Some(kind) => {
                let compute: f64 = classes.iter().map(|&class| costs.accelerator[class]).sum();
                compute / self.kinds[kind].speed + costs.transfers(classes)
            }
        }
    }
}

/// Splits that are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnequalSpace {
    /// True to keep colour classes that meet in a layer together.
    pub contract_layers: bool,
    /// True for splits along one order of the classes.
    pub linear: bool,
}

/// Device of a split: its kind, `None` for a CPU, and its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnequalStage {
    /// Kind of the accelerator; `None` for a CPU.
    pub kind: Option<usize>,
    /// Nodes on it, by their index.
    pub nodes: Vec<usize>,
}

/// Result of the search.
#[derive(Debug, Clone, PartialEq)]
pub struct UnequalResult {
    /// Best split, first stage first, with its max-load.
    pub best: Option<(f64, Vec<UnequalStage>)>,
    /// Lower bound on the max-load: of contiguous splits, or of all splits if the search is along one order.
    pub bound: f64,
    /// True if no contiguous split is better, or there is none.
    pub proven: bool,
    /// Restriction that proof and bound refer to, if any: `with ..`.
    pub among: Option<&'static str>,
    /// Closed sets that are too many to search, if so.
    pub too_many: Option<usize>,
    /// Named counts, such as `classes`.
    pub counts: Vec<(&'static str, f64)>,
}

/// Lower bound on the max-load of all splits, contiguous or not. Classes that meet on a cycle are on one device in
/// contiguous splits alone.
pub(super) fn bound_of_all(dag: &Dag, profile: &PlacementProfile, limits: &UnequalLimits) -> f64 {
    limits.lower_bound(&ClassCosts::new(dag, profile, &Partition::by_colour(profile)))
}

/// Best contiguous split. `first` gets the best split along one order as soon as it is found.
pub fn plan(
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &UnequalLimits,
    space: UnequalSpace,
    search: &Search,
    first: &mut dyn FnMut(f64, &[UnequalStage]),
) -> UnequalResult {
    let mut prepared = OrderedClasses::whole(dag, profile, space.contract_layers);
    let sets = |prepared: &OrderedClasses| Lattice::new(&prepared.graph.order(), MOST_IDEALS, search);
    let mut lattice = (!space.linear).then(|| sets(&prepared));
    let mut among = None;
    if matches!(lattice, Some(Err(LatticeRefusal::TooMany(_)))) {
        prepared = OrderedClasses::with_options(dag, profile, space.contract_layers);
        (lattice, among) = (Some(sets(&prepared)), Some(WITH_LEAVES));
    }
    let bound = if space.linear { bound_of_all(dag, profile, limits) } else { limits.lower_bound(&prepared.costs) };
    let classes = ("classes", prepared.costs.len() as f64);
    let mut result = UnequalResult { best: None, bound, proven: false, among, too_many: None, counts: vec![classes] };
    search.report_bound(bound);
    let members = prepared.graph.partition.members();
    let stages = |stages: &[ClassesOnKind]| -> Vec<UnequalStage> {
        let nodes = |classes: &[usize]| classes.iter().flat_map(|&class| members[class].clone()).collect();
        stages.iter().map(|(kind, classes)| UnequalStage { kind: *kind, nodes: nodes(classes) }).collect()
    };
    let counted = |sets: usize, pairs: u64| vec![classes, ("closed_sets", sets as f64), ("pairs", pairs as f64)];
    let along = match along_one_order(&prepared, limits, bound, search) {
        Ok((best, sets, pairs)) => {
            result.counts = counted(sets, pairs);
            result.best = best.map(|(value, classes)| (value, stages(&classes)));
            result.best.as_ref().map(|(value, _)| *value)
        }
        Err(LatticeRefusal::Cancelled) => return result,
        Err(LatticeRefusal::TooMany(sets)) => return UnequalResult { too_many: Some(sets), ..result },
    };
    if let Some((value, stages)) = &result.best {
        first(*value, stages);
        result.proven = *value <= bound;
    }
    let Some(lattice) = lattice.filter(|_| !result.proven) else { return result };
    let upper = along.unwrap_or_else(|| largest_load(&prepared.costs, limits));
    let solved = lattice.and_then(|lattice| {
        let (best, pairs) = solve(&lattice, &prepared.costs, limits, upper, search)?;
        Ok((best, lattice.len(), pairs))
    });
    match solved {
        Ok((best, sets, pairs)) => {
            result.best = best.map(|(value, classes)| (value, stages(&classes))).or(result.best);
            result.bound = result.best.as_ref().map_or(bound, |(value, _)| *value);
            (result.proven, result.counts) = (true, counted(sets, pairs));
        }
        Err(LatticeRefusal::Cancelled) => {}
        Err(LatticeRefusal::TooMany(sets)) => result.too_many = Some(sets),
    }
    result
}

/// Kind of a stage's accelerator, `None` for a CPU, and the classes on it.
type ClassesOnKind = (Option<usize>, Vec<usize>);
/// Max-load and stages of a split, first stage first.
type ClassSplit = (f64, Vec<ClassesOnKind>);

/// Load that no device exceeds, however many classes it has.
fn largest_load(costs: &ClassCosts, limits: &UnequalLimits) -> f64 {
    let slowest = limits.kinds.iter().map(|kind| kind.speed).fold(1.0, f64::min);
    let transfers: f64 = (0..costs.net_count()).map(|net| costs.net_cost(net)).sum();
    let all = costs.accelerator.iter().sum::<f64>() / slowest + costs.cpu.iter().sum::<f64>() + transfers;
    2.0 * all.max(f64::MIN_POSITIVE)
}

/// Best split along one order with the numbers of prefixes and pairs, by thresholds that grow until there is one.
///
/// # Errors
/// [`LatticeRefusal`] as [`solve`].
fn along_one_order(
    prepared: &OrderedClasses,
    limits: &UnequalLimits,
    bound: f64,
    search: &Search,
) -> Result<(Option<ClassSplit>, usize, u64), LatticeRefusal> {
    let chain = Lattice::chain(&linearise::order(&prepared.graph));
    let most = largest_load(&prepared.costs, limits);
    let mut upper = (2.0 * bound).clamp(most * 1e-12, most);
    loop {
        let (best, pairs) = solve(&chain, &prepared.costs, limits, upper, search)?;
        if best.is_some() || upper >= most {
            return Ok((best, chain.len(), pairs));
        }
        upper = (upper * THRESHOLD_STEP).min(most);
    }
}

/// Best split along a lattice with a max-load below `upper`, and the number of pairs visited.
///
/// # Errors
/// [`LatticeRefusal`] if the table would be too large, or the search was cancelled.
fn solve(
    lattice: &Lattice,
    costs: &ClassCosts,
    limits: &UnequalLimits,
    upper: f64,
    search: &Search,
) -> Result<(Option<ClassSplit>, u64), LatticeRefusal> {
    let priced = costs.bounded(upper * limits.largest_speed(), limits.largest_memory());
    let mut table = KindTable::new(lattice, &priced, limits, upper * (1.0 - COMPARISON_TOLERANCE))?;
    let pairs = table.fill(search)?;
    let stages = table.stages();
    let value = |stages: &[ClassesOnKind]| {
        stages.iter().map(|(kind, classes)| limits.load(costs, *kind, classes)).fold(0.0, f64::max)
    };
    Ok((stages.map(|stages| (value(&stages), stages)), pairs))
}

/// Devices that a stage may be on.
#[derive(Debug, Clone, Copy)]
struct StageDevice {
    /// Kind of accelerator; `None` for a CPU.
    kind: Option<usize>,
    speed: f64,
    memory_bytes: f64,
    /// How many there are.
    count: usize,
    /// Distance between states that differ by one of these.
    stride: usize,
}

impl StageDevice {
    /// Number of these in a state.
    fn used(&self, state: usize) -> usize {
        state / self.stride % (self.count + 1)
    }

    /// Load with these sums; infinite if they do not fit.
    fn load(&self, sums: &Sums) -> f64 {
        match self.kind {
            None => sums.cpu,
            Some(_) if sums.unsupported > 0 || sums.size > self.memory_bytes => f64::INFINITY,
            Some(_) => sums.accelerator / self.speed + sums.cut,
        }
    }

    /// Lower bound on the load of every set that contains this one.
    fn at_least(&self, sums: &Sums) -> f64 {
        match self.kind {
            None => sums.cpu,
            Some(_) if sums.unsupported > 0 || sums.size > self.memory_bytes => f64::INFINITY,
            Some(_) => sums.accelerator / self.speed + sums.locked,
        }
    }
}

/// Least max-load of every closed set on every number of devices of each kind.
struct KindTable<'a> {
    lattice: &'a Lattice,
    costs: &'a ClassCosts,
    devices: Vec<StageDevice>,
    /// Accelerators of all kinds, at most.
    accelerators: usize,
    upper: f64,
    states: usize,
    /// By closed set and state.
    values: Vec<f64>,
}

impl<'a> KindTable<'a> {
    fn new(
        lattice: &'a Lattice,
        costs: &'a ClassCosts,
        limits: &UnequalLimits,
        upper: f64,
    ) -> Result<Self, LatticeRefusal> {
        let (mut devices, mut states) = (vec![], 1usize);
        // A device without a class helps nothing.
        let mut add = |kind: Option<usize>, speed: f64, memory_bytes: f64, count: u32| {
            let count = (count as usize).min(costs.len());
            if count > 0 {
                devices.push(StageDevice { kind, speed, memory_bytes, count, stride: states });
                states = states.saturating_mul(count + 1);
            }
        };
        for (index, kind) in limits.kinds.iter().enumerate() {
            add(Some(index), kind.speed, kind.memory_bytes, kind.count.min(limits.accelerators));
        }
        add(None, 1.0, f64::INFINITY, limits.cpus);
        if states.saturating_mul(lattice.len()) > MOST_CELLS {
            return Err(LatticeRefusal::TooMany(lattice.len()));
        }
        let values = vec![f64::INFINITY; states * lattice.len()];
        let accelerators = limits.accelerators as usize;
        Ok(KindTable { lattice, costs, devices, accelerators, upper, states, values })
    }

    /// Fills the table; returns the number of pairs visited.
    fn fill(&mut self, search: &Search) -> Result<u64, LatticeRefusal> {
        let KindTable { lattice, costs, devices, upper, states, .. } = self;
        let (lattice, costs, upper, states) = (*lattice, *costs, *upper, *states);
        let sums = lattice.sum_up(costs);
        let whole = sums[lattice.len() - 1].accelerator;
        let absorbed = need::FractionalKnapsack::new(costs, &costs.accelerator, upper);
        // Time on an accelerator of speed 1 that devices do within the bound, with a margin for rounding.
        let work = |count: &dyn Fn(&StageDevice) -> usize| -> f64 {
            let each = devices.iter().map(|own| match own.kind {
                Some(_) => count(own) as f64 * upper * own.speed,
                None => absorbed.within(count(own) as f64 * upper),
            });
            each.sum::<f64>() * (1.0 + 1e-9)
        };
        let of_state = |state: usize| [work(&|own| own.used(state)), work(&|own| own.count - own.used(state))];
        let works: Vec<[f64; 2]> = (0..states).map(of_state).collect();
        let of_device: Vec<Vec<usize>> =
            devices.iter().map(|own| (0..states).filter(|&state| own.used(state) > 0).collect()).collect();
        let mut walk = LatticeWalk::new(lattice, costs);
        let mut is_reached = vec![false; lattice.len()];
        let mut pairs = 0;
        self.values[..states].fill(0.0);
        is_reached[0] = true;
        for set in 1..lattice.len() {
            if set % 64 == 0 && search.cancelled() {
                return Err(LatticeRefusal::Cancelled);
            }
            // A set must fit on the devices of a state, and the rest on those that are left. Without this rule,
            // InceptionV3 training on two kinds takes 7 times the CPU time.
            let (held, rest) = (sums[set].accelerator, whole - sums[set].accelerator);
            let is_open = |[done, left]: &[f64; 2]| held <= *done && rest <= *left;
            if !works.iter().any(is_open) {
                continue;
            }
            let (below, here) = self.values.split_at_mut(set * states);
            let here = &mut here[..states];
            let mut visit = |j: usize, sums: &Sums| {
                pairs += 1;
                let mut open = false;
                for (own, reached) in devices.iter().zip(&of_device) {
                    if own.at_least(sums) >= upper {
                        continue;
                    }
                    open = true;
                    let load = own.load(sums);
                    if load < upper && is_reached[j] {
                        let there = &below[j * states..(j + 1) * states];
                        for &state in reached {
                            here[state] = here[state].min(there[state - own.stride].max(load));
                        }
                    }
                }
                if open { NextStep::Below(()) } else { NextStep::Past }
            };
            walk.down(set, (), &mut visit);
            for (own, reached) in devices.iter().zip(&of_device) {
                for &state in reached {
                    here[state] = here[state].min(here[state - own.stride]);
                }
            }
            for (value, work) in here.iter_mut().zip(&works) {
                if !is_open(work) {
                    *value = f64::INFINITY;
                }
            }
            is_reached[set] = here.iter().any(|value| value.is_finite());
            search.report_fraction(set as f64 / lattice.len() as f64);
        }
        Ok(pairs)
    }

    fn value(&self, set: usize, state: usize) -> f64 {
        self.values[set * self.states + state]
    }

    /// Accelerators of a state, or all its devices.
    fn used(&self, state: usize, with_cpus: bool) -> usize {
        let counted = self.devices.iter().filter(|own| with_cpus || own.kind.is_some());
        counted.map(|own| own.used(state)).sum()
    }

    /// Stages of the best split, first to last. The choices are found again by one walk per stage.
    fn stages(&self) -> Option<Vec<ClassesOnKind>> {
        let mut set = self.lattice.len() - 1;
        let allowed = (0..self.states).filter(|&state| self.used(state, false) <= self.accelerators);
        let rank = |state: usize| (self.value(set, state), self.used(state, true));
        let better = |a: &usize, b: &usize| {
            let ((value, used), (other, more)) = (rank(*a), rank(*b));
            value.total_cmp(&other).then(used.cmp(&more))
        };
        let mut state = allowed.min_by(better).filter(|&state| self.value(set, state).is_finite())?;
        let mut walk = LatticeWalk::new(self.lattice, self.costs);
        let mut stages = vec![];
        while set > 0 {
            let value = self.value(set, state);
            let fewer =
                self.devices.iter().find(|own| own.used(state) > 0 && self.value(set, state - own.stride) == value);
            if let Some(own) = fewer {
                state -= own.stride;
                continue;
            }
            let mut choice = None;
            let mut find = |j: usize, sums: &Sums| {
                let usable = || self.devices.iter().filter(|own| own.used(state) > 0);
                let reaches = |own: &&StageDevice| {
                    own.load(sums) < self.upper && self.value(j, state - own.stride).max(own.load(sums)) == value
                };
                choice = usable().find(reaches).map(|own| (j, *own));
                if choice.is_some() {
                    NextStep::Stop
                } else if usable().any(|own| own.at_least(sums) < self.upper) {
                    NextStep::Below(())
                } else {
                    NextStep::Past
                }
            };
            walk.down(set, (), &mut find);
            let (below, own) = choice.expect("every value of the table comes from a pair");
            stages.push((own.kind, self.lattice.between(set, below)));
            (set, state) = (below, state - own.stride);
        }
        stages.reverse();
        Some(stages)
    }
}

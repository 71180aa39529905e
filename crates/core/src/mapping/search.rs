//! The search over targets, and the dispatch of the methods.

use thiserror::Error;

use super::{
    MappingBottleneck, MappingCost, MappingInstance,
    baselines::EXHAUSTIVE,
    bipartition::HALVED,
    candidates::CandidateTimes,
    feasible::{DeviceOrder, Feasibility, FeasibilitySearch},
};
use crate::{plan::document::MappingPart, search::Search};

/// Node budget of the search for one target. It bounds the time, so that answers repeat on every machine.
const BUDGET: u64 = 200_000;
/// Largest number of devices for which a search runs; above it, only constructions. It bounds the memory of the bit
/// sets, which is cubic.
const SEARCHED: usize = 128;
/// Maximum number of rounds; each divides the interval of targets. It bounds the time where many values lie close.
const ROUNDS: usize = 64;

/// Method that finds a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MappingMethod {
    /// Search over targets.
    #[default]
    Search,
    /// Worker `i` on device `i`.
    Identity,
    /// Best of 1000 random orders.
    Random,
    /// Greedy: one worker after the other, to the device where its traffic takes least.
    Greedy,
    /// Simulated annealing.
    Annealing,
    /// Recursive bipartition.
    Bipartition,
    /// Exhaustive search.
    Exhaustive,
}

impl MappingMethod {
    /// All methods, in display order.
    pub const ALL: [MappingMethod; 7] = [
        MappingMethod::Search,
        MappingMethod::Identity,
        MappingMethod::Random,
        MappingMethod::Greedy,
        MappingMethod::Annealing,
        MappingMethod::Bipartition,
        MappingMethod::Exhaustive,
    ];

    /// Name of the method in options.
    pub const fn id(self) -> &'static str {
        match self {
            MappingMethod::Search => "search",
            MappingMethod::Identity => "identity",
            MappingMethod::Random => "random",
            MappingMethod::Greedy => "greedy",
            MappingMethod::Annealing => "annealing",
            MappingMethod::Bipartition => "bipartition",
            MappingMethod::Exhaustive => "exhaustive",
        }
    }

    /// Method with this name.
    pub fn find(id: &str) -> Option<MappingMethod> {
        MappingMethod::ALL.into_iter().find(|method| method.id() == id)
    }
}

/// Number of searches that run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parallel {
    /// Searches for the same target (`parallel_same_t`): one in fixed order, the others seeded.
    pub same_target: u32,
    /// All searches (`parallel_degree`); `degree / same_target` targets are probed at once.
    pub degree: u32,
}

impl Default for Parallel {
    fn default() -> Self {
        Parallel { same_target: 1, degree: 2 }
    }
}

impl Parallel {
    /// Validates the two numbers.
    ///
    /// # Errors
    /// [`MapError::Parallel`] if `same_target` does not divide `degree`, or one of them is zero.
    pub fn checked(self) -> Result<Self, MapError> {
        let Parallel { same_target, degree } = self;
        if same_target == 0 || degree == 0 || !degree.is_multiple_of(same_target) {
            return Err(MapError::Parallel { same_target, degree });
        }
        Ok(self)
    }
}

/// Settings of a mapping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MappingSettings {
    /// Method that finds the mapping.
    pub method: MappingMethod,
    /// Number of searches that run at once.
    pub parallel: Parallel,
    /// Seed of random choices.
    pub seed: u64,
    /// Node budget of the search for one target.
    pub budget: u64,
}

impl Default for MappingSettings {
    fn default() -> Self {
        MappingSettings { method: MappingMethod::Search, parallel: Parallel::default(), seed: 0, budget: BUDGET }
    }
}

impl MappingSettings {
    /// Settings for a mapping that is a side task: a tenth of the node budget.
    pub fn by_the_way(seed: u64) -> Self {
        MappingSettings { seed, budget: BUDGET / 10, ..MappingSettings::default() }
    }
}

/// Reason why nothing can be mapped.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MapError {
    /// More workers than devices.
    #[error(
        "the plan has {workers} parts and {topology} {devices} devices: use a larger topology, or plan for --devices \
        {devices}"
    )]
    TooFew {
        /// Parts of the plan.
        workers: usize,
        /// Number of devices.
        devices: usize,
        /// The topology's name.
        topology: String,
    },
    /// The topology is disconnected.
    #[error("{topology} has two parts without a link between them: {from} cannot reach {to}; no plan can use both")]
    Apart {
        /// The topology's name.
        topology: String,
        /// Devices of one part.
        from: String,
        /// Devices that this part does not reach.
        to: String,
    },
    /// Too many devices for exhaustive search.
    #[error("exhaustive mapping takes up to {EXHAUSTIVE} devices, and {topology} has {devices}: use mapping=search")]
    TooLarge {
        /// Number of devices.
        devices: usize,
        /// The topology's name.
        topology: String,
    },
    /// Too many devices for recursive bipartition.
    #[error("bipartition takes up to {HALVED} devices, and {topology} has {devices}: use greedy or search")]
    NotHalved {
        /// Number of devices.
        devices: usize,
        /// The topology's name.
        topology: String,
    },
    /// `parallel_degree` is not a multiple of `parallel_same_t`.
    #[error(
        "parallel_degree {degree} is not a multiple of parallel_same_t {same_target}: their quotient is the number \
        of targets"
    )]
    Parallel {
        /// Searches for the same target.
        same_target: u32,
        /// All searches.
        degree: u32,
    },
}

/// A mapping of workers to devices.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    /// Device of each worker.
    pub devices: Vec<usize>,
    /// Cost of the mapping.
    pub cost: MappingCost,
    /// Lower bound on the seconds of every mapping.
    pub lower_bound_s: f64,
    /// True if no mapping takes less time.
    pub proved: bool,
    /// True if a node budget ran out, or there were too many devices for a search.
    pub budget: bool,
    /// True if every mapping takes the same time.
    pub ties: bool,
    /// Method that found it.
    pub method: MappingMethod,
    /// Notes for the report.
    pub notes: Vec<String>,
}

impl Mapping {
    /// The mapping as in the plan document.
    pub fn part(&self, instance: &MappingInstance<'_>) -> MappingPart {
        let (topology, bottleneck) = (instance.topology, self.bottleneck(instance));
        MappingPart {
            topology: topology.name.clone(),
            file: None,
            method: self.method.id().into(),
            devices: self.devices.iter().map(|&device| device as u32).collect(),
            names: self.devices.iter().map(|&device| topology.device_name(device).to_string()).collect(),
            communication_s: self.cost.seconds,
            bottleneck_bytes_per_s: bottleneck.as_ref().map(|bottleneck| bottleneck.1),
            bottleneck: bottleneck.map(|bottleneck| bottleneck.0),
            lower_bound_s: self.lower_bound_s,
            proved: self.proved,
            iteration_s: None,
            notes: instance.notes().iter().chain(&self.notes).cloned().collect(),
        }
    }

    /// Description of the bottleneck (pair, ring or channel), and its bytes per second.
    pub fn bottleneck(&self, instance: &MappingInstance<'_>) -> Option<(String, f64)> {
        let topology = instance.topology;
        let name = |worker: usize| topology.device_name(self.devices[worker]).to_string();
        match self.cost.bottleneck {
            MappingBottleneck::None => None,
            MappingBottleneck::Flow(index) => {
                let flow = instance.demands.flows[index];
                let width = instance.matrix.at(self.devices[flow.from], self.devices[flow.to]);
                Some((format!("{} -> {}", name(flow.from), name(flow.to)), width))
            }
            MappingBottleneck::Ring(index) => {
                let group = &instance.demands.groups[index];
                let ring = instance.ring(group, &self.devices);
                let names: Vec<&str> = ring.order.iter().map(|&device| topology.device_name(device)).collect();
                const NAMED: usize = 8;
                let ring_of = match names.as_slice() {
                    [first, .., last] if names.len() > NAMED => {
                        format!("ring of {} devices, {first} - .. - {last}", names.len())
                    }
                    few => format!("ring {}", few.join(" - ")),
                };
                Some((ring_of, ring.width))
            }
            MappingBottleneck::Channel(channel) => {
                Some((topology.channel_name(channel), topology.channel_bandwidth(channel)))
            }
        }
    }
}

/// A target, and the result of its searches.
type TargetResult = (f64, Feasibility);

/// Maps a plan's demands onto a topology.
///
/// # Errors
/// [`MapError`] if no mapping exists, or the settings do not allow one.
pub fn map(instance: &MappingInstance<'_>, settings: &MappingSettings, search: &Search) -> Result<Mapping, MapError> {
    let topology = instance.topology;
    let parallel = settings.parallel.checked()?;
    let (workers, devices) = (instance.workers(), instance.devices());
    let name = || topology.name.clone();
    if workers > devices {
        return Err(MapError::TooFew { workers, devices, topology: name() });
    }
    if let Some((from, to)) = topology.apart() {
        return Err(MapError::Apart { topology: name(), from: topology.listed(&from), to: topology.listed(&to) });
    }
    let proved = instance.lower_bound(search);
    let nodes = settings.budget;
    let mut run = TargetSearch { instance, parallel, search, proved, nodes, budget: false, notes: vec![] };
    let idle = instance.demands.flows.is_empty() && instance.demands.groups.is_empty();
    let (method, devices) = match settings.method {
        MappingMethod::Search if idle => {
            run.notes.push(run.why_idle());
            (MappingMethod::Identity, instance.identity())
        }
        MappingMethod::Search => (MappingMethod::Search, run.searched(settings.seed)),
        MappingMethod::Identity => (MappingMethod::Identity, instance.identity()),
        MappingMethod::Random => (MappingMethod::Random, instance.random(settings.seed, search)),
        MappingMethod::Greedy => (MappingMethod::Greedy, instance.greedy(search)),
        MappingMethod::Annealing => {
            (MappingMethod::Annealing, instance.annealed(instance.greedy(search), settings.seed, search))
        }
        MappingMethod::Bipartition if devices > HALVED => {
            return Err(MapError::NotHalved { devices, topology: name() });
        }
        MappingMethod::Bipartition => (MappingMethod::Bipartition, instance.bipartition(search)),
        MappingMethod::Exhaustive => {
            let every = instance.exhaustive(search).ok_or_else(|| MapError::TooLarge { devices, topology: name() })?;
            if !search.cancelled() {
                run.proved = instance.cost(&every).seconds;
            }
            (MappingMethod::Exhaustive, every)
        }
    };
    let cost = instance.cost(&devices);
    let ties = !idle && !instance.consider.shared_links && instance.matrix.uniform();
    if ties {
        run.notes
            .push(format!("all pairs of {} have the same bandwidth: all mappings are equally good", topology.name));
    }
    let proved = cost.seconds <= run.proved * (1.0 + 1e-9);
    let TargetSearch { proved: bound, budget, notes, .. } = run;
    Ok(Mapping { devices, cost, lower_bound_s: bound.min(cost.seconds), proved, budget, ties, method, notes })
}

impl MappingInstance<'_> {
    /// Quick mapping: the better of identity and greedy, improved by exchanges if `polish` is set.
    pub fn quick(&self, polish: bool, search: &Search) -> Vec<usize> {
        let mut starts = vec![self.identity(), self.greedy(search)];
        if polish {
            starts = search.map(&starts, |start| self.polished(start, search));
        }
        let costed = starts.into_iter().map(|devices| (self.cost(&devices), devices));
        costed.reduce(|a, b| if b.0.is_less(&a.0) { b } else { a }).unwrap_or_default().1
    }
}

/// State of a search over targets.
struct TargetSearch<'a, 'b> {
    instance: &'b MappingInstance<'a>,
    parallel: Parallel,
    search: &'b Search,
    /// Lower bound on the seconds of every mapping.
    proved: f64,
    /// Node budget of the search for one target.
    nodes: u64,
    /// True if a budget ran out.
    budget: bool,
    notes: Vec<String>,
}

impl TargetSearch<'_, '_> {
    fn why_idle(&self) -> String {
        if self.instance.consider.transfers || self.instance.consider.all_reduces {
            "the plan has no communication: all mappings are equally good, and the identity is used".into()
        } else {
            "transfers and all-reduces are both ignored: the identity is used".into()
        }
    }

    /// Mapping found by the search over targets.
    fn searched(&mut self, seed: u64) -> Vec<usize> {
        let instance = self.instance;
        let mut starts = vec![instance.identity(), instance.greedy(self.search)];
        let halved = instance.devices() <= HALVED;
        if halved {
            starts.push(instance.bipartition(self.search));
        }
        let small = instance.devices() <= SEARCHED;
        if small {
            starts = self.search.map(&starts, |start| instance.polished(start, self.search));
        }
        let mut best = self.best(starts);
        if !small {
            self.budget = true;
            let constructed = if halved { "identity, greedy and bipartition" } else { "identity and greedy" };
            self.notes.push(format!(
                "above {SEARCHED} devices mappings are constructed, without search: the better of {constructed}"
            ));
            return best.1;
        }
        let first = best.clone();
        let candidates = CandidateTimes::new(instance);
        let mut least = self.proved;
        for _ in 0..ROUNDS {
            let targets = self.targets(least, best.0.seconds, &candidates);
            if targets.is_empty() || self.search.cancelled() {
                break;
            }
            for (target, found) in self.tried(&targets, seed) {
                match found {
                    Feasibility::Mapping(devices, cost) if cost.is_less(&best.0) => best = (cost, devices),
                    Feasibility::Mapping(..) => {}
                    Feasibility::Proved => {
                        least = least.max(target);
                        self.proved = self.proved.max(self.above(target, best.0.seconds, &candidates));
                    }
                    Feasibility::Budget => {
                        self.budget = true;
                        least = least.max(target);
                    }
                }
            }
        }
        self.settled(first, best)
    }

    /// Chooses one mapping among those with the best time, independent of the course of the search.
    fn settled(&self, first: (MappingCost, Vec<usize>), best: (MappingCost, Vec<usize>)) -> Vec<usize> {
        let target = best.0.seconds;
        let again = FeasibilitySearch::new(self.instance, target, DeviceOrder::Ascending, self.nodes).run(self.search);
        let found = match again {
            Feasibility::Mapping(devices, _) => devices,
            Feasibility::Proved | Feasibility::Budget => best.1,
        };
        let polished = self.instance.polished(&found, self.search);
        self.best(vec![first.1, polished]).1
    }

    /// Best of several mappings; the first one among equals.
    fn best(&self, mappings: Vec<Vec<usize>>) -> (MappingCost, Vec<usize>) {
        let costed = mappings.into_iter().map(|devices| (self.instance.cost(&devices), devices));
        costed.reduce(|a, b| if b.0.is_less(&a.0) { b } else { a }).unwrap_or_default()
    }

    /// Next value that a mapping can have above an infeasible target.
    fn above(&self, target: f64, best: f64, candidates: &CandidateTimes<'_>) -> f64 {
        if self.instance.consider.shared_links {
            // Either the target itself or, if the target is just below the best, the best.
            return if target >= best * (1.0 - 1e-8) { best } else { target };
        }
        let next = candidates.least(|time| time <= target * (1.0 + 1e-12));
        next.map_or(best, |next| next.min(best))
    }

    /// Targets to probe, between those that were refuted or given up and the incumbent.
    fn targets(&self, least: f64, best: f64, candidates: &CandidateTimes<'_>) -> Vec<f64> {
        let wanted = (self.parallel.degree / self.parallel.same_target).max(1) as usize;
        if best <= self.proved * (1.0 + 1e-9) {
            return vec![];
        }
        if self.instance.consider.shared_links {
            let last = best * (1.0 - 1e-9);
            return if least >= last {
                vec![]
            } else if best - least <= 1e-3 * best {
                vec![last]
            } else {
                (1..=wanted).map(|k| least + (best - least) * k as f64 / (wanted + 1) as f64).collect()
            };
        }
        // A refuted target is not probed again. A lower bound may be attained, so it is probed.
        let tried = if least <= self.proved { least * (1.0 - 1e-12) } else { least * (1.0 + 1e-12) };
        let pass = |time: f64| if least <= self.proved { time < tried } else { time <= tried };
        candidates.spaced(wanted, pass, best * (1.0 - 1e-12))
    }

    /// Probes the targets and returns the result of each, ascending. Among several searches for one target, the first
    /// one in order that finished counts, so that speed does not matter.
    fn tried(&self, targets: &[f64], seed: u64) -> Vec<TargetResult> {
        let same = u64::from(self.parallel.same_target);
        let one = |(&target, number): (&f64, u64)| {
            let order =
                if number == 0 { DeviceOrder::Ascending } else { DeviceOrder::Random(seed.wrapping_add(number)) };
            FeasibilitySearch::new(self.instance, target, order, self.nodes).run(self.search)
        };
        let all: Vec<(&f64, u64)> = targets.iter().flat_map(|target| (0..same).map(move |n| (target, n))).collect();
        let found: Vec<Feasibility> = self.search.map(all, one);
        let decided = |group: &[Feasibility]| {
            group.iter().find(|found| **found != Feasibility::Budget).cloned().unwrap_or(Feasibility::Budget)
        };
        targets.iter().copied().zip(found.chunks(same as usize).map(decided)).collect()
    }
}

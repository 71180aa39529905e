//! The device-placement algorithms as registered planners.
//!
//! Each planner turns the limits of a problem into [`PlacementLimits`], runs one algorithm, and turns its split into a
//! plan: a stage per device, in pipeline order, with the kind of its device as every node's choice. Some of the paper's
//! baselines ignore memory; if their split breaks the limit, it is refused here with the memory that it needs.

use super::{
    DeviceKind, PlacementProblem, PlacementResult, Split, baselines,
    dp::{self, DpOptions},
    first_plan, linearise, local_search, pipedream, smallest_memory, unequal_planner,
};
use crate::{
    Bearing, CannotPlan, Declaration, Infeasible, OptionKind, OptionSpec, Outcome, Planner, PlannerInfo, Problem,
    Proves, Statistics, Status,
};
use plantui_core::{
    cluster::LimitKind,
    search::Search,
    units,
    workload::{PlacementProfile, Workload},
};

pub(super) const PAPER: &str =
    "Tarnawski et al.: Efficient Algorithms for Device Placement of DNN Graph Operators, NeurIPS 2020";

/// Algorithm of a planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThroughputAlgorithm {
    Dp,
    Linearised,
    One,
    LocalSearch,
    PipeDream,
}

/// One of the algorithms as a planner.
#[derive(Debug)]
pub(crate) struct PlacementPlanner {
    declaration: &'static Declaration,
    algorithm: ThroughputAlgorithm,
}

static CONTRACT_LAYERS: [OptionSpec; 1] = [OptionSpec {
    name: "contract_layers",
    label: "contract layers",
    help: "keep colour classes that meet in a layer together",
    kind: OptionKind::Flag { default: false },
}];

static OF_CONTRACT_LAYERS: [(&str, Bearing); 1] = [(
    "contract_layers",
    Bearing::Narrows(|options| {
        options.flag("contract_layers").then(|| "with colour classes that meet in a layer kept together".into())
    }),
)];

static OF_RESTARTS: [(&str, Bearing); 1] = [("restarts", Bearing::Search)];

static RESTARTS: [OptionSpec; 1] = [OptionSpec {
    name: "restarts",
    label: "restarts",
    help: "descents from random starts; the best is kept",
    kind: OptionKind::Number { default: 10.0, least: 1.0, most: 100_000.0, whole: true, zero: None },
}];

const fn declared(id: &'static str, name: &'static str, summary: &'static str) -> Declaration {
    Declaration {
        info: PlannerInfo { id, name, paper: PAPER, summary, objective: "max_load", unit: "ms" },
        limits: &LimitKind::PLACEMENT,
        can_plan: |workload| alike_profile(workload).map(drop),
        ..Declaration::NEW
    }
}

/// Optimum over contiguous splits.
pub(crate) static DP: PlacementPlanner = PlacementPlanner {
    declaration: &Declaration {
        options: &CONTRACT_LAYERS,
        can_plan: |workload| placement_profile(workload).map(drop),
        other_limits: limits_of_kinds,
        proves: Proves::Among(&OF_CONTRACT_LAYERS),
        ..declared(
            "placement-dp",
            "Placement: DP",
            "the contiguous split with the least load of the busiest device, proven",
        )
    },
    algorithm: ThroughputAlgorithm::Dp,
};
/// Optimum along one order.
pub(crate) static LINEARISED: PlacementPlanner = PlacementPlanner {
    declaration: &Declaration {
        can_plan: |workload| placement_profile(workload).map(drop),
        other_limits: limits_of_kinds,
        ..declared(
            "placement-dpl",
            "Placement: linearised DP",
            "the best split along one topological order: fast, nearly optimal",
        )
    },
    algorithm: ThroughputAlgorithm::Linearised,
};
/// Everything on one accelerator.
pub(crate) static ONE: PlacementPlanner = PlacementPlanner {
    declaration: &declared(
        "placement-one",
        "Placement: one device",
        "everything on one accelerator, the paper's baseline",
    ),
    algorithm: ThroughputAlgorithm::One,
};
/// Best single moves from random starts.
pub(crate) static LOCAL_SEARCH: PlacementPlanner = PlacementPlanner {
    declaration: &Declaration {
        options: &RESTARTS,
        can_plan: |workload| placement_profile(workload).map(drop),
        other_limits: limits_of_kinds,
        proves: Proves::Among(&OF_RESTARTS),
        ..declared(
            "placement-local-search",
            "Placement: local search",
            "best single moves from random splits; splits need not be contiguous",
        )
    },
    algorithm: ThroughputAlgorithm::LocalSearch,
};
/// Biconnected components, then the linearised DP.
pub(crate) static PIPEDREAM: PlacementPlanner = PlacementPlanner {
    declaration: &declared(
        "placement-pipedream",
        "Placement: PipeDream",
        "merges branches into blocks and splits their order optimally",
    ),
    algorithm: ThroughputAlgorithm::PipeDream,
};

impl Planner for PlacementPlanner {
    fn declaration(&self) -> &'static Declaration {
        self.declaration
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let Some(asked) = PlacementProblem::of(problem) else { return Outcome::new(Status::Infeasible) };
        if let Some(limits) = unequal_planner::limits(&asked) {
            let mut outcome = match self.algorithm {
                ThroughputAlgorithm::LocalSearch => {
                    let restarts = problem.options.number("restarts") as u32;
                    unequal_planner::plan_locally(problem, &asked, &limits, restarts, search)
                }
                ThroughputAlgorithm::Linearised => {
                    unequal_planner::plan_contiguous(problem, &asked, &limits, true, &search.plans_only())
                }
                _ => unequal_planner::plan_contiguous(problem, &asked, &limits, false, search),
            };
            outcome.statistics.seconds = search.elapsed().as_secs_f64();
            return outcome;
        }
        let (dag, profile, limits) = (&problem.workload.dag, &*asked.profile, asked.limits);
        // Bounds for restricted problems must not be published.
        let (quiet, narrower) = (search.quiet(), search.plans_only());
        let placed = match self.algorithm {
            ThroughputAlgorithm::Dp => {
                let contract_layers = problem.options.flag("contract_layers");
                dp::plan(dag, profile, &limits, &DpOptions { contract_layers, ..DpOptions::default() }, search)
            }
            ThroughputAlgorithm::Linearised => linearise::plan(dag, profile, &limits, &DpOptions::default(), &narrower),
            ThroughputAlgorithm::One => baselines::one_accelerator(dag, profile, &limits),
            ThroughputAlgorithm::LocalSearch => {
                let restarts = problem.options.number("restarts") as u32;
                local_search::plan(dag, profile, &limits, restarts, search).0
            }
            ThroughputAlgorithm::PipeDream => pipedream::plan(dag, profile, &limits, &narrower),
        };
        let splits = ["contiguous splits in a chain"].into_iter().chain(placed.among).collect::<Vec<_>>().join(", ");
        let mut outcome = outcome(problem, &asked, placed, search);
        // Only the DP over all contiguous splits proves a bound for contiguous splits. The bound for all splits is
        // reported with every algorithm.
        if self.algorithm != ThroughputAlgorithm::Dp {
            let bound = first_plan::lower_bound_of_all(dag, profile, &limits);
            search.report_bound(bound);
            outcome.lower_bound = outcome.objective.map(|value| bound.min(value));
            if outcome.status == Status::Optimal {
                outcome.status = Status::Feasible;
            }
        } else {
            outcome.proven_among = outcome.lower_bound.map(|_| splits.clone());
        }
        if let (ThroughputAlgorithm::Dp, Some(story)) = (self.algorithm, &mut outcome.infeasible) {
            let contract_layers = problem.options.flag("contract_layers");
            let given = problem.workload.placement();
            let least = given.and_then(|profile| {
                smallest_memory::contiguous(dag, profile, contract_layers, limits.accelerators, &quiet)
            });
            if let Some(needed) = least {
                story.smallest_memory_bytes = needed.exact();
                story.explanation += &needed.sentence(profile, problem.limits.memory_limit());
            }
        }
        if self.algorithm == ThroughputAlgorithm::Dp && outcome.status == Status::Optimal {
            outcome
                .notes
                .push(format!("proven for {splits}: no edge leads to an earlier device; other splits may be better"));
        }
        outcome.statistics.seconds = search.elapsed().as_secs_f64();
        outcome
    }
}

/// Profile of a workload that device placement can plan.
///
/// # Errors
/// A reason that a user can act on.
pub(super) fn placement_profile(workload: &Workload) -> Result<&PlacementProfile, CannotPlan> {
    workload.placement().ok_or_else(|| "it needs times on accelerators and CPUs (a device-placement file)".into())
}

/// Limits of a workload whose accelerators are of several kinds.
fn limits_of_kinds(workload: &Workload) -> Option<&'static [LimitKind]> {
    let several = workload.placement().is_some_and(|profile| !profile.kinds.is_empty());
    several.then_some(&LimitKind::OF_KINDS)
}

/// Profile of a workload whose accelerators are alike.
///
/// # Errors
/// A reason that a user can act on.
pub(super) fn alike_profile(workload: &Workload) -> Result<&PlacementProfile, CannotPlan> {
    let profile = placement_profile(workload)?;
    if profile.kinds.is_empty() {
        return Ok(profile);
    }
    Err("it plans accelerators that are alike".into())
}

/// Outcome of an algorithm. A split that breaks a limit is reported but not returned as a plan.
pub(super) fn outcome(
    problem: &Problem,
    asked: &PlacementProblem<'_>,
    placed: PlacementResult,
    search: &Search,
) -> Outcome {
    let (profile, limits) = (&*asked.profile, &asked.limits);
    let limit = || units::bytes_exact(problem.limits.memory_limit());
    let statistics = Statistics { counts: placed.counts, ..Statistics::default() };
    let heaviest = placed.split.as_ref().map_or(0.0, |split| heaviest(profile, split));
    let unsupported = placed.split.as_ref().and_then(|split| unsupported(profile, split));
    let mut outcome = Outcome { statistics, notes: placed.notes, ..Outcome::new(placed.status) };
    let worth = placed
        .max_load
        .map_or_else(String::new, |value| format!(" has a max-load of {} ms, but", units::number(value)));
    let cpus = placed.split.as_ref().map_or(0, |split| split.used(DeviceKind::Cpu));
    let mut broken = LimitKind::Memory;
    let explanation = if let Some(node) = unsupported {
        let node = problem.workload.nodes[node].label();
        Some(format!("Its split{worth} has {node} on an accelerator, which cannot run it."))
    } else if heaviest > limits.memory_bytes {
        let (needed, limit) = (units::bytes(heaviest), limit());
        Some(format!(
            "Its split{worth} needs {needed} on one accelerator, the limit is {limit}; another planner may find a \
            split that fits."
        ))
    } else if cpus > limits.cpus as usize {
        broken = LimitKind::Cpus;
        let plural = if cpus == 1 { "" } else { "s" };
        Some(format!("Its split{worth} uses {cpus} CPU{plural}; {} are allowed.", limits.cpus))
    } else if placed.split.is_none() && placed.status != Status::Cancelled {
        let (accelerators, cpus) = (limits.accelerators, limits.cpus);
        let limit = limit();
        Some(format!("No split of this planner fits on {accelerators} accelerators with {limit} each and {cpus} CPUs."))
    } else {
        None
    };
    if let Some(explanation) = explanation {
        let smallest_memory_bytes =
            Some(heaviest).filter(|&bytes| bytes > limits.memory_bytes && unsupported.is_none());
        outcome.status = Status::Infeasible;
        outcome.infeasible =
            Some(Infeasible { limits: vec![broken], smallest_memory_bytes, fewest_devices: None, explanation });
        return outcome;
    }
    if let (Some(split), Some(value)) = (placed.split, placed.max_load) {
        let plan = split.plan(limits);
        search.improve(value, &plan);
        outcome.lower_bound = placed.lower_bound;
        outcome.plan = Some(plan);
        outcome.objective = Some(value);
    }
    outcome
}

/// Largest memory on any accelerator, bytes.
fn heaviest(profile: &PlacementProfile, split: &Split) -> f64 {
    let accelerators = split.devices.iter().filter(|device| device.kind == DeviceKind::Accelerator);
    accelerators.map(|device| device.nodes.iter().map(|&v| profile.nodes[v].size_bytes).sum()).fold(0.0, f64::max)
}

/// A node on an accelerator that cannot run it.
fn unsupported(profile: &PlacementProfile, split: &Split) -> Option<usize> {
    let accelerators = split.devices.iter().filter(|device| device.kind == DeviceKind::Accelerator);
    accelerators.flat_map(|device| device.nodes.iter().copied()).find(|&v| !profile.nodes[v].supported)
}

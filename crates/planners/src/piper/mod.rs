//! Piper: pipeline stages with data parallelism, tensor parallelism and recomputation, least time per sample.
//!
//! Tarnawski, Narayanan, Phanishayee: *Piper: Multidimensional Planner for DNN Parallelization*, NeurIPS 2021. The cost
//! model is that of the paper (`model`). The search is not its table but a bisection on the load (`search`). Each step
//! decides whether a plan with that load exists (`decide`). A knapsack chooses the modes (`knapsack`, `modes`).
//!
//! With `S` closed sets, `P` nested pairs of them and `k` devices, a run takes about 15 probes of `O(P · degrees · F)` time
//! and `O(S · F)` memory, where `F ≤ min(N, k)` is the number of Pareto-optimal (replicas, devices) of a set. The published
//! program takes `O(P · degrees · k · m)` time, for `m` numbers of replicas, and `O(S · k²)` memory.
//!
//! A network with more than [`MOST_SETS`] closed sets is planned over the suffixes of several topological orders. That gives
//! a valid plan with a gap; the outcome says so.

mod cumulative;
mod decide;
mod infeasible;
mod knapsack;
mod many;
mod model;
mod modes;
mod picking;
mod search;
mod settings;

use crate::{
    CannotPlan, Declaration, Infeasible, ManyRuns, Outcome, Planner, PlannerInfo, Problem, Proves, Status,
    pipeline_options::Recompute,
};
use plantui_core::{
    cluster::Limits,
    graph::{Dag, Enumeration, SuccessorSets},
    search::Search,
    workload::{PiperProfile, Workload},
};

use decide::Prober;
use model::PiperModel;
use search::{Loaded, RESOLUTION, WarmStart, minimise};
use settings::PiperSettings;

/// Number of closed sets up to which a network is planned exactly, as in the published program.
pub const MOST_SETS: usize = 40_000;
/// Upper bound on the words of bits of a family of sets (32 MiB).
const MOST_WORDS: usize = 1 << 22;
/// The same for the suffixes of topological orders.
const MOST_CHAIN_WORDS: usize = 1 << 19;
/// Number of nodes above which one topological order must do.
const MANY_NODES: usize = 4_000;
/// Number of closed sets above which suffixes of topological orders give a warm start, and about how many of them do.
const WARM_START_SETS: usize = 1_500;
/// The same for networks with too many closed sets. Without a plan over few, a network of 5,000 parallel layers has none
/// on 4,096 devices after a minute.
const FIRST_SETS: usize = 200;

/// Declaration of the planner.
static DECLARATION: Declaration = Declaration {
    info: PlannerInfo {
        id: "piper",
        name: "Piper",
        paper: "Tarnawski, Narayanan, Phanishayee: Piper: Multidimensional Planner for DNN Parallelization, NeurIPS \
            2021",
        summary: "stages, replicas, tensor degrees and recomputation with the least time per sample",
        objective: "time_per_sample",
        unit: "s",
    },
    options: &settings::OPTIONS,
    proves: Proves::Among(&settings::BEARINGS),
    tunables: &settings::TUNABLES,
    can_plan,
    plans_many: |problem| problem.workload.piper().is_some(),
    ..Declaration::NEW
};

/// The planner.
#[derive(Debug, Clone, Copy)]
pub struct Piper;

impl Planner for Piper {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let Some(profile) = problem.workload.piper() else { return Outcome::new(Status::Infeasible) };
        let settings = PiperSettings::new(&problem.options);
        let mut outcome = plan(&problem.workload, profile, &problem.limits, &settings, search);
        outcome.statistics.seconds = search.elapsed().as_secs_f64();
        outcome
    }

    fn plan_many(&self, problem: &Problem, devices: &[u32], run: &mut dyn ManyRuns) {
        many::plan(self, problem, devices, run);
    }
}

fn can_plan(workload: &Workload) -> Result<(), CannotPlan> {
    match workload.piper() {
        Some(_) => Ok(()),
        None => Err("Piper needs a profile with times and memory by tensor degree (Piper's JSON)".into()),
    }
}

/// Family of closed sets that stages are cut at.
struct Sets {
    family: SuccessorSets,
    /// True if the family holds every closed set.
    complete: bool,
    /// Number of closed sets up to which the family is complete: less than [`MOST_SETS`] for huge networks.
    limit: usize,
}

/// Closed sets of a network, or suffixes of topological orders where there are too many; `None` if cancelled.
fn closed_sets(dag: &Dag, search: &Search) -> Option<Sets> {
    let limit = MOST_SETS.min(MOST_WORDS / dag.len().div_ceil(64).max(1));
    match SuccessorSets::enumerate(dag, limit, &|| search.cancelled()) {
        Enumeration::Complete(family) => Some(Sets { family, complete: true, limit }),
        Enumeration::TooMany => Some(Sets { family: suffixes(dag, limit), complete: false, limit }),
        Enumeration::Cancelled => None,
    }
}

/// About `most` suffixes of topological orders that differ where the graph has branches. For huge networks fewer, of one order,
/// so that neither memory nor time grows with the square of the network.
fn suffixes(dag: &Dag, most: usize) -> SuccessorSets {
    let n = dag.len();
    let reversed_edges = dag.edges().iter().map(|&(u, v)| (v, u)).collect();
    let reversed = Dag::new(n, reversed_edges).expect("a reversed DAG has no cycle");
    // Orders of the reversed graph, read backwards, place every node as late as its successors allow.
    let backwards = |mut order: Vec<u32>| {
        order.reverse();
        order
    };
    let mut orders = vec![
        dag.stack_order(),
        dag.topological_order().to_vec(),
        backwards(reversed.stack_order()),
        backwards(reversed.topological_order().to_vec()),
    ];
    if n > MANY_NODES {
        orders.truncate(1);
    }
    let most = most.min(MOST_CHAIN_WORDS / n.div_ceil(64).max(1));
    SuccessorSets::from_orders(dag, &orders, (orders.len() * n).div_ceil(most).max(1))
}

fn plan(
    workload: &Workload,
    profile: &PiperProfile,
    limits: &Limits,
    settings: &PiperSettings,
    search: &Search,
) -> Outcome {
    let nodes = workload.nodes.len();
    if let Some(stages) = settings.stages.filter(|&stages| stages > nodes) {
        return Outcome::refused(format!("{stages} stages are required, but there are only {nodes} nodes."));
    }
    let Some(sets) = closed_sets(&workload.dag, search) else { return stopped(search, None, None) };
    let model = |family: SuccessorSets| PiperModel::new(workload, profile, limits, settings, family, search);
    let Some(wide) = model(sets.family.clone()) else { return stopped(search, None, None) };
    let explain = || infeasible::explain(workload, profile, limits, settings, &sets, search);
    if let Some(node) = wide.impossible_node() {
        return match explain() {
            Some(found) => excluded(workload, settings, node, limits, found),
            None => stopped(search, None, None),
        };
    }
    if infeasible::heaviest_node(&wide).1 > limits.memory() {
        return match explain() {
            Some(infeasible) => Outcome { infeasible: Some(infeasible), ..Outcome::new(Status::Infeasible) },
            None => stopped(search, None, None),
        };
    }
    let mut start = WarmStart::default();
    let few = if sets.complete { WARM_START_SETS } else { FIRST_SETS };
    if wide.sets.len() > few {
        let Some(narrow) = model(suffixes(&workload.dag, few)) else { return stopped(search, None, None) };
        let mut prober = Prober::new(&narrow, settings, limits.memory());
        // Bounds of a smaller family are no bounds of the whole.
        let quiet = search.plans_only();
        start.best = minimise(limits.devices, settings, &mut prober, WarmStart::default(), &quiet).best;
        start.likely = start.best.is_some();
    }
    let mut prober = Prober::new(&wide, settings, limits.memory());
    let reporting = if sets.complete { search.clone() } else { search.without_bounds() };
    let ended = minimise(limits.devices, settings, &mut prober, start, &reporting);
    // No load is below the even share: a plan that reaches it needs no search to be proven.
    let even_share = wide.even_share(limits.devices);
    let even = ended.best.as_ref().is_some_and(|best| best.load <= even_share * (1.0 + RESOLUTION));
    let proven = (sets.complete && !prober.unproven()) || even;
    let lower = match &ended.best {
        Some(best) if even => best.load,
        Some(best) => if sets.complete { ended.lower } else { even_share }.min(best.load),
        None => {
            if sets.complete {
                ended.lower
            } else {
                even_share
            }
        }
    };
    let mut outcome = match ended.best {
        best if !ended.complete && !even => stopped(search, best, Some(lower)),
        Some(Loaded { plan, load }) => Outcome {
            plan: Some(plan),
            objective: Some(load),
            lower_bound: Some(lower),
            ..Outcome::new(if proven { Status::Optimal } else { Status::Feasible })
        },
        // Other cuts may fit: nothing is proven, and only more cuts could tell.
        None if !sets.complete => {
            let note = format!(
                "No plan was found among {} closed sets along topological orders. The network has more than {}; the \
                 others were not searched.",
                wide.sets.len(),
                sets.limit
            );
            Outcome { notes: vec![note], ..Outcome::new(Status::Cancelled) }
        }
        None => match explain() {
            Some(infeasible) => Outcome { infeasible: Some(infeasible), ..Outcome::new(Status::Infeasible) },
            None => stopped(search, None, None),
        },
    };
    if !sets.complete && !proven && outcome.plan.is_some() {
        outcome.notes.push(format!(
            "The network has more than {} closed sets. Searched: {} of them, along topological orders.",
            sets.limit,
            wide.sets.len()
        ));
    }
    if prober.unproven() && !proven {
        outcome
            .notes
            .push("Some stages have too many combinations of modes for a proof: better plans may exist.".into());
    }
    outcome.statistics.counts = vec![("closed_sets", wide.sets.len() as f64), ("probes", f64::from(ended.probes))];
    outcome
}

/// Outcome where options or devices leave a node without any mode; `found` holds the values that would do.
fn excluded(workload: &Workload, settings: &PiperSettings, node: usize, limits: &Limits, found: Infeasible) -> Outcome {
    let node = workload.nodes[node].label();
    let mut explanation = match (settings.recompute, settings.tensor_parallel) {
        (Recompute::Never, _) => format!(
            "{node} has no mode that does not recompute at a tensor degree up to {}: set recompute to auto.",
            limits.devices
        ),
        (_, false) => format!("{node} has no mode at tensor degree 1: switch tensor parallelism on."),
        _ => format!("{node} has no mode at a tensor degree up to {}, the number of devices.", limits.devices),
    };
    if let Some(fewest) = found.fewest_devices {
        explanation += &format!(" {fewest} devices would be enough.");
    }
    let infeasible = Infeasible { explanation, ..found };
    Outcome { infeasible: Some(infeasible), ..Outcome::new(Status::Infeasible) }
}

/// Outcome of a search that was stopped, with the incumbent.
fn stopped(search: &Search, best: Option<Loaded>, lower_bound: Option<f64>) -> Outcome {
    let status = if search.deadline_passed() && best.is_some() { Status::Feasible } else { Status::Cancelled };
    let (plan, objective) = best.map(|best| (best.plan, best.load)).unzip();
    Outcome { plan, objective, lower_bound, ..Outcome::new(status) }
}

//! Piper: pipeline stages with data parallelism, tensor parallelism and recomputation, least time per sample.
//!
//! Tarnawski, Narayanan, Phanishayee: *Piper: Multidimensional Planner for DNN Parallelization*, NeurIPS 2021. The cost
//! model is the paper's (`model`); the search is not its table but a search over the answer (`bisection` asks
//! `probe` "is there a plan with every stage at most T?"), with modes chosen by a knapsack (`knapsack`, `modes`).
//!
//! With `D` admissible sets, `P` nested pairs of them, `m` microbatches-dividing replica counts and `k` devices, a run
//! takes about 15 probes of `O(P · degrees · F)` time, `F ≤ min(N, k)` the undominated (replicas, devices) of a set, and
//! `O(D · F)` memory. The published program takes `O(P · degrees · k · m)` time and `O(D · k²)` memory.
//!
//! A network with too many admissible sets is not refused but planned over the sets of several topological orders, then
//! over those near the cuts of the best plan (`nearby`), which gives a valid plan without proof; the outcome says so.

mod back;
mod bisection;
mod blocks;
mod counts;
mod crossings;
mod cumulative;
mod degree;
mod earlier;
mod first;
mod flow;
mod for_engine;
mod infeasible;
mod knapsack;
mod lean;
mod least_memory;
mod lists;
mod many;
mod model;
mod modes;
mod nearby;
mod orders;
mod picking;
mod prices;
mod probe;
#[cfg(test)]
mod probe_tests;
mod rest;
mod scratch;
mod settings;
mod smaller;
mod sources;
mod view;
mod worker;

use std::sync::OnceLock;

use crate::{
    cluster::Limits,
    graph::{Enumeration, SuccessorSets},
    plan::Plan,
    planner::{
        CannotPlan, Infeasible, ManyRuns, OptionError, OptionSpec, OptionValue, Options, Outcome, Planner, PlannerInfo,
        Problem, Proves, Search, Status, Tunable,
    },
    workload::{PiperProfile, Workload},
};

use crate::planner::{engine_layers, pipeline_options::Recompute};
use bisection::{Best, Known};
use least_memory::least_memory;
use model::PiperModel;
use nearby::{Near, Reach};
use orders::chains;
use probe::Crew;
use settings::PiperSettings;

/// More admissible sets than this are not planned exactly (the published program stops at 40,000).
pub const MOST_SETS: usize = 60_000;
/// More words of bits than this (32 MiB) are not kept for the sets.
const MOST_WORDS: usize = 1 << 22;
/// From this many sets on, chains of sets give a first plan.
const MANY_SETS: usize = 1_500;

/// From this many sets on that first plan is made better over the sets near its cuts.
const ENOUGH_SETS: usize = 4_000;
/// How far to look for a better plan before the search over all sets, and instead of it.
const NEAR: Reach = Reach { sets: 700, last: 1_400, rounds: 40, starts: 2 };
const FAR: Reach = Reach { sets: 1_500, last: 10_000, rounds: 80, starts: 12 };

/// From this many nodes on there is a plan before the search begins; from so many on also one over a few cuts, at most
/// twice as many as [`FEW_CUTS`].
const LARGE: usize = 200;
const VERY_LARGE: usize = 2_000;
const FEW_CUTS: usize = 128;

static INFO: PlannerInfo = PlannerInfo {
    id: "piper",
    name: "Piper",
    paper: "Tarnawski, Narayanan, Phanishayee: Piper: Multidimensional Planner for DNN Parallelization, NeurIPS 2021",
    summary: "stages, replicas, tensor degrees and recomputation with the least time per sample",
    objective: "time_per_sample",
    unit: "s",
};

/// The planner.
#[derive(Debug, Clone, Copy)]
pub struct Piper;

impl Planner for Piper {
    fn info(&self) -> &'static PlannerInfo {
        &INFO
    }

    fn options(&self) -> &'static [OptionSpec] {
        &settings::OPTIONS
    }

    fn proves(&self) -> Proves {
        Proves::Among(&settings::BEARINGS)
    }

    fn tunables(&self) -> &'static [Tunable] {
        &settings::TUNABLES
    }

    fn can_plan(&self, workload: &Workload) -> Result<(), CannotPlan> {
        match workload.piper() {
            Some(_) => Ok(()),
            None => Err("Piper needs a profile with times and memory by tensor degree (Piper's JSON)".into()),
        }
    }

    fn check_options(&self, problem: &Problem) -> Result<(), OptionError> {
        let settings = PiperSettings::new(&problem.options);
        let Some(runner) = settings.engine.filter(|_| problem.workload.piper().is_some()) else { return Ok(()) };
        let layers = engine_layers::layers(runner, &problem.workload, for_engine::MOST_LAYERS);
        let layering = layers.map_err(|why| engine_layers::unsuited(problem, runner, why))?;
        engine_layers::check_recompute(problem, runner, &layering, settings.recompute)
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let Some(profile) = problem.workload.piper() else { return Outcome::new(Status::Infeasible) };
        let settings = PiperSettings::new(&problem.options);
        let (workload, limits) = (&problem.workload, &problem.limits);
        let mut outcome = match settings.engine {
            Some(runner) => for_engine::plan(workload, profile, limits, &settings, runner, search),
            None => plan(workload, profile, limits, &settings, search),
        };
        outcome.statistics.seconds = search.elapsed().as_secs_f64();
        outcome
    }

    fn answers_many(&self, problem: &Problem) -> bool {
        // Plans for engines are searched another way, which leaves little to share.
        problem.workload.piper().is_some() && PiperSettings::new(&problem.options).engine.is_none()
    }

    fn plan_many(&self, problem: &Problem, devices: &[u32], run: &mut dyn ManyRuns) {
        many::plan(self, problem, devices, run);
    }
}

/// A plan without replicas and tensor parallelism that is there before anything is searched, if the order of the network
/// allows one.
pub(in crate::planner) fn first_plan(workload: &Workload, limits: &Limits, stages: Option<usize>) -> Option<Plan> {
    let mut options = Options::defaults(&settings::OPTIONS);
    for degree in ["data_parallel", "tensor_parallel"] {
        options.set(degree, OptionValue::Flag(false));
    }
    let settings = PiperSettings { stages, ..PiperSettings::new(&options) };
    let (order, search) = (workload.dag.stack_order(), Search::default());
    let ends = SuccessorSets::at_places(&workload.dag, &order, &[]);
    let model = PiperModel::new(workload, workload.piper()?, limits, &settings, ends, &search)?;
    if model.impossible_node().is_some() {
        return None;
    }
    first::plan(&model, &order, &settings, &search).map(|first| first.best.plan)
}

/// A plan found before the search, and a bound.
#[derive(Debug, Clone, Default)]
struct Start {
    best: Option<Best>,
    /// The load if all work were shared out evenly; 0 if nobody looked.
    even_share: f64,
    /// Bytes that every device needs at the least, where it has less.
    lacks: Option<f64>,
}

impl Start {
    /// For large networks: stages filled along one order, then the best cuts among a few along that order.
    fn new(
        workload: &Workload,
        profile: &PiperProfile,
        limits: &Limits,
        settings: &PiperSettings,
        search: &Search,
    ) -> Option<Self> {
        let (dag, n) = (&workload.dag, workload.nodes.len());
        if n < LARGE {
            return Some(Start::default());
        }
        let order = dag.stack_order();
        let model = |places: &[usize]| {
            PiperModel::new(workload, profile, limits, settings, SuccessorSets::at_places(dag, &order, places), search)
        };
        let ends = model(&[])?;
        if ends.impossible_node().is_some() {
            return Some(Start::default());
        }
        let least = least_memory(&ends);
        if least > limits.memory() {
            return Some(Start { lacks: Some(least), ..Start::default() });
        }
        let even_share = ends.even_share();
        search.report_bound(even_share);
        let Some(first::First { best, cuts }) = first::plan(&ends, &order, settings, search) else {
            return Some(Start { even_share, ..Start::default() });
        };
        search.improve(best.value, &best.plan);
        let mut start = Start { best: Some(best), even_share, lacks: None };
        if n < VERY_LARGE || cuts.len() > FEW_CUTS {
            return Some(start);
        }
        let mut places: Vec<usize> = (1..FEW_CUTS).map(|i| i * n / FEW_CUTS).chain(cuts).collect();
        places.sort_unstable();
        places.dedup();
        let Some(coarse) = model(&places) else { return Some(start) };
        let Some(mut crew) = Crew::new(&coarse, settings, limits.memory(), search) else { return Some(start) };
        let known = Known { best: start.best.take(), ..Known::default() };
        let devices = limits.devices;
        start.best = bisection::minimise(devices, &coarse, settings, &mut crew, known, &search.plans_only()).best;
        Some(start)
    }

    fn stopped(self, search: &Search) -> Outcome {
        stopped(search, self.best, Some(self.even_share).filter(|&bound| bound > 0.0))
    }
}

// Long: first plan, bounds, questions and what is told of them, in that order.
fn plan(
    workload: &Workload,
    profile: &PiperProfile,
    limits: &Limits,
    settings: &PiperSettings,
    search: &Search,
) -> Outcome {
    let nodes = workload.nodes.len();
    if let Some(stages) = settings.stages.filter(|&stages| stages > nodes) {
        return Outcome::refused(format!("{stages} stages are asked for, but there are only {nodes} nodes."));
    }
    let Some(start) = Start::new(workload, profile, limits, settings, search) else {
        return stopped(search, None, None);
    };
    if let Some(least) = start.lacks {
        return infeasible::lacking(limits, least);
    }
    if search.cancelled() {
        return start.stopped(search);
    }
    let chains = chains(&workload.dag);
    let most_sets = MOST_SETS.min(MOST_WORDS / workload.nodes.len().div_ceil(64).max(1));
    let prepared = OnceLock::new();
    // All sets, and whether they are all; or chains of them.
    let prepare = || {
        let (sets, exact) = match SuccessorSets::enumerate(&workload.dag, most_sets, &|| search.cancelled()) {
            Enumeration::Complete(sets) => (sets, true),
            Enumeration::Cancelled => return None,
            Enumeration::TooMany => (chains.clone(), false),
        };
        let model = PiperModel::new(workload, profile, limits, settings, sets, search)?;
        Some(prepared.get_or_init(|| (model, exact)))
    };
    let near = |reach: Reach| Near { workload, profile, limits, settings, reach: reach.within(nodes) };
    // A plan that is probably the best already, over fewer sets than there are.
    let hint = |sets: usize| {
        let known = Known { best: start.best.clone(), ..Known::default() };
        let model = PiperModel::new(workload, profile, limits, settings, chains.clone(), search);
        let Some(model) = model.filter(|model| model.impossible_node().is_none()) else { return known };
        // Its bounds are those of a smaller family: they must not reach whoever watches.
        let search = search.plans_only();
        let Some(mut crew) = Crew::new(&model, settings, limits.memory(), &search) else { return known };
        let best = bisection::minimise(limits.devices, &model, settings, &mut crew, known, &search).best;
        let best = if sets > ENOUGH_SETS { near(NEAR).best_of_starts(best.as_ref(), &search) } else { best };
        Known { likely: best.is_some(), best, ..Known::default() }
    };
    // Where there are surely enough sets the hint is made while they are enumerated, else beside the crew. Who is alone begins with
    // the sets: a bound follows from them.
    let least_sets = SuccessorSets::at_least(&workload.dag);
    let enough = (ENOUGH_SETS + 1..=most_sets).contains(&least_sets).then_some(least_sets);
    let beside = enough.is_some() && rayon::current_num_threads() > 1;
    let first = (!beside).then(prepare);
    let few = match &first {
        Some(Some((model, true))) if model.sets.len() > MANY_SETS => Some(model.sets.len()),
        _ => enough,
    };
    let (known, made) = rayon::join(
        || few.map(hint),
        || {
            let (model, exact) = first.unwrap_or_else(prepare)?;
            let crew = || Crew::new(model, settings, limits.memory(), search);
            Some((model, *exact, model.impossible_node().is_none().then(crew).flatten()))
        },
    );
    let known = known.unwrap_or_else(|| Known { best: start.best.clone(), ..Known::default() });
    let Some((model, exact, crew)) = made else { return Start { best: known.best, ..start }.stopped(search) };
    if let Some(node) = model.impossible_node() {
        return match infeasible::explain(workload, profile, limits, settings, &model.sets, &chains, search) {
            Some(found) => excluded(workload, settings, node, limits, found),
            None => stopped(search, None, None),
        };
    }
    let trivial = model.even_share();
    let bound = rest::least_load(model, &bisection::allowed(model), limits.devices).max(trivial);
    let Some(mut crew) = crew else { return stopped(search, known.best, Some(bound)) };
    let reporting = if exact { search.clone() } else { search.without_bounds() };
    let mut ended = bisection::minimise(limits.devices, model, settings, &mut crew, known, &reporting);
    if !exact && nodes < VERY_LARGE {
        ended.best = near(FAR).best_of_starts(ended.best.as_ref(), &reporting.plans_only());
    }
    // Nothing can take less than the work shared out evenly: a plan that reaches that needs no search to prove it.
    let even = ended.best.as_ref().is_some_and(|best| best.value <= trivial * (1.0 + bisection::RESOLUTION));
    let proven = (exact && !crew.unproven()) || even;
    let mut notes = vec![];
    if !exact && !proven {
        notes.push(format!(
            "The graph has more than {most_sets} admissible sets, too many to try all: planned with {} of them along topological orders, so there may be better plans.",
            model.sets.len()
        ));
    }
    if crew.unproven() && !proven {
        notes.push(
            "Some stages have too many combinations of modes to prove their choice: there may be better plans.".into(),
        );
    }
    let lower = match &ended.best {
        Some(best) if even => Some(best.value),
        Some(best) => Some(if proven { ended.lower } else { bound }.min(best.value)),
        None => Some(if proven { ended.lower } else { bound }),
    };
    let mut outcome = match ended.best {
        best if !ended.complete && !even => stopped(search, best, lower),
        Some(Best { plan, value }) => Outcome {
            plan: Some(plan),
            objective: Some(value),
            lower_bound: lower,
            ..Outcome::new(if proven { Status::Optimal } else { Status::Feasible })
        },
        None => match infeasible::explain(workload, profile, limits, settings, &model.sets, &chains, search) {
            Some(infeasible) => Outcome { infeasible: Some(infeasible), ..Outcome::new(Status::Infeasible) },
            None => stopped(search, None, None),
        },
    };
    outcome.notes = notes;
    outcome.statistics.counts = vec![("closed_sets", model.sets.len() as f64), ("probes", f64::from(ended.probes))];
    outcome
}

/// The outcome where options or devices leave a node without any mode; `found` says what more devices would change.
fn excluded(workload: &Workload, settings: &PiperSettings, node: usize, limits: &Limits, found: Infeasible) -> Outcome {
    let node = workload.nodes[node].label();
    let mut explanation = match (settings.recompute, settings.tensor_parallel) {
        (Recompute::Never, _) => format!(
            "{node} has no mode that does not recompute at a tensor degree up to {}: set recompute to auto.",
            limits.devices
        ),
        (_, false) => format!("{node} offers no tensor degree 1: switch tensor parallel on."),
        _ => format!("{node} offers no tensor degree of at most {}, the number of devices.", limits.devices),
    };
    if let Some(fewest) = found.fewest_devices {
        explanation += &format!(" {fewest} devices would do.");
    }
    let infeasible = Infeasible { explanation, ..found };
    Outcome { infeasible: Some(infeasible), ..Outcome::new(Status::Infeasible) }
}

/// The outcome of a run that was stopped: the best plan so far, if any.
fn stopped(search: &Search, best: Option<Best>, lower_bound: Option<f64>) -> Outcome {
    let status = if search.deadline_passed() && best.is_some() { Status::Feasible } else { Status::Cancelled };
    let (plan, objective) = best.map(|best| (best.plan, best.value)).unzip();
    Outcome { plan, objective, lower_bound, ..Outcome::new(status) }
}

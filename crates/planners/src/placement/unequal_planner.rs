//! The planners that take accelerators of several kinds: the dynamic program, over all orders or along one, and the local
//! search.

use super::{
    PlacementProblem,
    classes::{ClassGraph, Partition},
    load::ClassCosts,
    local_search,
    split::stage,
    unequal::{self, KindLimits, UnequalLimits, UnequalSpace, UnequalStage},
};
use crate::{Infeasible, Outcome, Problem, Statistics, Status};
use plantui_core::{
    cluster::LimitKind,
    plan::{Measure, Plan},
    search::Search,
    units,
    workload::{Choice, PlacementProfile},
};

/// Splits that the dynamic program searches.
const AMONG: &str = "contiguous splits in a chain";

/// Limits of a profile whose accelerators are of several kinds.
pub(super) fn limits(asked: &PlacementProblem<'_>) -> Option<UnequalLimits> {
    let (accelerators, cpus) = (asked.limits.accelerators, asked.limits.cpus);
    (!asked.kinds.is_empty()).then(|| UnequalLimits { kinds: asked.kinds.clone(), accelerators, cpus })
}

/// Plans by the dynamic program; along one order only, if `linear`.
pub(super) fn plan_contiguous(
    problem: &Problem,
    asked: &PlacementProblem<'_>,
    limits: &UnequalLimits,
    linear: bool,
    search: &Search,
) -> Outcome {
    let space = UnequalSpace { contract_layers: !linear && problem.options.flag("contract_layers"), linear };
    let plan = |stages: &[UnequalStage]| {
        let mut next: Vec<u32> = limits.kinds.iter().map(|kind| kind.first).collect();
        next.push(limits.all());
        of_devices(stages.iter().map(|stage| {
            let number = &mut next[stage.kind.unwrap_or(limits.kinds.len())];
            *number += 1;
            (stage.nodes.clone(), *number - 1, stage.kind.is_none())
        }))
    };
    let mut improved = |value: f64, stages: &[UnequalStage]| search.improve(value, &plan(stages));
    let found = unequal::plan(&problem.workload.dag, &asked.profile, limits, space, search, &mut improved);
    let among = [AMONG].into_iter().chain(found.among).collect::<Vec<_>>().join(", ");
    let mut outcome = Outcome::new(if found.proven { Status::Optimal } else { Status::Feasible });
    outcome.statistics.counts = found.counts;
    outcome.notes.extend(fewer_than_asked(limits));
    if search.cancelled() && !found.proven {
        outcome.status = Status::Cancelled;
    }
    if let Some(sets) = found.too_many {
        outcome.notes.push(format!(
            "{sets} sets at which a pipeline can be cut are too many for these numbers of devices: the split is the \
             best along one order of its classes, without proof"
        ));
    }
    match found.best {
        Some((value, stages)) => {
            let plan = plan(&stages);
            search.improve(value, &plan);
            (outcome.plan, outcome.objective) = (Some(plan), Some(value));
            outcome.lower_bound = Some(found.bound.min(value));
            if !linear {
                outcome.proven_among = Some(among.clone());
            } else if outcome.status == Status::Optimal {
                outcome.status = Status::Feasible;
            }
            if outcome.status == Status::Optimal {
                let note =
                    format!("proven for {among}: no edge leads to an earlier device; other splits may be better");
                outcome.notes.push(note);
            }
        }
        None if outcome.status == Status::Cancelled => {}
        None if found.too_many.is_some() => {
            let sets = found.too_many.unwrap_or_default();
            return Outcome::refused(format!(
                "{sets} sets at which a pipeline can be cut are too many to search on {}, and no split along one order \
                 was found: allow fewer devices, or take --planner placement-local-search.",
                devices(problem, limits)
            ));
        }
        None => {
            outcome.status = Status::Infeasible;
            let splits = if found.proven { "contiguous split" } else { "split along one order" };
            let among = found.among.map_or_else(String::new, |among| format!(" {among}"));
            let on = devices(problem, limits);
            let explanation = format!("No {splits}{among} fits on {on}.");
            outcome.infeasible =
                Some(Infeasible { limits: vec![LimitKind::Memory], explanation, ..Infeasible::default() });
        }
    }
    outcome
}

/// Plans by descents from random starts, which ignore memory as the paper's local search does.
pub(super) fn plan_locally(
    problem: &Problem,
    asked: &PlacementProblem<'_>,
    limits: &UnequalLimits,
    restarts: u32,
    search: &Search,
) -> Outcome {
    let (dag, profile) = (&problem.workload.dag, &*asked.profile);
    let fastest = limits.fastest();
    if fastest.is_empty() {
        return Outcome::refused("Local search uses accelerators only: allow at least one.");
    }
    let graph = ClassGraph::new(dag, profile, &Partition::by_colour(profile));
    let costs = ClassCosts::new(dag, profile, &graph.partition);
    if costs.net_count().saturating_mul(fastest.len()) > local_search::MOST_COUNTERS {
        return Outcome::refused("The graph has too many edges for local search on so many accelerators.");
    }
    let bound = unequal::bound_of_all(dag, profile, limits);
    search.report_bound(bound);
    let speeds: Vec<f64> = fastest.iter().map(|(_, speed)| *speed).collect();
    let ((_, device), descents) = local_search::best_of(&costs, &speeds, restarts, search);
    let mut classes = vec![vec![]; fastest.len()];
    for (class, &device) in device.iter().enumerate() {
        classes[device as usize].push(class);
    }
    let kind_of = |number: u32| limits.kinds.iter().rposition(|kind| kind.first <= number).unwrap_or_default();
    let (mut value, mut over) = (0.0f64, None);
    for (&(number, _), classes) in fastest.iter().zip(&classes) {
        let kind = kind_of(number);
        value = value.max(limits.load(&costs, Some(kind), classes));
        let bytes: f64 = classes.iter().map(|&class| costs.size[class]).sum();
        if classes.iter().any(|&class| !costs.supported[class]) {
            return Outcome::refused("Its split has a node on an accelerator, which cannot run it.");
        }
        if bytes > limits.kinds[kind].memory_bytes {
            over = Some((bytes, kind));
        }
    }
    let moves: usize = descents.iter().map(|descent| descent.moves).sum();
    let counts = vec![("classes", costs.len() as f64), ("restarts", descents.len() as f64), ("moves", moves as f64)];
    let mut outcome = Outcome::new(if search.cancelled() { Status::Cancelled } else { Status::Feasible });
    outcome.statistics = Statistics { counts, ..Statistics::default() };
    outcome.notes.extend(fewer_than_asked(limits));
    if let Some((bytes, kind)) = over {
        outcome.status = Status::Infeasible;
        outcome.infeasible = Some(no_memory(value, bytes, &profile.kinds[kind].id, limits.kinds[kind]));
        return outcome;
    }
    let members = graph.partition.members();
    let filled = fastest.iter().zip(&classes).filter(|(_, classes)| !classes.is_empty());
    let plan = of_devices(filled.map(|(&(number, _), classes)| {
        (classes.iter().flat_map(|&class| members[class].clone()).collect(), number, false)
    }));
    search.improve(value, &plan);
    (outcome.plan, outcome.objective) = (Some(plan), Some(value));
    outcome.lower_bound = Some(bound.min(value));
    outcome
}

/// Note that there are fewer accelerators than the limit on all kinds together allows.
fn fewer_than_asked(limits: &UnequalLimits) -> Option<String> {
    let all = units::counted(limits.all() as usize, "accelerator");
    (limits.all() < limits.accelerators)
        .then(|| format!("--devices {} is more than there are: the kinds have {all}", limits.accelerators))
}

fn no_memory(value: f64, bytes: f64, id: &str, kind: KindLimits) -> Infeasible {
    let (value, bytes) = (units::number(value), units::bytes_beside(bytes, kind.memory_bytes));
    let limit = units::bytes_exact(kind.memory_bytes);
    let explanation = format!(
        "Its split has a max-load of {value} ms, but needs {bytes} on one {id} accelerator, whose limit is {limit}; \
         `placement-dp` keeps to the memory."
    );
    Infeasible { limits: vec![LimitKind::Memory], explanation, ..Infeasible::default() }
}

/// Devices of a problem in words.
fn devices(problem: &Problem, limits: &UnequalLimits) -> String {
    let (most, cpus) = (limits.accelerators, limits.cpus);
    let kinds = problem.workload.placement().map(PlacementProfile::kinds_text).unwrap_or_default();
    let few = if most < limits.all() { format!("{most} of ") } else { String::new() };
    format!("{few}{kinds} and {}", units::counted(cpus as usize, "CPU"))
}

/// Plan with a stage for each device: its nodes, its number, and if it is a CPU.
fn of_devices(devices: impl Iterator<Item = (Vec<usize>, u32, bool)>) -> Plan {
    let one = |(nodes, number, is_cpu): (Vec<usize>, u32, bool)| {
        stage(&nodes, if is_cpu { Choice::Cpu } else { Choice::Accelerator }, number)
    };
    Plan { stages: devices.map(one).collect(), measure: Measure::MaxLoad, ..Plan::default() }
}

//! Mapping of a finished plan onto its topology: the devices where an iteration is fastest.
//!
//! A planner without routes assumes the slowest pairs. If it gives several plans, they are measured again on the routes
//! with their parts in order, and the fastest few are mapped. Costs one check per plan, and at most three mappings.

use plantui_core::{
    cluster::topology::PlanTopology,
    family,
    mapping::{self, CommunicationKinds, MappedPlan, MappingChoice},
    plan::{Plan, Score},
    search::Search,
    units,
};
use plantui_planners::{Alternative, Outcome, Planner, Problem, Status};

/// Number of the fastest plans that are mapped.
const MAPPED: usize = 3;

/// Reason if a problem requests more devices than its topology has.
pub(super) fn too_many_devices(problem: &Problem) -> Option<String> {
    let topology = &problem.limits.topology.as_ref()?.topology;
    let (asked, there) = (problem.limits.devices as usize, topology.devices());
    let name = &topology.name;
    (asked > there).then(|| {
        let has = units::counted(there, "device");
        format!("The plan needs {asked} devices, and {name} has {has}; several machines are written 8x{name}+ib-ndr.")
    })
}

/// Maps a plan to the devices of its topology with the fastest simulated iteration: those that a search over targets
/// finds, or the plan's own. A plan that cannot be mapped stays unchanged, and the notes say why. Planners with
/// topology support have done this themselves.
pub(super) fn map(
    planner: &dyn Planner,
    problem: &Problem,
    outcome: &mut Outcome,
    score: &mut Option<Score>,
    search: &Search,
) {
    let Some(wired) = &problem.limits.topology else { return };
    let own = planner.options().iter().any(|spec| spec.name == "topology");
    if own || outcome.mapping.is_some() || !score.as_ref().is_some_and(Score::is_valid) {
        return;
    }
    let name = &wired.topology.name;
    let first = outcome.plan.as_ref().and_then(|plan| plan.configuration().cloned());
    let routed = route_alternatives(problem, wired, outcome, score, search);
    let (Some(plan), Some(before)) = (&outcome.plan, score.clone()) else { return };
    let mut found = match mapped(problem, plan, wired, search) {
        Ok(found) => found,
        Err(why) => return outcome.notes.push(format!("not mapped to {name}: {why}")),
    };
    for other in outcome.alternatives.iter().skip(1).take(if routed { MAPPED - 1 } else { 0 }) {
        if let Ok(mapped) = mapped(problem, &other.plan, wired, search)
            && mapped.1.value < found.1.value
        {
            found = mapped;
        }
    }
    let (mapped, moved) = found;
    if mapped.plan.configuration() != first.as_ref() {
        let told = format!("another of the plans found is fastest on the routes of {name}, and is used");
        outcome.notes.push(told);
    }
    if (moved.value - before.value).abs() > 1e-9 * before.value.abs() {
        let (then, now) = (before.measure.show(before.value), before.measure.show(moved.value));
        let model = before.measure.model();
        outcome.notes.push(format!("on its mapped devices {model} gives {now} instead of {then}"));
        bound_on_routes(outcome, moved.value);
    }
    if let (Some((_, _, Some(before))), Some(after)) = (&mapped.before, mapped.part.iteration_s) {
        let before = units::seconds(*before);
        let after = units::seconds(after);
        let told =
            format!("mapped to {name}: an iteration takes {after} on its routes, {before} with devices in order");
        outcome.notes.push(told);
    }
    outcome.notes.push(format!("mapping: {}", mapped.part.summary()));
    outcome.objective = Some(moved.value);
    if !family::of(&problem.workload).plans_are_configurations() {
        // The alternatives existed only for the mapping.
        outcome.alternatives.clear();
    }
    let own = |other: &Alternative| other.plan.configuration() == mapped.plan.configuration();
    if let Some(place) = outcome.alternatives.iter().position(own) {
        let other = outcome.alternatives.remove(place);
        let first = Alternative { value: moved.value, plan: mapped.plan.clone(), ..other };
        outcome.alternatives.insert(0, first);
    }
    outcome.plan = Some(mapped.plan);
    outcome.mapping = Some(mapped.part);
    *score = Some(moved);
}

/// Adjusts the proof if the plan's value changes on the mapped devices.
fn bound_on_routes(outcome: &mut Outcome, value: f64) {
    match outcome.lower_bound.filter(|_| outcome.bound_holds_on_routes) {
        Some(lower) if lower <= value * (1.0 + 1e-9) => {
            let open = value - lower > 1e-9 * value;
            if outcome.status == Status::Optimal && open {
                outcome.status = Status::Feasible;
            }
        }
        _ => outcome.not_proven(),
    }
}

/// Plan on the devices where an iteration is fastest, with its score there; else the reason why not.
fn mapped(
    problem: &Problem,
    plan: &Plan,
    wired: &PlanTopology,
    search: &Search,
) -> Result<(MappedPlan, Score), String> {
    let Problem { workload, limits, .. } = problem;
    let settings = mapping::MappingSettings::by_the_way(search.seed());
    let how = (CommunicationKinds::default(), &settings, MappingChoice::Faster);
    let mapped = mapping::map_plan(workload, limits, plan, wired, how, search).map_err(|error| error.to_string())?;
    let score = family::check(workload, limits, &mapped.plan);
    match score.violations.first() {
        Some(violation) => Err(violation.to_string()),
        None => Ok((mapped, score)),
    }
}

/// Measures all plans on the routes of a topology, their parts in order, and sorts them; the fastest becomes the plan.
/// False if there is only one.
fn route_alternatives(
    problem: &Problem,
    wired: &PlanTopology,
    outcome: &mut Outcome,
    score: &mut Option<Score>,
    search: &Search,
) -> bool {
    let Problem { workload, limits, .. } = problem;
    if outcome.alternatives.len() < 2 || search.cancelled() {
        return false;
    }
    let (topology, mut changed) = (&wired.topology, false);
    for other in &mut outcome.alternatives {
        let in_order: Vec<usize> = (0..other.plan.devices().count()).collect();
        let plan = Plan { topology: None, ..other.plan.clone() }.on(topology, &in_order);
        let score = family::check(workload, limits, &plan);
        if score.is_valid() {
            changed |= (score.value - other.value).abs() > 1e-9 * other.value.abs();
            (other.value, other.plan) = (score.value, Plan { topology: None, ..plan });
        }
    }
    if !changed {
        return true;
    }
    // Stable: plans of equal time keep their order.
    outcome.alternatives.sort_by(|a, b| a.value.total_cmp(&b.value));
    let fastest = outcome.alternatives[0].plan.clone();
    bound_on_routes(outcome, outcome.alternatives[0].value);
    outcome.objective = Some(outcome.alternatives[0].value);
    *score = Some(family::check(workload, limits, &fastest));
    outcome.plan = Some(fastest);
    true
}

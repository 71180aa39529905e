//! Schedules that an engine runs and no search covers: the plan that was found, simulated under each of them.
//!
//! Looped BFS and DualPipeV have no bound that would prune plans, and no plan measured so far is faster under them than
//! under the best schedule that is searched. A simulation of each tells it for the plan at hand. `O(schedules · passes)`.

use plantui_core::{
    cluster::Limits,
    family::{self, training::configured},
    plan::{Plan, Schedule, runner::Runner},
    search::Search,
    simulate::{Setup, simulate_unless},
    units,
    workload::Workload,
};

use super::kind::SEARCHED;

/// True if every stage can be divided into this many virtual ones.
fn divides(workload: &Workload, plan: &Plan, parts: u32) -> bool {
    let Some(profile) = workload.training().filter(|_| parts > 1) else {
        return plan.stages.iter().all(|stage| stage.nodes.len() >= parts as usize);
    };
    let mut own = configured::of_plan(profile, plan);
    own.layout.virtual_stages = parts;
    (own.layers, own.head_alone) = (vec![], false);
    configured::split(profile, &own).is_some()
}

/// Note on the schedules of an engine that were not searched, with the fastest of them for a plan of `seconds`. `None`
/// if all were searched.
pub(super) fn note(
    (workload, limits): (&Workload, &Limits),
    runner: Runner,
    (plan, seconds): (&Plan, f64),
    search: &Search,
) -> Option<String> {
    let others: Vec<Schedule> =
        runner.schedules().iter().copied().filter(|schedule| !SEARCHED.contains(schedule)).collect();
    let names: Vec<&str> = others.iter().map(|schedule| schedule.name()).collect();
    let (last, first) = names.split_last()?;
    let setup = Setup::default().of(plan);
    let pipeline = family::pipeline(workload, limits, plan, &setup.settings);
    let able = |schedule: &Schedule| {
        let stages = pipeline.stages.len() as u32;
        let parts = pipeline.virtual_stages(*schedule);
        divides(workload, plan, parts)
            && pipeline.refusal(*schedule).is_none()
            && runner.refuses(*schedule, stages, pipeline.microbatches).is_none()
    };
    let simulated = others.into_iter().filter(able).filter_map(|schedule| {
        let timeline = simulate_unless(&pipeline, schedule, &|| search.cancelled())?;
        let fits = timeline.peak_memory() <= limits.memory_limit();
        fits.then_some((timeline.iteration_s, schedule))
    });
    let best = simulated.min_by(|a, b| a.0.total_cmp(&b.0));
    let found = match best {
        Some((faster, schedule)) if faster < seconds * (1.0 - 1e-4) => format!(
            "this plan takes {} under {} ({}): --schedule {}",
            units::seconds(faster),
            schedule.name(),
            units::faster(seconds / faster),
            schedule.id()
        ),
        Some(_) => "none of them makes this plan faster".into(),
        None => "this plan cannot run under them".into(),
    };
    let title = runner.title();
    Some(format!("{title} also runs {} and {last}, which are not searched; {found}.", first.join(", ")))
}

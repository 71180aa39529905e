//! Other schedules than the planned one, for torchtitan: by name, or from a list of actions
//! (`pipeline_parallel_schedule_csv`).
//!
//! The schedule must place the stages as torchtitan does, and the plan must fit under it. `O(passes)`.

use plantui_core::{
    cluster::Limits,
    family,
    plan::{Plan, Schedule, runner::Runner},
    simulate::{Setup, simulate},
    units,
    workload::Workload,
};

/// File that the configuration names.
pub(super) const FILE: &str = "schedule.csv";

/// True if torchtitan has no name for a schedule, so that it reads a list.
pub(super) fn is_from_list(schedule: Schedule) -> bool {
    !Runner::TorchTitan.schedules().contains(&schedule)
}

/// Notes for a plan that runs another schedule.
///
/// # Errors
/// Reason why torchtitan cannot run it, as a sentence without a full stop.
pub(super) fn notes(
    workload: &Workload,
    limits: &Limits,
    plan: &Plan,
    schedule: Schedule,
) -> Result<Vec<String>, String> {
    let own = Setup::default().of(plan);
    let pipeline = family::pipeline(workload, limits, plan, &own.settings);
    if let Some(reason) = pipeline.refusal(schedule) {
        return Err(reason);
    }
    let listed = pipeline.explicit(schedule).ok_or("it has no list of actions")?;
    if listed.slices() > 1 {
        return Err("torchtitan passes whole sequences to a stage, not slices".into());
    }
    let ranks = pipeline.stages.len();
    let parts = plan.configuration().map_or(1, |own| own.layout.virtual_stages) as usize;
    let placed = listed.chunks().iter().all(|chunk| chunk.stage as usize % ranks == chunk.rank);
    if !placed || listed.stages() as usize != ranks * parts {
        return Err(format!("its list must place {parts} of the plan's stages on each rank, dealt out in turn"));
    }
    let timeline = simulate(&pipeline, schedule);
    let (peak, limit) = (timeline.peak_memory(), limits.memory_limit());
    if peak > limit {
        return Err(format!(
            "its fullest device needs {} of {}",
            units::bytes_beside(peak, limit),
            units::bytes_exact(limit)
        ));
    }
    let argument = match schedule {
        Schedule::Given(_) => "YOURS.csv",
        named => named.id(),
    };
    let mut notes = vec![format!(
        "simulated under {}: {} an iteration, {} on the fullest device",
        schedule.name(),
        units::seconds(timeline.iteration_s),
        units::bytes_beside(peak, limit)
    )];
    if is_from_list(schedule) {
        notes.push(format!(
            "write {FILE}: plantui export PLAN --to torch-schedule --schedule {argument} --output {FILE}"
        ));
    }
    Ok(notes)
}

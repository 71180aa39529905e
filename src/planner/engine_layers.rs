//! The layers between which an engine cuts a workload, for planners that plan for one.

use super::{OptionError, Problem};
use crate::{
    plan::runner::Runner,
    workload::{Workload, layering::Layering},
};

/// The layers that an engine knows.
///
/// # Errors
/// A sentence where it has nothing to count.
pub(super) fn layers(runner: Runner, workload: &Workload) -> Result<Layering, String> {
    let layering = Layering::of(workload, None).map_err(|error| error.to_string())?;
    if runner.counts_blocks() && layering.blocks() == 0 {
        return Err(format!("{} counts repeated layers, and no name of the workload repeats", runner.title()));
    }
    Ok(if runner.merges_ends() { layering.with_merged_ends() } else { layering })
}

/// Whether a workload can be planned for the engine asked for, which has layers as `layers` says, at most so many.
///
/// # Errors
/// [`OptionError::Unsuited`] with why.
pub(super) fn check(
    problem: &Problem,
    runner: Runner,
    most: usize,
    layers: &dyn Fn(Runner, &Workload) -> Result<Layering, String>,
) -> Result<(), OptionError> {
    let found = layers(runner, &problem.workload).and_then(|layering| within(&layering, most));
    found.map_err(|why| OptionError::Unsuited {
        workload: problem.workload.name.clone(),
        name: "engine".into(),
        value: runner.id().into(),
        why,
        repair: "plan without, and export the plan: what the engine cannot run of it is said there".into(),
    })
}

/// Whether these are no more layers than a planner takes.
pub(super) fn within(layering: &Layering, most: usize) -> Result<(), String> {
    let count = layering.layers.len();
    if count <= most {
        return Ok(());
    }
    Err(format!("plans for engines are made of at most {most} layers here, and there are {count}"))
}

/// What a proof over these layers speaks of beside the engine: where nothing repeats they stand in one of several orders.
pub(super) fn one_row_of_several(layering: &Layering, workload: &Workload) -> bool {
    layering.blocks() == 0 && !workload.dag.has_one_order()
}

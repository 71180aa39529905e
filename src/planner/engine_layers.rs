//! The layers between which an engine cuts a workload, for planners that plan for one.

use super::{OptionError, Outcome, Problem};
use crate::{
    plan::runner::Runner,
    workload::{Workload, layering::Layering},
};

/// The layers that an engine knows, at most so many.
///
/// # Errors
/// A sentence where it has nothing to count, or too much.
pub(super) fn layers(runner: Runner, workload: &Workload, most: usize) -> Result<Layering, String> {
    let layering = Layering::of(workload, None).map_err(|error| error.to_string())?;
    if runner.counts_blocks() && layering.blocks() == 0 {
        return Err(format!("{} counts repeated layers, and no name of the workload repeats", runner.title()));
    }
    let layering = if runner.merges_ends() { layering.with_merged_ends() } else { layering };
    match layering.layers.len() {
        count if count > most => {
            Err(format!("plans for engines are made of at most {most} layers here, and there are {count}"))
        }
        _ => Ok(layering),
    }
}

/// That a workload cannot be planned for the engine asked for.
pub(super) fn unsuited(problem: &Problem, runner: Runner, why: String) -> OptionError {
    OptionError::Unsuited {
        workload: problem.workload.name.clone(),
        name: "engine".into(),
        value: runner.id().into(),
        why,
        repair: "plan without, and export the plan: what the engine cannot run of it is said there".into(),
    }
}

/// The same to whoever plans all the same.
pub(super) fn refused(workload: &Workload, why: &str) -> Outcome {
    Outcome::refused(format!("{} cannot be planned so: {why}.", workload.name))
}

/// What a proof over these layers speaks of beside the engine: where nothing repeats they stand in one of several orders.
pub(super) fn one_row_of_several(layering: &Layering, workload: &Workload) -> bool {
    layering.blocks() == 0 && !workload.dag.has_one_order()
}

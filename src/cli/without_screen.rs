//! `plantui [WORKLOAD]` of a program that was built without the screen: the report of `plan`.

use std::path::PathBuf;

use clap::Args;

use super::{
    CommandEnd, Failure,
    arguments::{LimitArgs, PlannerArgs},
    input, output,
    planning::{self, PlanningTask},
    report,
};
use crate::{notice, workload};

/// Arguments of the report.
#[derive(Debug, Args)]
pub(crate) struct ScreenArgs {
    /// Workload to plan: a file, or `-` for standard input [default: a built-in example]
    workload: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    planning: PlannerArgs,
}

impl ScreenArgs {
    /// Prints the report.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let as_read = match &self.workload {
            Some(path) => input::workload_given(path, &self.limits.job_facts()?)?,
            None => workload::builtin(),
        };
        let task = PlanningTask::new(self.limits.over(as_read)?, &self.limits, &self.planning)?;
        let (planned, _until_printed) = task.run(&self.planning)?;
        output::print(&report::planned(&planned))?;
        notice::note("this program was built without the screen (feature `screen`)");
        Ok(planning::ending(&planned))
    }
}

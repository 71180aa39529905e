//! `plantui [WORKLOAD]`: the screen, or the report of `plan` where there is no terminal.

use std::path::PathBuf;

use clap::Args;

use super::{
    Ending, Failure,
    arguments::{LimitArgs, PlannerArgs},
    input, output,
    planning::Task,
    report,
};
use crate::workload;

/// What the screen starts with.
#[derive(Debug, Args)]
pub struct ScreenArgs {
    /// Workload to show: a file, or `-` for standard input [default: a built-in example]
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
    pub fn run(self) -> Result<Ending, Failure> {
        let workload = match &self.workload {
            Some(path) => input::workload(path)?,
            None => workload::builtin(),
        };
        let planned = Task::new(workload, &self.limits, &self.planning)?.run(&self.planning)?;
        output::print(&report::planned(&planned))?;
        eprintln!("note: standard output is no terminal; a terminal would have shown the screen");
        Ok(planned.ending())
    }
}

//! `plantui [WORKLOAD]`: the screen, or the report of `plan` where there is no terminal.

use std::{path::PathBuf, sync::Arc};

use clap::Args;

use super::{
    Ending, Failure,
    arguments::{LimitArgs, PlannerArgs},
    input, output,
    planning::{self, Task},
    report,
};
use crate::{
    tui::{self, ScreenError, ScreenRequest, theme},
    workload,
};

/// What the screen starts with.
#[derive(Debug, Args)]
pub struct ScreenArgs {
    /// Workload to show: a file, or `-` for standard input [default: a built-in example]
    workload: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    planning: PlannerArgs,
    #[command(flatten)]
    look: LookArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Screen")]
struct LookArgs {
    /// Colours of the screen; `plantui themes` lists them
    #[arg(long, value_name = "NAME", default_value = "dark")]
    theme: String,
    /// Leaves the mouse to the terminal, so that it selects text
    #[arg(long)]
    no_mouse: bool,
    /// Draws with ASCII alone [default: where the locale is not UTF-8]
    #[arg(long)]
    ascii: bool,
}

impl ScreenArgs {
    /// Shows the screen until the user leaves, or prints the report.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input.
    pub fn run(self) -> Result<Ending, Failure> {
        // Here too, so that a wrong name is refused whether or not there is a terminal.
        theme::load(&self.look.theme, theme::user_directory().as_deref(), theme::Depth::True)
            .map_err(|problem| Failure::refused(problem, "`plantui themes` lists them"))?;
        // Standard input is read to its end here, before the screen asks the terminal for keys.
        let workload = match &self.workload {
            Some(path) => input::workload(path)?,
            None => workload::builtin(),
        };
        let task = Task::new(workload, &self.limits, &self.planning)?;
        if let Some(threads) = self.planning.threads {
            // The screen plans on the global pool, which can be sized once: nothing has used it yet.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into());
            pool.build_global().map_err(|error| planning::no_threads(threads, &error))?;
        }
        match tui::run(self.request(&task)) {
            Ok(()) => Ok(Ending::Done),
            Err(ScreenError::NoTerminal) => self.report(task),
            Err(error) => Err(Failure::refused(error.to_string(), "")),
        }
    }

    fn request(&self, task: &Task) -> ScreenRequest {
        let usual = ScreenRequest::new(Arc::clone(&task.problem.workload));
        ScreenRequest {
            overrides: self.limits.overrides(),
            planner: task.planner.info().id.into(),
            settings: self.planning.settings.clone(),
            seed: self.planning.seed,
            deadline: self.planning.deadline,
            theme: self.look.theme.clone(),
            ascii: self.look.ascii || usual.ascii,
            mouse: !self.look.no_mouse,
            ..usual
        }
    }

    fn report(&self, task: Task) -> Result<Ending, Failure> {
        let planned = task.run(&self.planning)?;
        output::print(&report::planned(&planned))?;
        eprintln!("note: there is no terminal here; in one, this command shows the screen");
        Ok(planned.ending())
    }
}

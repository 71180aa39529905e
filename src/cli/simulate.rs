//! `plantui simulate`: simulates one iteration of a plan, event by event.

mod figures;

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use super::{
    CommandEnd, Failure,
    arguments::{self, LimitArgs},
    check, input,
    output::{self, Destination},
    setup::SetupArgs,
};
use crate::{
    export::chrome_trace,
    family::{self, check as score},
    notice,
    planner::Search,
    run::{Simulation, no_routes},
    simulate::{Pipeline, Schedule, Setup},
};

const EXAMPLES: &str = "\
Examples:
  plantui simulate model.json plan.json
  plantui simulate model.json plan.json --schedule zb-h1 --weight-gradient-share 0.4
  plantui simulate model.json plan.json --no-overlap --links shared --buckets 8 --optimizer-step 20ms
  plantui simulate model.json plan.json --format chrome-trace --output trace.json

A Chrome trace opens in https://ui.perfetto.dev and chrome://tracing. Limits are taken from the flags, else from the \
plan, \
else from the workload.
Exit codes: 0 done, 1 the plan is not valid, 2 wrong use or unreadable input, 3 the deadline passed.";

/// Simulate one iteration of a plan
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SimulateArgs {
    /// Workload the plan is for: a file, or `-` for standard input
    workload: PathBuf,
    /// Plan: a plantui plan, a result of the published Piper, a published placement split; `-` for standard input
    plan: PathBuf,
    /// Format to write
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TimelineFormat::Summary)]
    format: TimelineFormat,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Writes to this file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
    /// Stops the simulation after this time, such as 60s or 2min
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = arguments::deadline)]
    deadline: Option<Duration>,
    #[command(flatten)]
    setup: SetupArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// In what form a timeline leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TimelineFormat {
    /// A table of the stages
    Summary,
    /// The same figures, schema plantui.simulation/1
    Json,
    /// Every event, for ui.perfetto.dev or chrome://tracing
    ChromeTrace,
}

impl SimulateArgs {
    /// Simulates and writes the requested output.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input, or if the result cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        input::one_standard_input(&self.workload, &self.plan)?;
        let workload = self.limits.load_for(&self.workload, &self.plan)?;
        let mut loaded = input::plan(&self.plan, &workload)?;
        let limits = check::limits(&self.limits, &mut loaded, &workload, &input::shown(&self.plan))?;
        let score = score(&workload, &limits, &loaded.plan);
        if let Some(violation) = score.violations.first() {
            notice::error(&format!("{} is not valid: {violation}", input::shown(&self.plan)));
            notice::hint("`plantui check` lists all violations");
            return Ok(CommandEnd::NoPlan);
        }
        let Setup { schedule: wanted, settings, .. } = self.setup.simulate().of(&loaded.plan);
        let search = Search::new(self.deadline, 0);
        let stopped = || search.cancelled();
        let Some(pipeline) = family::pipeline_unless(&workload, &limits, &loaded.plan, &settings, &stopped) else {
            notice::error(&no_routes(&search));
            return Ok(CommandEnd::Stopped);
        };
        let schedule = playable(&pipeline, wanted)?;
        for told in self.setup.unused_settings(std::iter::once((schedule, &pipeline))) {
            notice::note(&told);
        }
        let simulation = match Simulation::of(pipeline, schedule, &search) {
            Ok(simulation) => simulation,
            Err(given_up) => {
                notice::error(&given_up);
                return Ok(CommandEnd::Stopped);
            }
        };
        let format = if self.json { TimelineFormat::Json } else { self.format };
        match format {
            TimelineFormat::Summary => destination.write(&figures::summary(&loaded.plan, &limits, &simulation))?,
            TimelineFormat::Json => destination.write(&output::json(&figures::document(&loaded.plan, &simulation)))?,
            TimelineFormat::ChromeTrace => {
                let Simulation { pipeline, schedule, timeline } = &simulation;
                destination
                    .trace(|out| chrome_trace::write(&mut { out }, &loaded.plan, pipeline, *schedule, timeline))?;
            }
        }
        Ok(CommandEnd::Done)
    }
}

/// Requested schedule, if the plan can be simulated under it.
///
/// # Errors
/// [`Failure::Refused`] with the reason and the possible schedules.
pub(super) fn playable(pipeline: &Pipeline, wanted: Schedule) -> Result<Schedule, Failure> {
    match pipeline.refusal(wanted) {
        None => Ok(wanted),
        // A plan that runs once has only one order, whatever schedule is requested.
        Some(_) if pipeline.runs_once() => Ok(pipeline.schedule(wanted)),
        Some(reason) => {
            let playable: Vec<&str> = pipeline.playable().into_iter().map(Schedule::id).collect();
            Err(Failure::refused(reason, format!("schedules of this plan: {}", playable.join(", "))))
        }
    }
}

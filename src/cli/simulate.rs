//! `plantui simulate`: simulates one iteration of a plan, event by event.

mod figures;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum};

use super::{
    CommandEnd, Failure,
    arguments::{self, LimitArgs},
    check, input,
    output::{self, Destination},
    report,
    schedule_table::{self, PlanSchedules, SchedulesDocument},
    setup::SetupArgs,
};
use crate::{
    cluster::Limits,
    export::{chrome_trace, drawing},
    family::{self, check as score},
    notice,
    plan::{Plan, Stage},
    planner::Search,
    run::{Simulation, no_routes},
    simulate::{Pipeline, Schedule, Setup},
    study::schedules::{self, ScheduleRow},
    workload::formats::stage_times,
};
pub(in crate::cli) use figures::schema;

const EXAMPLES: &str = "\
Examples:
  plantui simulate model.json plan.json
  plantui simulate model.json plan.json --schedule zb-h1 --weight-gradient-share 0.4
  plantui simulate model.json plan.json --schedule all
  plantui simulate times.json --schedule all
  plantui simulate times.json --schedule zb-v --format drawing
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
    /// Workload the plan is for, or measured times of stages (plantui.stage-times/1): a file, or `-` for standard input
    workload: PathBuf,
    /// Plan: a plantui plan, a result of the published Piper, a published placement split; `-` for standard input. Times of
    /// stages need none
    plan: Option<PathBuf>,
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
    /// Rows of the stages as text, as papers draw schedules
    Drawing,
}

impl SimulateArgs {
    /// Simulates and writes the requested output.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input, or if the result cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        let Some(plan) = &self.plan else { return self.stage_times(&destination) };
        input::one_standard_input(&self.workload, plan)?;
        let workload = self.limits.load_for(&self.workload, plan)?;
        let mut loaded = input::plan(plan, &workload)?;
        let limits = check::limits(&self.limits, &mut loaded, &workload, &input::shown(plan))?;
        let score = score(&workload, &limits, &loaded.plan);
        if let Some(violation) = score.violations.first() {
            notice::error(&format!("{} is not valid: {violation}", input::shown(plan)));
            notice::hint("`plantui check` lists all violations");
            return Ok(CommandEnd::NoPlan);
        }
        if self.setup.all_schedules() {
            let search = Search::new(self.deadline, 0);
            let schedules = schedules::all(&workload, &limits, &loaded.plan, self.setup.simulate(), &search);
            let about = report::about(&workload);
            return self.schedules((&about, &workload.name), plan, limits.memory_limit(), schedules, &destination);
        }
        let Setup { schedule: wanted, settings, .. } = self.setup.simulate().of(&loaded.plan);
        let search = Search::new(self.deadline, 0);
        let stopped = || search.cancelled();
        let Some(pipeline) = family::pipeline_unless(&workload, &limits, &loaded.plan, &settings, &stopped) else {
            notice::error(&no_routes(&search));
            return Ok(CommandEnd::Stopped);
        };
        let family = family::of(&workload);
        let memory: Vec<f64> = loaded.plan.stages.iter().map(|stage| family.memory_limit(&limits, stage)).collect();
        self.play(pipeline, wanted, &loaded.plan, (&limits, &memory), &search, &destination)
    }

    /// Simulates a pipeline and writes the requested output; `memory` limits the devices of each stage, bytes.
    fn play(
        &self,
        pipeline: Pipeline,
        wanted: Schedule,
        plan: &Plan,
        (limits, memory): (&Limits, &[f64]),
        search: &Search,
        destination: &Destination,
    ) -> Result<CommandEnd, Failure> {
        let schedule = playable(&pipeline, wanted)?;
        for told in self.setup.unused_settings(std::iter::once((schedule, &pipeline))) {
            notice::note(&told);
        }
        let simulation = match Simulation::of(pipeline, schedule, search) {
            Ok(simulation) => simulation,
            Err(given_up) => {
                notice::error(&given_up);
                return Ok(CommandEnd::Stopped);
            }
        };
        let format = if self.json { TimelineFormat::Json } else { self.format };
        match format {
            TimelineFormat::Summary => destination.write(&figures::summary(plan, (limits, memory), &simulation))?,
            TimelineFormat::Json => destination.write(&output::json(&figures::document(plan, &simulation)))?,
            TimelineFormat::Drawing => {
                let drawn = drawing::text(&simulation.timeline);
                destination.write(&drawn.map_err(|problem| Failure::refused(problem, "see --format"))?)?;
            }
            TimelineFormat::ChromeTrace => {
                let Simulation { pipeline, schedule, timeline } = &simulation;
                destination.trace(|out| chrome_trace::write(&mut { out }, plan, pipeline, *schedule, timeline))?;
            }
        }
        Ok(CommandEnd::Done)
    }

    /// Simulates measured times of stages.
    fn stage_times(&self, destination: &Destination) -> Result<CommandEnd, Failure> {
        // A published name is a workload.
        let (bytes, source) = match input::file_bytes(&self.workload) {
            Ok(read) => read,
            Err(_) => {
                self.limits.load(&self.workload)?;
                (vec![], input::shown(&self.workload))
            }
        };
        let Some(read) = stage_times::read(&bytes, &source) else {
            let problem = format!("{source} is simulated with a plan, and none is given");
            return Err(Failure::refused(problem, "make one with `plantui plan WORKLOAD --output plan.json`"));
        };
        let mut times = read?;
        let others = LimitArgs { memory: None, microbatches: None, ..self.limits.clone() };
        if others != LimitArgs::default() {
            let problem = "times of stages take no flags of a plan other than --memory and --microbatches";
            return Err(Failure::refused(problem, "remove the others"));
        }
        times.microbatches = self.limits.microbatches.unwrap_or(times.microbatches);
        let memory = self.limits.memory.or(times.memory_bytes).unwrap_or(f64::INFINITY);
        let Setup { schedule, settings, .. } = self.setup.simulate();
        let pipeline = Pipeline::of_times(&times, settings);
        let search = Search::new(self.deadline, 0);
        if self.setup.all_schedules() {
            let about = format!("{source}: {} stages, {} microbatches", pipeline.stages.len(), times.microbatches);
            let schedules = schedules::of_pipeline(&pipeline, &schedules::of_training(), &[memory], &search);
            return self.schedules((&about, &source), &self.workload, memory, schedules, destination);
        }
        let alone = Stage { nodes: vec![], choices: vec![], data_parallel: 1, tensor_parallel: 1, devices: vec![] };
        let plan = Plan { stages: vec![alone; pipeline.stages.len()], ..Plan::default() };
        let limits = Limits { memory_bytes: Some(memory).filter(|memory| memory.is_finite()), ..Limits::NEUTRAL };
        let memory = vec![memory; plan.stages.len()];
        self.play(pipeline, schedule, &plan, (&limits, &memory), &search, destination)
    }

    /// Writes a table of all schedules for a workload with its description and name.
    fn schedules(
        &self,
        (about, workload): (&str, &str),
        plan: &Path,
        limit: f64,
        schedules: Result<Vec<ScheduleRow>, String>,
        destination: &Destination,
    ) -> Result<CommandEnd, Failure> {
        if !self.json && matches!(self.format, TimelineFormat::ChromeTrace | TimelineFormat::Drawing) {
            return Err(Failure::refused("this format holds one schedule, not all", "choose one with --schedule"));
        }
        let schedules = match schedules {
            Ok(schedules) => schedules,
            Err(given_up) => {
                notice::error(&given_up);
                return Ok(CommandEnd::Stopped);
            }
        };
        let id = input::shown(plan);
        let name = if self.plan.is_some() { id.clone() } else { "every stage as measured".into() };
        let plans = vec![PlanSchedules { id, name, schedules }];
        let text = if self.json || self.format == TimelineFormat::Json {
            output::json(&SchedulesDocument::new(workload, limit, plans))
        } else {
            let mut text = format!("{about}\n");
            schedule_table::tables(&mut text, &plans, limit);
            text
        };
        destination.write(&text)?;
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

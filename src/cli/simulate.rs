//! `plantui simulate`: one batch of a plan, played event by event.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::PossibleValuesParser};
use serde::Serialize;

use super::{
    Ending, Failure,
    arguments::LimitArgs,
    check, input,
    output::{self, Destination},
    planning::Simulation,
    report::{self, line},
};
use crate::{
    export::{chrome_trace, plan_json},
    plan::{Plan, check::check as score},
    simulate::Schedule,
    units,
};

const EXAMPLES: &str = "\
Examples:
  plantui simulate model.json plan.json
  plantui simulate model.json plan.json --schedule gpipe
  plantui simulate model.json plan.json --format chrome-trace --output trace.json

A Chrome trace opens in https://ui.perfetto.dev and chrome://tracing. Limits are taken from the flags, else from the plan,
else from the workload.
Exit codes: 0 done, 1 the plan is not valid, 2 wrong use or unreadable input.";

/// Simulate one batch of a plan
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct SimulateArgs {
    /// Workload the plan is for: a file, or `-` for standard input
    workload: PathBuf,
    /// Plan: a plantui plan, a result of the published Piper, a published placement split; `-` for standard input
    plan: PathBuf,
    /// Order in which a stage works through its microbatches
    #[arg(long, value_name = "ID", default_value = Schedule::ALL[0].id(), value_parser = schedules())]
    schedule: String,
    #[command(flatten)]
    limits: LimitArgs,
    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = TimelineFormat::Summary)]
    format: TimelineFormat,
    /// Writes to this file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
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

/// A simulated batch as JSON, schema `plantui.simulation/1`.
#[derive(Debug, Serialize)]
struct SimulationDocument {
    schema: &'static str,
    #[serde(flatten)]
    summary: crate::plan::document::SimulationPart,
    stages: Vec<StageEntry>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct StageEntry {
    data_parallel: u32,
    tensor_parallel: u32,
    forward_s: f64,
    backward_s: f64,
    all_reduce_s: f64,
    busy_s: f64,
    peak_memory_bytes: f64,
}

fn schedules() -> PossibleValuesParser {
    PossibleValuesParser::new(Schedule::ALL.map(Schedule::id))
}

impl SimulateArgs {
    /// Simulates and writes what was asked for.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input, or where the result cannot be written.
    pub fn run(self) -> Result<Ending, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        input::one_standard_input(&self.workload, &self.plan)?;
        let workload = input::workload(&self.workload)?;
        let loaded = input::plan(&self.plan, &workload)?;
        let limits = check::limits(&self.limits, &loaded, &workload, &input::shown(&self.plan))?;
        let score = score(&workload, &limits, &loaded.plan);
        if let Some(violation) = score.violations.first() {
            eprintln!("error: {} is not valid: {violation}", input::shown(&self.plan));
            eprintln!("hint: `plantui check` lists everything that is wrong with it");
            return Ok(Ending::NoPlan);
        }
        let schedule = Schedule::find(&self.schedule).unwrap_or(Schedule::ALL[0]);
        let simulation = Simulation::of(&workload, &limits, &loaded.plan, schedule);
        destination.write(&match self.format {
            TimelineFormat::Summary => summary(&loaded.plan, &simulation),
            TimelineFormat::Json => output::json(&document(&loaded.plan, simulation)),
            TimelineFormat::ChromeTrace => {
                let Simulation { pipeline, schedule, timeline } = &simulation;
                let trace = chrome_trace::to_json(&loaded.plan, pipeline, *schedule, timeline);
                output::announce_trace(&trace);
                trace
            }
        })?;
        Ok(Ending::Done)
    }
}

fn summary(plan: &Plan, simulation: &Simulation) -> String {
    let mut text = String::new();
    line(&mut text, format_args!("{}", report::simulated(simulation)));
    line(&mut text, format_args!(""));
    let head = ["stage", "d x t", "forward", "backward", "all-reduce", "busy", "peak memory"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (i, stage) in plan.stages.iter().enumerate() {
        let (timeline, timing) = (&simulation.timeline, &simulation.pipeline.stages[i]);
        rows.push(vec![
            (i + 1).to_string(),
            format!("{} x {}", stage.data_parallel, stage.tensor_parallel),
            units::seconds(timing.forward_s),
            units::seconds(timing.backward_s),
            units::seconds(timing.all_reduce_s),
            units::percent(timeline.busy_s[i] / timeline.iteration_s),
            units::bytes(timeline.peak_memory_bytes[i]),
        ]);
    }
    report::table(&mut text, &rows);
    report::notes(&mut text, &simulation.pipeline.notes);
    text
}

fn document(plan: &Plan, simulation: Simulation) -> SimulationDocument {
    let Simulation { schedule, pipeline, timeline } = simulation;
    let stage = |(i, stage): (usize, &crate::plan::Stage)| StageEntry {
        data_parallel: stage.data_parallel,
        tensor_parallel: stage.tensor_parallel,
        forward_s: pipeline.stages[i].forward_s,
        backward_s: pipeline.stages[i].backward_s,
        all_reduce_s: pipeline.stages[i].all_reduce_s,
        busy_s: timeline.busy_s[i],
        peak_memory_bytes: timeline.peak_memory_bytes[i],
    };
    SimulationDocument {
        schema: "plantui.simulation/1",
        summary: plan_json::simulation_part(schedule, &timeline),
        stages: plan.stages.iter().enumerate().map(stage).collect(),
        notes: pipeline.notes,
    }
}

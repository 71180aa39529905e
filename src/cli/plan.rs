//! `plantui plan`: plans without a screen.

use std::path::PathBuf;

use super::{
    CommandEnd, Failure,
    arguments::{self, LimitArgs, PlannerArgs},
    cost::{Cost, CostArgs, PlanRate, TrainingCost},
    front, input,
    output::{self, Destination},
    planning::{self, PlanningTask},
    profile_input, report,
};
use crate::{
    export::{
        engine::EngineSettings,
        formats::{self, ExportInput, FormatWriter, PlanFormat},
        plan_json,
    },
    notice,
    plan::document::Document,
    run::Run,
    study::nearest,
    workload::Workload,
};
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
const EXAMPLES: &str = "\
Examples:
  plantui plan model.json --devices 64 --memory 16GiB
  plantui plan model.json --set tensor_parallel=false --set recompute=never
  plantui plan model.json --planner equal-partition --json > plan.json
  plantui plan model.json --output trace.json --format chrome-trace
  plantui plan llama-3.1-70b --devices 64..512 --global-batch 512 --tokens 1T --price 2.49
  plantui generate bert-32 | plantui plan - --devices 128
  plantui plan model.json --set engine=megatron --json | plantui export - --to megatron

Prints a table, or with --json one document of the schema plantui.plan/1. --output writes the result to a file as \
well. A row of the table is a stage: its data-parallel (DP) and tensor-parallel (TP) degrees, the parts of its time, \
and the memory on each of its devices. `*` marks the slowest stage.
Exit codes: 0 a plan was found, 1 there is none, 2 wrong use or input, 3 stopped before any plan was found, 70 a bug \
of plantui.";

/// Plan a workload and print the plan
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    /// Workload to plan: a file, or `-` for standard input
    workload: PathBuf,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    planning: PlannerArgs,
    #[command(flatten)]
    cost: CostArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Prints the plan as JSON in place of the table
    #[arg(long)]
    json: bool,
    /// Writes the plan to this file; `-` is standard output, in place of the table
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
    /// Format of the plan, for --output or standard output [default: plan-json]. `plantui export` writes the files of
    /// training engines
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    format: Option<&'static PlanFormat>,
}

/// Formats except those of engines, which have their own settings in `plantui export`.
fn format() -> impl TypedValueParser<Value = &'static PlanFormat> {
    let written = arguments::export_formats().filter(|(format, _)| !matches!(format.writes, FormatWriter::Engine(_)));
    let known = PossibleValuesParser::new(written.map(|(_, value)| value));
    known.map(|id| formats::find(&id).expect("one of them"))
}

impl PlanArgs {
    /// Plans, then prints and writes the requested output.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input, or if a result cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let (standard, file) = self.output.destinations()?;
        let each = self.limits.each();
        let workload = self.limits.over_each(input::workload_given(&self.workload, &self.limits.job_facts()?)?)?;
        let cost = TrainingCost::of(&self.cost, &workload)?;
        if each.len() > 1 {
            return self.run_each(&each, &workload, cost.as_ref(), (&standard, file.is_some()));
        }
        if let Some(format) = self.output.format.filter(|format| !format.suits(&workload)) {
            let (reason, repair) = format.refusal(&workload);
            return Err(Failure::refused(format!("--format {} {reason}", format.id), repair));
        }
        let task = PlanningTask::new(workload, &self.limits, &self.planning)?;
        let (planned, _until_written) = task.run(&self.planning)?;
        let costed = CostedRun { run: &planned, cost: cost.as_ref() };
        // Formats that contain only a plan are not written without one, nor a trace without a simulation; the exit code
        // says so.
        let mut whole = true;
        let to_file = file.is_some();
        if let Some((destination, format)) = file {
            whole = write(costed, format, &destination)?;
        }
        match standard {
            // The file is written: a closed standard output loses nothing.
            StandardOutput::Table | StandardOutput::Line(_) if to_file && output::is_open().is_err() => {}
            StandardOutput::Table => output::print(&costed.report())?,
            StandardOutput::Line(path) => output::print(&report::written(&planned, &path))?,
            StandardOutput::Format(format) => {
                if !write(costed, format, &Destination::Standard)? {
                    whole = false;
                    notice::whole(&costed.report());
                }
            }
        }
        Ok(match planning::ending(&planned) {
            CommandEnd::Done if !whole => CommandEnd::Stopped,
            ending => ending,
        })
    }

    /// Plans for all numbers of devices and all batches in parallel. Prints the reports of batches in order, a table of
    /// devices, or a JSON array of documents.
    fn run_each(
        &self,
        each: &[LimitArgs],
        workload: &Workload,
        cost: Option<&TrainingCost>,
        (printed, to_file): (&StandardOutput, bool),
    ) -> Result<CommandEnd, Failure> {
        let other = |format: &PlanFormat| *format != *formats::plan_json();
        if to_file || matches!(printed, StandardOutput::Format(format) if other(format)) {
            let hint = "use --json, or give one number of devices and one batch";
            return Err(Failure::refused(
                "results for several limits go to standard output only, as tables or JSON",
                hint,
            ));
        }
        // A model's batch and devices are limits, so that one workload serves all.
        let task = |limits| PlanningTask::new(workload.clone(), limits, &self.planning);
        let tasks = each.iter().map(task).collect::<Result<Vec<_>, _>>()?;
        let (all, _until_printed) = planning::all(tasks, &self.planning)?;
        let costed = || all.iter().map(|run| CostedRun { run, cost });
        let text = match printed {
            StandardOutput::Table if self.limits.vary_devices() => front::table(&costed().collect::<Vec<_>>()),
            StandardOutput::Table => costed().map(CostedRun::report).collect::<Vec<_>>().join("\n"),
            _ => output::json(&costed().map(document).collect::<Vec<_>>()),
        };
        output::print(&text)?;
        let ends = || all.iter().map(planning::ending);
        if self.limits.vary_devices() && ends().any(|end| end == CommandEnd::Done) {
            return Ok(CommandEnd::Done);
        }
        Ok(ends().find(|ending| *ending != CommandEnd::Done).unwrap_or(CommandEnd::Done))
    }
}

/// Run with the days and the cost of the training, if asked for.
#[derive(Clone, Copy)]
pub(super) struct CostedRun<'a> {
    pub(super) run: &'a Run,
    pub(super) cost: Option<&'a TrainingCost>,
}

impl CostedRun<'_> {
    /// Simulated rate of the plan; `None` without one.
    pub(super) fn rate(self) -> Option<PlanRate> {
        let plan = self.run.outcome.plan.as_ref()?;
        let simulated = self.run.simulation.as_ref()?;
        let problem = &self.run.problem;
        let times = (simulated.timeline.samples_per_s, simulated.timeline.iteration_s);
        Some(PlanRate::of(&problem.workload, &problem.limits, plan, times))
    }

    /// Days and cost of the training, if asked for.
    fn figures(self) -> Option<Cost> {
        self.cost.zip(self.rate()).and_then(|(cost, rate)| cost.figures(&rate))
    }

    fn report(self) -> String {
        let line = self.cost.zip(self.rate()).and_then(|(cost, rate)| cost.line(&rate));
        report::planned_with(self.run, line.as_deref())
    }
}

/// File and the format written to it.
type FileOutput = (Destination, &'static PlanFormat);

/// Content of standard output.
enum StandardOutput {
    Table,
    Format(&'static PlanFormat),
    /// One line about the plan written to this file.
    Line(PathBuf),
}

impl OutputArgs {
    /// Destinations of the result: standard output, and a file if requested.
    fn destinations(&self) -> Result<(StandardOutput, Option<FileOutput>), Failure> {
        let format = self.format.unwrap_or(formats::plan_json());
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        let json = self.json.then_some(formats::plan_json());
        if let Destination::File { path, .. } = &destination {
            let printed = match json {
                Some(document) if document == format => StandardOutput::Line(path.clone()),
                Some(document) => StandardOutput::Format(document),
                None => StandardOutput::Table,
            };
            return Ok((printed, Some((destination, format))));
        }
        if self.json && format != formats::plan_json() {
            let hint = "drop --json, or name a file with --output";
            return Err(Failure::refused("--json and --format both write to standard output", hint));
        }
        let written = json.or(self.format).or(self.output.as_ref().map(|_| format));
        Ok((written.map_or(StandardOutput::Table, StandardOutput::Format), None))
    }
}

/// Writes the plan in a format; false if there is no plan and the format cannot express that.
fn write(costed: CostedRun<'_>, format: &'static PlanFormat, destination: &Destination) -> Result<bool, Failure> {
    let planned = costed.run;
    let missing = match format.writes {
        FormatWriter::Run => false,
        FormatWriter::Plan(_) | FormatWriter::Engine(_) => planned.outcome.plan.is_none(),
        FormatWriter::Trace | FormatWriter::Schedule => planned.simulation.is_none(),
    };
    if missing {
        return Ok(false);
    }
    if matches!(format.writes, FormatWriter::Run) {
        destination.write(&plan_json::to_json(&document(costed)))?;
        return Ok(true);
    }
    let exported = ExportInput {
        run: planned.into(),
        engine: &EngineSettings { nearest: Some(nearest::plans), ..EngineSettings::default() },
    };
    let pieces = |out: &mut dyn std::io::Write| format.write(&exported, out);
    match format.writes {
        FormatWriter::Trace => destination.trace(pieces)?,
        FormatWriter::Run | FormatWriter::Plan(_) | FormatWriter::Schedule | FormatWriter::Engine(_) => {
            destination.stream(pieces)?;
        }
    }
    profile_input::untold_in(format.id, &planned.problem.workload);
    Ok(true)
}

fn document(costed: CostedRun<'_>) -> Document {
    let mut document = plan_json::of_run(costed.run);
    let cost = costed.figures();
    match &mut document.prediction {
        Some(prediction) => prediction.cost = cost,
        None => document.cost = cost,
    }
    document.stats.extend(peak_rss_bytes().map(|bytes| ("peak_rss_bytes".to_string(), bytes)));
    document
}

/// Peak memory of this process, if the system reports it (Linux).
fn peak_rss_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0)
}

//! `plantui import`: reads an engine's current configuration as a workload and a plan.

use std::{io, path::PathBuf};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser},
};

use super::{
    CommandEnd, Failure, arguments, generate, hardware_file, input,
    output::{self, Destination},
    report::{self, counted, line},
};
use crate::{
    cluster::{GivenLimits, LimitKind, Limits, hardware},
    export::plan_json,
    family,
    jobs::{self as import, JobConfiguration, JobFormat, RecomputedLayers},
    plan::{
        Plan, Score,
        document::{Document, ExecutionPart, ObjectivePart, SCHEMA, WorkloadPart, limits_part, stage_parts},
    },
    planner::Search,
    run::Simulation,
    simulate::{LEAST_TIME, Schedule},
    workload::{
        self, Workload,
        formats::{detect, file},
    },
};

const EXAMPLES: &str = "\
Examples:
  plantui import train.sh --hardware h100 --devices 64 --workload model.json --plan today.json
  plantui import slurm-1234.log --from megatron --workload model.json --plan today.json
  plantui import job.toml --model path/to/config.json --hardware h100 --workload model.json --plan today.json
  plantui import stages.py --for model.json --plan today.json
  plantui compare model.json --plan today.json        plans for the same job

Reads Megatron-LM's arguments (a shell script, or the dump at the top of a log), torchtitan's job (TOML, flags, \
Python), DeepSpeed's configuration or pipeline module, Hugging Face's TrainingArguments or accelerate's \
configuration, and Galvatron's strategy. Nothing is executed; shell variables are known where the script sets them. \
Megatron-LM's arguments state the model; for the others --model names it (a preset or a config.json), or --for a \
workload of it.
Exit codes: 0 done, 2 wrong use or input.";

/// Most bytes that are read: no configuration is larger, and logs are cut here.
const MOST_BYTES: u64 = 4 << 20;

/// Read the job of a training engine as a workload and a plan
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// Configuration: a file, or `-` for standard input
    configuration: PathBuf,
    /// Format of the job [default: recognised by its names]
    #[arg(long, value_name = "ENGINE", value_parser = engines())]
    from: Option<String>,
    /// Number of devices, if the file does not state it
    #[arg(long, value_name = "K", value_parser = arguments::devices)]
    devices: Option<u32>,
    /// The model: a preset or a Hugging Face config.json [default: that of the job]
    #[arg(long, value_name = "MODEL", conflicts_with = "for_workload")]
    model: Option<String>,
    /// Hardware preset [default: a100-80]
    #[arg(long, value_name = "ID", conflicts_with = "for_workload")]
    hardware: Option<String>,
    /// An existing workload of the model: only the plan is made
    #[arg(long = "for", id = "for_workload", value_name = "FILE", conflicts_with = "workload")]
    of: Option<PathBuf>,
    /// Writes the workload to this file
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Writes the plan to this file
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Prints the plan as JSON in place of the report
    #[arg(long)]
    json: bool,
    /// Lets --workload and --plan replace files
    #[arg(long)]
    force: bool,
}

fn engines() -> PossibleValuesParser {
    PossibleValuesParser::new(JobFormat::ALL.map(|engine| PossibleValue::new(engine.id()).help(engine.title())))
}

impl ImportArgs {
    /// Reads, writes and reports.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input, or if a file cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let outputs = [&self.workload, &self.plan]
            .map(|path| path.as_deref().map(|path| Destination::new(Some(path), self.force)));
        for destination in outputs.iter().flatten() {
            destination.check()?;
        }
        let source = input::shown(&self.configuration);
        let configuration = self.read(&source)?;
        let (workload, text) = self.workload(&configuration, &source)?;
        let plan = import::plan(&configuration, &workload, &source)?;
        let overrides = GivenLimits::default()
            .with(LimitKind::Devices, configuration.devices())
            .with(LimitKind::Microbatches, configuration.microbatches);
        let limits =
            family::resolve(&workload, &overrides).map_err(|missing| Failure::lacks(&workload.source, &missing))?;
        let score = family::check(&workload, &limits, &plan);
        let simulation = Simulation::within(
            &workload,
            &limits,
            &plan,
            Schedule::OneForwardOneBackward,
            &Search::new(Some(LEAST_TIME), 0),
        );
        let imported = ImportReport {
            configuration: &configuration,
            workload: &workload,
            limits,
            plan,
            score,
            simulation: simulation.ok(),
        };
        let document = plan_json::to_json(&imported.document());
        let [workload_file, plan_file] = outputs;
        if let (Some(destination), Some(text)) = (workload_file, &text) {
            destination.write(text)?;
        }
        if let Some(destination) = plan_file {
            destination.write(&document)?;
        }
        output::print(&if self.json { document } else { self.report(&imported, &source) })?;
        Ok(CommandEnd::Done)
    }

    fn read(&self, source: &str) -> Result<JobConfiguration, Failure> {
        let bytes = if input::is_standard_input(&self.configuration) {
            file::limited(io::stdin().lock(), source, MOST_BYTES)?
        } else {
            file::read_at_most(&self.configuration, MOST_BYTES)?
        };
        let text = detect::text(&bytes, source, &detect::JOB)?;
        let engine = self.from.as_deref().and_then(|id| JobFormat::ALL.into_iter().find(|engine| engine.id() == id));
        let name = self.configuration.file_stem().map_or("imported".into(), |stem| stem.to_string_lossy());
        let mut configuration = import::read(text, source, &name, engine, self.devices)?;
        if let Some(model) = &self.model {
            configuration.model = Some(generate::model(model)?);
        }
        Ok(configuration)
    }

    /// Workload, and its text if it was generated here.
    fn workload(&self, configuration: &JobConfiguration, source: &str) -> Result<(Workload, Option<String>), Failure> {
        if let Some(path) = &self.of {
            return Ok((input::workload(path)?, None));
        }
        let id = &hardware_file::id_of(self.hardware.as_deref().unwrap_or("a100-80"))?;
        let Some(hardware) = hardware::find(id) else {
            let known = hardware::all().iter().map(|hardware| hardware.id).collect::<Vec<_>>().join(", ");
            return Err(Failure::refused(
                format!("`{}` is no hardware preset", crate::text::printable(id)),
                format!("there are {known}"),
            ));
        };
        let call = format!("plantui import {source} --hardware {id}");
        let text = import::workload(configuration, &hardware, source, &call)?;
        let place = self.workload.as_deref().map_or_else(|| "imported".to_string(), input::shown);
        let name = self
            .workload
            .as_deref()
            .and_then(|path| path.file_stem())
            .map_or("imported".into(), |stem| stem.to_string_lossy());
        let workload = workload::load_reader(text.as_bytes(), &place, &name)?;
        Ok((workload, Some(text)))
    }

    fn report(&self, imported: &ImportReport<'_>, source: &str) -> String {
        let ImportReport { configuration, workload, limits, plan, score, simulation } = imported;
        let mut text = String::new();
        let JobConfiguration { engine, pipeline, tensor, data, micro_batch, microbatches, .. } = configuration;
        line(
            &mut text,
            format_args!(
                "{source}: {}, {} of {pipeline} x {data} x {tensor} (stages, replicas, tensor degree)",
                engine.title(),
                counted(configuration.devices() as usize, "device")
            ),
        );
        let recompute = match &configuration.recompute {
            RecomputedLayers::No => "no layer recomputes".into(),
            RecomputedLayers::All => "all layers recompute".into(),
            RecomputedLayers::First(most) => format!("the first {most} of every stage recompute"),
            RecomputedLayers::Each(flags) if !flags.contains(&true) => "no layer recomputes".into(),
            RecomputedLayers::Each(flags) => {
                format!("{} recompute", counted(flags.iter().filter(|flag| **flag).count(), "layer"))
            }
        };
        let batch = u64::from(*micro_batch) * u64::from(*microbatches);
        line(
            &mut text,
            format_args!(
                "{} of {micro_batch}, a batch of {batch}; {recompute}",
                counted(*microbatches as usize, "microbatch")
            ),
        );
        line(&mut text, format_args!(""));
        line(&mut text, format_args!("{}", report::about(workload)));
        line(&mut text, format_args!("{}", report::objective_line(limits, plan, score)));
        report::stages(&mut text, workload, limits, plan, score);
        line(&mut text, format_args!(""));
        line(&mut text, format_args!("limits: {}", report::limits(workload, limits)));
        if let Some(simulation) = simulation {
            line(&mut text, format_args!("{}", report::simulated(simulation, limits)));
        }
        report::notes(&mut text, &imported.notes());
        if let (Some(plan), Some(workload)) = (&self.plan, self.workload.as_ref().or(self.of.as_ref())) {
            line(
                &mut text,
                format_args!("next: plantui compare {} --plan {}", input::shown(workload), input::shown(plan)),
            );
        }
        text
    }
}

/// Import and its results.
struct ImportReport<'a> {
    configuration: &'a JobConfiguration,
    workload: &'a Workload,
    limits: Limits,
    plan: Plan,
    score: Score,
    simulation: Option<Simulation>,
}

impl ImportReport<'_> {
    /// Assumptions, and rules that the plan breaks according to the workload.
    fn notes(&self) -> Vec<String> {
        let broken = self.score.violations.iter().map(|violation| format!("according to the workload {violation}"));
        self.configuration.notes.iter().cloned().chain(broken).collect()
    }

    fn document(&self) -> Document {
        let (measure, value) = (self.score.measure, self.score.value);
        let told = self.workload.recipe.unwrap_or_default();
        let mut workload = WorkloadPart::from(self.workload);
        workload.recipe = Some(told.or(&import::recipe(self.configuration)));
        let execution = self.plan.execution.map(ExecutionPart::from).unwrap_or_default();
        Document {
            schema: SCHEMA.into(),
            workload: Some(workload),
            planner: None,
            limits: Some(limits_part(&self.limits, family::of(self.workload).limits())),
            status: self.score.is_valid().then(|| "feasible".into()),
            objective: (self.score.is_valid() && value.is_finite()).then(|| ObjectivePart {
                name: measure.name().into(),
                value,
                unit: measure.unit().into(),
                parameters: measure.parameters(),
            }),
            lower_bound: None,
            proven_among: None,
            stages: stage_parts(self.workload, &self.plan, Some(&self.score)),
            configuration: self.plan.configuration().map(crate::plan::configuration::ConfigurationPart::from),
            configurations: vec![],
            prediction: family::of(self.workload).prediction(&self.limits, &self.plan),
            operators: vec![],
            mapping: None,
            schedule: execution.schedule,
            virtual_stages: execution.virtual_stages,
            warmup: execution.warmup,
            simulation: self
                .simulation
                .as_ref()
                .filter(|_| self.score.is_valid())
                .map(|it| plan_json::simulation_part(&it.pipeline, it.schedule, &it.timeline)),
            infeasible: None,
            stats: std::collections::BTreeMap::new(),
            notes: self
                .notes()
                .into_iter()
                .chain([format!("read from {}, not planned", self.configuration.engine.title())])
                .collect(),
        }
    }
}

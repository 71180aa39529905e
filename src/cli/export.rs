//! `plantui export`: writes a plan for an engine, a spreadsheet or another tool.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, builder::PossibleValuesParser};

use super::{
    CommandEnd, Failure,
    arguments::{self, LimitArgs},
    check, input,
    output::Destination,
    profile_input,
    schedule_argument::ScheduleParser,
    simulate::playable,
};
use crate::{
    cluster::Limits,
    export::{
        chrome_trace,
        engine::{self, Engine, EngineSettings, ExportError, ModuleNames},
        formats::{self, FormatWriter, ScoredPlan},
        fullness,
    },
    family::{self, check as score, read::LoadedPlan},
    notice,
    plan::Plan,
    planner::Search,
    run::{Simulation, no_routes},
    simulate::{ExplicitSettings, Schedule, Setup, SimulatorSetting, SimulatorSettings},
    source::LoadError,
    study::nearest::{self, Finder},
    text::{is_hostile, visible_line},
    workload::{self, Workload},
};

const EXAMPLES: &str = "\
Examples:
  plantui plan model.json --json > plan.json
  plantui export plan.json --to megatron                      flags; comments list what they cannot express
  plantui export plan.json --to deepspeed --output stages.py
  plantui export plan.json --to torchtitan --block-name 'model.layers.{}'
  plantui export plan.json --to megatron --exact              refuse anything but the exact plan
  plantui export plan.json --to csv --workload model.json     a row per node
  plantui export plan.json --to svg --output plan.svg         a picture: stages with their load, memory and transfers
  plantui export plan.json --to dot | dot -Tpdf > plan.pdf   stages as clusters of nodes
  plantui export plan.json --to jax                           PartitionSpecs of an operator graph's splits (or --to \
dot)

Most engines treat all stages alike. If an engine cannot run the plan, the nearest plan that it can run is written; \
comments above it and standard error list the differences and their cost. The workload is that of the plan, or \
--workload. Blocks are nodes whose names repeat or differ in one number, or those of --layers.
Exit codes: 0 done, 1 the plan is not valid or nothing the engine can run keeps the limits, 2 wrong use or input, 3 \
the deadline passed.";

/// Write a plan for a training engine, a spreadsheet or another tool
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// Plan: a plantui plan or a result of the published Piper; `-` for standard input
    plan: PathBuf,
    /// Format to write
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: String,
    /// Workload of the plan [default: the file named in the plan]
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Name of the repeated layers, with a * for the number
    #[arg(long, value_name = "PATTERN")]
    layers: Option<String>,
    /// The engine's name of a repeated layer, with {} for its number
    #[arg(long, visible_alias = "layer-names", value_name = "NAME", default_value = "layers.{}")]
    block_name: String,
    /// The engine's modules before the repeated layers
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "tok_embeddings")]
    first_names: Vec<String>,
    /// The engine's modules after the repeated layers
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "norm,lm_head")]
    last_names: Vec<String>,
    /// Samples in a microbatch [default: that of the plan or the workload]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    micro_batch_size: Option<u32>,
    /// Order in which a stage works through its microbatches
    ///
    /// [default: 1f1b; for vllm inference]
    #[arg(long, value_name = "ID|FILE", value_parser = ScheduleParser)]
    schedule: Option<Schedule>,
    /// Virtual stages on every rank under `--schedule interleaved` [default: 2]
    #[arg(long, value_name = "V", requires = "schedule", value_parser = clap::value_parser!(u32).range(2..=64))]
    virtual_stages: Option<u32>,
    /// Refuses a plan that the engine cannot run, instead of writing the nearest one
    #[arg(long)]
    exact: bool,
    /// Stops the search for the nearest plan, or the simulation for a trace, after this time, such as 60s or 2min
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = arguments::deadline)]
    deadline: Option<Duration>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Writes to this file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(
        arguments::export_formats()
            .filter(|(format, _)| !matches!(format.writes, FormatWriter::Run))
            .map(|(_, value)| value),
    )
}

impl ExportArgs {
    /// Writes the plan in the requested format.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input, or if the result cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        let (workload, mut loaded) = self.read()?;
        let limits = check::limits(&self.limits, &mut loaded, &workload, &input::shown(&self.plan))?;
        let format = formats::find(&self.to).expect("clap takes no other word");
        if !format.may_suit(&workload) {
            let (reason, repair) = format.refusal(&workload);
            return Err(Failure::refused(format!("--to {} {reason}", self.to), repair));
        }
        let ignored =
            self.schedule().map(|schedule| SimulatorSetting::VirtualStages.unused(&Setup::from(schedule), None));
        if let (Some(_), Some(Some(reason))) = (self.virtual_stages, ignored) {
            notice::note(&format!("--virtual-stages changes nothing here: {reason}"));
        }
        match format.writes {
            FormatWriter::Engine(engine) => self.engine(engine, &workload, &limits, &loaded, &destination),
            writes => self.other(writes, &workload, &limits, &loaded.plan, &destination),
        }
    }

    /// Workload and its plan.
    fn read(&self) -> Result<(Workload, LoadedPlan), Failure> {
        if let Some(path) = &self.workload {
            input::one_standard_input(path, &self.plan)?;
            let workload = self.limits.load_for(path, &self.plan)?;
            let loaded = input::plan(&self.plan, &workload)?;
            return Ok((workload, loaded));
        }
        let (bytes, source) = input::file_bytes(&self.plan)?;
        let text = workload::formats::detect::text(&bytes, &source, &workload::formats::detect::PLAN)?;
        let document: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let Some(place) = document.pointer("/workload/source").and_then(serde_json::Value::as_str) else {
            let refusal = format!("{source} does not name the file of its workload");
            return Err(Failure::refused(refusal, "name it with --workload FILE"));
        };
        let workload = if place == workload::BUILTIN { workload::builtin() } else { self.beside(place, &source)? };
        let loaded = crate::family::read::read(&workload, text, &source)?;
        Ok((workload, loaded))
    }

    /// Workload at the place that the plan names, relative to the current folder or else to the plan's folder.
    fn beside(&self, place: &str, source: &str) -> Result<Workload, Failure> {
        let here = Path::new(place);
        let beside = self.plan.parent().map(|folder| folder.join(place)).filter(|path| path.is_file());
        let named = workload::training::published::find(place).is_some();
        let found =
            if here.is_file() { Some(here.to_path_buf()) } else { beside.or(named.then(|| here.to_path_buf())) };
        let Some(path) = found else {
            let repair = "name it with --workload FILE";
            let problem = format!("is {}, where there is no file", crate::text::printable(place));
            return Err(LoadError::at(source, "workload.source", problem, repair).into());
        };
        self.limits.load_for(&path, &self.plan)
    }

    fn engine(
        &self,
        engine: Engine,
        workload: &Workload,
        limits: &Limits,
        loaded: &LoadedPlan,
        destination: &Destination,
    ) -> Result<CommandEnd, Failure> {
        let plan = &loaded.plan;
        let names = [&self.block_name].into_iter().chain(&self.first_names).chain(&self.last_names);
        if let Some(name) = names.chain(&self.layers).find(|name| name.contains(is_hostile)) {
            let refusal = format!("`{}` is not a module name: it holds a control character", visible_line(name));
            return Err(Failure::refused(refusal, "write it without"));
        }
        if !self.block_name.contains("{}") || self.block_name.trim() != self.block_name {
            let refusal = format!("`{}` names no repeated layer", self.block_name);
            return Err(Failure::refused(
                refusal,
                "write {} for the number, for example --block-name 'model.layers.{}'",
            ));
        }
        let settings = EngineSettings {
            names: ModuleNames {
                block: self.block_name.clone(),
                first: self.first_names.clone(),
                last: self.last_names.clone(),
            },
            layers: self.layers.clone(),
            micro_batch_size: self.micro_batch_size,
            schedule: self.schedule(),
            virtual_stages: self.virtual_stages,
            recipe: loaded.recipe,
            nearest: (!self.exact).then_some(nearest::plans as Finder),
            deadline: self.deadline,
        };
        match engine::export(engine, workload, limits, plan, &settings) {
            Ok(exported) => {
                for loss in &exported.losses {
                    notice::note(&format!("{} cannot express this: {loss}", engine.title()));
                }
                if exported.plan != *plan || exported.values.0 != exported.values.1 {
                    notice::note(&engine::loss(exported.values, plan.measure));
                }
                for note in &exported.notes {
                    notice::note(note);
                }
                destination.write(&exported.text)?;
                Ok(CommandEnd::Done)
            }
            Err(error @ ExportError::Schedule { .. }) => Err(Failure::refused(error.to_string(), "see --schedule")),
            Err(error @ (ExportError::Layers(_) | ExportError::NoBlocks(_))) => {
                Err(Failure::refused(error.to_string(), "see --layers"))
            }
            Err(error @ (ExportError::Invalid(_) | ExportError::Impossible { .. })) => {
                notice::error(&error.to_string());
                Ok(CommandEnd::NoPlan)
            }
        }
    }

    fn other(
        &self,
        writes: FormatWriter,
        workload: &Workload,
        limits: &Limits,
        plan: &Plan,
        destination: &Destination,
    ) -> Result<CommandEnd, Failure> {
        let scored = score(workload, limits, plan);
        if let Some(violation) = scored.violations.first() {
            notice::error(&format!("the plan is not valid: {violation}"));
            return Ok(CommandEnd::NoPlan);
        }
        if let FormatWriter::Plan(text) = writes {
            if self.schedule.is_some() {
                notice::note(&format!("--schedule changes nothing here: {} does not hold a schedule", self.to));
            }
            fullness::warning(&scored, limits).iter().for_each(|full| notice::note(full));
            destination.write(&text(&ScoredPlan { workload, limits, plan, score: &scored }))?;
            profile_input::untold_in(&self.to, workload);
            return Ok(CommandEnd::Done);
        }
        let search = Search::new(self.deadline, 0);
        let Setup { schedule, settings, .. } = self.simulate().of(plan);
        let routed = family::pipeline_unless(workload, limits, plan, &settings, &|| search.cancelled());
        if let (Some(pipeline), Some(wanted)) = (&routed, self.schedule()) {
            playable(pipeline, wanted)?;
        }
        if let (FormatWriter::Schedule, Some(pipeline)) = (writes, &routed) {
            let text = formats::schedule_csv(pipeline, pipeline.schedule(schedule));
            let text = text.map_err(|problem| Failure::refused(problem, "see --schedule"))?;
            destination.write(&text)?;
            return Ok(CommandEnd::Done);
        }
        let simulation = match routed {
            Some(pipeline) => Simulation::of(pipeline, schedule, &search),
            None => Err(no_routes(&search)),
        };
        let Simulation { schedule, pipeline, timeline } = match simulation {
            Ok(simulation) => simulation,
            Err(given_up) => {
                notice::error(&given_up);
                return Ok(CommandEnd::Stopped);
            }
        };
        fullness::simulated(&timeline, schedule, limits).iter().for_each(|full| notice::note(full));
        destination.trace(|out| chrome_trace::write(&mut { out }, plan, &pipeline, schedule, &timeline))?;
        Ok(CommandEnd::Done)
    }

    fn schedule(&self) -> Option<Schedule> {
        self.schedule
    }

    /// Requested schedule, else the plan's own.
    fn simulate(&self) -> Setup {
        let setup = self.schedule().map_or_else(Setup::default, Setup::from);
        match self.virtual_stages {
            Some(virtual_stages) => Setup {
                settings: SimulatorSettings { virtual_stages, ..setup.settings },
                explicit: ExplicitSettings { virtual_stages: true, ..setup.explicit },
                ..setup
            },
            None => setup,
        }
    }
}

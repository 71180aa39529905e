//! `plantui import`: reads a job of a training engine, predicts it as it runs, and compares it with the best layout.

mod document;
mod plan;
mod profile;
mod report;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser},
};

use super::{
    CommandEnd, Failure, arguments, estimate, hardware_file, input, job_input,
    output::{self, Destination},
};
use crate::{
    family::training::{Estimate, Fits, Model, remedy, request::ResolvedRequest},
    jobs::{self, Job, ReadOptions},
    planner::Search,
    study::improve::{BetterRun, ExistingRun, Reach, SingleChange},
    text::{shell_word, visible_line},
    units,
    workload::{
        convert,
        formats::{detect, file},
    },
};
pub(in crate::cli) use document::schema;

use plan::Origin;

const EXAMPLES: &str = "\
Examples:
  plantui import train.sh --hardware h100
  plantui import train.sh --define NNODES=16 --hardware h100
  plantui import slurm-1234.log --hardware a100-80
  plantui import ds_config.json qwen3-8b --hardware h100 --devices 16
  plantui import config_registry.py --recipe llama3_8b --hardware h100 --devices 64
  plantui import train.sh --hardware h100 --workload job.json --best best.json
  plantui export best.json --to megatron              the best plan as the engine's settings
  plantui explain train.sh                            what the job spends, and single changes

Reads shell scripts (Megatron-LM, torchrun, Slurm), Megatron-LM's logs, and the configurations of the engines that --from \
lists. Nothing is executed: shell and Python are evaluated as far as constants go. Each fact is printed with its file \
and line. A setting that may change the model, the layout, the memory or the precision, and that is not understood, is \
an error; --ignore leaves it out.
Exit codes: 0 done, 2 wrong use or input.";

/// Most bytes that are read: no configuration is larger, and logs are cut here.
const MOST_BYTES: u64 = 4 << 20;

/// Hardware of a job that states none.
const USUAL_HARDWARE: &str = "h100";

/// Longest search for the best layout, unless --deadline gives another.
const USUAL_DEADLINE: Duration = Duration::from_secs(10);

/// Read the job of a training engine, predict it, and compare it with the best layout
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// Job: a script, a log or a configuration, or `-` for standard input
    job: PathBuf,
    /// The model, if the job does not state it: a published name or a Hugging Face config.json
    model: Option<String>,
    /// The same as a flag
    #[arg(long = "model", id = "model_flag", value_name = "MODEL", conflicts_with = "model")]
    model_flag: Option<String>,
    /// Format of the job [default: recognised by its names]
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    from: Option<String>,
    /// Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: h100]
    #[arg(long, value_name = "ID")]
    hardware: Option<String>,
    #[command(flatten)]
    facts: FactArgs,
    #[command(flatten)]
    answers: AnswerArgs,
    /// An existing profile of the network: only the plan is made, over its measured times
    #[arg(long = "for", id = "for_workload", value_name = "FILE", conflicts_with_all = ["workload", "best", "model", "model_flag", "hardware"])]
    of: Option<PathBuf>,
    /// Stops the search for the best layout after this time [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = arguments::deadline, allow_hyphen_values = true)]
    deadline: Option<Duration>,
    /// Writes the workload to this file
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Writes the plan of the job as it runs to this file
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Writes the best plan found to this file, as `plantui export` takes it
    #[arg(long, value_name = "FILE")]
    best: Option<PathBuf>,
    /// Prints one JSON document (schema plantui.import/1) in place of the page
    #[arg(long)]
    json: bool,
    /// Lets --workload, --plan and --best replace files
    #[arg(long)]
    force: bool,
}

/// Facts that a job may not state. They replace those that it does state.
#[derive(Debug, Args)]
#[command(next_help_heading = "Facts of the job, in place of what the file states")]
struct FactArgs {
    /// Number of devices
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    devices: Option<String>,
    /// Degrees of parallelism and the micro-batch, such as tp=4,pp=2,mbs=1
    #[arg(long, value_name = "NAME=N,..", allow_hyphen_values = true)]
    parallel: Option<String>,
    /// Sequences in an iteration, over all devices
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    global_batch: Option<String>,
    /// Tokens in a sequence
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
    sequence_length: Option<String>,
    /// Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4
    #[arg(long, value_name = "FORMAT")]
    precision: Option<String>,
    /// Recomputation in the backward pass, as `plantui estimate` takes it
    #[arg(long, value_name = "WHAT")]
    recompute: Option<String>,
    /// Adapters in place of training all weights, such as lora:r=16
    #[arg(long, value_name = "ADAPTER")]
    adapter: Option<String>,
    /// Sets a setting of the software; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
}

/// Answers to questions that a file leaves open.
#[derive(Debug, Args)]
#[command(next_help_heading = "Questions that a file leaves open")]
struct AnswerArgs {
    /// Value of a variable of a script or a parameter of a function; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    define: Vec<String>,
    /// Adds a setting of the job, in the job's own name, as if the file ended with it; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    with: Vec<String>,
    /// Leaves out a setting that is not understood; may be repeated
    #[arg(long, value_name = "NAME")]
    ignore: Vec<String>,
    /// Function of a Python file, or line of a command, where a file has several jobs
    #[arg(long, value_name = "NAME")]
    recipe: Option<String>,
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(jobs::formats().map(|(id, title)| PossibleValue::new(id).help(title)).collect::<Vec<_>>())
}

/// Job with its prediction.
struct ImportedJob<'a> {
    job: &'a Job,
    model: &'a Model,
    resolved: &'a ResolvedRequest,
    estimate: &'a Estimate,
    remedies: &'a [remedy::Remedy],
    /// Changes that make it fit, fastest first.
    fitting: &'a [SingleChange],
    best: Option<&'a BetterRun>,
    /// Commands that go on from here.
    call: &'a str,
}

impl ImportArgs {
    /// Reads, predicts, writes and reports.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input, or if a file cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let outputs = [&self.workload, &self.plan, &self.best]
            .map(|path| path.as_deref().map(|path| Destination::new(Some(path), self.force)));
        for destination in outputs.iter().flatten() {
            destination.check()?;
        }
        if self.of.is_none() && self.workload.is_none() && (self.plan.is_some() || self.best.is_some()) {
            let repair = "add --workload FILE: a plan names the file of its workload";
            return Err(Failure::refused("--plan and --best need a workload", repair));
        }
        let job = self.read()?;
        if let Some(path) = &self.of {
            return profile::run(&job, path, outputs[1].as_ref(), self.plan.as_deref(), self.json);
        }
        if let Some(refused) = &job.refused {
            return Err(refused.clone().into());
        }
        let Some(model) = &job.model else { return Err(job_input::no_model(&job).into()) };
        let resolved = job.resolve(&model.value)?;
        let existing = ExistingRun {
            model: &model.value,
            run: &resolved.run,
            accelerator: &resolved.accelerator,
            devices: resolved.devices,
        };
        let refused = |refusal: crate::family::training::check::Refusal| {
            Failure::refused(format!("{}: {}", job.source, refusal.problem), refusal.repair)
        };
        let estimate = Estimate::of(existing.model, existing.run, existing.accelerator, existing.devices, None)
            .map_err(refused)?;
        let remedies = remedy::remedies(existing.model, existing.run, existing.accelerator, existing.devices, None);
        let search = Search::new(Some(self.deadline.unwrap_or(USUAL_DEADLINE)), 0);
        let fitting = if estimate.fits == Fits::No { existing.fitting(reach(&job)) } else { vec![] };
        let best = existing.best(reach(&job), &search)?;
        let [workload_file, plan_file, best_file] = outputs;
        // A plan names the file of its workload.
        let source = self.workload.as_deref().map_or_else(|| job.source.clone(), input::shown);
        let workload = existing.workload(&model.value.name, &source);
        if self.best.is_some() && best.is_none() {
            let devices = units::counted(usize::try_from(resolved.devices).unwrap_or(usize::MAX), "device");
            let problem = format!("{}: no layout fits on {devices}, so --best has no plan", job.source);
            return Err(Failure::refused(problem, "leave it out; the page names what would make the job fit"));
        }
        if let Some(destination) = workload_file {
            destination.write(&convert::text(&workload))?;
        }
        if let Some(destination) = plan_file {
            destination.write(&plan::json(&workload, &resolved, &job, Origin::Read)?)?;
        }
        if let (Some(destination), Some(best)) = (best_file, &best) {
            let better = ResolvedRequest { run: best.run.clone(), devices: best.devices, ..resolved.clone() };
            let workload = ExistingRun { run: &better.run, devices: better.devices, ..existing }
                .workload(&model.value.name, &source);
            destination.write(&plan::json(&workload, &better, &job, Origin::Planned)?)?;
        }
        let imported = ImportedJob {
            job: &job,
            model: &model.value,
            resolved: &resolved,
            estimate: &estimate,
            remedies: &remedies,
            fitting: &fitting,
            best: best.as_ref(),
            call: &self.call(&resolved),
        };
        output::print(&if self.json { output::json(&imported.document()) } else { imported.page() })?;
        Ok(CommandEnd::Done)
    }

    /// The command as it was given, with its hardware and without its outputs.
    fn call(&self, resolved: &ResolvedRequest) -> String {
        let mut words = std::env::args_os().skip(1).map(|word| visible_line(&word.to_string_lossy()));
        let mut call = vec!["plantui".to_string()];
        while let Some(word) = words.next() {
            let (flag, value) = word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
            match flag {
                "--json" | "--force" => {}
                "--workload" | "--plan" | "--best" => drop(if value.is_none() { words.next() } else { None }),
                _ => call.push(shell_word(&word)),
            }
        }
        if self.hardware.is_none() {
            call.push(format!("--hardware {}", resolved.accelerator.id));
        }
        call.join(" ")
    }

    fn read(&self) -> Result<Job, Failure> {
        let source = input::shown(&self.job);
        let bytes = if input::is_standard_input(&self.job) {
            file::limited(crate::streams::input(), &source, MOST_BYTES)?
        } else {
            file::read_at_most(&self.job, MOST_BYTES)?
        };
        let text = detect::text(&bytes, &source, &detect::JOB)?;
        let folder = (!input::is_standard_input(&self.job)).then(|| self.job.parent().unwrap_or(Path::new("")));
        let options = self.options()?;
        let mut job = jobs::read(text, &source, folder, &options)?;
        if self.hardware.is_none() && self.of.is_none() && !job.facts.contains_key("hardware") {
            job.assumed.push(jobs::Assumption {
                name: "hardware".into(),
                value: USUAL_HARDWARE.into(),
                flag: "--hardware".into(),
            });
        }
        Ok(job)
    }

    fn options(&self) -> Result<ReadOptions, Failure> {
        let pair = |flag: &str, text: &str| match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_string(), value.to_string())),
            _ => {
                let shown = crate::text::printable(text);
                Err(Failure::refused(format!("{flag} `{shown}` is no NAME=VALUE"), format!("write {flag} NAME=VALUE")))
            }
        };
        let answers = &self.answers;
        let defines = answers.define.iter().map(|text| pair("--define", text)).collect::<Result<_, _>>()?;
        let with = answers.with.iter().map(|text| pair("--with", text)).collect::<Result<_, _>>()?;
        let model = self.model.as_deref().or(self.model_flag.as_deref()).map(estimate::model).transpose()?;
        let id = self.from.as_deref().and_then(|id| jobs::formats().map(|(known, _)| known).find(|known| *known == id));
        let layers = match &self.of {
            Some(path) => profile::layers(path)?,
            None => None,
        };
        Ok(ReadOptions {
            format: id,
            defines,
            with,
            ignore: answers.ignore.iter().map(|name| jobs::normal(name)).collect(),
            recipe: answers.recipe.clone(),
            flags: self.flags()?,
            model,
            layers,
        })
    }

    /// Facts of the command line by the names of a request, each validated, with its flag.
    fn flags(&self) -> Result<Vec<(String, String, String)>, Failure> {
        let facts = &self.facts;
        let hardware = self.hardware.as_deref().map(hardware_file::id_of).transpose()?;
        let adapter = facts.adapter.as_deref().map(estimate::adapter).transpose()?;
        let single = [
            ("hardware", &hardware),
            ("devices", &facts.devices),
            ("global-batch", &facts.global_batch),
            ("sequence-length", &facts.sequence_length),
            ("precision", &facts.precision),
            ("recompute", &facts.recompute),
            ("adapter", &adapter),
            ("parallel", &facts.parallel),
        ];
        // Validates all of them.
        estimate::request(&single, &facts.settings)?;
        let mut all = vec![];
        for (flag, value) in single {
            let Some(value) = value else { continue };
            if flag == "parallel" {
                let degrees = value.split(',').filter_map(|part| part.split_once('='));
                all.extend(degrees.map(|(name, n)| (name.trim().into(), n.trim().into(), "--parallel".to_string())));
            } else {
                all.push((flag.replace('-', "_"), value.clone(), format!("--{flag}")));
            }
        }
        let settings = facts.settings.iter().filter_map(|setting| setting.split_once('='));
        all.extend(settings.map(|(name, value)| (name.into(), value.into(), "--set".into())));
        Ok(all)
    }
}

/// Axes that the software of a job can change.
pub(super) fn reach(job: &Job) -> Reach {
    let pipelined = job.degree("pp") > 1;
    match job.format {
        "deepspeed" | "gpt-neox" | "nanotron" | "galvatron" | "torch" if pipelined => Reach::PIPELINE,
        "gpt-neox" | "nanotron" | "galvatron" => Reach::PIPELINE,
        "deepspeed" | "torch" | "huggingface" | "accelerate" | "axolotl" | "llama-factory" => Reach::DATA,
        // A pipeline of MaxText runs all forward passes first, which plans do not count.
        "maxtext" => Reach { pipeline: pipelined, virtual_stages: pipelined, tensor: true },
        "verl" | "ms-swift" if job.facts.get("stack").is_some_and(|stack| stack.value == "torchtitan") => Reach::DATA,
        _ => Reach::ALL,
    }
}

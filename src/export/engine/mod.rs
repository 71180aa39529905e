//! A plan as the flags or the code of a training engine, and what of it the engine cannot express.
//!
//! Engines cut a network between layers and, most of them, treat all stages alike. [`export`] first looks whether the
//! engine can run the plan as it is. Where it cannot, it says why, takes the nearest plan that the engine can run (the
//! same stages with the recomputation evened out, or the best plan with the same degrees everywhere,
//! [`uniform`](crate::study::uniform)) and scores it with [`check`], so that the loss is a figure.
//!
//! One file per engine turns a [`Cut`] into text. Sources: the engines' own parsers; see each file.

mod cut;
mod deepspeed;
mod galvatron;
mod megatron;
mod torch;
pub mod torch_schedule;
mod torchtitan;
mod vllm;

use std::sync::Arc;

use thiserror::Error;

pub use cut::{Cut, CutStage};

use crate::{
    cluster::Limits,
    plan::{Plan, check::check},
    planner::{Options, Planner, Problem, Search, piper::Piper},
    simulate::Schedule,
    study::uniform,
    units,
    workload::{
        Workload,
        layering::{Layering, LayeringError},
    },
};

/// An engine, or a part of one that takes a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// Megatron-Core's flags.
    Megatron,
    /// A DeepSpeed `PipelineModule`.
    DeepSpeed,
    /// `torch.distributed.pipelining`: where to split a module.
    Torch,
    /// `torch.distributed.pipelining`: who does what when.
    TorchSchedule,
    /// torchtitan's job configuration.
    TorchTitan,
    /// Galvatron's strategy file.
    Galvatron,
    /// vLLM's flags, for serving.
    Vllm,
}

/// What differs between engines in what they can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recompute {
    /// As the plan says, layer by layer.
    PerLayer,
    /// The first so many layers of every stage.
    Count,
    /// All layers or none.
    AllOrNone,
    /// It has none, and needs none.
    Ignored,
}

/// How the engine's user names things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// A block's module, `{}` standing for its number: `layers.{}`.
    pub block: String,
    /// The modules in front of the blocks.
    pub first: Vec<String>,
    /// The modules behind the blocks.
    pub last: Vec<String>,
}

impl Default for Names {
    fn default() -> Self {
        Names {
            block: "layers.{}".into(),
            first: vec!["tok_embeddings".into()],
            last: vec!["norm".into(), "output".into()],
        }
    }
}

/// What an export needs to know beside the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Names of modules.
    pub names: Names,
    /// Which nodes are blocks: a name with `*` for the number; `None`: what repeats.
    pub layers: Option<String>,
    /// Samples in a microbatch; `None`: what the plan says, else one.
    pub micro_batch_size: Option<u32>,
    /// The schedule to ask for.
    pub schedule: Schedule,
    /// Refuse what cannot be expressed in place of taking the nearest plan.
    pub exact: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            names: Names::default(),
            layers: None,
            micro_batch_size: None,
            schedule: Schedule::OneForwardOneBackward,
            exact: false,
        }
    }
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// The flags or the file.
    pub text: String,
    /// What of the plan the engine cannot express, a sentence each; empty if this is the plan.
    pub losses: Vec<String>,
    /// What the text was made from: the plan, or the nearest that the engine can run.
    pub plan: Plan,
    /// Objective of the plan that was given, and of the one that was written.
    pub values: (f64, f64),
}

/// Why nothing was written.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExportError {
    /// The workload is no sequence of layers.
    #[error(transparent)]
    Layers(#[from] LayeringError),
    /// The engine counts blocks, and there are none.
    #[error(
        "{0} counts repeated layers, and no name of the workload repeats; name them, for example --layers 'layers.*'"
    )]
    NoBlocks(&'static str),
    /// The file holds a schedule, but not this one.
    #[error("{engine} with one stage on a rank cannot run the schedule {schedule}; it can run {known}")]
    Schedule {
        /// The engine's title.
        engine: &'static str,
        /// Id of the schedule that was asked for.
        schedule: &'static str,
        /// Ids of those that would do.
        known: String,
    },
    /// The plan breaks a rule.
    #[error("the plan is not valid: {0}")]
    Invalid(String),
    /// The engine cannot run the plan, and no nearest plan was wanted or exists.
    #[error("{engine} cannot run this plan: {}", .losses.join("; "))]
    Impossible {
        /// The engine's title.
        engine: &'static str,
        /// What it cannot express.
        losses: Vec<String>,
    },
}

impl Engine {
    /// All engines, in the order they are shown.
    pub const ALL: [Engine; 7] = [
        Engine::Megatron,
        Engine::DeepSpeed,
        Engine::Torch,
        Engine::TorchSchedule,
        Engine::TorchTitan,
        Engine::Galvatron,
        Engine::Vllm,
    ];

    /// What `--to` calls it.
    pub fn id(self) -> &'static str {
        match self {
            Engine::Megatron => "megatron",
            Engine::DeepSpeed => "deepspeed",
            Engine::Torch => "torch",
            Engine::TorchSchedule => "torch-schedule",
            Engine::TorchTitan => "torchtitan",
            Engine::Galvatron => "galvatron",
            Engine::Vllm => "vllm",
        }
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Engine::Megatron => "Megatron-LM",
            Engine::DeepSpeed => "DeepSpeed",
            Engine::Torch => "PyTorch pipelining",
            Engine::TorchSchedule => "PyTorch schedule",
            Engine::TorchTitan => "torchtitan",
            Engine::Galvatron => "Galvatron",
            Engine::Vllm => "vLLM",
        }
    }

    /// One line on what is written.
    pub fn help(self) -> &'static str {
        match self {
            Engine::Megatron => "flags for Megatron-Core: layout of the stages, degrees, recomputation",
            Engine::DeepSpeed => "a PipelineModule whose parts are the plan's stages, in Python",
            Engine::Torch => "split_spec for torch.distributed.pipelining, in Python",
            Engine::TorchSchedule => "schedule CSV for torch.distributed.pipelining: a row per rank, a cell per step",
            Engine::TorchTitan => "the parallelism section of a torchtitan job, in TOML",
            Engine::Galvatron => "a Galvatron strategy, in JSON",
            Engine::Vllm => "flags for serving with vLLM",
        }
    }

    /// The end of a proposed file name.
    pub fn suffix(self) -> &'static str {
        match self {
            Engine::Megatron => "megatron.sh",
            Engine::DeepSpeed => "deepspeed.py",
            Engine::Torch => "torch.py",
            Engine::TorchSchedule => "schedule.csv",
            Engine::TorchTitan => "torchtitan.toml",
            Engine::Galvatron => "galvatron.json",
            Engine::Vllm => "vllm.sh",
        }
    }

    /// The schedules that its file can ask for; `None` where the file names none.
    fn schedules(self) -> Option<&'static [Schedule]> {
        use Schedule::{EagerOneForwardOneBackward, GPipe, OneForwardOneBackward};
        match self {
            Engine::TorchSchedule => Some(&[OneForwardOneBackward, GPipe, EagerOneForwardOneBackward]),
            Engine::TorchTitan => Some(&[OneForwardOneBackward, GPipe]),
            Engine::Megatron | Engine::DeepSpeed | Engine::Torch | Engine::Galvatron | Engine::Vllm => None,
        }
    }

    fn recompute(self) -> Recompute {
        match self {
            Engine::Megatron => Recompute::Count,
            Engine::DeepSpeed | Engine::TorchTitan => Recompute::AllOrNone,
            Engine::Torch | Engine::Galvatron => Recompute::PerLayer,
            Engine::TorchSchedule | Engine::Vllm => Recompute::Ignored,
        }
    }

    /// Whether it counts repeated blocks, rather than naming modules.
    fn counts_blocks(self) -> bool {
        matches!(self, Engine::Megatron | Engine::Galvatron | Engine::Vllm)
    }

    /// Whether what is no block has no place of its own.
    fn merges_ends(self) -> bool {
        matches!(self, Engine::Galvatron | Engine::Vllm)
    }

    /// What of the stages' degrees it cannot express.
    fn uneven(self, cut: &Cut) -> Option<String> {
        let degrees = |stage: &CutStage| (stage.data_parallel, stage.tensor_parallel);
        let first = cut.stages.first().map(degrees)?;
        let odd = cut.stages.iter().position(|stage| match self {
            // Degrees may differ from stage to stage as long as the devices do not.
            Engine::Galvatron => stage.devices() != cut.stages[0].devices(),
            _ => degrees(stage) != first,
        })?;
        let (d, t) = degrees(&cut.stages[odd]);
        let rule = match self {
            Engine::Galvatron => "as many devices for every stage",
            _ => "the same degrees for every stage",
        };
        Some(format!("stage 1 runs {} x {} and stage {} runs {d} x {t}; it takes {rule}", first.0, first.1, odd + 1))
    }

    /// What of the recomputation it cannot express.
    fn partial(self, cut: &Cut) -> Option<String> {
        let counts: Vec<(usize, usize)> = cut.stages.iter().map(CutStage::recomputed).collect();
        let all = counts.iter().all(|(some, of)| some == of);
        let none = counts.iter().all(|(some, _)| *some == 0);
        let least = counts.iter().map(|(some, _)| *some).max().unwrap_or(0);
        match self.recompute() {
            Recompute::PerLayer | Recompute::Ignored => None,
            _ if all || none => None,
            Recompute::Count if counts.iter().all(|&(some, of)| some == least.min(of)) => None,
            Recompute::Count => {
                Some("stages recompute different numbers of layers; it takes one number for all".into())
            }
            Recompute::AllOrNone => {
                Some("some layers recompute and some do not; it recomputes all layers or none".into())
            }
        }
    }

    /// All that it cannot express.
    fn losses(self, cut: &Cut) -> Vec<String> {
        let nameless = megatron::nameless(cut).filter(|_| self == Engine::Megatron);
        let nameless =
            nameless.map(|stage| format!("stage {} holds no block; its layout has no letter for that", stage + 1));
        self.uneven(cut).into_iter().chain(self.partial(cut)).chain(nameless).collect()
    }

    /// How many layers of every stage could recompute in place of what the plan says.
    fn evened(self, cut: &Cut) -> Vec<usize> {
        let most = cut.stages.iter().map(|stage| stage.recomputed().0).max().unwrap_or(0);
        match self.recompute() {
            Recompute::Count => vec![most, usize::MAX],
            Recompute::AllOrNone => vec![0, usize::MAX],
            Recompute::PerLayer | Recompute::Ignored => vec![],
        }
    }

    /// Sets the microbatches; gives what of them it cannot express. Serving has none.
    fn microbatches(self, cut: &mut Cut, limits: &Limits, plan: &Plan, settings: &Settings) -> Option<String> {
        cut.set_microbatches(limits, plan, settings.micro_batch_size).filter(|_| self != Engine::Vllm)
    }

    fn text(self, cut: &Cut, settings: &Settings) -> String {
        match self {
            Engine::Megatron => megatron::text(cut),
            Engine::DeepSpeed => deepspeed::text(cut, settings),
            Engine::Torch => torch::text(cut, settings),
            Engine::TorchSchedule => torch_schedule::text(cut, settings),
            Engine::TorchTitan => torchtitan::text(cut, settings),
            Engine::Galvatron => galvatron::text(cut),
            Engine::Vllm => vllm::text(cut),
        }
    }
}

/// Writes a plan for an engine.
///
/// # Errors
/// [`ExportError`] if nothing sensible is left to write.
pub fn export(
    engine: Engine,
    workload: &Workload,
    limits: &Limits,
    plan: &Plan,
    settings: &Settings,
) -> Result<Exported, ExportError> {
    if let Some(known) = engine.schedules().filter(|known| !known.contains(&settings.schedule))
        && settings.schedule != Schedule::SingleSample
    {
        let ids: Vec<&str> = known.iter().map(|schedule| schedule.id()).collect();
        let (engine, schedule) = (engine.title(), settings.schedule.id());
        return Err(ExportError::Schedule { engine, schedule, known: ids.join(", ") });
    }
    let mut layering = Layering::of(workload, settings.layers.as_deref())?;
    if engine.merges_ends() {
        layering = layering.with_merged_ends();
    }
    if engine.counts_blocks() && layering.blocks() == 0 {
        return Err(ExportError::NoBlocks(engine.title()));
    }
    let score = check(workload, limits, plan);
    if let Some(violation) = score.violations.first() {
        return Err(ExportError::Invalid(violation.to_string()));
    }
    let mut losses = match Cut::of(workload, limits, &layering, plan) {
        Ok(mut cut) => {
            let losses = engine.losses(&cut);
            let rounded = engine.microbatches(&mut cut, limits, plan, settings);
            if losses.is_empty() && (rounded.is_none() || !settings.exact) {
                let losses: Vec<String> = rounded.into_iter().collect();
                let values = (score.value, score.value);
                let text = headed(engine, &losses, None, engine.text(&cut, settings));
                return Ok(Exported { text, losses, plan: plan.clone(), values });
            }
            losses.into_iter().chain(rounded).collect()
        }
        Err(problems) => problems,
    };
    let impossible = |losses: Vec<String>| ExportError::Impossible { engine: engine.title(), losses };
    if settings.exact {
        return Err(impossible(losses));
    }
    let nearest = candidates(engine, workload, limits, plan, &layering)
        .into_iter()
        .map(|plan| (check(workload, limits, &plan), plan))
        .filter(|(score, _)| score.is_valid())
        .min_by(|a, b| a.0.value.total_cmp(&b.0.value));
    let Some((nearest_score, nearest)) = nearest else {
        losses.push(match workload.piper() {
            Some(_) => "no plan that it can run keeps the limits".into(),
            None => "the nearest plan is known only where nodes have times by tensor degree (Piper's JSON)".into(),
        });
        return Err(impossible(losses));
    };
    let mut cut = Cut::of(workload, limits, &layering, &nearest).map_err(impossible)?;
    losses.extend(engine.microbatches(&mut cut, limits, &nearest, settings));
    let values = (score.value, nearest_score.value);
    let text = headed(engine, &losses, Some(loss(values, score.measure)), engine.text(&cut, settings));
    Ok(Exported { text, losses, plan: nearest, values })
}

/// Plans that the engine can run, from near to far: the plan with its recomputation evened out; the best plan with the
/// same degrees on every stage, with its recomputation as it is or evened out; the best whose stages recompute alike.
fn candidates(engine: Engine, workload: &Workload, limits: &Limits, plan: &Plan, layering: &Layering) -> Vec<Plan> {
    let ways = uniform::Settings { recompute: &[false, true], tensor_parallel: true };
    let mut plans: Vec<Plan> =
        uniform::best(workload, limits, layering, &ways, &Search::default()).plan.into_iter().collect();
    let options = Options::parse("piper", Piper.options(), ["engine_feasible=true"]);
    let options = options.expect("Piper takes this option");
    let same_degrees = if Piper.can_plan(workload).is_ok() {
        let problem = Problem { workload: Arc::new(workload.clone()), limits: *limits, options };
        Piper.plan(&problem, &Search::default()).plan
    } else {
        None
    };
    for plan in std::iter::once(plan.clone()).chain(same_degrees) {
        let Ok(cut) = Cut::of(workload, limits, layering, &plan) else { continue };
        if engine.uneven(&cut).is_none() {
            plans.extend(
                engine.evened(&cut).into_iter().filter_map(|most| cut::recomputing(workload, layering, &plan, most)),
            );
        }
        plans.push(plan);
    }
    plans.retain(|plan| Cut::of(workload, limits, layering, plan).is_ok_and(|cut| engine.losses(&cut).is_empty()));
    plans
}

/// The text with what it is and what was lost above it, where the format takes comments.
fn headed(engine: Engine, losses: &[String], cost: Option<String>, text: String) -> String {
    if matches!(engine, Engine::Galvatron | Engine::TorchSchedule) {
        return text;
    }
    let mut head: Vec<String> = vec![format!("{}, written by plantui", engine.title())];
    head.extend(losses.iter().map(|loss| format!("not expressed: {loss}")));
    head.extend(cost);
    head.iter().map(|line| format!("# {line}\n")).collect::<String>() + &text
}

/// What taking the nearest plan costs, in a sentence.
pub fn loss((given, written): (f64, f64), measure: crate::plan::Measure) -> String {
    let (shown, instead) = (measure.show(written), measure.show(given));
    if given > 0.0 && written > given {
        let share = units::percent(written / given - 1.0);
        format!("nearest plan it can run: {shown} by the same objective, {share} above the plan's {instead}")
    } else {
        format!("nearest plan it can run: {shown} by the same objective, against the plan's {instead}")
    }
}

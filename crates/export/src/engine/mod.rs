//! Export of a plan as flags or code of a training engine, and the parts of it that the engine cannot express.
//!
//! Engines cut a network between layers, and most treat all stages alike. [`export`] first checks whether the engine
//! can run the plan as it is. If not, it says why and takes the nearest plan that the engine can run: the same stages
//! with equal recomputation, or one that [`EngineSettings::nearest`] finds. It scores this plan with [`check()`], so the loss is a
//! figure.
//!
//! One file per engine turns a [`LayerCut`] into text, with the batch and model facts of the workload's [`Recipe`].
//! Sources: the engines' own parsers; see each file.

mod cut;
mod deepspeed;
mod galvatron;
mod job;
mod kind;
pub(crate) mod launch;
mod maxtext;
mod megatron;
mod megatron_bridge;
mod megatron_model;
mod mixed;
mod python;
mod torch;
mod torchtitan;
mod torchtitan_model;
mod training;
mod virtual_stages;
mod vllm;
mod warm_up;

use std::time::Duration;

use thiserror::Error;

pub use cut::{CutStage, LayerCut};
pub use kind::Engine;
pub use virtual_stages::VirtualStageParts;

use job::EngineJob;

use crate::fullness;
use plantui_core::{
    cluster::Limits,
    family::{self, check, training::TrainingRun},
    plan::{Plan, Score, runner::Runner},
    simulate::Schedule,
    text::single_line,
    units,
    workload::{
        Recipe, Workload,
        layering::{Layering, LayeringError},
    },
};
use plantui_study::nearest::{Finder, NearestPlans, NearestRequest};

/// Names of the user's modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleNames {
    /// Module of a block, with `{}` for its number: `layers.{}`.
    pub block: String,
    /// Modules before the blocks.
    pub first: Vec<String>,
    /// Modules after the blocks.
    pub last: Vec<String>,
}

impl Default for ModuleNames {
    fn default() -> Self {
        ModuleNames {
            block: "layers.{}".into(),
            first: vec!["tok_embeddings".into()],
            last: vec!["norm".into(), "lm_head".into()],
        }
    }
}

/// Settings of an export, except the plan.
#[derive(Debug, Clone, Default)]
pub struct EngineSettings {
    /// Names of modules.
    pub names: ModuleNames,
    /// Pattern of the nodes that are blocks, with `*` for the number; `None`: names that repeat.
    pub layers: Option<String>,
    /// Samples per microbatch; `None`: the value of the plan or the workload.
    pub micro_batch_size: Option<u32>,
    /// Schedule to export; `None`: the plan's own, else the engine's default.
    pub schedule: Option<Schedule>,
    /// Parts of the model on every rank under an interleaved schedule; `None`: the plan's own, else 2.
    pub virtual_stages: Option<u32>,
    /// Facts of the network from the plan's document, used where the workload has none.
    pub recipe: Option<Recipe>,
    /// Finds the nearest plans that the engine can run; `None`: refuse a plan that it cannot run.
    pub nearest: Option<Finder>,
    /// Time limit for the search of the nearest plan; `None`: no limit.
    pub deadline: Option<Duration>,
}

impl EngineSettings {
    /// The same with names that contain no line break or escape sequence, so they stay inside a string or a comment.
    fn on_one_line(&self) -> EngineSettings {
        let all = |names: &[String]| names.iter().map(|name| single_line(name)).collect();
        let ModuleNames { block, first, last } = &self.names;
        let names = ModuleNames { block: single_line(block), first: all(first), last: all(last) };
        EngineSettings { names, ..self.clone() }
    }
}

/// Result of an export.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineExport {
    /// Text of the flags or the file.
    pub text: String,
    /// Parts of the plan that the engine cannot express, a sentence each; empty if the exported plan is the given one.
    pub losses: Vec<String>,
    /// Notes for the user, a sentence each: values to fill in, how memory was counted.
    pub notes: Vec<String>,
    /// Plan behind the text: the given one, or the nearest that the engine can run.
    pub plan: Plan,
    /// Objective of the given plan, and of the exported one.
    pub values: (f64, f64),
    /// Run of a model to be trained that the text stands for.
    pub run: Option<Box<TrainingRun>>,
}

/// Reason why nothing was written.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExportError {
    /// The workload is not a sequence of layers.
    #[error(transparent)]
    Layers(#[from] LayeringError),
    /// The engine counts blocks, and the workload has none.
    #[error(
        "{0} counts repeated layers, and no name of the workload repeats; name them, for example --layers 'layers.*'"
    )]
    NoBlocks(&'static str),
    /// The engine cannot run the schedule, or cannot run it with this plan.
    #[error("{engine} cannot run the schedule {schedule}: {reason}")]
    Schedule {
        /// Title of the engine.
        engine: &'static str,
        /// Id of the requested schedule.
        schedule: &'static str,
        /// Reason, and the repair.
        reason: String,
    },
    /// The plan breaks a rule.
    #[error("the plan is not valid: {0}")]
    Invalid(String),
    /// The engine cannot run the plan, and no nearest plan was wanted or exists.
    #[error("{engine} cannot run this plan: {}", .losses.join("; "))]
    Impossible {
        /// Title of the engine.
        engine: &'static str,
        /// Parts that it cannot express.
        losses: Vec<String>,
    },
}

/// Writes a plan for an engine.
///
/// # Errors
/// [`ExportError`] if neither the plan nor a nearest plan can be written.
pub fn export(
    engine: Engine,
    workload: &Workload,
    limits: &Limits,
    plan: &Plan,
    settings: &EngineSettings,
) -> Result<EngineExport, ExportError> {
    if let Some(profile) = family::of(workload).model() {
        return training::export(engine, workload, profile, limits, plan, &settings.on_one_line());
    }
    if let Some(profile) = workload.mixed() {
        return mixed::export(engine, workload, profile, limits, plan, &settings.on_one_line());
    }
    let settings = &settings.on_one_line();
    let own = plan.execution.filter(|_| engine.runner().is_some());
    let schedule = settings.schedule.or(own.map(|own| own.schedule)).unwrap_or(engine.default_schedule());
    let virtual_stages = own.filter(|own| own.schedule.has_free_parts() && schedule == own.schedule);
    let virtual_stages = settings.virtual_stages.or(virtual_stages.map(|own| own.virtual_stages)).unwrap_or(2);
    if !engine.schedules().contains(&schedule) && schedule != Schedule::SingleSample {
        let known: Vec<&str> = engine.schedules().iter().map(|schedule| schedule.id()).collect();
        return Err(refused(engine, schedule, format!("it runs only {}", known.join(", "))));
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
    let impossible = |losses: Vec<String>| ExportError::Impossible { engine: engine.title(), losses };
    let task = ExportRequest { engine, workload, limits, settings, schedule, virtual_stages };
    let mut losses = match LayerCut::of(workload, limits, &layering, plan) {
        Ok(mut cut) => {
            let mut losses = engine.losses(&cut);
            if losses.is_empty() {
                let (written, more) = task.write(&mut cut, plan)?;
                if more.is_empty() || settings.nearest.is_some() {
                    return Ok(task.exported(written, more, plan.clone(), (score.value, score.value), None));
                }
                losses = more;
            }
            losses
        }
        Err(problems) => problems,
    };
    losses.extend(warm_up::note(engine, plan));
    // No planner plans equal stages under GPipe, so there is no nearest plan.
    if settings.nearest.is_none() || engine == Engine::MaxText {
        return Err(impossible(losses));
    }
    let (plans, stopped) = candidates(&task, plan, &layering);
    let mut nearest: Vec<(Score, Plan)> = plans
        .into_iter()
        .map(|plan| (check(workload, limits, &plan), plan))
        .filter(|(score, _)| score.is_valid())
        .collect();
    nearest.sort_by(|a, b| a.0.value.total_cmp(&b.0.value));
    if nearest.is_empty() {
        let known = !family::of(workload).tensor_degrees().is_empty();
        let why = if !known {
            "the nearest plan is found only for nodes with times by tensor degree (Piper's JSON)"
        } else if stopped {
            "no plan for it was found before the deadline"
        } else {
            "no plan for it keeps the limits"
        };
        losses.push(why.into());
        return Err(impossible(losses));
    };
    // Nearest plan that the engine also runs under this schedule.
    let mut refusal = None;
    for (nearest_score, nearest) in nearest {
        let mut cut = LayerCut::of(workload, limits, &layering, &nearest).map_err(impossible)?;
        match task.write(&mut cut, &nearest) {
            Ok((written, more)) => {
                losses.extend(more);
                let values = (score.value, nearest_score.value);
                let cost = Some(loss(values, score.measure));
                return Ok(task.exported(written, losses, nearest, values, cost));
            }
            Err(ExportError::Schedule { reason, .. }) => {
                refusal.get_or_insert_with(|| substituted(&losses, &nearest, &reason));
            }
            Err(other) => return Err(other),
        }
    }
    Err(refused(engine, schedule, refusal.unwrap_or_default()))
}

/// Reason why the schedule cannot run the nearest plan, which the user did not request.
fn substituted(losses: &[String], nearest: &Plan, reason: &str) -> String {
    let stages = nearest.stages.len();
    let plural = if stages == 1 { "stage" } else { "stages" };
    format!(
        "it cannot run this plan unchanged ({}), and the nearest plan has {stages} {plural}: {reason}",
        losses.join("; ")
    )
}

fn refused(engine: Engine, schedule: Schedule, reason: String) -> ExportError {
    ExportError::Schedule { engine: engine.title(), schedule: schedule.id(), reason }
}

/// Text with its notes.
struct EngineText {
    text: String,
    /// Launch commands of its ranks, as comments.
    launch: String,
    notes: Vec<String>,
}

/// Export task, independent of the plan.
struct ExportRequest<'a> {
    engine: Engine,
    workload: &'a Workload,
    limits: &'a Limits,
    settings: &'a EngineSettings,
    schedule: Schedule,
    virtual_stages: u32,
}

impl ExportRequest<'_> {
    /// Recipe of the workload, completed by the plan document's.
    fn recipe(&self) -> Recipe {
        let of_plan = self.settings.recipe.unwrap_or_default();
        self.workload.recipe.unwrap_or_default().or(&of_plan)
    }

    /// Text for a plan, and what the engine cannot express of its microbatches and its interleaving.
    fn write(&self, cut: &mut LayerCut, plan: &Plan) -> Result<(EngineText, Vec<String>), ExportError> {
        let ExportRequest { engine, settings, schedule, .. } = *self;
        let recipe = self.recipe();
        let rounded = cut.set_microbatches(self.limits, plan, settings.micro_batch_size, recipe.micro_batch);
        // Serving has no microbatches.
        let mut losses: Vec<String> = rounded.into_iter().filter(|_| engine != Engine::Vllm).collect();
        let mut job = EngineJob::new(cut, engine, (schedule, self.virtual_stages), &settings.names, recipe)
            .map_err(|reason| refused(engine, schedule, reason))?;
        losses.extend(job.even_out(engine));
        let text = match engine {
            Engine::Megatron => megatron::text(&job),
            Engine::MegatronBridge => megatron_bridge::text(&job),
            Engine::DeepSpeed => deepspeed::text(&job),
            Engine::Torch => torch::text(&job),
            Engine::TorchTitan => torchtitan::text(&job),
            Engine::Galvatron => galvatron::text(&job),
            Engine::Vllm => vllm::text(&job),
            Engine::MaxText => maxtext::text(&job, self.limits),
            Engine::Accelerate => {
                let losses = vec!["it has no pipeline, so that no profile of layers suits it".into()];
                return Err(ExportError::Impossible { engine: engine.title(), losses });
            }
        };
        let launch = launch::text(engine, &job, self.limits, plan);
        let mut notes = job.notes(engine);
        let other = settings.micro_batch_size.zip(recipe.micro_batch).filter(|(asked, known)| asked != known);
        notes.extend(other.filter(|_| engine != Engine::Vllm).map(|(asked, known)| {
            format!("memory and times hold for {known} samples in a microbatch, not for {asked}")
        }));
        notes.extend(warm_up::note(engine, plan));
        notes.extend(match engine {
            Engine::Torch => torch::notes(&job),
            Engine::TorchTitan => torchtitan::notes(&job),
            Engine::Galvatron => galvatron::notes(&job),
            Engine::MaxText => maxtext::notes(&job),
            _ => vec![],
        });
        Ok((EngineText { text, launch, notes }, losses))
    }

    fn exported(
        &self,
        written: EngineText,
        losses: Vec<String>,
        plan: Plan,
        values: (f64, f64),
        cost: Option<String>,
    ) -> EngineExport {
        let execution = plan.execution.unwrap_or_default().under(self.schedule, self.virtual_stages);
        let full = fullness::warning_under(self.workload, self.limits, &plan, execution);
        let notes: Vec<String> = full.into_iter().chain(written.notes).collect();
        let text = headed(self.engine, &losses, cost, &notes, &written.launch) + &written.text;
        EngineExport { text, losses, notes, plan, values, run: None }
    }
}

/// Plans that the engine can run, and whether the search for them was stopped: those that the finder gives, and the given
/// plan with its recomputation evened out. All carry the measure of the given plan.
fn candidates(task: &ExportRequest<'_>, plan: &Plan, layering: &Layering) -> (Vec<Plan>, bool) {
    let ExportRequest { engine, workload, limits, schedule, settings, .. } = *task;
    let wanted = NearestRequest {
        workload,
        limits,
        plan,
        runner: engine.runner().unwrap_or(Runner::Any),
        several_stages: schedule.least_parts() > 1,
        deadline: settings.deadline,
    };
    let NearestPlans { mut plans, stopped } = settings.nearest.map(|find| find(&wanted)).unwrap_or_default();
    if let Ok(cut) = LayerCut::of(workload, limits, layering, plan)
        && engine.uneven(&cut).is_none()
    {
        plans.extend(
            engine.evened(&cut).into_iter().filter_map(|most| cut::recomputing(workload, layering, plan, most)),
        );
    }
    plans.retain(|plan| LayerCut::of(workload, limits, layering, plan).is_ok_and(|cut| engine.losses(&cut).is_empty()));
    (plans, stopped)
}

/// Comment above the text, if the format has comments: title, losses, notes, launch commands.
fn headed(engine: Engine, losses: &[String], cost: Option<String>, notes: &[String], launch: &str) -> String {
    if !engine.takes_comments() {
        return String::new();
    }
    let mut head: Vec<String> = vec![format!("{}, written by plantui", engine.title())];
    head.extend(losses.iter().map(|loss| format!("not expressed: {loss}")));
    head.extend(cost);
    head.extend(notes.iter().map(|note| format!("note: {note}")));
    // A line break in a name would end the comment, and the rest of the name would run as code.
    head.iter().map(|line| format!("# {}\n", single_line(line))).collect::<String>() + launch
}

/// Cost of the nearest plan, in a sentence.
pub fn loss((given, written): (f64, f64), measure: plantui_core::plan::Measure) -> String {
    let (shown, instead) = (measure.show(written), measure.show(given));
    if given > 0.0 && written > given {
        let share = units::percent(written / given - 1.0);
        format!("nearest plan it can run: {shown} by the same objective, {share} above the plan's {instead}")
    } else {
        format!("nearest plan it can run: {shown} by the same objective, against the plan's {instead}")
    }
}

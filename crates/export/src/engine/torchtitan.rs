//! torchtitan 0.3: a function for its registry of configurations, with the modules of every stage by name.
//!
//! torchtitan's splitter silently drops every module that no part names. So all modules are named, and the function
//! compares the model's sizes with the plan's before it returns the configuration. CUDA graphs, on by default, refuse
//! pipelines. bf16 comes with `fully_shard`, which every rank has, even with one shard. Only pipelines have
//! microbatches: without one, a microbatch is a step of gradient accumulation, counted by the two batch sizes.

use super::{
    ModuleNames,
    job::EngineJob,
    python,
    torch::modules,
    torchtitan_model::{self, FileModel},
};
use plantui_core::{simulate::Schedule, workload::recipe::Precision};

/// torchtitan's word for a schedule of a list.
pub(super) const LIST: &str = "PipelineScheduleMulti";

/// torchtitan's word for a schedule.
pub(super) fn word(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::GPipe => "GPipe",
        Schedule::Interleaved => "Interleaved1F1B",
        Schedule::ZeroBubbleV => "ZBVZeroBubble",
        Schedule::InterleavedZeroBubble => "InterleavedZeroBubble",
        Schedule::LoopedBfs => "LoopedBFS",
        Schedule::DualPipeV => "DualPipeV",
        _ => "1F1B",
    }
}

/// Content of a function for the registry.
pub(super) struct RegistryEntry<'a> {
    /// Comment at the top, lines without `# `.
    pub head: Vec<String>,
    /// Model that the plan is for.
    pub base: FileModel,
    /// Kind of recomputation.
    pub checkpoint: Checkpoint,
    /// Module names of every part.
    pub parts: &'a [Vec<String>],
    /// Statements of the function, without indent.
    pub sets: Vec<String>,
}

impl RegistryEntry<'_> {
    /// Text of the file.
    pub(super) fn text(&self) -> String {
        let head: String = self.head.iter().map(|line| format!("# {line}\n")).collect();
        let import = self.checkpoint.class().map_or_else(String::new, |class| {
            format!("from torchtitan.distributed.activation_checkpoint import {class}\n")
        });
        let list = |part: &Vec<String>| part.iter().map(|name| python::string(name)).collect::<Vec<_>>().join(", ");
        let parts: String = self.parts.iter().map(|part| format!("    [{}],\n", list(part))).collect();
        let own = self.base.statement().map(|set| format!("    {set}\n")).unwrap_or_default();
        let sets: String = self.sets.iter().map(|set| format!("    {set}\n")).collect();
        format!(
            "{head}{import}{imports}

{checks}
# The splitter drops modules that are in no part: all modules are listed.
MODEL_PARTS = [
{parts}]


def planned():
    config = base()
{own}    found = sizes(config.model_spec.model)
    other = {{name: found.get(name) for name, size in MODEL.items() if found.get(name) != size}}
    assert not other, f\"the plan is for {{MODEL}}, the model has {{other}}\"
    parallelism = config.parallelism
{sets}    return config
",
            imports = self.base.imports(),
            checks = self.base.checks(),
        )
    }
}

/// Instruction for saving the file, shared by both kinds of plan.
pub(super) const SAVE: &str =
    "Save it as planned.py where Python finds it, and start torchtitan with --module planned --config planned.";
/// Statements that compile the layers, off by default: norms and activation functions then run in one kernel each.
pub(super) const COMPILE: [&str; 2] =
    ["config.compile.enable = True", "config.compile.components = [\"model\", \"loss\"]"];

/// Program that torchrun starts.
pub(super) const PROGRAM: &str = "-m torchtitan.train --module planned --config planned";

/// Version of the names, and their changes since then.
pub(super) const VERSION: &str = "For torchtitan 0.3.0. Later versions rename training.local_batch_size and \
    parallelism.pipeline_parallel_microbatch_size: give these two lines their names.";

/// Statements for asynchronous tensor parallelism, which requires that torchtitan compiles the layers.
pub(super) const ASYNC: [&str; 3] = [
    "config.compile.enable = True",
    "config.compile.components = [\"model\", \"loss\"]",
    "config.compile.enable_async_tensor_parallel = True",
];

/// Statements for a batch: `micro` samples per microbatch, `count` microbatches on each of `replicas` replicas.
pub(super) fn batch(stages: usize, micro: Option<u64>, count: u64, replicas: u64) -> Vec<String> {
    let of_microbatch = "samples in a microbatch";
    let all = micro.map(|micro| micro * count * replicas);
    let global =
        python::statement("config.training.global_batch_size", all, &format!("{} times that", count * replicas));
    if stages > 1 {
        vec![
            python::statement("parallelism.pipeline_parallel_microbatch_size", micro, of_microbatch),
            python::statement(
                "config.training.local_batch_size",
                micro.map(|micro| micro * count),
                &format!("{count} times that"),
            ),
            global,
            "config.training.disable_cuda_graphs = True".into(),
        ]
    } else {
        vec![python::statement("config.training.local_batch_size", micro, of_microbatch), global]
    }
}

/// Recomputation that torchtitan knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checkpoint {
    None,
    /// Every second matrix product of every layer.
    Operators,
    /// All layers.
    Full,
}

impl Checkpoint {
    /// Class of its configuration.
    fn class(self) -> Option<&'static str> {
        match self {
            Checkpoint::None => None,
            Checkpoint::Operators => Some("SelectiveAC"),
            Checkpoint::Full => Some("FullAC"),
        }
    }

    /// Statement that sets it.
    pub(super) fn statement(self) -> String {
        let value = self.class().map_or("None".to_string(), |class| format!("{class}.Config()"));
        format!("config.activation_checkpoint = {value}")
    }
}

pub(super) fn text(job: &EngineJob<'_>) -> String {
    let (d, t) = (job.data_parallel(), job.tensor_parallel());
    let (replicate, shard) = if job.shards_optimizer() { (1, d) } else { (d, 1) };
    let (parts, _) = complete(modules(&job.parts.parts, job.names), job.names);
    let base = FileModel { layers: job.blocks() as u64, model: job.model(), in_8_bits: false };
    let checkpoint = if job.recomputes() { Checkpoint::Full } else { Checkpoint::None };
    let micro = job.cut.micro_batch_size.map(u64::from);
    let (stages, schedule) = (job.ranks(), word(job.schedule));
    let mut sets = vec![
        format!("parallelism.pipeline_parallel_degree = {stages}"),
        format!("parallelism.pipeline_parallel_schedule = {}", python::string(schedule)),
        format!("parallelism.module_fqns_per_model_part = {}", if stages > 1 { "MODEL_PARTS" } else { "None" }),
        format!("parallelism.tensor_parallel_degree = {t}"),
        format!("parallelism.enable_sequence_parallel = {}", python::truth(job.sequence_parallel())),
        format!("parallelism.data_parallel_replicate_degree = {replicate}"),
        format!("parallelism.data_parallel_shard_degree = {shard}"),
    ];
    if base.experts().is_some() {
        sets.push("parallelism.expert_parallel_degree = 1".into());
    }
    sets.extend(batch(stages, micro, job.own_microbatches().into(), d.into()));
    let length = python::sequence_length(&job.recipe);
    sets.push(python::statement("config.training.seq_len", length, "tokens in a sequence"));
    sets.extend(precision(job.recipe.precision));
    if job.tensor_overlap() {
        sets.extend(ASYNC.map(String::from));
    }
    sets.push(checkpoint.statement());
    let degrees = format!(
        "The degrees as flags: --parallelism.pipeline_parallel_degree {stages} --parallelism.tensor_parallel_degree {t} \
         --parallelism.pipeline_parallel_schedule {schedule}"
    );
    let head = vec![job.layout_line(), SAVE.into(), degrees];
    RegistryEntry { head, base, checkpoint, parts: &parts, sets }.text()
}

/// Statement for the precision of products, if torchtitan supports it.
fn precision(precision: Option<Precision>) -> Option<String> {
    let word = match precision? {
        Precision::Bf16 => "bfloat16",
        Precision::Fp32 => "float32",
        Precision::Fp16 => return Some(FP16.into()),
    };
    Some(format!("config.training.mixed_precision_param = \"{word}\""))
}

/// Comment in place of a statement if the figures are for fp16.
pub(super) const FP16: &str = "# fill in: training in fp16; torchtitan mixes bf16";

/// Parts with every module: modules without a node go to the outer parts. Also returns the added modules.
fn complete(mut parts: Vec<Vec<String>>, names: &ModuleNames) -> (Vec<Vec<String>>, Vec<String>) {
    let there = |parts: &[Vec<String>], name: &String| parts.iter().flatten().any(|own| own == name);
    let first: Vec<String> = names.first.iter().filter(|name| !there(&parts, name)).cloned().collect();
    let last: Vec<String> = names.last.iter().filter(|name| !there(&parts, name)).cloned().collect();
    let added = [first.clone(), last.clone()].concat();
    if let Some(part) = parts.first_mut() {
        part.splice(0..0, first);
    }
    if let Some(part) = parts.last_mut() {
        part.extend(last);
    }
    (parts, added)
}

/// Notes for the user of the file.
pub(super) fn notes(job: &EngineJob<'_>) -> Vec<String> {
    let mut notes = vec![];
    let (_, added) = complete(modules(&job.parts.parts, job.names), job.names);
    if !added.is_empty() {
        let names: Vec<String> = added.iter().map(|name| python::string(name)).collect();
        notes.push(format!("the workload has no node for {}: they join the outer stages", names.join(", ")));
    }
    notes.extend(unlike(job));
    if job.experts_are_whole() {
        notes.push("the engine splits experts over tensor ranks; the figures have whole experts on each rank".into());
    }
    notes
}

/// Model facts that the user must fill in.
fn unlike(job: &EngineJob<'_>) -> Option<String> {
    let model = job.model()?;
    let has = torchtitan_model::built_in_config(&model).is_some();
    (!has).then(|| {
        let what = if model.experts.is_some() { "such a mixture of experts" } else { "such a model" };
        format!("torchtitan 0.3 has no configuration of {what}: fill in yours; the sizes in MODEL reject any other")
    })
}

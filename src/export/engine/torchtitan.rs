//! torchtitan 0.3: a function for its registry of configurations, with the modules of every stage by name.
//!
//! Its splitter replaces every module that no part names by nothing, without a word: so all are named, and the function
//! counts the model's layers before it hands them over. CUDA graphs, on by default, refuse pipelines. bf16 comes with
//! sharding: without it parameters stay in 32 bits.

use super::{Names, job::Job, python, torch::modules};
use crate::{
    simulate::Schedule,
    workload::recipe::{ModelShape, Precision},
};

/// Configurations that torchtitan has itself, by layers, hidden size and vocabulary.
const OWN: [(u32, u64, u64, &str); 3] =
    [(32, 4096, 128_256, "llama3_8b"), (80, 8192, 128_256, "llama3_70b"), (126, 16384, 128_256, "llama3_405b")];

/// torchtitan's word for a schedule.
fn word(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::GPipe => "GPipe",
        Schedule::Interleaved => "Interleaved1F1B",
        Schedule::ZeroBubbleV => "ZBVZeroBubble",
        _ => "1F1B",
    }
}

/// What a function of the registry says.
pub(super) struct Registered<'a> {
    /// The comment at its top, lines without `# `.
    pub head: Vec<String>,
    /// torchtitan's own configuration of the model, if it has one.
    pub own: Option<&'static str>,
    /// Whether everything is recomputed.
    pub recompute: bool,
    /// Names of the modules of every part.
    pub parts: &'a [Vec<String>],
    /// Layers of the model.
    pub layers: u64,
    /// Statements of the function, without indent.
    pub sets: Vec<String>,
}

impl Registered<'_> {
    /// The file.
    pub(super) fn text(&self) -> String {
        let Registered { own, recompute, layers, .. } = *self;
        let head: String = self.head.iter().map(|line| format!("# {line}\n")).collect();
        let import = if recompute { "from torchtitan.distributed.activation_checkpoint import FullAC\n" } else { "" };
        let base = own.unwrap_or("llama3_8b");
        let fill = if own.is_some() { "" } else { "  # fill in: the configuration of your model" };
        let list = |part: &Vec<String>| part.iter().map(|name| python::string(name)).collect::<Vec<_>>().join(", ");
        let parts: String = self.parts.iter().map(|part| format!("    [{}],\n", list(part))).collect();
        let sets: String = self.sets.iter().map(|set| format!("    {set}\n")).collect();
        format!(
            "{head}{import}from torchtitan.models.llama3.config_registry import {base} as base{fill}

# The splitter drops modules that no part names: all of them are here.
MODEL_PARTS = [
{parts}]


def planned():
    config = base()
    layers = len(config.model_spec.model.layers)
    assert layers == {layers}, f\"the plan is for {layers} layers, the model has {{layers}}\"
    parallelism = config.parallelism
{sets}    return config
"
        )
    }
}

/// How the file is found; both kinds of plan say it.
pub(super) const SAVE: &str =
    "Save it as planned.py where Python finds it, and start torchtitan with --module planned --config planned.";
/// The switch of asynchronous tensor parallelism.
pub(super) const ASYNC: &str = "parallelism.enable_async_tensor_parallel = True  # with torch.compile";

/// The statement for recomputation.
pub(super) fn checkpoint(recompute: bool) -> String {
    format!("config.activation_checkpoint = {}", if recompute { "FullAC.Config()" } else { "None" })
}

pub(super) fn text(job: &Job<'_>) -> String {
    let (d, t) = (job.data_parallel(), job.tensor_parallel());
    let (replicate, shard) = if job.shards_optimizer() { (1, d) } else { (d, 1) };
    let (parts, _) = complete(modules(&job.parts.parts, job.names), job.names);
    let own = job.model().and_then(|model: ModelShape| own(model.layers.into(), model.hidden_size, model.vocabulary));
    let recompute = job.recomputes();
    let micro = job.cut.micro_batch_size.map(u64::from);
    let local = micro.map(|micro| micro * u64::from(job.own_microbatches()));
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
    let mut known = |target: &str, value: Option<u64>, what: &str| sets.push(python::statement(target, value, what));
    known("parallelism.pipeline_parallel_microbatch_size", micro, "samples in a microbatch");
    known("config.training.local_batch_size", local, &format!("{} times that", job.own_microbatches()));
    known("config.training.seq_len", python::sequence_length(&job.recipe), "tokens in a sequence");
    if stages > 1 {
        sets.push("config.training.disable_cuda_graphs = True".into());
    }
    if job.tensor_overlap() {
        sets.push(ASYNC.into());
    }
    sets.push(checkpoint(recompute));
    let degrees = format!(
        "The degrees as flags: --parallelism.pipeline_parallel_degree {stages} --parallelism.tensor_parallel_degree {t} \
         --parallelism.pipeline_parallel_schedule {schedule}"
    );
    let head = vec![job.layout_line(), SAVE.into(), degrees];
    Registered { head, own, recompute, parts: &parts, layers: job.blocks() as u64, sets }.text()
}

/// Its own configuration of this model.
pub(super) fn own(layers: u64, hidden: u64, vocabulary: u64) -> Option<&'static str> {
    let same = |own: &&(u32, u64, u64, &str)| (u64::from(own.0), own.1, own.2) == (layers, hidden, vocabulary);
    OWN.iter().find(same).map(|own| own.3)
}

/// The parts with every module in them: what the workload has no node for goes to the outer parts. Gives what was added.
fn complete(mut parts: Vec<Vec<String>>, names: &Names) -> (Vec<Vec<String>>, Vec<String>) {
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

/// What whoever starts it should know.
pub(super) fn notes(job: &Job<'_>) -> Vec<String> {
    let mut notes = vec![];
    let (_, added) = complete(modules(&job.parts.parts, job.names), job.names);
    if !added.is_empty() {
        let names: Vec<String> = added.iter().map(|name| python::string(name)).collect();
        notes.push(format!("the workload has no node for {}: they are with the outer stages", names.join(", ")));
    }
    if job.recipe.precision == Some(Precision::Bf16) && !job.shards_optimizer() {
        notes.push(
            "in a pipeline torchtitan has bf16 parameters only where they are sharded; these stay in 32 bits".into(),
        );
    }
    notes
}

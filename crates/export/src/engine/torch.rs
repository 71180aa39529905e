//! `torch.distributed.pipelining`: the modules before which a traced model is split, and the next steps.
//!
//! Tracing fails on wrapped modules, so recomputation is wrapped after `pipeline()` has split: the stages keep their
//! modules' names. Under an interleaved schedule a rank builds several stages.

use super::{
    ModuleNames,
    cut::CutStage,
    job::{EngineJob, precision_word},
    python,
};
use plantui_core::{simulate::Schedule, workload::layering::LayerPosition};

/// Module names of each part; nodes without a number are numbered in order.
pub(super) fn modules(parts: &[CutStage], names: &ModuleNames) -> Vec<Vec<String>> {
    let mut next = 0;
    let block = |number: usize| names.block.replace("{}", &number.to_string());
    let mut of = |kind: LayerPosition| match kind {
        LayerPosition::First => names.first.clone(),
        LayerPosition::Last => names.last.clone(),
        LayerPosition::Block(number) => vec![block(number)],
        LayerPosition::Single => {
            next += 1;
            vec![block(next - 1)]
        }
    };
    parts.iter().map(|stage| stage.layers.iter().flat_map(|&kind| of(kind)).collect()).collect()
}

/// Class of a schedule.
fn class(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::GPipe => "ScheduleGPipe",
        Schedule::Interleaved => "ScheduleInterleaved1F1B",
        Schedule::ZeroBubbleV => "ScheduleZBVZeroBubble",
        Schedule::InterleavedZeroBubble => "ScheduleInterleavedZeroBubble",
        Schedule::LoopedBfs => "ScheduleLoopedBFS",
        Schedule::DualPipeV => "ScheduleDualPipeV",
        _ => "Schedule1F1B",
    }
}

pub(super) fn text(job: &EngineJob<'_>) -> String {
    let stages = modules(&job.parts.parts, job.names);
    let splits: String = stages
        .iter()
        .skip(1)
        .filter_map(|stage| stage.first())
        .map(|name| format!("    {}: SplitPoint.BEGINNING,\n", python::string(name)))
        .collect();
    let wrapped: String = job
        .parts
        .parts
        .iter()
        .zip(&modules_by_layer(&job.parts.parts, job.names))
        .flat_map(|(stage, names)| stage.recompute.iter().zip(names))
        .filter(|(recompute, _)| **recompute)
        .flat_map(|(_, names)| names)
        .map(|name| format!("    {},\n", python::string(name)))
        .collect();
    let of_rank: Vec<String> = (0..job.ranks())
        .map(|rank| {
            let own = job.parts.ranks.iter().enumerate().filter(|(_, of)| **of == rank);
            format!("[{}]", own.map(|(part, _)| part.to_string()).collect::<Vec<_>>().join(", "))
        })
        .collect();
    let class = class(job.schedule);
    let simulated = if job.parts.each() > 1 { "stages" } else { "stages[0]" };
    format!(
        "# {layout}
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.pipelining import {class}, SplitPoint, pipeline

# Microbatches that each replica splits its share of a batch into.
n_microbatches = {microbatches}
{micro}{length}{facts}
# The module in front of which each later stage begins.
split_spec = {{
{splits}}}

# Modules that recompute their activations.
recompute = [
{wrapped}]

# By rank in the pipeline: its stages.
stages_of_rank = [{of_rank}]


def split(module, example):
    \"\"\"The stages. Recomputation is wrapped after the split: pipeline() cannot trace modules that are wrapped already.\"\"\"
    pipe = pipeline(module, mb_args=(example,), split_spec=split_spec)
    left = set(recompute)
    for index in range(pipe.num_stages):
        stage = pipe.get_stage_module(index)
        held = {{name for name, _ in stage.named_modules()}}
        for name in sorted(left & held):
            parent, _, child = name.rpartition(\".\")
            owner = stage.get_submodule(parent)
            setattr(owner, child, checkpoint_wrapper(getattr(owner, child)))
            left.remove(name)
    assert not left, f\"no stage has the modules {{sorted(left)}}\"
    return pipe


def schedule(module, example, rank, device, loss_fn, group=None):
    \"\"\"What rank `rank` of the pipeline runs; `example` is one microbatch.\"\"\"
    pipe = split(module, example)
    stages = [pipe.build_stage(index, device, group) for index in stages_of_rank[rank]]
    return {class}({simulated}, n_microbatches=n_microbatches, loss_fn=loss_fn)
",
        layout = job.layout_line(),
        microbatches = job.own_microbatches(),
        micro = python::assignment("", "micro_batch_size", job.cut.micro_batch_size.map(u64::from), "samples in a microbatch"),
        facts = facts(job),
        length = python::assignment("", "sequence_length", python::sequence_length(&job.recipe), "tokens in a sequence"),
        of_rank = of_rank.join(", "),
    )
}

/// Assignments of what the program must set up around the stages.
fn facts(job: &EngineJob<'_>) -> String {
    let precision = job.recipe.precision.map(|own| format!("precision = {}\n", python::string(precision_word(own))));
    let shards =
        (job.data_parallel() > 1).then(|| format!("shard_optimizer = {}\n", python::truth(job.shards_optimizer())));
    let sequence = (job.tensor_parallel() > 1)
        .then(|| format!("sequence_parallel = {}\n", python::truth(job.sequence_parallel())));
    [precision, shards, sequence].into_iter().flatten().collect()
}

/// Notes on steps that the script cannot express.
pub(super) fn notes(job: &EngineJob<'_>) -> Vec<String> {
    let mut notes = vec![];
    if job.data_parallel() > 1 {
        let how = if job.shards_optimizer() {
            "with the optimizer's state divided over them (ZeroRedundancyOptimizer or fully_shard)"
        } else {
            "with DistributedDataParallel"
        };
        notes.push(format!("wrap each stage for its {} replicas {how}", job.data_parallel()));
    }
    if job.tensor_parallel() > 1 {
        let sequence = if job.sequence_parallel() { ", along the sequence as well (SequenceParallel)" } else { "" };
        notes.push(format!(
            "split tensors {} ways before the split into stages, with parallelize_module{sequence}",
            job.tensor_parallel()
        ));
    }
    notes
}

/// Names of [`modules`], by part and layer.
pub(super) fn modules_by_layer(parts: &[CutStage], names: &ModuleNames) -> Vec<Vec<Vec<String>>> {
    let mut all = modules(parts, names).concat().into_iter();
    let count = |kind: &LayerPosition| match kind {
        LayerPosition::First => names.first.len(),
        LayerPosition::Last => names.last.len(),
        LayerPosition::Block(_) | LayerPosition::Single => 1,
    };
    let stage = |stage: &CutStage| stage.layers.iter().map(|kind| all.by_ref().take(count(kind)).collect()).collect();
    parts.iter().map(stage).collect()
}

//! Megatron-LM: `--pipeline-model-parallel-layout` and related flags.
//!
//! In a layout `|` separates stages, `E` is the embedding, `t` a decoder layer, `L` the loss, and `x*n` repeats. `E` is
//! in the first stage and `L` in the last, wherever the plan has the parts around the blocks; stages are never empty.
//! Virtual stages are further parts in model order: part `v · P + p` is on rank `p`. Flags with unknown values are
//! listed in a comment, to be filled in.

use super::{
    cut::{CutStage, LayerCut},
    job::EngineJob,
    megatron_model,
};
use plantui_core::workload::{layering::LayerPosition, recipe::Precision};

pub(super) fn text(job: &EngineJob<'_>) -> String {
    let (recipe, model) = (&job.recipe, job.model());
    let mut flags = vec![format!("--pipeline-model-parallel-size {}", job.ranks())];
    if job.ranks() > 1 {
        flags.push(format!("--pipeline-model-parallel-layout \"{}\"", layout(&job.parts.parts)));
    }
    flags.push(format!("--tensor-model-parallel-size {}", job.tensor_parallel()));
    if job.sequence_parallel() || job.experts_are_whole() {
        flags.push("--sequence-parallel".into());
    }
    if job.tensor_overlap() {
        flags.push("--tp-comm-overlap".into());
    }
    if job.shards_optimizer() {
        flags.push("--use-distributed-optimizer".into());
    }
    if job.reduces_in_bf16() {
        flags.push("--grad-reduce-in-bf16".into());
    }
    flags.push(format!("--num-layers {}", job.blocks()));
    flags.extend(model.iter().flat_map(megatron_model::flags));
    if job.experts_are_whole() {
        flags.push("--expert-tensor-parallel-size 1".into());
    }
    let mut open = vec![];
    let mut known = |flag: &str, value: Option<u64>| match value {
        Some(value) => flags.push(format!("{flag} {value}")),
        None => open.push(flag.to_string()),
    };
    known("--hidden-size", model.map(|model| model.hidden_size));
    known("--num-attention-heads", model.map(|model| model.attention_heads));
    known("--seq-length", recipe.sequence_length.map(u64::from));
    known("--max-position-embeddings", model.map(|model| model.max_positions));
    known("--micro-batch-size", job.cut.micro_batch_size.map(u64::from));
    known("--global-batch-size", job.samples());
    match &model {
        Some(model) => open.extend(megatron_model::open(model)),
        None => open.extend(megatron_model::SIZE_FLAGS.map(String::from)),
    }
    match recipe.precision {
        Some(Precision::Bf16) => flags.push("--bf16".into()),
        Some(Precision::Fp16) => flags.push("--fp16".into()),
        Some(Precision::Fp32) => {}
        None => open.push("--bf16 (if that is the precision)".into()),
    }
    if recipe.keeps_attention_scores == Some(true) {
        flags.push("--attention-backend unfused".into());
    }
    if let Some((method, layers)) = recomputation(&job.parts.parts) {
        flags.push("--recompute-granularity full".into());
        flags.push(format!("--recompute-method {method} --recompute-num-layers {layers}"));
    }
    let mut head = format!("# {}\n", job.layout_line());
    if !open.is_empty() {
        head += &format!("# fill in what the workload does not state: {}\n", open.join(", "));
    }
    if job.cut.micro_batch_size.is_none() {
        head += &format!("# a batch is {} microbatches over all replicas\n", job.cut.microbatches);
    }
    for remark in model.iter().flat_map(megatron_model::remarks) {
        head += &format!("# {remark}\n");
    }
    head + &flags.join(" \\\n  ") + "\n"
}

/// Stages in Megatron's letters.
pub(super) fn layout(parts: &[CutStage]) -> String {
    let last = parts.len() - 1;
    let stage = |(i, stage): (usize, &CutStage)| {
        let blocks = match stage.blocks() {
            0 => String::new(),
            1 => "t".into(),
            count => format!("t*{count}"),
        };
        format!("{}{blocks}{}", if i == 0 { "E" } else { "" }, if i == last { "L" } else { "" })
    };
    parts.iter().enumerate().map(stage).collect::<Vec<_>>().join("|")
}

/// Method and number of layers of full recomputation; `None` if nothing recomputes.
pub(super) fn recomputation(parts: &[CutStage]) -> Option<(&'static str, usize)> {
    let counts: Vec<(usize, usize)> = parts.iter().map(CutStage::recomputed).collect();
    let most = counts.iter().map(|(some, _)| *some).max().unwrap_or(0);
    match most {
        0 => None,
        _ if counts.iter().all(|(some, of)| some == of) => Some(("uniform", 1)),
        most => Some(("block", most)),
    }
}

/// Index of a stage without a letter in Megatron's layout: it has no block, is not the last, and is not a first stage
/// with the parts before the blocks.
pub(super) fn nameless(cut: &LayerCut) -> Option<usize> {
    let last = cut.stages.len() - 1;
    let named = |i: usize, stage: &CutStage| {
        stage.blocks() > 0 || (i == 0 && stage.layers.contains(&LayerPosition::First)) || (i == last)
    };
    cut.stages.iter().enumerate().position(|(i, stage)| !named(i, stage))
}

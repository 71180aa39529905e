//! Megatron-Core: `--pipeline-model-parallel-layout` and what goes with it.
//!
//! In a layout `|` parts stages, `E` is the embedding, `t` a decoder layer, `L` the loss, `x*n` repeats. `E` stands in the
//! first stage and `L` in the last, wherever the plan has the parts around the blocks; stages are never empty.

use super::{Cut, CutStage};
use crate::workload::layering::LayerKind;

pub(super) fn text(cut: &Cut) -> String {
    let blocks: usize = cut.stages.iter().map(CutStage::blocks).sum();
    let (d, t) = (cut.data_parallel(), cut.tensor_parallel());
    let samples = u64::from(cut.microbatches) * u64::from(cut.micro_batch_size);
    let mut flags = vec![
        format!("--pipeline-model-parallel-size {}", cut.stages.len()),
        format!("--tensor-model-parallel-size {t}"),
        format!("--num-layers {blocks}"),
        format!("--micro-batch-size {}", cut.micro_batch_size),
        format!("--global-batch-size {samples}"),
    ];
    if cut.stages.len() > 1 {
        flags.insert(1, format!("--pipeline-model-parallel-layout \"{}\"", layout(cut)));
    }
    flags.extend(recomputation(cut));
    let world = cut.devices();
    let ranks = format!("# {world} ranks: {} stages x {d} replicas x tensor degree {t}\n", cut.stages.len());
    ranks + &flags.join(" \\\n  ") + "\n"
}

/// The stages in Megatron's letters.
pub(super) fn layout(cut: &Cut) -> String {
    let last = cut.stages.len() - 1;
    let stage = |(i, stage): (usize, &CutStage)| {
        let blocks = match stage.blocks() {
            0 => String::new(),
            1 => "t".into(),
            count => format!("t*{count}"),
        };
        format!("{}{blocks}{}", if i == 0 { "E" } else { "" }, if i == last { "L" } else { "" })
    };
    cut.stages.iter().enumerate().map(stage).collect::<Vec<_>>().join("|")
}

fn recomputation(cut: &Cut) -> Vec<String> {
    let counts: Vec<(usize, usize)> = cut.stages.iter().map(CutStage::recomputed).collect();
    let most = counts.iter().map(|(some, _)| *some).max().unwrap_or(0);
    if most == 0 {
        return vec![];
    }
    let method = if counts.iter().all(|(some, of)| some == of) {
        "--recompute-method uniform --recompute-num-layers 1".into()
    } else {
        format!("--recompute-method block --recompute-num-layers {most}")
    };
    vec!["--recompute-granularity full".into(), method]
}

/// A stage between the first and the last that holds nothing Megatron has a letter for.
pub(super) fn nameless(cut: &Cut) -> Option<usize> {
    let last = cut.stages.len() - 1;
    let named = |i: usize, stage: &CutStage| {
        stage.blocks() > 0 || (i == 0 && stage.layers.contains(&LayerKind::First)) || (i == last)
    };
    cut.stages.iter().enumerate().position(|(i, stage)| !named(i, stage))
}

//! `torch.distributed.pipelining`: the modules in front of which a traced model is split.

use super::{Cut, Names, Settings};
use crate::workload::layering::LayerKind;

/// The names of the modules of each stage; nodes without a number of their own are counted on.
pub(super) fn modules(cut: &Cut, names: &Names) -> Vec<Vec<String>> {
    let mut next = 0;
    let block = |number: usize| names.block.replace("{}", &number.to_string());
    let mut of = |kind: LayerKind| match kind {
        LayerKind::First => names.first.clone(),
        LayerKind::Last => names.last.clone(),
        LayerKind::Block(number) => vec![block(number)],
        LayerKind::Single => {
            next += 1;
            vec![block(next - 1)]
        }
    };
    cut.stages.iter().map(|stage| stage.layers.iter().flat_map(|&kind| of(kind)).collect()).collect()
}

pub(super) fn text(cut: &Cut, settings: &Settings) -> String {
    let stages = modules(cut, &settings.names);
    let (d, t) = (cut.data_parallel(), cut.tensor_parallel());
    let splits: String = stages
        .iter()
        .skip(1)
        .filter_map(|stage| stage.first())
        .map(|name| format!("    {}: SplitPoint.BEGINNING,\n", quoted(name)))
        .collect();
    let wrapped: String = cut
        .stages
        .iter()
        .zip(&modules_by_layer(cut, &settings.names))
        .flat_map(|(stage, names)| stage.recompute.iter().zip(names))
        .filter(|(recompute, _)| **recompute)
        .flat_map(|(_, names)| names)
        .map(|name| format!("    {},\n", quoted(name)))
        .collect();
    format!(
        "# {} ranks: {} stages x {d} replicas x tensor degree {t}; n_microbatches = {}
from torch.distributed.pipelining import SplitPoint

# pipe = pipeline(module, mb_args=(example,), split_spec=split_spec)
split_spec = {{
{splits}}}

# Modules to wrap with torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper.
recompute = [
{wrapped}]
",
        cut.devices(),
        cut.stages.len(),
        (cut.microbatches / d).max(1),
    )
}

/// The names of [`modules`], by stage and layer.
fn modules_by_layer(cut: &Cut, names: &Names) -> Vec<Vec<Vec<String>>> {
    let mut all = modules(cut, names).concat().into_iter();
    let count = |kind: &LayerKind| match kind {
        LayerKind::First => names.first.len(),
        LayerKind::Last => names.last.len(),
        LayerKind::Block(_) | LayerKind::Single => 1,
    };
    let stage =
        |stage: &super::CutStage| stage.layers.iter().map(|kind| all.by_ref().take(count(kind)).collect()).collect();
    cut.stages.iter().map(stage).collect()
}

/// A string in Python and in TOML: their escapes agree on what names of modules may hold.
pub(super) fn quoted(name: &str) -> String {
    serde_json::to_string(name).expect("strings serialise")
}

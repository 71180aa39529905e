//! Galvatron: a strategy file, layer by layer.
//!
//! Lists are by transformer layer, comma-separated in one string. A microbatch is cut over a stage's replicas; where
//! stages have different replicas, the batch is chunked for the one with most.

use serde_json::json;

use super::{Cut, CutStage};
use crate::workload::layering::LayerKind;

pub(super) fn text(cut: &Cut) -> String {
    let per_block = |value: &dyn Fn(&CutStage, bool) -> String| -> String {
        let of = |stage: &CutStage| {
            let blocks = stage.layers.iter().zip(&stage.recompute);
            blocks
                .filter(|(kind, _)| matches!(kind, LayerKind::Block(_) | LayerKind::Single))
                .map(|(_, &recompute)| value(stage, recompute))
                .collect::<Vec<_>>()
        };
        cut.stages.iter().flat_map(of).collect::<Vec<_>>().join(",")
    };
    let most = cut.stages.iter().map(|stage| stage.data_parallel).max().unwrap_or(1);
    let division: Vec<String> = cut.stages.iter().map(|stage| stage.blocks().to_string()).collect();
    let strategy = json!({
        "pp_deg": cut.stages.len(),
        "tp_sizes_enc": per_block(&|stage, _| stage.tensor_parallel.to_string()),
        "tp_consecutive_flags": per_block(&|_, _| "1".into()),
        "dp_types_enc": per_block(&|_, _| "0".into()),
        "use_sp": per_block(&|_, _| "0".into()),
        "checkpoint": per_block(&|_, recompute| u8::from(recompute).to_string()),
        "global_bsz": u64::from(cut.microbatches) * u64::from(cut.micro_batch_size),
        "chunks": (cut.microbatches / most).max(1),
        "pp_division": division.join(","),
        "pipeline_type": "pipedream_flush",
        "default_dp_type": "zero2",
        "vtp": cut.tensor_parallel(),
        "vsp": 0,
        "embed_sdp": 0,
    });
    serde_json::to_string_pretty(&strategy).expect("strings and numbers serialise") + "\n"
}

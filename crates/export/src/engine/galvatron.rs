//! Galvatron: a strategy file, layer by layer.
//!
//! Lists are by transformer layer, comma-separated in one string. A microbatch is divided over a stage's replicas; if
//! the stages differ, the batch is chunked for the one with most replicas. `default_dp_type` states how memory was
//! counted: `ddp` if every replica has the whole state, `zero2` if the optimizer's state is divided. Version 2.4.0
//! reads `embed_sdp`, 2.4.1 reads `vocab_sdp` instead; the file has both.

use serde_json::{Map, Value, json};

use super::{
    cut::CutStage,
    job::{EngineJob, precision_word},
};
use plantui_core::{simulate::Schedule, workload::layering::LayerPosition};

pub(super) fn text(job: &EngineJob<'_>) -> String {
    let cut = job.cut;
    let per_block = |value: &dyn Fn(&CutStage, bool) -> String| -> String {
        let of = |stage: &CutStage| {
            let blocks = stage.layers.iter().zip(&stage.recompute);
            blocks
                .filter(|(kind, _)| matches!(kind, LayerPosition::Block(_) | LayerPosition::Single))
                .map(|(_, &recompute)| value(stage, recompute))
                .collect::<Vec<_>>()
        };
        cut.stages.iter().flat_map(of).collect::<Vec<_>>().join(",")
    };
    let most = cut.stages.iter().map(|stage| stage.data_parallel).max().unwrap_or(1);
    let division: Vec<String> = cut.stages.iter().map(|stage| stage.blocks().to_string()).collect();
    let mut strategy = json!({
        "pp_deg": cut.stages.len(),
        "tp_sizes_enc": per_block(&|stage, _| stage.tensor_parallel.to_string()),
        "tp_consecutive_flags": per_block(&|_, _| "1".into()),
        "dp_types_enc": per_block(&|_, _| u8::from(job.zero == 3).to_string()),
        "use_sp": per_block(&|_, _| "0".into()),
        "checkpoint": per_block(&|_, recompute| u8::from(recompute).to_string()),
        "global_bsz": job.samples(),
        "chunks": (cut.microbatches / most).max(1),
        "pp_division": division.join(","),
        "pipeline_type": if job.schedule == Schedule::GPipe { "gpipe" } else { "pipedream_flush" },
        "default_dp_type": if job.shards_optimizer() { "zero2" } else { "ddp" },
        "vtp": cut.tensor_parallel(),
        "vsp": 0,
        "embed_sdp": u8::from(job.zero == 3),
        "vocab_sdp": u8::from(job.zero == 3),
    });
    if job.context_parallel > 1 {
        strategy["cp_sizes_enc"] = per_block(&|_, _| job.context_parallel.to_string()).into();
    }
    let Value::Object(strategy) = strategy else { unreachable!("it was made as an object") };
    // Unknown values are left out.
    let strategy: Map<String, Value> = strategy.into_iter().filter(|(_, value)| !value.is_null()).collect();
    serde_json::to_string_pretty(&strategy).expect("strings and numbers serialise") + "\n"
}

/// Settings without a field in the strategy: flags of the program that reads it, and values to fill in.
pub(super) fn notes(job: &EngineJob<'_>) -> Vec<String> {
    let mut notes = vec![];
    if job.cut.micro_batch_size.is_none() {
        let count = job.cut.microbatches;
        notes
            .push(format!("fill in \"global_bsz\": {count} times the samples in a microbatch, which are unknown here"));
    }
    notes.extend(model(job));
    let mut flags = vec![];
    if let Some(length) = job.recipe.sequence_length {
        // Without the switch Galvatron uses the model's longest sequence instead.
        flags.push(format!("--seq_length {length} --set_seqlen_manually 1"));
    }
    if let Some(precision) = job.recipe.precision {
        flags.push(format!("--mixed_precision {}", precision_word(precision)));
    }
    if job.sequence_parallel() {
        flags.push("--sequence-parallel".into());
    }
    if !flags.is_empty() {
        notes.push(format!("a strategy has no field for these, give them at launch: {}", flags.join(" ")));
    }
    notes
}

/// Models of Galvatron's `llama_hf`, by layers, hidden size, vocabulary and key-value heads (2.4.0, `meta_configs`).
const OWN: [([u64; 4], &str); 4] = [
    ([32, 4096, 32_000, 32], "llama-7b"),
    ([40, 5120, 32_000, 40], "llama-13b"),
    ([80, 8192, 32_000, 8], "llama2-70b"),
    ([80, 8192, 152_064, 8], "qwen2.5-72b"),
];

/// Note that names the model: a strategy does not.
fn model(job: &EngineJob<'_>) -> Option<String> {
    let Some(model) = job.model() else {
        return Some("fill in the model: its sizes are unknown here, and a strategy has no field for them".into());
    };
    if let Some(experts) = model.experts {
        return Some(format!(
            "Galvatron 2.4 has no mixture of experts, so the model is yours to write: {} layers, hidden size {}, {} experts, \
             {} of a token, {} wide",
            model.layers, model.hidden_size, experts.count, experts.chosen, experts.feed_forward_size
        ));
    }
    let sizes = [model.layers.into(), model.hidden_size, model.vocabulary, model.key_value_heads];
    Some(match OWN.iter().find(|own| own.0 == sizes) {
        Some((_, size)) => format!("the model: llama_hf with --model_size {size}"),
        None => format!(
            "fill in the model: a file of meta_configs with {} layers, hidden size {}, {} heads, {} of keys and values, \
             feed-forward size {}, vocabulary {}",
            model.layers,
            model.hidden_size,
            model.attention_heads,
            model.key_value_heads,
            model.feed_forward_size,
            model.vocabulary
        ),
    })
}

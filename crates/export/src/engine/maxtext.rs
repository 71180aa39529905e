//! MaxText 0.2: a configuration over its `base.yml`.
//!
//! Its pipeline is one scan over equal stages: all forwards, then all backwards, which is GPipe. The embedding and the
//! head are outside of it, on all devices. `num_pipeline_microbatches` counts the microbatches of a replica per
//! iteration. The mesh has axes for stages, replicas and tensor parts; each is split into a factor within machines
//! (`ici_`) and one across them (`dcn_`). Names and rules follow `base.yml` and `layers/pipeline.py`; they were not
//! tested with a real MaxText.

use super::{EngineJob, launch};
use plantui_core::{
    cluster::Limits,
    simulate::Schedule,
    workload::recipe::{ExpertLayers, ModelShape, NormKind},
};

pub(super) fn text(job: &EngineJob<'_>, limits: &Limits) -> String {
    let (stages, d, t) = (job.ranks() as u32, job.data_parallel(), job.tensor_parallel());
    let devices = job.cut.devices();
    let each = launch::each_of_equal(limits, devices);
    let mut rows: Vec<(String, String)> = vec![];
    let mut row = |name: &str, value: String| rows.push((name.to_string(), value));
    row("base_config", "\"base.yml\"".into());
    for (axis, inner, outer) in mesh([("tensor", t), ("data", d), ("pipeline", stages)], each) {
        row(&format!("ici_{axis}_parallelism"), inner.to_string());
        row(&format!("dcn_{axis}_parallelism"), outer.to_string());
    }
    // Axes without a setting stay 1: by default these two would take the remaining devices.
    row("ici_fsdp_parallelism", "1".into());
    row("dcn_fsdp_parallelism", "1".into());
    row("shard_optimizer_over_data", job.shards_optimizer().to_string());
    if stages > 1 {
        row("num_layers_per_pipeline_stage", job.cut.stages[0].blocks().to_string());
        row("num_pipeline_repeats", "1".into());
        row("num_pipeline_microbatches", job.own_microbatches().to_string());
    } else if job.own_microbatches() > 1 {
        row("gradient_accumulation_steps", job.own_microbatches().to_string());
    }
    row("remat_policy", if job.recomputes() { "\"full\"" } else { "\"minimal_with_context\"" }.into());
    match job.samples().filter(|_| stages > 1).or(job.cut.micro_batch_size.map(|b| u64::from(b) * u64::from(d))) {
        Some(samples) => row("per_device_batch_size", (samples as f64 / f64::from(devices)).to_string()),
        None => row("# per_device_batch_size", "fill in: samples in a batch / devices".into()),
    }
    match job.recipe.sequence_length {
        Some(length) => row("max_target_length", length.to_string()),
        None => row("# max_target_length", "fill in: tokens in a sequence".into()),
    }
    match job.model() {
        Some(model) => rows.extend(sizes(&model)),
        None => {
            rows.push(("base_num_decoder_layers".into(), job.blocks().to_string()));
            rows.push(("# base_emb_dim".into(), format!("fill in the other sizes, unknown here: {SIZES}")));
        }
    }
    let rows: String = rows.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    format!(
        "# {}\n# python3 -m maxtext.trainers.pre_train.train THIS_FILE model_name=... hardware=gpu run_name=...\n{rows}",
        job.layout_line()
    )
}

/// Values to fill in if the model's sizes are unknown.
const SIZES: &str = "base_num_query_heads, base_num_kv_heads, head_dim, base_mlp_dim, vocab_size, decoder_block, \
    num_experts, or model_name=..";

/// Rows of the model's sizes. A `model_name` would bring its own instead.
pub(super) fn sizes(model: &ModelShape) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = vec![];
    let mut row = |name: &str, value: String| rows.push((name.to_string(), value));
    row("base_num_decoder_layers", model.layers.to_string());
    row("base_emb_dim", model.hidden_size.to_string());
    row("base_num_query_heads", model.attention_heads.to_string());
    row("base_num_kv_heads", model.key_value_heads.to_string());
    match model.latent {
        Some(latent) => {
            row("attention_type", "\"mla\"".into());
            row("q_lora_rank", latent.query_rank.unwrap_or(0).to_string());
            row("kv_lora_rank", latent.key_value_rank.to_string());
            row("qk_nope_head_dim", latent.nope.to_string());
            row("qk_rope_head_dim", latent.rope.to_string());
            row("v_head_dim", latent.value.to_string());
        }
        None => row("head_dim", model.head_size.to_string()),
    }
    row("base_mlp_dim", model.feed_forward_size.to_string());
    row("vocab_size", model.vocabulary.to_string());
    row("logits_via_embedding", model.tied_embeddings.to_string());
    if !model.gated {
        row("mlp_activations", "[\"gelu\"]".into());
    }
    if let Some(experts) = model.experts {
        row("num_experts", experts.count.to_string());
        row("num_experts_per_tok", experts.chosen.to_string());
        row("base_moe_mlp_dim", experts.feed_forward_size.to_string());
        let width = experts.feed_forward_size.max(1);
        if experts.shared_feed_forward_size > 0 {
            row("shared_experts", experts.shared_feed_forward_size.div_ceil(width).to_string());
        }
        match experts.layers {
            Some(ExpertLayers { dense_first: 0, every: 1 }) => {}
            Some(ExpertLayers { dense_first, every: 1 }) => row("first_num_dense_layers", dense_first.to_string()),
            _ => row("# interleave_moe_layer_step", "fill in: which layers have experts".into()),
        }
    }
    if like_llama(model) {
        row("decoder_block", "\"llama2\"".into());
    } else {
        let kind = if model.experts.is_some() { "mixtral, qwen3_moe, deepseek, .." } else { "gpt3, qwen3, gemma2, .." };
        row("# decoder_block", format!("fill in: {kind}; or model_name=.., whose own sizes go before these"));
    }
    rows
}

/// True if MaxText's usual block, `llama2`, matches this model.
fn like_llama(model: &ModelShape) -> bool {
    let plain = model.experts.is_none() && model.latent.is_none() && !model.head_norm && !model.mixed_attention;
    let biases = model.bias == Some(false) && model.query_key_value_bias == Some(false);
    let positions = !model.learned_positions && !model.slopes && !model.bidirectional && model.window.is_none();
    plain && biases && positions && model.gated && model.norm == Some(NormKind::Rms)
}

/// Size of each axis within a machine and across machines; the first axes fill a machine. `each` divides the product of
/// all axes, so the part that an axis leaves open divides the product of the later axes.
pub(super) fn mesh<const N: usize>(axes: [(&'static str, u32); N], each: u32) -> [(&'static str, u32, u32); N] {
    let mut room = each;
    axes.map(|(name, size)| {
        let inner = gcd(size, room);
        room /= inner;
        (name, inner, size / inner)
    })
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Losses that only MaxText has, in addition to those of all engines.
pub(super) fn losses(blocks: &[usize], own_microbatches: u32) -> Vec<String> {
    let stages = blocks.len();
    let mut losses = vec![];
    if let Some(odd) = blocks.iter().position(|count| *count != blocks[0]) {
        losses.push(format!(
            "stage 1 has {} layers and stage {} has {}; the engine needs the same number on every stage (--planner \
            equal-partition)",
            blocks[0],
            odd + 1,
            blocks[odd]
        ));
    }
    if stages > 1 && !(own_microbatches as usize).is_multiple_of(stages) {
        losses.push(format!(
            "a replica works on {own_microbatches} microbatches; the engine needs a multiple of the {stages} stages"
        ));
    }
    losses
}

/// Notes for the user of the file.
pub(super) fn notes(job: &EngineJob<'_>) -> Vec<String> {
    let mut notes = vec![
        "the embedding and the head are outside the pipeline, on all devices: their memory and time are spread"
            .to_string(),
    ];
    if job.schedule != Schedule::GPipe || job.own_microbatches() as usize > job.ranks() && job.ranks() > 1 {
        notes.push(
            "every stage holds the activations of all its microbatches (GPipe): see `simulate --schedule gpipe`".into(),
        );
    }
    if !job.recomputes() {
        notes.push("minimal_with_context is the closest policy: elementwise operations are still recomputed".into());
    }
    if job.experts_are_whole() {
        notes.push("the engine splits experts over tensor ranks; the figures have whole experts on each rank".into());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mesh_fills_machines_and_takes_every_device() {
        for (t, d, s, each) in [(4, 2, 4, 8), (1, 4, 3, 6), (1, 9, 2, 6), (16, 2, 1, 8), (2, 3, 1, 3)] {
            let axes = mesh([("tensor", t), ("data", d), ("pipeline", s)], each);
            assert_eq!(axes.iter().map(|axis| axis.1).product::<u32>(), each, "{t} {d} {s}");
            assert_eq!(axes.map(|axis| axis.1 * axis.2), [t, d, s]);
        }
    }

    #[test]
    fn uneven_stages_and_odd_batches_are_told() {
        assert!(losses(&[8, 8], 4).is_empty() && losses(&[8], 3).is_empty());
        assert!(losses(&[8, 7], 4)[0].contains("stage 2 has 7"));
        assert!(losses(&[8, 8], 3)[0].contains("multiple of the 2 stages"));
    }
}

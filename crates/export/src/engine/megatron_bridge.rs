//! Megatron-Bridge 0.2: a function that sets a recipe's configuration, in Python.
//!
//! Its `ConfigContainer` uses Megatron-Core's names: degrees and recomputation under `model`, the batch under `train`,
//! the optimizer's sharding under `ddp`. It accepts Megatron-Core's stage layout. A recipe brings the model, so sizes
//! are checked, not set. NeMo's training moved here; it has no separate format.

use super::{
    job::EngineJob,
    megatron::{layout, recomputation},
    python,
};
use plantui_core::workload::recipe::ModelShape;

/// Import of the settings for overlapping transfers.
pub(super) const COMM_OVERLAP: &str = "from megatron.bridge.training.comm_overlap import CommOverlapConfig\n";

pub(super) fn text(job: &EngineJob<'_>) -> String {
    let (recipe, stages) = (&job.recipe, job.ranks());
    let mut sets: Vec<String> = vec![
        format!("    model.pipeline_model_parallel_size = {stages}\n"),
        format!("    model.tensor_model_parallel_size = {}\n", job.tensor_parallel()),
        format!(
            "    model.sequence_parallel = {}\n",
            python::truth(job.sequence_parallel() || job.experts_are_whole())
        ),
    ];
    if stages > 1 {
        sets.push(format!(
            "    model.pipeline_model_parallel_layout = {}\n",
            python::string(&layout(&job.parts.parts))
        ));
    }
    if job.parts.each() > 1 {
        sets.push(format!("    model.virtual_pipeline_model_parallel_size = {}\n", job.parts.each()));
    }
    sets.push(match recomputation(&job.parts.parts) {
        Some((method, layers)) => format!(
            "    model.recompute_granularity = \"full\"\n    model.recompute_method = \"{method}\"\n    model.recompute_num_layers = {layers}\n"
        ),
        None => "    model.recompute_granularity = None\n".into(),
    });
    let micro = job.cut.micro_batch_size.map(u64::from);
    let length = python::sequence_length(recipe);
    sets.push(python::assignment("    ", "config.train.micro_batch_size", micro, "sequences in a microbatch"));
    let batch = format!("{} times that", job.cut.microbatches);
    sets.push(python::assignment("    ", "config.train.global_batch_size", job.samples(), &batch));
    sets.push(python::assignment("    ", "model.seq_length", length, "tokens in a sequence"));
    sets.push(python::assignment("    ", "config.dataset.seq_length", length, "the same"));
    let shards = python::truth(job.shards_optimizer());
    sets.push(format!("    config.ddp.use_distributed_optimizer = {shards}\n"));
    sets.push(format!("    config.optimizer.use_distributed_optimizer = {shards}\n"));
    if job.model().is_some_and(|model| model.experts.is_some()) {
        sets.push("    model.expert_model_parallel_size = 1\n".into());
        sets.push("    model.expert_tensor_parallel_size = 1\n".into());
    }
    let import = if job.tensor_overlap() {
        sets.push("    config.comm_overlap = CommOverlapConfig(tp_comm_overlap=True)\n".into());
        COMM_OVERLAP
    } else {
        ""
    };
    format!(
        "# {layout}
# Call it with a recipe's configuration before the training starts: pretrain(planned(recipe()), forward_step).
# Data parallel follows from the ranks: {replicas} replicas.
{import}{sizes}

def planned(config):
    model = config.model
{CHECK}{sets}    return config
",
        layout = job.layout_line(),
        replicas = job.data_parallel(),
        sizes = sizes(job.blocks() as u64, job.model().as_ref()),
        sets = sets.concat(),
    )
}

/// Lines of the function that refuse another model.
pub(super) const CHECK: &str = "    \
other = {name: getattr(model, name, None) for name, size in MODEL.items() if getattr(model, name, None) != size}
    assert not other, f\"the plan is for {MODEL}, the model has {other}\"
";

/// Sizes that the plan is for, by the field names of a provider.
pub(super) fn sizes(layers: u64, model: Option<&ModelShape>) -> String {
    let mut entries = vec![("num_layers", layers.to_string())];
    match model {
        None => {}
        Some(model) => {
            let mut add = |name, size: u64| entries.push((name, size.to_string()));
            add("hidden_size", model.hidden_size);
            add("num_attention_heads", model.attention_heads);
            // A provider without grouped queries may leave this field unset.
            if model.latent.is_none() && model.key_value_heads != model.attention_heads {
                add("num_query_groups", model.key_value_heads);
            }
            if let Some(latent) = model.latent {
                add("kv_lora_rank", latent.key_value_rank);
            }
            match model.experts {
                Some(experts) => {
                    add("num_moe_experts", experts.count);
                    add("moe_router_topk", experts.chosen);
                    add("moe_ffn_hidden_size", experts.feed_forward_size);
                }
                None => {
                    add("ffn_hidden_size", model.feed_forward_size);
                    entries.push(("num_moe_experts", "None".into()));
                }
            }
        }
    }
    let lines: String = entries.iter().map(|(name, size)| format!("    {}: {size},\n", python::string(name))).collect();
    let open = if model.is_some() {
        ""
    } else {
        "# fill in its other sizes, unknown here: hidden_size, num_attention_heads, num_query_groups, \
        num_moe_experts\n"
    };
    format!("\n# The model of the plan; a recipe of another model is refused.\n{open}MODEL = {{\n{lines}}}\n")
}

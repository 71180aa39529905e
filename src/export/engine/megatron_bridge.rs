//! Megatron-Bridge 0.2: a function that sets a recipe's configuration, in Python.
//!
//! Its `ConfigContainer` carries Megatron-Core's own names: degrees and recomputation under `model`, the batch under `train`,
//! the optimizer's sharding under `ddp`, and takes Megatron-Core's layout of the stages. A recipe brings the model, so sizes
//! are checked, not set. NeMo's training moved here; there is no format of its own for it.

use super::{
    job::Job,
    megatron::{layout, recomputation},
    python,
};

/// Where the settings of overlapping transfers are.
pub(super) const COMM_OVERLAP: &str = "from megatron.bridge.training.comm_overlap import CommOverlapConfig\n";

pub(super) fn text(job: &Job<'_>) -> String {
    let (recipe, stages) = (&job.recipe, job.ranks());
    let mut sets: Vec<String> = vec![
        format!("    model.pipeline_model_parallel_size = {stages}\n"),
        format!("    model.tensor_model_parallel_size = {}\n", job.tensor_parallel()),
        format!("    model.sequence_parallel = {}\n", python::truth(job.sequence_parallel())),
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
    sets.push(python::assignment("    ", "config.dataset.sequence_length", length, "the same"));
    let shards = python::truth(job.shards_optimizer());
    sets.push(format!("    config.ddp.use_distributed_optimizer = {shards}\n"));
    sets.push(format!("    config.optimizer.use_distributed_optimizer = {shards}\n"));
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
{import}

def planned(config):
    model = config.model
    assert model.num_layers == {blocks}, f\"the plan is for {blocks} layers, the model has {{model.num_layers}}\"
{sets}    return config
",
        layout = job.layout_line(),
        replicas = job.data_parallel(),
        blocks = job.blocks(),
        sets = sets.concat(),
    )
}

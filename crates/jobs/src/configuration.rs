//! Meaning of a configuration: degrees, stages, recomputation, batch.

use super::{facts::JobFacts, model, reader::FactReader};
use plantui_core::{
    source::LoadError,
    workload::{model::ModelConfig, recipe::Precision},
};

/// Origin of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobFormat {
    /// Megatron-LM's arguments.
    Megatron,
    /// torchtitan's job.
    TorchTitan,
    /// DeepSpeed's JSON, or a pipeline module for it.
    DeepSpeed,
    /// `TrainingArguments` or accelerate.
    HuggingFace,
    /// Galvatron's strategy.
    Galvatron,
    /// `torch.distributed.pipelining`, as `export` writes it.
    Torch,
}

impl JobFormat {
    /// All engines.
    pub const ALL: [JobFormat; 6] = [
        JobFormat::Megatron,
        JobFormat::TorchTitan,
        JobFormat::DeepSpeed,
        JobFormat::HuggingFace,
        JobFormat::Galvatron,
        JobFormat::Torch,
    ];

    /// Id for `--from`.
    pub fn id(self) -> &'static str {
        match self {
            JobFormat::Megatron => "megatron",
            JobFormat::TorchTitan => "torchtitan",
            JobFormat::DeepSpeed => "deepspeed",
            JobFormat::HuggingFace => "huggingface",
            JobFormat::Galvatron => "galvatron",
            JobFormat::Torch => "torch",
        }
    }

    /// Name for people.
    pub fn title(self) -> &'static str {
        match self {
            JobFormat::Megatron => "Megatron-LM arguments",
            JobFormat::TorchTitan => "a torchtitan job",
            JobFormat::DeepSpeed => "a DeepSpeed configuration",
            JobFormat::HuggingFace => "a Hugging Face training configuration",
            JobFormat::Galvatron => "a Galvatron strategy",
            JobFormat::Torch => "a script of PyTorch pipelining",
        }
    }

    /// Files of this engine that state the model's sizes.
    pub(super) fn with_sizes(self) -> &'static str {
        match self {
            JobFormat::Megatron => "--num-layers, --hidden-size and --num-attention-heads",
            _ => "Megatron-LM's arguments",
        }
    }
}

/// Layers that recompute their activations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecomputedLayers {
    /// None.
    No,
    /// All.
    All,
    /// The first layers of every stage, as many as stated.
    First(usize),
    /// A flag for each layer.
    Each(Vec<bool>),
}

/// First layer of every part but the first, and the parts of each rank.
pub type PipelineSplit = (Vec<usize>, Vec<Vec<usize>>);

/// Configuration of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobConfiguration {
    /// Engine that it belongs to.
    pub engine: JobFormat,
    /// Model, if the file states it.
    pub model: Option<ModelConfig>,
    /// Pipeline stages, p.
    pub pipeline: u32,
    /// Tensor degree, t.
    pub tensor: u32,
    /// Replicas, d.
    pub data: u32,
    /// Layers of each stage, if the file states them.
    pub layers: Option<Vec<usize>>,
    /// Split points of the module, which replace `layers`.
    pub splits: Option<PipelineSplit>,
    /// Recomputation.
    pub recompute: RecomputedLayers,
    /// Sequences per microbatch.
    pub micro_batch: u32,
    /// Microbatches per iteration, over all replicas.
    pub microbatches: u32,
    /// Tokens per sequence.
    pub sequence_length: Option<u32>,
    /// Precision of matrix products.
    pub precision: Option<Precision>,
    /// True if norms and dropouts are divided along the sequence.
    pub sequence_parallel: bool,
    /// True if tensor-parallel transfers overlap with products.
    pub tensor_overlap: bool,
    /// True if attention scores are kept.
    pub keeps_attention_scores: bool,
    /// True if the optimizer's state is divided over replicas.
    pub distributed_optimizer: bool,
    /// True if gradients are kept in 16 bits.
    pub gradients_in_16_bits: bool,
    /// Assumptions, and facts that a plan cannot express, a sentence each.
    pub notes: Vec<String>,
}

impl JobConfiguration {
    /// Devices of all stages.
    pub fn devices(&self) -> u32 {
        self.pipeline.saturating_mul(self.tensor).saturating_mul(self.data)
    }
}

/// Reads a configuration. `engine` names its origin; without it, the names in the text decide. `devices` is the number
/// of devices, used if the file does not state it.
///
/// # Errors
/// [`LoadError`] with the repair, for a value that cannot be read or that no plan can express.
// Long: one entry of the configuration after the other, in the order of their dependencies.
pub fn read(
    text: &str,
    source: &str,
    name: &str,
    engine: Option<JobFormat>,
    devices: Option<u32>,
) -> Result<JobConfiguration, LoadError> {
    let facts = JobFacts::of(text);
    let Some(engine) = engine.or_else(|| detected(&facts)) else {
        let known = "Megatron-LM arguments, a torchtitan job, a DeepSpeed, Hugging Face or Galvatron configuration";
        return Err(LoadError::file(
            source,
            format!("holds none of the names that identify {known}"),
            "name its format with --from",
        ));
    };
    let reader = FactReader { facts: &facts, source };
    reader.refuse_what_no_plan_holds()?;
    let mut notes = vec![];
    let model = match engine {
        JobFormat::Megatron => model::of_megatron(&facts, source, name, &mut notes)?,
        JobFormat::TorchTitan => model::of_torchtitan(&facts),
        _ => None,
    };
    let told = facts.comments.iter().find_map(|comment| ranks_and_tensor_degree(comment));
    let tensor = reader.degree(&TENSOR)?.or(told.map(|(_, tensor)| tensor)).unwrap_or(1);
    let splits = if engine == JobFormat::Torch { reader.splits()? } else { None };
    let layers = reader.layers(model.as_ref())?;
    let pipeline = match (reader.degree(&PIPELINE)?, &layers) {
        (Some(ranks), Some(layers)) if layers.len() as u32 != ranks => {
            let problem = format!("names {} parts for {ranks} pipeline ranks", layers.len());
            return Err(LoadError::file(source, problem, "they must be equal, or a multiple in Megatron's layout"));
        }
        (Some(ranks), _) => ranks,
        (None, Some(layers)) => layers.len() as u32,
        (None, None) => splits.as_ref().map_or(1, |(_, ranks)| ranks.len() as u32),
    };
    let data = reader.replicas(pipeline.saturating_mul(tensor), devices, told.map(|(ranks, _)| ranks), &mut notes)?;
    let (micro_batch, microbatches) = reader.batch(data, &mut notes)?;
    let precision = reader.precision();
    let recompute = reader.recompute(engine, layers.as_deref(), &mut notes)?;
    let flag = |names: &[&str]| names.iter().any(|name| facts.is_set(name));
    if facts.is_set("num_layers_per_virtual_pipeline_stage")
        || facts.is_set("num_virtual_stages_per_pipeline_rank")
        || reader.parts_per_rank() > 1
    {
        notes.push(
            "the schedule interleaves virtual stages; the plan has each rank's layers as one stage: simulate \
            it with --schedule interleaved"
                .into(),
        );
    }
    if number(&facts, &["zero_optimization.stage", "zero_stage"], source)?.is_some_and(|stage| stage >= 2)
        || flag(&["fsdp", "fsdp_config.fsdp_sharding_strategy"])
    {
        notes.push(
            "gradients or weights are sharded as well (ZeRO 2, 3 or FSDP): memory here shards only the \
            optimizer's state"
                .into(),
        );
    }
    Ok(JobConfiguration {
        engine,
        model,
        pipeline,
        tensor,
        data,
        layers,
        splits,
        recompute,
        micro_batch,
        microbatches,
        sequence_length: reader.count(&[
            "seq_length",
            "training.seq_len",
            "seq_len",
            "sequence_length",
            "max_seq_length",
        ])?,
        precision,
        sequence_parallel: tensor > 1
            && flag(&["sequence_parallel", "enable_sequence_parallel", "megatron_lm_sequence_parallelism"]),
        tensor_overlap: flag(&[
            "tp_comm_overlap",
            "enable_async_tensor_parallel",
            "parallelism.enable_async_tensor_parallel",
        ]),
        keeps_attention_scores: facts.get("attention_backend") == Some("unfused"),
        distributed_optimizer: flag(&["use_distributed_optimizer", "megatron_lm_use_distributed_optimizer", "fsdp"])
            || facts.is_set("zero_optimization.stage")
            || facts.is_set("zero_stage")
            || reader.count(&["data_parallel_shard_degree"])?.is_some_and(|shards| shards > 1),
        gradients_in_16_bits: facts.is_set("grad_reduce_in_bf16"),
        notes,
    })
}

pub(super) const TENSOR: [&str; 5] =
    ["tensor_model_parallel_size", "tensor_parallel_degree", "megatron_lm_tp_degree", "autotp_size", "num_mp"];
pub(super) const PIPELINE: [&str; 7] = [
    "pipeline_model_parallel_size",
    "pipeline_parallel_degree",
    "megatron_lm_pp_degree",
    "pp_deg",
    "num_stages",
    "num_pp",
    "pipeline.stages",
];

/// Ranks and tensor degree from the first comment that `export` writes:
/// `16 ranks: 4 stages x 2 replicas x tensor degree 2`.
fn ranks_and_tensor_degree(comment: &str) -> Option<(u32, u32)> {
    let (ranks, rest) = comment.split_once(" ranks: ")?;
    let (_, degree) = rest.split_once("tensor degree ")?;
    let degree = degree.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((ranks.parse().ok()?, degree.parse().ok()?))
}

/// Engine whose names appear in a text; the most specific names are tried first.
fn detected(facts: &JobFacts) -> Option<JobFormat> {
    let has = |names: &[&str]| names.iter().any(|name| facts.has(name));
    [
        (JobFormat::Galvatron, &["pp_deg"][..]),
        (JobFormat::Torch, &["split_spec"]),
        (
            JobFormat::HuggingFace,
            &[
                "megatron_lm_config",
                "megatron_lm_tp_degree",
                "megatron_lm_pp_degree",
                "distributed_type",
                "per_device_train_batch_size",
            ],
        ),
        (
            JobFormat::TorchTitan,
            &["pipeline_parallel_degree", "tensor_parallel_degree", "data_parallel_shard_degree", "local_batch_size"],
        ),
        (
            JobFormat::Megatron,
            &["tensor_model_parallel_size", "pipeline_model_parallel_size", "num_attention_heads", "micro_batch_size"],
        ),
        (
            JobFormat::DeepSpeed,
            &["train_micro_batch_size_per_gpu", "train_batch_size", "zero_optimization.stage", "parts"],
        ),
    ]
    .into_iter()
    .find(|(_, names)| has(names))
    .map(|(engine, _)| engine)
}

/// Whole number under the first of these names that has a value.
pub(super) fn number(facts: &JobFacts, names: &[&str], source: &str) -> Result<Option<u64>, LoadError> {
    let Some((name, value)) = facts.any(names) else { return Ok(None) };
    if matches!(value.to_ascii_lowercase().as_str(), "none" | "null" | "auto" | "-1") {
        return Ok(None);
    }
    match value.replace('_', "").parse::<u64>() {
        Ok(number) if number <= 1 << 40 => Ok(Some(number)),
        _ => Err(LoadError::at(
            source,
            name,
            format!("is `{value}`, must be a whole number"),
            "write the number; variables of the shell are known where the file sets them",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_found_by_its_own_names() {
        for (text, engine) in [
            ("--tensor-model-parallel-size 2", JobFormat::Megatron),
            ("[parallelism]\npipeline_parallel_degree = 2", JobFormat::TorchTitan),
            (r#"{"train_micro_batch_size_per_gpu": 2}"#, JobFormat::DeepSpeed),
            ("distributed_type: FSDP", JobFormat::HuggingFace),
            (r#"{"pp_deg": 2, "global_bsz": 8, "chunks": 4}"#, JobFormat::Galvatron),
        ] {
            let found = read(text, "a", "a", None, Some(4)).unwrap();
            assert_eq!(found.engine, engine, "{text}");
        }
        assert!(read("hello", "a.sh", "a", None, None).unwrap_err().to_string().contains("--from"));
    }

    #[test]
    fn what_no_plan_holds_is_refused_with_the_way_out() {
        let error =
            read("--tensor-model-parallel-size 2 --context-parallel-size 4", "a.sh", "a", None, None).unwrap_err();
        assert!(error.to_string().contains("plantui estimate"), "{error}");
        let error = read("--tensor-model-parallel-size $TP", "a.sh", "a", None, None).unwrap_err();
        assert!(error.to_string().contains("`$TP`"), "{error}");
        let error = read("--tensor-model-parallel-size 3", "a.sh", "a", None, Some(16)).unwrap_err();
        assert!(error.to_string().contains("16 devices"), "{error}");
    }
}

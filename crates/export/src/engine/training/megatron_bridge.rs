//! Configuration of a training workload for Megatron-Bridge: a function that sets a recipe's configuration, in Python.
//!
//! Names follow `engine::megatron_bridge`, from its documentation. A recipe brings the model, so sizes are checked and
//! not set.

use super::{
    super::{
        Engine, launch,
        megatron_bridge::{self, CHECK},
        python,
    },
    megatron,
};
use plantui_core::{
    family::training::{
        AttentionKernel, ContextStyle, ExpertOverlap, Imbalance, Recompute, TrainingPrecision, TrainingRun, check,
        hardware::Generation,
    },
    plan::Configuration,
    workload::{TrainingProfile, recipe::ModelShape},
};

/// Content of the file.
pub(super) fn text(
    profile: &TrainingProfile,
    run: &TrainingRun,
    configuration: &Configuration,
    spread: launch::Spread,
) -> String {
    let (layout, settings) = (&run.layout, &run.settings);
    let mut sets = vec![
        format!("model.tensor_model_parallel_size = {}", layout.tensor),
        format!("model.pipeline_model_parallel_size = {}", layout.pipeline),
        format!("model.context_parallel_size = {}", layout.context),
        format!("model.sequence_parallel = {}", python::truth(configuration.sequence_parallel && layout.tensor > 1)),
    ];
    if profile.model.has_experts() {
        sets.push(format!("model.expert_model_parallel_size = {}", layout.expert));
        sets.push(format!("model.expert_tensor_parallel_size = {}", layout.expert_tensor));
        sets.extend(of_experts(run, profile.accelerator.generation));
    }
    if layout.virtual_stages > 1 {
        sets.push(format!("model.virtual_pipeline_model_parallel_size = {}", layout.virtual_stages));
    }
    if let Some(stages) = megatron::layout(profile, run, configuration) {
        sets.push(format!("model.pipeline_model_parallel_layout = {}", python::string(&stages)));
    }
    if layout.context > 1 {
        sets.push(format!("model.cp_comm_type = \"{}\"", settings.context_style.megatron()));
        if settings.context_style == ContextStyle::Hierarchical {
            let [inside, between] = layout.context_hierarchy(profile.accelerator.domain);
            sets.push(format!("model.hierarchical_context_parallel_sizes = [{inside}, {between}]"));
        }
    }
    sets.extend(recomputation(run));
    sets.push(format!("model.seq_length = {}", run.sequence));
    // The length of the data set overwrites that of the model.
    sets.push(format!("config.dataset.seq_length = {}", run.sequence));
    sets.push(format!("config.train.micro_batch_size = {}", layout.micro_batch));
    sets.push(format!("config.train.global_batch_size = {}", run.global_batch));
    let megatron_fsdp = settings.fsdp || settings.shard_gradients;
    let shards = python::truth(settings.distributed_optimizer || megatron_fsdp);
    sets.push(format!("config.ddp.use_distributed_optimizer = {shards}"));
    sets.push(format!("config.optimizer.use_distributed_optimizer = {shards}"));
    sets.push(format!("config.ddp.overlap_grad_reduce = {}", python::truth(settings.dp_overlap)));
    let gathers = settings.dp_overlap && settings.distributed_optimizer;
    sets.push(format!("config.ddp.overlap_param_gather = {}", python::truth(gathers)));
    sets.push(format!("config.ddp.grad_reduce_in_fp32 = {}", python::truth(settings.gradient_bytes == 4)));
    if megatron_fsdp {
        let strategy = if settings.fsdp { "optim_grads_params" } else { "optim_grads" };
        sets.push("config.ddp.use_megatron_fsdp = True".into());
        sets.push("config.checkpoint.ckpt_format = \"fsdp_dtensor\"".into());
        sets.push("model.gradient_accumulation_fusion = False".into());
        sets.push(format!("config.ddp.data_parallel_sharding_strategy = \"{strategy}\""));
    }
    if settings.activation_offload > 0 {
        sets.push("model.cpu_offloading = True".into());
        sets.push(format!("model.cpu_offloading_num_layers = {}", settings.activation_offload));
    }
    if settings.optimizer_offload {
        sets.push("config.optimizer.optimizer_cpu_offload = True".into());
        sets.push("config.optimizer.use_precision_aware_optimizer = True".into());
    }
    sets.push(format!("model.cross_entropy_loss_fusion = {}", python::truth(settings.fused_cross_entropy)));
    let kernel = if settings.attention == AttentionKernel::Unfused { "unfused" } else { "flash" };
    sets.push(format!("model.attention_backend = AttnBackend.{kernel}"));
    sets.push(format!("config.mixed_precision = \"{}\"", precision(run.precision)));
    let overlap = overlap(run);
    if let Some(overlap) = &overlap {
        sets.push(format!("config.comm_overlap = CommOverlapConfig({overlap})"));
    }
    let sets: String = sets.iter().map(|set| format!("    {set}\n")).collect();
    let import = if overlap.is_some() { megatron_bridge::COMM_OVERLAP } else { "" };
    format!(
        "# {devices} ranks on {id}: {layout}
{launch}# Call it with a recipe's configuration before the training starts: pretrain(planned(recipe()), forward_step).
# Data parallel follows from the ranks: {data} replicas.
{import}from megatron.core.transformer.enums import AttnBackend
{sizes}

def planned(config):
    model = config.model
{CHECK}{sets}    return config
",
        devices = layout.devices(),
        id = profile.accelerator.id,
        data = layout.data,
        launch = launch::of_run(Engine::MegatronBridge, run, spread, "your_recipe.py")
            .iter()
            .map(|line| format!("# {line}\n"))
            .collect::<String>(),
        sizes = megatron_bridge::sizes(profile.model.layers.len() as u64, ModelShape::of(&profile.model).as_ref()),
    )
}

/// Arguments of the overlap of transfers, if any overlaps.
fn overlap(run: &TrainingRun) -> Option<String> {
    let settings = &run.settings;
    let tensor = settings.tp_overlap && run.layout.tensor > 1;
    if settings.ep_overlap != ExpertOverlap::Batch {
        return tensor.then(|| "tp_comm_overlap=True".into());
    }
    let (tensor, delayed) = (python::truth(tensor), python::truth(settings.delay_weight_gradients));
    Some(format!("tp_comm_overlap={tensor}, overlap_moe_expert_parallel_comm=True, delay_wgrad_compute={delayed}"))
}

/// Settings of mixtures of experts.
fn of_experts(run: &TrainingRun, generation: Generation) -> Vec<String> {
    let settings = &run.settings;
    let mut sets = vec![];
    if run.layout.expert > 1 {
        let hierarchical = settings.dispatcher.is_hierarchical();
        sets.push(format!("model.moe_token_dispatcher_type = \"{}\"", if hierarchical { "flex" } else { "alltoall" }));
        if hierarchical {
            sets.push(format!("model.moe_flex_dispatcher_backend = \"{}\"", settings.dispatcher.id()));
        }
    }
    let shared = python::truth(settings.ep_overlap == ExpertOverlap::Shared);
    sets.push(format!("model.moe_shared_expert_overlap = {shared}"));
    if settings.launches_from_graphs(generation) && check::repeated_in_graphs(run).is_none() {
        sets.push("model.cuda_graph_impl = \"transformer_engine\"".into());
        sets.push("model.cuda_graph_scope = [\"attn\", \"moe_router\", \"moe_preprocess\"]".into());
        sets.push("model.use_te_rng_tracker = True".into());
        sets.push("config.rng.te_rng_tracker = True".into());
    }
    if let Imbalance::Capacity(factor) = settings.imbalance {
        sets.push(format!("model.moe_expert_capacity_factor = {factor:?}"));
        sets.push("model.moe_pad_expert_input_to_capacity = True".into());
    }
    sets
}

fn recomputation(run: &TrainingRun) -> Vec<String> {
    let full = |method: &str, layers: u32| {
        vec![
            "model.recompute_granularity = \"full\"".to_string(),
            format!("model.recompute_method = \"{method}\""),
            format!("model.recompute_num_layers = {layers}"),
        ]
    };
    match run.recompute {
        Recompute::None => vec!["model.recompute_granularity = None".into()],
        Recompute::Selective(_) => {
            let modules: Vec<String> = run.modules().names().into_iter().map(python::string).collect();
            vec![
                "model.recompute_granularity = \"selective\"".into(),
                format!("model.recompute_modules = [{}]", modules.join(", ")),
            ]
        }
        Recompute::Every(_) => vec!["# fill in: Megatron-Core has no option to recompute every n-th layer".into()],
        Recompute::Full => full("uniform", 1),
        Recompute::Layers(count) => full("block", count),
    }
}

/// Name of a recipe for mixed precision.
fn precision(precision: TrainingPrecision) -> &'static str {
    match precision {
        // Without mixed precision, all is in 32 bits.
        TrainingPrecision::Fp32 => "fp32",
        TrainingPrecision::Bf16 => "bf16_mixed",
        TrainingPrecision::Fp16 => "fp16_mixed",
        TrainingPrecision::Fp8 => "bf16_with_fp8_current_scaling_mixed",
        TrainingPrecision::MxFp8 => "bf16_with_mxfp8_mixed",
        TrainingPrecision::NvFp4 => "bf16_with_nvfp4_mixed",
    }
}

//! Configuration of a training workload for torchtitan: a function of its registry of configurations.
//!
//! The file sets degrees, schedule and the modules of every part; the model itself is one of torchtitan's. Names follow
//! torchtitan 0.3, as in `engine::torchtitan`. Parts are listed in model order: the schedule decides which rank has
//! which, round robin or, under ZB-V, down and back up.

use super::super::{
    Engine, ModuleNames, launch, python,
    torchtitan::{self, Checkpoint, RegistryEntry},
    torchtitan_model::FileModel,
};
use super::listed::{FILE, is_from_list};
use plantui_core::{
    family::training::{ContextStyle, Recompute, TrainingPrecision, TrainingRun, ZeroBubble, configured},
    plan::{Configuration, Schedule},
    workload::{TrainingProfile, recipe::ModelShape},
};

/// torchtitan's word for the schedule.
fn word(run: &TrainingRun) -> &'static str {
    match run.zero_bubble {
        Some(ZeroBubble::V) => "ZBVZeroBubble",
        Some(ZeroBubble::Interleaved) => "InterleavedZeroBubble",
        _ if run.layout.virtual_stages > 1 => "Interleaved1F1B",
        _ => "1F1B",
    }
}

/// Module names of every part, in model order.
fn parts(profile: &TrainingProfile, configuration: &Configuration, names: &ModuleNames) -> Vec<Vec<String>> {
    let Some(split) = configured::split(profile, configuration) else { return vec![] };
    let mut parts: Vec<(usize, Vec<String>)> = (0..split.stages())
        .flat_map(|stage| split.chunks(stage))
        .map(|chunk| (chunk.start, chunk.clone().map(|layer| names.block.replace("{}", &layer.to_string())).collect()))
        .collect();
    // A part without layers begins where the next one does, and comes before it.
    parts.sort_by_key(|(start, modules)| (*start, modules.len()));
    let mut parts: Vec<Vec<String>> = parts.into_iter().map(|(_, modules)| modules).collect();
    if let Some(first) = parts.first_mut() {
        first.splice(0..0, names.first.iter().cloned());
    }
    if let Some(last) = parts.last_mut() {
        last.extend(names.last.iter().cloned());
    }
    parts
}

/// Text of the file. `asked` is another schedule than the planned one.
pub(super) fn text(
    profile: &TrainingProfile,
    run: &TrainingRun,
    configuration: &Configuration,
    (names, spread): (&ModuleNames, launch::Spread),
    asked: Option<Schedule>,
) -> String {
    let (layout, settings) = (&run.layout, &run.settings);
    let listed = asked.is_some_and(is_from_list);
    let stages = layout.pipeline;
    let parts = parts(profile, configuration, names);
    let base = FileModel {
        layers: profile.model.layers.len() as u64,
        model: ModelShape::of(&profile.model),
        in_8_bits: run.precision.bits() < 16,
    };
    let shards = settings.fsdp || settings.distributed_optimizer;
    // Context ranks lie between the shards, so that the degrees count replicas of sequences.
    let ranks = f64::from(layout.data) * f64::from(layout.context);
    let shard = if shards { (run.shards(ranks) as u32 / layout.context).max(1) } else { 1 };
    let replicate = layout.data / shard;
    let checkpoint = match run.recompute {
        Recompute::Full => Checkpoint::Full,
        Recompute::Selective(_) => Checkpoint::Operators,
        _ => Checkpoint::None,
    };
    let micro = u64::from(layout.micro_batch);
    let mut sets = vec![
        format!("parallelism.pipeline_parallel_degree = {stages}"),
        format!(
            "parallelism.pipeline_parallel_schedule = {}",
            python::string(match asked {
                Some(_) if listed => torchtitan::LIST,
                Some(other) => torchtitan::word(other),
                None => word(run),
            })
        ),
        format!("parallelism.module_fqns_per_model_part = {}", if stages > 1 { "MODEL_PARTS" } else { "None" }),
        format!("parallelism.tensor_parallel_degree = {}", layout.tensor),
        format!(
            "parallelism.enable_sequence_parallel = {}",
            python::truth(configuration.sequence_parallel && layout.tensor > 1)
        ),
        format!("parallelism.context_parallel_degree = {}", layout.context),
        format!("parallelism.expert_parallel_degree = {}", layout.expert),
        format!("parallelism.data_parallel_replicate_degree = {replicate}"),
        format!("parallelism.data_parallel_shard_degree = {shard}"),
    ];
    if listed {
        sets.push(format!("parallelism.pipeline_parallel_schedule_csv = {}", python::string(FILE)));
    }
    if layout.expert > 1 && settings.dispatcher.is_hierarchical() {
        let backend = python::string(settings.dispatcher.id());
        sets.push(format!("parallelism.expert_parallel_comm_backend = {backend}"));
    }
    if layout.context > 1 {
        let rotate = if settings.context_style == ContextStyle::AllGather { "allgather" } else { "alltoall" };
        sets.push(format!("parallelism.context_parallel_rotate_method = \"{rotate}\""));
    }
    if shards {
        let after = if settings.fsdp { "always" } else { "never" };
        sets.push(format!("parallelism.fsdp_reshard_after_forward = \"{after}\""));
    }
    let replicas = u64::from(layout.data);
    sets.extend(torchtitan::batch(stages as usize, Some(micro), run.microbatches(), replicas));
    sets.push(format!("config.training.seq_len = {}", run.sequence));
    sets.push(checkpoint.statement());
    if run.precision.bits() < 16 {
        sets.push(format!("# fill in: a converter of the model for {} (torchao)", run.precision.id()));
    } else if run.precision == TrainingPrecision::Fp32 {
        sets.push("config.training.mixed_precision_param = \"float32\"".into());
    }
    if settings.tp_overlap && layout.tensor > 1 {
        sets.extend(torchtitan::ASYNC.map(String::from));
    } else if settings.fused_elementwise {
        sets.extend(torchtitan::COMPILE.map(String::from));
    }
    // CUDA graphs, on by default, refuse the exchange of tokens. With a pipeline the batch switches them off.
    if profile.model.has_experts() && stages == 1 {
        sets.push("config.training.disable_cuda_graphs = True".into());
    }
    let mut head = vec![format!("{} ranks on {}: {layout}", layout.devices(), profile.accelerator.id)];
    head.extend([torchtitan::SAVE.into(), torchtitan::VERSION.into()]);
    head.extend(launch::of_run(Engine::TorchTitan, run, spread, torchtitan::PROGRAM));
    RegistryEntry { head, base, checkpoint, parts: &parts, sets }.text()
}

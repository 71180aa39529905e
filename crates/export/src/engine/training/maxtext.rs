//! MaxText's configuration of a training workload: axes of the mesh, batch, precision, recomputation and model, in YAML.
//!
//! Names follow `base.yml` of MaxText 0.2, as in `engine::maxtext`. Weights are divided over the `fsdp` axis, the
//! optimizer's state alone over `data`; experts are an axis beside both.

use super::super::{launch, maxtext};
use super::program;
use plantui_core::{
    family::training::{AttentionKernel, ContextStyle, Recompute, TrainingPrecision, TrainingRun},
    workload::{TrainingProfile, recipe::ModelShape},
};

/// Launch comments without their marks, for machines of `each` devices.
pub(super) fn launch(run: &TrainingRun, each: u32) -> Vec<String> {
    let machines = u32::try_from(run.layout.devices()).unwrap_or(u32::MAX) / each.max(1);
    let start = "python3 -m maxtext.trainers.pre_train.train THIS_FILE run_name=plan hardware=gpu_multiprocess";
    let environment = format!("export NNODES={machines} JAX_COORDINATOR_IP=$HEAD JAX_COORDINATOR_PORT=29500");
    let mut lines = vec![
        "launch on every machine ($HEAD is the name of the first, $RANK counts from 0):".to_string(),
        format!("  {environment} NODE_RANK=$RANK"),
        format!("  {start}"),
    ];
    lines.extend(launch::script(
        machines,
        each,
        &[environment, format!("srun bash -c 'NODE_RANK=$SLURM_NODEID {start}'")],
    ));
    lines
}

/// Content of the file, for machines of `each` devices.
pub(super) fn text(profile: &TrainingProfile, run: &TrainingRun, each: u32) -> String {
    let (layout, settings) = (&run.layout, &run.settings);
    let mut rows: Vec<(String, String)> = vec![];
    let mut row = |name: &str, value: String| rows.push((name.to_string(), value));
    row("base_config", "\"base.yml\"".into());
    let ranks = layout.data / layout.expert.max(1);
    let divided = if settings.fsdp { (run.shards(f64::from(layout.data)) as u32 / layout.expert).max(1) } else { 1 };
    let axes = [
        ("tensor", layout.tensor),
        ("expert", layout.expert),
        ("context", layout.context),
        ("fsdp", divided),
        ("data", ranks / divided.max(1)),
    ];
    for (axis, inner, outer) in maxtext::mesh(axes, each) {
        row(&format!("ici_{axis}_parallelism"), inner.to_string());
        row(&format!("dcn_{axis}_parallelism"), outer.to_string());
    }
    row("shard_optimizer_over_data", (settings.zero() == 1).to_string());
    if layout.context > 1 {
        let word = match settings.context_style {
            ContextStyle::AllGather => "all_gather",
            ContextStyle::Ring => "ring",
            ContextStyle::AllToAll | ContextStyle::Hierarchical => "ulysses",
        };
        row("context_parallel_strategy", format!("\"{word}\""));
    }
    let group = layout.tensor * layout.context;
    row("per_device_batch_size", (f64::from(layout.micro_batch) / f64::from(group)).to_string());
    row("gradient_accumulation_steps", run.microbatches().to_string());
    row("max_target_length", run.sequence.to_string());
    let policy = match run.recompute {
        Recompute::Selective(modules) => match program::policy(modules).unwrap_or("minimal") {
            "minimal" => "minimal_with_context",
            other => other,
        },
        _ => "full",
    };
    row("remat_policy", format!("\"{policy}\""));
    row("dtype", if run.precision == TrainingPrecision::Fp32 { "\"float32\"" } else { "\"bfloat16\"" }.into());
    row("weight_dtype", "\"float32\"".into());
    row("grad_dtype", if settings.gradient_bytes == 4 { "\"float32\"" } else { "\"bfloat16\"" }.into());
    match run.precision {
        TrainingPrecision::Fp8 => row("quantization", "\"te_fp8_currentscaling\"".into()),
        TrainingPrecision::MxFp8 => row("quantization", "\"te_mxfp8\"".into()),
        TrainingPrecision::NvFp4 => row("quantization", "\"te_nvfp4\"".into()),
        _ => {}
    }
    let kernel = if settings.attention == AttentionKernel::Unfused { "dot_product" } else { "cudnn_flash_te" };
    row("attention", format!("\"{kernel}\""));
    row("optimizer_memory_host_offload", settings.optimizer_offload.to_string());
    row("parameter_memory_host_offload", settings.parameter_offload.to_string());
    if settings.parameter_offload {
        // The engine demands it.
        row("param_scan_axis", "0".into());
    }
    match ModelShape::of(&profile.model) {
        Some(model) => rows.extend(maxtext::sizes(&model)),
        None => rows.push(("# model_name".into(), "fill in: the sizes of this model have no settings".into())),
    }
    rows.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
}

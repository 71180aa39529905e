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

/// Launch comments without their marks.
pub(super) fn launch(spread: launch::Spread) -> Vec<String> {
    let machines = spread.machines;
    let start = "python3 -m maxtext.trainers.pre_train.train THIS_FILE run_name=plan hardware=gpu";
    let environment = format!("export NNODES={machines} JAX_COORDINATOR_IP=$HEAD JAX_COORDINATOR_PORT=29500");
    let mut lines = vec![
        "launch on every machine ($HEAD is the name of the first, $RANK counts from 0):".to_string(),
        format!("  {environment} NODE_RANK=$RANK"),
        format!("  {start}"),
    ];
    lines.extend(launch::script(spread, &[environment, format!("srun bash -c 'NODE_RANK=$SLURM_NODEID {start}'")]));
    lines
}

/// Degree of the axis that divides weights, beside those of context and experts, which divide them too.
pub(super) fn fsdp_axis(run: &TrainingRun) -> u32 {
    let layout = &run.layout;
    let ranks = f64::from(layout.data) * f64::from(layout.context);
    let wanted = (run.shards(ranks) as u32 / (layout.context * layout.expert)).max(1);
    let data = (layout.data / layout.expert).max(1);
    (1..=wanted.min(data)).rev().find(|axis| data.is_multiple_of(*axis)).unwrap_or(1)
}

/// Content of the file.
pub(super) fn text(profile: &TrainingProfile, run: &TrainingRun, spread: launch::Spread) -> String {
    let (layout, settings) = (&run.layout, &run.settings);
    let mut rows: Vec<(String, String)> = vec![];
    let mut row = |name: &str, value: String| rows.push((name.to_string(), value));
    row("base_config", "\"base.yml\"".into());
    let ranks = layout.data / layout.expert.max(1);
    let divided = if settings.fsdp { fsdp_axis(run) } else { 1 };
    let axes = [
        ("tensor", layout.tensor),
        ("expert", layout.expert),
        ("context", layout.context),
        ("fsdp", divided),
        ("data", ranks / divided.max(1)),
    ];
    for (axis, inner, outer) in maxtext::mesh(axes, spread.each) {
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

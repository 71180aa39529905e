//! accelerate's configuration of a training workload: FSDP2 with tensor and context parallelism, or plain data
//! parallelism, in YAML.
//!
//! Names follow `commands/config/config_args.py` and `commands/launch.py` of accelerate 1.15. The file has no field for
//! batch and sequence length: they stand in its comment, and in the flags of the launch for transformers' programs.

use super::super::launch;
use plantui_core::family::training::{ContextStyle, Recompute, TrainingPrecision, TrainingRun};

/// Launch comments without their marks.
pub(super) fn launch(run: &TrainingRun, spread: launch::Spread) -> Vec<String> {
    let precision = match run.precision {
        TrainingPrecision::Fp16 => " --fp16",
        TrainingPrecision::Bf16 => " --bf16",
        // The file states the format; a flag of the program would replace it.
        _ => "",
    };
    let checkpointing = if run.recompute == Recompute::Full && !shards(run) { " --gradient_checkpointing" } else { "" };
    let program = format!(
        "your_script.py --per_device_train_batch_size {} --gradient_accumulation_steps {}{precision}{checkpointing}",
        run.layout.micro_batch,
        run.microbatches()
    );
    let start = |rank: &str| {
        format!(
            "accelerate launch --config_file THIS_FILE --machine_rank {rank} --main_process_ip $HEAD \
             --main_process_port 29500 {program}"
        )
    };
    let mut lines = vec![format!("launch on every machine ($HEAD is the name of the first, $RANK counts from 0):")];
    lines.push(format!("  {}", start("$RANK")));
    lines.extend(launch::script(spread, &[format!("srun bash -c '{}'", start("$SLURM_NODEID"))]));
    lines
}

/// True if FSDP divides the weights' state.
fn shards(run: &TrainingRun) -> bool {
    run.settings.zero() > 0
}

/// Content of the file.
pub(super) fn text(run: &TrainingRun, spread: launch::Spread) -> String {
    let (layout, settings) = (&run.layout, &run.settings);
    let devices = u32::try_from(layout.devices()).unwrap_or(u32::MAX);
    let machines = spread.machines;
    let mut lines: Vec<String> = vec![];
    let mut row = |name: &str, value: &str| lines.push(format!("{name}: {value}"));
    let kind = match (shards(run), devices) {
        (true, _) => "FSDP",
        (false, 1) => "\"NO\"",
        (false, _) => "MULTI_GPU",
    };
    row("compute_environment", "LOCAL_MACHINE");
    row("distributed_type", kind);
    row(
        "mixed_precision",
        match run.precision {
            TrainingPrecision::Fp32 => "\"no\"",
            TrainingPrecision::Fp16 => "fp16",
            TrainingPrecision::Bf16 => "bf16",
            _ => "fp8",
        },
    );
    row("num_machines", &machines.to_string());
    row("num_processes", &devices.to_string());
    row("rdzv_backend", "c10d");
    if run.precision.bits() < 16 {
        row("fp8_config", "");
        row("  backend", "TE");
    }
    if !shards(run) {
        return lines.join("\n") + "\n";
    }
    let truth = |value: bool| if value { "true" } else { "false" };
    row("fsdp_config", "");
    row("  fsdp_version", "2");
    row("  fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
    row("  fsdp_reshard_after_forward", truth(settings.fsdp));
    row("  fsdp_offload_params", truth(settings.parameter_offload));
    row("  fsdp_activation_checkpointing", truth(run.recompute == Recompute::Full));
    row("  fsdp_cpu_ram_efficient_loading", "true");
    row("  fsdp_state_dict_type", "SHARDED_STATE_DICT");
    // Context ranks share a copy of the weights.
    let ranks = f64::from(layout.data) * f64::from(layout.context);
    let shard = (run.shards(ranks) as u32 / layout.context).max(1);
    let replicate = layout.data / shard.max(1);
    if layout.tensor > 1 || layout.context > 1 || replicate > 1 {
        row("parallelism_config", "");
        row("  parallelism_config_dp_replicate_size", &replicate.to_string());
        row("  parallelism_config_dp_shard_size", &shard.to_string());
        row("  parallelism_config_tp_size", &layout.tensor.to_string());
        row("  parallelism_config_cp_size", &layout.context.to_string());
        if layout.context > 1 {
            let gathers = settings.context_style == ContextStyle::AllGather;
            row("  parallelism_config_cp_comm_strategy", if gathers { "allgather" } else { "alltoall" });
        }
    }
    lines.iter().map(|line| line.trim_end().to_string() + "\n").collect()
}

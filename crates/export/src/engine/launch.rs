//! Launch commands of a plan's ranks for torchrun and SLURM: a comment above every engine's text.
//!
//! Ranks are numbered as in all these engines: tensor parts fastest, then replicas, then stages. Plans number devices
//! the same way. If a plan was mapped onto a topology, the devices of its ranks are listed in that order. Source: the
//! documentation of torchrun (torch 2.15) and SLURM (24.11).

use super::{Engine, job::EngineJob, megatron_model};
use plantui_core::{cluster::Limits, family::training::TrainingRun, plan::Plan};

/// Launch comments of a training run, without their marks: ranks, torchrun and SLURM lines, and the environment.
pub(super) fn of_run(engine: Engine, run: &TrainingRun, program: &str) -> Vec<String> {
    let layout = &run.layout;
    let devices = u32::try_from(layout.devices()).unwrap_or(u32::MAX);
    let each = (1..=OF_A_MACHINE.min(devices)).rev().find(|each| devices.is_multiple_of(*each)).unwrap_or(1);
    let mut lines = commands(devices, each, "tensor ranks are neighbours, then context, data and pipeline", program);
    let settings = &run.settings;
    let split = layout.tensor > 1 || layout.context > 1;
    // Megatron-FSDP must not have it; tensor and context parallelism without FSDP need it.
    if matches!(engine, Engine::Megatron | Engine::MegatronBridge)
        && split
        && !settings.fsdp
        && !settings.shard_gradients
    {
        lines.insert(1, CONNECTIONS.into());
    }
    lines
}

/// Environment of tensor or context parallelism in Megatron-Core.
const CONNECTIONS: &str =
    "environment: CUDA_DEVICE_MAX_CONNECTIONS=1 (before Blackwell: tensor parts then overlap with transfers)";

/// Commands that start a program on all ranks.
fn commands(devices: u32, each: u32, order: &str, program: &str) -> Vec<String> {
    let machines = devices / each;
    vec![
        format!("launch: {devices} ranks, {each} on each of {machines} machines; {order}"),
        "with torchrun, on every machine ($HEAD is the name of the first):".into(),
        format!(
            "  torchrun --nnodes {machines} --nproc-per-node {each} --rdzv-id plan --rdzv-backend c10d --rdzv-endpoint $HEAD:29500 {program}"
        ),
        format!("with SLURM, in a job of #SBATCH --nodes={machines} --ntasks-per-node=1 --gpus-per-node={each}:"),
        "  HEAD=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)".into(),
        format!(
            "  srun torchrun --nnodes {machines} --nproc-per-node {each} --rdzv-id $SLURM_JOB_ID --rdzv-backend c10d --rdzv-endpoint $HEAD:29500 {program}"
        ),
    ]
}

/// Devices per machine if the limits do not state machines.
const OF_A_MACHINE: u32 = 8;

/// Launch comment, line by line. Empty if the engine starts its ranks itself or the format has no comments.
pub(super) fn text(engine: Engine, job: &EngineJob<'_>, limits: &Limits, plan: &Plan) -> String {
    let Some(program) = program(engine, job).filter(|_| engine.takes_comments()) else { return String::new() };
    let (d, t, devices) = (job.data_parallel(), job.tensor_parallel(), job.cut.devices());
    let each = each_machine(limits, devices);
    let mut lines = commands(devices, each, &order(d, t), &program);
    if matches!(engine, Engine::Megatron | Engine::MegatronBridge) && t > 1 {
        lines.insert(1, CONNECTIONS.into());
    }
    let mapped: Vec<u32> = plan.stages.iter().flat_map(|stage| stage.devices.iter().copied()).collect();
    if !mapped.is_sorted() {
        lines.push("the mapping puts rank 0, 1, .. on these devices of the topology (export --to rank-file: machine and CUDA_VISIBLE_DEVICES of each):".into());
        lines.push(format!("  {}", mapped.iter().map(u32::to_string).collect::<Vec<_>>().join(",")));
    }
    lines.iter().map(|line| format!("# {line}\n")).collect()
}

/// Devices per machine on equal machines: the largest divisor of all devices up to one machine's size.
pub(crate) fn each_machine(limits: &Limits, devices: u32) -> u32 {
    let most = if limits.machines.is_empty() {
        OF_A_MACHINE
    } else {
        limits.machines.sizes().first().map_or(1, |&size| u32::from(size).max(1))
    };
    (1..=most.min(devices)).rev().find(|each| devices.is_multiple_of(*each)).unwrap_or(1)
}

/// Program that torchrun starts.
fn program(engine: Engine, job: &EngineJob<'_>) -> Option<String> {
    match engine {
        Engine::Megatron => Some(format!("{} FLAGS", megatron_model::program(job.model().as_ref()))),
        Engine::MegatronBridge => Some("your_recipe.py".into()),
        Engine::DeepSpeed | Engine::Torch => Some("your_script.py".into()),
        Engine::TorchTitan => Some(super::torchtitan::PROGRAM.into()),
        Engine::TorchSchedule | Engine::Galvatron | Engine::Vllm | Engine::MaxText => None,
    }
}

/// Order of the ranks.
fn order(d: u32, t: u32) -> String {
    let replica =
        if t > 1 { format!("{t} * ({d} * stage + replica) + tensor part") } else { format!("{d} * stage + replica") };
    format!("rank = {replica}")
}

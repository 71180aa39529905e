//! Launch commands of a plan's ranks for torchrun and SLURM: a comment above every engine's text.
//!
//! Ranks are numbered as in all these engines: tensor parts fastest, then replicas, then stages. Plans number devices
//! the same way. If a plan was mapped onto a topology, the devices of its ranks are listed in that order. Source: the
//! documentation of torchrun (torch 2.15) and SLURM (24.11).

use super::{Engine, job::EngineJob, megatron_model};
use plantui_core::{cluster::Limits, family::training::TrainingRun, plan::Plan};

/// Ranks on machines: full ones, and a last one with the rest. Plans fill machines in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spread {
    /// Ranks on every machine but the last.
    pub(crate) each: u32,
    /// Machines.
    pub(crate) machines: u32,
    /// Ranks on the last machine.
    pub(crate) last: u32,
}

impl Spread {
    /// Spread of ranks over machines of the limits' size, or of eight devices.
    pub(crate) fn of(limits: &Limits, devices: u32) -> Self {
        let size = if limits.machines.is_empty() {
            OF_A_MACHINE
        } else {
            limits.machines.sizes().first().map_or(1, |&size| u32::from(size).max(1))
        };
        let devices = devices.max(1);
        let each = size.min(devices);
        let machines = devices.div_ceil(each);
        Spread { each, machines, last: devices - (machines - 1) * each }
    }

    /// True if all machines have equally many ranks.
    pub(crate) fn is_even(self) -> bool {
        self.last == self.each
    }

    /// Argument of torchrun: the ranks of this machine. If they differ, those of the devices that it sees.
    fn processes(self) -> String {
        if self.is_even() { self.each.to_string() } else { "gpu".into() }
    }

    /// Ranks on the machines, in words, and what the last machine needs.
    pub(super) fn told(self, order: &str) -> Vec<String> {
        let Spread { each, machines, last } = self;
        let devices = each * (machines - 1) + last;
        let full = if self.is_even() { machines } else { machines - 1 };
        let full = if full == 1 { "1 machine".into() } else { format!("{full} machines") };
        let rest = if self.is_even() { String::new() } else { format!(" and {last} on the last") };
        let mut lines = vec![format!("launch: {devices} ranks, {each} on each of {full}{rest}; {order}")];
        if !self.is_even() {
            let visible: Vec<String> = (0..last).map(|device| device.to_string()).collect();
            lines.push(format!("on the last machine by name: export CUDA_VISIBLE_DEVICES={}", visible.join(",")));
        }
        lines
    }
}

/// Launch comments of a training run, without their marks: ranks, torchrun and SLURM lines, and the environment.
pub(super) fn of_run(engine: Engine, run: &TrainingRun, spread: Spread, program: &str) -> Vec<String> {
    let environment = if connects(engine, run) { vec![CONNECTIONS] } else { vec![] };
    commands(spread, ORDER, (&environment, program))
}

/// Order of the ranks of a training run.
pub(super) const ORDER: &str = "tensor ranks are neighbours, then context, data and pipeline";

/// True if a run of Megatron-Core needs [`CONNECTIONS`]: with tensor or context parallelism, and without FSDP.
pub(super) fn connects(engine: Engine, run: &TrainingRun) -> bool {
    let (layout, settings) = (&run.layout, &run.settings);
    let split = layout.tensor > 1 || layout.context > 1;
    let own = matches!(engine, Engine::Megatron | Engine::MegatronBridge);
    own && split && !settings.fsdp && !settings.shard_gradients
}

/// Environment of tensor or context parallelism in Megatron-Core. Tensor parts then overlap with transfers.
pub(super) const CONNECTIONS: &str = "export CUDA_DEVICE_MAX_CONNECTIONS=1";

/// Lines of an sbatch script that sets `HEAD` and runs `body`.
pub(super) fn script(spread: Spread, body: &[String]) -> Vec<String> {
    let mut lines = vec!["with SLURM, as a script for sbatch:".to_string(), "  #!/bin/bash".into()];
    lines.extend(requests(spread).map(|request| format!("  {request}")));
    lines.push(format!("  {HEAD}"));
    lines.extend(body.iter().map(|line| format!("  {line}")));
    lines
}

/// Lines that start a program on all machines of a SLURM job, or on this one of machines without SLURM.
pub(super) fn either(spread: Spread, program: &str) -> String {
    let (machines, processes) = (spread.machines, spread.processes());
    format!(
        "HEAD=${{HEAD:-$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)}}\n\
         ${{SLURM_JOB_ID:+srun}} torchrun --nnodes {machines} --nproc-per-node {processes} \
         --rdzv-id \"${{SLURM_JOB_ID:-plan}}\" \\\n  --rdzv-backend c10d --rdzv-endpoint \"$HEAD:29500\" {program}\n"
    )
}

/// Requests of a job with one task on every machine.
pub(super) fn requests(spread: Spread) -> [String; 3] {
    [
        format!("#SBATCH --nodes={}", spread.machines),
        "#SBATCH --ntasks-per-node=1".into(),
        format!("#SBATCH --gpus-per-node={}", spread.each),
    ]
}

/// Name of the first machine of a SLURM job.
const HEAD: &str = "export HEAD=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)";

/// Commands that start a program on all ranks.
fn commands(spread: Spread, order: &str, (environment, program): (&[&str], &str)) -> Vec<String> {
    let (machines, processes) = (spread.machines, spread.processes());
    let start = |id: &str| {
        format!(
            "torchrun --nnodes {machines} --nproc-per-node {processes} --rdzv-id {id} --rdzv-backend c10d --rdzv-endpoint $HEAD:29500 {program}"
        )
    };
    let mut lines = spread.told(order);
    lines.push("with torchrun, on every machine ($HEAD is the name of the first):".into());
    lines.extend(environment.iter().map(|line| format!("  {line}")));
    lines.push(format!("  {}", start("plan")));
    let mut body: Vec<String> = environment.iter().map(ToString::to_string).collect();
    body.push(format!("srun {}", start("$SLURM_JOB_ID")));
    lines.extend(script(spread, &body));
    lines
}

/// Devices per machine if the limits do not state machines.
const OF_A_MACHINE: u32 = 8;

/// Launch comment, line by line. Empty if the engine starts its ranks itself or the format has no comments.
pub(super) fn text(engine: Engine, job: &EngineJob<'_>, limits: &Limits, plan: &Plan) -> String {
    let Some(program) = program(engine, job).filter(|_| engine.takes_comments()) else { return String::new() };
    let (d, t, devices) = (job.data_parallel(), job.tensor_parallel(), job.cut.devices());
    let own = matches!(engine, Engine::Megatron | Engine::MegatronBridge) && t > 1;
    let environment = if own { vec![CONNECTIONS] } else { vec![] };
    let mut lines = commands(Spread::of(limits, devices), &order(d, t), (&environment, &program));
    let mapped: Vec<u32> = plan.stages.iter().flat_map(|stage| stage.devices.iter().copied()).collect();
    if !mapped.is_sorted() {
        lines.push("the mapping puts rank 0, 1, .. on these devices of the topology (export --to rank-file: machine and CUDA_VISIBLE_DEVICES of each):".into());
        lines.push(format!("  {}", mapped.iter().map(u32::to_string).collect::<Vec<_>>().join(",")));
    }
    lines.iter().map(|line| format!("# {line}\n")).collect()
}

/// Devices per machine on equal machines, for engines that need them: the largest divisor of all devices up to one
/// machine's size.
pub(super) fn each_of_equal(limits: &Limits, devices: u32) -> u32 {
    let most = Spread::of(limits, devices).each;
    (1..=most).rev().find(|each| devices.is_multiple_of(*each)).unwrap_or(1)
}

/// Program that torchrun starts.
fn program(engine: Engine, job: &EngineJob<'_>) -> Option<String> {
    match engine {
        Engine::Megatron => Some(format!("{} FLAGS", megatron_model::program(job.model().as_ref()))),
        Engine::MegatronBridge => Some("your_recipe.py".into()),
        Engine::DeepSpeed | Engine::Torch => Some("your_script.py".into()),
        Engine::TorchTitan => Some(super::torchtitan::PROGRAM.into()),
        Engine::Galvatron | Engine::Vllm | Engine::MaxText | Engine::Accelerate => None,
    }
}

/// Order of the ranks.
fn order(d: u32, t: u32) -> String {
    let replica =
        if t > 1 { format!("{t} * ({d} * stage + replica) + tensor part") } else { format!("{d} * stage + replica") };
    format!("rank = {replica}")
}

//! A run as the simulator takes it: stages with passes, reductions and memory.
//!
//! What a rank waits for while it sends or receives is part of its passes, half in each direction, since the engines' sends
//! between stages are not hidden. Everything else, from warm-up to drain, is the simulator's own: it shares no formula with
//! the closed form, for any split of layers. `O(p)` time and memory.

use super::{
    Run,
    iteration::Costs,
    memory::{self, StageMemory},
};
use crate::simulate::{self, MemoryParts, Pipeline, PipelineStage, Schedule, Settings, Transfer};

/// The pipeline of one replica.
pub fn pipeline(run: &Run, costs: &Costs, memory: &[StageMemory]) -> Pipeline {
    let waits = costs.transfer * f64::from(costs.virtual_stages) / 2.0;
    let stages: Vec<PipelineStage> = costs
        .stages
        .iter()
        .enumerate()
        .map(|(index, stage)| {
            let held = &memory[index];
            PipelineStage {
                forward_s: stage.forward_s() + waits,
                backward_s: stage.backward_s() + waits,
                recompute_s: stage.again.total(),
                replicas: 1,
                devices: run.layout.tensor * run.layout.context,
                all_reduce_s: costs.reductions[index].data_parallel,
                gradient_bytes: held.gradients,
                fixed_bytes: held.state() + held.work,
                parts: MemoryParts {
                    weights: held.weights,
                    gradients: held.gradients,
                    optimizer: held.optimizer,
                    ..MemoryParts::default()
                },
                activation_bytes: held.activations / memory::in_flight(run, index),
                warm_up: None,
            }
        })
        .collect();
    let optimizer = costs.reductions.iter().map(|reduction| reduction.optimizer).fold(0.0, f64::max);
    let chain = 1..stages.len();
    Pipeline {
        // Their time is in the passes; what goes over is told all the same.
        transfers: chain.map(|to| Transfer { from: to - 1, to, seconds: 0.0, bytes: 0.0 }).collect(),
        stages,
        microbatches: u32::try_from(costs.microbatches).unwrap_or(u32::MAX),
        samples: f64::from(run.layout.micro_batch),
        settings: Settings { virtual_stages: costs.virtual_stages, optimizer_step_s: optimizer, ..Settings::default() },
        ..Pipeline::default()
    }
}

/// The schedule of the run.
pub fn schedule(run: &Run) -> Schedule {
    if run.layout.virtual_stages > 1 { Schedule::Interleaved } else { Schedule::OneForwardOneBackward }
}

/// An iteration's time by the simulator, seconds; the cluster's size and what is fixed come on top as in the closed form.
pub fn iteration(run: &Run, costs: &Costs, memory: &[StageMemory]) -> f64 {
    let pipeline = pipeline(run, costs, memory);
    let simulated = simulate::length_unless(&pipeline, schedule(run), &|| false).unwrap_or(f64::NAN);
    simulated * costs.growth + costs.fixed
}

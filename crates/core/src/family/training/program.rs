//! Converts a run to the simulator's input: stages with passes, reductions and memory.
//!
//! A rank's waits for sends and receives are part of its passes, half in each direction, since the engines' sends
//! between stages are exposed. Everything else, from warm-up to drain, is simulated: it shares no formula with the
//! closed form, for any split of layers. `O(p)` time and memory.

use super::{
    configured,
    iteration::IterationCosts,
    memory::{self, StageMemory},
};
use crate::simulate::{self, MemoryParts, Pipeline, PipelineStage, Schedule, SimulatorSettings, Transfer};
use crate::workload::training::{model::Model, run::TrainingRun};

/// Pipeline of one replica.
pub fn pipeline(run: &TrainingRun, costs: &IterationCosts, memory: &[StageMemory]) -> Pipeline {
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
                sends_s: [costs.transfer; 2],
                weight_gradient_s: Some(stage.weights),
                paired_saving_s: stage.saved,
                listed_saving_s: 0.0,
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
        // Their time is in the passes, but their traffic is still reported.
        transfers: chain.map(|to| Transfer { from: to - 1, to, seconds: 0.0, bytes: 0.0 }).collect(),
        stages,
        microbatches: u32::try_from(costs.microbatches).unwrap_or(u32::MAX),
        samples: f64::from(run.layout.micro_batch),
        settings: SimulatorSettings {
            virtual_stages: costs.virtual_stages,
            optimizer_step_s: optimizer,
            ..SimulatorSettings::default()
        },
        ..Pipeline::default()
    }
}

/// Schedule of the run.
pub fn schedule(run: &TrainingRun) -> Schedule {
    match run.zero_bubble {
        Some(schedule) => configured::schedule_of(schedule),
        None if run.layout.virtual_stages > 1 => Schedule::Interleaved,
        None => Schedule::OneForwardOneBackward,
    }
}

/// Pipeline of the whole iteration. The growth with the cluster and the fixed time are in the durations, so that the
/// simulated length is the iteration time.
pub fn whole(model: &Model, run: &TrainingRun, costs: &IterationCosts, memory: &[StageMemory]) -> Pipeline {
    let mut pipeline = pipeline(run, costs, memory);
    for stage in &mut pipeline.stages {
        for seconds in [&mut stage.forward_s, &mut stage.backward_s, &mut stage.recompute_s, &mut stage.all_reduce_s] {
            *seconds *= costs.growth;
        }
        stage.paired_saving_s *= costs.growth;
        stage.weight_gradient_s = stage.weight_gradient_s.map(|seconds| seconds * costs.growth);
        stage.parts.buffers += run.settings.reserve_bytes;
        stage.fixed_bytes += run.settings.reserve_bytes;
    }
    // Each boundary is crossed once per virtual stage.
    let bytes = 2.0 * run.tokens() * model.hidden as f64 / f64::from(run.layout.tensor);
    pipeline.transfers.iter_mut().for_each(|transfer| transfer.bytes = bytes);
    pipeline.settings.optimizer_step_s = pipeline.settings.optimizer_step_s * costs.growth + costs.fixed;
    pipeline.samples *= f64::from(run.layout.data);
    pipeline.interleaved = run.layout.virtual_stages > 1 && run.zero_bubble.is_none();
    pipeline.routed = true;
    pipeline.notes = vec![
        "sends between stages are exposed: half of each counts in the pass before it, half in the pass after it".into(),
        "the step at the end holds the optimizer and the fixed overhead of an iteration".into(),
    ];
    pipeline
}

/// Iteration time from the simulator, seconds.
pub fn iteration(model: &Model, run: &TrainingRun, costs: &IterationCosts, memory: &[StageMemory]) -> f64 {
    let pipeline = whole(model, run, costs, memory);
    simulate::length_unless(&pipeline, schedule(run), &|| false).unwrap_or(f64::NAN)
}

//! Converts a plan over machines to the simulator's input.

use crate::{
    cluster::Limits,
    family::layers::costs::{self, LayerStage},
    plan::{Measure, Plan},
    simulate::{MemoryParts, Pipeline, PipelineStage, SimulatorSettings, Transfer},
    workload::{LayerProfile, Workload},
};

/// Pipeline of a plan over machines. All devices of a stage work on each microbatch together, each on its samples.
/// Enough microbatches are in flight to hide the transfers between stages, which are steps of their own.
pub(crate) fn pipeline(
    workload: &Workload,
    profile: &LayerProfile,
    limits: &Limits,
    plan: &Plan,
    settings: &SimulatorSettings,
) -> Pipeline {
    let overlap = if settings.overlap { "overlap" } else { "do not overlap" };
    let Measure::Speedup(model) = plan.measure else { return Pipeline::default() };
    let microbatches = costs::microbatches(&model, limits, plan);
    let costs = costs::stages(workload, profile, limits, plan, &model);
    let stage = |(i, cost): (usize, &LayerStage)| PipelineStage {
        forward_s: cost.forward_s,
        backward_s: cost.backward_s,
        recompute_s: cost.recompute_s,
        sends_s: [0.0; 2],
        paired_saving_s: 0.0,
        listed_saving_s: 0.0,
        replicas: 1,
        devices: plan.stages[i].device_count().max(1),
        all_reduce_s: cost.all_reduce_s,
        gradient_bytes: cost.parameter_bytes,
        fixed_bytes: cost.weight_bytes + cost.working_bytes,
        parts: MemoryParts {
            // The scaling factor counts the weights and all other training state.
            weights: cost.weight_bytes / model.optimizer_memory_scaling.max(1.0),
            buffers: cost.working_bytes,
            ..MemoryParts::default()
        },
        activation_bytes: cost.activation_bytes,
        warm_up: Some(2 * (costs.len() - 1 - i) as u32),
        weight_gradient_s: None,
    };
    // A cut without bytes still makes the later stage wait.
    let transfer = |(from, cost): (usize, &LayerStage)| Transfer {
        from,
        to: from + 1,
        seconds: cost.send_s,
        bytes: cost.send_bytes,
    };
    let notes = vec![
        "all devices of a stage compute a microbatch together, each a share of the samples".to_string(),
        format!("outputs for a later stage go through all stages between; transfers {overlap} with compute"),
        "a stage's gradients are all-reduced once an iteration, after its last backward".to_string(),
    ];
    Pipeline {
        stages: costs.iter().enumerate().map(stage).collect(),
        transfers: costs.iter().enumerate().take(costs.len().saturating_sub(1)).map(transfer).collect(),
        microbatches,
        samples: f64::from(limits.samples()) / f64::from(microbatches),
        samples_are_split: true,
        notes,
        ..Pipeline::default()
    }
}

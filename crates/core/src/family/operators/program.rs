//! Converts split operators to the simulator's input.

use crate::{
    cluster::Limits,
    family,
    plan::{NodeScore, Plan},
    simulate::{OperatorTimes, Pipeline, PipelineStage},
    workload::{NodeIndex, OperatorProfile, Workload},
};

/// Pipeline of operators split over one set of devices: one stage that runs them once, in sequence.
pub(crate) fn pipeline(workload: &Workload, limits: &Limits, plan: &Plan) -> Pipeline {
    let score = family::check(workload, limits, plan);
    let (Some(stage), Some(scored)) = (plan.stages.first(), score.stages.first()) else { return Pipeline::default() };
    let step = |(&node, cost): (&NodeIndex, &NodeScore)| {
        // A third of compute and of its all-reduces is forward. Data received in the forward pass returns as gradients.
        let forward_s = (cost.compute_s + cost.sync_s) / 3.0 + cost.communication_s / 2.0;
        OperatorTimes { node, forward_s, backward_s: cost.compute_s + cost.sync_s + cost.communication_s - forward_s }
    };
    let steps: Vec<OperatorTimes> = stage.nodes.iter().zip(&scored.nodes).map(step).collect();
    let stages = vec![PipelineStage {
        forward_s: steps.iter().map(|step| step.forward_s).sum(),
        backward_s: steps.iter().map(|step| step.backward_s).sum(),
        replicas: stage.data_parallel.max(1),
        devices: stage.tensor_parallel.max(1),
        all_reduce_s: 0.0,
        fixed_bytes: scored.memory_bytes,
        ..PipelineStage::default()
    }];
    let notes = vec![
        "operators run one after another on all devices, without overlap".to_string(),
        "a third of compute and all-reduces is the forward pass; transfers are half forward, half backward".to_string(),
        "every operator's output is kept until the end of the iteration".to_string(),
    ];
    let samples = workload.operators().and_then(OperatorProfile::samples).unwrap_or_default();
    Pipeline { stages, microbatches: 1, samples, steps, notes, ..Pipeline::default() }
}

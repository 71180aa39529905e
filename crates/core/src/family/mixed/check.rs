//! Scores a pipeline over several kinds of devices by its iteration time in closed form.
//!
//! `O(layers + stages · devices)`.

use super::{iteration::KindStageCost, layout};
use crate::{
    cluster::Limits,
    plan::{Measure, NodeScore, Plan, Score, Stage, StageScore, Violation},
    workload::mixed::{LayerMode, MixedProfile},
};

/// Rule of plans that are measured by their cost.
const NO_PRICE: &str =
    "its cost needs the price of each kind that it uses; write --devices 16xh100:2.50,32xa100-80:1.20";

pub(super) fn check(profile: &MixedProfile, limits: &Limits, plan: &Plan, score: &mut Score) {
    if !matches!(plan.measure, Measure::PipelineTime | Measure::IterationCost) {
        score.violations.push(Violation::UnknownMeasure { name: plan.measure.name() });
        return;
    }
    let pipeline = match layout::pipeline(profile, limits, plan) {
        Ok(pipeline) => pipeline,
        Err(broken) => {
            score.violations.extend(broken);
            return;
        }
    };
    for (index, stage) in pipeline.stages.iter().enumerate() {
        let mode = LayerMode { micro_batch: pipeline.micro_batch, recompute: stage.recompute };
        if profile.costs(stage.kind, stage.tensor, mode).is_none() {
            score.violations.push(Violation::UnknownChoice {
                stage: index + 1,
                node: format!("a layer on {}", profile.kinds[stage.kind].id),
                choice: mode.to_string(),
                tensor_parallel: stage.tensor,
            });
        }
    }
    let Some(costs) = pipeline.costs(profile) else { return };
    let microbatches = f64::from(pipeline.microbatches());
    for (index, (stage, cost)) in pipeline.stages.iter().zip(&costs).enumerate() {
        let scored = stage_score(cost, microbatches, &plan.stages[index]);
        let limit_bytes = profile.kinds[stage.kind].memory_bytes;
        if scored.memory_bytes > limit_bytes {
            let needed_bytes = scored.memory_bytes;
            score.violations.push(Violation::OutOfMemory { stage: index + 1, needed_bytes, limit_bytes });
        }
        score.slowest_s = score.slowest_s.max(scored.load_s);
        score.stages.push(scored);
    }
    score.value = pipeline.iteration_s(profile, &costs);
    if plan.measure == Measure::IterationCost {
        match pipeline.cost(profile, score.value) {
            Some(cost) => score.value = cost,
            None => {
                score.measure = Measure::PipelineTime;
                score.violations.push(Violation::Refused { rule: NO_PRICE.into() });
            }
        }
    }
}

fn stage_score(cost: &KindStageCost, microbatches: f64, stage: &Stage) -> StageScore {
    let compute_s = cost.forward_s + cost.backward_s;
    let communication_s = cost.activations_s + cost.gradients_s;
    let sync_s = cost.reduction_s / microbatches;
    let count = stage.nodes.len().max(1) as f64;
    let node = NodeScore {
        compute_s: compute_s / count,
        communication_s: communication_s / count,
        sync_s: sync_s / count,
        memory_bytes: cost.memory_bytes() / count,
    };
    StageScore {
        compute_s,
        communication_s,
        sync_s,
        load_s: compute_s + communication_s + sync_s,
        backward_s: cost.backward_s + cost.gradients_s,
        backward_compute_s: cost.backward_s,
        memory_bytes: cost.memory_bytes(),
        activation_bytes: cost.activation_bytes * f64::from(cost.in_flight),
        in_flight: cost.in_flight,
        nodes: vec![node; stage.nodes.len()],
        ..StageScore::default()
    }
}

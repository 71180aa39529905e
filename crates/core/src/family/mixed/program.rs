//! Converts a pipeline over several kinds of devices to the simulator's input: one of its replicas, whose transfers are
//! part of the passes before them. `O(layers)`.

use super::layout;
use crate::{
    cluster::Limits,
    plan::Plan,
    simulate::{MemoryParts, Pipeline, PipelineStage, SimulatorSettings, Transfer},
    workload::mixed::{MixedProfile, TimeRule},
};

pub(super) fn pipeline(profile: &MixedProfile, limits: &Limits, plan: &Plan) -> Pipeline {
    let Ok(pipeline) = layout::pipeline(profile, limits, plan) else { return Pipeline::default() };
    let Some(costs) = pipeline.costs(profile) else { return Pipeline::default() };
    let grown = profile.factor(pipeline.devices(profile.kinds.len()).iter().sum());
    let mut update_s = costs.iter().map(|cost| cost.update_s).fold(0.0, f64::max);
    let stages: Vec<PipelineStage> = costs
        .iter()
        .zip(&pipeline.stages)
        .map(|(cost, stage)| {
            let mut all_reduce_s = cost.reduction_s;
            if profile.rule == TimeRule::Stages {
                // The step of each stage follows its own reduction.
                all_reduce_s += cost.update_s;
                update_s = 0.0;
            }
            // A link that needs longer than the passes delays them.
            let wait_s = (cost.period_s() - cost.slot_s()) / 2.0;
            let sends = pipeline.data > 1;
            let gradient_bytes: f64 = profile.gradient_bytes[stage.layers.clone()].iter().sum();
            PipelineStage {
                forward_s: grown * (cost.forward_s + cost.activations_s + wait_s),
                backward_s: grown * (cost.backward_s + cost.gradients_s + wait_s),
                sends_s: [cost.activations_s, cost.gradients_s].map(|seconds| grown * seconds / profile.exposed),
                replicas: 1,
                devices: stage.tensor,
                all_reduce_s: grown * all_reduce_s,
                gradient_bytes: if sends { gradient_bytes / f64::from(stage.tensor) } else { 0.0 },
                fixed_bytes: cost.reserve_bytes + cost.state_bytes,
                parts: MemoryParts { buffers: cost.reserve_bytes, ..MemoryParts::default() },
                activation_bytes: cost.activation_bytes,
                ..PipelineStage::default()
            }
        })
        .collect();
    let microbatches = pipeline.microbatches();
    let bytes =
        |stage: usize| profile.output_bytes[pipeline.stages[stage].layers.end - 1] * f64::from(pipeline.micro_batch);
    Pipeline {
        transfers: (1..stages.len())
            .map(|to| Transfer { from: to - 1, to, seconds: 0.0, bytes: bytes(to - 1) })
            .collect(),
        stages,
        microbatches,
        samples: f64::from(pipeline.batch) / f64::from(microbatches),
        settings: SimulatorSettings {
            optimizer_step_s: grown * update_s + profile.fixed_s,
            ..SimulatorSettings::default()
        },
        routed: true,
        on_kinds: pipeline.stages.iter().any(|stage| stage.kind != pipeline.stages[0].kind),
        notes: vec![
            "one replica is simulated: all replicas of a stage are alike".into(),
            "a transfer between stages follows the pass before it".into(),
        ],
        ..Pipeline::default()
    }
}

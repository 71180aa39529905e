//! Files that divide a module by its layers, for a training workload: a `PipelineModule` of DeepSpeed, split points and
//! schedules of PyTorch, Galvatron's strategy, vLLM's layer split.
//!
//! The run becomes an [`EngineJob`] of whole layers, as the plan of a profile does, so that each format has one writer.

use super::super::{
    CutStage, Engine, LayerCut, ModuleNames, VirtualStageParts, deepspeed, galvatron, job::EngineJob, torch, vllm,
};
use plantui_core::{
    family::training::{AttentionKernel, TrainingPrecision, TrainingRun, configured, program},
    plan::Configuration,
    workload::{
        Recipe, TrainingProfile,
        layering::LayerPosition,
        recipe::{ModelShape, Precision},
    },
};

/// Content of the file and its notes; `None` if the configuration has no valid split.
pub(super) fn text(
    engine: Engine,
    profile: &TrainingProfile,
    run: &TrainingRun,
    configuration: &Configuration,
    names: &ModuleNames,
) -> Option<(String, Vec<String>)> {
    let (cut, parts) = cut(profile, run, configuration)?;
    let schedule = program::schedule(run);
    let job = EngineJob {
        cut: &cut,
        parts,
        schedule,
        names,
        recipe: recipe(profile, run),
        context_parallel: run.layout.context,
        zero: run.settings.zero(),
    };
    let text = match engine {
        Engine::DeepSpeed => deepspeed::text(&job),
        Engine::Galvatron => galvatron::text(&job),
        Engine::Vllm => vllm::text(&job),
        _ => torch::text(&job),
    };
    let mut notes = match engine {
        Engine::Galvatron => galvatron::notes(&job),
        Engine::Torch => torch::notes(&job),
        _ => vec![],
    };
    if engine == Engine::Vllm {
        notes.extend(job.notes(engine));
    }
    Some((text, notes))
}

/// Stages of the run, and its parts in model order.
fn cut(
    profile: &TrainingProfile,
    run: &TrainingRun,
    configuration: &Configuration,
) -> Option<(LayerCut, VirtualStageParts)> {
    let split = configured::split(profile, configuration)?;
    let layout = &run.layout;
    let mut chunks: Vec<(usize, std::ops::Range<usize>)> =
        (0..split.stages()).flat_map(|stage| split.chunks(stage).map(move |chunk| (stage, chunk.clone()))).collect();
    // A part without layers begins where the next one does, and comes before it.
    chunks.sort_by_key(|(_, chunk)| (chunk.start, chunk.len()));
    let last = chunks.len().checked_sub(1)?;
    let part = |(number, (_, chunk)): (usize, &(usize, std::ops::Range<usize>))| {
        let mut part = empty(run);
        let mut add = |kind, again| {
            part.layers.push(kind);
            part.recompute.push(again);
        };
        if number == 0 {
            add(LayerPosition::First, false);
        }
        for (place, layer) in chunk.clone().enumerate() {
            add(LayerPosition::Block(layer), run.recompute.repeats(place));
        }
        if number == last {
            add(LayerPosition::Last, false);
        }
        part
    };
    let parts: Vec<CutStage> = chunks.iter().enumerate().map(part).collect();
    let ranks: Vec<usize> = chunks.iter().map(|(stage, _)| *stage).collect();
    let mut stages = vec![empty(run); split.stages()];
    for (part, &rank) in parts.iter().zip(&ranks) {
        stages[rank].layers.extend(&part.layers);
        stages[rank].recompute.extend(&part.recompute);
    }
    let microbatches = u32::try_from(run.microbatches() * u64::from(layout.data)).unwrap_or(u32::MAX);
    let cut = LayerCut { stages, microbatches, micro_batch_size: Some(layout.micro_batch) };
    Some((cut, VirtualStageParts { parts, ranks }))
}

/// Stage without layers.
fn empty(run: &TrainingRun) -> CutStage {
    let (data_parallel, tensor_parallel) = (run.layout.data, run.layout.tensor);
    CutStage { layers: vec![], recompute: vec![], data_parallel, tensor_parallel }
}

/// Facts of the run that the files state.
fn recipe(profile: &TrainingProfile, run: &TrainingRun) -> Recipe {
    let precision = match run.precision {
        TrainingPrecision::Fp32 => Some(Precision::Fp32),
        TrainingPrecision::Bf16 => Some(Precision::Bf16),
        TrainingPrecision::Fp16 => Some(Precision::Fp16),
        _ => None,
    };
    let settings = &run.settings;
    Recipe {
        micro_batch: Some(run.layout.micro_batch),
        sequence_length: u32::try_from(run.sequence).ok(),
        precision,
        sequence_parallel: Some(settings.sequence_parallel && run.layout.tensor > 1),
        tensor_overlap: Some(settings.tp_overlap),
        keeps_attention_scores: Some(settings.attention == AttentionKernel::Unfused),
        state_bytes_per_parameter: None,
        optimizer_shards: (settings.zero() > 0).then_some(run.layout.data),
        model: ModelShape::of(&profile.model),
    }
}

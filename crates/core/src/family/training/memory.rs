//! Peak memory of every rank of a pipeline stage, in parts.
//!
//! State is parameters, gradients and the optimizer's data. Activations are kept for every microbatch in flight under
//! 1F1B, interleaved 1F1B and zero-bubble schedules. One layer's work, or the logits, are added at the peak.
//! `O(layers)` time for a stage.

use super::{
    iteration::{Parameters, StageLayers, replicas},
    split::StageSplit,
};
use crate::schedule::interleaved_round;
use crate::workload::training::ZeroBubble;
use crate::workload::training::{
    adapter::NF4_BYTES,
    expert_settings::ExpertOverlap,
    hardware::Accelerator,
    model::{FeedForward, LayerKind, Model, Projection},
    run::{AttentionKernel, Modules, Stack, TrainingRun},
};

/// Bytes on a rank of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageMemory {
    /// Weights in 16 bits.
    pub weights: f64,
    /// Gradients.
    pub gradients: f64,
    /// Weights in 32 bits and both moments.
    pub optimizer: f64,
    /// Activations of all microbatches in flight.
    pub activations: f64,
    /// One layer's buffers, or the logits.
    pub work: f64,
}

impl StageMemory {
    /// Sum of all parts.
    pub fn total(&self) -> f64 {
        self.weights + self.gradients + self.optimizer + self.activations + self.work
    }

    /// Sum of weights, gradients and optimizer data.
    pub fn state(&self) -> f64 {
        self.weights + self.gradients + self.optimizer
    }
}

/// Memory of every stage.
pub fn stages(model: &Model, run: &TrainingRun, split: &StageSplit) -> Vec<StageMemory> {
    let layers = MemoryModel::new(model, run);
    (0..split.stages()).map(|stage| layers.of_stage(split, stage)).collect()
}

/// Fullest stage plus the reserve as a fraction of the device's memory; 1 is exactly full.
pub fn fill(stages: &[StageMemory], run: &TrainingRun, accelerator: &Accelerator) -> f64 {
    (fullest(stages) + run.settings.reserve_bytes) / accelerator.memory_bytes
}

/// Bytes of the fullest stage.
pub fn fullest(stages: &[StageMemory]) -> f64 {
    stages.iter().map(StageMemory::total).fold(0.0, f64::max)
}

/// Maximum number of microbatches in flight on a stage, in units of whole stages.
pub fn in_flight(run: &TrainingRun, stage: usize) -> f64 {
    let (p, v, i) = (f64::from(run.layout.pipeline), f64::from(run.layout.virtual_stages), stage as f64);
    let m = run.microbatches() as f64;
    if run.zero_bubble.is_some() {
        // Activations are kept until the weights' gradients are computed. Every stage has as many as 1F1B's first, and
        // those of a round in each further virtual stage that is dealt out in turn.
        let round = interleaved_round(run.layout.pipeline, u32::try_from(m as u64).unwrap_or(u32::MAX));
        let further = match run.zero_bubble {
            Some(ZeroBubble::Interleaved) => (v - 1.0) * round.map_or(p, f64::from),
            _ => (v - 1.0) * p,
        };
        return m.min((p + further) / v);
    }
    // Passes that run side by side belong to different microbatches.
    let paired = if run.settings.ep_overlap == ExpertOverlap::Batch { 1.0 } else { 0.0 };
    if run.layout.virtual_stages == 1 {
        return m.min(p - i + paired);
    }
    (m * v).min(2.0 * (p - 1.0 - i) + (v - 1.0) * p + 1.0 + paired) / v
}

/// Bytes of one layer of a kind for one microbatch.
#[derive(Debug, Clone, Copy)]
struct LayerMemory {
    /// Activations that are kept until the backward pass.
    kept: f64,
    /// Activations if nothing runs again.
    all: f64,
    /// Activations while the modules that run again have theirs back. The attention core is an exception: its scores exist
    /// for a part of the heads at a time.
    restored: f64,
    /// Buffers while the layer runs.
    running: f64,
}

/// Memory of any stage of a run, with the bytes of each kind of layer computed once.
#[derive(Debug)]
pub struct MemoryModel<'a> {
    model: &'a Model,
    run: &'a TrainingRun,
    layers: Vec<LayerMemory>,
    parameters: Vec<Parameters>,
    adapters: Vec<Parameters>,
}

impl<'a> MemoryModel<'a> {
    /// Memory of a run.
    pub fn new(model: &'a Model, run: &'a TrainingRun) -> Self {
        let modules = run.modules();
        let core = if modules.has(Modules::CORE_ATTENTION) { Modules::CORE_ATTENTION } else { Modules::NONE };
        let parameters = Parameters::by_kind(model, run);
        let layer = |(kind, of): (&LayerKind, &Parameters)| LayerMemory {
            kept: layer_bytes_with(model, run, kind, modules),
            all: layer_bytes_with(model, run, kind, Modules::NONE),
            restored: layer_bytes_with(model, run, kind, core),
            running: running(model, run, kind, of),
        };
        let layers = model.kinds.iter().zip(&parameters).map(layer).collect();
        let adapters = Parameters::adapters_by_kind(model, run).unwrap_or_default();
        MemoryModel { model, run, layers, parameters, adapters }
    }

    /// Memory of one stage.
    pub fn of_stage(&self, split: &StageSplit, stage: usize) -> StageMemory {
        let MemoryModel { model, run, .. } = *self;
        let counts = split.by_kind(stage, model, run.recompute);
        let of = Parameters::trained(model, run, (split, stage, &counts), [&self.parameters, &self.adapters]);
        let (shared, experts) = replicas(run);
        let settings = &run.settings;
        let over = |of: &Parameters, always: bool| {
            let by = |ranks: f64| if always { run.shards(ranks) } else { 1.0 };
            of.shared / by(shared) + of.experts / by(experts)
        };
        let divided = |always: bool| over(&of, always);
        let (all, wide) = (of.shared + of.experts, run.element_bytes());
        let pipelined = settings.fsdp && run.layout.pipeline > 1;
        let weights = match settings.fsdp {
            // Through a pipeline, gathered weights stay for the whole iteration.
            true if pipelined => wide * all,
            // Without weights of its own, the optimizer updates the shards. A layer's gathered weights exist while it runs.
            true if settings.master_bytes == 0 && !settings.parameter_offload => wide * divided(true),
            true => 0.0,
            false => wide * all,
        };
        let own = f64::from(settings.gradient_bytes) * divided(settings.fsdp || settings.shard_gradients);
        // Without a reduction in between, gradients are whole until the last microbatch.
        let accumulated = pipelined || settings.fsdp && settings.accumulate_whole && run.microbatches() > 1;
        let whole = if accumulated { f64::from(settings.gradient_bytes) * (all - divided(true)) } else { 0.0 };
        let state = f64::from(settings.master_bytes + 2 * settings.moment_bytes);
        // Weights in 32 bits are the optimizer's own.
        let state = if wide > 2.0 { state - f64::from(settings.master_bytes) } else { state };
        let state = if wide > 2.0 && settings.fsdp { state + wide } else { state };
        let optimized = divided(settings.fsdp || settings.distributed_optimizer || settings.shard_gradients);
        let base = settings.adapter.map_or(0.0, |adapter| {
            let frozen = Parameters::on_stage(model, run, (split, stage, &counts), &self.parameters);
            let bytes = if adapter.quantised { NF4_BYTES } else { wide };
            bytes * over(&frozen, settings.fsdp)
        });
        StageMemory {
            weights: weights + base,
            gradients: own + whole,
            optimizer: if settings.optimizer_offload { 0.0 } else { state * optimized },
            activations: self.activations((split, stage, &counts)),
            work: self.work((split, stage, &counts)),
        }
    }

    fn activations(&self, (split, stage, counts): StageLayers<'_>) -> f64 {
        let MemoryModel { model, run, .. } = *self;
        let flying = in_flight(run, stage);
        let input = layer_input(model, run);
        let offloaded = run.settings.activation_offload;
        let (mut kept, mut largest) = (0.0, 0f64);
        let away = match offloaded {
            0 => vec![[0.0; 2]; counts.len()],
            _ => split.first_by_kind(stage, model, run.recompute, offloaded as usize),
        };
        for (layer, (&[whole, again], [whole_away, again_away])) in self.layers.iter().zip(counts.iter().zip(away)) {
            let bytes = layer.kept;
            kept += (whole - whole_away) * bytes + (again - again_away) * input;
            if again > 0.0 {
                largest = largest.max(layer.all);
            }
            if whole_away + again_away > 0.0 {
                // One layer is on its way to the host, and one on its way back.
                largest = largest.max(2.0 * bytes);
            }
            if whole > 0.0 && !run.modules().has(Modules::OPERATORS) {
                largest = largest.max(layer.restored - bytes);
            }
        }
        if stage == split.predictions() && model.prediction_layers > 0 {
            let last = usize::from(model.layers[model.layers.len() - 1]);
            kept += f64::from(model.prediction_layers) * self.layers[last].kept;
        }
        if stage == 0 {
            kept += input;
        }
        flying * kept + largest
    }

    /// Larger of a running layer's buffers and the loss's buffers, bytes.
    fn work(&self, (split, stage, counts): StageLayers<'_>) -> f64 {
        let MemoryModel { model, run, .. } = *self;
        let on_stage = self.layers.iter().zip(counts);
        let largest = on_stage
            .filter(|(_, counts)| counts[0] + counts[1] > 0.0)
            .map(|(layer, _)| layer.running)
            .fold(0.0, f64::max);
        let last = stage == split.last();
        if !last {
            return largest;
        }
        largest.max(loss_bytes(model, run))
    }
}

/// Buffers of the loss, bytes; 0 without a projection to a vocabulary.
pub(super) fn loss_bytes(model: &Model, run: &TrainingRun) -> f64 {
    if model.ends.projection == Projection::None {
        return 0.0;
    }
    let (tokens, t, tau, h) = (run.tokens(), f64::from(run.layout.tensor), run.sequence_split(), model.hidden as f64);
    let settings = &run.settings;
    let vocabulary = model.ends.vocabulary as f64;
    let per_token = match (settings.vocab_parallel_loss, settings.fused_cross_entropy) {
        (false, _) if t > 1.0 => 18.0 * vocabulary,
        (_, true) => 4.0 * vocabulary / t,
        (_, false) => run.stack.logit_bytes() * vocabulary / t,
    };
    // Through a pipeline, FSDP keeps another 32-bit copy of the logits.
    let copy = if settings.fsdp && run.layout.pipeline > 1 { 4.0 * vocabulary / t } else { 0.0 };
    tokens * (per_token + copy + 4.0 * h / tau)
}

/// Bytes of the input of a layer for one microbatch.
pub fn layer_input(model: &Model, run: &TrainingRun) -> f64 {
    run.element_bytes() * run.tokens() * model.hidden as f64 / run.sequence_split()
}

/// Activations of one microbatch that the backward pass of one layer keeps, bytes.
pub fn layer_bytes(model: &Model, run: &TrainingRun, kind: &LayerKind) -> f64 {
    layer_bytes_with(model, run, kind, run.modules())
}

/// Part of a layer's activations that torchtitan's selective-op keeps: 71 of 139 kB per token and layer of an 8B model.
const KEPT_OPERATORS: f64 = 0.51;

/// Like [`layer_bytes`], if these modules run again.
fn layer_bytes_with(model: &Model, run: &TrainingRun, kind: &LayerKind, again: Modules) -> f64 {
    let (tokens, t, tau, h) = (run.tokens(), f64::from(run.layout.tensor), run.sequence_split(), model.hidden as f64);
    let settings = &run.settings;
    let attention = kind.attention.replicated(run.layout.tensor);
    let heads = attention.heads() as f64;
    // The inputs of both halves of the layer, and the outputs of their norms.
    let halves = kind.halves().map(|half| f64::from(u8::from(half))).iter().sum::<f64>();
    let mut each = halves * if again.has(Modules::NORM) { 2.0 } else { 4.0 } * h / tau;
    if model.dropout {
        each += halves * h / tau;
    }
    // Single operators that run again keep no intermediate results.
    let unfused = !settings.fused_elementwise && !again.has(Modules::OPERATORS);
    if unfused {
        each += 8.0 * halves * h / tau;
    }
    let scores_again = again.has(Modules::CORE_ATTENTION);
    let core_again = scores_again && again.has(Modules::PROJECTIONS);
    let projected = match attention {
        _ if core_again => 0.0,
        super::Attention::Grouped { key_value_heads, head_size, .. } => {
            4.0 * (heads + key_value_heads as f64) * head_size as f64 / t
        }
        super::Attention::Latent { query_rank, key_value_rank, rope, nope, value, .. } => {
            let latent = (query_rank.unwrap_or(0) + key_value_rank + rope) as f64;
            let up = if again.has(Modules::LATENT_PROJECTION) { 2 * value } else { 4 * (nope + rope + value) };
            4.0 * latent + heads * up as f64 / t
        }
    };
    each += projected * (1.0 + f64::from(u8::from(kind.cross)));
    each += kind.mixer.map_or(0.0, |mixer| 2.0 * mixer.kept() / t);
    let gate = if unfused { 8.0 } else { 6.0 };
    let block = |gated: bool| if gated { gate } else { 4.0 };
    each += match kind.feed_forward {
        FeedForward::Dense { .. } if again.has(Modules::MLP) => 0.0,
        FeedForward::Dense { width, gated } => block(gated) * width as f64 / t,
        FeedForward::Experts(_) if again.has(Modules::MOE) => 0.0,
        FeedForward::Experts(e) => {
            let parts = f64::from(run.layout.expert_tensor);
            // Bytes of the inputs of the two products, and of the second one's output. From Megatron-Core 0.13 the activation
            // applies a token's weight, so that nobody needs that output again. Inputs are kept as the products read them.
            let [input, output] = match run.stack {
                Stack::Megatron2025 if run.precision.bits() == 8 => [1.0, 0.0],
                Stack::Megatron2025 => [2.0, 0.0],
                _ => [2.0, 2.0],
            };
            let activated = if again.has(Modules::MOE_ACTIVATION) { 0.0 } else { input };
            let wide = parts * e.token_width(model.hidden) as f64;
            let within = (block(e.gated) - 2.0 + activated) * e.width as f64;
            // The busiest rank has more tokens.
            let chosen = run.busiest(&e) * e.chosen as f64 * ((input + output) * wide + within) / tau;
            let latent = e.latent.map_or(0.0, |latent| 4.0 * latent as f64 / tau);
            latent + chosen + block(e.gated) * e.shared_width as f64 / t + 4.0 * e.count as f64 / tau
        }
    };
    let mut bytes = tokens * each * run.element_bytes() / 2.0;
    if settings.attention == AttentionKernel::Unfused && !scores_again {
        let per_score = if model.dropout { 5.0 } else { 2.0 };
        bytes += per_score * heads * run.sequence as f64 * tokens / t;
    }
    if again.has(Modules::OPERATORS) { KEPT_OPERATORS * bytes } else { bytes }
}

/// Buffers of a layer that runs, and the weights that are gathered for it, bytes. `parameters` are the layer's.
pub(super) fn running(model: &Model, run: &TrainingRun, kind: &LayerKind, parameters: &Parameters) -> f64 {
    let (tokens, t, tau, h) = (run.tokens(), f64::from(run.layout.tensor), run.sequence_split(), model.hidden as f64);
    let gates = |gated: bool| if gated { 2.0 } else { 1.0 };
    let wide = run.element_bytes();
    let width = match kind.feed_forward {
        FeedForward::Dense { width, gated } => gates(gated) * width as f64 / t,
        FeedForward::Experts(e) => gates(e.gated) * ((e.chosen * e.width) as f64 / tau + e.shared_width as f64 / t),
    };
    // FSDP gathers the next layer while one runs. Through a pipeline, all stay gathered.
    let gathers = run.settings.fsdp && run.layout.pipeline == 1;
    let gathered = if gathers { 2.0 * wide * (parameters.shared + parameters.experts) } else { 0.0 };
    tokens * (4.0 * width + 6.0 * h / tau) * wide / 2.0 + wide * parameters.shared + gathered
}

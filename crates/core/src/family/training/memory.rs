//! Peak memory of every rank of a pipeline stage, in parts.
//!
//! State is parameters, gradients and the optimizer's data. Activations are kept for every microbatch in flight under
//! 1F1B, interleaved 1F1B and zero-bubble schedules. One layer's work, or the logits, are added at the peak.
//! `O(layers)` time for a stage.

use super::{
    iteration::{Parameters, replicas},
    split::StageSplit,
};
use crate::workload::training::{
    hardware::Accelerator,
    model::{FeedForward, LayerKind, Model, Projection},
    run::{AttentionKernel, Recompute, TrainingRun},
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
    (0..split.stages()).map(|stage| of_stage(model, run, split, stage)).collect()
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
        // Activations are kept until the weights' gradients are computed: every stage has as many as 1F1B's first.
        return m.min(p);
    }
    if run.layout.virtual_stages == 1 {
        return m.min(p - i);
    }
    (m * v).min(2.0 * (p - 1.0 - i) + (v - 1.0) * p + 1.0) / v
}

/// Memory of one stage.
pub fn of_stage(model: &Model, run: &TrainingRun, split: &StageSplit, stage: usize) -> StageMemory {
    let of = Parameters::of(model, run, split, stage);
    let (shared, experts) = replicas(run);
    let settings = &run.settings;
    let divided = |elements: &Parameters, always: bool| {
        let by = |ranks: f64| if always { ranks } else { 1.0 };
        elements.shared / by(shared) + elements.experts / by(experts)
    };
    let whole = divided(&of, settings.fsdp);
    let optimized = divided(&of, settings.fsdp || settings.distributed_optimizer);
    StageMemory {
        // FSDP keeps the 32-bit weights. A layer's 16-bit weights exist only while it runs.
        weights: if settings.fsdp { 0.0 } else { 2.0 * whole },
        gradients: f64::from(settings.gradient_bytes) * whole,
        optimizer: 12.0 * optimized,
        activations: activations(model, run, split, stage),
        work: work(model, run, split, stage),
    }
}

fn activations(model: &Model, run: &TrainingRun, split: &StageSplit, stage: usize) -> f64 {
    let (tokens, tau, h) = (run.tokens(), run.sequence_split(), model.hidden as f64);
    let flying = in_flight(run, stage);
    let input = 2.0 * tokens * h / tau;
    let recomputed = match run.recompute {
        Recompute::Layers(count) => count as usize,
        Recompute::Full => usize::MAX,
        Recompute::None | Recompute::Selective => 0,
    };
    let (mut kept, mut largest) = (0.0, 0f64);
    for (kind, [whole, again]) in model.kinds.iter().zip(split.by_kind(stage, model, recomputed)) {
        let bytes = layer_bytes(model, run, kind);
        kept += whole * bytes + again * input;
        if again > 0.0 {
            largest = largest.max(bytes);
        }
    }
    if stage == split.last() && model.prediction_layers > 0 {
        let last = model.kind(model.layers.len() - 1);
        kept += f64::from(model.prediction_layers) * layer_bytes(model, run, last);
    }
    if stage == 0 {
        kept += input;
    }
    flying * kept + largest
}

/// Activations of one microbatch that the backward pass of one layer needs, bytes.
pub fn layer_bytes(model: &Model, run: &TrainingRun, kind: &LayerKind) -> f64 {
    let (tokens, t, tau, h) = (run.tokens(), f64::from(run.layout.tensor), run.sequence_split(), model.hidden as f64);
    let settings = &run.settings;
    let attention = &kind.attention;
    let heads = attention.heads() as f64;
    let mut each = 8.0 * h / tau;
    if model.dropout {
        each += 2.0 * h / tau;
    }
    if !settings.fused_elementwise {
        each += 16.0 * h / tau;
    }
    let projected = match *attention {
        super::Attention::Grouped { key_value_heads, head_size, .. } => {
            4.0 * (heads + key_value_heads as f64) * head_size as f64 / t
        }
        super::Attention::Latent { query_rank, key_value_rank, rope, nope, value, .. } => {
            let latent = (query_rank.unwrap_or(0) + key_value_rank + rope) as f64;
            4.0 * latent + 4.0 * heads * (nope + rope + value) as f64 / t
        }
    };
    each += projected * (1.0 + f64::from(u8::from(kind.cross)));
    let gate = if settings.fused_elementwise { 6.0 } else { 8.0 };
    let block = |gated: bool| if gated { gate } else { 4.0 };
    each += match kind.feed_forward {
        FeedForward::Dense { width, gated } => block(gated) * width as f64 / t,
        FeedForward::Experts(e) => {
            let chosen = e.chosen as f64 * (4.0 * h + block(e.gated) * e.width as f64) / tau;
            chosen + block(e.gated) * e.shared_width as f64 / t + 4.0 * e.count as f64 / tau
        }
    };
    let mut bytes = tokens * each;
    if settings.attention == AttentionKernel::Unfused && run.recompute != Recompute::Selective {
        let per_score = if model.dropout { 5.0 } else { 2.0 };
        bytes += per_score * heads * run.sequence as f64 * tokens / t;
    }
    bytes
}

/// Larger of a running layer's buffers and the loss's buffers, bytes.
fn work(model: &Model, run: &TrainingRun, split: &StageSplit, stage: usize) -> f64 {
    let (tokens, t, tau, h) = (run.tokens(), f64::from(run.layout.tensor), run.sequence_split(), model.hidden as f64);
    let gates = |gated: bool| if gated { 2.0 } else { 1.0 };
    let one = |kind: &LayerKind| {
        let width = match kind.feed_forward {
            FeedForward::Dense { width, gated } => gates(gated) * width as f64 / t,
            FeedForward::Experts(e) => gates(e.gated) * ((e.chosen * e.width) as f64 / tau + e.shared_width as f64 / t),
        };
        let parameters = Parameters::of_layer(model, run, kind);
        // FSDP gathers the next layer while one runs.
        let gathered = if run.settings.fsdp { 4.0 * (parameters.shared + parameters.experts) } else { 0.0 };
        tokens * (4.0 * width + 6.0 * h / tau) + 2.0 * parameters.shared + gathered
    };
    let on_stage = model.kinds.iter().zip(split.by_kind(stage, model, 0));
    let largest = on_stage.filter(|(_, counts)| counts[0] > 0.0).map(|(kind, _)| one(kind)).fold(0.0, f64::max);
    let last = stage == split.last();
    if !last || model.ends.projection == Projection::None {
        return largest;
    }
    let vocabulary = model.ends.vocabulary as f64;
    let per_token = match (run.settings.vocab_parallel_loss, run.settings.fused_cross_entropy) {
        (false, _) if t > 1.0 => 18.0 * vocabulary,
        (_, true) => 4.0 * vocabulary / t,
        (_, false) => 10.0 * vocabulary / t,
    };
    largest.max(tokens * (per_token + 4.0 * h / tau))
}

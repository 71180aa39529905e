//! Analytic cost of every kind of node at one tensor degree.
//!
//! With `T = b·s` tokens per microbatch, `e` bytes per element and tensor degree `t`:
//!
//! ```text
//! forward FLOP F   = 2T · matrix parameters + 4·T·s·a·d_h          (half the second term with causal credit)
//! time             = k·F / (t · peak · MFU) · (1 + κ(t − 1))       k = 3, or 4 with recomputation
//! activations A    = e/2 · T·h · (10 + (8 + 4f/h)/t)               (18 + 4f/h)/t with sequence parallelism
//! with recompute A = e·T·h (+ the padding mask)                    the layer's input
//! state B          = bytes per parameter · parameters
//! ```
//!
//! Sources: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198), and
//! Megatron-LM's memory report for the widths of gated blocks. Recomputation adds the restored activations to `B` of
//! every layer, although only one layer at a time needs them, because the published profile does so.
//! [`WorkingSet::OneLayer`] charges one layer.

use super::{
    Head, ModelConfig,
    settings::{GenerateSettings, TensorOverhead, WorkingSet},
};
use plantui_core::cluster::hardware::Hardware;

/// Kind of a node in the generated graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NodePart {
    /// Input tensor: bytes per microbatch.
    Tensor(f64),
    /// Token (and position and type) embedding; the field is the bytes of its inputs.
    Embedding(f64),
    /// Transformer layer.
    Layer,
    /// Nodes after the last layer.
    Head,
}

/// Cost of a node in one mode at one degree, in the units of the file.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ModeCost {
    pub(super) time_s: f64,
    pub(super) forward_s: f64,
    pub(super) parameters: f64,
    pub(super) memory_a: f64,
    pub(super) memory_b: f64,
}

/// Forward work and memory of a node before a mode is chosen.
struct NodeWork {
    forward_s: f64,
    /// All-reduces of one microbatch, forward and backward, added to `3 · forward_s`.
    reduce_s: f64,
    parameters: f64,
    /// Bytes kept without recomputation.
    saved: f64,
    /// Bytes kept with full recomputation.
    input: f64,
}

/// Cost model: model, hardware and settings together.
pub(super) struct CostModel<'a> {
    pub(super) model: &'a ModelConfig,
    pub(super) hardware: &'a Hardware,
    pub(super) settings: &'a GenerateSettings,
}

impl CostModel<'_> {
    /// Bytes of the hidden state of a microbatch.
    pub(super) fn hidden_bytes(&self) -> f64 {
        f64::from(self.settings.element_bytes) * self.settings.tokens() * self.model.hidden as f64
    }

    /// Bytes of the padding mask of a microbatch: one element per pair of tokens.
    pub(super) fn mask_bytes(&self) -> f64 {
        let s = self.settings.sequence_length as f64;
        if self.model.padding_mask { f64::from(self.settings.element_bytes) * self.settings.tokens() * s } else { 0.0 }
    }

    /// Bytes of one number per token: ids, positions or types.
    pub(super) fn index_bytes(&self) -> f64 {
        f64::from(self.settings.element_bytes) * self.settings.tokens()
    }

    /// Forward FLOP of one layer.
    pub(super) fn layer_flop(&self) -> f64 {
        let tokens = self.settings.tokens();
        let width = (self.model.heads * self.model.head_size) as f64;
        let attention = 4.0 * tokens * self.settings.sequence_length as f64 * width;
        let causal = self.settings.causal_credit && !self.model.padding_mask;
        2.0 * tokens * self.model.layer_matrix_parameters() + attention * if causal { 0.5 } else { 1.0 }
    }

    /// Seconds of matrix arithmetic on one of `t` devices.
    fn arithmetic_s(&self, flop: f64, t: u32) -> f64 {
        flop / (f64::from(t) * self.hardware.peak_flops.value * self.settings.mfu)
    }

    /// Seconds of one ring all-reduce of the hidden state among `t` devices.
    fn all_reduce_s(&self, t: u32) -> f64 {
        let attained = match self.settings.tensor_overhead {
            TensorOverhead::Bandwidth(bandwidth) => bandwidth,
            TensorOverhead::Share(_) => self.hardware.intra_node_link.value,
        };
        2.0 * f64::from(t - 1) / f64::from(t) * self.hidden_bytes() / attained
    }

    /// Forward seconds of matrix work, and the seconds of its all-reduces in forward and backward if they are counted
    /// separately.
    fn shared(&self, flop: f64, t: u32, all_reduces: f64) -> (f64, f64) {
        let arithmetic = self.arithmetic_s(flop, t);
        match self.settings.tensor_overhead {
            TensorOverhead::Share(kappa) => (arithmetic * (1.0 + kappa * f64::from(t - 1)), 0.0),
            TensorOverhead::Bandwidth(_) => (arithmetic, all_reduces * self.all_reduce_s(t)),
        }
    }

    /// Bytes of activations that a layer keeps without recomputation.
    pub(super) fn layer_activation_bytes(&self, t: u32) -> f64 {
        let (t, tokens) = (f64::from(t), self.settings.tokens());
        let activation = self.settings.layer_activation(self.model);
        let scores = if self.settings.keep_attention_scores {
            // Two elements and a mask, counted at two bytes per element; scaled like the rest.
            let per_pair = 2.5 * f64::from(self.settings.element_bytes);
            per_pair * self.model.heads as f64 * self.settings.sequence_length as f64 / t
        } else {
            0.0
        };
        tokens * (self.model.hidden as f64 * (activation.fixed + activation.split / t) + scores)
    }

    fn layer(&self, t: u32) -> NodeWork {
        let (forward_s, reduce_s) = self.shared(self.layer_flop(), t, 4.0);
        let split = if self.settings.sequence_parallel { f64::from(t) } else { 1.0 };
        NodeWork {
            forward_s,
            reduce_s,
            parameters: self.model.layer_parameters(t),
            saved: self.layer_activation_bytes(t),
            input: self.hidden_bytes() / split + self.mask_bytes(),
        }
    }

    /// Cost of an embedding: it reads rows and writes the hidden state at memory speed. A split vocabulary needs one
    /// all-reduce.
    fn embedding(&self, input: f64, t: u32) -> NodeWork {
        let passes = 2.0 + if self.model.positions > 0 { 1.0 } else { 0.0 };
        let dropout =
            if self.model.padding_mask { self.settings.tokens() * self.model.hidden as f64 / 8.0 } else { 0.0 };
        NodeWork {
            forward_s: passes * self.hidden_bytes() / self.hardware.memory_bandwidth.value,
            reduce_s: if t > 1 { self.all_reduce_s(t) } else { 0.0 },
            parameters: self.model.embedding_parameters(t),
            saved: input + dropout,
            input,
        }
    }

    fn head(&self, t: u32) -> NodeWork {
        let (h, tokens) = (self.model.hidden as f64, self.settings.tokens());
        let parameters = self.model.head_parameters(t);
        let hidden = self.hidden_bytes();
        match self.model.head {
            // The pooler reads the first token of each sequence, on every device.
            Head::Pooler => NodeWork {
                forward_s: self.arithmetic_s(2.0 * self.settings.micro_batch as f64 * h * h, 1),
                reduce_s: 0.0,
                parameters,
                saved: hidden,
                input: hidden,
            },
            Head::LanguageModel { .. } | Head::MaskedLanguageModel => {
                let transform = if self.model.head == Head::MaskedLanguageModel { h * h } else { 0.0 };
                let flop = 2.0 * tokens * h * self.model.vocabulary as f64;
                let (forward_s, reduce_s) = self.shared(flop, t, 1.0);
                // Inputs of norm and projection, and the logits in four bytes for the loss.
                let logits = 4.0 * tokens * self.model.vocabulary_rows(t);
                NodeWork {
                    forward_s: forward_s + self.arithmetic_s(2.0 * tokens * transform, 1),
                    reduce_s,
                    parameters,
                    saved: 2.0 * hidden + logits,
                    input: hidden,
                }
            }
        }
    }

    /// Cost of a node at degree `t`, with or without recomputation.
    pub(super) fn cost(&self, part: NodePart, t: u32, recompute: bool) -> ModeCost {
        let work = match part {
            NodePart::Tensor(bytes) => {
                NodeWork { forward_s: 0.0, reduce_s: 0.0, parameters: 0.0, saved: bytes, input: bytes }
            }
            NodePart::Embedding(input) => self.embedding(input, t),
            NodePart::Layer => self.layer(t),
            NodePart::Head => self.head(t),
        };
        let state = self.settings.state.per_parameter() * work.parameters;
        // Half of the all-reduces are in the forward pass, which recomputation repeats.
        let forward_s = work.forward_s + work.reduce_s / 2.0;
        let vanilla_s = 3.0 * work.forward_s + work.reduce_s;
        // A node that keeps only its input has nothing to recompute.
        if !recompute || work.saved <= work.input {
            return ModeCost {
                time_s: vanilla_s,
                forward_s,
                parameters: work.parameters,
                memory_a: work.saved,
                memory_b: state,
            };
        }
        let working_set = match self.settings.working_set {
            WorkingSet::EveryLayer => work.saved - work.input,
            WorkingSet::OneLayer => 0.0,
        };
        ModeCost {
            time_s: vanilla_s + forward_s,
            forward_s,
            parameters: work.parameters,
            memory_a: work.input,
            memory_b: state + working_set,
        }
    }
}

//! Memory of a device by purpose.

use super::pipeline::PipelineStage;

/// Memory on one device by purpose, bytes. If a workload gives one sum for weights, gradients and optimizer state, or
/// for the last two, `state` is the sum and its components are 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MemoryParts {
    /// Weights.
    pub weights: f64,
    /// Gradients of the weights.
    pub gradients: f64,
    /// Optimizer state.
    pub optimizer: f64,
    /// Weights (if `weights` is 0), gradients and optimizer state that the workload does not separate.
    pub state: f64,
    /// Activations of microbatches in flight.
    pub activations: f64,
    /// Memory for one microbatch at a time, such as recomputed activations.
    pub buffers: f64,
}

impl MemoryParts {
    /// Parts of a stage that holds `activations` bytes of activations.
    pub fn of(stage: &PipelineStage, activations: f64) -> Self {
        let known = &stage.parts;
        let told = known.weights + known.gradients + known.optimizer + known.buffers;
        MemoryParts { state: (stage.fixed_bytes - told).max(0.0), activations, ..*known }
    }

    /// Sum of both, part by part.
    #[must_use]
    pub(super) fn plus(&self, other: &Self) -> Self {
        MemoryParts {
            weights: self.weights + other.weights,
            gradients: self.gradients + other.gradients,
            optimizer: self.optimizer + other.optimizer,
            state: self.state + other.state,
            activations: self.activations + other.activations,
            buffers: self.buffers + other.buffers,
        }
    }

    /// Parts with their names, in display order.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        let rest = if self.weights > 0.0 { "gradients and optimizer" } else { "weights and training state" };
        [
            ("weights", self.weights),
            ("gradients", self.gradients),
            ("optimizer", self.optimizer),
            (rest, self.state),
            ("buffers", self.buffers),
            ("activations", self.activations),
        ]
    }
}

//! Memory of a device over time, and its components.

use super::{
    EventKind, PipelineStage,
    order::{Order, Work},
    program::Clock,
    run::Record,
};

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

/// Memory over time on a device of the first replica, from its computations. No other replica has more microbatches,
/// and all have equally many in flight. That number follows from the order alone, so computations may be missing.
pub(super) fn steps(
    stage: &PipelineStage,
    order: &Order,
    parts: usize,
    clock: &Clock,
    computed: &[Record<i64>],
) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64)> = vec![(0.0, stage.fixed_bytes)];
    let mut put = |ticks: i64, held: i64| {
        let time = clock.seconds(ticks);
        let bytes = stage.fixed_bytes + stage.activation_bytes * held as f64 / parts as f64;
        match steps.last_mut() {
            Some(step) if step.0 == time => step.1 = bytes,
            _ => steps.push((time, bytes)),
        }
    };
    for record in computed {
        let work = match record.kind {
            EventKind::Forward => Work::Forward,
            EventKind::Backward => Work::Backward,
            _ => Work::WeightGradient,
        };
        let after = order.held_after(record.index);
        let released = order.releases(work);
        if work == Work::Forward {
            put(record.start, after + i64::from(released));
        }
        if released {
            put(record.end, after);
        }
    }
    steps
}

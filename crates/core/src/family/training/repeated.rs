//! Times of what the backward pass of a layer runs again: the whole layer, or modules of it.

use super::layer::{LayerTime, PassTime, RunRates};
use crate::workload::training::{
    model::{FeedForward, LayerKind, MatrixSplit, WeightMatrix},
    run::{AttentionKernel, Modules},
};

/// Part of a layer that its backward pass runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeated {
    /// The whole layer.
    Whole,
    /// Modules.
    Modules(Modules),
}

impl Repeated {
    /// Nothing.
    pub const NOTHING: Repeated = Repeated::Modules(Modules::NONE);
}

impl RunRates<'_> {
    /// Time of modules of a layer that run again, given its whole forward pass.
    pub(super) fn again(&self, forward: &PassTime, kind: &LayerKind, modules: Modules) -> PassTime {
        let mut again = PassTime::default();
        if modules.is_empty() {
            return again;
        }
        let (tokens, t, tau, h) = (self.run.tokens(), self.t(), self.run.sequence_split(), self.model.hidden as f64);
        let per_byte = tokens * self.run.element_bytes() / self.memory();
        let scores = self.run.settings.attention == AttentionKernel::Unfused;
        if modules.has(Modules::CORE_ATTENTION) && scores {
            again.attention = forward.attention;
        }
        if modules.has(Modules::NORM) {
            again.elementwise += 4.0 * h / tau * per_byte;
        }
        // A compiler fuses the elementwise kernels that run again into those of the backward pass.
        if modules.has(Modules::OPERATORS) && !self.run.settings.fused_elementwise {
            again.elementwise += forward.elementwise;
        }
        let mut products = LayerTime::default();
        if modules.has(Modules::PROJECTIONS) {
            self.projections(&mut products, kind, |_| true);
        } else if modules.has(Modules::LATENT_PROJECTION) {
            // Those that start from a latent state.
            let up = |matrix: &WeightMatrix| matrix.split == MatrixSplit::Outputs && matrix.inputs != self.model.hidden;
            self.projections(&mut products, kind, up);
        }
        match kind.feed_forward {
            FeedForward::Dense { width, .. } if modules.has(Modules::MLP) => {
                self.block(&mut products, kind);
                again.elementwise += 3.0 * width as f64 / t * per_byte;
                again.tensor_parallel += forward.tensor_parallel / 2.0;
            }
            FeedForward::Experts(experts) if modules.has(Modules::MOE) => {
                self.block(&mut products, kind);
                let whole = forward.elementwise - (10.0 * h / tau) * per_byte;
                again.elementwise += if experts.count > 0 { whole.max(0.0) } else { 0.0 };
                again.expert_parallel += forward.expert_parallel;
                again.traffic.expert += forward.traffic.expert;
            }
            FeedForward::Experts(experts) if modules.has(Modules::MOE_ACTIVATION) => {
                again.elementwise += 3.0 * (experts.chosen * experts.width) as f64 / tau * per_byte;
            }
            _ => {}
        }
        again.gemm += products.forward.gemm;
        again.cast += products.forward.cast;
        again.routing += products.forward.routing;
        again
    }
}

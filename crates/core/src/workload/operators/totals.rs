//! Totals of operators without a split: operations, bytes, samples.

use super::{Operator, OperatorProfile, WORD_BYTES};
use crate::workload::node_index::NodeIndex;

impl Operator {
    /// Number of elements over some dimensions of its iteration space.
    fn elements(&self, dims: impl Iterator<Item = usize>) -> f64 {
        dims.map(|dim| self.dims[dim].extent as f64).product()
    }

    /// Operations of one training iteration on one device: three matrix multiplications, or one operation per element.
    pub fn operations(&self) -> f64 {
        let all = || self.elements(0..self.dims.len());
        self.gemm.as_ref().map_or_else(all, |gemm| 3.0 * f64::from(gemm.n_factor * gemm.k_factor) * all())
    }

    /// Bytes on a device without a split: weights with their gradients, and the outputs.
    pub fn whole_bytes(&self) -> f64 {
        let size = |shape: &[u64]| shape.iter().map(|&extent| extent as f64).product::<f64>();
        let written: f64 = self.outputs.iter().map(|tensor| size(&tensor.shape)).sum();
        WORD_BYTES * (2.0 * self.parameters() + if self.is_view() { 0.0 } else { written })
    }
}

impl OperatorProfile {
    /// Samples in a training iteration: the extent of the batch, if an operator has one.
    pub fn samples(&self) -> Option<f64> {
        let batch = |operator: &Operator| operator.batch_dim.map(|dim| operator.dims[usize::from(dim)].extent as f64);
        self.operators.iter().find_map(batch)
    }

    /// Bytes of all tensors from one operator to another.
    pub fn link_bytes(&self, producer: NodeIndex, consumer: NodeIndex) -> f64 {
        let inputs = self.operators[consumer].inputs.iter();
        let from = inputs.filter(|input| input.source.is_some_and(|source| source.node == producer));
        from.map(|input| WORD_BYTES * input.tensor.shape.iter().map(|&extent| extent as f64).product::<f64>()).sum()
    }
}

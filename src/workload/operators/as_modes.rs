//! Operator graphs in Piper's terms, to be shown beside other profiles.

use super::{Operator, OperatorProfile, WORD_BYTES};
use crate::{
    graph::Dag,
    workload::piper::{DegreeProfile, Mode, NodeProfile, PiperProfile, VANILLA},
};

impl Operator {
    /// Elements of its iteration space.
    fn elements(&self, dims: impl Iterator<Item = usize>) -> f64 {
        dims.map(|dim| self.dims[dim].extent as f64).product()
    }

    /// Operations of one training step on one device: three matrix multiplications, or once over the elements.
    pub fn operations(&self) -> f64 {
        let all = || self.elements(0..self.dims.len());
        self.gemm.as_ref().map_or_else(all, |gemm| 3.0 * f64::from(gemm.n_factor * gemm.k_factor) * all())
    }

    /// Bytes that stay on a device when nothing is split: weights with their gradients, and what the operator writes.
    pub fn whole_bytes(&self) -> f64 {
        let size = |shape: &[u64]| shape.iter().map(|&extent| extent as f64).product::<f64>();
        let written: f64 = self.outputs.iter().map(|tensor| size(&tensor.shape)).sum();
        WORD_BYTES * (2.0 * self.parameters() + if self.is_view() { 0.0 } else { written })
    }
}

impl OperatorProfile {
    /// Every operator unsplit as its only mode, at `flops_per_s`.
    pub fn as_modes(&self, dag: &Dag, flops_per_s: f64) -> PiperProfile {
        let node = |(v, operator): (usize, &Operator)| {
            let mode = Mode {
                id: VANILLA.into(),
                time_s: operator.operations() / flops_per_s,
                forward_s: None,
                parameters: operator.parameters(),
                memory_a: 0.0,
                memory_b: operator.whole_bytes(),
                sync_in: vec![0.0; dag.in_degree(v)],
                sync_out: vec![0.0; dag.out_degree(v)],
            };
            NodeProfile { degrees: vec![DegreeProfile { degree: 1, modes: vec![mode] }] }
        };
        PiperProfile {
            nodes: self.operators.iter().enumerate().map(node).collect(),
            edge_bytes: dag.edges().iter().map(|&(u, v)| self.link_bytes(u as usize, v as usize)).collect(),
        }
    }

    /// Bytes of all tensors from one operator to another.
    pub fn link_bytes(&self, producer: usize, consumer: usize) -> f64 {
        let inputs = self.operators[consumer].inputs.iter();
        let from = inputs.filter(|input| input.source.is_some_and(|source| source.node == producer));
        from.map(|input| WORD_BYTES * input.tensor.shape.iter().map(|&extent| extent as f64).product::<f64>()).sum()
    }
}

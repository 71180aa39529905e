//! Cost of a configuration, in operations per device, as in the published program (github.com/baidu-research/PaSE).
//!
//! A cost has two parts: operations, and words that leave a device. One word counts as `r = flops / (bandwidth / 8)`
//! operations, so only the ratio of flops to bandwidth matters. A multiply-add is one operation, a training step is
//! three forward passes, a word is 8 bytes. An all-reduce of `w` words among `n` devices sends `2 (n − 1) / n · w`
//! words. There is no latency and no overlap.
//!
//! Transfers depend on the sizes of slices only, not on their offsets. If the consumer's tensor is split more ways than
//! the producer's, no part is assumed to be local.

use plantui_core::workload::operators::{BatchNorm, Gemm, Operator, OperatorKind};

/// A cost in two parts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Cost {
    /// Operations on each device.
    pub operations: f64,
    /// Words that each device sends.
    pub words: f64,
}

impl Cost {
    /// Sum in operations; a word counts as `ratio` operations.
    pub(crate) fn total(self, ratio: f64) -> f64 {
        self.operations + ratio * self.words
    }
}

/// Words that each of `participants` devices sends to all-reduce `words` words.
fn all_reduce(words: f64, participants: f64) -> f64 {
    words / participants * 2.0 * (participants - 1.0)
}

/// Extents and splits of one operator under one configuration.
struct Pieces<'a> {
    operator: &'a Operator,
    splits: &'a [u32],
}

impl Pieces<'_> {
    fn extent(&self, dim: usize) -> f64 {
        self.operator.dims[dim].extent as f64
    }

    fn split(&self, dim: usize) -> f64 {
        f64::from(self.splits[dim])
    }

    /// Elements of one dimension on a device.
    fn piece(&self, dim: usize) -> f64 {
        self.extent(dim) / self.split(dim)
    }

    /// Product over all dimensions except those in `without`.
    fn product(&self, without: &[usize], factor: impl Fn(usize) -> f64) -> f64 {
        (0..self.splits.len()).filter(|dim| !without.contains(dim)).map(factor).product()
    }

    fn gemm(&self, gemm: &Gemm) -> Cost {
        let over = |dims: &[u8], factor: &dyn Fn(usize) -> f64| dims.iter().map(|&d| factor(usize::from(d))).product();
        let piece = |dims: &[u8]| -> f64 { over(dims, &|dim| self.piece(dim)) };
        let split = |dims: &[u8]| -> f64 { over(dims, &|dim| self.split(dim)) };
        let m = piece(&gemm.m);
        let n = piece(&gemm.n) * f64::from(gemm.n_factor);
        let k = piece(&gemm.k) * f64::from(gemm.k_factor);
        let batch = piece(&gemm.batch);
        let operations = 3.0 * m * n * k + 3.0 * f64::from(gemm.pointwise) * m * n;
        // Partial sums of the result, of the gradient of the input, and of the gradient of the weights.
        let words =
            all_reduce(m * n, split(&gemm.k)) + all_reduce(m * k, split(&gemm.n)) + all_reduce(n * k, split(&gemm.m));
        Cost { operations: batch * operations, words: batch * words }
    }

    fn pooling(&self, window: [u64; 2]) -> Cost {
        let image = &self.operator.inputs[0].tensor.shape;
        let (height, width) = (image[2] as f64 / self.split(2), image[3] as f64 / self.split(3));
        let grown =
            |extent: f64, dim: usize, window: u64| if self.splits[dim] > 1 { extent + window as f64 } else { extent };
        let border = grown(height, 2, window[0]) * grown(width, 3, window[1]) - height * width;
        Cost { operations: self.product(&[], |dim| self.piece(dim)), words: border * self.piece(0) * self.piece(1) }
    }

    fn normalisation(&self, axis: usize, batch_norm: BatchNorm) -> Cost {
        let elements = self.product(&[], |dim| self.piece(dim));
        // Per channel, statistics of axis 1 are summed over all other axes. As published, axis 0 is summed for every
        // channel and position.
        let words = if axis == 0 && self.splits.len() > 1 && batch_norm == BatchNorm::PerChannel {
            8.0 * all_reduce(self.piece(1), self.product(&[1], |dim| self.split(dim)))
        } else {
            4.0 * all_reduce(elements / self.piece(axis), self.split(axis))
                + 4.0 * all_reduce(self.piece(axis), self.product(&[axis], |dim| self.split(dim)))
        };
        Cost { operations: 16.0 * elements, words }
    }

    fn softmax(&self, axis: usize) -> Cost {
        let (elements, length) = (self.product(&[], |dim| self.piece(dim)), self.extent(axis));
        let rows = self.product(&[axis], |dim| self.piece(dim));
        let split = self.split(axis);
        Cost {
            operations: 4.0 * elements + elements * length,
            words: 2.0 * all_reduce(rows, split) + all_reduce(rows * length, split),
        }
    }

    fn cross_entropy(&self) -> Cost {
        let last = self.splits.len() - 1;
        let rows = self.product(&[last], |dim| self.piece(dim));
        let elements = self.product(&[], |dim| self.piece(dim));
        let words = if self.splits[last] > 1 { 2.0 * rows } else { 0.0 };
        Cost { operations: 4.0 * elements + 2.0 * rows, words }
    }

    /// Words that an LSTM moves between its layers and steps. Dimensions are `l s b n k`.
    fn reshaping(&self) -> f64 {
        let (batch, n, k) = (self.piece(2), self.piece(3), self.piece(4));
        let need = batch * k;
        let have = if self.splits[4] > self.splits[3] { 0.0 } else { batch * n.min(k) };
        self.extent(0) * self.extent(1) * (need - have).max(0.0)
    }
}

/// Cost of an operator under a configuration, without its transfers.
pub(crate) fn operator(operator: &Operator, splits: &[u32], batch_norm: BatchNorm) -> Cost {
    let pieces = Pieces { operator, splits };
    let elements = || pieces.product(&[], |dim| pieces.piece(dim));
    if let Some(gemm) = &operator.gemm {
        let mut cost = pieces.gemm(gemm);
        if matches!(operator.kind, OperatorKind::Lstm { .. }) {
            cost.words += pieces.reshaping();
        }
        return cost;
    }
    match &operator.kind {
        OperatorKind::Pooling { window, .. } => pieces.pooling(*window),
        OperatorKind::Normalisation { axis } => pieces.normalisation(*axis, batch_norm),
        OperatorKind::Elementwise { pointwise } => {
            Cost { operations: f64::from(1 + pointwise) * elements(), words: 0.0 }
        }
        OperatorKind::Mean { axes } => {
            let participants = axes.iter().map(|&axis| pieces.split(axis)).product();
            Cost { operations: 0.0, words: all_reduce(elements(), participants) }
        }
        OperatorKind::Softmax { axis } => pieces.softmax(*axis),
        OperatorKind::CrossEntropy => pieces.cross_entropy(),
        // Views of a tensor have transfer costs only.
        _ => Cost::default(),
    }
}

/// Words that a device receives, forward and backward, for a tensor with split `from` at the producer and `to` at the
/// consumer.
pub(crate) fn transfer_words(shape: &[u64], from: &[u32], to: &[u32]) -> f64 {
    let product = |splits: &[u32]| splits.iter().map(|&split| f64::from(split)).product::<f64>();
    let size =
        |piece: &dyn Fn(usize) -> f64| (0..shape.len()).map(|axis| shape[axis] as f64 / piece(axis)).product::<f64>();
    let need = size(&|axis| f64::from(to[axis]));
    let have = if product(to) > product(from) { 0.0 } else { size(&|axis| f64::from(from[axis].max(to[axis]))) };
    2.0 * (need - have).max(0.0)
}

/// Split of a tensor's axes under a configuration.
pub(crate) fn project(axes: &[Vec<u8>], splits: &[u32]) -> Vec<u32> {
    axes.iter().map(|dims| dims.iter().map(|&dim| splits[usize::from(dim)]).product()).collect()
}

//! Profile of operator splitting (Elango, *PaSE: Parallelization Strategies for Efficient DNN Training*, IPDPS 2021).
//! Every node is an operator with an iteration space, and a plan gives the degree by which each dimension is split.
//!
//! An [`Operator`] describes its [`OperatorKind`] as plain data for planners and checks: the dimensions, their
//! projections onto the tensors it reads and writes, its [`Gemm`], its [`Weights`]. [`Operator::new`] derives all of it
//! from the kind and the input shapes. No cost is computed here.
//!
//! Several dimensions may split one axis of a tensor (the flat tensor of a [`OperatorKind::Ravel`]), or none may (the
//! constant extent of a stack). A projection is therefore a list of dimensions per axis.

mod infer;
mod split;
mod totals;

use super::node_index::{NodeIndex, NodeRow};

pub use split::{DimensionSplit, WHOLE};

/// Kinds of operator. Shapes of tensors are written outermost axis first. Axis 0 of the data is the batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OperatorKind {
    /// Convolution of `(b, c, H, W)` to `(b, filters, h, w)`. Dimensions `b c h w r s n`; `h` and `w` cannot be split.
    Convolution {
        /// Output channels, n.
        filters: u64,
        /// Rows and columns of a filter, r and s.
        window: [u64; 2],
        /// Stride of the window.
        stride: u64,
        /// Rows and columns of padding on each side.
        padding: [u64; 2],
        /// Number of fused pointwise operations.
        pointwise: u32,
    },
    /// Pooling of `(b, c, H, W)` to `(b, c, h, w)`.
    Pooling {
        /// Rows and columns of the window.
        window: [u64; 2],
        /// Stride of the window.
        stride: u64,
        /// Rows and columns of padding on each side.
        padding: [u64; 2],
    },
    /// Normalisation along one axis. Axis 0 means batch normalisation.
    Normalisation {
        /// Normalised axis.
        axis: usize,
    },
    /// Elementwise operation on two tensors of one shape.
    Elementwise {
        /// Number of fused pointwise operations.
        pointwise: u32,
    },
    /// Concatenation of tensors along an axis that cannot be split.
    Concatenation {
        /// Axis of the concatenation.
        axis: usize,
    },
    /// Flattening of a tensor. Allows only splits into contiguous pieces.
    Ravel,
    /// Reshaping of a flat tensor. Allows only splits into contiguous pieces.
    Unravel {
        /// New shape.
        shape: Vec<u64>,
    },
    /// Stack of equal tensors along a new axis 0 that cannot be split.
    Stack,
    /// Slices of a tensor along axis 0, which cannot be split; one output per slice.
    Unstack,
    /// Dense layer on the last axis.
    Dense {
        /// Output features.
        units: u64,
        /// Number of fused pointwise operations.
        pointwise: u32,
    },
    /// Product of two tensors in Einstein notation: the generic matrix multiplication.
    Einsum {
        /// Equation, such as `ble,ef->blf`.
        equation: String,
        /// Number of fused pointwise operations.
        pointwise: u32,
    },
    /// Mean over some axes, which disappear.
    Mean {
        /// Axes, ascending.
        axes: Vec<usize>,
    },
    /// Softmax along an axis.
    Softmax {
        /// Axis of the softmax.
        axis: usize,
    },
    /// Softmax and cross entropy over the last axis.
    CrossEntropy,
    /// LSTM layers on `(b, s, units)`. Dimensions `l s b n k`; `s` cannot be split.
    Lstm {
        /// Number of layers.
        layers: u64,
        /// Hidden units, also the features of the input.
        units: u64,
    },
}

/// Dimension of an iteration space.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// Name in plans; unique within the operator.
    pub name: String,
    /// Number of elements.
    pub extent: u64,
    /// True if it may be split.
    pub splittable: bool,
}

/// Tensor as read or written by one operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// Extents of the axes.
    pub shape: Vec<u64>,
    /// Names of the axes, which later operators inherit.
    pub names: Vec<String>,
    /// Dimensions by axis. The degree of an axis is the product of their degrees.
    pub axes: Vec<Vec<u8>>,
}

/// Source of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source {
    /// Operator that writes it.
    pub node: NodeIndex,
    /// Index of the operator's output.
    pub output: usize,
}

/// Tensor that an operator reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Input {
    /// Source. `None`: it comes from outside (images, tokens, trained weights) and needs no transfer.
    pub source: Option<Source>,
    /// Tensor.
    pub tensor: Tensor,
}

/// Batched matrix multiplication over dimensions of the operator: `batch` times `(m, k) · (k, n)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gemm {
    /// Dimensions of the batch.
    pub batch: Vec<u8>,
    /// Dimensions of the rows.
    pub m: Vec<u8>,
    /// Dimensions of the columns.
    pub n: Vec<u8>,
    /// Dimensions that are summed over.
    pub k: Vec<u8>,
    /// Columns per element of `n`: 4 for the gates of an LSTM, else 1.
    pub n_factor: u32,
    /// Terms per element of `k`: 2 for input and state of an LSTM, else 1.
    pub k_factor: u32,
    /// Pointwise operations per element of the result.
    pub pointwise: u32,
}

/// Weights that an operator trains.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Weights {
    /// Dimensions that index them.
    pub dims: Vec<u8>,
    /// Weights per index.
    pub factor: u32,
}

/// Operator of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// Kind.
    pub kind: OperatorKind,
    /// Iteration space.
    pub dims: Vec<Dimension>,
    /// Tensors it reads, by slot.
    pub inputs: Vec<Input>,
    /// Tensors it writes, by slot.
    pub outputs: Vec<Tensor>,
    /// Its matrix multiplication, if there is one.
    pub gemm: Option<Gemm>,
    /// Its trained weights, if there are any.
    pub weights: Option<Weights>,
    /// Dimension of the batch, if there is one.
    pub batch_dim: Option<u8>,
}

impl NodeRow for Operator {}

/// Whole profile, by node index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorProfile {
    /// Operators by node index. Inputs come from nodes with smaller indices.
    pub operators: Vec<Operator>,
    /// Minimum number of elements that a split leaves of a dimension. It restricts a search, not the valid plans.
    pub cutoff: u32,
}

/// Description of an input, from which an operator is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSpec {
    /// Source, as [`Input::source`].
    pub source: Option<Source>,
    /// Extents of the axes.
    pub shape: Vec<u64>,
    /// Names of the axes. If empty, the usual names for that number of axes apply.
    pub names: Vec<String>,
    /// Axis of the batch, if there is one.
    pub batch_axis: Option<usize>,
}

impl InputSpec {
    /// Tensor from outside, with the batch as axis 0.
    pub fn outside(shape: Vec<u64>) -> Self {
        InputSpec { source: None, shape, names: vec![], batch_axis: Some(0) }
    }

    /// Output of an operator that already exists.
    pub fn output(operators: &[Operator], source: Source) -> Option<Self> {
        let producer = operators.get(source.node.index())?;
        let tensor = producer.outputs.get(source.output)?;
        let batch_axis = producer.batch_dim.and_then(|dim| tensor.axes.iter().position(|dims| dims.contains(&dim)));
        Some(InputSpec { source: Some(source), shape: tensor.shape.clone(), names: tensor.names.clone(), batch_axis })
    }
}

/// Error about an operator or its split, as the end of a sentence whose subject is the operator or the split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OperatorError(String);

impl Operator {
    /// Derives all fields from the kind and the inputs.
    ///
    /// # Errors
    /// [`OperatorError`], as the end of a sentence whose subject is the operator.
    pub fn new(kind: OperatorKind, inputs: &[InputSpec]) -> Result<Self, OperatorError> {
        infer::operator(kind, inputs).map_err(OperatorError)
    }

    /// True if only splits into contiguous pieces are allowed. From the outermost dimension on, dimensions are then
    /// fully split, at most one is split partly, and the rest is not split.
    pub fn contiguous(&self) -> bool {
        matches!(self.kind, OperatorKind::Ravel | OperatorKind::Unravel { .. })
    }

    /// Name of the kind in tables.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            OperatorKind::Convolution { .. } => "conv",
            OperatorKind::Pooling { .. } => "pool",
            OperatorKind::Normalisation { .. } => "norm",
            OperatorKind::Elementwise { .. } => "elementwise",
            OperatorKind::Concatenation { .. } => "concat",
            OperatorKind::Ravel => "ravel",
            OperatorKind::Unravel { .. } => "unravel",
            OperatorKind::Stack => "stack",
            OperatorKind::Unstack => "unstack",
            OperatorKind::Dense { .. } => "dense",
            OperatorKind::Einsum { .. } => "einsum",
            OperatorKind::Mean { .. } => "reduce-mean",
            OperatorKind::Softmax { .. } => "softmax",
            OperatorKind::CrossEntropy => "softmax-cross-entropy",
            OperatorKind::Lstm { .. } => "lstm",
        }
    }

    /// True if it only reshapes or slices a tensor and stores nothing of its own.
    pub fn is_view(&self) -> bool {
        matches!(self.kind, OperatorKind::Ravel | OperatorKind::Unravel { .. } | OperatorKind::Unstack)
    }

    /// Number of weights that it trains.
    pub fn parameters(&self) -> f64 {
        self.weights.as_ref().map_or(0.0, |weights| {
            let each = weights.dims.iter().map(|&dim| self.dims[usize::from(dim)].extent as f64);
            f64::from(weights.factor) * each.product::<f64>()
        })
    }
}

/// Axes over which batch normalisation sums when its batch is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BatchNorm {
    /// The batch, per channel and position, as in the published program.
    #[default]
    Published,
    /// Batch and positions, per channel, as in frameworks.
    PerChannel,
}

/// Corrections of the published program's cost of splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CostRules {
    /// True if every tensor between two operators is paid for. The published program pays only for the last.
    pub parallel_edges: bool,
    /// Axes over which batch normalisation sums.
    pub batch_norm: BatchNorm,
}

/// Bytes per word: an activation, a weight or a gradient.
pub const WORD_BYTES: f64 = 8.0;

impl OperatorProfile {
    /// Pairs of operators with a tensor between them, each with the consumer's slots, ascending. Sorted by consumer,
    /// then by first slot.
    pub fn links(&self) -> Vec<OperatorEdge> {
        let mut links: Vec<OperatorEdge> = vec![];
        for (consumer, operator) in NodeIndex::enumerate(&self.operators) {
            let first = links.len();
            for (slot, input) in operator.inputs.iter().enumerate() {
                let Some(source) = input.source else { continue };
                match links[first..].iter_mut().find(|link| link.producer == source.node) {
                    Some(link) => link.slots.push(slot),
                    None => links.push(OperatorEdge { producer: source.node, consumer, slots: vec![slot] }),
                }
            }
        }
        links
    }
}

/// All tensors from one operator to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorEdge {
    /// Operator that writes them.
    pub producer: NodeIndex,
    /// Operator that reads them.
    pub consumer: NodeIndex,
    /// The consumer's input slots, ascending.
    pub slots: Vec<usize>,
}

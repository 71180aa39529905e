//! The profile of operator splitting: every node is an operator with an iteration space, and a plan says how many ways
//! each dimension of it is split (Elango, *PaSE: Parallelization Strategies for Efficient DNN Training*, IPDPS 2021).
//!
//! An [`Operator`] states what planners and checks need to know about its [`OperatorKind`] as plain structure: the
//! dimensions, how they project onto the tensors it reads and writes, the [`Gemm`] in it, the [`Weights`] it trains.
//! [`Operator::new`] derives all of that from kind and input shapes. No cost is computed here.
//!
//! An axis of a tensor may be split by several dimensions at once (the flat tensor of a
//! [`OperatorKind::Ravel`]) or by none (the constant extent of a stack), so a projection is a list of dimensions per axis.

mod infer;
mod split;
mod totals;

use super::NodeIndex;

pub use split::{Split, WHOLE};

/// The kinds of operator. Shapes of tensors are written outermost axis first; a batch is axis 0 of the data.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OperatorKind {
    /// Convolution of `(b, c, H, W)` to `(b, filters, h, w)`; dimensions `b c h w r s n`, of which h and w stay whole.
    Convolution {
        /// Output channels, n.
        filters: u64,
        /// Rows and columns of a filter, r and s.
        window: [u64; 2],
        /// Step of the window.
        stride: u64,
        /// Rows and columns of padding on each side.
        padding: [u64; 2],
        /// Pointwise operations fused into it.
        pointwise: u32,
    },
    /// Pooling of `(b, c, H, W)` to `(b, c, h, w)`.
    Pooling {
        /// Rows and columns of the window.
        window: [u64; 2],
        /// Step of the window.
        stride: u64,
        /// Rows and columns of padding on each side.
        padding: [u64; 2],
    },
    /// Normalisation along one axis. Along axis 0 it stands for batch normalisation.
    Normalisation {
        /// The axis.
        axis: usize,
    },
    /// Element by element on two tensors of one shape.
    Elementwise {
        /// Pointwise operations fused into it.
        pointwise: u32,
    },
    /// Several tensors put together along an axis, which stays whole.
    Concatenation {
        /// The axis.
        axis: usize,
    },
    /// A tensor laid flat. Only splits into contiguous pieces are allowed.
    Ravel,
    /// A flat tensor folded to a shape. Only splits into contiguous pieces are allowed.
    Unravel {
        /// The shape.
        shape: Vec<u64>,
    },
    /// Equal tensors stacked along a new axis 0, which stays whole.
    Stack,
    /// A tensor taken apart along axis 0, which stays whole; one output for each slice.
    Unstack,
    /// A dense layer on the last axis.
    Dense {
        /// Output features.
        units: u64,
        /// Pointwise operations fused into it.
        pointwise: u32,
    },
    /// A product of two tensors in Einstein's notation: the generic matrix multiplication.
    Einsum {
        /// Such as `ble,ef->blf`.
        equation: String,
        /// Pointwise operations fused into it.
        pointwise: u32,
    },
    /// Mean over some axes, which vanish.
    Mean {
        /// The axes, ascending.
        axes: Vec<usize>,
    },
    /// Softmax along an axis.
    Softmax {
        /// The axis.
        axis: usize,
    },
    /// Softmax and cross entropy over the last axis.
    CrossEntropy,
    /// LSTM layers on `(b, s, units)`; dimensions `l s b n k`, of which s stays whole.
    Lstm {
        /// Layers.
        layers: u64,
        /// Hidden units, also the features of the input.
        units: u64,
    },
}

/// One dimension of an iteration space.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// What plans call it; unique within the operator.
    pub name: String,
    /// Its extent.
    pub extent: u64,
    /// Whether it may be split.
    pub splittable: bool,
}

/// A tensor as one operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// Extents.
    pub shape: Vec<u64>,
    /// Names of the axes, as the operators that follow inherit them.
    pub names: Vec<String>,
    /// By axis, the operator's dimensions whose splits multiply to the split of the axis.
    pub axes: Vec<Vec<u8>>,
}

/// Where an input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source {
    /// The operator that writes it.
    pub node: NodeIndex,
    /// Which of its outputs.
    pub output: usize,
}

/// A tensor that an operator reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Input {
    /// `None`: it comes from outside (images, tokens, trained weights) and costs no transfer.
    pub source: Option<Source>,
    /// The tensor.
    pub tensor: Tensor,
}

/// A batched matrix multiplication over dimensions of the operator: `batch` times `(m, k) · (k, n)`.
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
    /// Columns for each element of `n`: 4 gates of an LSTM, else 1.
    pub n_factor: u32,
    /// Terms for each element of `k`: input and state of an LSTM, else 1.
    pub k_factor: u32,
    /// Pointwise operations on every element of the result.
    pub pointwise: u32,
}

/// What an operator trains.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Weights {
    /// The dimensions that index them.
    pub dims: Vec<u8>,
    /// Weights for each index.
    pub factor: u32,
}

/// One operator of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// What it computes.
    pub kind: OperatorKind,
    /// Its iteration space.
    pub dims: Vec<Dimension>,
    /// What it reads, by slot.
    pub inputs: Vec<Input>,
    /// What it writes, by slot.
    pub outputs: Vec<Tensor>,
    /// The matrix multiplication in it, if there is one.
    pub gemm: Option<Gemm>,
    /// What it trains, if anything.
    pub weights: Option<Weights>,
    /// The dimension that carries the batch, if one does.
    pub batch_dim: Option<u8>,
}

/// The whole profile, by node index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorProfile {
    /// By node index; inputs come from nodes with smaller indices.
    pub operators: Vec<Operator>,
    /// The fewest elements that a split may leave of a dimension. It narrows a search, not what a plan may do.
    pub cutoff: u32,
}

/// What an operator has to be told of an input: where it comes from, and its shape with the names of the axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// As [`Input::source`].
    pub source: Option<Source>,
    /// Extents.
    pub shape: Vec<u64>,
    /// Names of the axes; empty for the usual names of that many axes.
    pub names: Vec<String>,
    /// The axis that carries the batch, if one does.
    pub batch_axis: Option<usize>,
}

impl Given {
    /// A tensor from outside, whose axis 0 is the batch.
    pub fn outside(shape: Vec<u64>) -> Self {
        Given { source: None, shape, names: vec![], batch_axis: Some(0) }
    }

    /// An output of an operator that is there already.
    pub fn output(operators: &[Operator], source: Source) -> Option<Self> {
        let producer = operators.get(source.node.index())?;
        let tensor = producer.outputs.get(source.output)?;
        let batch_axis = producer.batch_dim.and_then(|dim| tensor.axes.iter().position(|dims| dims.contains(&dim)));
        Some(Given { source: Some(source), shape: tensor.shape.clone(), names: tensor.names.clone(), batch_axis })
    }
}

/// What does not fit about an operator or a split of it, as the end of a sentence that starts with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Misfit(String);

impl Operator {
    /// Derives everything from the kind and the inputs.
    ///
    /// # Errors
    /// [`Misfit`], as the end of a sentence that starts with the operator.
    pub fn new(kind: OperatorKind, inputs: &[Given]) -> Result<Self, Misfit> {
        infer::operator(kind, inputs).map_err(Misfit)
    }

    /// Whether only splits into contiguous pieces are allowed: from the outermost dimension on fully split ones, then one
    /// that is split in any way, then none.
    pub fn contiguous(&self) -> bool {
        matches!(self.kind, OperatorKind::Ravel | OperatorKind::Unravel { .. })
    }

    /// What tables call its kind.
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

    /// Whether it only looks at a tensor in another shape, and keeps nothing of its own.
    pub fn is_view(&self) -> bool {
        matches!(self.kind, OperatorKind::Ravel | OperatorKind::Unravel { .. } | OperatorKind::Unstack)
    }

    /// How many weights it trains.
    pub fn parameters(&self) -> f64 {
        self.weights.as_ref().map_or(0.0, |weights| {
            let each = weights.dims.iter().map(|&dim| self.dims[usize::from(dim)].extent as f64);
            f64::from(weights.factor) * each.product::<f64>()
        })
    }
}

/// What batch normalisation sums over when its batch is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BatchNorm {
    /// Along the batch for every channel and position, as the published program has it.
    #[default]
    Published,
    /// Along batch and positions for every channel, as frameworks do.
    PerChannel,
}

/// How the costs of splits are counted where the published program can be mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CostRules {
    /// Whether every tensor from one operator to another is paid for; published: the last only.
    pub parallel_edges: bool,
    /// What batch normalisation sums over.
    pub batch_norm: BatchNorm,
}

/// Bytes of a word: an activation, a weight or a gradient.
pub const WORD_BYTES: f64 = 8.0;

impl OperatorProfile {
    /// The pairs of operators with a tensor between them, each with the consumer's slots it goes to, ascending: by
    /// consumer, then by first slot.
    pub fn links(&self) -> Vec<Link> {
        let mut links: Vec<Link> = vec![];
        for (consumer, operator) in NodeIndex::enumerate(&self.operators) {
            let first = links.len();
            for (slot, input) in operator.inputs.iter().enumerate() {
                let Some(source) = input.source else { continue };
                match links[first..].iter_mut().find(|link| link.producer == source.node) {
                    Some(link) => link.slots.push(slot),
                    None => links.push(Link { producer: source.node, consumer, slots: vec![slot] }),
                }
            }
        }
        links
    }
}

/// All tensors from one operator to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The operator that writes them.
    pub producer: NodeIndex,
    /// The operator that reads them.
    pub consumer: NodeIndex,
    /// The consumer's input slots, ascending.
    pub slots: Vec<usize>,
}

//! Training run of a model: layout, batch, precision, recomputation and the settings of the software.

use std::fmt;

use super::model::Experts;

pub use super::{
    recompute::{Modules, Recompute},
    settings::{AttentionKernel, ContextStyle, Stack, TrainingSettings},
};

/// Number format of matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingPrecision {
    /// 32 bits.
    Fp32,
    /// 16 bits, bfloat16.
    Bf16,
    /// 16 bits, half precision.
    Fp16,
    /// 8 bits with one scale per tensor.
    Fp8,
    /// 8 bits with one scale per block.
    MxFp8,
    /// 4 bits with one scale per block.
    NvFp4,
}

impl TrainingPrecision {
    /// All precisions.
    pub const ALL: [TrainingPrecision; 6] = [
        TrainingPrecision::Fp32,
        TrainingPrecision::Bf16,
        TrainingPrecision::Fp16,
        TrainingPrecision::Fp8,
        TrainingPrecision::MxFp8,
        TrainingPrecision::NvFp4,
    ];

    /// Id on the command line.
    pub fn id(self) -> &'static str {
        match self {
            TrainingPrecision::Fp32 => "fp32",
            TrainingPrecision::Bf16 => "bf16",
            TrainingPrecision::Fp16 => "fp16",
            TrainingPrecision::Fp8 => "fp8",
            TrainingPrecision::MxFp8 => "mxfp8",
            TrainingPrecision::NvFp4 => "nvfp4",
        }
    }

    /// Precision with this id, in either case.
    pub fn find(id: &str) -> Option<Self> {
        TrainingPrecision::ALL.into_iter().find(|precision| precision.id().eq_ignore_ascii_case(id))
    }

    /// Bits of an operand of a matrix product.
    pub fn bits(self) -> u32 {
        match self {
            TrainingPrecision::Fp32 => 32,
            TrainingPrecision::Bf16 | TrainingPrecision::Fp16 => 16,
            TrainingPrecision::Fp8 | TrainingPrecision::MxFp8 => 8,
            TrainingPrecision::NvFp4 => 4,
        }
    }
}

/// Degrees of parallelism and micro-batch size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Tensor-parallel degree, t.
    pub tensor: u32,
    /// Pipeline stages, p.
    pub pipeline: u32,
    /// Virtual stages per pipeline stage, v.
    pub virtual_stages: u32,
    /// Context-parallel degree, c.
    pub context: u32,
    /// Expert-parallel degree, e.
    pub expert: u32,
    /// Tensor-parallel degree of the routed experts. It replaces `tensor` there: experts and their replicas fill the same
    /// ranks of a stage as tensor, context and data parallelism (parallel folding).
    pub expert_tensor: u32,
    /// Data-parallel degree without context parallelism, d.
    pub data: u32,
    /// Micro-batch size in sequences, b.
    pub micro_batch: u32,
}

impl Layout {
    /// Layout of a single device.
    pub const ONE: Layout = Layout {
        tensor: 1,
        pipeline: 1,
        virtual_stages: 1,
        context: 1,
        expert: 1,
        expert_tensor: 1,
        data: 1,
        micro_batch: 1,
    };

    /// Number of devices: `t·c·p·d`.
    pub fn devices(&self) -> u64 {
        u64::from(self.pipeline) * self.stage_devices()
    }

    /// Number of devices of a pipeline stage: `t·c·d`.
    pub fn stage_devices(&self) -> u64 {
        [self.tensor, self.context, self.data].iter().map(|&degree| u64::from(degree)).product()
    }

    /// Number of ranks over which the routed experts of a layer are divided.
    pub fn expert_ranks(&self) -> u64 {
        u64::from(self.expert) * u64::from(self.expert_tensor)
    }
}

impl Layout {
    /// Context-parallel ranks that exchange heads, and those between which keys and values circulate, under hierarchical
    /// context parallelism with this many devices in a machine.
    pub fn context_hierarchy(&self, domain: u32) -> [u32; 2] {
        let mut inside = self.context.min((domain / self.tensor.max(1)).max(1));
        while !self.context.is_multiple_of(inside) {
            inside -= 1;
        }
        [inside, self.context / inside]
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Layout { tensor, pipeline, virtual_stages, context, expert, expert_tensor, data, micro_batch } = self;
        write!(f, "tp={tensor},pp={pipeline},vp={virtual_stages},cp={context},ep={expert},")?;
        if *expert_tensor > 1 {
            write!(f, "etp={expert_tensor},")?;
        }
        write!(f, "dp={data},mbs={micro_batch}")
    }
}

/// Schedule that delays the gradients of the weights to fill the pipeline's bubble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroBubble {
    /// ZB-H1: one part of the model per rank, no more in flight than on the first stage of 1F1B (Qi et al., ICLR 2024).
    H1,
    /// ZB-V: two parts per rank, the second half of the model placed from the last rank back to the first (Qi et al.,
    /// NeurIPS 2024).
    V,
    /// ZB-1p over several parts per rank, dealt out in turn (PyTorch's `ScheduleInterleavedZeroBubble`).
    Interleaved,
}

impl ZeroBubble {
    /// All of them, in display order.
    pub const ALL: [ZeroBubble; 3] = [ZeroBubble::H1, ZeroBubble::V, ZeroBubble::Interleaved];

    /// Id in files and flags.
    pub fn id(self) -> &'static str {
        match self {
            ZeroBubble::H1 => "zb-h1",
            ZeroBubble::V => "zb-v",
            ZeroBubble::Interleaved => "interleaved-zb",
        }
    }

    /// Number of virtual stages per rank; `None` if a layout chooses it.
    pub fn parts(self) -> Option<u32> {
        match self {
            ZeroBubble::H1 => Some(1),
            ZeroBubble::V => Some(2),
            ZeroBubble::Interleaved => None,
        }
    }

    /// Schedule with this id.
    pub fn find(id: &str) -> Option<Self> {
        ZeroBubble::ALL.into_iter().find(|schedule| schedule.id() == id)
    }
}

/// Fraction of each kind of transfer's time in which one link is busy: tensor, context, expert, next stage, data.
pub type LinkShares = [f64; 5];

/// Bytes per second that the groups of a run attain on the links between their devices, for the slowest group of each
/// kind.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupLinks {
    /// Tensor groups.
    pub tensor: f64,
    /// Context groups.
    pub context: f64,
    /// Groups that exchange tokens for experts.
    pub expert: f64,
    /// Transfers from a stage to the next.
    pub next_stage: f64,
    /// Groups that reduce gradients.
    pub data: f64,
    /// One row per link that may be the busiest.
    pub shares: Vec<LinkShares>,
}

/// Training run.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingRun {
    /// Degrees and micro-batch size.
    pub layout: Layout,
    /// Sequences in a batch over all devices.
    pub global_batch: u64,
    /// Tokens in a sequence, s.
    pub sequence: u64,
    /// Number format of products.
    pub precision: TrainingPrecision,
    /// Recomputed activations.
    pub recompute: Recompute,
    /// Software stack that the settings belong to.
    pub stack: Stack,
    /// Settings of the software.
    pub settings: TrainingSettings,
    /// Layers per stage, or per virtual stage in the order of the model. If empty, layers are divided evenly.
    pub layers: Vec<u32>,
    /// True if the last virtual stage holds the head alone, and the layers that predict further tokens are on the one
    /// before; else they are on the last.
    pub head_alone: bool,
    /// Zero-bubble schedule; else the schedule is 1F1B, or interleaved 1F1B with virtual stages.
    pub zero_bubble: Option<ZeroBubble>,
    /// Rates of the groups if they are mapped to a topology; else the accelerator's links apply.
    pub links: Option<GroupLinks>,
}

impl TrainingRun {
    /// Microbatches per pipeline and iteration, m.
    pub fn microbatches(&self) -> u64 {
        self.global_batch / (u64::from(self.layout.micro_batch) * u64::from(self.layout.data))
    }

    /// Tokens per rank in a microbatch, T.
    pub fn tokens(&self) -> f64 {
        f64::from(self.layout.micro_batch) * self.sequence as f64 / f64::from(self.layout.context)
    }

    /// Number of parts into which `ranks` replicas divide what they share: all of them, or the ranks of one copy (HSDP).
    pub fn shards(&self, ranks: f64) -> f64 {
        if self.settings.hsdp == 0 { ranks } else { ranks.min(f64::from(self.settings.hsdp)).max(1.0) }
    }

    /// Load of the busiest rank of these experts, relative to the mean.
    pub fn busiest(&self, experts: &Experts) -> f64 {
        let tokens = self.tokens() / self.sequence_split();
        self.settings.imbalance.factor(self.layout.expert.into(), experts.count as f64, tokens, experts.chosen as f64)
    }

    /// Bytes of an element of weights and activations outside matrix products.
    pub fn element_bytes(&self) -> f64 {
        if self.precision == TrainingPrecision::Fp32 { 4.0 } else { 2.0 }
    }

    /// Modules that every layer recomputes without being recomputed as a whole; empty for all other kinds.
    pub fn modules(&self) -> Modules {
        match self.recompute {
            Recompute::Selective(modules) if modules.is_empty() => self.stack.usual_modules(),
            Recompute::Selective(modules) => modules,
            _ => Modules::default(),
        }
    }

    /// Number of parts of norms and dropout along the sequence, τ.
    pub fn sequence_split(&self) -> f64 {
        if self.settings.sequence_parallel { f64::from(self.layout.tensor) } else { 1.0 }
    }
}

//! Training run of a model: layout, batch, precision, recomputation and the settings of the software.
//!
//! Every setting has a name and a default in each [`Stack`], the profile of a training engine.

use std::fmt;

use crate::units::{self, GIB};

/// Number format of matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingPrecision {
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
    pub const ALL: [TrainingPrecision; 5] = [
        TrainingPrecision::Bf16,
        TrainingPrecision::Fp16,
        TrainingPrecision::Fp8,
        TrainingPrecision::MxFp8,
        TrainingPrecision::NvFp4,
    ];

    /// Id on the command line.
    pub fn id(self) -> &'static str {
        match self {
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
    /// Data-parallel degree without context parallelism, d.
    pub data: u32,
    /// Micro-batch size in sequences, b.
    pub micro_batch: u32,
}

impl Layout {
    /// Layout of a single device.
    pub const ONE: Layout =
        Layout { tensor: 1, pipeline: 1, virtual_stages: 1, context: 1, expert: 1, data: 1, micro_batch: 1 };

    /// Number of devices: `t·c·p·d`.
    pub fn devices(&self) -> u64 {
        [self.tensor, self.context, self.pipeline, self.data].iter().map(|&degree| u64::from(degree)).product()
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Layout { tensor, pipeline, virtual_stages, context, expert, data, micro_batch } = self;
        write!(f, "tp={tensor},pp={pipeline},vp={virtual_stages},cp={context},ep={expert},dp={data},mbs={micro_batch}")
    }
}

/// Activations that the backward pass recomputes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recompute {
    /// None.
    None,
    /// Activations of the attention core; fused kernels recompute them anyway.
    Selective,
    /// All activations of every layer.
    Full,
    /// All activations of this many layers per virtual stage.
    Layers(u32),
}

impl Recompute {
    /// Reads a text such as `full:4`.
    pub fn find(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Recompute::None),
            "selective" => Some(Recompute::Selective),
            "full" => Some(Recompute::Full),
            _ => text.strip_prefix("full:")?.parse().ok().filter(|&count| count > 0).map(Recompute::Layers),
        }
    }
}

impl fmt::Display for Recompute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Recompute::None => f.write_str("none"),
            Recompute::Selective => f.write_str("selective"),
            Recompute::Full => f.write_str("full"),
            Recompute::Layers(layers) => write!(f, "full:{layers}"),
        }
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
}

impl ZeroBubble {
    /// Id in files and flags.
    pub fn id(self) -> &'static str {
        match self {
            ZeroBubble::H1 => "zb-h1",
            ZeroBubble::V => "zb-v",
        }
    }

    /// Number of virtual stages per rank.
    pub fn parts(self) -> u32 {
        match self {
            ZeroBubble::H1 => 1,
            ZeroBubble::V => 2,
        }
    }

    /// Schedule with this id.
    pub fn find(id: &str) -> Option<Self> {
        [ZeroBubble::H1, ZeroBubble::V].into_iter().find(|schedule| schedule.id() == id)
    }
}

/// Kernel of the attention core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionKernel {
    /// Best fused kernel of the generation: cuDNN's or FlashAttention 3 on Hopper, FlashAttention 2 on Ampere.
    Flash,
    /// FlashAttention 1.
    Flash1,
    /// FlashAttention 2.
    Flash2,
    /// Kernel that writes scores to memory.
    Unfused,
}

impl AttentionKernel {
    /// Names of all kernels, as in settings.
    pub const IDS: [(&'static str, AttentionKernel); 4] = [
        ("flash", AttentionKernel::Flash),
        ("flash1", AttentionKernel::Flash1),
        ("flash2", AttentionKernel::Flash2),
        ("unfused", AttentionKernel::Unfused),
    ];
}

/// Way in which context parallelism divides attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextStyle {
    /// Keys and values circulate in a ring.
    Ring,
    /// Ranks exchange parts of the sequence for heads.
    AllToAll,
}

impl ContextStyle {
    /// Names of both styles, as in settings.
    pub const IDS: [(&'static str, ContextStyle); 2] =
        [("ring", ContextStyle::Ring), ("all-to-all", ContextStyle::AllToAll)];
}

/// Settings of the training software that do not depend on the layout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingSettings {
    /// True if norms and dropout are divided along the sequence over the tensor group.
    pub sequence_parallel: bool,
    /// True if optimizer state is divided over the data-parallel group.
    pub distributed_optimizer: bool,
    /// True if weights, gradients and state are divided over the data-parallel group (FSDP, ZeRO 3).
    pub fsdp: bool,
    /// True if tensor-parallel transfers overlap with matrix products.
    pub tp_overlap: bool,
    /// True if data-parallel transfers overlap with the backward pass.
    pub dp_overlap: bool,
    /// True if one kernel computes the cross-entropy.
    pub fused_cross_entropy: bool,
    /// True if the loss is computed on parts of the vocabulary.
    pub vocab_parallel_loss: bool,
    /// True if norms and activation functions run in one kernel each.
    pub fused_elementwise: bool,
    /// Kernel of the attention core.
    pub attention: AttentionKernel,
    /// Way in which context parallelism divides attention.
    pub context_style: ContextStyle,
    /// Bytes per element of a gradient.
    pub gradient_bytes: u32,
    /// Bytes reserved for the allocator, NCCL and the context.
    pub reserve_bytes: f64,
}

/// Profile of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stack {
    /// Megatron-Core as in NVIDIA's recipes of 2025.
    #[default]
    Megatron2025,
    /// NeMo as in NVIDIA's benchmark recipes of 2024.
    Nemo24,
    /// torchtitan: FSDP, compiled.
    Torchtitan,
    /// Megatron-LM without optional flags: no overlap of tensor-parallel transfers.
    Plain,
}

impl Stack {
    /// All stacks.
    pub const ALL: [Stack; 4] = [Stack::Megatron2025, Stack::Nemo24, Stack::Torchtitan, Stack::Plain];

    /// Id on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Stack::Megatron2025 => "megatron-2025",
            Stack::Nemo24 => "nemo-24",
            Stack::Torchtitan => "torchtitan",
            Stack::Plain => "plain",
        }
    }

    /// Stack with this id, in either case.
    pub fn find(id: &str) -> Option<Self> {
        Stack::ALL.into_iter().find(|stack| stack.id().eq_ignore_ascii_case(id))
    }

    /// Settings of the stack.
    pub fn settings(self) -> TrainingSettings {
        let plain = TrainingSettings {
            sequence_parallel: true,
            distributed_optimizer: true,
            fsdp: false,
            tp_overlap: false,
            dp_overlap: true,
            fused_cross_entropy: false,
            vocab_parallel_loss: true,
            fused_elementwise: true,
            attention: AttentionKernel::Flash,
            context_style: ContextStyle::Ring,
            gradient_bytes: 4,
            reserve_bytes: 6.0 * GIB,
        };
        match self {
            Stack::Megatron2025 | Stack::Nemo24 => TrainingSettings { tp_overlap: true, ..plain },
            Stack::Torchtitan => TrainingSettings { fsdp: true, attention: AttentionKernel::Flash2, ..plain },
            Stack::Plain => plain,
        }
    }
}

impl TrainingSettings {
    /// Names of all settings with their allowed values, in display order.
    pub const NAMES: [(&'static str, &'static str); 12] = [
        ("sequence_parallel", "true or false"),
        ("distributed_optimizer", "true or false"),
        ("fsdp", "true or false"),
        ("tp_overlap", "true or false"),
        ("dp_overlap", "true or false"),
        ("fused_cross_entropy", "true or false"),
        ("vocab_parallel_loss", "true or false"),
        ("fused_elementwise", "true or false"),
        ("attention", "flash, flash1, flash2 or unfused"),
        ("context_style", "ring or all-to-all"),
        ("gradient_bytes", "2 or 4"),
        ("reserve", "a size, such as 6GiB"),
    ];

    /// Sets a value by name.
    ///
    /// # Errors
    /// A sentence, if there is no such setting or the value is not allowed.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some((_, values)) = TrainingSettings::NAMES.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = TrainingSettings::NAMES.iter().map(|(name, _)| *name).collect();
            let name = crate::text::printable(name);
            return Err(format!("there is no setting `{name}`; there are {}", known.join(", ")));
        };
        let refuse = || format!("{name} is `{}`, must be {values}", crate::text::printable(value));
        let flag = match name {
            "sequence_parallel" => Some(&mut self.sequence_parallel),
            "distributed_optimizer" => Some(&mut self.distributed_optimizer),
            "fsdp" => Some(&mut self.fsdp),
            "tp_overlap" => Some(&mut self.tp_overlap),
            "dp_overlap" => Some(&mut self.dp_overlap),
            "fused_cross_entropy" => Some(&mut self.fused_cross_entropy),
            "vocab_parallel_loss" => Some(&mut self.vocab_parallel_loss),
            "fused_elementwise" => Some(&mut self.fused_elementwise),
            _ => None,
        };
        if let Some(flag) = flag {
            *flag = value.parse().map_err(|_| refuse())?;
            return Ok(());
        }
        match name {
            "attention" => self.attention = named(&AttentionKernel::IDS, value).ok_or_else(refuse)?,
            "context_style" => self.context_style = named(&ContextStyle::IDS, value).ok_or_else(refuse)?,
            "gradient_bytes" => {
                self.gradient_bytes = value.parse().ok().filter(|bytes| [2, 4].contains(bytes)).ok_or_else(refuse)?;
            }
            _ => self.reserve_bytes = size(value).ok_or_else(refuse)?,
        }
        Ok(())
    }

    /// Value of a setting as [`TrainingSettings::set`] reads it.
    pub fn text(&self, name: &str) -> String {
        let flag = match name {
            "sequence_parallel" => self.sequence_parallel,
            "distributed_optimizer" => self.distributed_optimizer,
            "fsdp" => self.fsdp,
            "tp_overlap" => self.tp_overlap,
            "dp_overlap" => self.dp_overlap,
            "fused_cross_entropy" => self.fused_cross_entropy,
            "vocab_parallel_loss" => self.vocab_parallel_loss,
            "fused_elementwise" => self.fused_elementwise,
            "attention" => return id_of(&AttentionKernel::IDS, self.attention).into(),
            "context_style" => return id_of(&ContextStyle::IDS, self.context_style).into(),
            "gradient_bytes" => return self.gradient_bytes.to_string(),
            _ => return units::bytes_exact(self.reserve_bytes),
        };
        flag.to_string()
    }
}

/// Reads a size, which may be 0.
fn size(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if digits.parse() == Ok(0.0) { Some(0.0) } else { units::parse_bytes(text).ok() }
}

fn named<T: Copy>(ids: &[(&str, T)], text: &str) -> Option<T> {
    ids.iter().find(|(id, _)| *id == text).map(|&(_, value)| value)
}

fn id_of<T: Copy + PartialEq>(ids: &[(&'static str, T)], value: T) -> &'static str {
    ids.iter().find(|(_, other)| *other == value).map_or("", |(id, _)| id)
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

    /// Number of parts of norms and dropout along the sequence, τ.
    pub fn sequence_split(&self) -> f64 {
        if self.settings.sequence_parallel { f64::from(self.layout.tensor) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_can_be_set_to_what_it_shows() {
        for stack in Stack::ALL {
            assert_eq!(Stack::find(&stack.id().to_uppercase()), Some(stack));
            let settings = stack.settings();
            let mut copy = Stack::Plain.settings();
            for (name, _) in TrainingSettings::NAMES {
                copy.set(name, &settings.text(name)).unwrap();
            }
            assert_eq!(copy, settings);
        }
        let mut settings = Stack::Plain.settings();
        settings.set("reserve", "0").unwrap();
        assert_eq!(settings.reserve_bytes, 0.0);
        assert!(settings.set("attention", "fast").unwrap_err().contains("must be flash, flash1, flash2 or unfused"));
        assert!(settings.set("colour", "red").unwrap_err().contains("there is no setting `colour`"));
        assert!(settings.set("gradient_bytes", "3").is_err() && settings.set("fsdp", "yes").is_err());
    }
}

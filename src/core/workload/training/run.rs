//! How a model is trained: devices and degrees, batch, precision, what is recomputed, and the settings of the software.
//!
//! Every setting has a name and a default in each [`Stack`], the profile of a training engine.

use std::fmt;

use crate::units;

/// The number format of matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// 16 bits, bfloat16.
    Bf16,
    /// 16 bits, half precision.
    Fp16,
    /// 8 bits with a scale for each tensor.
    Fp8,
    /// 8 bits with a scale for each block.
    MxFp8,
    /// 4 bits with a scale for each block.
    NvFp4,
}

impl Precision {
    /// All of them.
    pub const ALL: [Precision; 5] =
        [Precision::Bf16, Precision::Fp16, Precision::Fp8, Precision::MxFp8, Precision::NvFp4];

    /// What the command line calls it.
    pub fn id(self) -> &'static str {
        match self {
            Precision::Bf16 => "bf16",
            Precision::Fp16 => "fp16",
            Precision::Fp8 => "fp8",
            Precision::MxFp8 => "mxfp8",
            Precision::NvFp4 => "nvfp4",
        }
    }

    /// The precision of this id, in either case.
    pub fn find(id: &str) -> Option<Self> {
        Precision::ALL.into_iter().find(|precision| precision.id().eq_ignore_ascii_case(id))
    }

    /// Bits of an operand of a matrix product.
    pub fn bits(self) -> u32 {
        match self {
            Precision::Bf16 | Precision::Fp16 => 16,
            Precision::Fp8 | Precision::MxFp8 => 8,
            Precision::NvFp4 => 4,
        }
    }
}

/// Degrees of parallelism and the micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Tensor-parallel degree, t.
    pub tensor: u32,
    /// Pipeline stages, p.
    pub pipeline: u32,
    /// Virtual stages of each, v.
    pub virtual_stages: u32,
    /// Context-parallel degree, c.
    pub context: u32,
    /// Expert-parallel degree, e.
    pub expert: u32,
    /// Data-parallel degree without context parallelism, d.
    pub data: u32,
    /// Sequences in a microbatch, b.
    pub micro_batch: u32,
}

impl Layout {
    /// Everything on one device.
    pub const ONE: Layout =
        Layout { tensor: 1, pipeline: 1, virtual_stages: 1, context: 1, expert: 1, data: 1, micro_batch: 1 };

    /// Devices it takes: `t·c·p·d`.
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

/// Which activations are computed again in the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recompute {
    /// None.
    None,
    /// The attention core's; fused kernels do that anyway.
    Selective,
    /// All of every layer's.
    Full,
    /// All of this many layers' of each virtual stage.
    Layers(u32),
}

impl Recompute {
    /// What a text such as `full:4` asks for.
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

/// A schedule that puts off the gradients of the weights, so that they fill the pipeline's bubble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroBubble {
    /// ZB-H1: one part of the model on each rank, no more in flight than the first stage of 1F1B has (Qi et al., ICLR 2024).
    H1,
    /// ZB-V: two parts on each rank, the second half of the model placed back from the last rank to the first (Qi et al.,
    /// NeurIPS 2024).
    V,
}

impl ZeroBubble {
    /// What files and flags call it.
    pub fn id(self) -> &'static str {
        match self {
            ZeroBubble::H1 => "zb-h1",
            ZeroBubble::V => "zb-v",
        }
    }

    /// Virtual stages of every rank under it.
    pub fn parts(self) -> u32 {
        match self {
            ZeroBubble::H1 => 1,
            ZeroBubble::V => 2,
        }
    }

    /// The schedule of this id.
    pub fn find(id: &str) -> Option<Self> {
        [ZeroBubble::H1, ZeroBubble::V].into_iter().find(|schedule| schedule.id() == id)
    }
}

/// The kernel of the attention core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionKernel {
    /// The best fused kernel of the generation: cuDNN's or FlashAttention 3 on Hopper, FlashAttention 2 on Ampere.
    Flash,
    /// FlashAttention 1.
    Flash1,
    /// FlashAttention 2.
    Flash2,
    /// Scores written to memory.
    Unfused,
}

impl AttentionKernel {
    /// Names of all of them, as settings give them.
    pub const IDS: [(&'static str, AttentionKernel); 4] = [
        ("flash", AttentionKernel::Flash),
        ("flash1", AttentionKernel::Flash1),
        ("flash2", AttentionKernel::Flash2),
        ("unfused", AttentionKernel::Unfused),
    ];
}

/// How context parallelism shares attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextStyle {
    /// Keys and values go round.
    Ring,
    /// Heads are exchanged for parts of the sequence.
    AllToAll,
}

impl ContextStyle {
    /// Names of both, as settings give them.
    pub const IDS: [(&'static str, ContextStyle); 2] =
        [("ring", ContextStyle::Ring), ("all-to-all", ContextStyle::AllToAll)];
}

/// What the training software does, whatever the degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingSettings {
    /// Norms and dropout divided along the sequence over the tensor group.
    pub sequence_parallel: bool,
    /// Optimizer state divided over the data-parallel group.
    pub distributed_optimizer: bool,
    /// Weights, gradients and state divided over the data-parallel group (FSDP, ZeRO 3).
    pub fsdp: bool,
    /// Tensor-parallel transfers hidden behind products.
    pub tp_overlap: bool,
    /// Data-parallel transfers hidden behind the backward pass.
    pub dp_overlap: bool,
    /// Cross-entropy in one kernel.
    pub fused_cross_entropy: bool,
    /// The loss computed on parts of the vocabulary.
    pub vocab_parallel_loss: bool,
    /// Norms and activation functions in one kernel each.
    pub fused_elementwise: bool,
    /// The kernel of the attention core.
    pub attention: AttentionKernel,
    /// How context parallelism shares attention.
    pub context_style: ContextStyle,
    /// Bytes of a gradient's element.
    pub gradient_bytes: u32,
    /// Memory for the allocator, NCCL and the context.
    pub reserve_bytes: f64,
}

/// A profile of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stack {
    /// Megatron-Core as NVIDIA's recipes of 2025 run it.
    #[default]
    Megatron2025,
    /// NeMo as NVIDIA's benchmark recipes of 2024 run it.
    Nemo24,
    /// torchtitan: FSDP, compiled.
    Torchtitan,
    /// Megatron-LM without optional flags: nothing of tensor parallelism overlaps.
    Plain,
}

impl Stack {
    /// All of them.
    pub const ALL: [Stack; 4] = [Stack::Megatron2025, Stack::Nemo24, Stack::Torchtitan, Stack::Plain];

    /// What the command line calls it.
    pub fn id(self) -> &'static str {
        match self {
            Stack::Megatron2025 => "megatron-2025",
            Stack::Nemo24 => "nemo-24",
            Stack::Torchtitan => "torchtitan",
            Stack::Plain => "plain",
        }
    }

    /// The stack of this id, in either case.
    pub fn find(id: &str) -> Option<Self> {
        Stack::ALL.into_iter().find(|stack| stack.id().eq_ignore_ascii_case(id))
    }

    /// Its settings.
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
            reserve_bytes: 6.0 * 1024.0 * 1024.0 * 1024.0,
        };
        match self {
            Stack::Megatron2025 | Stack::Nemo24 => TrainingSettings { tp_overlap: true, ..plain },
            Stack::Torchtitan => TrainingSettings { fsdp: true, attention: AttentionKernel::Flash2, ..plain },
            Stack::Plain => plain,
        }
    }
}

impl TrainingSettings {
    /// The names of all settings with what they may be, in the order they are shown.
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

    /// Sets one by name.
    ///
    /// # Errors
    /// A sentence, if there is no such setting or it cannot be that.
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

    /// A setting's value as it would be set.
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

/// A size, which may be 0.
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

/// Shares of the time of each kind of transfer for which one link is busy with it: tensor, context, expert, next stage, data.
pub type LinkShares = [f64; 5];

/// Bytes per second that the groups of a run attain on the links between their devices, the slowest of each kind.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupLinks {
    /// Tensor groups.
    pub tensor: f64,
    /// Context groups.
    pub context: f64,
    /// Groups that exchange tokens for experts.
    pub expert: f64,
    /// From a stage to the next.
    pub next_stage: f64,
    /// Groups that reduce gradients.
    pub data: f64,
    /// A row for every link that may be the busiest.
    pub shares: Vec<LinkShares>,
}

/// One training run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Degrees and micro-batch.
    pub layout: Layout,
    /// Sequences in a batch over all devices.
    pub global_batch: u64,
    /// Tokens in a sequence, s.
    pub sequence: u64,
    /// The number format of products.
    pub precision: Precision,
    /// What is computed again.
    pub recompute: Recompute,
    /// Who tuned the software.
    pub stack: Stack,
    /// What the software does.
    pub settings: TrainingSettings,
    /// Layers of each stage, or of each virtual stage in the order of the model; even where empty.
    pub layers: Vec<u32>,
    /// The schedule, where it is not 1F1B or, with virtual stages, interleaved 1F1B.
    pub zero_bubble: Option<ZeroBubble>,
    /// What its groups attain where they sit on a topology; else links are those of the accelerator.
    pub links: Option<GroupLinks>,
}

impl Run {
    /// Microbatches that a pipeline runs in an iteration, m.
    pub fn microbatches(&self) -> u64 {
        self.global_batch / (u64::from(self.layout.micro_batch) * u64::from(self.layout.data))
    }

    /// Tokens that a rank sees of a microbatch, T.
    pub fn tokens(&self) -> f64 {
        f64::from(self.layout.micro_batch) * self.sequence as f64 / f64::from(self.layout.context)
    }

    /// How often norms and dropout are divided, τ.
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

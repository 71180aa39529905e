//! Classes of published runs: what they have in common, and how far off their predictions are.
//!
//! The figures are those of the table by class (`docs/src/background/truth.md`); a test computes them again.

use serde::Serialize;

use super::Domain;
use crate::workload::training::run::{AttentionKernel, Stack};

/// Errors of the fullest device's memory, relative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryErrors {
    /// Number of runs that state their memory.
    pub runs: u32,
    /// Mean absolute error.
    pub mean: f64,
    /// Nine of ten runs are at most this far off.
    pub band: f64,
}

/// Published runs of one kind, with the errors of their predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunClass {
    /// Common properties of the runs.
    pub class: &'static str,
    /// Number of runs.
    pub runs: u32,
    /// Mean absolute error of the iteration time, relative: the larger of that with the shipped constants and that with
    /// constants fitted on other sources.
    pub mean_error: f64,
    /// Nine of ten runs are at most this far off, relative; the larger of the same two.
    pub band: f64,
    /// Mean error, above 0 if predicted too slow.
    pub bias: f64,
    /// Largest absolute error of the iteration time, relative.
    pub worst_error: f64,
    /// Errors of the memory, if measured.
    #[serde(skip)]
    pub memory: Option<MemoryErrors>,
    /// Runs for which the errors hold.
    #[serde(skip)]
    pub domain: Domain,
}

const NVIDIA: &[Stack] = &[Stack::Nemo24, Stack::Megatron2025];
const FUSED: &[AttentionKernel] = &[AttentionKernel::Flash];
const BLACKWELL: &[(&str, f64)] = &[("b200", 1000.0), ("gb200", 1200.0), ("b300", 1100.0), ("gb300", 1400.0)];

/// Default domain of the classes.
const USUAL: Domain = Domain {
    stacks: &[Stack::Plain],
    as_shipped: false,
    hardware: &[("h100", 700.0)],
    bits: &[16],
    fsdp: false,
    experts: false,
    release: None,
    adapters: false,
    odd_widths: false,
    attention: FUSED,
    zero_bubble: false,
    parameters: [0.0, f64::INFINITY],
    sequence: [2048, 8192],
    devices: [8, 8],
    degrees: [8, 1, 1],
};

const ON_H100: Domain = Domain {
    stacks: NVIDIA,
    as_shipped: true,
    parameters: [8e9, 406e9],
    devices: [8, 2304],
    degrees: [8, 9, 2],
    ..USUAL
};

const ON_A100: Domain = Domain {
    stacks: NVIDIA,
    hardware: &[("a100-80", 400.0)],
    attention: &[AttentionKernel::Unfused],
    parameters: [1.6e9, 1010e9],
    sequence: [1024, 2048],
    devices: [8, 3072],
    degrees: [8, 64, 1],
    ..USUAL
};

const ON_B200: Domain = Domain {
    hardware: &[("b200", 1000.0)],
    parameters: [12e9, 17e9],
    sequence: [4096, 131_072],
    degrees: [4, 2, 4],
    ..USUAL
};

const FSDP: Domain = Domain {
    stacks: &[Stack::Torchtitan],
    hardware: &[("h100", 700.0), ("h100", 500.0), ("h200", 700.0)],
    fsdp: true,
    attention: &[AttentionKernel::Flash, AttentionKernel::Flash2],
    parameters: [758e6, 175e9],
    sequence: [512, 65_536],
    devices: [2, 512],
    degrees: [8, 1, 1],
    ..USUAL
};

const BRIDGE: Domain = Domain {
    stacks: &[Stack::Megatron2025],
    as_shipped: true,
    hardware: BLACKWELL,
    parameters: [8e9, 406e9],
    sequence: [4096, 8192],
    devices: [8, 256],
    degrees: [4, 16, 2],
    ..USUAL
};

/// Dense models in 16 bits on H100 (NVIDIA's DGX Cloud benchmarking recipes).
pub(super) const H100_BF16: RunClass = RunClass {
    class: "dense decoders, bf16, H100, NVIDIA's stack (dgxc-benchmarking)",
    runs: 57,
    mean_error: 0.0206,
    band: 0.0385,
    bias: -0.0075,
    worst_error: 0.0484,
    memory: None,
    domain: ON_H100,
};

/// Dense models in 8 bits on H100 (NVIDIA's DGX Cloud benchmarking recipes).
pub(super) const H100_FP8: RunClass = RunClass {
    class: "dense decoders, fp8, H100, NVIDIA's stack (dgxc-benchmarking)",
    runs: 57,
    mean_error: 0.0535,
    band: 0.0994,
    bias: -0.0239,
    worst_error: 0.1486,
    memory: None,
    domain: Domain { bits: &[8], ..ON_H100 },
};

/// Dense models on A100 without fused attention (Narayanan 2021, Korthikanti 2022, Qi 2023).
pub(super) const A100_UNFUSED: RunClass = RunClass {
    class: "dense decoders, 16 bits, A100, NVIDIA's Megatron-LM without fused attention (three papers)",
    runs: 42,
    mean_error: 0.0322,
    band: 0.0645,
    bias: -0.0056,
    worst_error: 0.0959,
    memory: None,
    domain: ON_A100,
};

/// Dense models on A100 under ZB-1p, a schedule that delays the gradients of the weights. ZB-H1 represents it (Qi
/// 2023).
pub(super) const A100_ZERO_BUBBLE: RunClass = RunClass {
    class: "dense decoders, bf16, A100, zero-bubble schedule of 1F1B's memory (Qi et al. 2023)",
    runs: 12,
    mean_error: 0.0428,
    band: 0.0791,
    bias: -0.0060,
    worst_error: 0.0814,
    memory: None,
    domain: Domain {
        zero_bubble: true,
        parameters: [1.6e9, 29e9],
        sequence: [1024, 1024],
        devices: [8, 32],
        degrees: [1, 32, 1],
        ..ON_A100
    },
};

/// Dense models on one machine of B200 (SimuMax).
pub(super) const B200_DENSE: RunClass = RunClass {
    class: "dense decoders, bf16, one node of B200, Megatron-LM (SimuMax)",
    runs: 16,
    mean_error: 0.0360,
    band: 0.0791,
    bias: 0.0043,
    worst_error: 0.0648,
    memory: Some(MemoryErrors { runs: 16, mean: 0.0177, band: 0.0327 }),
    domain: ON_B200,
};

/// Mixtures of experts with latent attention on one machine of B200 (SimuMax).
pub(super) const B200_EXPERTS: RunClass = RunClass {
    class: "mixtures of experts with latent attention, bf16, one node of B200, Megatron-LM (SimuMax)",
    runs: 6,
    mean_error: 0.0671,
    band: 0.0868,
    bias: 0.0646,
    worst_error: 0.0868,
    memory: Some(MemoryErrors { runs: 6, mean: 0.0141, band: 0.0149 }),
    domain: Domain { experts: true, parameters: [13e9, 37e9], sequence: [4096, 4096], degrees: [1, 1, 1], ..ON_B200 },
};

/// Dense models under FSDP in 16 bits on Hopper (MosaicML, Pax, KempnerForge, torchtitan).
pub(super) const FSDP_BF16: RunClass = RunClass {
    class: "dense decoders, bf16, H100 and H200, FSDP (MosaicML, Pax, KempnerForge, torchtitan)",
    runs: 57,
    mean_error: 0.0714,
    band: 0.1398,
    bias: 0.0053,
    worst_error: 0.4161,
    memory: Some(MemoryErrors { runs: 17, mean: 0.1196, band: 0.3283 }),
    domain: FSDP,
};

/// Dense models under FSDP in 8 bits on Hopper.
pub(super) const FSDP_FP8: RunClass = RunClass {
    class: "dense decoders, fp8, H100 and H200, FSDP (MosaicML, Pax, torchtitan)",
    runs: 23,
    mean_error: 0.1597,
    band: 0.2901,
    bias: 0.0110,
    worst_error: 0.3879,
    memory: Some(MemoryErrors { runs: 9, mean: 0.0944, band: 0.3694 }),
    domain: Domain {
        bits: &[8],
        parameters: [1.3e9, 71e9],
        sequence: [512, 262_144],
        devices: [8, 256],
        degrees: [8, 1, 8],
        ..FSDP
    },
};

/// Dense models on A100 with Megatron-DeepSpeed (BigScience).
pub(super) const A100_PLAIN: RunClass = RunClass {
    class: "dense decoders, 16 bits, A100, Megatron-DeepSpeed without fused attention (BigScience)",
    runs: 37,
    mean_error: 0.0557,
    band: 0.1052,
    bias: -0.0409,
    worst_error: 0.1894,
    memory: Some(MemoryErrors { runs: 26, mean: 0.1464, band: 0.2625 }),
    domain: Domain {
        stacks: &[Stack::Plain],
        odd_widths: true,
        parameters: [176e9, 204e9],
        sequence: [2048, 2048],
        devices: [320, 384],
        degrees: [8, 48, 1],
        ..ON_A100
    },
};

/// Dense models under FSDP on A100 (MosaicML, IBM, torchtitan).
pub(super) const A100_FSDP: RunClass = RunClass {
    class: "dense decoders, bf16, A100, FSDP (MosaicML, IBM, torchtitan)",
    runs: 66,
    mean_error: 0.0352,
    band: 0.0921,
    bias: -0.0007,
    worst_error: 0.2294,
    memory: None,
    domain: Domain {
        hardware: &[("a100-80", 400.0), ("a100-40", 400.0)],
        parameters: [124e6, 71e9],
        devices: [8, 128],
        degrees: [1, 1, 1],
        ..FSDP
    },
};

/// Dense models in 16 and 8 bits on Blackwell (Megatron-Bridge).
pub(super) const BLACKWELL_DENSE: RunClass = RunClass {
    class: "dense decoders, bf16 or fp8, B200, GB200 and GB300, Megatron-Bridge",
    runs: 37,
    mean_error: 0.0630,
    band: 0.1205,
    bias: 0.0321,
    worst_error: 0.2054,
    memory: None,
    domain: Domain { bits: &[16, 8], sequence: [8192, 8192], ..BRIDGE },
};

/// Dense models in 4 bits on Blackwell (Megatron-Bridge).
pub(super) const BLACKWELL_NVFP4: RunClass = RunClass {
    class: "dense decoders, nvfp4, GB200 and GB300, Megatron-Bridge",
    runs: 11,
    mean_error: 0.1052,
    band: 0.2138,
    bias: 0.0108,
    worst_error: 0.1421,
    memory: None,
    domain: Domain {
        bits: &[4],
        parameters: [70e9, 406e9],
        sequence: [8192, 8192],
        devices: [64, 256],
        degrees: [4, 16, 1],
        ..BRIDGE
    },
};

/// Mixtures of experts with NVIDIA's stacks on Hopper.
pub(super) const HOPPER_EXPERTS: RunClass = RunClass {
    class: "mixtures of experts, H100, Megatron-Bridge and NeMo, release not named",
    runs: 32,
    mean_error: 0.1253,
    band: 0.2522,
    bias: -0.0072,
    worst_error: 0.5207,
    memory: None,
    domain: Domain {
        experts: true,
        release: Some(false),
        as_shipped: false,
        bits: &[16, 8],
        parameters: [11.4e9, 317e9],
        sequence: [4096, 8192],
        devices: [8, 1024],
        degrees: [4, 8, 2],
        ..ON_H100
    },
};

/// Same with Megatron-Bridge, if the release is named.
pub(super) const HOPPER_EXPERTS_RELEASE: RunClass = RunClass {
    class: "mixtures of experts, H100, Megatron-Bridge, release named",
    runs: 6,
    mean_error: 0.2382,
    band: 0.5534,
    bias: -0.1527,
    worst_error: 0.5015,
    memory: None,
    domain: Domain {
        stacks: &[Stack::Megatron2025],
        release: Some(true),
        parameters: [30e9, 121e9],
        sequence: [4096, 4096],
        devices: [16, 64],
        degrees: [1, 4, 1],
        ..HOPPER_EXPERTS.domain
    },
};

/// Mixtures of experts with NVIDIA's stacks on Blackwell.
pub(super) const BLACKWELL_EXPERTS: RunClass = RunClass {
    class: "mixtures of experts, Blackwell, Megatron-Bridge, release not named",
    runs: 63,
    mean_error: 0.1955,
    band: 0.4909,
    bias: 0.1048,
    worst_error: 0.7467,
    memory: None,
    domain: Domain {
        experts: true,
        release: Some(false),
        as_shipped: false,
        bits: &[16, 8],
        parameters: [30e9, 672e9],
        degrees: [4, 16, 1],
        ..BRIDGE
    },
};

/// Same, if the release is named.
pub(super) const BLACKWELL_EXPERTS_RELEASE: RunClass = RunClass {
    class: "mixtures of experts, Blackwell, Megatron-Bridge, release named",
    runs: 61,
    mean_error: 0.1459,
    band: 0.2777,
    bias: 0.0333,
    worst_error: 0.8165,
    memory: None,
    domain: Domain { release: Some(true), ..BLACKWELL_EXPERTS.domain },
};

/// Adapters with Megatron-Bridge.
pub(super) const ADAPTERS: RunClass = RunClass {
    class: "LoRA of a dense decoder, fp8, H100, GB200 and GB300, Megatron-Bridge",
    runs: 5,
    mean_error: 0.0767,
    band: 0.1151,
    bias: 0.0767,
    worst_error: 0.1151,
    memory: None,
    domain: Domain {
        adapters: true,
        hardware: &[("h100", 700.0), ("gb200", 1200.0), ("gb300", 1400.0)],
        bits: &[8],
        parameters: [70e9, 71e9],
        sequence: [4096, 4096],
        devices: [8, 8],
        degrees: [2, 4, 1],
        ..BRIDGE
    },
};

/// All classes.
pub const CLASSES: [&RunClass; 17] = [
    &H100_BF16,
    &H100_FP8,
    &A100_UNFUSED,
    &A100_ZERO_BUBBLE,
    &B200_DENSE,
    &B200_EXPERTS,
    &FSDP_BF16,
    &FSDP_FP8,
    &A100_PLAIN,
    &A100_FSDP,
    &BLACKWELL_DENSE,
    &BLACKWELL_NVFP4,
    &HOPPER_EXPERTS,
    &HOPPER_EXPERTS_RELEASE,
    &BLACKWELL_EXPERTS,
    &BLACKWELL_EXPERTS_RELEASE,
    &ADAPTERS,
];

//! How far predictions with the shipped constants were off on published runs, by classes of runs.
//!
//! The figures come out of the truth table (`docs/truth.md`, `examples/truth_table.rs`); a test holds them against it. What
//! no class covers has no figure: an error is measured, never hoped for.

pub mod rows;
pub mod summary;

use serde::Serialize;

use super::{Accelerator, AttentionKernel, Model, Run, hardware::Generation};

/// Published runs of one kind, and how far off their predictions were.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Class {
    /// What the runs have in common.
    pub class: &'static str,
    /// How many there are.
    pub runs: u32,
    /// Mean absolute error of the time of an iteration, relative.
    pub mean_error: f64,
    /// The largest.
    pub worst_error: f64,
    /// The fewest and the most devices they ran on.
    pub devices: [u64; 2],
}

/// Dense models in 16 bits on H100 (NVIDIA's DGX Cloud benchmarking recipes).
pub const H100_BF16: Class = Class {
    class: "dense decoders, bf16, H100, NVIDIA's Megatron stack (dgxc-benchmarking)",
    runs: 57,
    mean_error: 0.0165,
    worst_error: 0.048,
    devices: [8, 2304],
};

/// The same in 8 bits.
pub const H100_FP8: Class = Class {
    class: "dense decoders, fp8, H100, NVIDIA's Megatron stack (dgxc-benchmarking)",
    runs: 57,
    mean_error: 0.0454,
    worst_error: 0.149,
    devices: [8, 2304],
};

/// Dense models on A100 without fused attention (Narayanan 2021, Korthikanti 2022, Qi 2023).
pub const A100_UNFUSED: Class = Class {
    class: "dense decoders, 16 bits, A100, Megatron-LM without fused attention (three papers)",
    runs: 42,
    mean_error: 0.0279,
    worst_error: 0.096,
    devices: [8, 3072],
};

/// The same under a schedule that puts off the gradients of the weights, ZB-1p, which ZB-H1 stands for (Qi 2023).
pub const A100_ZERO_BUBBLE: Class = Class {
    class: "dense decoders, bf16, A100, zero-bubble schedule of 1F1B's memory (Qi et al. 2023)",
    runs: 12,
    mean_error: 0.0336,
    worst_error: 0.081,
    devices: [8, 32],
};

/// Dense models on one node of B200 (SimuMax).
pub const B200_DENSE: Class = Class {
    class: "dense decoders, bf16, one node of B200, Megatron-LM (SimuMax)",
    runs: 16,
    mean_error: 0.0641,
    worst_error: 0.137,
    devices: [8, 8],
};

/// Mixtures of experts with latent attention on one node of B200 (SimuMax).
pub const B200_EXPERTS: Class = Class {
    class: "mixtures of experts with latent attention, bf16, one node of B200, Megatron-LM (SimuMax)",
    runs: 6,
    mean_error: 0.0409,
    worst_error: 0.106,
    devices: [8, 8],
};

/// Dense models under torchtitan's FSDP in 16 bits on H100 of 500 W.
pub const TORCHTITAN_BF16: Class = Class {
    class: "dense decoders, bf16, H100 at 500 W, torchtitan with FSDP",
    runs: 8,
    mean_error: 0.0840,
    worst_error: 0.180,
    devices: [8, 256],
};

/// The same in 8 bits, scaled by tensor and by row.
pub const TORCHTITAN_FP8: Class = Class {
    class: "dense decoders, fp8, H100 at 500 W, torchtitan with FSDP",
    runs: 16,
    mean_error: 0.1605,
    worst_error: 0.451,
    devices: [8, 256],
};

/// The class of published runs that a run belongs to; `None` where none is like it.
pub fn class(model: &Model, run: &Run, accelerator: &Accelerator) -> Option<&'static Class> {
    if !model.is_decoder() {
        return None;
    }
    let bits = run.precision.bits();
    if run.settings.fsdp {
        let like = accelerator.generation == Generation::Hopper && !model.has_experts() && run.layout.pipeline == 1;
        return match bits {
            16 if like => Some(&TORCHTITAN_BF16),
            8 if like => Some(&TORCHTITAN_FP8),
            _ => None,
        };
    }
    if !run.settings.fused_elementwise {
        return None;
    }
    let fused = run.settings.attention == AttentionKernel::Flash;
    if run.zero_bubble.is_some() {
        let like = accelerator.generation == Generation::Ampere && !fused && bits == 16 && !model.has_experts();
        return like.then_some(&A100_ZERO_BUBBLE);
    }
    match (accelerator.generation, bits) {
        (Generation::Hopper, 16) if fused && !model.has_experts() => Some(&H100_BF16),
        (Generation::Hopper, 8) if fused && !model.has_experts() => Some(&H100_FP8),
        (Generation::Ampere, 16) if run.settings.attention == AttentionKernel::Unfused && !model.has_experts() => {
            Some(&A100_UNFUSED)
        }
        (Generation::Blackwell, 16) if fused && accelerator.id == "b200" && run.layout.devices() <= 8 => {
            Some(if model.has_experts() { &B200_EXPERTS } else { &B200_DENSE })
        }
        _ => None,
    }
}

/// What is known to be predicted badly, where a run is like it.
pub fn weaknesses(model: &Model, run: &Run, accelerator: &Accelerator) -> Vec<String> {
    let mut sentences = vec![];
    if model.has_experts() {
        sentences.push(
            "mixtures of experts: equal runs differ by up to 58% between software releases, and predictions were 16 to 42% off"
                .into(),
        );
    }
    if run.layout.pipeline == 2 && run.layout.micro_batch >= 4 {
        sentences
            .push("two stages with large microbatches ran up to twice as slow as predicted in one data set".into());
    }
    let small = model.parameters() < 10_000_000_000;
    if accelerator.generation == Generation::Blackwell && run.layout.tensor >= 8 && small {
        sentences.push("tensor degree 8 of small models on Blackwell was predicted 16% too fast".into());
    }
    if accelerator.generation == Generation::Ampere && run.settings.attention != AttentionKernel::Unfused {
        sentences
            .push("a stack on A100 with fused attention was predicted 17% off, all layouts by about as much".into());
    }
    if let Some(class) = class(model, run, accelerator) {
        let devices = run.layout.devices();
        if devices > class.devices[1] || devices < class.devices[0] {
            let [least, most] = class.devices;
            sentences.push(format!("the published runs used {least} to {most} devices"));
        }
    }
    sentences
}

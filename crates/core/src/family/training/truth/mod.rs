//! Errors of predictions with the shipped constants on published runs, by class of runs.
//!
//! The figures come from the truth table (`docs/src/background/truth.md`, `examples/truth_table.rs`); a test compares them. A run
//! outside all classes has no figure: every error is measured.

mod domain;
pub mod rows;
pub mod summary;

pub use domain::Domain;

use serde::Serialize;

use crate::workload::training::{
    constants::Constants,
    hardware::{Accelerator, Generation},
    model::Model,
    run::{AttentionKernel, Stack, TrainingRun},
};

/// Published runs of one kind, with the errors of their predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunClass {
    /// Common properties of the runs.
    pub class: &'static str,
    /// Number of runs.
    pub runs: u32,
    /// Mean absolute error of the iteration time, relative.
    pub mean_error: f64,
    /// Largest absolute error of the iteration time, relative.
    pub worst_error: f64,
    /// Largest error of the fullest device's memory, relative, if measured.
    #[serde(skip)]
    pub memory_error: Option<f64>,
    /// Runs for which the errors hold.
    #[serde(skip)]
    pub domain: Domain,
}

const NVIDIA: &[Stack] = &[Stack::Nemo24, Stack::Megatron2025];
const FUSED: &[AttentionKernel] = &[AttentionKernel::Flash];

/// Default domain of the classes.
const USUAL: Domain = Domain {
    stacks: &[Stack::Plain],
    as_shipped: false,
    hardware: ("h100", 700.0),
    bits: 16,
    fsdp: false,
    experts: false,
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
    hardware: ("a100-80", 400.0),
    attention: &[AttentionKernel::Unfused],
    parameters: [1.6e9, 1010e9],
    sequence: [1024, 2048],
    devices: [8, 3072],
    degrees: [8, 64, 1],
    ..USUAL
};

const ON_B200: Domain = Domain {
    hardware: ("b200", 1000.0),
    parameters: [12e9, 17e9],
    sequence: [4096, 131_072],
    degrees: [4, 2, 4],
    ..USUAL
};

const TORCHTITAN: Domain = Domain {
    stacks: &[Stack::Torchtitan],
    hardware: ("h100", 500.0),
    fsdp: true,
    attention: &[AttentionKernel::Flash2],
    parameters: [8e9, 71e9],
    sequence: [8192, 8192],
    devices: [8, 256],
    degrees: [8, 1, 1],
    ..USUAL
};

/// Dense models in 16 bits on H100 (NVIDIA's DGX Cloud benchmarking recipes).
pub const H100_BF16: RunClass = RunClass {
    class: "dense decoders, bf16, H100, NVIDIA's Megatron stack (dgxc-benchmarking)",
    runs: 57,
    mean_error: 0.0162,
    worst_error: 0.048,
    memory_error: None,
    domain: ON_H100,
};

/// Dense models in 8 bits on H100 (NVIDIA's DGX Cloud benchmarking recipes).
pub const H100_FP8: RunClass = RunClass {
    class: "dense decoders, fp8, H100, NVIDIA's Megatron stack (dgxc-benchmarking)",
    runs: 57,
    mean_error: 0.0470,
    worst_error: 0.149,
    memory_error: None,
    domain: Domain { bits: 8, ..ON_H100 },
};

/// Dense models on A100 without fused attention (Narayanan 2021, Korthikanti 2022, Qi 2023).
pub const A100_UNFUSED: RunClass = RunClass {
    class: "dense decoders, 16 bits, A100, Megatron-LM without fused attention (three papers)",
    runs: 42,
    mean_error: 0.0279,
    worst_error: 0.096,
    memory_error: None,
    domain: ON_A100,
};

/// Dense models on A100 under ZB-1p, a schedule that delays the gradients of the weights. ZB-H1 represents it (Qi
/// 2023).
pub const A100_ZERO_BUBBLE: RunClass = RunClass {
    class: "dense decoders, bf16, A100, zero-bubble schedule of 1F1B's memory (Qi et al. 2023)",
    runs: 12,
    mean_error: 0.0336,
    worst_error: 0.081,
    memory_error: None,
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
pub const B200_DENSE: RunClass = RunClass {
    class: "dense decoders, bf16, one node of B200, Megatron-LM (SimuMax)",
    runs: 16,
    mean_error: 0.0641,
    worst_error: 0.137,
    memory_error: Some(0.034),
    domain: ON_B200,
};

/// Mixtures of experts with latent attention on one machine of B200 (SimuMax).
pub const B200_EXPERTS: RunClass = RunClass {
    class: "mixtures of experts with latent attention, bf16, one node of B200, Megatron-LM (SimuMax)",
    runs: 6,
    mean_error: 0.0409,
    worst_error: 0.106,
    memory_error: Some(0.015),
    domain: Domain { experts: true, parameters: [13e9, 37e9], sequence: [4096, 4096], degrees: [1, 1, 1], ..ON_B200 },
};

/// Dense models under torchtitan's FSDP in 16 bits on H100 at 500 W.
pub const TORCHTITAN_BF16: RunClass = RunClass {
    class: "dense decoders, bf16, H100 at 500 W, torchtitan with FSDP",
    runs: 8,
    mean_error: 0.0840,
    worst_error: 0.180,
    memory_error: None,
    domain: TORCHTITAN,
};

/// Dense models under torchtitan's FSDP in 8 bits, scaled by tensor and by row.
pub const TORCHTITAN_FP8: RunClass = RunClass {
    class: "dense decoders, fp8, H100 at 500 W, torchtitan with FSDP",
    runs: 16,
    mean_error: 0.1605,
    worst_error: 0.451,
    memory_error: None,
    domain: Domain { bits: 8, sequence: [8192, 262_144], degrees: [8, 1, 8], ..TORCHTITAN },
};

/// All classes.
pub const CLASSES: [&RunClass; 8] = [
    &H100_BF16,
    &H100_FP8,
    &A100_UNFUSED,
    &A100_ZERO_BUBBLE,
    &B200_DENSE,
    &B200_EXPERTS,
    &TORCHTITAN_BF16,
    &TORCHTITAN_FP8,
];

/// Assumed error of the memory model if none was measured, relative.
pub const UNKNOWN_MEMORY_ERROR: f64 = 0.10;

/// Error of the memory model for a run, relative.
pub fn memory_error(model: &Model, run: &TrainingRun, accelerator: &Accelerator, constants: &Constants) -> f64 {
    let measured = CLASSES.into_iter().filter(|class| class.memory_error.is_some());
    // Most hardware has no such class, so further checks are skipped.
    let of_hardware = measured.filter(|class| class.domain.hardware.0 == accelerator.id);
    let like = |class: &&RunClass| class.domain.differences(model, run, accelerator, constants).is_empty();
    of_hardware.into_iter().find(like).and_then(|class| class.memory_error).unwrap_or(UNKNOWN_MEMORY_ERROR)
}

/// Evidence for a prediction.
#[derive(Debug, Clone, PartialEq)]
pub enum Trust {
    /// Comparable published runs.
    Measured(&'static RunClass),
    /// No comparable published run: the differences from the nearest ones, a phrase each.
    Untested(Vec<String>),
}

impl Trust {
    /// Evidence for a run: its class, or the differences from the nearest class.
    pub fn of(model: &Model, run: &TrainingRun, accelerator: &Accelerator, constants: &Constants) -> Self {
        let all = CLASSES.map(|class| (class, class.domain.differences(model, run, accelerator, constants)));
        let nearest = all.into_iter().min_by_key(|(_, differences)| differences.len());
        match nearest {
            Some((class, differences)) if differences.is_empty() => Trust::Measured(class),
            Some((_, differences)) => Trust::Untested(differences),
            None => Trust::Untested(vec![]),
        }
    }

    /// Class of comparable published runs.
    pub fn class(&self) -> Option<&'static RunClass> {
        match self {
            Trust::Measured(class) => Some(class),
            Trust::Untested(_) => None,
        }
    }

    /// Differences from all published runs.
    pub fn differences(&self) -> &[String] {
        match self {
            Trust::Measured(_) => &[],
            Trust::Untested(differences) => differences,
        }
    }

    /// Error of the memory model, relative.
    pub fn memory_error(&self) -> f64 {
        self.class().and_then(|class| class.memory_error).unwrap_or(UNKNOWN_MEMORY_ERROR)
    }

    /// Evidence in a sentence.
    pub fn summary(&self) -> String {
        match self {
            Trust::Measured(class) => format!(
                "mean error {}, worst {}, on {} published runs: {}",
                crate::units::percent(class.mean_error),
                crate::units::percent(class.worst_error),
                class.runs,
                class.class
            ),
            Trust::Untested(differences) => {
                format!("no published run is comparable: {}", differences.join("; "))
            }
        }
    }
}

/// Largest plausible utilisation in 16 bits: no published run attains it.
const PLAUSIBLE: f64 = 0.75;

/// Reason why a utilisation with recomputation is implausible, with the likely cause; `None` if it is plausible.
pub fn implausible(
    utilisation: f64,
    run: &TrainingRun,
    accelerator: &Accelerator,
    constants: &Constants,
) -> Option<String> {
    if run.precision.bits() != 16 || utilisation <= PLAUSIBLE {
        return None;
    }
    let cause = if *constants != Constants::shipped(accelerator.generation, run.stack) {
        "the constants were changed or calibrated beyond what published runs reach"
    } else if !accelerator.is_preset() {
        "the figures of the hardware are not its data sheet's"
    } else {
        "the constants were fitted on different runs"
    };
    let [own, most] = [utilisation, PLAUSIBLE].map(crate::units::percent);
    Some(format!(
        "implausible: {own} of the peak, recomputation included; no published run in 16 bits exceeds {most}; likely \
        cause: {cause}"
    ))
}

/// Known weaknesses of the predictions that apply to a run.
pub fn weaknesses(model: &Model, run: &TrainingRun, accelerator: &Accelerator) -> Vec<String> {
    let mut sentences = vec![];
    if model.has_experts() {
        sentences.push(
            "mixtures of experts: equal runs differ by up to 58% between software releases; the error was 16 to 42%"
                .into(),
        );
    }
    if run.layout.pipeline == 2 && run.layout.micro_batch >= 4 {
        sentences.push("in one data set two stages with large microbatches took up to twice the predicted time".into());
    }
    let small = model.parameters() < 10_000_000_000;
    if accelerator.generation == Generation::Blackwell && run.layout.tensor >= 8 && small {
        sentences.push("tensor degree 8 of small models on Blackwell was 16% slower than predicted".into());
    }
    if accelerator.generation == Generation::Ampere && run.settings.attention != AttentionKernel::Unfused {
        sentences.push("for a stack on A100 with fused attention the error was 17%, similar for all layouts".into());
    }
    sentences
}

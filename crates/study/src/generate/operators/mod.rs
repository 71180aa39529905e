//! Device-placement workload from a network's operators: one forward pass, and the backward pass of training.
//!
//! [`generate`] takes a [`OperatorNetwork`], a [`Hardware`] preset and [`OperatorSettings`] and returns the text of the
//! file, with its provenance and assumptions. On an accelerator with training constants, matrix products, attention
//! cores and passes over memory take the times of the model of real training (`kernels.rs`). Elsewhere, and on CPUs, an
//! operator takes the longer of its matrix arithmetic and its memory traffic. This is the roofline of Williams,
//! Waterman and Patterson, CACM 2009. `O(operators)` time and memory; equal arguments give equal bytes.
//!
//! An operator and its gradient share a colour class, and the operator carries all memory. So parameters, their
//! gradients and their kept activations are always on one device.

mod assumptions;
mod cnn;
mod kernels;
mod sketch;
mod transformer;

use super::{GenerateError, ModelConfig, StateBytes};
use plantui_core::{cluster::hardware::Hardware, units, workload::TrainingProfile};

pub use cnn::Cnn;

/// Name of the generated convolutional network.
pub const BRANCHING_CNN: &str = "branching-cnn";

/// Passes computed for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplePass {
    /// Forward pass only.
    Inference,
    /// Forward and backward.
    Training,
}

/// Network whose operators are written.
#[derive(Debug, Clone, PartialEq)]
pub enum OperatorNetwork {
    /// Transformer.
    Transformer(ModelConfig),
    /// Convolutional network with branches.
    Cnn(Cnn),
}

/// Settings of a run, and the limits written into the file.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorSettings {
    /// Forward pass only, or with backward.
    pub pass: SamplePass,
    /// Tokens per sequence; transformers only.
    pub sequence_length: u64,
    /// Samples per microbatch.
    pub micro_batch: u64,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Fraction of an accelerator's peak that matrix arithmetic attains.
    pub mfu: f64,
    /// Bytes of state per parameter.
    pub state: StateBytes,
    /// True if attention scores are separate operators (no flash attention).
    pub keep_attention_scores: bool,
    /// True if causal attention counts only half of its work.
    pub causal_credit: bool,
    /// FLOP/s that a CPU attains.
    pub cpu_flops: f64,
    /// Bytes per second between a CPU and its memory.
    pub cpu_bandwidth: f64,
    /// Bytes per second between an accelerator and the host.
    pub host_link: f64,
    /// Number of accelerators, written into the file.
    pub accelerators: u32,
    /// Number of CPUs, written into the file.
    pub cpus: u32,
    /// Memory of an accelerator, written into the file, bytes.
    pub memory_bytes: f64,
    /// Training profile of the transformer. If present, its constants give the accelerator times and `mfu` is ignored.
    pub trained: Option<TrainingProfile>,
}

/// Attained arithmetic of a server CPU, FLOP/s.
const CPU_FLOPS: f64 = 1e12;
/// Attained memory bandwidth of a server CPU, bytes per second.
const CPU_BANDWIDTH: f64 = 100e9;
/// Attained bandwidth of a PCIe 4.0 x16 link with nominal 32 GB/s.
const HOST_LINK: f64 = 16e9;
const LONGEST_DEFAULT_SEQUENCE: u64 = 4096;

impl OperatorSettings {
    /// Defaults for a network on some hardware.
    pub fn defaults(network: &OperatorNetwork, hardware: &Hardware, pass: SamplePass) -> Self {
        let element_bytes = 2;
        OperatorSettings {
            pass,
            sequence_length: match network {
                OperatorNetwork::Transformer(model) => model.longest_sequence.min(LONGEST_DEFAULT_SEQUENCE),
                OperatorNetwork::Cnn(_) => 1,
            },
            micro_batch: 1,
            element_bytes,
            mfu: hardware.mfu.value,
            state: StateBytes::Fixed(match pass {
                SamplePass::Training => 18.0,
                SamplePass::Inference => f64::from(element_bytes),
            }),
            keep_attention_scores: false,
            causal_credit: false,
            cpu_flops: CPU_FLOPS,
            cpu_bandwidth: CPU_BANDWIDTH,
            host_link: HOST_LINK,
            accelerators: 6,
            cpus: 1,
            memory_bytes: hardware.memory_bytes.value,
            trained: None,
        }
    }

    /// Checks that the settings suit the network.
    ///
    /// # Errors
    /// [`GenerateError::Setting`] with the flag and the repair.
    pub fn validate(&self, network: &OperatorNetwork) -> Result<(), GenerateError> {
        let refuse = |flag, problem: String| Err(GenerateError::Setting { flag, problem });
        match network {
            OperatorNetwork::Transformer(model) => {
                if !(1..=1 << 24).contains(&self.sequence_length) {
                    return refuse("--sequence-length", format!("{} is not from 1 to 16777216", self.sequence_length));
                }
                if model.positions > 0 && self.sequence_length > model.positions {
                    let (name, positions) = (&model.name, model.positions);
                    let problem =
                        format!("{} is more than the {positions} positions {name} has learned", self.sequence_length);
                    return refuse("--sequence-length", problem);
                }
                if self.causal_credit && model.padding_mask {
                    let problem = format!("{} has no causal attention; leave the option out", model.name);
                    return refuse("--causal-credit", problem);
                }
            }
            OperatorNetwork::Cnn(cnn) => cnn.validate()?,
        }
        if !(1..=1 << 20).contains(&self.micro_batch) {
            return refuse("--micro-batch", format!("{} is not from 1 to 1048576", self.micro_batch));
        }
        if !(1..=8).contains(&self.element_bytes) {
            return refuse("--element-bytes", format!("{} is not from 1 to 8", self.element_bytes));
        }
        if !(self.mfu > 0.0 && self.mfu <= 1.0) {
            return refuse("--mfu", format!("{} is no share of the peak above 0 and up to 1", self.mfu));
        }
        let state = self.state.per_parameter();
        if !(state >= 0.0 && state.is_finite()) {
            return refuse("--state-bytes", format!("{state} is no number of at least 0"));
        }
        for (flag, value) in [
            ("--cpu-flops", self.cpu_flops),
            ("--cpu-memory-bandwidth", self.cpu_bandwidth),
            ("--host-link", self.host_link),
            ("--memory", self.memory_bytes),
        ] {
            if !(1.0..=1e30).contains(&value) {
                return refuse(flag, format!("{} is not from 1 to 1e30", units::exact_number(value)));
            }
        }
        for (flag, count) in [("--devices", self.accelerators), ("--cpus", self.cpus)] {
            if count > 10_000 {
                return refuse(flag, format!("{count} is not from 0 to 10000"));
            }
        }
        if self.accelerators == 0 && self.cpus == 0 {
            return refuse("--devices", "no accelerator and no CPU; allow at least one device".into());
        }
        Ok(())
    }
}

/// Operator of the forward pass; counts are elements and FLOP of a whole microbatch.
#[derive(Debug, Clone, PartialEq)]
struct ForwardOperator {
    name: String,
    /// Layer or block that it belongs to.
    layer: usize,
    /// Operators whose outputs it reads.
    inputs: Vec<usize>,
    /// Elements that it writes.
    outputs: f64,
    /// Matrix arithmetic of the forward pass.
    flop: f64,
    kernel: Kernel,
    /// Learned elements.
    parameters: f64,
    /// Parameters that one pass reads: a row per token of an embedding.
    parameters_read: f64,
    saved: SavedForBackward,
}

/// Kernel of an operator.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kernel {
    /// Pass over memory.
    Memory,
    /// Product of m × n × k with a learned matrix.
    Product([f64; 3]),
    /// Fused attention over all heads.
    Attention,
}

/// Forward data that the gradient of an operator needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SavedForBackward {
    /// No gradient: input data.
    NoGradient,
    /// Nothing: sums and concatenations pass gradients on.
    Nothing,
    /// Inputs of the operator.
    Inputs,
    /// Output of the operator.
    Output,
}

/// Operators under construction; each comes after its inputs.
#[derive(Debug, Default)]
struct Operators {
    list: Vec<ForwardOperator>,
    layer: usize,
}

impl Operators {
    fn add(&mut self, name: &str, inputs: &[usize], outputs: f64, saved: SavedForBackward) -> usize {
        let inputs = inputs.to_vec();
        let (name, layer) = (name.to_string(), self.layer);
        self.list.push(ForwardOperator {
            name,
            layer,
            inputs,
            outputs,
            flop: 0.0,
            kernel: Kernel::Memory,
            parameters: 0.0,
            parameters_read: 0.0,
            saved,
        });
        self.list.len() - 1
    }

    /// Adds an operator with parameters and matrix arithmetic.
    fn add_matrix(&mut self, name: &str, inputs: &[usize], outputs: f64, flop: f64, parameters: f64) -> usize {
        let at = self.add(name, inputs, outputs, SavedForBackward::Inputs);
        let operator = &mut self.list[at];
        (operator.flop, operator.parameters, operator.parameters_read) = (flop, parameters, parameters);
        at
    }

    /// Adds the product of `rows` × `inner` inputs with a learned matrix of `inner` × `columns`; `beside` is further
    /// parameters.
    fn add_product(&mut self, name: &str, input: usize, [rows, columns, inner]: [f64; 3], beside: f64) -> usize {
        let (flop, parameters) = (2.0 * rows * inner * columns, inner * columns + beside);
        let at = self.add_matrix(name, &[input], rows * columns, flop, parameters);
        self.list[at].kernel = Kernel::Product([rows, columns, inner]);
        at
    }
}

/// Text of a device-placement file for `network` on `hardware`. `command_line` becomes its `provenance`.
///
/// # Errors
/// [`GenerateError::Setting`] if a setting does not suit the network.
pub fn generate(
    network: &OperatorNetwork,
    hardware: &Hardware,
    settings: &OperatorSettings,
    command_line: &str,
) -> Result<String, GenerateError> {
    settings.validate(network)?;
    let operators = match network {
        OperatorNetwork::Transformer(model) => transformer::operators(model, settings),
        OperatorNetwork::Cnn(cnn) => cnn.operators(settings.micro_batch as f64),
    };
    let assumptions = assumptions::sentences(network, hardware, settings);
    let recipe = match network {
        OperatorNetwork::Transformer(model) => Some(super::recipe::of_operators(model, hardware, settings)),
        OperatorNetwork::Cnn(_) => None,
    };
    let kernels = settings.trained.as_ref().map(|profile| kernels::Kernels::new(profile, settings.micro_batch));
    Ok(sketch::OperatorSketch { operators, hardware, settings, kernels, provenance: command_line, assumptions, recipe }
        .text())
}

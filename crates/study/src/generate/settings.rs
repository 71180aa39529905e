//! Assumptions about how a model is run: one value, one default and one sentence each.

use std::{fmt, str::FromStr};

use super::{GenerateError, ModelConfig};
use plantui_core::{
    cluster::{Limits, hardware::Hardware},
    units,
};

/// Overhead of dividing a layer over `t` devices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TensorOverhead {
    /// Time at degree `t` is `T1/t · (1 + κ(t − 1))`.
    Share(f64),
    /// All-reduces of the hidden state over links that attain this many bytes per second.
    Bandwidth(f64),
}

/// Bytes of state per parameter: weights, gradients, optimizer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StateBytes {
    /// Independent of the number of replicas.
    Fixed(f64),
    /// Megatron's distributed optimizer over this many replicas: `6 + 12/d`.
    Distributed(u32),
}

/// Bytes of activations that a layer keeps, per token and unit of hidden width: `fixed + split/t`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActivationBytes {
    /// Part that every device keeps.
    pub fixed: f64,
    /// Part that is divided over a tensor-parallel group.
    pub split: f64,
}

/// Charge for the activations that recomputation restores temporarily.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkingSet {
    /// All recomputed layers of a stage at once, as in the published profile.
    EveryLayer,
    /// One layer at a time: a lower memory limit keeps its bytes free on every device.
    OneLayer,
}

/// Settings of a run, and the limits written into the file.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateSettings {
    /// Tokens per sequence, s.
    pub sequence_length: u64,
    /// Sequences per microbatch, b.
    pub micro_batch: u64,
    /// Tensor-parallel degrees to offer, ascending, starting with 1.
    pub tensor_degrees: Vec<u32>,
    /// Bytes of an activation or weight element, e.
    pub element_bytes: u32,
    /// Fraction of the peak attained at degree 1.
    pub mfu: f64,
    /// Overhead of tensor parallelism.
    pub tensor_overhead: TensorOverhead,
    /// State per parameter.
    pub state: StateBytes,
    /// Activations that a layer keeps, in bytes independent of `element_bytes`; `None` for the textbook count from the
    /// model's widths.
    pub activation: Option<ActivationBytes>,
    /// True if attention scores are kept (no flash attention).
    pub keep_attention_scores: bool,
    /// True if causal attention counts only half of its work.
    pub causal_credit: bool,
    /// True if norms and dropouts are divided along the sequence.
    pub sequence_parallel: bool,
    /// Charge for recomputation's working set.
    pub working_set: WorkingSet,
    /// Limits written into the file.
    pub limits: Limits,
}

/// κ that reproduces the published BERT-32 profile; a second public set of A100 profiles gives 0.08 to 0.14.
pub const TENSOR_OVERHEAD: f64 = 0.204;
/// Activations of a layer that reproduce the published BERT-32 profile.
pub const PUBLISHED_ACTIVATION: ActivationBytes = ActivationBytes { fixed: 4.86, split: 33.7 };
/// bf16 weights and gradients, fp32 main gradients, main weights and two moments.
const MEGATRON_STATE: StateBytes = StateBytes::Fixed(18.0);
const DEGREES: [u32; 4] = [1, 2, 4, 8];
const LONGEST_DEFAULT_SEQUENCE: u64 = 8192;

impl GenerateSettings {
    /// Defaults for a model on some hardware. The BERT presets represent the published profile and use its settings:
    /// micro-batch 2, weights as the only state, fitted activations. Other models use one sequence, 18 bytes per
    /// parameter, and textbook activations.
    pub fn defaults(model: &ModelConfig, hardware: &Hardware) -> Self {
        let published = super::follows_published_profile(model);
        GenerateSettings {
            sequence_length: model.longest_sequence.min(LONGEST_DEFAULT_SEQUENCE),
            micro_batch: if published { 2 } else { 1 },
            tensor_degrees: DEGREES.into_iter().filter(|&t| model.refuses_degree(t).is_none()).collect(),
            element_bytes: 2,
            mfu: hardware.mfu.value,
            tensor_overhead: TensorOverhead::Share(TENSOR_OVERHEAD),
            state: if published { StateBytes::Fixed(2.0) } else { MEGATRON_STATE },
            activation: published.then_some(PUBLISHED_ACTIVATION),
            keep_attention_scores: false,
            causal_credit: false,
            sequence_parallel: false,
            working_set: WorkingSet::EveryLayer,
            limits: Limits {
                cpus: 0,
                devices: 64,
                memory_bytes: Some(hardware.memory_bytes.value),
                microbatches: 1920,
                bandwidth_bytes_per_s: Some(hardware.inter_node_link.value),
                ..Limits::NEUTRAL
            },
        }
    }

    /// Tokens in a microbatch, T.
    pub fn tokens(&self) -> f64 {
        (self.sequence_length * self.micro_batch) as f64
    }

    /// Activations that a layer keeps, per token and unit of hidden width.
    pub fn layer_activation(&self, model: &ModelConfig) -> ActivationBytes {
        let mlp = 4.0 * model.mlp_width as f64 / model.hidden as f64;
        match self.activation {
            Some(activation) => activation,
            None if self.sequence_parallel => ActivationBytes { fixed: 0.0, split: 18.0 + mlp }.at(self.element_bytes),
            None => ActivationBytes { fixed: 10.0, split: 8.0 + mlp }.at(self.element_bytes),
        }
    }

    /// Checks that the settings suit the model and each other.
    ///
    /// # Errors
    /// [`GenerateError::Setting`] with the flag and the repair.
    pub fn validate(&self, model: &ModelConfig) -> Result<(), GenerateError> {
        let refuse = |flag, problem: String| Err(GenerateError::Setting { flag, problem });
        if !(1..=1 << 24).contains(&self.sequence_length) {
            return refuse("--sequence-length", format!("{} is not from 1 to 16777216", self.sequence_length));
        }
        if model.positions > 0 && self.sequence_length > model.positions {
            let (name, positions) = (&model.name, model.positions);
            return refuse(
                "--sequence-length",
                format!("{} is more than the {positions} positions {name} has learned", self.sequence_length),
            );
        }
        if !(1..=1 << 20).contains(&self.micro_batch) {
            return refuse("--micro-batch", format!("{} is not from 1 to 1048576", self.micro_batch));
        }
        if self.tensor_degrees.first() != Some(&1) || !self.tensor_degrees.is_sorted_by(|a, b| a < b) {
            return refuse(
                "--tensor-degrees",
                "the degrees must be ascending, without repetition, and start at 1".into(),
            );
        }
        if let Some(problem) = self.tensor_degrees.iter().find_map(|&t| model.refuses_degree(t)) {
            return refuse("--tensor-degrees", problem);
        }
        if let Some(&t) = self.tensor_degrees.iter().find(|&&t| t > 10_000) {
            return refuse("--tensor-degrees", format!("{t} is more than 10000, the most a workload file may name"));
        }
        if self.causal_credit && model.padding_mask {
            let name = &model.name;
            let problem = format!("{name} has no causal attention; leave the option out");
            return refuse("--causal-credit", problem);
        }
        if !(self.mfu > 0.0 && self.mfu <= 1.0) {
            return refuse("--mfu", format!("{} is no share of the peak above 0 and up to 1", self.mfu));
        }
        match self.tensor_overhead {
            TensorOverhead::Share(kappa) if !(0.0..=1.0).contains(&kappa) => {
                return refuse("--tensor-overhead", format!("{kappa} is not from 0 to 1"));
            }
            TensorOverhead::Bandwidth(bandwidth) if !(bandwidth > 0.0 && bandwidth.is_finite()) => {
                return refuse("--tensor-bandwidth", format!("{bandwidth} is no positive bandwidth"));
            }
            _ => {}
        }
        if self.activation.is_some_and(|a| !(a.fixed >= 0.0 && a.split >= 0.0 && (a.fixed + a.split).is_finite())) {
            return refuse("--activation-bytes", "both numbers must be at least 0".into());
        }
        if self.activation.is_some() && self.sequence_parallel {
            return refuse(
                "--sequence-parallel",
                "--activation-bytes gives the activations already; leave one of the two out".into(),
            );
        }
        let state = self.state.per_parameter();
        if !(state >= 0.0 && state.is_finite()) {
            return refuse("--state-bytes", format!("{state} is no number of at least 0"));
        }
        if !(1..=8).contains(&self.element_bytes) {
            return refuse("--element-bytes", format!("{} is not from 1 to 8", self.element_bytes));
        }
        let Limits { devices, cpus: _, memory_bytes, microbatches, bandwidth_bytes_per_s, .. } = self.limits;
        if !(1..=10_000).contains(&devices) {
            return refuse("--devices", format!("{devices} is not from 1 to 10000"));
        }
        if microbatches == 0 {
            return refuse("--microbatches", "a batch has at least one microbatch".into());
        }
        for (flag, value) in [("--memory", memory_bytes), ("--bandwidth", bandwidth_bytes_per_s)] {
            if let Some(value) = value.filter(|value| !(*value >= 1.0 && value.is_finite())) {
                return refuse(flag, format!("{value} is less than 1"));
            }
        }
        Ok(())
    }
}

impl ActivationBytes {
    /// Converts from elements of two bytes to elements of another size. One-byte masks are scaled with the rest: the
    /// published figures do not separate them.
    #[must_use]
    pub fn at(self, element_bytes: u32) -> Self {
        let scale = f64::from(element_bytes) / 2.0;
        ActivationBytes { fixed: self.fixed * scale, split: self.split * scale }
    }
}

impl StateBytes {
    /// Bytes per parameter.
    pub fn per_parameter(self) -> f64 {
        match self {
            StateBytes::Fixed(bytes) => bytes,
            StateBytes::Distributed(replicas) => 6.0 + 12.0 / f64::from(replicas),
        }
    }
}

impl fmt::Display for StateBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateBytes::Fixed(bytes) => write!(f, "{bytes}"),
            StateBytes::Distributed(replicas) => write!(f, "distributed:{replicas}"),
        }
    }
}

impl FromStr for StateBytes {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(replicas) = text.strip_prefix("distributed:") {
            return units::parse_count(replicas).map(StateBytes::Distributed).map_err(|error| error.to_string());
        }
        match text.parse::<f64>() {
            Ok(bytes) if bytes >= 0.0 && bytes.is_finite() => Ok(StateBytes::Fixed(bytes)),
            _ => Err(format!(
                "`{}` is no number of bytes; write 2, 4, 16, 18 or distributed:REPLICAS",
                plantui_core::text::visible_line(text)
            )),
        }
    }
}

impl fmt::Display for ActivationBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.fixed, self.split)
    }
}

impl FromStr for ActivationBytes {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|v| *v >= 0.0 && v.is_finite());
        text.split_once(',')
            .and_then(|(fixed, split)| Some(ActivationBytes { fixed: number(fixed)?, split: number(split)? }))
            .ok_or_else(|| format!("`{text}` is not FIXED,SPLIT; write two numbers such as 10,24"))
    }
}

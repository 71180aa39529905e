//! `plantui generate`: generates a workload from a model and a hardware preset; every assumption is a flag.
//!
//! [`run`] returns the text of the file, [`GenerateArgs::write`] writes it. The command recorded in the file is built
//! from the given settings, not from the typed words. So the same settings always give the same bytes, and `--output`
//! is not recorded.

mod galvatron;
mod network;
mod operators;
mod stack;
mod training;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{CommandEnd, Failure, input, output::Destination};
use crate::{
    cluster::{
        LimitKind, Limits,
        hardware::{self, Hardware},
    },
    generate::{
        self, ActivationBytes, BRANCHING_CNN, GenerateError, GenerateSettings, ModelConfig, StateBytes, TINY_BRANCH,
        TensorOverhead, WorkingSet, networks::PaseNetwork,
    },
    source::error::printable,
    text::shell_word,
    units,
    workload::{
        formats::{detect, file},
        training::published,
    },
};
pub use network::NetworkArgs;
pub use operators::{OperatorArgs, PassArg};
pub use training::AsArg;

/// Most bytes of a `config.json`, which has a few kilobytes.
const MAX_CONFIG_BYTES: u64 = 1 << 24;

/// How recomputation's working set is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkingSetArg {
    /// For every layer of a stage at once, as the published profile does
    EveryLayer,
    /// For one layer at a time: taken off the memory limit
    OneLayer,
}

/// What to generate. Everything that is not given takes the default of the model and the hardware.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_long_help = "\
Examples:
  plantui generate bert-32 --output model.json
  plantui generate llama-3-8b --hardware h100 --devices 32 --sequence-length 4096 | plantui plan -
  plantui generate transformer --batch 128 --output transformer.json
  plantui generate llama-3.1-70b --stack megatron-2025 --hardware h100 --micro-batch 1 > profile.json
  plantui generate llama-3.1-70b --as training --devices 64 --global-batch 128 > llama.json
  plantui generate path/to/config.json --state-bytes distributed:8 > model.json
  plantui generate llama-3-8b --operators training --devices 4 > operators.json
  plantui generate computation_profiling_bf16_hidden4096_head32_seqlen2048.json --layers 32 > measured.json

Models: bert-32, bert-96, gpt3-175b, llama-2-70b, llama-3-8b, llama-3-70b, llama-3-405b, mistral-7b, qwen2.5-72b, \
tiny-branch (an invented example of six nodes), branching-cnn (with --operators), or the path of a Hugging Face \
config.json (llama, mistral, qwen2, gpt2, gpt_neox, bert); or the path of a computation_profiling_*.json of \
Galvatron's with its memory_profiling_*.json beside it.

alexnet, resnet101, inception3, rnnlm and transformer are operator graphs for PaSE; they take a batch, sizes and \
limits.

The BERT presets reproduce Piper's published profile and its settings. `plantui plan bert-32` plans a training run \
of the same network, with its optimizer, which is a different workload.")]
pub struct GenerateArgs {
    /// Model preset, or path of a Hugging Face config.json; `-` for standard input
    pub model: String,
    /// Kind of workload [default: profile]
    #[arg(long = "as", value_name = "WHAT")]
    pub form: Option<AsArg>,
    /// Source of times and memory: the model of real training for megatron-2025, nemo-24, torchtitan or plain, or
    /// piper-2021 (the published profile's constants) [default: megatron-2025; piper-2021 for the BERT presets and with
    /// any of its own options]
    #[arg(long, value_name = "ID")]
    pub stack: Option<String>,
    /// Hardware preset: a100-40, a100-80, h100, h200, b200, and more with --stack (see `plantui hardware`) [default: h100;
    /// a100-80 for piper-2021]
    #[arg(long, value_name = "ID")]
    pub hardware: Option<String>,
    /// Tokens in a sequence [default: the model's longest, at most 8192]
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true, value_parser = parse_count, help_heading = "Assumptions")]
    pub sequence_length: Option<u32>,
    /// Sequences in a microbatch [default: 1; 2 for the BERT presets]
    #[arg(long, value_name = "SEQUENCES", allow_hyphen_values = true, value_parser = parse_count, help_heading = "Assumptions")]
    pub micro_batch: Option<u32>,
    /// Tensor-parallel degrees, separated by commas [default: those of 1,2,4,8 that divide the model]
    #[arg(long, value_name = "T,..", allow_hyphen_values = true, value_delimiter = ',', value_parser = parse_count, help_heading = "Assumptions")]
    pub tensor_degrees: Option<Vec<u32>>,
    /// Bytes of an activation element: scales transfers and activations, not the state (--state-bytes) [default: 2]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, help_heading = "Assumptions")]
    pub element_bytes: Option<u32>,
    /// Fraction of the peak that training reaches at degree 1 [default: the hardware's: 0.5 on A100, 0.45 later, 0.4 on
    /// V100]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, help_heading = "Assumptions")]
    pub mfu: Option<f64>,
    /// Overhead of tensor parallelism: time is T1/t * (1 + K * (t - 1)) [default: 0.204, fitted on the published profile]
    #[arg(
        long,
        value_name = "K",
        allow_hyphen_values = true,
        conflicts_with = "tensor_bandwidth",
        help_heading = "Assumptions"
    )]
    pub tensor_overhead: Option<f64>,
    /// Overhead of tensor parallelism from all-reduces at this bandwidth instead (40GB/s fits the published profile)
    #[arg(long, value_name = "BANDWIDTH", allow_hyphen_values = true, value_parser = units::parse_bandwidth, help_heading = "Assumptions")]
    pub tensor_bandwidth: Option<f64>,
    /// Bytes of state per parameter: 2 weights, 4 with gradients, 16 fp16 Adam, 18 Megatron bf16 Adam, distributed:REPLICAS
    /// [default: 18; 2 for the BERT presets]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, help_heading = "Assumptions")]
    pub state_bytes: Option<StateBytes>,
    /// Activations of a layer per token and hidden unit, FIXED + SPLIT/t bytes for any --element-bytes [default, at 2
    /// bytes an element: 10,8+4f/h; 4.86,33.7 for the BERT presets]
    #[arg(long, value_name = "FIXED,SPLIT", allow_hyphen_values = true, help_heading = "Assumptions")]
    pub activation_bytes: Option<ActivationBytes>,
    /// Keeps attention scores for the backward pass (no flash attention)
    #[arg(long, help_heading = "Assumptions")]
    pub keep_attention_scores: bool,
    /// Counts causal attention as half of its operations (decoders)
    #[arg(long, help_heading = "Assumptions")]
    pub causal_credit: bool,
    /// Splits norms and dropouts along the sequence, and with them all activations of a layer
    #[arg(long, help_heading = "Assumptions")]
    pub sequence_parallel: bool,
    /// Recomputed activations that count as live [default: every-layer]
    #[arg(long, value_name = "HOW", help_heading = "Assumptions")]
    pub working_set: Option<WorkingSetArg>,
    /// Devices, written into the file [default: 64]
    #[arg(long, value_name = "K", allow_hyphen_values = true, value_parser = parse_devices, help_heading = "Limits")]
    pub devices: Option<u32>,
    /// Memory per device, written into the file [default: the hardware's]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = units::parse_bytes, help_heading = "Limits")]
    pub memory: Option<f64>,
    /// Microbatches in a batch, written into the file [default: 1920]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_microbatches, help_heading = "Limits")]
    pub microbatches: Option<u32>,
    /// Sequences in a batch, written into the file (--as training)
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_count, help_heading = "Limits")]
    pub global_batch: Option<u32>,
    /// Bandwidth between devices, written into the file [default: the hardware's link across nodes]
    #[arg(long, value_name = "BANDWIDTH", allow_hyphen_values = true, value_parser = units::parse_bandwidth, help_heading = "Limits")]
    pub bandwidth: Option<f64>,
    /// Sizes of an operator graph.
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Writes to this file in place of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Operators in place of layers.
    #[command(flatten)]
    pub operators: OperatorArgs,
}

fn parse_count(text: &str) -> Result<u32, String> {
    units::parse_count(text).map_err(|error| error.to_string())
}

fn parse_devices(text: &str) -> Result<u32, String> {
    LimitKind::Devices.parse(text).map(|count| count as u32).map_err(|error| error.to_string())
}

fn parse_microbatches(text: &str) -> Result<u32, String> {
    LimitKind::Microbatches.parse(text).map(|count| count as u32).map_err(|error| error.to_string())
}

impl GenerateArgs {
    /// Generates the text and writes it to the output.
    ///
    /// # Errors
    /// [`Failure`] if a setting or the configuration is refused, or the output cannot be written.
    pub fn write(self) -> Result<CommandEnd, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        destination.write(&run(&self)?)?;
        Ok(CommandEnd::Done)
    }

    /// Command that reproduces the file: every given setting, in a fixed order, without the output.
    pub fn command_line(&self) -> String {
        let mut words = vec!["plantui".to_string(), "generate".into(), shell_word(&self.model)];
        let mut add = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([flag.to_string(), shell_word(&value)]);
            }
        };
        add("--as", self.form.and_then(|v| v.to_possible_value()).map(|v| v.get_name().into()));
        // Defaults are not recorded.
        let stack = self.stack.as_ref().map(|id| id.to_ascii_lowercase());
        add("--stack", stack.filter(|id| id != self.usual_stack()));
        add("--hardware", self.hardware.as_ref().map(|id| id.to_ascii_lowercase()));
        add("--sequence-length", self.sequence_length.map(|v| v.to_string()));
        add("--micro-batch", self.micro_batch.map(|v| v.to_string()));
        let degrees = |list: &Vec<u32>| list.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        add("--tensor-degrees", self.tensor_degrees.as_ref().map(degrees));
        add("--element-bytes", self.element_bytes.map(|v| v.to_string()));
        add("--mfu", self.mfu.map(|v| v.to_string()));
        add("--tensor-overhead", self.tensor_overhead.map(|v| v.to_string()));
        add(
            "--tensor-bandwidth",
            self.tensor_bandwidth.map(|v| exact(v, units::bandwidth_exact, units::parse_bandwidth)),
        );
        add("--state-bytes", self.state_bytes.map(|v| v.to_string()));
        add("--activation-bytes", self.activation_bytes.map(|v| v.to_string()));
        add("--working-set", self.working_set.and_then(|v| v.to_possible_value()).map(|v| v.get_name().into()));
        add("--devices", self.devices.map(|v| v.to_string()));
        add("--memory", self.memory.map(|v| exact(v, units::bytes_exact, units::parse_bytes)));
        add("--microbatches", self.microbatches.map(|v| v.to_string()));
        add("--global-batch", self.global_batch.map(|v| v.to_string()));
        add("--bandwidth", self.bandwidth.map(|v| exact(v, units::bandwidth_exact, units::parse_bandwidth)));
        for (flag, value) in self.operators.words().into_iter().chain(self.network.words()) {
            add(flag, Some(value));
        }
        let flags = [
            ("--keep-attention-scores", self.keep_attention_scores),
            ("--causal-credit", self.causal_credit),
            ("--sequence-parallel", self.sequence_parallel),
        ];
        words.extend(flags.iter().filter(|flag| flag.1).map(|flag| flag.0.to_string()));
        words.join(" ")
    }

    /// Defaults of model and hardware, overridden by the given settings.
    fn settings(&self, model: &ModelConfig, hardware: &Hardware) -> GenerateSettings {
        let default = GenerateSettings::defaults(model, hardware);
        let overhead = self
            .tensor_overhead
            .map(TensorOverhead::Share)
            .or(self.tensor_bandwidth.map(TensorOverhead::Bandwidth))
            .unwrap_or(default.tensor_overhead);
        let element_bytes = self.element_bytes.unwrap_or(default.element_bytes);
        let fitted = default.activation.filter(|_| !self.sequence_parallel);
        GenerateSettings {
            sequence_length: self.sequence_length.map_or(default.sequence_length, u64::from),
            micro_batch: self.micro_batch.map_or(default.micro_batch, u64::from),
            tensor_degrees: self.tensor_degrees.clone().unwrap_or(default.tensor_degrees),
            element_bytes,
            mfu: self.mfu.unwrap_or(default.mfu),
            tensor_overhead: overhead,
            state: self.state_bytes.unwrap_or(default.state),
            activation: self.activation_bytes.or(fitted.map(|fitted| fitted.at(element_bytes))),
            keep_attention_scores: self.keep_attention_scores,
            causal_credit: self.causal_credit,
            sequence_parallel: self.sequence_parallel,
            working_set: match self.working_set {
                None => default.working_set,
                Some(WorkingSetArg::EveryLayer) => WorkingSet::EveryLayer,
                Some(WorkingSetArg::OneLayer) => WorkingSet::OneLayer,
            },
            limits: Limits {
                cpus: 0,
                devices: self.devices.unwrap_or(default.limits.devices),
                memory_bytes: self.memory.or(default.limits.memory_bytes),
                microbatches: self.microbatches.unwrap_or(default.limits.microbatches),
                bandwidth_bytes_per_s: self.bandwidth.or(default.limits.bandwidth_bytes_per_s),
                ..Limits::NEUTRAL
            },
        }
    }

    /// True if anything besides the model and the output was given.
    fn has_settings(&self) -> bool {
        self.command_line() != GenerateArgs::of(&self.model).command_line()
    }

    /// Arguments with only a model.
    pub fn of(model: &str) -> Self {
        GenerateArgs {
            model: model.into(),
            form: None,
            stack: None,
            hardware: None,
            sequence_length: None,
            micro_batch: None,
            tensor_degrees: None,
            element_bytes: None,
            mfu: None,
            tensor_overhead: None,
            tensor_bandwidth: None,
            state_bytes: None,
            activation_bytes: None,
            keep_attention_scores: false,
            causal_credit: false,
            sequence_parallel: false,
            working_set: None,
            devices: None,
            memory: None,
            microbatches: None,
            global_batch: None,
            bandwidth: None,
            network: NetworkArgs::default(),
            output: None,
            force: false,
            operators: OperatorArgs::default(),
        }
    }
}

/// Text of the requested workload.
///
/// # Errors
/// [`GenerateError`] with the file and field or the flag, and the repair.
pub fn run(args: &GenerateArgs) -> Result<String, GenerateError> {
    if args.form == Some(AsArg::Training) {
        return training::run(args);
    }
    if args.global_batch.is_some() {
        let problem = "belongs to --as training; a profile has --microbatches".into();
        return Err(GenerateError::Setting { flag: "--global-batch", problem });
    }
    if let Some(network) = PaseNetwork::find(&args.model) {
        return network::text(network, args);
    }
    let profiled = galvatron::is_profile(args);
    if !profiled {
        network::refuse(args)?;
    }
    if args.model == TINY_BRANCH {
        if args.has_settings() {
            let problem = format!("{TINY_BRANCH} is a fixed example and takes no settings; leave them out");
            return Err(GenerateError::Setting { flag: "MODEL", problem });
        }
        return Ok(generate::tiny_branch(&args.command_line()));
    }
    if args.model == BRANCHING_CNN && args.operators.operators.is_none() {
        let problem = format!("{BRANCHING_CNN} is made of operators: add --operators training, or inference");
        return Err(GenerateError::Setting { flag: "MODEL", problem });
    }
    if profiled {
        return galvatron::text(args, &hardware(args)?);
    }
    if let Some(pass) = args.operators.operators {
        return operators::run(args, pass);
    }
    if args.is_trained() {
        return training::profile(args);
    }
    let hardware = hardware(args)?;
    let model = model(&args.model)?;
    generate::generate(&model, &hardware, &args.settings(&model, &hardware), &args.command_line())
}

/// Data sheet of the requested hardware.
fn hardware(args: &GenerateArgs) -> Result<Hardware, GenerateError> {
    let usual = if args.is_trained() { stack::TRAINED_HARDWARE } else { stack::ANALYTIC_HARDWARE };
    let id = args.hardware.as_deref().unwrap_or(usual);
    hardware::find(id).ok_or_else(|| {
        let known = hardware::all().iter().map(|h| h.id).collect::<Vec<_>>().join(", ");
        let problem = format!("`{}` is no hardware preset; there are {known}", printable(id));
        GenerateError::Setting { flag: "--hardware", problem }
    })
}

/// Preset with this name, or the configuration at this path.
pub(super) fn model(name: &str) -> Result<ModelConfig, GenerateError> {
    if let Some(model) = generate::preset(name) {
        return Ok(model);
    }
    if name == input::STANDARD_INPUT {
        return configuration(&file::limited(crate::streams::input(), name, MAX_CONFIG_BYTES)?, name);
    }
    let path = Path::new(name);
    let shown = printable(name);
    if let Some((config, source)) = published::config(name).filter(|_| !path.exists()) {
        let mut model = generate::from_hugging_face(config, &source)?;
        model.name = name.into();
        return Ok(model);
    }
    if !path.exists() {
        return Err(unknown_model(&shown));
    }
    let bytes = file::read_at_most(path, MAX_CONFIG_BYTES)?;
    configuration(&bytes, &shown)
}

/// Error for an unknown model name `shown`.
fn unknown_model(shown: &str) -> GenerateError {
    let known = generate::presets().join(", ");
    let graphs = PaseNetwork::ALL.map(PaseNetwork::id).join(", ");
    let problem = format!(
        "`{shown}` is neither a model preset nor a file; there are {known}, published names such as llama-3.1-8b or \
         qwen3-8b, {TINY_BRANCH}, {BRANCHING_CNN}, the operator graphs {graphs}, or give a config.json"
    );
    GenerateError::Setting { flag: "MODEL", problem }
}

/// Configuration in a file's bytes. `source` is its name for messages.
fn configuration(bytes: &[u8], source: &str) -> Result<ModelConfig, GenerateError> {
    Ok(generate::from_hugging_face(detect::text(bytes, source, &detect::CONFIGURATION)?, source)?)
}

/// Short spelling of a quantity if it reads back as the same number, else the bare number.
pub(super) fn exact<E>(value: f64, print: impl Fn(f64) -> String, read: impl Fn(&str) -> Result<f64, E>) -> String {
    let short: String = print(value).split_whitespace().collect();
    if read(&short).is_ok_and(|back| back == value) { short } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: GenerateArgs,
    }

    fn args(words: &str) -> GenerateArgs {
        Line::try_parse_from(words.split_whitespace().skip(1)).unwrap_or_else(|error| panic!("{error}")).args
    }

    #[test]
    fn the_recorded_command_says_everything_that_was_given() {
        let words = "plantui generate llama-3-8b --hardware h100 --sequence-length 4096 --micro-batch 2 \
                     --tensor-degrees 1,2,8 --element-bytes 2 --mfu 0.4 --tensor-bandwidth 200GB/s \
                     --state-bytes distributed:8 --activation-bytes 10,24.5 --working-set one-layer --devices 16 \
                     --memory 70GiB --microbatches 256 --bandwidth 50GB/s --keep-attention-scores --causal-credit";
        let given = args(words);
        assert_eq!(given.command_line(), words);
        assert_eq!(args(&given.command_line()), given);
        let words = "plantui generate branching-cnn --micro-batch 8 --devices 3 --memory 8GiB --operators training --cpus 2 \
                     --cpu-flops 5e11 --cpu-memory-bandwidth 50GB/s --host-link 12GB/s --image-size 299 --width 32 --blocks 4";
        assert_eq!(args(words).command_line(), words);
        let spelled = args("plantui generate bert-32 --memory 8589934592 --tensor-overhead .1 -o x.json --force");
        assert_eq!(spelled.command_line(), "plantui generate bert-32 --tensor-overhead 0.1 --memory 8GiB");
    }

    #[test]
    fn wrong_settings_name_the_flag() {
        for (words, message) in [
            ("plantui generate bert-33", "MODEL: `bert-33` is neither a model preset nor a file; there are bert-32, "),
            ("plantui generate bert-32 --hardware tpu", "--hardware: `tpu` is no hardware preset; there are v100, "),
            (
                "plantui generate bert-32 --tensor-degrees 1,3",
                "--tensor-degrees: 3 does not divide bert-32's 40 attention",
            ),
            (
                "plantui generate bert-32 --tensor-degrees 2,4",
                "--tensor-degrees: the degrees must be ascending, without",
            ),
            (
                "plantui generate bert-32 --sequence-length 4096",
                "--sequence-length: 4096 is more than the 2048 positions",
            ),
            (
                "plantui generate bert-32 --causal-credit",
                "--causal-credit: bert-32 has no causal attention; leave the option out",
            ),
            ("plantui generate bert-32 --mfu -1", "--mfu: -1 is no share of the peak"),
            ("plantui generate bert-32 --mfu 50", "--mfu: 50 is no share of the peak"),
            (
                "plantui generate bert-32 --memory 100MiB --working-set one-layer",
                "--working-set: recomputing one layer needs ",
            ),
            ("plantui generate branching-cnn", "MODEL: branching-cnn is made of operators: add --operators training"),
            (
                "plantui generate branching-cnn --operators inference --sequence-length 8",
                "--sequence-length: branching-cnn has no sequences",
            ),
            (
                "plantui generate branching-cnn --operators inference --width 6",
                "--width: 6 is no multiple of 4 from 4 to 4096",
            ),
            ("plantui generate bert-32 --operators inference --blocks 2", "--blocks: belongs to branching-cnn alone"),
            ("plantui generate bert-32 --operators training --cpu-flops 0.5", "--cpu-flops: 0.5 is not from 1 to 1e30"),
            (
                "plantui generate bert-32 --operators training --causal-credit",
                "--causal-credit: bert-32 has no causal attention",
            ),
            ("plantui generate tiny-branch --devices 2", "MODEL: tiny-branch is a fixed example and takes no settings"),
        ] {
            let error = run(&args(words)).unwrap_err().to_string();
            assert!(error.starts_with(message), "{words}: {error}");
        }
    }
}

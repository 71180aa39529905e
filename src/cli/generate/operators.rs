//! Flags of `plantui generate` that request operators instead of layers.

use clap::{Args, ValueEnum};

use super::{GenerateArgs, exact, hardware, model, parse_count, training};
use crate::{
    cluster::LimitKind,
    generate::{
        BRANCHING_CNN, GenerateError,
        operators::{self, Cnn, OperatorNetwork, OperatorSettings, SamplePass},
    },
    units,
    workload::TrainingProfile,
};

/// What is computed for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PassArg {
    /// Forward and backward
    Training,
    /// Forward alone
    Inference,
}

/// Flags of operator graphs.
#[derive(Debug, Clone, PartialEq, Default, Args)]
pub struct OperatorArgs {
    /// Writes the graph of operators for device placement, for this pass: times on accelerators and CPUs, sizes,
    /// transfers
    #[arg(
        long,
        value_name = "PASS",
        conflicts_with_all = ["tensor_degrees", "tensor_overhead", "tensor_bandwidth", "activation_bytes",
            "sequence_parallel", "working_set", "microbatches", "bandwidth"],
        help_heading = "Operators"
    )]
    pub operators: Option<PassArg>,
    /// CPUs beside the accelerators, written into the file [default: 1]
    #[arg(long, value_name = "L", allow_hyphen_values = true, value_parser = parse_cpus, requires = "operators", help_heading = "Operators")]
    pub cpus: Option<u32>,
    /// FLOP/s of a CPU [default: 1e12]
    #[arg(long, value_name = "FLOPS", allow_hyphen_values = true, requires = "operators", help_heading = "Operators")]
    pub cpu_flops: Option<f64>,
    /// Memory bandwidth of a CPU [default: 100GB/s]
    #[arg(long, value_name = "BANDWIDTH", allow_hyphen_values = true, value_parser = units::parse_bandwidth, requires = "operators", help_heading = "Operators")]
    pub cpu_memory_bandwidth: Option<f64>,
    /// Bandwidth between an accelerator and its host [default: 16GB/s, half of PCIe 4.0 x16]
    #[arg(long, value_name = "BANDWIDTH", allow_hyphen_values = true, value_parser = units::parse_bandwidth, requires = "operators", help_heading = "Operators")]
    pub host_link: Option<f64>,
    /// Pixels per side of branching-cnn's images [default: 224]
    #[arg(long, value_name = "PIXELS", allow_hyphen_values = true, value_parser = parse_count, requires = "operators", help_heading = "Operators")]
    pub image_size: Option<u32>,
    /// Channels of branching-cnn's first convolution [default: 64]
    #[arg(long, value_name = "CHANNELS", allow_hyphen_values = true, value_parser = parse_count, requires = "operators", help_heading = "Operators")]
    pub width: Option<u32>,
    /// Blocks of four branches in branching-cnn [default: 9]
    #[arg(long, value_name = "BLOCKS", allow_hyphen_values = true, value_parser = parse_count, requires = "operators", help_heading = "Operators")]
    pub blocks: Option<u32>,
}

fn parse_cpus(text: &str) -> Result<u32, String> {
    LimitKind::Cpus.parse(text).map(|count| count as u32).map_err(|error| error.to_string())
}

impl OperatorArgs {
    /// Given flags in a fixed order.
    pub(super) fn words(&self) -> Vec<(&'static str, String)> {
        let bandwidth = |v: f64| exact(v, units::bandwidth_exact, units::parse_bandwidth);
        let pass = self.operators.and_then(|pass| pass.to_possible_value()).map(|pass| pass.get_name().to_string());
        let list = [
            ("--operators", pass),
            ("--cpus", self.cpus.map(|v| v.to_string())),
            ("--cpu-flops", self.cpu_flops.map(|v| format!("{v:e}"))),
            ("--cpu-memory-bandwidth", self.cpu_memory_bandwidth.map(bandwidth)),
            ("--host-link", self.host_link.map(bandwidth)),
            ("--image-size", self.image_size.map(|v| v.to_string())),
            ("--width", self.width.map(|v| v.to_string())),
            ("--blocks", self.blocks.map(|v| v.to_string())),
        ];
        list.into_iter().filter_map(|(flag, value)| value.map(|value| (flag, value))).collect()
    }
}

/// Network with this name and the given flags.
fn network(args: &GenerateArgs) -> Result<OperatorNetwork, GenerateError> {
    let refuse = |flag, problem: &str| Err(GenerateError::Setting { flag, problem: problem.into() });
    let given = &args.operators;
    if args.model == BRANCHING_CNN {
        for (flag, is_given) in [
            ("--sequence-length", args.sequence_length.is_some()),
            ("--keep-attention-scores", args.keep_attention_scores),
            ("--causal-credit", args.causal_credit),
        ] {
            if is_given {
                return refuse(flag, "branching-cnn has no sequences; leave it out");
            }
        }
        let default = Cnn::default();
        return Ok(OperatorNetwork::Cnn(Cnn {
            image: given.image_size.map_or(default.image, u64::from),
            width: given.width.map_or(default.width, u64::from),
            blocks: given.blocks.unwrap_or(default.blocks),
        }));
    }
    for (flag, value) in [("--image-size", given.image_size), ("--width", given.width), ("--blocks", given.blocks)] {
        if value.is_some() {
            return refuse(flag, "belongs to branching-cnn alone; leave it out");
        }
    }
    model(&args.model).map(OperatorNetwork::Transformer)
}

/// Text of the requested operator graph.
pub(super) fn run(args: &GenerateArgs, pass: PassArg) -> Result<String, GenerateError> {
    let hardware = hardware(args)?;
    let network = network(args)?;
    let trained = if args.is_trained() { Some(training::of_operators(args, &network)?) } else { None };
    let given = &args.operators;
    let pass = match pass {
        PassArg::Training => SamplePass::Training,
        PassArg::Inference => SamplePass::Inference,
    };
    let default = OperatorSettings::defaults(&network, &hardware, pass);
    let element_bytes = args.element_bytes.unwrap_or(default.element_bytes);
    let sequence_length = args.sequence_length.map_or(default.sequence_length, u64::from);
    let settings = OperatorSettings {
        pass,
        sequence_length,
        micro_batch: args.micro_batch.map_or(default.micro_batch, u64::from),
        element_bytes,
        mfu: args.mfu.unwrap_or(default.mfu),
        state: args.state_bytes.unwrap_or(default.state),
        keep_attention_scores: args.keep_attention_scores,
        causal_credit: args.causal_credit,
        cpu_flops: given.cpu_flops.unwrap_or(default.cpu_flops),
        cpu_bandwidth: given.cpu_memory_bandwidth.unwrap_or(default.cpu_bandwidth),
        host_link: given.host_link.unwrap_or(default.host_link),
        accelerators: args.devices.unwrap_or(default.accelerators),
        cpus: given.cpus.unwrap_or(default.cpus),
        memory_bytes: args.memory.unwrap_or(default.memory_bytes),
        trained: trained.map(|profile| TrainingProfile { sequence: sequence_length, ..profile }),
    };
    operators::generate(&network, &hardware, &settings, &args.command_line())
}

//! `plantui generate` for the networks of PaSE: operator graphs with their sizes as flags.

use clap::Args;

use super::{GenerateArgs, exact, parse_count};
use crate::{
    cluster::{GivenLimits, LimitKind},
    generate::{
        GenerateError,
        networks::{NetworkSizes, PaseNetwork, Size},
    },
    units,
    workload::formats::operators::{self, OperatorFile},
};

/// Default devices, operations per second and bytes per second: those of the published program.
const DEVICES: u32 = 8;
const FLOPS: f64 = 10e12;
const BANDWIDTH: f64 = 16e9;
/// Most layers, counted separately for encoder and decoder.
const MOST_LAYERS: u64 = 1000;

/// Sizes of an operator graph. What is not given is the published size.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Operator graphs (alexnet, resnet101, inception3, rnnlm, transformer)")]
pub struct NetworkArgs {
    /// Samples in a batch [default: 128]
    #[arg(long, value_name = "SAMPLES", allow_hyphen_values = true, value_parser = parse_count)]
    pub batch: Option<u32>,
    /// Rows and columns of the image [default: 227; 299 for inception3]
    #[arg(long, value_name = "PIXELS", allow_hyphen_values = true, value_parser = parse_count)]
    pub image: Option<u32>,
    /// Classes [default: 1000; 1024 for alexnet]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_count)]
    pub classes: Option<u32>,
    /// Size of the vocabulary [default: 50000; 100000 for rnnlm]
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true, value_parser = parse_count)]
    pub vocabulary: Option<u32>,
    /// Features of a token [default: 512; 2048 for rnnlm]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_count)]
    pub hidden: Option<u32>,
    /// Layers, of encoder and decoder each [default: 6; 2 for rnnlm]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_count)]
    pub layers: Option<u32>,
    /// Attention heads [default: 8]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_count)]
    pub heads: Option<u32>,
    /// Features within a feed-forward layer [default: 2048]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_count)]
    pub feed_forward: Option<u32>,
    /// Operations per second of a device, written into the file [default: 10e12]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = units::parse_flops)]
    pub flops: Option<f64>,
}

impl NetworkArgs {
    /// Sizes by flag, if given.
    fn sizes(&self) -> [(Size, &'static str, Option<u32>); 8] {
        [
            (Size::Batch, "--batch", self.batch),
            (Size::Image, "--image", self.image),
            (Size::Classes, "--classes", self.classes),
            (Size::Vocabulary, "--vocabulary", self.vocabulary),
            (Size::Hidden, "--hidden", self.hidden),
            (Size::Layers, "--layers", self.layers),
            (Size::Heads, "--heads", self.heads),
            (Size::FeedForward, "--feed-forward", self.feed_forward),
        ]
    }

    /// Given flags and values in a fixed order.
    pub(super) fn words(&self) -> Vec<(&'static str, String)> {
        let sizes =
            self.sizes().into_iter().filter_map(|(_, flag, value)| value.map(|value| (flag, value.to_string())));
        let flops = self.flops.map(|v| ("--flops", exact(v, units::flops_exact, units::parse_flops)));
        sizes.chain(flops).collect()
    }
}

/// Refuses flags that only operator graphs support.
pub(super) fn refuse(args: &GenerateArgs) -> Result<(), GenerateError> {
    let Some((flag, _)) = args.network.words().into_iter().next() else { return Ok(()) };
    let graphs = PaseNetwork::ALL.map(PaseNetwork::id).join(", ");
    Err(GenerateError::Setting { flag, problem: format!("{} does not use it; it is for {graphs}", args.model) })
}

/// Text of the requested operator graph.
pub(super) fn text(network: PaseNetwork, args: &GenerateArgs) -> Result<String, GenerateError> {
    let id = network.id();
    // Rest of the command without the flags that a network supports.
    let rest = GenerateArgs {
        network: NetworkArgs::default(),
        sequence_length: None,
        devices: None,
        memory: None,
        bandwidth: None,
        ..args.clone()
    };
    if let Some(flag) = rest.command_line().split_whitespace().nth(3) {
        let problem = format!("{id} is an operator graph and does not use {flag}; leave it out");
        return Err(GenerateError::Setting { flag: "MODEL", problem });
    }
    let sizes = sizes(network, args)?;
    let (names, profile) = network.build(&sizes).map_err(|problem| {
        let problem = format!("with these sizes {problem}");
        GenerateError::Setting { flag: "MODEL", problem }
    })?;
    let file = OperatorFile {
        names,
        profile,
        limits: GivenLimits::default()
            .with(LimitKind::Devices, args.devices.unwrap_or(DEVICES))
            .maybe(LimitKind::Memory, args.memory)
            .with(LimitKind::Flops, args.network.flops.unwrap_or(FLOPS))
            .with(LimitKind::Bandwidth, args.bandwidth.unwrap_or(BANDWIDTH)),
        provenance: args.command_line(),
        assumptions: assumptions(network, &sizes),
    };
    Ok(operators::text(&file))
}

/// Published sizes, overridden by the given ones.
fn sizes(network: PaseNetwork, args: &GenerateArgs) -> Result<NetworkSizes, GenerateError> {
    let mut sizes = network.defaults();
    let sequence = (Size::SequenceLength, "--sequence-length", args.sequence_length);
    for (size, flag, value) in args.network.sizes().into_iter().chain([sequence]) {
        let Some(value) = value else { continue };
        if !network.sizes().contains(&size) {
            return Err(GenerateError::Setting { flag, problem: format!("{} has no such size", network.id()) });
        }
        let field = match size {
            Size::Batch => &mut sizes.batch,
            Size::Image => &mut sizes.image,
            Size::Classes => &mut sizes.classes,
            Size::SequenceLength => &mut sizes.sequence_length,
            Size::Vocabulary => &mut sizes.vocabulary,
            Size::Hidden => &mut sizes.hidden,
            Size::Layers => &mut sizes.layers,
            Size::Heads => &mut sizes.heads,
            Size::FeedForward => &mut sizes.feed_forward,
        };
        *field = u64::from(value);
    }
    if sizes.layers > MOST_LAYERS {
        let problem = format!("{} layers are more than {MOST_LAYERS}", sizes.layers);
        return Err(GenerateError::Setting { flag: "--layers", problem });
    }
    Ok(sizes)
}

fn assumptions(network: PaseNetwork, sizes: &NetworkSizes) -> Vec<String> {
    let source = match network {
        PaseNetwork::AlexNet => "Krizhevsky et al., NIPS 2012, without response normalisation and dropout",
        PaseNetwork::ResNet101 => "He et al., CVPR 2016",
        PaseNetwork::Inception3 => "Szegedy et al., CVPR 2016, without the auxiliary classifier",
        PaseNetwork::Rnnlm => "an embedding, LSTM layers and a projection to the vocabulary",
        PaseNetwork::Transformer => "Vaswani et al., NIPS 2017, encoder and decoder",
    };
    let mut sentences = vec![
        format!("The network: {source}; operators as in PaSE's published program (Elango, IPDPS 2021)."),
        format!("A batch of {} samples; a training step is one forward and one backward pass over it.", sizes.batch),
        format!("A split leaves at least {} elements of a dimension, as published for this network.", network.cutoff()),
        "Defaults: a device does 10e12 operations per second and sends 16e9 bytes per second.".into(),
        "Biases are left out; images, tokens and positions are inputs and cost no transfer.".into(),
    ];
    match network {
        PaseNetwork::AlexNet | PaseNetwork::ResNet101 | PaseNetwork::Inception3 => {
            sentences.push("Heights and widths of convolutions are not split.".into());
        }
        PaseNetwork::Rnnlm | PaseNetwork::Transformer => {
            sentences.push("An embedding costs what a dense product with one-hot tokens costs, as published.".into());
        }
    }
    sentences
}

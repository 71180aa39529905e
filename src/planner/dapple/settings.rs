//! The options that both planners take, and what they mean for the speed-up.

use crate::{
    cluster::{Links, PUBLISHED_LINKS},
    plan::{Length, SpeedupModel},
    planner::{Lever, OptionKind, OptionSpec, Options},
    workload::{
        LayerProfile, Workload,
        states::{States, StatesError},
    },
};

/// The profile that both planners need.
///
/// # Errors
/// A reason a user can act on.
pub(super) fn layers(workload: &Workload) -> Result<&LayerProfile, String> {
    workload.layers().ok_or_else(|| "it needs forward and backward times of layers (PipeDream's graph.txt)".into())
}

/// Rates that make sense for a link, bytes per second.
const RATE: (f64, f64) = (1.0, 1e18);

const fn number(
    name: &'static str,
    label: &'static str,
    help: &'static str,
    default: f64,
    (least, most): (f64, f64),
    whole: bool,
) -> OptionSpec {
    OptionSpec { name, label, help, kind: OptionKind::Number { default, least, most, whole } }
}

/// Samples in the profiled batch.
pub(super) const PROFILE_BATCH: OptionSpec =
    number("profile_batch", "profile batch", "samples in the batch that was profiled", 1.0, (1.0, 1e7), true);
/// Samples in a microbatch.
pub(super) const MICRO_BATCH: OptionSpec =
    number("micro_batch", "microbatch", "samples in a microbatch, at least", 1.0, (1.0, 1e7), true);
/// Weights with all that goes with them.
pub(super) const OPTIMIZER: OptionSpec = number(
    "optimizer_memory_scaling",
    "optimizer memory",
    "bytes of weights, gradients and optimizer state for each byte of parameters",
    1.0,
    (0.0, 1000.0),
    false,
);
/// Activations of the whole network.
pub(super) const PEAK_ACTIVATION: OptionSpec = number(
    "peak_activation_per_sample",
    "activations",
    "bytes of activations of the whole network for each sample; 0: the sum of all outputs in the profile",
    0.0,
    (0.0, 1e18),
    false,
);
/// Links in a machine.
pub(super) const NVLINK: OptionSpec = number(
    "nvlink_bandwidth",
    "link in a machine",
    "bytes per second between two devices of a machine",
    PUBLISHED_LINKS.in_machine,
    RATE,
    false,
);
/// Links between machines.
pub(super) const ETHERNET: OptionSpec = number(
    "ethernet_bandwidth",
    "link between",
    "bytes per second from a device to one of another machine",
    PUBLISHED_LINKS.between_machines,
    RATE,
    false,
);
/// All-reduce between machines.
pub(super) const ALL_REDUCE: OptionSpec = number(
    "all_reduce_bandwidth",
    "all-reduce",
    "bytes per second of an all-reduce that spans machines",
    PUBLISHED_LINKS.all_reduce,
    RATE,
    false,
);
/// The three kinds of links as what a person may turn.
pub(super) const LINKS: [Lever; 3] =
    [Lever::Resource(NVLINK.name), Lever::Resource(ETHERNET.name), Lever::Resource(ALL_REDUCE.name)];
/// Between what a network may be cut.
pub(super) const STATES: OptionSpec = OptionSpec {
    name: "states",
    label: "states",
    help: "between what the network may be cut",
    kind: OptionKind::Choice {
        choices: &[
            ("antichains", "wherever branches allow, as published"),
            ("order", "along one order of its layers: for networks with too many branches"),
        ],
        default: "antichains",
    },
};

/// What the options say about the speed-up.
pub(super) fn model(options: &Options, length: Length) -> SpeedupModel {
    SpeedupModel {
        profile_batch: options.number(PROFILE_BATCH.name) as u32,
        micro_batch: options.number(MICRO_BATCH.name) as u32,
        optimizer_memory_scaling: options.number(OPTIMIZER.name),
        peak_activation_per_sample: options.number(PEAK_ACTIVATION.name),
        links: Links {
            in_machine: options.number(NVLINK.name),
            between_machines: options.number(ETHERNET.name),
            all_reduce: options.number(ALL_REDUCE.name),
        },
        linear: options.choice(STATES.name) == "order",
        length,
    }
}

/// The states to cut between.
pub(super) fn states(workload: &Workload, profile: &LayerProfile, linear: bool) -> Result<States, StatesError> {
    if linear { States::along_order(workload, profile) } else { States::of(workload, profile) }
}

/// The sentence about states that cannot be had.
pub(super) fn no_states(workload: &Workload, error: StatesError) -> String {
    let repair = match error {
        StatesError::Empty => "",
        StatesError::TooMany(_) => ": --set states=order",
    };
    format!("{} cannot be planned: {error}{repair}.", workload.name)
}

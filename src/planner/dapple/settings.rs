//! The options that both planners take, and what they mean for the speed-up.

use std::sync::Arc;

use crate::{
    cluster::{Links, PUBLISHED_LINKS},
    plan::{Length, SpeedupModel},
    planner::{CannotPlan, OptionError, OptionKind, OptionSpec, Options, Problem, Search, Tunable, Unit},
    workload::{
        LayerProfile, Workload,
        states::{self, States, StatesError},
    },
};

/// The profile that both planners need.
///
/// # Errors
/// A reason a user can act on.
pub(super) fn layers(workload: &Workload) -> Result<&LayerProfile, CannotPlan> {
    let profile = workload.layers().ok_or("it needs forward and backward times of layers (PipeDream's graph.txt)")?;
    if states::kept(workload).contains(&true) {
        Ok(profile)
    } else {
        Err(format!("it has {}", StatesError::Empty).into())
    }
}

const fn link(name: &'static str, label: &'static str, help: &'static str, default: f64) -> OptionSpec {
    let kind = OptionKind::Quantity { default, least: 1.0, most: 1e18, unit: Unit::BytesPerSecond };
    OptionSpec { name, label, help, kind }
}

const fn number(
    name: &'static str,
    label: &'static str,
    help: &'static str,
    default: f64,
    (least, most): (f64, f64),
    whole: bool,
) -> OptionSpec {
    OptionSpec { name, label, help, kind: OptionKind::Number { default, least, most, whole, zero: None } }
}

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
pub(super) const PEAK_ACTIVATION: OptionSpec = OptionSpec {
    name: "peak_activation_per_sample",
    label: "activations",
    help: "bytes of activations of the whole network for each sample; 0: the sum of all outputs in the profile",
    kind: OptionKind::Quantity { default: 0.0, least: 0.0, most: 1e18, unit: Unit::Bytes },
};
/// Links in a machine.
pub(super) const NVLINK: OptionSpec = link(
    "nvlink_bandwidth",
    "in machine",
    "bytes per second between two devices of a machine",
    PUBLISHED_LINKS.in_machine,
);
/// Links between machines.
pub(super) const ETHERNET: OptionSpec = link(
    "ethernet_bandwidth",
    "between",
    "bytes per second from a device to one of another machine",
    PUBLISHED_LINKS.between_machines,
);
/// All-reduce between machines.
pub(super) const ALL_REDUCE: OptionSpec = link(
    "all_reduce_bandwidth",
    "all-reduce",
    "bytes per second of an all-reduce that spans machines",
    PUBLISHED_LINKS.all_reduce,
);
/// The three kinds of links as what a person may turn.
pub(super) const LINKS: [Tunable; 3] =
    [Tunable::Resource(NVLINK.name), Tunable::Resource(ETHERNET.name), Tunable::Resource(ALL_REDUCE.name)];
/// Between what a network may be cut.
pub(super) const STATES: OptionSpec = OptionSpec {
    name: "states",
    label: "states",
    help: "between what the network may be cut",
    kind: OptionKind::Choice {
        choices: &[
            ("auto", "wherever branches allow, unless there are too many: then along one order of its layers"),
            ("antichains", "wherever branches allow, as published"),
            ("order", "along one order of its layers"),
        ],
        default: "auto",
    },
};

/// Speed-up model from profile and options.
pub(super) fn model(profile: &LayerProfile, options: &Options, length: Length) -> SpeedupModel {
    SpeedupModel {
        profile_batch: profile.samples(),
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

/// How an option asks for states, and what came of it.
pub(super) struct Cuts {
    /// The states to cut between.
    pub(super) states: Arc<States>,
    /// Whether they lie along one order of the layers.
    pub(super) linear: bool,
    /// Whether these are all states that there are.
    pub(super) complete: bool,
    /// What to say about them.
    pub(super) note: Option<String>,
}

/// More states than this are not searched, and no more than [`MOST_BITS`] for all of them: some evenly spread are.
const MOST_SEARCHED: usize = 4096;
const MOST_BITS: usize = 20_000_000;
/// With more states than this there is a plan over [`FEW`] of them before the search begins.
pub(super) const MANY: usize = 256;
/// States of a first look.
pub(super) const FEW: usize = 96;

/// States that are searched of so many over so many nodes.
fn searched(states: usize, nodes: usize) -> usize {
    if states <= MOST_SEARCHED { states } else { (MOST_BITS / nodes.max(1)).clamp(FEW, MOST_SEARCHED / 4) }
}

impl Cuts {
    /// The plans that a proof speaks of, where the states are not all that the network allows.
    pub(super) fn proven_among(&self) -> Option<String> {
        (self.linear && !self.states.one_order && self.complete).then(|| "plans along one order".into())
    }
}

/// The states to cut between, as the options ask for them.
///
/// # Errors
/// [`StatesError`] if there are none, or too many where nothing else is allowed.
pub(super) fn cuts(
    workload: &Workload,
    profile: &LayerProfile,
    options: &Options,
    search: &Search,
) -> Result<Cuts, StatesError> {
    let choice = options.choice(STATES.name);
    let stopped = || search.cancelled();
    let found = (choice != "order").then(|| States::found(workload, profile, false, &stopped));
    let why = match found {
        Some(Ok(states)) => return Ok(Cuts { states, linear: false, complete: true, note: None }),
        Some(Err(error)) if choice == "auto" && error.has_an_order() => format!("{error}, so "),
        Some(Err(error)) => return Err(error),
        None => String::new(),
    };
    let all = States::found(workload, profile, true, &stopped)?;
    let most = searched(all.len(), workload.nodes.len());
    let states = if all.len() <= most { Arc::clone(&all) } else { Arc::new(all.thinned(most)) };
    let complete = states.len() == all.len();
    let mut note = (!states.one_order)
        .then(|| format!("{why}the network is cut along one order of its layers; along another a plan may be better"));
    if !complete {
        note = Some(format!(
            "of the {} places along the order of its layers the network is cut at one of {}, evenly spread; at others a plan may be better",
            all.len(),
            states.len()
        ));
    }
    Ok(Cuts { states, linear: true, complete, note })
}

/// Whether the states that the options ask for can be had.
///
/// # Errors
/// [`OptionError::Unsuited`] with their number and what to do.
pub(super) fn check_states(problem: &Problem) -> Result<(), OptionError> {
    let Some(profile) = problem.workload.layers() else { return Ok(()) };
    let choice = problem.options.choice(STATES.name);
    if choice != "antichains" {
        return Ok(());
    }
    match States::found(&problem.workload, profile, false, &|| false) {
        Err(error @ (StatesError::TooMany(_) | StatesError::TooLarge(_))) => Err(OptionError::Unsuited {
            workload: problem.workload.name.clone(),
            name: STATES.name.into(),
            value: choice.into(),
            why: error.to_string(),
            repair: "leave the option out, or cut along one order of the layers with --set states=order".into(),
        }),
        _ => Ok(()),
    }
}

/// The sentence about states that cannot be had.
pub(super) fn no_states(workload: &Workload, error: StatesError) -> String {
    format!("{} cannot be planned: {error}.", workload.name)
}

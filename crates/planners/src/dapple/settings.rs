//! Options of both planners, and the speed-up model that they define.

use std::sync::Arc;

use crate::{CannotPlan, OptionError, OptionKind, OptionSpec, Options, Problem, Tunable, Unit};
use plantui_core::{
    cluster::{Links, PUBLISHED_LINKS},
    plan::{Length, SpeedupModel},
    search::Search,
    workload::{
        LayerProfile, Workload,
        states::{self, States, StatesError},
    },
};

/// Returns the profile that both planners need.
///
/// # Errors
/// A reason that a user can act on.
pub(super) fn layers(workload: &Workload) -> Result<&LayerProfile, CannotPlan> {
    let profile = workload.layers().ok_or("it needs forward and backward times of layers (PipeDream's graph.txt)")?;
    if states::planned_nodes(workload).contains(&true) {
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
    number("micro_batch", "microbatch", "least samples in a microbatch", 1.0, (1.0, 1e7), true);
/// Memory of weights with gradients and optimizer state.
pub(super) const OPTIMIZER: OptionSpec = number(
    "optimizer_memory_scaling",
    "optimizer memory",
    "bytes of weights, gradients and optimizer state per byte of parameters",
    1.0,
    (0.0, 1000.0),
    false,
);
/// Activations of the whole network.
pub(super) const PEAK_ACTIVATION: OptionSpec = OptionSpec {
    name: "peak_activation_per_sample",
    label: "activations",
    help: "bytes of activations of the whole network per sample; 0: the sum of all outputs in the profile",
    kind: OptionKind::Quantity { default: 0.0, least: 0.0, most: 1e18, unit: Unit::Bytes },
};
/// Bandwidth inside a machine.
pub(super) const NVLINK: OptionSpec = link(
    "nvlink_bandwidth",
    "in machine",
    "bytes per second between two devices of a machine",
    PUBLISHED_LINKS.in_machine,
);
/// Bandwidth between machines.
pub(super) const ETHERNET: OptionSpec = link(
    "ethernet_bandwidth",
    "between",
    "bytes per second from a device to one of another machine",
    PUBLISHED_LINKS.between_machines,
);
/// All-reduce bandwidth between machines.
pub(super) const ALL_REDUCE: OptionSpec = link(
    "all_reduce_bandwidth",
    "all-reduce",
    "bytes per second of an all-reduce that spans machines",
    PUBLISHED_LINKS.all_reduce,
);
/// The three link bandwidths as tunables.
pub(super) const LINKS: [Tunable; 3] =
    [Tunable::Resource(NVLINK.name), Tunable::Resource(ETHERNET.name), Tunable::Resource(ALL_REDUCE.name)];
/// States between which the network may be cut.
pub(super) const STATES: OptionSpec = OptionSpec {
    name: "states",
    label: "states",
    help: "where the network may be cut",
    kind: OptionKind::Choice {
        choices: &[
            ("auto", "wherever branches allow; along one order of its layers if those states are too many"),
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

/// States that an option asks for, and their properties.
pub(super) struct Cuts {
    /// States between which to cut.
    pub(super) states: Arc<States>,
    /// True if they lie along one order of the layers.
    pub(super) linear: bool,
    /// True if no state was left out.
    pub(super) complete: bool,
    /// Note about the states for the outcome.
    pub(super) note: Option<String>,
}

/// Largest number of states that are all searched. Above it, evenly spread states are selected. To search all states of
/// a chain of 6000 layers takes 2.3 times the CPU time.
const MOST_SEARCHED: usize = 4096;
/// Approximate limit on the bits of the selected states in total.
const MOST_BITS: usize = 20_000_000;
/// Number of states above which a plan of `dapple` over `FEW` of them precedes the search. Without it, gnmt_large takes
/// over 6 times the CPU time.
pub(super) const MANY: usize = 256;
/// Number of states of that first search, and least number of selected states.
pub(super) const FEW: usize = 96;

/// Number of states to search, of `states` over `nodes` nodes.
fn searched(states: usize, nodes: usize) -> usize {
    if states <= MOST_SEARCHED { states } else { (MOST_BITS / nodes.max(1)).clamp(FEW, MOST_SEARCHED / 4) }
}

impl Cuts {
    /// Plans that a proof covers, if the states are not all that the network allows.
    pub(super) fn proven_among(&self) -> Option<String> {
        (self.linear && !self.states.one_order && self.complete).then(|| "plans along one order".into())
    }
}

/// Returns the states to cut between, as the options ask.
///
/// # Errors
/// [`StatesError`] if there are none, or if there are too many and the options allow nothing else.
pub(super) fn cuts(
    workload: &Workload,
    profile: &LayerProfile,
    options: &Options,
    search: &Search,
) -> Result<Cuts, StatesError> {
    let choice = options.choice(STATES.name);
    let stopped = || search.cancelled();
    let found = (choice != "order").then(|| States::cached(workload, profile, false, &stopped));
    let why = match found {
        Some(Ok(states)) => return Ok(Cuts { states, linear: false, complete: true, note: None }),
        Some(Err(error)) if choice == "auto" && error.has_an_order() => format!("{error}, so "),
        Some(Err(error)) => return Err(error),
        None => String::new(),
    };
    let all = States::cached(workload, profile, true, &stopped)?;
    let most = searched(all.len(), workload.nodes.len());
    let states = if all.len() <= most { Arc::clone(&all) } else { Arc::new(all.thinned(most)) };
    let complete = states.len() == all.len();
    let mut note = (!states.one_order).then(|| {
        format!("{why}the network is cut along one order of its layers; another order may give a better plan")
    });
    if !complete {
        note = Some(format!(
            "cuts were searched at {1} of {0} places, evenly spread; other places may give a better plan",
            all.len(),
            states.len()
        ));
    }
    Ok(Cuts { states, linear: true, complete, note })
}

/// Checks that the states that the options ask for can be computed.
///
/// # Errors
/// [`OptionError::Unsuited`] with their number and a repair.
pub(super) fn check_states(problem: &Problem) -> Result<(), OptionError> {
    let Some(profile) = problem.workload.layers() else { return Ok(()) };
    let choice = problem.options.choice(STATES.name);
    if choice != "antichains" {
        return Ok(());
    }
    match States::cached(&problem.workload, profile, false, &|| false) {
        Err(error @ (StatesError::TooMany(_) | StatesError::TooLarge(_))) => Err(OptionError::Unsuited {
            workload: problem.workload.name.clone(),
            name: STATES.name.into(),
            value: choice.into(),
            why: error.to_string(),
            repair: "leave the option out, or use --set states=order".into(),
        }),
        _ => Ok(()),
    }
}

/// Sentence for states that cannot be computed.
pub(super) fn no_states(workload: &Workload, error: StatesError) -> String {
    format!("{} cannot be planned: {error}.", workload.name)
}

//! Families: the behaviour of each kind of workload, one folder each, behind one trait.
//!
//! A [`Family`] has the limits and objectives that apply, checks plans independently of any planner, builds the
//! simulator's input, and numbers devices. It includes three more traits: `Describe` has the words for nodes and
//! stages, `NodeOffers` has the choices that nodes offer a plan, `Platform` has the hardware and software of a
//! workload. [`of`] gives the family of a workload. Apart from it, only hand edits ([`edit`]) and the workload's own
//! module match over kinds, to write, lint and convert profiles.
//!
//! A check shares no formula with a planner's search. The programs of layers and operators take their costs from their
//! checks: simulating them confirms the order of the work, not the costs.

pub(crate) mod check;
pub mod describe;
pub mod devices;
pub mod dial;
pub mod edit;
pub mod kinds;
pub mod layers;
pub(crate) mod limits;
pub mod mixed;
pub(crate) mod offers;
pub mod operators;
pub mod pipeline;
pub mod placement;
pub mod platform;
mod program;
pub mod read;
pub mod training;
mod training_edit;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    cluster::{LimitKind, Limits, MOST_LISTED_DEVICES},
    plan::{Measure, Plan, Score, Stage},
    simulate::{Demands, Pipeline, SimulatorSettings},
    workload::{NodeIndex, Profile, Workload},
};

pub use check::check;
pub use limits::{assumed, fits, resolve, validate};
pub use program::{pipeline, pipeline_unless};

use check::Labels;
use describe::Describe;
use dial::{Dial, DialError};
use offers::NodeOffers;
use platform::Platform;

/// Plan under check, with the results of the rules that all families share.
pub struct CheckContext<'a> {
    workload: &'a Workload,
    limits: &'a Limits,
    plan: &'a Plan,
    /// By node: the stage that holds it, if any.
    stage_of: &'a [Option<usize>],
    labels: &'a Labels<'a>,
}

/// Batch of the profile's measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileBatch {
    /// Number of samples.
    pub samples: u32,
    /// True if the file or the user states it; else it is inferred from sizes, or 1.
    pub stated: bool,
}

/// Behaviour of a kind of workload.
pub trait Family: Describe + NodeOffers + Platform + Sync {
    /// Name of the kind for users, in the plural: `pipelines`.
    fn id(&self) -> &'static str;

    /// Limits that plans must respect, in display order.
    fn limits(&self) -> &'static [LimitKind];

    /// Field of a file that states a limit, if files of this family have one.
    fn field(&self, kind: LimitKind) -> Option<&'static str>;

    /// Maximum number of devices of a plan.
    fn most_devices(&self) -> u32 {
        MOST_LISTED_DEVICES
    }

    /// Values of limits that neither the file nor the user states.
    fn assumed_limits(&self) -> &'static [(LimitKind, f64)] {
        &[]
    }

    /// Properties of the workload itself that can be changed during planning.
    fn dials(&self) -> Vec<Dial> {
        vec![]
    }

    /// Changes one of these properties. The workload is of this family.
    ///
    /// # Errors
    /// [`DialError`] with the allowed values.
    fn turned(&self, workload: &Workload, id: &str, value: &str) -> Result<Workload, DialError> {
        let _ = value;
        Err(DialError(format!("{} is a measured profile: it has no `{id}` to change", workload.name)))
    }

    /// Assumptions about the workload for a plan with this measure, one sentence each.
    fn assumptions(&self, measure: Option<Measure>) -> Vec<String> {
        let _ = measure;
        vec![]
    }

    /// Batch with which the workload's times were measured, if they are those of a batch.
    fn profile_batch(&self) -> Option<ProfileBatch> {
        None
    }

    /// True if devices are in machines, so that these must be known.
    fn on_machines(&self) -> bool {
        false
    }

    /// All measures of plans, the usual one first. Parameters come from a planner's options, as in the plan JSON.
    fn measures(&self, options: &BTreeMap<String, Value>) -> Vec<Measure>;

    /// True if a measure is the time of a simulated batch, so that the simulated parts sum to it.
    fn simulates(&self, measure: Measure) -> bool {
        let _ = measure;
        false
    }

    /// Time of all nodes of a plan in sequence on one device, in seconds per batch, if the plan's measure is a speed-up
    /// over that.
    fn alone_s(&self, workload: &Workload, limits: &Limits, plan: &Plan) -> Option<f64> {
        let _ = (workload, limits, plan);
        None
    }

    /// True if files of plans state the limits that they were made under; else the workload's file does.
    fn plans_name_limits(&self) -> bool {
        true
    }

    /// Bytes that a device of a stage may hold; infinite if unlimited.
    fn memory_limit(&self, limits: &Limits, stage: &Stage) -> f64 {
        let _ = stage;
        limits.memory_limit()
    }

    /// Number of the first CPU: CPUs are numbered after the accelerators.
    fn first_cpu(&self, limits: &Limits) -> u32 {
        limits.devices
    }

    /// Devices that no stage has, for another stage like this one; fewer if there are not enough. Empty if devices are alike.
    fn devices_like(&self, plan: &Plan, stage: &Stage) -> Vec<u32> {
        let _ = (plan, stage);
        vec![]
    }

    /// Value of a limit, for a message that asks for it.
    fn example(&self, kind: LimitKind) -> &'static str {
        kind.example()
    }

    /// Checks the rules that not all families share, and scores the plan. Shares no code with a planner's search.
    fn check(&self, checked: &CheckContext<'_>, score: &mut Score);

    /// Simulator's input for a valid plan. In a plan that breaks rules, nodes without a known choice cost nothing, and
    /// edges that go backwards are omitted.
    fn pipeline(&self, workload: &Workload, limits: &Limits, plan: &Plan, settings: &SimulatorSettings) -> Pipeline;

    /// Communication between the parts of a plan, if its pipeline does not determine it.
    fn demands(&self, limits: &Limits, plan: &Plan) -> Option<Demands> {
        let _ = (limits, plan);
        None
    }

    /// Settings for the simulation of its pipelines: those requested, with those that a plan fixes itself.
    fn settings(&self, pipeline: &Pipeline, asked: &SimulatorSettings) -> SimulatorSettings {
        let _ = pipeline;
        *asked
    }

    /// Numbers the devices of a plan whose file names none. `accelerators`: how many there are, if known.
    fn numbered(&self, plan: Plan, accelerators: Option<u32>) -> Plan {
        let _ = accelerators;
        plan.with_consecutive_devices()
    }

    /// One choice that the node offers.
    fn example_choice(&self, node: NodeIndex) -> &str;
}

/// Family of a workload.
pub fn of(workload: &Workload) -> &dyn Family {
    match &workload.profile {
        Profile::Piper(profile) => profile,
        Profile::Placement(profile) => profile,
        Profile::Layers(profile) => profile,
        Profile::Operators(profile) => profile,
        Profile::Training(profile) => &**profile,
        Profile::Mixed(profile) => &**profile,
    }
}

/// Default measure of plans of a workload.
pub fn measure(workload: &Workload) -> Measure {
    of(workload).measures(&BTreeMap::new()).into_iter().next().unwrap_or_default()
}

//! What each kind of workload does: one folder each, behind one trait.
//!
//! A [`Family`] says which limits and objectives apply, checks plans independently of any planner, makes of a plan what the
//! simulator runs, and numbers its devices. Three traits that it takes in say the rest: `Describe` the words with which
//! nodes and stages are shown, `Offers` what nodes offer a plan, `Platform` what hardware and software a workload
//! carries in itself. [`of`] gives the family of a workload. Beside it only hand edits ([`edit`]) and the workload's own
//! room match over kinds: where profiles are written, linted and converted.
//!
//! A check shares no formula with a planner's search. The programs of layers and of operators take their costs from where
//! the checks have them: what is simulated there confirms the order of the work, not the costs.

pub(crate) mod check;
pub mod describe;
pub mod devices;
pub mod dial;
pub mod edit;
pub mod layers;
pub(crate) mod limits;
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
    cluster::{LimitKind, Limits},
    plan::{Measure, Plan, Score},
    simulate::{Demands, Pipeline, SimulatorSettings},
    workload::{NodeIndex, Profile, Workload},
};

pub use check::check;
pub use limits::{assumed, resolve};
pub use program::{pipeline, pipeline_unless};

use check::Labels;
use describe::Describe;
use dial::{Dial, NotTurned};
use offers::Offers;
use platform::Platform;

/// A plan under check: what the rules of all families have found is in it.
pub struct Checked<'a> {
    workload: &'a Workload,
    limits: &'a Limits,
    plan: &'a Plan,
    /// By node: the stage that holds it, if one does.
    stage_of: &'a [Option<usize>],
    labels: &'a Labels<'a>,
}

/// The batch that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileBatch {
    /// Its samples.
    pub samples: u32,
    /// True if the file or the user states it; else it is inferred from sizes, or 1.
    pub told: bool,
}

/// What is peculiar to a kind of workload.
pub trait Family: Describe + Offers + Platform + Sync {
    /// What people call the kind, in the plural: `pipelines`.
    fn id(&self) -> &'static str;

    /// The limits that plans must keep, in the order to show them.
    fn limits(&self) -> &'static [LimitKind];

    /// The field of a file that states a limit, if files of this family have one.
    fn field(&self, kind: LimitKind) -> Option<&'static str>;

    /// What limits are taken as where neither the file nor the user states them.
    fn assumed_limits(&self) -> &'static [(LimitKind, f64)] {
        &[]
    }

    /// What of the workload itself can be turned while it is planned.
    fn dials(&self) -> Vec<Dial> {
        vec![]
    }

    /// The workload, which is of this family, with one of these turned.
    ///
    /// # Errors
    /// [`NotTurned`] with what would do.
    fn turned(&self, workload: &Workload, id: &str, value: &str) -> Result<Workload, NotTurned> {
        let _ = value;
        Err(NotTurned(format!("{} carries what was measured: there is no `{id}` to change", workload.name)))
    }

    /// Assumptions about the workload, one sentence each; for a plan with this measure.
    fn taken(&self, measure: Option<Measure>) -> Vec<String> {
        let _ = measure;
        vec![]
    }

    /// Samples of the batch that the workload's times were measured with, where these are of a batch.
    fn profile_batch(&self) -> Option<ProfileBatch> {
        None
    }

    /// Whether devices sit in machines, so that these must be known.
    fn on_machines(&self) -> bool {
        false
    }

    /// Everything plans can be measured by, the usual one first; parameters taken from a planner's options as the plan JSON
    /// carries them.
    fn measures(&self, options: &BTreeMap<String, Value>) -> Vec<Measure>;

    /// Whether a measure is the time of a simulated batch, so that the parts of that add up to it.
    fn simulates(&self, measure: Measure) -> bool {
        let _ = measure;
        false
    }

    /// What all nodes of a plan take one after the other on one device, seconds of a batch, where the plan's measure is a
    /// speed-up over that.
    fn alone_s(&self, workload: &Workload, limits: &Limits, plan: &Plan) -> Option<f64> {
        let _ = (workload, limits, plan);
        None
    }

    /// Whether files of plans name the limits that they were made under; else the workload's does.
    fn plans_name_limits(&self) -> bool {
        true
    }

    /// Checks what the rules of all families leave, and scores the plan. Shares no code with a planner's search.
    fn check(&self, checked: &Checked<'_>, score: &mut Score);

    /// What is simulated of a valid plan. Of a plan that breaks rules it takes what can be read: nodes without a known
    /// choice cost nothing, edges that go backwards are left out.
    fn pipeline(&self, workload: &Workload, limits: &Limits, plan: &Plan, settings: &SimulatorSettings) -> Pipeline;

    /// What the parts of a plan say to one another, where its pipeline does not tell.
    fn demands(&self, limits: &Limits, plan: &Plan) -> Option<Demands> {
        let _ = (limits, plan);
        None
    }

    /// The settings under which its pipelines are simulated: those asked for, with what a plan itself settles.
    fn settings(&self, pipeline: &Pipeline, asked: &SimulatorSettings) -> SimulatorSettings {
        let _ = pipeline;
        *asked
    }

    /// A plan whose file names no devices, with its devices numbered; `accelerators`: how many there are, where told.
    fn numbered(&self, plan: Plan, accelerators: Option<u32>) -> Plan {
        let _ = accelerators;
        plan.with_consecutive_devices()
    }

    /// A choice that the node offers.
    fn example_choice(&self, node: NodeIndex) -> &str;
}

/// The family of a workload.
pub fn of(workload: &Workload) -> &dyn Family {
    match &workload.profile {
        Profile::Piper(profile) => profile,
        Profile::Placement(profile) => profile,
        Profile::Layers(profile) => profile,
        Profile::Operators(profile) => profile,
        Profile::Training(profile) => &**profile,
    }
}

/// What plans of a workload are measured by unless they say otherwise.
pub fn measure(workload: &Workload) -> Measure {
    of(workload).measures(&BTreeMap::new()).into_iter().next().unwrap_or_default()
}

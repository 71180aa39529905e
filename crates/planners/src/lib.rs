//! The [`Planner`] trait, the data that a planner declares, and the registry of all planners.
//!
//! The screen and the command line build their forms and flags from these declarations and name no planner. Planners
//! are independent of one another. One that builds on another finds it in this registry.

#![forbid(unsafe_code)]

mod bearing;
mod converted;
pub mod dapple;
mod engine_layers;
pub mod equal_partition;
mod even;
mod fault;
pub mod joint;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod liar;
mod option_error;
mod options;
mod outcome;
mod over_layers;
pub mod parmesan;
pub mod pase;
mod pipeline_options;
pub mod piper;
pub mod placement;
mod proof;

use std::sync::Arc;

use thiserror::Error;

use plantui_core::{
    cluster::{LimitKind, Limits},
    family,
    plan::Measure,
    workload::Workload,
};

pub use bearing::{Bearing, Proves};
pub use bearing::{among, tell};
pub use fault::guarded;
pub use fault::{Fault, REPORT, panic_message};
pub use options::{OptionError, OptionKind, OptionSpec, OptionValue, Options, Tunable, Unit};
pub use outcome::{Alternative, Infeasible, Outcome, Statistics, Status};
pub use plantui_core::search::{Incumbent, Progress, Search};
pub use proof::{Proof, WEAK_GAP};

/// Bytes of stack of a planning thread: searches may recurse deeply.
pub const STACK_BYTES: usize = 64 << 20;

/// Input of a planner: workload, limits and options.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Workload to plan.
    pub workload: Arc<Workload>,
    /// Limits that the plan must keep.
    pub limits: Limits,
    /// The planner's own options.
    pub options: Options,
}

/// Identity of a planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannerInfo {
    /// Id in scripts: `piper`.
    pub id: &'static str,
    /// Name for people: `Piper`.
    pub name: &'static str,
    /// Publication that it follows.
    pub paper: &'static str,
    /// Its purpose in one sentence.
    pub summary: &'static str,
    /// Name of its objective in the plan JSON: `time_per_sample`.
    pub objective: &'static str,
    /// Unit of its objective: `s`.
    pub unit: &'static str,
}

/// Reason why a planner cannot plan a workload, worded so that a user can act on it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CannotPlan(String);

impl From<String> for CannotPlan {
    fn from(reason: String) -> Self {
        CannotPlan(reason)
    }
}

impl From<&str> for CannotPlan {
    fn from(reason: &str) -> Self {
        CannotPlan(reason.into())
    }
}

/// A planning algorithm.
pub trait Planner: Sync + Send {
    /// Identity of the planner.
    fn info(&self) -> &'static PlannerInfo;

    /// Options with types, ranges and defaults.
    fn options(&self) -> &'static [OptionSpec];

    /// Options that decide which plans exist or what they run on.
    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }

    /// Optimality claims of the planner, and the role of each option in them. If it declares nothing, a plan that it
    /// calls optimal is reported as feasible.
    fn proves(&self) -> Proves {
        Proves::Nothing
    }

    /// Names of the options that have no effect on this workload. They are not offered for it, and refused.
    fn unheard(&self, workload: &Workload) -> &'static [&'static str] {
        let _ = workload;
        &[]
    }

    /// Returns the [`Planner::tunables`] that apply to a workload.
    fn tunables_for(&self, workload: &Workload) -> Vec<Tunable> {
        let unheard = self.unheard(workload);
        self.tunables().iter().copied().filter(|tunable| !unheard.contains(&tunable.name())).collect()
    }

    /// Limits that the planner supports, in display order.
    fn limits(&self) -> &'static [LimitKind] {
        &LimitKind::PIPELINE
    }

    /// Limits that it supports for this workload.
    fn limits_for(&self, workload: &Workload) -> &'static [LimitKind] {
        let _ = workload;
        self.limits()
    }

    /// Checks that the planner can plan this workload.
    ///
    /// # Errors
    /// A reason that a user can act on.
    fn can_plan(&self, workload: &Workload) -> Result<(), CannotPlan>;

    /// Measure of the plans of a workload, and of the values and bounds that a running search reports.
    ///
    /// [`PlannerInfo::objective`] is the measure for workloads that the planner plans without conversion. Plans of a
    /// converted workload use the measure of that workload's family.
    fn measure(&self, workload: &Workload, options: &Options) -> Measure {
        let options = options.iter().map(|(name, value)| (name.to_string(), value.json())).collect();
        let own = self.info().objective;
        let known = family::of(workload).measures(&options).into_iter().find(|measure| measure.name() == own);
        known.unwrap_or_else(|| family::measure(workload))
    }

    /// Checks that the options suffice to plan, including the files that they name.
    ///
    /// # Errors
    /// [`OptionError`] with the option that is missing or wrong. [`Planner::plan`] reports the same error in its
    /// outcome.
    fn check_options(&self, problem: &Problem) -> Result<(), OptionError> {
        let _ = problem;
        Ok(())
    }

    /// True if it plans this workload without conversion. Other planners are not chosen as the default for the
    /// workload.
    fn is_native(&self, workload: &Workload) -> bool {
        self.can_plan(workload).is_ok()
    }

    /// True if it models the routes of a topology: its plans, bounds and objective then hold on those routes.
    fn searches_routes(&self) -> bool {
        false
    }

    /// True if it runs other planners. A comparison of all planners then leaves it out unless the user names it.
    fn asks_others(&self) -> bool {
        false
    }

    /// Plans the problem. Obeys the cancellation, deadline and threads of `search`, and reports progress to it.
    fn plan(&self, problem: &Problem, search: &Search) -> Outcome;

    /// True if [`Planner::plan_many`] is faster than one [`Planner::plan`] for each number of devices.
    fn answers_many(&self, problem: &Problem) -> bool {
        let _ = problem;
        false
    }

    /// Plans for several numbers of devices, with `problem` otherwise unchanged, and reports each outcome when it is
    /// ready. Values equal those of [`Planner::plan`] up to rounding. The plan may be another one of the same value.
    fn plan_many(&self, problem: &Problem, devices: &[u32], run: &mut dyn ManyRuns) {
        one_by_one(self, problem, devices, run);
    }
}

/// Calls [`Planner::plan`] for each number of devices.
fn one_by_one<P: Planner + ?Sized>(planner: &P, problem: &Problem, devices: &[u32], run: &mut dyn ManyRuns) {
    for &count in devices {
        let search = run.begin(count);
        let limits = problem.limits.with(LimitKind::Devices, f64::from(count));
        let outcome = planner.plan(&Problem { limits, ..problem.clone() }, &search);
        run.end(count, outcome);
    }
}

/// Receiver of the outcomes of [`Planner::plan_many`].
pub trait ManyRuns {
    /// Begins planning for this number of devices and returns the search that controls it.
    fn begin(&mut self, devices: u32) -> Search;

    /// Ends planning for this number of devices.
    fn end(&mut self, devices: u32, outcome: Outcome);
}

static REGISTRY: &[&dyn Planner] = &[
    &joint::Joint,
    &converted::PIPER,
    &converted::EQUAL_PARTITION,
    &converted::PLACEMENT_DP,
    &converted::PLACEMENT_LINEARISED,
    &placement::ip_planner::IntegerProgram,
    &converted::PLACEMENT_PIPEDREAM,
    &placement::planners::LOCAL_SEARCH,
    &converted::PLACEMENT_ONE,
    &placement::expert_planner::Expert,
    &placement::latency_planners::SEARCH,
    &placement::latency_planners::GREEDY,
    &placement::latency_planners::MAX_LOAD_DP,
    &placement::partitioners::Multilevel,
    &placement::partitioners::Scotch,
    &dapple::Dapple,
    &dapple::hpgo::Hpgo,
    &over_layers::OverLayers,
    &parmesan::Ensemble,
    &pase::planners::Pase,
    &pase::planners::DataParallel,
];

/// Returns all planners in display order.
pub fn all() -> &'static [&'static dyn Planner] {
    REGISTRY
}

/// Finds a planner by its id.
pub fn find(id: &str) -> Option<&'static dyn Planner> {
    all().iter().copied().find(|planner| planner.info().id == id)
}

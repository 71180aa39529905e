//! How a workload is cut: the [`Planner`] trait, what a planner declares, and the registry of all planners.
//!
//! The screen and the command line build their forms and flags from what planners declare here; neither knows a planner
//! by name. Planners know nothing of one another; one that builds on another asks this list for it.

mod bearing;
pub(crate) mod converted;
pub mod dapple;
mod engine_layers;
pub mod equal_partition;
mod even;
mod fault;
pub mod joint;
#[cfg(test)]
pub(crate) mod liar;
mod option_error;
pub(crate) mod options;
mod outcome;
mod over_layers;
pub mod parmesan;
pub mod pase;
mod pipeline_options;
pub mod piper;
pub mod placement;
mod proof;
mod random;
mod search;

use std::sync::Arc;

use thiserror::Error;

use crate::{
    cluster::{LimitKind, Limits},
    family::{self},
    plan::Measure,
    workload::Workload,
};

pub use bearing::{Bearing, Proves};
pub(crate) use bearing::{among, tell};
pub(crate) use fault::guarded;
pub use fault::{Fault, REPORT, panic_message};
pub use options::{OptionError, OptionKind, OptionSpec, OptionValue, Options, Tunable, Unit};
pub use outcome::{Alternative, Infeasible, Outcome, Statistics, Status};
pub use proof::{Proof, WEAK_GAP};
pub use search::{Incumbent, Progress, Search};

/// Bytes of stack for a thread that plans: searches may go deep.
pub const STACK_BYTES: usize = 64 << 20;

/// What is asked of a planner.
#[derive(Debug, Clone)]
pub struct Problem {
    /// What is planned.
    pub workload: Arc<Workload>,
    /// What it must keep.
    pub limits: Limits,
    /// The planner's own options.
    pub options: Options,
}

/// Who a planner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannerInfo {
    /// What scripts call it: `piper`.
    pub id: &'static str,
    /// What people call it: `Piper`.
    pub name: &'static str,
    /// The publication it follows.
    pub paper: &'static str,
    /// One sentence on what it does.
    pub summary: &'static str,
    /// Name of its objective in the plan JSON: `time_per_sample`.
    pub objective: &'static str,
    /// Unit of its objective: `s`.
    pub unit: &'static str,
}

/// Why a planner cannot plan a workload: a reason that a user can act on.
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
    /// Who it is.
    fn info(&self) -> &'static PlannerInfo;

    /// The options it takes, with types, ranges and defaults.
    fn options(&self) -> &'static [OptionSpec];

    /// Those of its options that decide which plans there are or what they run on.
    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }

    /// Whether it proves its plans the best, and what each option means for that. What a planner that declares nothing
    /// claims to be optimal is told as feasible.
    fn proves(&self) -> Proves {
        Proves::Nothing
    }

    /// Names of the options that mean nothing for a workload: they are not offered there, and refused.
    fn unheard(&self, workload: &Workload) -> &'static [&'static str] {
        let _ = workload;
        &[]
    }

    /// Those of [`Planner::tunables`] that are heard for a workload.
    fn tunables_for(&self, workload: &Workload) -> Vec<Tunable> {
        let unheard = self.unheard(workload);
        self.tunables().iter().copied().filter(|tunable| !unheard.contains(&tunable.name())).collect()
    }

    /// The limits it heeds, in the order to show them.
    fn limits(&self) -> &'static [LimitKind] {
        &LimitKind::PIPELINE
    }

    /// Those it heeds for a workload, where they depend on it.
    fn limits_for(&self, workload: &Workload) -> &'static [LimitKind] {
        let _ = workload;
        self.limits()
    }

    /// Whether it can plan this workload.
    ///
    /// # Errors
    /// A reason a user can act on.
    fn can_plan(&self, workload: &Workload) -> Result<(), CannotPlan>;

    /// What its plans of a workload are measured by, and with them the values and bounds that a search tells on its way.
    /// [`PlannerInfo::objective`] is that of the workloads it is made for: plans of a converted one are measured as that
    /// workload's family measures plans.
    fn measure(&self, workload: &Workload, options: &Options) -> Measure {
        let options = options.iter().map(|(name, value)| (name.to_string(), value.json())).collect();
        let own = self.info().objective;
        let known = family::of(workload).measures(&options).into_iter().find(|measure| measure.name() == own);
        known.unwrap_or_else(|| family::measure(workload))
    }

    /// Whether the options suffice to plan, files that they name included.
    ///
    /// # Errors
    /// [`OptionError`] with what is missing or wrong. A planner that is asked to plan all the same says it in its outcome.
    fn check_options(&self, problem: &Problem) -> Result<(), OptionError> {
        let _ = problem;
        Ok(())
    }

    /// Whether it plans this workload as it is. A planner that can plan others converts them first: it is not the one
    /// to begin with.
    fn is_native(&self, workload: &Workload) -> bool {
        self.can_plan(workload).is_ok()
    }

    /// Whether it knows the routes of a topology: its plans, bounds and objective are those on them.
    fn searches_routes(&self) -> bool {
        false
    }

    /// Whether it asks other planners: then it is no line of its own where all are compared, unless it is named.
    fn asks_others(&self) -> bool {
        false
    }

    /// Plans. Heeds `search` for cancellation, deadline and threads, and reports progress to it.
    fn plan(&self, problem: &Problem, search: &Search) -> Outcome;

    /// Whether [`Planner::plan_many`] takes less time than planning for each number of devices by itself.
    fn answers_many(&self, problem: &Problem) -> bool {
        let _ = problem;
        false
    }

    /// Plans for several numbers of devices, all else being as in `problem`, and hands over each outcome when it is there.
    /// Values are those of [`Planner::plan`] up to rounding; of equally good plans it may give another.
    fn plan_many(&self, problem: &Problem, devices: &[u32], run: &mut dyn ManyRuns) {
        one_by_one(self, problem, devices, run);
    }
}

/// Plans for each number of devices by itself.
fn one_by_one<P: Planner + ?Sized>(planner: &P, problem: &Problem, devices: &[u32], run: &mut dyn ManyRuns) {
    for &count in devices {
        let search = run.begin(count);
        let limits = problem.limits.with(LimitKind::Devices, f64::from(count));
        let outcome = planner.plan(&Problem { limits, ..problem.clone() }, &search);
        run.end(count, outcome);
    }
}

/// Who waits for the outcomes of [`Planner::plan_many`].
pub trait ManyRuns {
    /// Planning for this number of devices begins; it heeds this search.
    fn begin(&mut self, devices: u32) -> Search;

    /// Planning for this number of devices has ended.
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

/// All planners, in the order they are shown.
pub fn all() -> &'static [&'static dyn Planner] {
    REGISTRY
}

/// The planner with this id.
pub fn find(id: &str) -> Option<&'static dyn Planner> {
    all().iter().copied().find(|planner| planner.info().id == id)
}

//! The [`Planner`] trait, the data that a planner declares, and the registry of all planners.
//!
//! The screen and the command line build their forms and flags from these declarations and name no planner. Planners
//! are independent of one another. One that starts from plans of others receives them from whoever runs it ([`Others`]).

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
mod others;
mod outcome;
pub mod parmesan;
pub mod pase;
mod pipeline_options;
pub mod piper;
pub mod placement;
mod planner;
mod proof;

use std::sync::Arc;

use plantui_core::{
    cluster::{LimitKind, Limits},
    workload::Workload,
};

pub use bearing::{Bearing, Proves, among, tell};
pub use fault::{Fault, REPORT, guarded, panic_message};
pub use options::{OptionError, OptionKind, OptionSpec, OptionValue, Options, Tunable, Unit};
pub use others::Others;
pub use outcome::{Alternative, Infeasible, Outcome, Statistics, Status};
pub use planner::{CannotPlan, Declaration, Planner, PlannerInfo, Uses};
pub use plantui_core::search::{Incumbent, Progress, Search};
pub use proof::{Proof, WEAK_GAP};

/// Bytes of stack of a planning thread: searches may recurse deeply.
pub const STACK_BYTES: usize = 64 << 20;

/// Input of a planner: workload, limits and options.
///
/// ```
/// use std::sync::Arc;
/// use plantui_core::{cluster::{GivenLimits, LimitKind}, family, workload};
/// use plantui_planners::{self as planner, OptionValue, Options, Problem, Search, Status};
///
/// let workload = Arc::new(workload::builtin());
/// let limits = family::resolve(&workload, &GivenLimits::default().with(LimitKind::Devices, 4))?;
/// let piper = planner::find("piper").ok_or("no such planner")?;
/// let mut options = Options::defaults(piper.options());
/// options.set("recompute", OptionValue::Choice("never"));
/// let outcome = piper.plan(&Problem { workload, limits, options }, &Search::default());
/// assert_eq!(outcome.status, Status::Infeasible);
/// let explanation = outcome.infeasible.ok_or("a plan")?.explanation;
/// assert!(explanation.contains("Feasible with 4 x 9.05 GiB, or with 5 x 8 GiB"), "{explanation}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Problem {
    /// Workload to plan.
    pub workload: Arc<Workload>,
    /// Limits that the plan must keep.
    pub limits: Limits,
    /// The planner's own options.
    pub options: Options,
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
    &parmesan::OverLayers,
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

/// Planner that a screen opens a workload with: the first that needs no conversion. An inference graph with several CPUs
/// asks for the time of one sample, as the published inputs for latency do (NeurIPS 2020); those for throughput have one
/// CPU. Its search improves on a screen, while a report would wait for it.
pub fn opens_with(workload: &Workload) -> Option<&'static dyn Planner> {
    let for_latency = workload.placement().is_some_and(|profile| {
        let cpus = workload.limits.get(LimitKind::Cpus).unwrap_or(0.0);
        cpus > 1.0 && !profile.nodes.iter().any(|node| node.backward)
    });
    let latency = find(placement::latency_planners::SEARCH.info().id).filter(|_| for_latency);
    latency.or_else(|| first_native(workload))
}

/// First planner that needs no conversion of a workload.
pub fn first_native(workload: &Workload) -> Option<&'static dyn Planner> {
    all().iter().copied().find(|planner| planner.is_native(workload))
}

/// Planner of plans that training engines run, for this workload: the first with the options `engine` and `space`.
pub fn for_engines(workload: &Workload) -> Option<&'static dyn Planner> {
    let has = |planner: &&dyn Planner, name: &str| planner.options().iter().any(|spec| spec.name == name);
    let plans_for = |planner: &&dyn Planner| has(planner, "engine") && has(planner, "space");
    all().iter().copied().filter(plans_for).find(|planner| planner.can_plan(workload).is_ok())
}

/// Planners that need no plans of others, in display order.
pub fn independent() -> Vec<&'static dyn Planner> {
    all().iter().copied().filter(|planner| planner.stands_alone()).collect()
}

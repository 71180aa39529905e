//! Plan of the Compare view: its result, its line of the comparison, and its simulation.

use std::sync::Arc;

use crate::{
    planner::Search,
    simulate::Setup,
    study::compare::{self, ComparedPlan},
    tui::{shown::ShownRun, simulated::Simulated},
};

/// Id of the planner of a plan that a job runs.
pub(super) const JOB: &str = "job";

/// Plan of the table.
#[derive(Debug, Clone)]
pub(in crate::tui) struct Compared {
    /// Run of the plan, with its inputs.
    pub shown: Arc<ShownRun>,
    /// Line of the comparison.
    pub entry: ComparedPlan,
    /// Requested schedule and settings of the simulation.
    pub setup: Setup,
}

impl Compared {
    /// True if the schedule needs more memory than a device has, although the planner's own count is within the limit.
    pub(in crate::tui) fn overflows(&self) -> bool {
        let limit = self.shown.limits.memory_limit() * (1.0 + 1e-9);
        self.entry.simulated.as_ref().is_some_and(|simulated| simulated.peak_memory_bytes > limit)
    }

    /// Assembles a result with its simulated figures, if any.
    pub(in crate::tui) fn new(shown: Arc<ShownRun>, figures: Option<compare::SimulatedFigures>, setup: Setup) -> Self {
        let mut entry =
            compare::line(shown.planner, (&shown.outcome, shown.score.as_ref()), &shown.limits, shown.seconds, figures);
        // A time of 0 means that the plan was edited or read, not planned.
        entry.seconds = entry.seconds.filter(|&seconds| seconds > 0.0);
        let violations = shown.score.iter().flat_map(|score| &score.violations);
        entry.remarks.extend(violations.map(|violation| format!("not valid: {violation}")));
        Compared { shown, entry, setup }
    }

    /// The same, simulated here as long as the search is not cancelled. Takes the time of a simulation.
    pub(in crate::tui) fn simulate(shown: Arc<ShownRun>, setup: Setup, search: &Search) -> Self {
        let plan = shown.plan().filter(|(_, score)| score.is_valid());
        let figures = plan
            .map(|(plan, _)| compare::SimulatedFigures::within(&shown.workload, &shown.limits, plan, setup, search));
        let (figures, given_up) = match figures {
            Some(Err(given_up)) => (None, Some(given_up)),
            simulated => (simulated.and_then(Result::ok).filter(compare::SimulatedFigures::is_there), None),
        };
        let mut compared = Compared::new(shown, figures, setup);
        compared.entry.remarks.extend(given_up);
        compared
    }

    /// Assembles a plan from an existing timeline.
    pub(in crate::tui) fn of(simulated: &Simulated) -> Self {
        // Plans that violate a limit have figures too: users want to see what they would need.
        let figures = compare::SimulatedFigures::of(&simulated.pipeline, simulated.setup.schedule, &simulated.timeline);
        let figures = Some(figures).filter(compare::SimulatedFigures::is_there);
        Compared::new(simulated.shown.clone(), figures, simulated.setup)
    }

    /// Memory limit that the plan was made under, bytes.
    pub(in crate::tui) fn memory_limit(&self) -> f64 {
        self.shown.limits.memory_limit()
    }

    /// True for the plan of a job as it runs.
    pub(in crate::tui) fn is_of_job(&self) -> bool {
        self.shown.planner.id == JOB
    }

    pub(in crate::tui) fn is_of(&self, shown: &Arc<ShownRun>) -> bool {
        Arc::ptr_eq(&self.shown, shown)
    }
}

//! A plan of the Compare view: its result, its line of the comparison, and how it was simulated.

use std::sync::Arc;

use crate::{
    planner::Search,
    simulate::Setup,
    study::compare::{self, ComparedPlan},
    tui::{shown::ShownRun, simulated::Simulated},
};

/// A plan on the table.
#[derive(Debug, Clone)]
pub(in crate::tui) struct Compared {
    /// The plan with all it rests on.
    pub shown: Arc<ShownRun>,
    /// Its line of the comparison.
    pub entry: ComparedPlan,
    /// How it was to be simulated.
    pub setup: Setup,
}

impl Compared {
    /// Whether the schedule needs more memory than a device has, though the planner's own count kept the limit.
    pub(in crate::tui) fn overflows(&self) -> bool {
        let limit = self.shown.limits.memory_limit() * (1.0 + 1e-9);
        self.entry.simulated.as_ref().is_some_and(|simulated| simulated.peak_memory_bytes > limit)
    }

    /// A result and its figures in the simulator, if it was simulated.
    pub(in crate::tui) fn new(shown: Arc<ShownRun>, figures: Option<compare::SimulatedFigures>, setup: Setup) -> Self {
        let mut entry =
            compare::line(shown.planner, (&shown.outcome, shown.score.as_ref()), &shown.limits, shown.seconds, figures);
        // What took no time at all was not planned but made or read.
        entry.seconds = entry.seconds.filter(|&seconds| seconds > 0.0);
        let violations = shown.score.iter().flat_map(|score| &score.violations);
        entry.remarks.extend(violations.map(|violation| format!("not valid: {violation}")));
        Compared { shown, entry, setup }
    }

    /// The same, simulated here, unless the search ends meanwhile: takes as long as the simulator does.
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

    /// A plan whose timeline is there already.
    pub(in crate::tui) fn of(simulated: &Simulated) -> Self {
        // Of a plan that breaks a rule, too: what it would take is what one wants to know of it.
        let figures = compare::SimulatedFigures::of(&simulated.pipeline, simulated.setup.schedule, &simulated.timeline);
        let figures = Some(figures).filter(compare::SimulatedFigures::is_there);
        Compared::new(simulated.shown.clone(), figures, simulated.setup)
    }

    /// The limit on memory that it was made under, bytes.
    pub(in crate::tui) fn memory_limit(&self) -> f64 {
        self.shown.limits.memory_limit()
    }

    pub(in crate::tui) fn is_of(&self, shown: &Arc<ShownRun>) -> bool {
        Arc::ptr_eq(&self.shown, shown)
    }
}

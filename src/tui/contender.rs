//! A plan of the Compare view: its result, its line of the comparison, and how it was played.

use std::sync::Arc;

use super::{played::Played, shown::Shown};
use crate::{
    planner::Search,
    simulate::Play,
    study::compare::{self, Entry},
};

/// A plan on the table.
#[derive(Debug, Clone)]
pub(super) struct Contender {
    /// The plan with all it rests on.
    pub shown: Arc<Shown>,
    /// Its line of the comparison.
    pub entry: Entry,
    /// How it was to be played.
    pub play: Play,
}

impl Contender {
    /// Whether the schedule needs more memory than a device has, though the planner's own count kept the limit.
    pub(super) fn overflows(&self) -> bool {
        let limit = self.shown.limits.memory_bytes * (1.0 + 1e-9);
        self.entry.played.as_ref().is_some_and(|played| played.peak_memory_bytes > limit)
    }

    /// A result and its figures in the simulator, if it was played.
    pub(super) fn new(shown: Arc<Shown>, figures: Option<compare::Played>, play: Play) -> Self {
        let mut entry =
            compare::line(shown.planner, (&shown.outcome, shown.score.as_ref()), &shown.limits, shown.seconds, figures);
        // What took no time at all was not planned but made or read.
        entry.seconds = entry.seconds.filter(|&seconds| seconds > 0.0);
        let violations = shown.score.iter().flat_map(|score| &score.violations);
        entry.remarks.extend(violations.map(|violation| format!("not valid: {violation}")));
        Contender { shown, entry, play }
    }

    /// The same, played here, unless the search ends meanwhile: takes as long as the simulator does.
    pub(super) fn play(shown: Arc<Shown>, play: Play, search: &Search) -> Self {
        let plan = shown.plan().filter(|(_, score)| score.is_valid());
        let figures = plan.map(|(plan, _)| compare::Played::within(&shown.workload, &shown.limits, plan, play, search));
        let (figures, given_up) = match figures {
            Some(Err(given_up)) => (None, Some(given_up)),
            played => (played.and_then(Result::ok).filter(compare::Played::is_there), None),
        };
        let mut contender = Contender::new(shown, figures, play);
        contender.entry.remarks.extend(given_up);
        contender
    }

    /// A plan whose timeline is there already.
    pub(super) fn of(played: &Played) -> Self {
        // Of a plan that breaks a rule, too: what it would take is what one wants to know of it.
        let figures = compare::Played::of(&played.pipeline, played.play.schedule, &played.timeline);
        let figures = Some(figures).filter(compare::Played::is_there);
        Contender::new(played.shown.clone(), figures, played.play)
    }

    /// The limit on memory that it was made under, bytes.
    pub(super) fn memory_limit(&self) -> f64 {
        self.shown.limits.memory_bytes
    }

    pub(super) fn is_of(&self, shown: &Arc<Shown>) -> bool {
        Arc::ptr_eq(&self.shown, shown)
    }
}

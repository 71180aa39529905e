//! Editor of a schedule: the list of each rank, the edits so far, and the flaws that the validator finds.

use std::sync::Arc;

use super::simulated::Simulated;
use crate::{
    schedule::{
        ActionKind, ExplicitSchedule, GivenSchedule, Step,
        edit::ScheduleEdit,
        validate::{Flaw, flaws},
    },
    simulate::Schedule,
    study::schedules::ScheduleFigures,
};

/// Longest list that the screen edits, steps. Each edit keeps a copy of it.
pub(super) const MOST_STEPS: usize = 10_000;

/// Most versions kept for undo; the oldest are dropped.
const MOST_VERSIONS: usize = 200;

/// Version of the schedule.
#[derive(Debug, Clone)]
struct Version {
    schedule: Arc<ExplicitSchedule>,
    /// Rank and step of the edit that made it.
    edited: (usize, usize),
}

/// State of the editor.
#[derive(Debug, Clone)]
pub(super) struct ScheduleEditor {
    /// Simulated plan that the schedule is for.
    pub(super) of: Arc<Simulated>,
    /// Name of the schedule that the edits began with.
    pub(super) from: &'static str,
    versions: Vec<Version>,
    at: usize,
    /// Selected rank.
    pub(super) rank: usize,
    /// Selected step of the rank.
    pub(super) step: usize,
    /// Flaws that the validator finds in the shown version.
    pub(super) flaws: Vec<Flaw>,
    /// Figures of the shown version; `None` if it cannot run, or while it is simulated.
    pub(super) figures: Option<ScheduleFigures>,
}

impl ScheduleEditor {
    /// Editor of the schedule that a plan runs.
    ///
    /// # Errors
    /// Reason why it cannot be edited, as a sentence.
    pub(super) fn new(of: Arc<Simulated>) -> Result<Self, String> {
        let schedule = of.schedule();
        let listed = of.pipeline.explicit(schedule).ok_or("this plan runs in one order, which no schedule changes")?;
        let steps: usize = listed.ranks.iter().map(Vec::len).sum();
        if steps > MOST_STEPS {
            return Err(format!(
                "a schedule of {steps} steps is too long to edit here; export it as torch-schedule, edit the file, \
                and pass it as --schedule FILE.csv"
            ));
        }
        let editor = ScheduleEditor {
            of,
            from: schedule.name(),
            flaws: flaws(&listed),
            versions: vec![Version { schedule: listed, edited: (0, 0) }],
            at: 0,
            rank: 0,
            step: 0,
            figures: None,
        };
        match editor.runnable().and_then(|own| editor.of.pipeline.refusal(own)) {
            Some(reason) => Err(reason),
            None => Ok(editor),
        }
    }

    /// The same edits on another simulation of the plan.
    pub(super) fn under(self, of: Arc<Simulated>) -> Self {
        ScheduleEditor { of, figures: None, ..self }
    }

    /// Shown version.
    pub(super) fn schedule(&self) -> &Arc<ExplicitSchedule> {
        &self.versions[self.at].schedule
    }

    /// Number of edits behind the shown version.
    pub(super) fn edits(&self) -> usize {
        self.at
    }

    /// Shown version as a schedule, unless a flaw keeps it from running.
    pub(super) fn runnable(&self) -> Option<Schedule> {
        let broken = self.flaws.iter().any(|flaw| flaw.kind.breaks());
        (!broken).then(|| Schedule::Given(GivenSchedule::new((**self.schedule()).clone())))
    }

    /// Applies an edit to the selected step.
    ///
    /// # Errors
    /// Reason why the step has no such edit.
    pub(super) fn apply(&mut self, edit: ScheduleEdit) -> Result<(), String> {
        let mut next = (**self.schedule()).clone();
        let step = edit.apply(&mut next, self.rank, self.step)?;
        self.versions.truncate(self.at + 1);
        self.versions.push(Version { schedule: Arc::new(next), edited: (self.rank, step) });
        let dropped = self.versions.len().saturating_sub(MOST_VERSIONS);
        self.versions.drain(..dropped);
        self.at = self.versions.len() - 1;
        self.changed((self.rank, step));
        Ok(())
    }

    /// Shows the version before or after. False if there is none.
    pub(super) fn undo(&mut self, forwards: bool) -> bool {
        let next = if forwards { self.at.checked_add(1) } else { self.at.checked_sub(1) };
        let Some(next) = next.filter(|&next| next < self.versions.len()) else { return false };
        // The place of the edit that is undone, or done again.
        let place = self.versions[next.max(self.at)].edited;
        self.at = next;
        self.changed(place);
        true
    }

    fn changed(&mut self, (rank, step): (usize, usize)) {
        self.figures = None;
        self.flaws = flaws(self.schedule());
        self.move_to(rank, step);
    }

    /// Selects the step of the first flaw, if there is one.
    pub(super) fn go_to_flaw(&mut self) {
        let place = self.flaws.first().and_then(|flaw| Some((flaw.rank, flaw.step?)));
        if let Some((rank, step)) = place {
            self.move_to(rank, step);
        }
    }

    /// Selects a step, or the nearest there is.
    pub(super) fn move_to(&mut self, rank: usize, step: usize) {
        let schedule = Arc::clone(self.schedule());
        self.rank = rank.min(schedule.ranks.len().saturating_sub(1));
        let steps = schedule.ranks.get(self.rank).map_or(0, Vec::len);
        self.step = step.min(steps.saturating_sub(1));
    }

    /// The selected step in words.
    pub(super) fn selected(&self) -> String {
        let steps = &self.schedule().ranks[self.rank];
        let Some(step) = steps.get(self.step) else { return format!("rank {} has no steps", self.rank) };
        let words: Vec<String> = step
            .actions()
            .map(|action| {
                let pass = match action.kind {
                    ActionKind::Forward => "forward",
                    ActionKind::Backward => "backward",
                    ActionKind::InputGradient => "backward of the inputs",
                    ActionKind::WeightGradient => "backward of the weights",
                };
                format!("{pass} of microbatch {} on stage {}", action.microbatch, action.stage)
            })
            .collect();
        let beside = if matches!(step, Step::Overlap(..)) { ", side by side" } else { "" };
        format!("rank {}, step {} of {}: {}{beside}", self.rank, self.step, steps.len(), words.join(" and "))
    }
}

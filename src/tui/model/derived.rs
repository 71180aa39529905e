//! Values that follow from several parts of the state.

use std::time::{Duration, Instant};

use super::{Focus, Model, PATIENCE, PROGRESS};
use crate::tui::{
    changes::Told,
    playing::{FRAMES, Playhead},
    shown::Standing,
};

impl Model {
    /// True if the left panel is visible.
    pub(in crate::tui) fn panel_visible(&self) -> bool {
        self.focus == Focus::Panel || !self.panel.folded.unwrap_or(self.appearance.size.0 < 100)
    }

    /// True if the shown plan belongs to other limits than those at the left.
    pub(in crate::tui) fn stale(&self) -> bool {
        if self.edited() || self.previewed().is_some() {
            return false;
        }
        self.planning.stopped
            || self.planning.refusal.is_some()
            || (self.planning_shown() && !self.planning.best_so_far_shown())
    }

    /// True if the course of the search is visible.
    pub(in crate::tui) fn convergence_shown(&self) -> bool {
        self.planning.chart && self.view.uses().plan
    }

    /// True if planning has taken long enough to show it: old figures are dim, and a sign turns in the header.
    pub(in crate::tui) fn planning_shown(&self) -> bool {
        self.waited(PATIENCE)
    }

    /// True if planning has taken so long that the header shows its progress.
    pub(in crate::tui) fn progress_shown(&self) -> bool {
        self.waited(PROGRESS)
    }

    /// True if the first plan, or one asked for this long ago, has not arrived.
    fn waited(&self, time: Duration) -> bool {
        let Some(running) = self.planning.running.as_ref().filter(|running| running.planning) else { return false };
        self.planning.shown.is_none() || self.appearance.now.saturating_duration_since(running.begun) >= time
    }

    /// True if the shown plan was edited by hand.
    pub(in crate::tui) fn edited(&self) -> bool {
        // Previewing a plan of the Compare view shows a plan that is no version of the edited one.
        let shown = self.planning.shown.as_ref().is_some_and(|shown| shown.standing == Standing::Edited);
        shown && self.previewed().is_none() && self.planning.edits.is_edited()
    }

    /// Comparison of the edited plan with the planner's: `3.4% slower than Piper's`.
    pub(in crate::tui) fn against(&self) -> Option<String> {
        self.planning.edits.against(self.planning.shown.as_ref().filter(|_| self.edited())?)
    }

    /// Effect of the last change.
    pub(in crate::tui) fn change(&self) -> Option<Told> {
        self.planning.changes.told(&self.session.workload, self.appearance.now)
    }

    /// Devices that flash now.
    pub(in crate::tui) fn flashing(&self) -> &[u32] {
        self.planning.changes.flashing(self.appearance.now)
    }

    /// Time of the next redraw that the change needs.
    fn change_due(&self) -> Option<Instant> {
        self.planning.changes.due(self.appearance.now)
    }

    /// Time of the next picture; `None` if nothing runs or the view shows no playhead.
    fn playing_due(&self) -> Option<Instant> {
        let held = self.demo.as_ref().is_some_and(|demo| demo.held);
        let seen = self.view.uses().playhead && !held;
        match self.simulation.playing.head {
            Playhead::Runs(last) if seen => Some(last + Duration::from_secs(1) / FRAMES),
            _ => None,
        }
    }

    /// Time at which the picture changes by itself: by playback or after a change.
    pub(in crate::tui) fn motion_due(&self) -> Option<Instant> {
        self.playing_due().into_iter().chain(self.change_due()).min()
    }

    /// Time of the next action, if a tour is running and not paused.
    pub(in crate::tui) fn demo_due(&self) -> Option<Instant> {
        self.demo.as_ref().filter(|demo| !demo.held).map(|demo| demo.due)
    }

    /// True if the view shows suggestions.
    pub(in crate::tui) fn view_has_help(&self) -> bool {
        self.view.uses().help
    }

    /// True if the shown plan gets no suggestions: it was edited by hand, or is a preview of the Compare table.
    pub(in crate::tui) fn aside(&self) -> bool {
        self.edited() || self.previewed().is_some()
    }

    /// Selected row, while the panel has the focus.
    pub(in crate::tui) fn suggestion(&self) -> Option<usize> {
        self.suggestion_where(self.planning.would_help.drawn)
    }

    /// The same, given whether the panel is drawn.
    pub(in crate::tui) fn suggestion_where(&self, drawn: bool) -> Option<usize> {
        let help = &self.planning.would_help;
        let heard = self.view_has_help() && self.focus == Focus::View && help.fresh && drawn;
        help.selected.filter(|&row| heard && row < help.rows.len())
    }
}

//! Preview: a plan of the Compare table shown in the other views, and the way back.
//!
//! The inputs at the left stay unchanged: they apply to the next plan, not to the preview. Changing one ends the
//! preview, because a new plan follows.

use std::sync::Arc;

use super::state::{Key, Preview};
use crate::{
    planner::Status,
    tui::{
        effect::Effects,
        model::{Focus, Model, Tone, View},
        shown::{ShownRun, Standing},
        simulated::Simulated,
        views::list::WITH_PLAN,
    },
};

impl Model {
    /// Shows a plan of the table in the other views.
    pub(in crate::tui) fn preview(&mut self, key: Key) -> Effects {
        let name = self.compared_name(key).to_string();
        let Some(shown) = self.compared(key).map(|compared| compared.shown.clone()) else { return vec![] };
        if shown.plan().is_none() {
            self.message = Some((Tone::Refused, format!("{name} has no plan to show")));
            return vec![];
        }
        self.view = WITH_PLAN;
        self.focus = Focus::View;
        if self.planning.shown.as_ref().is_some_and(|now| Arc::ptr_eq(now, &shown)) {
            return vec![];
        }
        let before = self.views.compare.preview.take().unwrap_or_else(|| Preview {
            name: String::new(),
            shown: self.planning.shown.take(),
            simulated: self.simulation.simulated.take(),
            refusal: self.planning.refusal.take(),
            stopped: std::mem::take(&mut self.planning.stopped),
        });
        if before.shown.as_ref().is_some_and(|known| Arc::ptr_eq(known, &shown)) {
            self.views.compare.preview = Some(before);
            let effects = self.end_preview();
            self.view = WITH_PLAN;
            return effects;
        }
        self.views.compare.preview = Some(Preview { name, ..before });
        self.simulation.simulated = None;
        self.look_at(Some(shown))
    }

    /// Ends a preview and restores the state before it.
    pub(in crate::tui) fn end_preview(&mut self) -> Effects {
        let Some(preview) = self.views.compare.preview.take() else { return vec![] };
        self.view = View::Compare;
        self.planning.refusal = preview.refusal;
        self.planning.stopped = preview.stopped;
        self.simulation.simulated = preview.simulated.filter(|simulated| simulated.setup == self.simulation.setup);
        self.look_at(preview.shown)
    }

    /// Ends a preview but keeps its plan on the screen. Returns the run that was shown before.
    pub(in crate::tui) fn stay(&mut self) -> Option<Arc<ShownRun>> {
        let preview = self.views.compare.preview.take()?;
        self.planning.refusal = preview.refusal;
        self.planning.stopped = preview.stopped;
        preview.shown
    }

    /// Puts a plan on the screen and simulates it if necessary. A running search continues.
    fn look_at(&mut self, shown: Option<Arc<ShownRun>>) -> Effects {
        self.planning.shown.clone_from(&shown);
        self.planning.generation += 1;
        self.tell_plan_changed();
        match shown.filter(|shown| shown.plan().is_some() && self.simulation.simulated.is_none()) {
            Some(shown) => self.play_aside(shown),
            None => Effects::new(),
        }
    }

    /// Stores a plan that arrives during a preview for the way back. Returns true during a preview.
    pub(in crate::tui) fn keep_for_later(&mut self, shown: &Arc<ShownRun>, latest: bool) -> bool {
        let Some(preview) = &mut self.views.compare.preview else { return false };
        if shown.outcome.plan.is_none() && shown.outcome.status == Status::Cancelled {
            preview.stopped |= latest;
        } else if preview.shown.as_ref().is_some_and(|before| before.standing == Standing::Edited) {
            self.planning.take_base(shown.clone());
        } else {
            preview.shown = Some(shown.clone());
            preview.simulated = None;
        }
        true
    }

    /// Stores a timeline that belongs to the state before a preview. Returns true if it does.
    pub(in crate::tui) fn keep_simulated_for_later(&mut self, simulated: &Arc<Simulated>) -> bool {
        let Some(preview) = &mut self.views.compare.preview else { return false };
        let later = preview.shown.as_ref().is_some_and(|shown| Arc::ptr_eq(shown, &simulated.shown));
        if later {
            preview.simulated = Some(simulated.clone());
            self.note_simulated(simulated);
        }
        later
    }

    /// Name in the table of the previewed plan, if any.
    pub(in crate::tui) fn previewed(&self) -> Option<&str> {
        self.views.compare.preview.as_ref().map(|preview| preview.name.as_str())
    }
}

//! A plan of the Compare table shown in the other views, and the way back.
//!
//! What is at the left stays as it is: it says what would be planned next, not what is looked at. Turning anything there ends
//! the visit, since then there is a new plan to see.

use std::sync::Arc;

use super::{
    compare::Key,
    model::{Focus, Model, Tone, View},
    played::Played,
    shown::{Shown, Standing},
    update::Effects,
};
use crate::planner::Status;

/// What was shown before, and what is shown now.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    /// What the plan on the screen is called in the table.
    pub name: String,
    shown: Option<Arc<Shown>>,
    played: Option<Arc<Played>>,
    refusal: Option<String>,
    stopped: bool,
}

impl Model {
    /// Shows a plan of the table in the other views.
    pub(super) fn visit(&mut self, key: Key) -> Effects {
        let name = self.contender_name(key).to_string();
        let Some(shown) = self.contender(key).map(|contender| contender.shown.clone()) else { return vec![] };
        if shown.plan().is_none() {
            self.message = Some((Tone::Refused, format!("{name} has no plan to show")));
            return vec![];
        }
        self.view = View::Stages;
        self.focus = Focus::View;
        if self.shown.as_ref().is_some_and(|now| Arc::ptr_eq(now, &shown)) {
            return vec![];
        }
        let before = self.compare.visit.take().unwrap_or_else(|| Visit {
            name: String::new(),
            shown: self.shown.take(),
            played: self.played.take(),
            refusal: self.refusal.take(),
            stopped: std::mem::take(&mut self.stopped),
        });
        if before.shown.as_ref().is_some_and(|known| Arc::ptr_eq(known, &shown)) {
            self.compare.visit = Some(before);
            let effects = self.end_visit();
            self.view = View::Stages;
            return effects;
        }
        self.compare.visit = Some(Visit { name, ..before });
        self.played = None;
        self.look_at(Some(shown))
    }

    /// Goes back to what was shown before a plan of the table was looked at.
    pub(super) fn end_visit(&mut self) -> Effects {
        let Some(visit) = self.compare.visit.take() else { return vec![] };
        self.view = View::Compare;
        self.refusal = visit.refusal;
        self.stopped = visit.stopped;
        self.played = visit.played.filter(|played| played.play == self.play);
        self.look_at(visit.shown)
    }

    /// Ends a visit but stays with what is looked at; hands over what was shown before.
    pub(super) fn stay(&mut self) -> Option<Arc<Shown>> {
        let visit = self.compare.visit.take()?;
        self.refusal = visit.refusal;
        self.stopped = visit.stopped;
        visit.shown
    }

    /// Puts a plan on the screen, and has it played if it was not yet; a search under way goes on.
    fn look_at(&mut self, shown: Option<Arc<Shown>>) -> Effects {
        self.shown.clone_from(&shown);
        self.generation += 1;
        let devices = self.device_rows().len();
        self.device_cursor = self.device_cursor.min(devices.saturating_sub(1));
        match shown.filter(|shown| shown.plan().is_some() && self.played.is_none()) {
            Some(shown) => self.play_aside(shown),
            None => Effects::new(),
        }
    }

    /// During a visit a plan that comes late waits for the way back; whether there is a visit.
    pub(super) fn keep_for_later(&mut self, shown: &Arc<Shown>, latest: bool) -> bool {
        let Some(visit) = &mut self.compare.visit else { return false };
        if shown.outcome.plan.is_none() && shown.outcome.status == Status::Cancelled {
            visit.stopped |= latest;
        } else if visit.shown.as_ref().is_some_and(|before| before.standing == Standing::Edited) {
            self.take_base(shown.clone());
        } else {
            visit.shown = Some(shown.clone());
            visit.played = None;
        }
        true
    }

    /// Whether a timeline belongs to a plan that is not looked at now; it is kept for the way back.
    pub(super) fn keep_played_for_later(&mut self, played: &Arc<Played>) -> bool {
        let Some(visit) = &mut self.compare.visit else { return false };
        let later = visit.shown.as_ref().is_some_and(|shown| Arc::ptr_eq(shown, &played.shown));
        if later {
            visit.played = Some(played.clone());
            self.note_played(played);
        }
        later
    }

    /// What is shown is a plan of the table: its name there.
    pub(super) fn visited(&self) -> Option<&str> {
        self.compare.visit.as_ref().map(|visit| visit.name.as_str())
    }
}

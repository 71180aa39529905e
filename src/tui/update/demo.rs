//! Plays the [tour](crate::tui::tour) on the screen.
//!
//! Actions follow each other slowly enough to read. A step that waits for a plan waits until it arrives. Space pauses
//! and resumes the tour. Any other key ends it, and its end leaves the screen as it is.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use crate::tui::{
    effect::Effects,
    model::{Model, Tone},
    tour::Does,
};

/// Pause between two actions of a step.
const PACE: Duration = Duration::from_millis(350);

impl Model {
    /// Performs the action that is due.
    pub(in crate::tui) fn play_demo(&mut self) -> Effects {
        if self.demo_due().is_none_or(|due| due > self.appearance.now) {
            return vec![];
        }
        let planning = self.planning.running.is_some();
        let now = self.appearance.now;
        let Some(demo) = &mut self.demo else { return vec![] };
        if planning {
            demo.due = now + PACE;
            return vec![];
        }
        let step = demo.shown();
        if let Some(does) = step.does.get(demo.done) {
            demo.done += 1;
            let last = demo.done == step.does.len();
            demo.due = now + if last { Duration::from_secs_f32(step.seconds) } else { PACE };
            return self.perform(*does);
        }
        demo.step += 1;
        demo.done = 0;
        demo.due = now + PACE;
        if demo.step == demo.steps.len() {
            self.demo = None;
        }
        vec![]
    }

    /// Performs one action of the tour.
    pub(in crate::tui) fn perform(&mut self, does: Does) -> Effects {
        match does {
            Does::Act(action) => self.act(action),
            Does::Focus(focus) => {
                self.focus = focus;
                vec![]
            }
            Does::Press(code) => match self.overlay.take() {
                Some(overlay) => self.key_in_overlay(overlay, &KeyEvent::from(code)),
                None => vec![],
            },
        }
    }

    /// Handles a key during the tour: Space pauses or resumes it, any other key ends it.
    pub(in crate::tui) fn key_in_demo(&mut self, key: &KeyEvent) {
        let now = self.appearance.now;
        match &mut self.demo {
            Some(demo) if key.code == KeyCode::Char(' ') => {
                demo.held = !demo.held;
                demo.due = now + PACE;
            }
            _ => self.end_demo(),
        }
    }

    /// Ends the tour at its current state.
    pub(in crate::tui) fn end_demo(&mut self) {
        self.demo = None;
        self.overlay = None;
        self.message = Some((Tone::Done, "the tour has ended; the screen is yours".into()));
    }
}

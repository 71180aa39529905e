//! Plays the [tour](super::tour) on the screen.
//!
//! Things are done one after the other, slowly enough to be followed, and a step that waits for a plan waits until it is
//! there. Space holds the tour and lets it go on, any other key ends it where it is; at its end the screen stays.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::{
    action::TABLE,
    keymap::Keymap,
    model::{Model, Tone},
    tour::{Does, Step, TOUR},
    update::Effects,
};

/// Between two things that are done in a step.
const PACE: Duration = Duration::from_millis(350);

/// Where the tour is.
#[derive(Debug, Clone)]
pub(super) struct Demo {
    /// The step, by place.
    pub(super) step: usize,
    /// What of it is done.
    done: usize,
    /// When to go on.
    due: Instant,
    /// Whether it is held.
    pub(super) held: bool,
}

impl Demo {
    /// The tour at its beginning.
    pub(super) fn new(now: Instant) -> Demo {
        Demo { step: 0, done: 0, due: now, held: false }
    }

    /// The step that is shown.
    pub(super) fn shown(&self) -> &'static Step {
        &TOUR[self.step]
    }
}

/// A caption with the keys that are in force.
pub(super) fn caption(step: &Step, keymap: &Keymap) -> String {
    let mut text = step.caption.to_string();
    for (i, entry) in TABLE.iter().enumerate() {
        let name = format!("{{{}}}", entry.action.id());
        if text.contains(&name) {
            let key = keymap.shown(i);
            text = text.replace(&name, if key.is_empty() { entry.title } else { &key });
        }
    }
    text
}

impl Model {
    /// When the tour goes on, if one is played and not held.
    pub(super) fn demo_due(&self) -> Option<Instant> {
        self.demo.as_ref().filter(|demo| !demo.held).map(|demo| demo.due)
    }

    /// Does what is due in the tour.
    pub(super) fn play_demo(&mut self) -> Effects {
        if self.demo_due().is_none_or(|due| due > self.now) {
            return vec![];
        }
        let planning = self.running.is_some();
        let now = self.now;
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
        if demo.step == TOUR.len() {
            self.demo = None;
        }
        vec![]
    }

    /// Does one thing of the tour.
    pub(super) fn perform(&mut self, does: Does) -> Effects {
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

    /// A key while the tour is played: Space holds it or lets it go on, any other ends it.
    pub(super) fn key_in_demo(&mut self, key: &KeyEvent) {
        let now = self.now;
        match &mut self.demo {
            Some(demo) if key.code == KeyCode::Char(' ') => {
                demo.held = !demo.held;
                demo.due = now + PACE;
            }
            _ => self.end_demo(),
        }
    }

    /// Ends the tour where it is.
    pub(super) fn end_demo(&mut self) {
        self.demo = None;
        self.overlay = None;
        self.message = Some((Tone::Done, "the tour has ended here; the screen is yours".into()));
    }
}

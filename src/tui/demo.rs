//! State of the [tour](super::tour) that is played on the screen, and its captions.

use std::time::Instant;

use crate::workload::Workload;

use super::{
    action::TABLE,
    keymap::Keymap,
    tour::{self, Step},
};

/// Position in the tour.
#[derive(Debug, Clone)]
pub(super) struct Demo {
    /// Steps of the tour.
    pub(super) steps: &'static [Step],
    /// Index of the step.
    pub(super) step: usize,
    /// Number of its actions that are done.
    pub(super) done: usize,
    /// Time of the next action.
    pub(super) due: Instant,
    /// True while paused.
    pub(super) held: bool,
}

impl Demo {
    /// Tour of a workload at its beginning.
    pub(super) fn new(workload: &Workload, now: Instant) -> Demo {
        Demo { steps: tour::of(workload), step: 0, done: 0, due: now, held: false }
    }

    /// Step that is shown.
    pub(super) fn shown(&self) -> &'static Step {
        &self.steps[self.step]
    }
}

/// Caption of a step, with the keys in force.
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

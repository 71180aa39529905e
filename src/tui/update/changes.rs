//! Effect of the last change, and its baseline.

use crate::tui::{
    model::{Model, Tone},
    simulated::Simulated,
};

impl Model {
    /// Records the simulated iteration of a plan.
    pub(in crate::tui) fn note_change(&mut self, simulated: &Simulated) {
        let planner = self.previewed().unwrap_or(simulated.shown.planner.name).to_string();
        if let Some(worth) = self.planning.changes.note(simulated, &planner, self.appearance.now) {
            self.note_try(&simulated.shown, worth);
        }
    }

    /// Sets the shown plan as the baseline, or clears the one that was set.
    pub(in crate::tui) fn set_baseline(&mut self) {
        self.message = Some(match self.planning.changes.set_baseline() {
            Some(text) => (Tone::Done, text),
            None => (Tone::Refused, "there is no plan to compare with".into()),
        });
    }
}

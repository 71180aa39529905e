//! Recording of tries, and the way back to one.

use std::sync::Arc;

use crate::{
    tui::{
        action::Action,
        changes::Worth,
        effect::Effects,
        layout_bar::LayoutTitle,
        model::{Model, Tone},
        shown::{ShownRun, Standing},
        widget::list::{mark, moved},
    },
    units,
};

impl Model {
    /// Stores a plan that is on the screen.
    pub(in crate::tui) fn note_try(&mut self, shown: &Arc<ShownRun>, worth: Worth) {
        let hardware = shown.workload.training().map(|profile| profile.accelerator.id);
        let price = hardware.and_then(|id| self.session.prices.get(id).copied());
        let layout = LayoutTitle::of(shown, &[], &shown.options).brief();
        self.views.history.note((shown.clone(), worth), layout, price, self.appearance.now);
    }

    /// Performs an action of the view.
    pub(super) fn act_in_history(&mut self, action: Action) -> Effects {
        let state = &mut self.views.history;
        match action {
            Action::Preview => return self.go_back(),
            Action::Mark => {
                if let Some(number) = state.row(state.cursor).map(|own| own.number) {
                    mark(&mut state.marked, number);
                }
            }
            _ => state.cursor = moved(state.cursor, action, state.tries.len()),
        }
        vec![]
    }

    /// Plans again with the inputs of the selected try.
    fn go_back(&mut self) -> Effects {
        let state = &self.views.history;
        let Some(own) = state.row(state.cursor).cloned() else { return vec![] };
        let (shown, session) = (&own.shown, &self.session);
        if shown.workload.source != session.workload.source {
            let told = format!("try {} is of {}: open that with w", own.number, shown.workload.name);
            self.message = Some((Tone::Refused, told));
            return vec![];
        }
        let place = session.planners.iter().position(|planner| planner.info().id == shown.planner.id);
        let Some(planner) = place else { return vec![] };
        self.session.planner = planner;
        self.session.remember_planner();
        self.session.options[planner] = shown.options.clone();
        let mut effects = self.leave_edits();
        if !Arc::ptr_eq(&shown.workload, &self.session.workload) {
            effects.append(&mut self.take_turned(shown.workload.as_ref().clone()));
        }
        self.session.limits = shown.limits.clone();
        self.compare_outdated();
        effects.append(&mut self.replan());
        let by_hand = match shown.standing {
            Standing::Edited => ", without its edits by hand",
            _ => "",
        };
        let told = format!("back at try {}{by_hand}: {}", own.number, units::seconds(own.worth.iteration_s));
        self.message = Some((Tone::Done, told));
        effects
    }
}

//! Recording of tries, and the way back to one.

use std::sync::Arc;

use super::state::Try;
use crate::{
    cluster::GivenLimits,
    family::{self, dial},
    plan::Plan,
    tui::{
        action::Action,
        changes::Worth,
        edits::Version,
        effect::Effects,
        layout_bar::LayoutTitle,
        model::{Model, Tone},
        shown::{ShownRun, Standing},
        update::session::kept_options,
        widget::list::{mark, moved},
    },
    units,
};

impl Model {
    /// Stores a plan that is on the screen.
    pub(in crate::tui) fn note_try(&mut self, shown: &Arc<ShownRun>, worth: Worth) {
        let profile = shown.workload.training();
        let price = profile.and_then(|profile| self.session.prices.get(profile.accelerator.id).copied());
        let own = Try {
            number: 0,
            parent: None,
            source: shown.workload.source.clone(),
            name: shown.workload.name.clone(),
            tokens: profile.map(|profile| profile.sequence as f64),
            worth,
            memory_bytes: shown.score.as_ref().map_or(0.0, crate::plan::Score::peak_memory_bytes),
            devices: shown.outcome.plan.as_ref().map_or(0, Plan::devices_used),
            layout: LayoutTitle::of(shown, &[], &shown.options).brief(),
            price,
            edited: shown.standing == Standing::Edited,
            broken: !shown.is_valid(),
            inputs: self.session_of(shown),
            shown: Some(shown.clone()),
            at: Some(self.appearance.now),
        };
        self.views.history.note(own);
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

    /// Plans again with the inputs of the selected try. An edited plan of this session is shown as it was.
    fn go_back(&mut self) -> Effects {
        let state = &self.views.history;
        let Some(own) = state.row(state.cursor).cloned() else { return vec![] };
        let session = &self.session;
        if own.source != session.workload.source {
            let told = format!("try {} is of {}: open that with o", own.number, own.name);
            self.message = Some((Tone::Refused, told));
            return vec![];
        }
        let id = own.inputs.planner.as_str();
        let Some(planner) = session.planners.iter().position(|planner| planner.info().id == id) else { return vec![] };
        let kept = own.inputs.options.get(id).map_or(&[][..], Vec::as_slice);
        let Some(options) = kept_options(session.planners[planner], kept, &[]) else { return vec![] };
        let workload = match &own.shown {
            Some(shown) => shown.workload.clone(),
            None => own.inputs.turn(session.asked.1.clone(), &[]),
        };
        let unstated = session.defaults.unstated_by(&workload.limits);
        let limits = match &own.shown {
            Some(shown) => Ok(shown.limits.clone()),
            None => family::resolve(&workload, &own.inputs.limits(&GivenLimits::default()).or(&unstated)),
        };
        let Ok(limits) = limits else { return vec![] };
        self.session.planner = planner;
        self.session.remember_planner();
        self.session.options[planner] = options;
        let mut effects = self.leave_edits();
        if dial::dials(&workload) != self.session.dials {
            effects.append(&mut self.take_turned(workload.as_ref().clone()));
        }
        self.session.limits = limits;
        self.simulation.setup = self.simulation.setup.set(self.simulation.first_settings);
        self.restore_simulator(&own.inputs);
        self.compare_outdated();
        effects.append(&mut self.replan());
        let edited = own.shown.as_ref().filter(|_| own.edited).and_then(|shown| shown.plan());
        if let Some((plan, _)) = edited {
            let from = self.session.current_planner().info();
            let what = format!("as in try {}", own.number);
            effects.append(&mut self.show_edited(Version::Edited { plan: plan.clone(), what, edits: 1, from }));
        }
        let by_hand = if own.edited && own.shown.is_none() { ", without its edits by hand" } else { "" };
        let told = format!("back at try {}{by_hand}: {}", own.number, units::seconds(own.worth.iteration_s));
        self.message = Some((Tone::Done, told));
        effects
    }
}

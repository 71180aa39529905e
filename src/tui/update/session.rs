//! Storing and restoring the session of a workload.

use std::collections::BTreeMap;

use crate::{
    cluster::LimitKind,
    family,
    planner::Options,
    schedule::{GivenSchedule, csv},
    simulate::{Schedule, SimulatorSetting},
    tui::{
        model::{Model, Tone, View},
        schedule_editor::MOST_STEPS,
        stored_session::{Asked, MACHINES, StoredSession},
        turned,
    },
};

impl Model {
    /// Stores the session of the workload on the screen.
    ///
    /// # Errors
    /// One sentence.
    pub(in crate::tui) fn keep_session(&self) -> Result<(), String> {
        self.session.recent.keep(&self.session.workload, self.session_with_tries())
    }

    /// Current state, as the session of its workload.
    pub(in crate::tui) fn session(&self) -> StoredSession {
        let usual =
            family::resolve(&self.session.workload, &self.session.defaults.unstated_by(&self.session.workload.limits))
                .ok();
        let changed =
            |kind: &LimitKind| usual.as_ref().is_none_or(|usual| usual.get(*kind) != self.session.limits.get(*kind));
        let kinds = LimitKind::ALL.iter().filter(|kind| changed(kind));
        let mut limits: BTreeMap<String, String> =
            kinds.map(|kind| (kind.flag().to_string(), kind.exact(self.session.limits.get(*kind)))).collect();
        let machines = &self.session.limits.machines;
        if !machines.is_empty() && usual.as_ref().is_none_or(|usual| usual.machines != *machines) {
            let sizes: Vec<String> = machines.sizes().iter().map(ToString::to_string).collect();
            limits.insert(MACHINES.into(), sizes.join(","));
        }
        let mut options = BTreeMap::new();
        for (planner, set) in self.session.planners.iter().zip(&self.session.options) {
            let changed = planner.options().iter().filter_map(|spec| {
                let value = set.get(spec.name).filter(|value| *value != spec.default_value())?;
                Some(format!("{}={}", spec.name, value.text()))
            });
            let changed: Vec<String> = changed.collect();
            if !changed.is_empty() {
                options.insert(planner.info().id.to_string(), changed);
            }
        }
        let changed = |setting: &SimulatorSetting| {
            !setting.same(&self.simulation.setup.settings, &self.simulation.first_settings)
        };
        let simulator = SimulatorSetting::ALL.into_iter().filter(changed);
        let simulator =
            simulator.map(|setting| (setting.id().into(), setting.text(&self.simulation.setup.settings))).collect();
        StoredSession {
            limits,
            planner: self.session.current_planner().info().id.into(),
            options,
            schedule: self.simulation.setup.schedule.id().into(),
            own_schedule: own_schedule(self.simulation.setup.schedule),
            simulator,
            dials: turned::since(&self.session.first_dials, &self.session.dials),
            view: self.view.id(),
            tries: vec![],
        }
    }

    /// Current state with the history of the workload.
    fn session_with_tries(&self) -> StoredSession {
        StoredSession { tries: self.views.history.of(&self.session.workload.source), ..self.session() }
    }

    /// Restores planner, options, schedule, view and history, except what `asked` sets. Limits and dials are restored earlier.
    /// Shows a message if anything differs from the initial state.
    pub(in crate::tui) fn restore(&mut self, session: &StoredSession, asked: &Asked) {
        let before = (self.session.planner, self.session.options.clone(), self.simulation.setup, self.view);
        for (at, planner) in self.session.planners.iter().enumerate() {
            let id = planner.info().id;
            let Some(kept) = session.options.get(id) else { continue };
            // One by one, so that an option of another version invalidates only itself.
            let parse = |settings: &[&str]| Options::parse(id, planner.options(), settings.iter().copied());
            let mut settings: Vec<&str> = kept.iter().map(String::as_str).filter(|s| parse(&[s]).is_ok()).collect();
            if at == self.session.planner {
                settings.extend(asked.settings.iter().map(String::as_str));
            }
            if let Ok(options) = parse(&settings) {
                self.session.options[at] = options;
            }
        }
        let planner = self.session.planners.iter().position(|planner| planner.info().id == session.planner);
        if let Some(planner) = planner.filter(|&at| !asked.planner && self.session.refusals[at].is_none()) {
            self.session.planner = planner;
        }
        if let Some(schedule) = Schedule::find(&session.schedule).filter(|_| !asked.schedule) {
            self.simulation.setup =
                if schedule == Schedule::ALL[0] { self.simulation.setup } else { self.simulation.setup.with(schedule) };
        }
        if !session.own_schedule.is_empty()
            && !asked.schedule
            && let Ok(own) = csv::read(&session.own_schedule, "the last session")
        {
            let own = Schedule::Given(GivenSchedule::new(own.schedule));
            self.simulation.own_schedule = Some(own);
            self.simulation.setup = self.simulation.setup.with(own);
        }
        self.restore_simulator(session);
        self.views.history.restore(&session.tries, &self.session.workload.source);
        let trained = self.session.workload.training().is_some();
        let view = View::ALL.into_iter().find(|view| view.id() == session.view);
        if let Some(view) = view.filter(|view| trained || !view.is_of_models()) {
            self.view = view;
        }
        let same = before == (self.session.planner, self.session.options.clone(), self.simulation.setup, self.view);
        let turned = !turned::since(&self.session.first_dials, &self.session.dials).is_empty();
        if !same || turned || self.session.limits != self.session.first_limits {
            let text = "restored from the last session; plantui --fresh starts without it";
            self.message = Some((Tone::Done, text.into()));
        }
    }
}

impl Model {
    /// Restores the settings of the simulator that a session changed.
    pub(in crate::tui) fn restore_simulator(&mut self, session: &StoredSession) {
        for (id, text) in &session.simulator {
            let Some(setting) = SimulatorSetting::find(id) else { continue };
            if let Ok(settings) = setting.parse(text, &self.simulation.setup.settings) {
                self.simulation.setup = self.simulation.setup.set(settings);
            }
        }
    }
}

/// A schedule of the user's as CSV. Empty for a built-in one, and for one that is too long to keep.
fn own_schedule(schedule: Schedule) -> String {
    let Schedule::Given(given) = schedule else { return String::new() };
    let listed = given.schedule();
    let steps: usize = listed.ranks.iter().map(Vec::len).sum();
    if steps <= MOST_STEPS { csv::write(&listed) } else { String::new() }
}

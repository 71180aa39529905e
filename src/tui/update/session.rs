//! Storing and restoring the session of a workload.

use std::collections::BTreeMap;

use crate::{
    cluster::{LimitKind, Limits},
    family::{self, dial},
    planner::{self, Options, Planner},
    schedule::{GivenSchedule, csv},
    simulate::{Schedule, SimulatorSetting},
    tui::{
        model::{Model, Tone, View},
        schedule_editor::MOST_STEPS,
        shown::ShownRun,
        stored_session::{Asked, MACHINES, StoredSession},
        turned,
    },
    workload::Workload,
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
        let mut options = BTreeMap::new();
        for (planner, set) in self.session.planners.iter().zip(&self.session.options) {
            let changed = changed_options(*planner, set);
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
            limits: self.changed_limits(&self.session.workload, &self.session.limits),
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

    /// Inputs of a shown plan, as a session: those in force may have changed since it was asked for.
    pub(in crate::tui) fn session_of(&self, shown: &ShownRun) -> StoredSession {
        // A plan edited by hand has the planner in force.
        let planner = planner::find(shown.planner.id).unwrap_or(self.session.current_planner());
        let id = planner.info().id.to_string();
        StoredSession {
            limits: self.changed_limits(&shown.workload, &shown.limits),
            options: BTreeMap::from([(id.clone(), changed_options(planner, &shown.options))]),
            planner: id,
            dials: turned::since(&self.session.first_dials, &dial::dials(&shown.workload)),
            ..self.session()
        }
    }

    /// Limits that differ from those of a workload or the configuration, as text by flag.
    fn changed_limits(&self, workload: &Workload, own: &Limits) -> BTreeMap<String, String> {
        let usual = family::resolve(workload, &self.session.defaults.unstated_by(&workload.limits)).ok();
        let changed = |kind: &LimitKind| usual.as_ref().is_none_or(|usual| usual.get(*kind) != own.get(*kind));
        let kinds = LimitKind::ALL.iter().filter(|kind| changed(kind));
        let mut limits: BTreeMap<String, String> =
            kinds.map(|kind| (kind.flag().to_string(), kind.exact(own.get(*kind)))).collect();
        if !own.machines.is_empty() && usual.is_none_or(|usual| usual.machines != own.machines) {
            let sizes: Vec<String> = own.machines.sizes().iter().map(ToString::to_string).collect();
            limits.insert(MACHINES.into(), sizes.join(","));
        }
        limits
    }

    /// Current state with the history of the workload.
    fn session_with_tries(&self) -> StoredSession {
        StoredSession { tries: self.views.history.of(&self.session.workload.source), ..self.session() }
    }

    /// Restores planner, options, schedule, view and history, except what `asked` sets. Limits and dials are restored
    /// earlier. Shows a message if anything differs from the initial state.
    pub(in crate::tui) fn restore(&mut self, session: &StoredSession, asked: &Asked) {
        let before = (self.session.planner, self.session.options.clone(), self.simulation.setup, self.view);
        for (at, planner) in self.session.planners.iter().enumerate() {
            let Some(kept) = session.options.get(planner.info().id) else { continue };
            let asked = if at == self.session.planner { asked.settings.as_slice() } else { &[] };
            if let Some(options) = kept_options(*planner, kept, asked) {
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

/// Options of a planner that differ from their defaults, as `name=value`.
fn changed_options(planner: &dyn Planner, set: &Options) -> Vec<String> {
    let changed = planner.options().iter().filter_map(|spec| {
        let value = set.get(spec.name).filter(|value| *value != spec.default_value())?;
        Some(format!("{}={}", spec.name, value.text()))
    });
    changed.collect()
}

/// Stored options of a planner, and those that were asked for. A stored one of another version is left out alone.
pub(in crate::tui) fn kept_options(planner: &dyn Planner, kept: &[String], asked: &[String]) -> Option<Options> {
    let parse = |settings: &[&str]| Options::parse(planner.info().id, planner.options(), settings.iter().copied());
    let valid = kept.iter().map(String::as_str).filter(|setting| parse(&[setting]).is_ok());
    parse(&valid.chain(asked.iter().map(String::as_str)).collect::<Vec<_>>()).ok()
}

/// A schedule of the user's as CSV. Empty for a built-in one, and for one that is too long to keep.
fn own_schedule(schedule: Schedule) -> String {
    let Schedule::Given(given) = schedule else { return String::new() };
    let listed = given.schedule();
    let steps: usize = listed.ranks.iter().map(Vec::len).sum();
    if steps <= MOST_STEPS { csv::write(&listed) } else { String::new() }
}

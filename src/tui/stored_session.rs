//! StoredSession of a workload, restored when it is shown again: limits, dials, planner, options, simulator settings, view.
//!
//! A session holds only changes. A limit equal to that of the workload or the configuration is not stored, so that new
//! limits in the file take effect later. Entries that no longer apply (a removed planner, an option out of range) are
//! ignored without a message. Command-line flags win.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    ScreenRequest,
    model::{Model, Tone, View},
    turned::{self, Turned},
};
use crate::{
    cluster::{GivenLimits, LimitKind, Machines},
    family,
    planner::Options,
    simulate::{Schedule, SimulatorSetting},
    workload::Workload,
};

/// Stored state of the screen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StoredSession {
    /// Changed limits: text with a unit, by name of the flag.
    pub(super) limits: BTreeMap<String, String>,
    /// Id of the planner.
    pub(super) planner: String,
    /// Options that differ from their defaults, as `name=value`, by planner.
    pub(super) options: BTreeMap<String, Vec<String>>,
    /// Id of the schedule.
    pub(super) schedule: String,
    /// Changed settings of the simulator: text by id.
    pub(super) simulator: BTreeMap<String, String>,
    /// Changed dials of the workload: text by id.
    pub(super) dials: Turned,
    /// Id of the view.
    pub(super) view: String,
}

/// Flag of the machines among the limits.
const MACHINES: &str = "--machines";

impl StoredSession {
    /// Changed limits, except those that `asked` sets.
    pub(super) fn limits(&self, asked: &GivenLimits) -> GivenLimits {
        let value = |kind: LimitKind| kind.parse(self.limits.get(kind.flag())?).ok();
        // The number of devices is the sum over machines, so a request for one of them fixes both.
        let place = asked.devices().is_none() && asked.machines.is_none();
        let machines = self.limits.get(MACHINES).and_then(|text| Machines::parse(text).ok());
        let mut changed = GivenLimits::default().on(machines.filter(|_| place));
        for kind in LimitKind::ALL.into_iter().filter(|kind| place || *kind != LimitKind::Devices) {
            changed.set(kind, value(kind));
        }
        asked.or(&changed)
    }

    /// Applies the stored dials to a workload, except those named in `asked`.
    pub(super) fn turn(&self, workload: Arc<Workload>, asked: &[String]) -> Arc<Workload> {
        let own = self.dials.iter().filter(|(id, _)| !asked.contains(id));
        turned::again(workload, &own.map(|(id, value)| (id.clone(), value.clone())).collect())
    }
}

impl Model {
    /// Stores the session of the workload on the screen.
    ///
    /// # Errors
    /// One sentence.
    pub(super) fn keep_session(&self) -> Result<(), String> {
        self.session.recent.keep(&self.session.workload, self.session())
    }

    /// Current state, as the session of its workload.
    pub(super) fn session(&self) -> StoredSession {
        let usual =
            family::resolve(&self.session.workload, &self.session.defaults.unstated_by(&self.session.workload.limits))
                .ok();
        let changed =
            |kind: &LimitKind| usual.as_ref().is_none_or(|usual| usual.get(*kind) != self.session.limits.get(*kind));
        let kinds = LimitKind::ALL.iter().filter(|kind| changed(kind));
        let mut limits: BTreeMap<String, String> =
            kinds.map(|kind| (kind.flag().to_string(), exact(*kind, self.session.limits.get(*kind)))).collect();
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
            simulator,
            dials: turned::since(&self.session.first_dials, &self.session.dials),
            view: self.view.id(),
        }
    }

    /// Restores planner, options, schedule and view, except what `asked` sets. Limits and dials are restored earlier.
    /// Shows a message if anything differs from the initial state.
    pub(super) fn restore(&mut self, session: &StoredSession, asked: &Asked) {
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
        for (id, text) in &session.simulator {
            let Some(setting) = SimulatorSetting::find(id) else { continue };
            if let Ok(settings) = setting.parse(text, &self.simulation.setup.settings) {
                self.simulation.setup = self.simulation.setup.set(settings);
            }
        }
        if let Some(view) = View::ALL.into_iter().find(|view| view.id() == session.view) {
            self.view = view;
        }
        let same = before == (self.session.planner, self.session.options.clone(), self.simulation.setup, self.view);
        let turned = !turned::since(&self.session.first_dials, &self.session.dials).is_empty();
        if !same || turned || self.session.limits != self.session.first_limits {
            let text = "as you left it last time; plantui --fresh begins anew";
            self.message = Some((Tone::Done, text.into()));
        }
    }
}

/// Choices of the command line, which no session changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    planner: bool,
    schedule: bool,
    settings: Vec<String>,
}

impl Asked {
    /// Choices that a request makes by name.
    pub(super) fn by(request: &ScreenRequest) -> Asked {
        // An option belongs to a planner, so setting one also chooses the planner.
        let planner = request.planner_asked || !request.settings.is_empty();
        Asked { planner, schedule: request.schedule_asked, settings: request.settings.clone() }
    }
}

/// Text of a limit that parses back to the same number.
fn exact(kind: LimitKind, value: f64) -> String {
    let text = kind.format(value);
    if kind.parse(&text) == Ok(value) { text } else { format!("{value}") }
}

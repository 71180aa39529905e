//! StoredSession of a workload, restored when it is shown again: limits, dials, planner, options, simulator settings,
//! view, history.
//!
//! A session holds only changes. A limit equal to that of the workload or the configuration is not stored, so that new
//! limits in the file take effect later. Entries that no longer apply (a removed planner, an option out of range) are
//! ignored without a message. Command-line flags win.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    request::ScreenRequest,
    turned::{self, Turned},
    views::history::state::Try,
};
use crate::{
    cluster::{GivenLimits, LimitKind, Machines},
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
    /// Schedule of the user's as CSV, if it is in force; else empty.
    pub(super) own_schedule: String,
    /// Changed settings of the simulator: text by id.
    pub(super) simulator: BTreeMap<String, String>,
    /// Changed dials of the workload: text by id.
    pub(super) dials: Turned,
    /// Id of the view.
    pub(super) view: String,
    /// Last plans that were on the screen, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tries: Vec<Try>,
}

/// Flag of the machines among the limits.
pub(super) const MACHINES: &str = "--machines";

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

/// Choices of the command line, which no session changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    /// True if the planner was named.
    pub(super) planner: bool,
    /// True if the schedule was named.
    pub(super) schedule: bool,
    /// Options of the planner, as `name=value`.
    pub(super) settings: Vec<String>,
}

impl Asked {
    /// Choices that a request makes by name.
    pub(super) fn by(request: &ScreenRequest) -> Asked {
        // An option belongs to a planner, so setting one also chooses the planner.
        let planner = request.planner_asked || !request.settings.is_empty();
        Asked { planner, schedule: request.schedule_asked, settings: request.settings.clone() }
    }
}

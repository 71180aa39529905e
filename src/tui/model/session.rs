//! Session of a workload: what is planned, by which planner, within which limits.
//!
//! Methods here read and change nothing but the session. Transitions that also touch plans or the panel are in
//! [`update`](crate::tui::update).

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use crate::{
    cluster::{GivenLimits, Limits},
    family::dial::Dial,
    plan::Measure,
    planner::{OptionSpec, OptionValue, Options, Planner},
    study::compare::TIME_FOR_EACH,
    tui::recent::Recent,
    workload::{BUILTIN, Workload, lint},
};

/// Session of a workload: what is planned, by which planner, within which limits.
pub(in crate::tui) struct Session {
    /// Workload to plan.
    pub(in crate::tui) workload: Arc<Workload>,
    /// Available planners.
    pub(in crate::tui) planners: &'static [&'static dyn Planner],
    /// Reason why a planner cannot plan this workload, by planner.
    pub(in crate::tui) refusals: Vec<Option<String>>,
    /// True for planners that need no conversion of the workload, by planner. Cached, because every frame needs it.
    pub(in crate::tui) natives: Vec<bool>,
    /// Index of the planner in force.
    pub(in crate::tui) planner: usize,
    /// Last planner used for each objective, for this workload.
    pub(in crate::tui) last_for: Vec<(&'static str, usize)>,
    /// Limits in force.
    pub(in crate::tui) limits: Limits,
    /// Initial limits.
    pub(in crate::tui) first_limits: Limits,
    /// Limits from the command line.
    pub(in crate::tui) asked_limits: GivenLimits,
    /// Dials of the workload.
    pub(in crate::tui) dials: Vec<Dial>,
    /// Initial dials.
    pub(in crate::tui) first_dials: Vec<Dial>,
    /// Dials set on the command line.
    pub(in crate::tui) dials_asked: Vec<String>,
    /// The workload as in its file, and as requested.
    pub(in crate::tui) asked: (Arc<Workload>, Arc<Workload>),
    /// Limits for a workload that does not state its own.
    pub(in crate::tui) defaults: GivenLimits,
    /// Prices of a device for an hour, by id of the hardware.
    pub(in crate::tui) prices: BTreeMap<String, f64>,
    /// Options, by planner.
    pub(in crate::tui) options: Vec<Options>,
    /// Seed of every search.
    pub(in crate::tui) seed: u64,
    /// Time limit of a plan.
    pub(in crate::tui) deadline: Option<Duration>,
    /// Lint findings of the workload.
    pub(in crate::tui) findings: Vec<lint::Finding>,
    /// Sessions of this and other workloads.
    pub(in crate::tui) recent: Recent,
    /// True to ignore them.
    pub(in crate::tui) fresh: bool,
    /// True if the workload's file is watched.
    pub(in crate::tui) watch: bool,
    /// Reads of the workload's file: number of requests, and the latest one accepted.
    pub(in crate::tui) readings: (u64, u64),
}

impl Session {
    /// Planner in force.
    pub(in crate::tui) fn current_planner(&self) -> &'static dyn Planner {
        self.planners[self.planner]
    }

    /// Options that the planner in force declares.
    pub(in crate::tui) fn specs(&self) -> &'static [OptionSpec] {
        self.current_planner().options()
    }

    /// True if a planner needs no conversion of this workload.
    pub(in crate::tui) fn is_native(&self, planner: usize) -> bool {
        self.natives[planner]
    }

    /// True if a planner gets its own lines and answers in studies of all planners: it converts nothing and uses no
    /// other planner.
    pub(in crate::tui) fn stands_alone(&self, planner: usize) -> bool {
        self.is_native(planner) && self.planners[planner].stands_alone()
    }

    /// Measure of plans of the planner in force.
    pub(in crate::tui) fn measure(&self) -> Measure {
        self.current_planner().measure(&self.workload, &self.options[self.planner])
    }

    /// Name of a planner's objective for this workload: its own, or that of the workload's family if it converts.
    pub(in crate::tui) fn objective_of(&self, planner: usize) -> &'static str {
        let (info, options) = (self.planners[planner].info(), &self.options[planner]);
        if self.is_native(planner) {
            info.objective
        } else {
            self.planners[planner].measure(&self.workload, options).name()
        }
    }

    /// Stores the planner in force as the last one used for its objective.
    pub(in crate::tui) fn remember_planner(&mut self) {
        let objective = self.objective_of(self.planner);
        self.last_for.retain(|(known, _)| *known != objective);
        self.last_for.push((objective, self.planner));
    }

    /// The value of an option of the planner in force.
    pub(in crate::tui) fn option_value(&self, spec: &OptionSpec) -> OptionValue {
        self.options[self.planner].get(spec.name).unwrap_or_else(|| spec.default_value())
    }

    /// File of the workload on the screen; `None` for the built-in one and for standard input.
    pub(in crate::tui) fn workload_file(&self) -> Option<PathBuf> {
        let source = self.workload.source.as_str();
        (!matches!(source, BUILTIN | "-")).then(|| PathBuf::from(source))
    }

    /// File to watch, if files are watched.
    pub(in crate::tui) fn watched(&self) -> Option<PathBuf> {
        self.workload_file().filter(|_| self.watch)
    }

    /// Time limit of each planner when all are run.
    pub(in crate::tui) fn time_for_each(&self) -> Duration {
        self.deadline.map_or(TIME_FOR_EACH, |deadline| deadline.min(TIME_FOR_EACH))
    }
}

/// True for planners that need no conversion of a workload, by planner.
pub(in crate::tui) fn natives(planners: &[&dyn Planner], workload: &Workload) -> Vec<bool> {
    planners.iter().map(|planner| planner.is_native(workload)).collect()
}

/// Reason why a planner cannot plan a workload, by planner.
pub(in crate::tui) fn refusals(planners: &[&dyn Planner], workload: &Workload) -> Vec<Option<String>> {
    planners.iter().map(|planner| planner.can_plan(workload).err().map(|why| why.to_string())).collect()
}

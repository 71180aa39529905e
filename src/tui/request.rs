//! Request for a screen, and the reasons why it may not be shown.

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc, time::Duration};

use thiserror::Error;

use super::{
    keymap::Keymap,
    theme::{self, Depth},
};
use crate::{
    cluster::{GivenLimits, LimitError},
    plan::Plan,
    planner::{self, OptionError, Planner},
    simulate::{Schedule, SimulatorSettings},
    workload::Workload,
};

/// Initial settings of the screen.
pub struct ScreenRequest {
    /// Workload to plan.
    pub workload: Arc<Workload>,
    /// The workload as in its file, before calibration, stacking or the links of a topology were applied. The
    /// differences are kept when the file is read again.
    pub as_read: Arc<Workload>,
    /// Limits that override the workload's.
    pub overrides: GivenLimits,
    /// Limits that neither of those states.
    pub defaults: GivenLimits,
    /// Prices of a device for an hour, by id of the hardware.
    pub prices: BTreeMap<String, f64>,
    /// Planners to choose from.
    pub planners: &'static [&'static dyn Planner],
    /// Plans that are pinned from the start, each with its name: how a job runs.
    pub pinned: Vec<(String, Plan)>,
    /// Id of the initial planner.
    pub planner: String,
    /// True if the user named that planner, so that no session replaces it.
    pub planner_asked: bool,
    /// Options of the planner, as `name=value`.
    pub settings: Vec<String>,
    /// Initial schedule of the simulator.
    pub schedule: Schedule,
    /// True if the user named that schedule.
    pub schedule_asked: bool,
    /// Initial settings of the simulator.
    pub simulator: SimulatorSettings,
    /// Folder of sessions; `None`: none are stored.
    pub state_directory: Option<PathBuf>,
    /// True to reload the workload when its file changes.
    pub watch: bool,
    /// True to play the tour.
    pub demo: bool,
    /// True to ignore the last session with the workload.
    pub fresh: bool,
    /// Dials of the workload that the user set, so that no session changes them.
    pub dials_asked: Vec<String>,
    /// Seed of every search.
    pub seed: u64,
    /// Time limit of a plan.
    pub deadline: Option<Duration>,
    /// Keys of each action.
    pub keymap: Keymap,
    /// Name of the theme.
    pub theme: String,
    /// Folder of the user's themes.
    pub theme_directory: Option<PathBuf>,
    /// Colour depth.
    pub depth: Depth,
    /// True to draw with ASCII alone.
    pub ascii: bool,
    /// True on the Linux console, whose font has few signs.
    pub console: bool,
    /// True to use the mouse.
    pub mouse: bool,
}

impl ScreenRequest {
    /// Defaults: all planners, the first one chosen, the dark theme; colours and signs according to the environment.
    pub fn new(workload: Arc<Workload>) -> Self {
        let planners = planner::all();
        ScreenRequest {
            as_read: Arc::clone(&workload),
            workload,
            overrides: GivenLimits::default(),
            defaults: GivenLimits::default(),
            prices: BTreeMap::new(),
            planners,
            pinned: vec![],
            planner: planners.first().map(|p| p.info().id.to_string()).unwrap_or_default(),
            planner_asked: false,
            settings: vec![],
            schedule: Schedule::ALL[0],
            schedule_asked: false,
            simulator: SimulatorSettings::default(),
            state_directory: None,
            watch: false,
            demo: false,
            fresh: false,
            dials_asked: vec![],
            seed: 0,
            deadline: None,
            keymap: Keymap::default(),
            theme: "dark".into(),
            theme_directory: theme::user_directory(),
            depth: Depth::detect(|name| std::env::var(name).ok()),
            ascii: !utf8_locale(|name| std::env::var(name).ok()),
            console: std::env::var("TERM").is_ok_and(|term| term == "linux"),
            mouse: true,
        }
    }
}

/// True if the locale allows more than ASCII. Without any locale a modern terminal is assumed.
fn utf8_locale(get: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| get(name).filter(|v| !v.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    locale.is_none_or(|l| {
        let l = l.to_lowercase();
        l.contains("utf-8") || l.contains("utf8")
    })
}

/// Reason why the screen could not be shown.
#[derive(Debug, Error)]
pub enum ScreenError {
    /// Standard output is no terminal, or there is no terminal for keys.
    #[error("standard output is not a terminal, so there is no screen; `plantui plan` prints the plan")]
    NoTerminal,
    /// No planner has this id.
    #[error("there is no planner `{asked}`; there are {known}")]
    UnknownPlanner {
        /// Requested id.
        asked: String,
        /// Existing ids.
        known: String,
    },
    /// Refused option.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// Limit that is given nowhere, or too large.
    #[error("{name} {problem}")]
    Limit {
        /// Name of the workload.
        name: String,
        /// Problem with the limit.
        problem: LimitError,
    },
    /// The theme does not exist or is invalid.
    #[error(transparent)]
    Theme(#[from] theme::ThemeError),
    /// Failure of the terminal.
    #[error("the terminal failed: {0}")]
    Terminal(#[from] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_decides_between_signs_and_ascii() {
        let environment = |value: &'static str| move |name: &str| (name == "LANG").then(|| value.to_string());
        assert!(utf8_locale(environment("de_DE.UTF-8")) && utf8_locale(environment("C.utf8")));
        assert!(!utf8_locale(environment("C")) && !utf8_locale(environment("de_DE.ISO-8859-1")));
        assert!(utf8_locale(|_| None));
    }
}

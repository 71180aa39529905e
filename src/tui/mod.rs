//! The screen.
//!
//! `model` holds the shared state, and `action` the one table of user actions for keys, help and palette. `update`,
//! `adjust` and `input` change the state. `worker` is the planning thread. `event_loop` and `terminal` connect
//! everything to a terminal. Each view has a folder in `views`. `paint` holds drawing that several views share, `frame`
//! the parts around them (header, tabs, left panel, bottom line, overlays), `theme` the colours. State and views do not
//! depend on a terminal: [`Offscreen`] runs the same screen into a buffer, for tests and pictures.

pub(crate) mod action;
mod adjust;
mod ask;
mod background;
mod carried;
mod changes;
mod convergence;
mod demo;
mod edits;
mod event_loop;
mod exchange;
mod export_form;
mod files;
mod fitting;
mod folder;
mod frame;
pub mod gallery;
mod hangup;
mod incumbent;
mod inks;
mod input;
pub(crate) mod keymap;
mod left_out;
mod marks;
mod model;
mod names;
mod offscreen;
mod open_form;
mod overlay;
mod paint;
mod palette;
mod panel_rows;
mod picture;
mod place;
mod playing;
mod readable;
mod recent;
mod reload;
mod shown;
mod side_job;
mod simulated;
mod stored_session;
mod studies;
mod svg;
mod terminal;
pub mod theme;
mod tour;
mod turned;
mod update;
mod views;
mod watch;
mod widget;
mod worker;
mod would_help;

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use signal_hook::{consts::SIGHUP, low_level::emulate_default_handler};
use thiserror::Error;

use crate::{
    cluster::{GivenLimits, MissingLimit},
    notice,
    planner::{self, OptionError, Planner},
    simulate::{Schedule, SimulatorSettings},
    workload::Workload,
};

use background::Late;
use event_loop::End;

pub use action::Action;
pub use keymap::Keymap;
pub use model::{Focus, View};
pub use offscreen::Offscreen;
pub use picture::{film, screenshots};
pub use recent::user_directory as user_state_directory;
pub use theme::Depth;

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
    /// Planners to choose from.
    pub planners: &'static [&'static dyn Planner],
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
            planners,
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
    #[error("there is no terminal here, so there is no screen; `plantui plan` prints the plan")]
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
    /// Limit that is given nowhere.
    #[error("{name} {missing}")]
    MissingLimit {
        /// Name of the workload.
        name: String,
        /// The limit.
        missing: MissingLimit,
    },
    /// The theme does not exist or is invalid.
    #[error(transparent)]
    Theme(#[from] theme::ThemeError),
    /// Failure of the terminal.
    #[error("the terminal failed: {0}")]
    Terminal(#[from] io::Error),
}

/// True if there is a terminal to show the screen on.
pub fn terminal_is_there() -> bool {
    terminal::is_there()
}

/// Shows the screen until the user quits. A terminating signal first restores the terminal and then ends the program as
/// it would have; loss of the terminal acts as SIGHUP. The session is stored except after a panic.
///
/// # Errors
/// [`ScreenError`]; the terminal is restored.
pub fn run(request: ScreenRequest) -> Result<(), ScreenError> {
    if !terminal_is_there() {
        return Err(ScreenError::NoTerminal);
    }
    let mouse = request.mouse;
    let mut request = request;
    let mut late = Late::new(true, Instant::now());
    if request.theme == background::AUTO {
        let (theme, answered) = background::theme(|name| std::env::var(name).ok());
        request.theme = theme.into();
        late = Late::new(answered, Instant::now());
    }
    let mut model = model::Model::new(request)?;
    if let Ok(size) = ratatui::crossterm::terminal::size() {
        model.start_at(size);
    }
    let mut tty = terminal::Tty::take(mouse)?;
    let end = event_loop::run(&mut tty, &mut model, late);
    drop(tty);
    if let Err(why) = model.keep_session() {
        notice::note(&why);
    }
    match end {
        Ok(End::Quit) => {}
        Ok(End::Signal(signal)) => emulate_default_handler(signal)?,
        // End as the system would, however the loss was detected.
        Ok(End::TerminalGone) => emulate_default_handler(SIGHUP)?,
        Err(error) if hangup::caused(&error) => emulate_default_handler(SIGHUP)?,
        Err(error) => return Err(error.into()),
    }
    Ok(())
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

//! The screen.
//!
//! State that all views share (`model`), what a user can do (`action`, one table from which keys, help and palette are
//! made), how the state changes (`update`, `adjust`, `input`), the thread that plans (`worker`), and the loop that ties
//! them to a terminal (`event_loop`, `terminal`). Each view has a folder with all that is its own (`views`); what several
//! draw alike stands in `paint`, what is around them (header, tabs, left panel, bottom line, overlays) in `frame`, colours
//! in `theme`. State and views know nothing of a terminal:
//! [`Offscreen`] runs the same screen into a buffer, for tests and pictures.

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
mod session;
mod shown;
mod side_job;
mod simulated;
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

/// What the screen starts with.
pub struct ScreenRequest {
    /// What is planned first.
    pub workload: Arc<Workload>,
    /// The same as its file has it, before anything was put over it (a calibration, a stack, the links of a topology): what
    /// differs stays when the file is read again.
    pub as_read: Arc<Workload>,
    /// Limits that take the place of the workload's.
    pub overrides: GivenLimits,
    /// Limits where neither those nor the workload say anything.
    pub defaults: GivenLimits,
    /// The planners to choose from.
    pub planners: &'static [&'static dyn Planner],
    /// Id of the one to begin with.
    pub planner: String,
    /// Whether that one was asked for by name, so that no session puts another in its place.
    pub planner_asked: bool,
    /// Its options, as `name=value`.
    pub settings: Vec<String>,
    /// How plans are simulated first.
    pub schedule: Schedule,
    /// Whether that was asked for by name.
    pub schedule_asked: bool,
    /// What the simulator assumes at first.
    pub simulator: SimulatorSettings,
    /// Where sessions are kept; `None`: nowhere.
    pub state_directory: Option<PathBuf>,
    /// Whether to read the workload again when its file changes.
    pub watch: bool,
    /// Whether to play the tour.
    pub demo: bool,
    /// Whether to begin anew, whatever the last session with the workload was.
    pub fresh: bool,
    /// Dials of the workload that were asked for by name, so that no session turns them.
    pub dials_asked: Vec<String>,
    /// Seed of every search.
    pub seed: u64,
    /// The longest a plan may take.
    pub deadline: Option<Duration>,
    /// Which key does what.
    pub keymap: Keymap,
    /// Name of the theme.
    pub theme: String,
    /// Where the user's themes are.
    pub theme_directory: Option<PathBuf>,
    /// How many colours to use.
    pub depth: Depth,
    /// Whether to draw with ASCII alone.
    pub ascii: bool,
    /// Whether the terminal is the Linux console, whose font has few signs.
    pub console: bool,
    /// Whether to listen to the mouse.
    pub mouse: bool,
}

impl ScreenRequest {
    /// The usual: all planners, the first one chosen, the dark theme, colours and signs as the environment says.
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

/// Whether the locale says that more than ASCII can be shown. No locale at all is taken for a modern terminal.
fn utf8_locale(get: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &str| get(name).filter(|v| !v.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    locale.is_none_or(|l| {
        let l = l.to_lowercase();
        l.contains("utf-8") || l.contains("utf8")
    })
}

/// Why the screen could not be shown.
#[derive(Debug, Error)]
pub enum ScreenError {
    /// Standard output is no terminal, or there is none that keys could come from.
    #[error("there is no terminal here, so there is no screen; `plantui plan` prints the plan")]
    NoTerminal,
    /// There is no planner of this id.
    #[error("there is no planner `{asked}`; there are {known}")]
    UnknownPlanner {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// An option was refused.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// A limit is not given anywhere.
    #[error("{name} {missing}")]
    MissingLimit {
        /// The workload.
        name: String,
        /// Which.
        missing: MissingLimit,
    },
    /// The theme is not there or is none.
    #[error(transparent)]
    Theme(#[from] theme::ThemeError),
    /// The terminal failed.
    #[error("the terminal failed: {0}")]
    Terminal(#[from] io::Error),
}

/// Whether there is a terminal to show the screen on.
pub fn terminal_is_there() -> bool {
    terminal::is_there()
}

/// Shows the screen until the user leaves. A signal that asks the program to end gives the terminal back first and then
/// ends it as that signal does; so does the loss of the terminal, as SIGHUP. The session is kept in every case but a bug's.
///
/// # Errors
/// [`ScreenError`]; the terminal is as it was.
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
        // However it was noticed, it ends as the system would have ended it.
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

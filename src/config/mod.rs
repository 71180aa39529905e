//! User configuration file: colours, defaults and keys of the screen.
//!
//! The file is TOML: `--config`, else `$PLANTUI_CONFIG`, else `plantui/config.toml` in the user's
//! folder. `read` parses it and reports errors with their line. [`print`] writes the configuration in force with
//! comments, and its output parses back to the same [`Config`]. The screen uses the whole file. Other commands look up a
//! hardware name there that is no preset, and depend on their flags for everything else.

#[cfg(feature = "screen")]
mod keys;
mod print;
mod read;
mod settings;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use thiserror::Error;

#[cfg(feature = "screen")]
use crate::tui::Keymap;
use crate::{
    cluster::{
        GivenLimits,
        hardware::{self, HardwareSheet},
    },
    folders,
    simulate::{Schedule, SimulatorSettings},
    source::{LoadError, error::printable},
    workload::formats::{detect, file},
};

/// Size limit of a configuration file, bytes. A real one has a few kilobytes; a larger file is something else.
const MAX_BYTES: u64 = 1 << 20;

/// Everything a configuration file can set.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Name of the theme.
    pub theme: String,
    /// True to use the mouse.
    pub mouse: bool,
    /// True to draw with ASCII alone; `None`: according to the locale.
    pub ascii: Option<bool>,
    /// True to restore the last session with a workload.
    pub restore: bool,
    /// Ids of planners in order of preference. The first that is made for a workload plans it.
    pub planners: Vec<String>,
    /// Initial schedule of the simulator.
    pub schedule: Schedule,
    /// Initial settings of the simulator.
    pub simulator: SimulatorSettings,
    /// Time limit of a plan.
    pub deadline: Option<Duration>,
    /// Limits for workloads that do not state their own.
    pub limits: GivenLimits,
    /// Hardware of the user.
    pub hardware: Vec<HardwareSheet>,
    /// Price of a device for an hour, by id of the hardware.
    pub prices: BTreeMap<String, f64>,
    /// Keys of each action.
    #[cfg(feature = "screen")]
    pub keymap: Keymap,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            theme: "auto".into(),
            mouse: true,
            ascii: None,
            restore: true,
            planners: vec![],
            schedule: Schedule::ALL[0],
            simulator: SimulatorSettings::default(),
            deadline: None,
            limits: GivenLimits::default(),
            hardware: vec![],
            prices: BTreeMap::new(),
            #[cfg(feature = "screen")]
            keymap: Keymap::default(),
        }
    }
}

/// Error in a configuration file, with its place and a repair.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}{}: {problem}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// Line, from 1; `None` if the whole file is meant.
    pub line: Option<usize>,
    /// The problem.
    pub problem: String,
    /// The repair; may be empty.
    pub repair: String,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`] for the first error in the file.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let file = printable(&path.display().to_string());
        let refuse = |problem: String, repair: String| ConfigError { file: file.clone(), line: None, problem, repair };
        if !path.exists() {
            return Err(refuse("is not there".into(), "`plantui --print-config > FILE` makes one".into()));
        }
        let bytes = file::read_at_most(path, MAX_BYTES).map_err(|error| refuse(error.problem, error.repair))?;
        // An empty file changes nothing.
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Config::default());
        }
        let other = |error: LoadError| ConfigError { line: error.line, ..refuse(error.problem, error.repair) };
        let text = detect::text(&bytes, &file, &detect::SETTINGS).map_err(other)?;
        read::parse(text, &file).map_err(|error| detect::no_toml(text, &file, &detect::SETTINGS).map_or(error, other))
    }

    /// Reads a configuration from its text. Messages call it `file`.
    ///
    /// # Errors
    /// [`ConfigError`] for the first error in the text.
    pub fn parse(text: &str, file: &str) -> Result<Config, ConfigError> {
        read::parse(text, file)
    }

    /// Makes the user's own hardware known under its names.
    pub fn add_hardware(&self) {
        for sheet in &self.hardware {
            // The reader has checked the figures.
            drop(hardware::add(sheet.clone()));
        }
    }

    /// Returns a commented TOML file, which [`Config::parse`] reads back as the same configuration.
    pub fn to_toml(&self) -> String {
        print::to_toml(self)
    }
}

/// Path of the configuration file: `$PLANTUI_CONFIG`, or else the usual place if a file exists there. `get` reads an
/// environment variable.
pub fn place(get: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let named = get("PLANTUI_CONFIG").filter(|value| !value.as_os_str().is_empty());
    named.or_else(|| Some(folders::configuration(get)?.join("config.toml")).filter(|path| path.exists()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_file_is_found_by_name_then_in_its_usual_place() {
        let home = tempfile::tempdir().unwrap();
        let get = |name: &str| (name == "HOME").then(|| home.path().to_path_buf());
        assert_eq!(place(get), None);
        let usual = home.path().join(".config/plantui/config.toml");
        fs::create_dir_all(usual.parent().unwrap()).unwrap();
        fs::write(&usual, "").unwrap();
        assert_eq!(place(get), Some(usual));
        let named = |name: &str| match name {
            "PLANTUI_CONFIG" => Some(PathBuf::from("/nowhere.toml")),
            _ => get(name),
        };
        assert_eq!(place(named), Some("/nowhere.toml".into()), "a named file that is missing is a mistake to be told");
        let error = Config::load(Path::new("/nowhere.toml")).unwrap_err();
        assert_eq!(error.to_string(), "/nowhere.toml: is not there");
    }
}

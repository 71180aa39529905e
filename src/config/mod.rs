//! What a user's own file sets: colours, defaults and keys of the screen.
//!
//! A TOML file at `--config`, else `$PLANTUI_CONFIG`, else `plantui/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`.
//! `read` takes it apart and says where it is wrong; [`print`] writes the one that is in force, with comments, so that
//! what it writes is read back as the same [`Config`]. Only the screen looks at it. What the
//! other commands print depends on their flags alone, so that a script does the same for everybody.

mod print;
mod read;
mod settings;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use thiserror::Error;

use crate::{
    cluster::GivenLimits,
    simulate::{Schedule, SimulatorSettings},
    source::{LoadError, error::printable},
    tui::Keymap,
    workload::formats::{detect, file},
};

/// A configuration has a few kilobytes; what is larger than this is something else.
const MAX_BYTES: u64 = 1 << 20;

/// Everything a configuration file can set.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Name of the theme.
    pub theme: String,
    /// Whether to listen to the mouse.
    pub mouse: bool,
    /// Whether to draw with ASCII alone; `None`: as the locale says.
    pub ascii: Option<bool>,
    /// Whether a workload's last session comes back.
    pub restore: bool,
    /// Ids of planners in order of preference; the first that is made for a workload plans it.
    pub planners: Vec<String>,
    /// How plans are simulated first.
    pub schedule: Schedule,
    /// What the simulator assumes at first.
    pub simulator: SimulatorSettings,
    /// The longest a plan may take.
    pub deadline: Option<Duration>,
    /// Limits for workloads that do not state their own.
    pub limits: GivenLimits,
    /// Which key does what.
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
            keymap: Keymap::default(),
        }
    }
}

/// What is wrong with a configuration file, where, and what would repair it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}{}: {problem}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// The line, from 1; `None` where the whole file is meant.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What would repair it; may be empty.
    pub repair: String,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`] for the first thing that is wrong with it.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let file = printable(&path.display().to_string());
        let refuse = |problem: String, repair: String| ConfigError { file: file.clone(), line: None, problem, repair };
        if !path.exists() {
            return Err(refuse("is not there".into(), "`plantui --print-config > FILE` makes one".into()));
        }
        let bytes = file::read_at_most(path, MAX_BYTES).map_err(|error| refuse(error.problem, error.repair))?;
        // An empty one changes nothing.
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Config::default());
        }
        let other = |error: LoadError| ConfigError { line: error.line, ..refuse(error.problem, error.repair) };
        let text = detect::text(&bytes, &file, &detect::SETTINGS).map_err(other)?;
        read::parse(text, &file).map_err(|error| detect::no_toml(text, &file, &detect::SETTINGS).map_or(error, other))
    }

    /// Reads a configuration from its text; messages call it `file`.
    ///
    /// # Errors
    /// [`ConfigError`] for the first thing that is wrong with it.
    pub fn parse(text: &str, file: &str) -> Result<Config, ConfigError> {
        read::parse(text, file)
    }

    /// As a commented TOML file, which [`Config::parse`] reads back as the same configuration.
    pub fn to_toml(&self) -> String {
        print::to_toml(self)
    }
}

/// Where the file is, by the environment: the place that is asked for by name, or else the usual one if there is a file.
/// `get` reads a variable.
pub fn place(get: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| get(name).filter(|value| !value.as_os_str().is_empty());
    if let Some(named) = set("PLANTUI_CONFIG") {
        return Some(named);
    }
    let base = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(base.join("plantui").join("config.toml")).filter(|path| path.exists())
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

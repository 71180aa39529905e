//! Folders of the user for configuration and state.
//!
//! `$XDG_CONFIG_HOME/plantui` and `$XDG_STATE_HOME/plantui`, else `~/.config/plantui` and `~/.local/state/plantui`. Windows
//! has `%APPDATA%\plantui` and `%LOCALAPPDATA%\plantui` in place of the last two.

use std::path::PathBuf;

/// Reads a path from an environment variable.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// Folder of configuration and themes, if the environment names a home. `get` reads an environment variable.
pub(crate) fn configuration(get: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    below("XDG_CONFIG_HOME", "APPDATA", ".config", get)
}

/// Folder of stored sessions, if the environment names a home. `get` reads an environment variable.
#[cfg(feature = "screen")]
pub(crate) fn state(get: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    below("XDG_STATE_HOME", "LOCALAPPDATA", ".local/state", get)
}

fn below(named: &str, windows: &str, at_home: &str, get: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name: &str| get(name).filter(|value| !value.as_os_str().is_empty());
    let of_windows = || set(windows).filter(|_| cfg!(windows));
    let base = set(named).or_else(of_windows).or_else(|| set("HOME").map(|home| home.join(at_home)))?;
    Some(base.join("plantui"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_folder_comes_before_the_home() {
        let given = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(set, _)| *set == name).map(|(_, value)| PathBuf::from(value))
        };
        assert_eq!(configuration(given(&[("HOME", "/h")])), Some("/h/.config/plantui".into()));
        assert_eq!(configuration(given(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/s")])), Some("/s/plantui".into()));
        assert_eq!(configuration(given(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "")])), Some("/h/.config/plantui".into()));
        assert_eq!(configuration(given(&[("XDG_CONFIG_HOME", "")])), None);
        #[cfg(feature = "screen")]
        assert_eq!(state(given(&[("HOME", "/h")])), Some("/h/.local/state/plantui".into()));
    }
}

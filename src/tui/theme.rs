//! Themes: roles of colours, and their conversion for terminals with fewer colours.
//!
//! A theme is a TOML file with a colour for each [`Role`]. A role without one uses the terminal's default. Five themes
//! are compiled in. A file in `plantui/themes` of the user's configuration directory adds one, or replaces the built-in
//! one of that name. Colours are written in true colour and converted to the terminal's [`Depth`] once, when the theme
//! is loaded. With 16 colours a foreground is never black or dark grey, because many terminals show those as invisible.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;
use thiserror::Error;

use super::{
    background::AUTO,
    inks::{DARK, READ, Rgb, SEEN, contrast, lower, lower_ink},
};
use crate::{folders, source::LoadError, text::is_hostile, workload::formats::file};

/// Size limit of a theme file, bytes. A real one has a kilobyte; a larger file is something else.
const MAX_BYTES: u64 = 1 << 20;

/// Number of colours of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// None, or `NO_COLOR` is set.
    None,
    /// The 16 of ANSI.
    Ansi,
    /// The 256 of xterm.
    Indexed,
    /// 24 bits.
    True,
}

impl Depth {
    /// Depth according to the environment. `get` reads an environment variable.
    pub fn detect(get: impl Fn(&str) -> Option<String>) -> Depth {
        let term = get("TERM").unwrap_or_default();
        if get("NO_COLOR").is_some_and(|v| !v.is_empty()) || matches!(term.as_str(), "" | "dumb") || term.contains("-m")
        {
            return Depth::None;
        }
        match get("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") => Depth::True,
            _ if term.contains("direct") => Depth::True,
            _ if term.contains("256color") => Depth::Indexed,
            _ => Depth::Ansi,
        }
    }
}

/// Meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum Role {
    Text,
    Muted,
    Border,
    Focus,
    Accent,
    Good,
    Warning,
    Bad,
    Idle,
    Forward,
    Backward,
    Recompute,
    Communication,
    Step,
    State,
    Activations,
    Buffers,
}

/// Contents of a theme file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ThemeFile {
    background: Option<Rgb>,
    text: Option<Rgb>,
    muted: Option<Rgb>,
    border: Option<Rgb>,
    focus: Option<Rgb>,
    accent: Option<Rgb>,
    selection: Option<Rgb>,
    good: Option<Rgb>,
    warning: Option<Rgb>,
    bad: Option<Rgb>,
    idle: Option<Rgb>,
    forward: Option<Rgb>,
    backward: Option<Rgb>,
    recompute: Option<Rgb>,
    communication: Option<Rgb>,
    step: Option<Rgb>,
    state: Option<Rgb>,
    activations: Option<Rgb>,
    buffers: Option<Rgb>,
    stages: Vec<Rgb>,
}

/// Theme, ready for drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// Name, as in `--theme`.
    pub name: String,
    roles: [Color; 17],
    background: Color,
    selection: Option<Color>,
    stages: Vec<Color>,
}

impl Theme {
    /// Colour of a role.
    pub fn color(&self, role: Role) -> Color {
        self.roles[role as usize]
    }

    /// Style with a role's colour as foreground.
    pub fn fg(&self, role: Role) -> Style {
        Style::new().fg(self.color(role))
    }

    /// Style with a role's colour as bold foreground.
    pub fn bold(&self, role: Role) -> Style {
        self.fg(role).add_modifier(Modifier::BOLD)
    }

    /// Style of plain text on the background.
    pub fn base(&self) -> Style {
        Style::new().fg(self.color(Role::Text)).bg(self.background)
    }

    /// Background; the terminal's own if the theme has none.
    pub fn background(&self) -> Color {
        self.background
    }

    /// True for dark text on a light background.
    pub(crate) fn is_light(&self) -> bool {
        contrast(self.background) == Color::Black && self.background != Color::Reset
    }

    /// Style of the selected row. A sign always stands beside it, so that the colour is not needed.
    pub fn selected(&self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        self.selection.map_or(style, |color| style.bg(color))
    }

    /// Style of text on a role's colour, such as the number in a timeline's box.
    pub fn on(&self, role: Role) -> Style {
        match self.color(role) {
            Color::Reset => Style::new().add_modifier(Modifier::REVERSED),
            color => Style::new().bg(color).fg(contrast(color)),
        }
    }

    /// Style of a stage. Neighbours differ in lightness.
    pub fn stage(&self, stage: usize) -> Style {
        match self.stages.len() {
            0 => Style::new(),
            n => Style::new().fg(self.stages[stage % n]),
        }
    }

    /// Style of a line of a chart, with hues as distinct as possible.
    pub fn series(&self, line: usize) -> Style {
        const PLACES: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];
        self.stage(PLACES[line % 8] * self.stages.len() / 8)
    }
}

const BUILT_IN: [(&str, &str); 5] = [
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("high-contrast", include_str!("../../themes/high-contrast.toml")),
    ("colour-blind", include_str!("../../themes/colour-blind.toml")),
    ("monochrome", include_str!("../../themes/monochrome.toml")),
];

/// Folder of a user's own themes, if the environment names a home.
pub fn user_directory() -> Option<PathBuf> {
    Some(folders::configuration(folders::variable)?.join("themes"))
}

/// Names of all themes: the built-in ones, then the user's own by name.
pub fn names(user: Option<&Path>) -> Vec<String> {
    let mut names: Vec<String> = BUILT_IN.iter().map(|(name, _)| (*name).to_string()).collect();
    let files = user.and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let mut own: Vec<String> = files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_string()))
        // Leave out names with characters that a terminal would interpret.
        .filter(|name| !names.contains(name) && !name.contains(is_hostile))
        .collect();
    own.sort();
    names.append(&mut own);
    names
}

/// Reason why a theme cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ThemeError {
    /// There is no theme of this name.
    #[error("there is no theme `{name}`; there are {known}")]
    Unknown {
        /// Requested name.
        name: String,
        /// Existing names.
        known: String,
    },
    /// Its file cannot be read.
    #[error(transparent)]
    File(#[from] LoadError),
    /// The file is not text.
    #[error("{file}: is not text")]
    NoText {
        /// The file.
        file: String,
    },
    /// The file is not a valid theme.
    #[error("{file}:{line}: {problem}")]
    Content {
        /// The file, or the name of the built-in theme.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
}

/// Loads a theme by name for a terminal's depth. The user's own takes precedence over the built-in one.
///
/// # Errors
/// [`ThemeError`] if there is no such theme, or its file is not valid.
pub fn load(name: &str, user: Option<&Path>, depth: Depth) -> Result<Theme, ThemeError> {
    // The terminal was not queried, or did not answer.
    let name = if name == AUTO { "dark" } else { name };
    let own = user.map(|dir| dir.join(format!("{name}.toml"))).filter(|path| path.is_file());
    let (text, source) = match (&own, BUILT_IN.iter().find(|(n, _)| *n == name)) {
        (Some(path), _) => {
            let shown = path.display().to_string();
            let bytes = file::read_at_most(path, MAX_BYTES)?;
            (String::from_utf8(bytes).map_err(|_| ThemeError::NoText { file: shown.clone() })?, shown)
        }
        (None, Some((_, text))) => ((*text).to_string(), name.to_string()),
        (None, None) => return Err(ThemeError::Unknown { name: name.into(), known: names(user).join(", ") }),
    };
    let file: ThemeFile = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let problem = error.message().lines().next().unwrap_or_default().into();
        ThemeError::Content { file: source.clone(), line, problem }
    })?;
    Ok(resolve(name, &file, depth))
}

/// Roles of text.
const TEXTS: [Role; 7] = [Role::Text, Role::Muted, Role::Focus, Role::Accent, Role::Good, Role::Warning, Role::Bad];

/// Sixteen colours of the dark theme: the nearest ones would give two activities one colour.
const SIXTEEN: [(Role, Color); 8] = [
    (Role::Forward, Color::White),
    (Role::Backward, Color::LightBlue),
    (Role::Recompute, Color::LightMagenta),
    (Role::Communication, Color::LightYellow),
    (Role::Step, Color::LightCyan),
    (Role::State, Color::Gray),
    (Role::Activations, Color::Cyan),
    (Role::Buffers, Color::Yellow),
];
/// Stages of the dark theme in sixteen colours.
const SIXTEEN_STAGES: [Color; 4] = [Color::Magenta, Color::Red, Color::Yellow, Color::Green];

fn resolve(name: &str, file: &ThemeFile, depth: Depth) -> Theme {
    // Without its own background a theme is for dark terminals.
    let ground = file.background.unwrap_or(DARK);
    let fg = |rgb: Option<Rgb>| rgb.map_or(Color::Reset, |rgb| lower_ink(rgb, depth, ground, SEEN));
    let bg = |rgb: Option<Rgb>| rgb.map_or(Color::Reset, |rgb| lower(rgb, depth, true));
    let roles = [
        file.text,
        file.muted,
        file.border,
        file.focus,
        file.accent,
        file.good,
        file.warning,
        file.bad,
        file.idle,
        file.forward,
        file.backward,
        file.recompute,
        file.communication,
        file.step,
        file.state,
        file.activations,
        file.buffers,
    ]
    .map(fg);
    let texts = [file.text, file.muted, file.focus, file.accent, file.good, file.warning, file.bad];
    let mut roles = roles;
    for (role, rgb) in TEXTS.into_iter().zip(texts) {
        roles[role as usize] = rgb.map_or(Color::Reset, |rgb| lower_ink(rgb, depth, ground, READ));
    }
    // None of the sixteen colours as a background keeps all text readable: bold text and the sign at the left must
    // suffice.
    let selection = file.selection.filter(|_| depth != Depth::Ansi).map(|rgb| lower(rgb, depth, true));
    let selection = selection.filter(|color| *color != Color::Reset);
    let mut stages: Vec<Color> = file.stages.iter().map(|&rgb| fg(Some(rgb))).collect();
    if name == "dark" && depth == Depth::Ansi {
        SIXTEEN.into_iter().for_each(|(role, color)| roles[role as usize] = color);
        stages = SIXTEEN_STAGES.to_vec();
    }
    Theme { name: name.to_string(), roles, background: bg(file.background), selection, stages }
}

#[cfg(test)]
mod tests {
    use super::{
        super::inks::{ANSI, contrast_of, indexed_rgb, luma},
        *,
    };

    fn environment<'a>(pairs: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_string())
    }

    #[test]
    fn the_environment_decides_the_depth() {
        for (pairs, depth) in [
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")][..], Depth::True),
            (&[("TERM", "tmux-256color")], Depth::Indexed),
            (&[("TERM", "linux")], Depth::Ansi),
            (&[("TERM", "dumb")], Depth::None),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")], Depth::None),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "")], Depth::Indexed),
        ] {
            assert_eq!(Depth::detect(environment(pairs)), depth, "{pairs:?}");
        }
    }

    #[test]
    fn every_theme_loads_at_every_depth() {
        for name in names(None) {
            for depth in [Depth::None, Depth::Ansi, Depth::Indexed, Depth::True] {
                let theme = load(&name, None, depth).unwrap();
                let plain = depth == Depth::None || name == "monochrome";
                assert_eq!(theme.color(Role::Text) == Color::Reset, plain, "{name} {depth:?}");
                let black = theme.roles.contains(&Color::Black) && !theme.is_light();
                assert!(!black && !theme.roles.contains(&Color::DarkGray));
            }
        }
    }

    #[test]
    fn whatever_is_read_stands_out_from_what_is_behind_it() {
        let value = |color: Color| match color {
            Color::Rgb(r, g, b) => Some(Rgb(r, g, b)),
            Color::Indexed(i) => Some(indexed_rgb(i)),
            other => ANSI.iter().find(|(known, _)| *known == other).map(|(_, rgb)| *rgb),
        };
        for name in names(None) {
            for depth in [Depth::True, Depth::Indexed, Depth::Ansi] {
                let theme = load(&name, None, depth).unwrap();
                let ground = value(theme.background).unwrap_or(DARK);
                let selected = theme.selection.and_then(value).filter(|_| depth == Depth::True);
                for role in TEXTS {
                    let Some(ink) = value(theme.color(role)) else { continue };
                    for behind in selected.into_iter().chain([ground]) {
                        let found = contrast_of(ink, behind);
                        assert!(found >= READ, "{name} {depth:?} {role:?} on {behind:?}: {found:.2}");
                    }
                }
                let light = theme.is_light();
                assert!(light || !theme.roles.contains(&Color::Blue) && !theme.stages.contains(&Color::Blue), "{name}");
            }
        }
    }

    #[test]
    fn neighbouring_stages_differ_in_lightness() {
        for name in names(None) {
            let theme = load(&name, None, Depth::True).unwrap();
            let light: Vec<f64> = theme
                .stages
                .iter()
                .map(|c| match c {
                    Color::Rgb(r, g, b) => luma(*r, *g, *b),
                    other => panic!("{other:?} is no true colour"),
                })
                .collect();
            for pair in light.windows(2) {
                assert!((pair[0] - pair[1]).abs() > 15.0, "{name}: {light:?}");
            }
        }
    }

    #[test]
    fn a_users_theme_wins_and_its_errors_name_the_line() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("dark.toml"), "text = \"#010203\"\n").unwrap();
        fs::write(dir.path().join("mine.toml"), "text = \"#010203\"\nmuted = \"grey\"\n").unwrap();
        fs::write(dir.path().join("typo.toml"), "txet = \"#010203\"\n").unwrap();
        let user = Some(dir.path());
        assert_eq!(load("dark", user, Depth::True).unwrap().color(Role::Text), Color::Rgb(1, 2, 3));
        assert!(names(user).ends_with(&["mine".into(), "typo".into()]));
        let error = load("mine", user, Depth::True).unwrap_err().to_string();
        assert!(error.contains("mine.toml:2") && error.contains("#5fa8e8"), "{error}");
        assert!(load("typo", user, Depth::True).unwrap_err().to_string().contains("txet"));
        assert!(load("none", user, Depth::True).unwrap_err().to_string().contains("high-contrast"));
    }
}

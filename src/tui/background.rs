//! Whether the terminal is dark or light, so that the look fits it: asked of the terminal itself (OSC 11), else read from
//! `COLORFGBG`.
//!
//! The terminal is asked before anything is drawn and before keys are read, and for a tenth of a second at most. An answer
//! that comes later, as over a slow line, would be taken for keys: [`Late`] takes it out of them.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyCode, KeyModifiers};
use terminal_colorsaurus::{QueryOptions, ThemeMode, theme_mode};

/// The name that leaves the theme to the terminal.
pub(crate) const AUTO: &str = "auto";

/// How long the terminal may take to answer.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a late answer is waited for, and how many characters it has at most.
const LATE: Duration = Duration::from_secs(5);
const LONGEST: usize = 48;

/// The theme that fits the terminal, and whether the terminal has said so itself.
pub(super) fn theme(get: impl Fn(&str) -> Option<String>) -> (&'static str, bool) {
    let mut options = QueryOptions::default();
    options.timeout = PATIENCE;
    match theme_mode(options) {
        Ok(ThemeMode::Light) => ("light", true),
        Ok(ThemeMode::Dark) => ("dark", true),
        Err(_) => (if told_light(&get("COLORFGBG").unwrap_or_default()) { "light" } else { "dark" }, false),
    }
}

/// Whether `COLORFGBG`, foreground and background as numbers of the 16 colours, tells of a light background.
fn told_light(variable: &str) -> bool {
    let background = variable.rsplit(';').next().and_then(|last| last.trim().parse::<u8>().ok());
    matches!(background, Some(7 | 9..=15))
}

/// Takes a late answer of the terminal out of the keys.
#[derive(Debug)]
pub(super) struct Late {
    until: Option<Instant>,
    inside: Option<usize>,
}

impl Late {
    /// Waits for one, unless the terminal has answered.
    pub(super) fn new(answered: bool, now: Instant) -> Self {
        Late { until: (!answered).then(|| now + LATE), inside: None }
    }

    /// Whether an event is a part of such an answer: it begins with `ESC ]`, which is read as Alt and `]`, and ends with BEL
    /// or `ESC \\`.
    pub(super) fn takes(&mut self, event: &Event, now: Instant) -> bool {
        let Some(until) = self.until else { return false };
        if now > until {
            self.until = None;
            return false;
        }
        let Event::Key(key) = event else { return false };
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match self.inside {
            None if alt && key.code == KeyCode::Char(']') => self.inside = Some(0),
            None => return false,
            Some(_) if control && key.code == KeyCode::Char('g') => self.inside = None,
            Some(_) if alt && key.code == KeyCode::Char('\\') => self.inside = None,
            Some(length) if length < LONGEST && matches!(key.code, KeyCode::Char(_)) => self.inside = Some(length + 1),
            // Nothing that a terminal says.
            Some(_) => {
                (self.until, self.inside) = (None, None);
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn the_variable_tells_light_from_dark() {
        for light in ["0;15", "0;default;7", "0;11"] {
            assert!(told_light(light), "{light}");
        }
        for dark in ["15;0", "", "15;default;8", "x", "0;default", "7;4"] {
            assert!(!told_light(dark), "{dark}");
        }
    }

    #[test]
    fn a_late_answer_is_no_key_and_what_follows_is() {
        let key = |c, modifiers| Event::Key(KeyEvent::new(KeyCode::Char(c), modifiers));
        let plain = |c| key(c, KeyModifiers::NONE);
        let now = Instant::now();
        for end in [key('g', KeyModifiers::CONTROL), key('\\', KeyModifiers::ALT)] {
            let mut late = Late::new(false, now);
            assert!(!late.takes(&plain('q'), now));
            assert!(late.takes(&key(']', KeyModifiers::ALT), now));
            assert!("11;rgb:fbfb/fafa/f8f8".chars().all(|c| late.takes(&plain(c), now)));
            assert!(late.takes(&end, now) && !late.takes(&plain('q'), now));
        }
        let mut answered = Late::new(true, now);
        assert!(!answered.takes(&key(']', KeyModifiers::ALT), now));
        let mut over = Late::new(false, now);
        assert!(!over.takes(&key(']', KeyModifiers::ALT), now + LATE + LATE));
    }
}

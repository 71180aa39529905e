//! Detects a dark or light terminal for the theme: queries the terminal (OSC 11), else reads `COLORFGBG`.
//!
//! The query comes before the first drawing and before keys are read, and waits at most 0.1 s. A later answer, as over
//! a slow line, would be read as keys: [`Late`] removes it from them.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyCode, KeyModifiers};
use terminal_colorsaurus::{QueryOptions, ThemeMode, theme_mode};

/// Name of the theme that follows the terminal.
pub(crate) const AUTO: &str = "auto";

/// Timeout of the query.
const PATIENCE: Duration = Duration::from_millis(100);
/// Time during which a late answer is filtered, and its maximum length in characters.
const LATE: Duration = Duration::from_secs(5);
const LONGEST: usize = 48;

/// Theme that fits the terminal, and true if the terminal answered.
pub(super) fn theme(get: impl Fn(&str) -> Option<String>) -> (&'static str, bool) {
    let mut options = QueryOptions::default();
    options.timeout = PATIENCE;
    match theme_mode(options) {
        Ok(ThemeMode::Light) => ("light", true),
        Ok(ThemeMode::Dark) => ("dark", true),
        Err(_) => (if told_light(&get("COLORFGBG").unwrap_or_default()) { "light" } else { "dark" }, false),
    }
}

/// True if `COLORFGBG` (foreground and background as numbers of the 16 colours) has a light background.
fn told_light(variable: &str) -> bool {
    let background = variable.rsplit(';').next().and_then(|last| last.trim().parse::<u8>().ok());
    matches!(background, Some(7 | 9..=15))
}

/// Filter that removes a late answer of the terminal from the keys.
#[derive(Debug)]
pub(super) struct Late {
    until: Option<Instant>,
    inside: Option<usize>,
}

impl Late {
    /// Filters for five seconds, unless the terminal has answered.
    pub(super) fn new(answered: bool, now: Instant) -> Self {
        Late { until: (!answered).then(|| now + LATE), inside: None }
    }

    /// True if an event is part of such an answer. It begins with `ESC ]`, which is read as Alt and `]`, and ends with
    /// BEL or `ESC \\`.
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
            // Not an answer of a terminal.
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

//! A list that narrows down as a text is typed, best match first.

use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{CaseMatching, Normalization, Pattern},
};
use ratatui::crossterm::event::Event;
use tui_input::{Input, backend::crossterm::EventHandler};

/// The typed text and the selected row among what it leaves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// What was typed.
    pub input: Input,
    /// Selected row among the matches.
    pub cursor: usize,
}

impl Filter {
    /// Takes a key; whether the text changed.
    pub(crate) fn type_key(&mut self, event: &Event) -> bool {
        let changed = self.input.handle_event(event).is_some_and(|change| change.value);
        if changed {
            self.cursor = 0;
        }
        changed
    }

    /// Moves the selection, kept within `count` rows.
    pub(crate) fn step(&mut self, by: isize, count: usize) {
        self.cursor = self.cursor.saturating_add_signed(by).min(count.saturating_sub(1));
    }

    /// Indices of the texts that match, best first; all of them, in order, while nothing is typed.
    pub(crate) fn matches<T: AsRef<str>>(&self, texts: &[T]) -> Vec<usize> {
        if self.input.value().trim().is_empty() {
            return (0..texts.len()).collect();
        }
        let pattern = Pattern::parse(self.input.value(), CaseMatching::Ignore, Normalization::Smart);
        // Texts begin with what a row is called, which counts more than what is said of it.
        let mut config = Config::DEFAULT;
        config.prefer_prefix = true;
        let mut matcher = Matcher::new(config);
        let mut buffer = vec![];
        let mut scored: Vec<(u32, usize)> = texts
            .iter()
            .enumerate()
            .filter_map(|(i, text)| Some((pattern.score(Utf32Str::new(text.as_ref(), &mut buffer), &mut matcher)?, i)))
            .collect();
        scored.sort_by_key(|&(score, i)| (std::cmp::Reverse(score), i));
        scored.into_iter().map(|(_, i)| i).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_narrows_and_ranks() {
        let texts = ["Next theme", "Export", "Next event", "Help"];
        let mut filter = Filter::default();
        assert_eq!(filter.matches(&texts), [0, 1, 2, 3]);
        filter.input = Input::new("next ev".into());
        assert_eq!(filter.matches(&texts), [2]);
        filter.input = Input::new("zzz".into());
        assert!(filter.matches(&texts).is_empty());
        filter.step(5, 0);
        assert_eq!(filter.cursor, 0);
    }
}

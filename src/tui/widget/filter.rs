//! List filtered by a typed text, best match first.

use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{CaseMatching, Normalization, Pattern},
};
use ratatui::crossterm::event::Event;
use tui_input::{Input, backend::crossterm::EventHandler};

/// Typed text, and the selected row among the matches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// Typed text.
    pub input: Input,
    /// Index of the selected row among the matches.
    pub cursor: usize,
}

impl Filter {
    /// Handles a key. Returns true if the text changed.
    pub(crate) fn type_key(&mut self, event: &Event) -> bool {
        let changed = self.input.handle_event(event).is_some_and(|change| change.value);
        if changed {
            self.cursor = 0;
        }
        changed
    }

    /// Moves the selection within `count` rows.
    pub(crate) fn step(&mut self, by: isize, count: usize) {
        self.cursor = self.cursor.saturating_add_signed(by).min(count.saturating_sub(1));
    }

    /// Indices of the matching texts, best first; all of them, in order, without a search text.
    pub(crate) fn matches<T: AsRef<str>>(&self, texts: &[T]) -> Vec<usize> {
        if self.input.value().trim().is_empty() {
            return (0..texts.len()).collect();
        }
        let pattern = Pattern::parse(self.input.value(), CaseMatching::Ignore, Normalization::Smart);
        // Texts start with the title of a row, which counts more than its help.
        let mut config = Config::DEFAULT;
        config.prefer_prefix = true;
        let mut matcher = Matcher::new(config);
        let mut buffer = vec![];
        let typed = words(self.input.value());
        let mut scored: Vec<(Near, u32, usize)> = texts
            .iter()
            .enumerate()
            .filter_map(|(i, text)| {
                let score = pattern.score(Utf32Str::new(text.as_ref(), &mut buffer), &mut matcher)?;
                Some((Near::of(&typed, text.as_ref()), score, i))
            })
            .collect();
        scored.sort_by_key(|&(near, score, i)| (near, std::cmp::Reverse(score), i));
        // Matches of scattered letters are guesses, useful only without better ones.
        let short = self.input.value().trim().chars().count() < SCATTERED;
        let sure = short || scored.first().is_some_and(|(near, ..)| *near < Near::Letters);
        scored.into_iter().filter(|(near, ..)| !sure || *near < Near::Letters).map(|(.., i)| i).collect()
    }
}

/// Length from which scattered letters count as a match, characters.
const SCATTERED: usize = 4;

/// Quality of a match, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Near {
    /// Whole words.
    Words,
    /// Beginnings of words.
    Beginnings,
    /// Parts of words.
    Piece,
    /// Letters in this order.
    Letters,
}

impl Near {
    fn of(typed: &[String], text: &str) -> Near {
        let there = words(text);
        let all = |has: fn(&str, &str) -> bool| typed.iter().all(|word| there.iter().any(|other| has(other, word)));
        if all(|other, word| other == word) {
            Near::Words
        } else if all(|other, word| other.starts_with(word)) {
            Near::Beginnings
        } else if all(|other, word| other.contains(word)) {
            Near::Piece
        } else {
            Near::Letters
        }
    }
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
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
        let texts = ["Boundary back, a bubbling", "b u b b l e", "Most bubble", "Say Bubble"];
        filter.input = Input::new("bubble".into());
        let found = |filter: &Filter| {
            let mut found = filter.matches(&texts);
            found.sort_unstable();
            found
        };
        assert_eq!(found(&filter), [2, 3], "whole words before strewn letters, which are left out");
        filter.input = Input::new("bubbl".into());
        assert_eq!(found(&filter), [0, 2, 3]);
        let texts = ["Next theme", "Export", "Next event", "Help"];
        filter.input = Input::new("nxev".into());
        assert_eq!(filter.matches(&texts), [2]);
        filter.input = Input::new("zzz".into());
        assert!(filter.matches(&texts).is_empty());
        filter.step(5, 0);
        assert_eq!(filter.cursor, 0);
    }
}

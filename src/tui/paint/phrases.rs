//! Lines of phrases that are never cut, because a figure with half its digits misleads.

use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::tui::paint::text::wrap;

/// Spans that stay together on a line.
pub(in crate::tui) type Phrase = Vec<Span<'static>>;

/// Puts phrases with `gap` between them on at most `most` lines of a width. Phrases that do not fit are left out whole,
/// with a sign for it. A phrase wider than a line is wrapped as text in one style.
pub(in crate::tui) fn flow(phrases: Vec<Phrase>, gap: &'static str, width: usize, most: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Phrase> = vec![vec![]];
    let mut left_out = false;
    let narrow = |phrase: Phrase| match of(&phrase) <= width {
        true => vec![phrase],
        false => {
            let style = phrase.last().map(|span| span.style).unwrap_or_default();
            let text: String = phrase.iter().map(|span| span.content.as_ref()).collect();
            wrap(&text, width).into_iter().map(|line| vec![Span::styled(line, style)]).collect()
        }
    };
    for phrase in phrases.into_iter().flat_map(narrow) {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            *line = phrase;
        } else if of(line) + gap.len() + of(&phrase) <= width {
            line.push(Span::raw(gap));
            line.extend(phrase);
        } else if lines.len() < most {
            lines.push(phrase);
        } else {
            let line = lines.last_mut().expect("there is always a line");
            let room = width.saturating_sub(of(line) + gap.len());
            line.extend(shortened(&phrase, room).into_iter().flat_map(|less| [Span::raw(gap), less]));
            left_out = true;
            break;
        }
    }
    if let Some(line) = lines.last_mut().filter(|_| left_out) {
        // Drop words to make space for the sign.
        while of(line) + 2 > width {
            let Some(span) = line.last_mut() else { break };
            let shorter = span.content.trim_end().rsplit_once(' ').map(|(before, _)| before.to_string());
            match shorter {
                Some(text) if !text.is_empty() => span.content = text.into(),
                _ if line.len() > 1 => drop(line.pop()),
                _ => break,
            }
        }
        if of(line) + 2 <= width {
            line.push(Span::raw(" …"));
        }
    }
    lines.into_iter().map(Line::from).collect()
}

/// As many parts in parentheses as fit; `None` if none does.
fn shortened(phrase: &[Span<'_>], room: usize) -> Option<Span<'static>> {
    let [span] = phrase else { return None };
    let parts: Vec<&str> = span.content.strip_prefix('(')?.split(", ").collect();
    let mut fewer = (1..parts.len()).rev().map(|count| format!("({})", parts[..count].join(", ")));
    fewer.find(|text| text.width() <= room).map(|text| Span::styled(text, span.style))
}

/// Phrases of a text: parts up to each comma or semicolon. Parentheses are one phrase.
pub(in crate::tui) fn of_text(text: &str) -> Vec<String> {
    let mut phrases = vec![String::new()];
    let mut open = 0_usize;
    for word in text.split(' ') {
        if open == 0 && word.starts_with('(') {
            phrases.push(String::new());
        }
        let phrase = phrases.last_mut().expect("there is always one");
        if !phrase.is_empty() {
            phrase.push(' ');
        }
        phrase.push_str(word);
        open = (open + word.matches('(').count()).saturating_sub(word.matches(')').count());
        if open == 0 && word.ends_with([',', ';']) {
            phrases.push(String::new());
        }
    }
    phrases.retain(|phrase| !phrase.is_empty());
    phrases
}

/// As many whole phrases of a text as fit, with a sign if some are missing.
pub(in crate::tui) fn whole(text: &str, width: usize) -> String {
    let phrases = of_text(text).into_iter().map(|phrase| vec![Span::raw(phrase)]).collect();
    flow(phrases, " ", width, 1).iter().flat_map(|line| &line.spans).map(|span| span.content.as_ref()).collect()
}

/// Width of a phrase, cells.
fn of(phrase: &[Span<'_>]) -> usize {
    phrase.iter().map(Span::width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, width: usize, most: usize) -> Vec<String> {
        let phrases = of_text(text).into_iter().map(|phrase| vec![Span::raw(phrase)]).collect();
        let text = |line: Line<'_>| line.spans.iter().map(|span| span.content.to_string()).collect();
        flow(phrases, " ", width, most).into_iter().map(text).collect()
    }

    #[test]
    fn a_phrase_is_whole_or_not_there() {
        let text = "backward 66.3%, forward 33.1%, transfer 0.6%; most on stage 3: 98.0%";
        assert_eq!(texts(text, 80, 1), [text]);
        assert_eq!(texts(text, 40, 2), ["backward 66.3%, forward 33.1%,", "transfer 0.6%; most on stage 3: 98.0%"]);
        assert_eq!(texts(text, 34, 1), ["backward 66.3%, forward 33.1%, …"]);
        assert_eq!(texts(text, 33, 3), ["backward 66.3%, forward 33.1%,", "transfer 0.6%;", "most on stage 3: 98.0%"]);
        for width in 1..90 {
            for most in 1..5 {
                let lines = texts(text, width, most);
                assert!(lines.len() <= most && lines.iter().all(|line| line.chars().count() <= width), "{lines:?}");
                if width >= 22 {
                    let figures = lines.join(" ");
                    let figures: Vec<&str> = figures.split(' ').filter(|word| word.contains('%')).collect();
                    assert!(figures.iter().all(|word| text.contains(&format!(" {word}"))), "{figures:?}");
                }
            }
        }
    }

    #[test]
    fn what_stands_in_parentheses_is_whole_or_not_there() {
        let text = "21.90 ms, 9.2% more (warm-up and drain 2.5%, transfers 0.2%), bubble 3%";
        assert_eq!(texts(text, 80, 1), [text]);
        assert_eq!(texts(text, 66, 1), ["21.90 ms, 9.2% more (warm-up and drain 2.5%, transfers 0.2%), …"]);
        assert_eq!(texts(text, 48, 1), ["21.90 ms, 9.2% more (warm-up and drain 2.5%) …"]);
        assert_eq!(texts(text, 38, 1), ["21.90 ms, 9.2% more …"]);
        assert_eq!(texts("a (of b", 80, 1), ["a (of b"]);
    }

    #[test]
    fn what_is_wider_than_a_line_is_broken_at_its_blanks() {
        assert_eq!(texts("a single long phrase", 8, 9), ["a single", "long", "phrase"]);
        assert_eq!(texts("", 8, 2), [""]);
    }
}

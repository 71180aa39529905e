//! One-line form of a stage, if its block does not fit.

use ratatui::{
    style::Style,
    text::{Line, Span},
};

use super::facts::{DEGREES, Facts, of_limit};
use crate::{
    tui::theme::{Role, Theme},
    units,
};

/// As many whole phrases as fit.
pub(in crate::tui) fn line(phrases: Vec<Vec<Span<'static>>>, width: usize) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = vec![];
    let mut used = 0;
    for phrase in phrases {
        let own: usize = phrase.iter().map(Span::width).sum();
        let gap = if spans.is_empty() { 0 } else { 3 };
        if used + gap + own > width {
            break;
        }
        if gap > 0 {
            spans.push(Span::raw("   "));
        }
        used += gap + own;
        spans.extend(phrase);
    }
    Line::from(spans)
}

/// Figures of a stage, one phrase each, most important first.
pub(in crate::tui) fn stage(theme: &Theme, facts: &Facts, hue: Style, limit: f64) -> Vec<Vec<Span<'static>>> {
    let pair = |name: &str, value: String| {
        vec![Span::styled(format!("{name} "), theme.fg(Role::Muted)), Span::styled(value, theme.fg(Role::Text))]
    };
    let mut phrases = vec![vec![Span::styled("█ ", hue), Span::styled(facts.title.clone(), theme.bold(Role::Text))]];
    let row = |wanted: &str| facts.rows.iter().find(|(name, _)| *name == wanted);
    if let Some((name, value)) = facts.rows.iter().find(|(name, _)| name.starts_with(DEGREES)) {
        phrases.push(pair(name, value.clone()));
    }
    if let Some(peak) = facts.peak_bytes {
        let (held, of) = of_limit(peak, limit);
        phrases.push(pair("memory", format!("{held}{of}")));
    }
    for (_, name, seconds) in facts.time.iter().filter(|part| part.2 > 0.0) {
        phrases.push(pair(name, units::seconds(*seconds)));
    }
    phrases.extend(row("slack").map(|(_, value)| pair("slack", value.clone())));
    phrases
}

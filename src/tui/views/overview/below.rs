//! Below the picture, where there is no room beside it: the stage under the cursor in a line, what would help in another.

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use super::side::{Entry, entries};
use crate::{
    tui::{
        model::Model,
        paint::facts::{DEGREES, Facts, of_limit},
        theme::Role,
    },
    units,
};

/// One line or two; `limits`: whether the stage under the cursor sets the pace of all.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, (facts, hue): (&Facts, Style), limits: bool) {
    let mut stage = stage(model, facts, hue);
    if let Some(title) = stage.first_mut().filter(|_| limits) {
        title.push(Span::styled(" limits", model.theme.fg(Role::Warning)));
    }
    let help = help(model);
    let width = usize::from(area.width);
    if area.height >= 2 {
        frame.render_widget(line(stage, width), Rect { height: 1, ..area });
        frame.render_widget(line(help, width), Rect { y: area.y + 1, height: 1, ..area });
    } else if area.height == 1 {
        // Both: the stage and its memory, then what helps.
        let memory = facts.peak_bytes.map(|_| 1 + usize::from(facts.rows.iter().any(|(name, _)| *name == DEGREES)));
        let kept = stage.iter().enumerate().filter(|(at, _)| *at == 0 || Some(*at) == memory);
        let mut both: Vec<Vec<Span<'static>>> = kept.map(|(_, phrase)| phrase.clone()).collect();
        both.extend(help);
        frame.render_widget(line(both, width), area);
    }
}

/// As many phrases as fit, whole.
fn line(phrases: Vec<Vec<Span<'static>>>, width: usize) -> Line<'static> {
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

fn stage(model: &Model, facts: &Facts, hue: Style) -> Vec<Vec<Span<'static>>> {
    let theme = &model.theme;
    let pair = |name: &str, value: String| {
        vec![Span::styled(format!("{name} "), theme.fg(Role::Muted)), Span::styled(value, theme.fg(Role::Text))]
    };
    let mut phrases = vec![vec![Span::styled("█ ", hue), Span::styled(facts.title.clone(), theme.bold(Role::Text))]];
    let row = |wanted: &str| facts.rows.iter().find(|(name, _)| *name == wanted);
    if let Some((name, value)) = row(DEGREES) {
        phrases.push(pair(name, value.clone()));
    }
    let limit = model.shown.as_ref().map_or(f64::INFINITY, |shown| shown.limits.memory_bytes);
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

fn help(model: &Model) -> Vec<Vec<Span<'static>>> {
    let theme = &model.theme;
    let helps: Vec<Entry> = entries(model).into_iter().filter(|entry| entry.gain > 0.0).collect();
    if helps.is_empty() {
        return vec![];
    }
    let fresh = model.would_help.fresh && !model.aside();
    let role = |role: Role| theme.fg(if fresh { role } else { Role::Muted });
    let mut phrases = vec![];
    for (i, entry) in helps.into_iter().enumerate() {
        let head = if i == 0 { "helps  " } else { "" };
        phrases.push(vec![
            Span::styled(head, theme.fg(Role::Muted)),
            Span::styled(format!("{} ", entry.label), role(Role::Text)),
            Span::styled(entry.value, role(if entry.gain > 0.05 { Role::Good } else { Role::Text })),
        ]);
    }
    phrases
}

//! Part below the picture, if nothing stands beside it: a line on the stage under the cursor, and one of suggestions.

use ratatui::{Frame, layout::Rect, style::Style, text::Span};

use super::side::{Entry, entries};
use crate::tui::{
    model::Model,
    paint::{
        facts::{DEGREES, Facts},
        stage_line::{line, stage},
    },
    theme::Role,
};

/// Draws one line or two. `limit` is that on the stage's memory; `limits` is the number of stages that limit alike, if the one under the cursor is one of them.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    (facts, hue): (&Facts, Style),
    (limit, limits): (f64, Option<usize>),
) {
    let mut stage = stage(&model.appearance.theme, facts, hue, limit);
    if let Some((title, alike)) = stage.first_mut().zip(limits) {
        let told = if alike > 1 { format!(" limits, {} alike", alike - 1) } else { " limits".into() };
        title.push(Span::styled(told, model.appearance.theme.fg(Role::Warning)));
    }
    let help = help(model);
    let width = usize::from(area.width);
    if area.height >= 2 {
        frame.render_widget(line(stage, width), Rect { height: 1, ..area });
        frame.render_widget(line(help, width), Rect { y: area.y + 1, height: 1, ..area });
    } else if area.height == 1 {
        // Both on one line: the stage and its memory, then suggestions.
        let memory =
            facts.peak_bytes.map(|_| 1 + usize::from(facts.rows.iter().any(|(name, _)| name.starts_with(DEGREES))));
        let kept = stage.iter().enumerate().filter(|(at, _)| *at == 0 || Some(*at) == memory);
        let mut both: Vec<Vec<Span<'static>>> = kept.map(|(_, phrase)| phrase.clone()).collect();
        both.extend(help);
        frame.render_widget(line(both, width), area);
    }
}

fn help(model: &Model) -> Vec<Vec<Span<'static>>> {
    let theme = &model.appearance.theme;
    if model.aside() {
        // The suggestions are for another plan than the one on the screen.
        return vec![];
    }
    let helps: Vec<Entry> = entries(model, None).into_iter().filter(|entry| entry.gain > 0.0).collect();
    if helps.is_empty() {
        return vec![];
    }
    let fresh = model.planning.would_help.fresh;
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

//! Help and palette: two lists over the one action table.

use ratatui::{
    Frame,
    layout::{Position, Rect},
    text::{Line, Span},
};

use super::{clip, fit, modal, plain, rows};
use crate::tui::{
    action::TABLE,
    model::Model,
    overlay::{help_order, table_texts},
    theme::Role,
    widget::filter::Filter,
};

/// Draws the typed text with its cursor in a line.
pub(super) fn draw_input(frame: &mut Frame<'_>, line: Rect, model: &Model, filter: &Filter, empty: &str) {
    let text = filter.input.value();
    let shown = if text.is_empty() {
        Span::styled(clip(empty, line.width.saturating_sub(2) as usize), model.theme.fg(Role::Muted))
    } else {
        Span::styled(clip(text, line.width.saturating_sub(2) as usize), plain())
    };
    frame.render_widget(Line::from(vec![Span::styled("> ", model.theme.bold(Role::Accent)), shown]), line);
    let at = line.x + 2 + filter.input.visual_cursor() as u16;
    if line.height > 0 {
        frame.set_cursor_position(Position::new(at.min(line.right().saturating_sub(1)), line.y));
    }
}

/// Every key, for where the user is first.
pub(super) fn draw_help(frame: &mut Frame<'_>, area: Rect, model: &Model, filter: &Filter) {
    let inner = modal(frame, area, &model.theme, "Keys", 96, area.height.saturating_sub(2));
    draw_input(frame, rows(inner, 0, 1), model, filter, "type to search, Esc closes");
    let list = rows(inner, 2, inner.height);
    let matches = help_order(filter, &model.keymap, &model.scopes());
    let first = super::scrolled(filter.cursor, list.height as usize, matches.len());
    for (y, (place, &i)) in (list.y..).zip(matches.iter().enumerate().skip(first).take(list.height as usize)) {
        let entry = &TABLE[i];
        let line = Rect { y, height: 1, ..list };
        let keys = model.keymap.all_shown(i);
        let before = place.checked_sub(1).map(|p| TABLE[matches[p]].scope);
        let scope = if before == Some(entry.scope) && place != first { "" } else { entry.scope.title() };
        let spans = vec![
            Span::styled(fit(scope, 17), model.theme.fg(Role::Muted)),
            Span::styled(fit(&keys, 14), model.theme.bold(Role::Accent)),
            Span::styled(fit(entry.title, 19), model.theme.bold(Role::Text)),
            Span::raw(clip(entry.help, (line.width as usize).saturating_sub(50))),
        ];
        frame.render_widget(Line::from(spans), line);
        if place == filter.cursor {
            frame.buffer_mut().set_style(line, model.theme.selected());
        }
    }
}

/// Actions by name; Enter does the selected one.
pub(super) fn draw_palette(frame: &mut Frame<'_>, area: Rect, model: &Model, filter: &Filter) {
    let inner = modal(frame, area, &model.theme, "Command", 72, 18);
    draw_input(frame, rows(inner, 0, 1), model, filter, "what shall be done?");
    let list = rows(inner, 2, inner.height);
    let matches = filter.matches(&table_texts(&model.keymap));
    let first = super::scrolled(filter.cursor, list.height as usize, matches.len());
    for (y, (place, &i)) in (list.y..).zip(matches.iter().enumerate().skip(first).take(list.height as usize)) {
        let line = Rect { y, height: 1, ..list };
        let selected = place == filter.cursor;
        let mut spans = vec![Span::styled(if selected { "▌ " } else { "  " }, model.theme.fg(Role::Focus))];
        spans.extend(palette_entry(i, line.width as usize, model));
        frame.render_widget(Line::from(spans), line);
        if selected {
            frame.buffer_mut().set_style(line, model.theme.selected());
        }
    }
    if matches.is_empty() {
        frame.render_widget(Span::styled("  nothing is called that", model.theme.fg(Role::Muted)), rows(list, 0, 1));
    }
}

fn palette_entry(index: usize, width: usize, model: &Model) -> Vec<Span<'static>> {
    let entry = &TABLE[index];
    let key = model.keymap.shown(index);
    let help = width.saturating_sub(2 + 20 + 10);
    vec![
        Span::styled(fit(entry.title, 20), model.theme.bold(Role::Text)),
        Span::styled(fit(entry.help, help), plain()),
        Span::styled(super::fit_right(&key, 10), model.theme.fg(Role::Accent)),
    ]
}

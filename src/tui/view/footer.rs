//! The last line: the keys that matter where the user is, the last message, or the text that is looked for.

use ratatui::{
    Frame,
    layout::{Position, Rect},
    text::{Line, Span},
};
use tui_input::Input;

use super::{clip, plain};
use crate::cluster::LimitKind;
use crate::tui::{
    action::{Action, Scope, TABLE},
    keymap,
    model::{Model, Tone},
    theme::Role,
};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let theme = &model.theme;
    if let Some((tone, text)) = &model.message {
        let (sign, role) = match tone {
            Tone::Done => ("✓", Role::Good),
            Tone::Refused => ("✗", Role::Bad),
        };
        let text = clip(text, area.width.saturating_sub(4) as usize);
        let line =
            Line::from(vec![Span::styled(format!(" {sign} "), theme.bold(role)), Span::styled(text, theme.fg(role))]);
        frame.render_widget(line, area);
        return;
    }
    let mut spans = vec![Span::raw(" ")];
    let width = |(keys, word): &Hint| keys.chars().count() + word.chars().count() + 3;
    let (mut hints, always) = hints(model);
    // Help and quit are seen at any width; of the others as many as there is room for.
    let mut used = 1 + always.iter().map(width).sum::<usize>();
    let fitting = hints.iter().take_while(|hint| {
        used += width(hint);
        used <= area.width as usize
    });
    hints.truncate(fitting.count());
    for (keys, word) in hints.into_iter().chain(always) {
        spans.push(Span::styled(keys, theme.bold(Role::Accent)));
        spans.push(Span::styled(format!(" {word}  "), theme.fg(Role::Muted)));
    }
    frame.render_widget(Line::from(spans), area);
}

/// A key and its word.
type Hint = (String, String);

/// Keys and words for the bottom line, what closes or stops first, then this place, then everywhere; and those that
/// are always there.
fn hints(model: &Model) -> (Vec<Hint>, Vec<Hint>) {
    let pair = |key: &str, word: &str| (keymap::shown(key), word.to_string());
    if model.editing.is_some() {
        return (vec![pair("enter", "take it"), pair("esc", "leave it")], vec![]);
    }
    let mut hints = vec![];
    if model.planning_shown() {
        hints.push(pair("esc", "stop and keep the best"));
    }
    for (kind, key) in [(LimitKind::Memory, "m"), (LimitKind::Devices, "f")] {
        if let Some(value) = model.fitting(kind) {
            hints.push(pair(key, &format!("{} {}", kind.label(), kind.format(value))));
        }
    }
    let scopes = model.scopes();
    let near = |scope: Scope| scopes.contains(&scope) && scope != Scope::Everywhere;
    let special = model.scopes()[0];
    for entry in TABLE.iter().filter(|e| {
        !e.hint.is_empty() && near(e.scope) && (e.scope == special || model.focus != crate::tui::model::Focus::Panel)
    }) {
        let key = match entry.action {
            Action::Decrease | Action::CursorLeft => "◂▸".to_string(),
            Action::BoundaryBack => "[ ]".to_string(),
            Action::ZoomIn => "+ -".to_string(),
            _ => keymap::shown(entry.keys[0]),
        };
        hints.push((key, entry.hint.to_string()));
    }
    let mut always = vec![];
    for entry in TABLE.iter().filter(|e| !e.hint.is_empty() && e.scope == Scope::Everywhere) {
        let list = if matches!(entry.action, Action::Help | Action::Quit) { &mut always } else { &mut hints };
        list.push((keymap::shown(entry.keys[0]), entry.hint.to_string()));
    }
    (hints, always)
}

/// The text that is looked for, over the last line.
pub(super) fn draw_find(frame: &mut Frame<'_>, area: Rect, model: &Model, input: &Input) {
    let place = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
    let text = format!(" / {}", input.value());
    let at = place.x + 3 + input.visual_cursor() as u16;
    frame.render_widget(ratatui::widgets::Clear, place);
    frame.buffer_mut().set_style(place, model.theme.base());
    let line = Line::from(vec![
        Span::styled(clip(&text, place.width.saturating_sub(30) as usize), plain()),
        Span::styled("   ⏎ keep  Esc close  then n, N", model.theme.fg(Role::Muted)),
    ]);
    frame.render_widget(line, place);
    frame.set_cursor_position(Position::new(at.min(place.right().saturating_sub(1)), place.y));
}

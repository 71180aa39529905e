//! Export form: format, path, and preview.

use ratatui::{
    Frame,
    layout::{Position, Rect},
    text::{Line, Span},
    widgets::Paragraph,
};
use unicode_width::UnicodeWidthStr;

use crate::{
    export::formats,
    source::error::printable,
    tui::{
        export_form::{ExportForm, PREVIEW},
        frame::{draw_position, modal},
        model::Model,
        paint::{
            area::{rows, scrolled},
            text::{clip, fit, wrap},
        },
        theme::Role,
    },
    units,
};

/// Rows reserved below the list of formats: path, message about it, and a short preview.
const BELOW: usize = 7;
/// Width of a format's title and the gap behind it, cells.
const TITLE: usize = 20;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, form: &ExportForm) {
    let theme = &model.appearance.theme;
    let inner = modal(frame, area, theme, "Export", 100, area.height.saturating_sub(2).min(34));
    let width = inner.width as usize;
    let formats: Vec<_> = formats::of(&form.source.shown.workload).collect();
    let listed = formats.len().min(usize::from(inner.height).saturating_sub(BELOW).max(1));
    let chosen = formats.iter().position(|format| *format == form.format).unwrap_or(0);
    let first = scrolled(chosen, listed, formats.len());
    for (y, &format) in (0..).zip(&formats[first..first + listed]) {
        let chosen = format == form.format;
        let style = if chosen { theme.bold(Role::Text) } else { theme.fg(Role::Text) };
        let line = Line::from(vec![
            Span::styled(if chosen { "● " } else { "○ " }, theme.fg(Role::Accent)),
            Span::styled(fit(format.title, TITLE), style),
            Span::styled(clip(format.help, width.saturating_sub(TITLE + 2)), theme.fg(Role::Muted)),
        ]);
        frame.render_widget(line, rows(inner, y, 1));
    }
    let below = listed as u16;
    if listed < formats.len() {
        let (up, down) = (if first > 0 { "↑" } else { " " }, if first + listed < formats.len() { "↓" } else { " " });
        let mark = format!("{up} {}–{} of {} {down}", first + 1, first + listed, formats.len());
        let width = (mark.chars().count() as u16).min(inner.width);
        let place = Rect { x: inner.right() - width, width, ..rows(inner, below, 1) };
        frame.render_widget(Span::styled(mark, theme.fg(Role::Muted)), place);
    }
    let below = below + u16::from(listed < formats.len());
    let line = rows(inner, below, 1);
    let field = width.saturating_sub(5);
    let scroll = form.path.visual_scroll(field.saturating_sub(1));
    let text: String = form.path.value().chars().skip(scroll).take(field).collect();
    frame.render_widget(
        Line::from(vec![Span::styled("file ", theme.fg(Role::Muted)), Span::styled(text, theme.bold(Role::Text))]),
        line,
    );
    let at = line.x + 5 + (form.path.visual_cursor().saturating_sub(scroll)) as u16;
    frame.set_cursor_position(Position::new(at.min(line.right().saturating_sub(1)), line.y));
    let (text, role) = if let Some(error) = &form.error {
        (format!("✗ {error}"), Role::Bad)
    } else if form.overwrite {
        (format!("! {} exists: Enter replaces it, Esc keeps it", printable(form.path.value())), Role::Warning)
    } else if let Some(warning) = &form.warning {
        (format!("! {warning}"), Role::Warning)
    } else if form.format.help.width() > width.saturating_sub(TITLE + 2) {
        // Show in full a help text that is cut in the list.
        (form.format.help.to_string(), Role::Muted)
    } else {
        (String::new(), Role::Muted)
    };
    let told: Vec<Line<'_>> = wrap(&text, width).into_iter().map(|l| Line::styled(l, theme.fg(role))).collect();
    frame.render_widget(Paragraph::new(told), rows(inner, below + 1, 2));
    let size = match form.bytes {
        Some(bytes) => format!(", {} in all", units::bytes(bytes as f64)),
        None if form.error.is_some() => String::new(),
        None => ", counting its lines …".into(),
    };
    let told = clip(&format!(" preview{size} "), width.saturating_sub(2));
    let rule = "─".repeat(width.saturating_sub(1 + told.width()));
    let rule = Line::from(vec![
        Span::styled("─", theme.fg(Role::Border)),
        Span::styled(told, theme.fg(Role::Muted)),
        Span::styled(rule, theme.fg(Role::Border)),
    ]);
    frame.render_widget(rule, rows(inner, below + 3, 1));
    let list = rows(inner, below + 4, inner.height);
    let preview: Vec<Line<'_>> = form
        .preview
        .iter()
        .skip(form.first_line)
        .take(list.height as usize)
        .map(|l| Line::styled(clip(&printable_line(l), width), theme.fg(Role::Muted)))
        .collect();
    frame.render_widget(Paragraph::new(preview), list);
    // The preview holds only the beginning of a long text.
    let whole = form.bytes.is_some_and(|bytes| bytes < PREVIEW as u64);
    let seen = (form.first_line, list.height as usize, form.preview.len());
    draw_position(frame, inner, theme, seen, if whole { "lines" } else { "of the first lines" });
}

/// Line that is safe to print, with its indent.
fn printable_line(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    " ".repeat(indent.min(40)) + &printable(line)
}

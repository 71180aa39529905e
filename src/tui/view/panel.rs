//! The left panel: planners, limits and options, all that can be set.

use ratatui::{
    Frame,
    layout::{Position, Rect},
    style::Style,
    text::{Line, Span},
    widgets::{Clear, Paragraph},
};

use super::{bordered, clip, fit, fit_right, plain, wrap};
use crate::{
    cluster::LimitKind,
    planner::OptionValue,
    tui::{
        model::{Focus, Hit, Model, PanelRow},
        theme::Role,
    },
};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {
    model.hits.push((area, Hit::PanelArea));
    let focused = model.focus == Focus::Panel;
    let title = Span::styled(" Planner ", model.theme.bold(if focused { Role::Focus } else { Role::Text }));
    frame.render_widget(bordered(&model.theme, focused).title(title), area);
    let lines = layout(model);
    let inner = Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height.saturating_sub(2) };
    let help = help_lines(model, inner.width as usize - 2);
    // The help of the selected row stands at the bottom, if everything else has room.
    let room = (inner.height as usize).saturating_sub(lines.len()) > help.len();
    let rows = inner.height as usize - if room { help.len() } else { 0 };
    let selected = lines.iter().position(|l| matches!(l, Item::Row(i, _) if *i == model.panel_cursor)).unwrap_or(0);
    let first = (selected + 1).saturating_sub(rows.saturating_sub(1)).min(lines.len().saturating_sub(rows));
    for (y, item) in (inner.y..).zip(lines.iter().skip(first).take(rows)) {
        let line = Rect { y, height: 1, ..inner };
        match item {
            Item::Title(title) => {
                draw_title(frame, Rect { x: area.x, width: area.width, ..line }, model, title, focused);
            }
            Item::Row(i, row) => draw_row(frame, line, model, *i, *row),
        }
    }
    if room {
        for (y, text) in (inner.bottom() - help.len() as u16..).zip(&help) {
            let place = Rect { x: inner.x + 1, y, width: inner.width - 2, height: 1 };
            frame.render_widget(Span::styled(text.clone(), model.theme.fg(Role::Muted)), place);
        }
    }
}

/// A line of the panel.
enum Item {
    Title(&'static str),
    Row(usize, PanelRow),
}

fn layout(model: &Model) -> Vec<Item> {
    let mut lines = vec![];
    let mut section = "Planner";
    for (i, row) in model.panel_rows().into_iter().enumerate() {
        let title = match row {
            PanelRow::Planner(_) => "Planner",
            PanelRow::Limit(_) => "Limits",
            PanelRow::Option(_) => "Options",
        };
        if title != section {
            section = title;
            lines.push(Item::Title(title));
        }
        lines.push(Item::Row(i, row));
    }
    lines
}

fn help_lines(model: &Model, width: usize) -> Vec<String> {
    let text = match model.panel_row() {
        Some(PanelRow::Planner(i)) => model.planners[i].info().summary.to_string(),
        Some(PanelRow::Limit(kind)) => kind.help().to_string(),
        Some(PanelRow::Option(i)) => {
            let spec = &model.specs()[i];
            let value = model.options[model.planner].get(spec.name).unwrap_or_else(|| spec.default_value());
            let choice = match (spec.kind, value) {
                (crate::planner::OptionKind::Choice { choices, .. }, OptionValue::Choice(now)) => {
                    choices.iter().find(|c| c.0 == now).map(|c| format!(" {}: {}", c.0, c.1))
                }
                _ => None,
            };
            format!("{}{}", spec.help, choice.map(|c| format!(".{c}")).unwrap_or_default())
        }
        None => String::new(),
    };
    wrap(&text, width)
}

fn draw_title(frame: &mut Frame<'_>, line: Rect, model: &Model, title: &str, focused: bool) {
    let border = model.theme.fg(if focused { Role::Focus } else { Role::Border });
    let rule = "─".repeat((line.width as usize).saturating_sub(title.len() + 5));
    let spans = vec![
        Span::styled("├─", border),
        Span::styled(format!(" {title} "), model.theme.bold(if focused { Role::Focus } else { Role::Text })),
        Span::styled(rule, border),
        Span::styled("┤", border),
    ];
    frame.render_widget(Line::from(spans), line);
}

fn draw_row(frame: &mut Frame<'_>, line: Rect, model: &mut Model, index: usize, row: PanelRow) {
    let selected = index == model.panel_cursor && model.focus == Focus::Panel;
    let sign = if selected { "▌" } else { " " };
    let width = line.width as usize;
    let theme = &model.theme;
    model.hits.push((line, Hit::Panel(row)));
    let (spans, steps): (Vec<Span<'static>>, bool) = match row {
        PanelRow::Planner(i) => {
            let planner = model.planners[i];
            let able = model.refusals[i].is_none();
            let style = match (i == model.planner, able) {
                (true, _) => theme.bold(Role::Text),
                (false, true) => theme.fg(Role::Text),
                (false, false) => theme.fg(Role::Muted),
            };
            let mark = if i == model.planner { "● " } else { "○ " };
            let note = if able { "" } else { " ✗" };
            let name = clip(planner.info().name, width.saturating_sub(5));
            (vec![Span::styled(format!("{mark}{name}{note}"), style)], false)
        }
        PanelRow::Limit(kind) => (limit(model, kind, width), true),
        PanelRow::Option(i) => {
            let spec = &model.specs()[i];
            let value = model.options[model.planner].get(spec.name).unwrap_or_else(|| spec.default_value());
            let changed = value != spec.default_value();
            let text = match value {
                OptionValue::Flag(true) => "[x]".to_string(),
                OptionValue::Flag(false) => "[ ]".to_string(),
                OptionValue::File(path) if path.is_empty() => "none".to_string(),
                other => other.text(),
            };
            (pair(model, spec.label, &text, changed, width), true)
        }
    };
    let mut all = vec![Span::styled(sign, theme.fg(Role::Focus))];
    all.extend(spans);
    frame.render_widget(Line::from(all), line);
    if steps && !model.editing.as_ref().is_some_and(|e| row == PanelRow::Limit(e.kind)) {
        // The arrows at the right end, for the mouse and as a sign of what the keys do.
        let style = if selected { model.theme.bold(Role::Focus) } else { model.theme.fg(Role::Border) };
        let less = Rect { x: line.right().saturating_sub(4), width: 1, ..line };
        let more = Rect { x: line.right().saturating_sub(2), width: 1, ..line };
        frame.render_widget(Span::styled("◂", style), less);
        frame.render_widget(Span::styled("▸", style), more);
        model.hits.push((less, Hit::Step(row, false)));
        model.hits.push((more, Hit::Step(row, true)));
    }
    if selected {
        frame.buffer_mut().set_style(line, model.theme.selected());
    }
    place_cursor(frame, line, model, row);
}

/// A label and its value at the right; what was changed is marked.
fn pair(model: &Model, label: &str, value: &str, changed: bool, width: usize) -> Vec<Span<'static>> {
    let theme = &model.theme;
    let space = width.saturating_sub(6);
    let value = clip(value, space.saturating_sub(8));
    let label_width = space.saturating_sub(value.chars().count() + 1);
    let style = if changed { theme.bold(Role::Accent) } else { theme.bold(Role::Text) };
    vec![Span::styled(fit(label, label_width), plain()), Span::raw(" "), Span::styled(value, style)]
}

fn limit(model: &Model, kind: LimitKind, width: usize) -> Vec<Span<'static>> {
    if let Some(editing) = model.editing.as_ref().filter(|e| e.kind == kind) {
        let field = width.saturating_sub(kind.label().len() + 4);
        let scroll = editing.input.visual_scroll(field.saturating_sub(1));
        let text: String = editing.input.value().chars().skip(scroll).take(field).collect();
        let style = if editing.error.is_some() { model.theme.fg(Role::Bad) } else { model.theme.fg(Role::Text) };
        return vec![
            Span::styled(format!("{} ", kind.label()), plain()),
            Span::styled("[", model.theme.fg(Role::Focus)),
            Span::styled(fit(&text, field), style),
            Span::styled("]", model.theme.fg(Role::Focus)),
        ];
    }
    let value = kind.format(model.limits.get(kind));
    let changed = model.limits.get(kind) != model.first_limits.get(kind);
    pair(model, kind.label(), &value, changed, width)
}

fn place_cursor(frame: &mut Frame<'_>, line: Rect, model: &Model, row: PanelRow) {
    if let Some(editing) = model.editing.as_ref().filter(|e| row == PanelRow::Limit(e.kind)) {
        let label = editing.kind.label().len();
        let field = (line.width as usize).saturating_sub(label + 4);
        let scroll = editing.input.visual_scroll(field.saturating_sub(1));
        let at = 3 + label + editing.input.visual_cursor().saturating_sub(scroll);
        frame.set_cursor_position(Position::new((line.x + at as u16).min(line.right().saturating_sub(1)), line.y));
    }
}

/// Why what was typed cannot be taken, beside the field.
pub(super) fn draw_error(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let Some(editing) = &model.editing else { return };
    let Some(error) = &editing.error else { return };
    let row = model.hits.iter().find(|(_, hit)| *hit == Hit::Panel(PanelRow::Limit(editing.kind)));
    let Some((line, _)) = row else { return };
    let width = area.right().saturating_sub(line.right() + 1).min(56);
    let lines = wrap(error, width.saturating_sub(4) as usize);
    let place = Rect { x: line.right() + 1, y: line.y.saturating_sub(1), width, height: lines.len() as u16 + 2 }
        .intersection(area);
    frame.render_widget(Clear, place);
    let style: Style = model.theme.base().fg(model.theme.color(Role::Bad));
    frame.buffer_mut().set_style(place, style);
    let title = fit_right(" ✗ not taken ", 13);
    let block =
        bordered(&model.theme, false).border_style(style).title(Span::styled(title, model.theme.bold(Role::Bad)));
    let inner = super::inside(place);
    frame.render_widget(block, place);
    frame.render_widget(Paragraph::new(lines.into_iter().map(Line::from).collect::<Vec<_>>()), inner);
}

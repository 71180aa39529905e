//! Table of plans: titles to sort by, groups by measure, a row for each plan and each planner without one.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

use super::{
    columns::{Columns, cell, head_of, meter},
    keys::HERE,
    pictures,
    state::{Answer, Key, Row, Terms},
};
use crate::{
    planner::Status,
    study::columns::{self, Column},
    tui::{
        action::Action,
        marks::Marks,
        model::{Focus, Hit, Model},
        paint::{
            area::{rows, scrolled},
            phrases::whole,
            shades::Shades,
            text::{clip, fit, fit_right, plain},
        },
        theme::{Role, Theme},
        widget::scrollbar::scrollbar,
    },
};

/// Cells before a name: selection, mark, sign, blank.
pub(super) const GUTTER: usize = 4;
/// Minimum and maximum width of a name, cells.
pub(super) const NAME: (usize, usize) = (18, 46);
/// Sign of the plan that the other views show.
pub(super) const SHOWN: &str = " ◂";

/// Line of the table.
enum TableLine {
    /// Measure of the plans below.
    Title(String),
    /// Index of a row.
    Row(usize),
}

/// Height of the whole table with its titles and a blank line, lines.
pub(super) fn height(model: &Model, all: &[Row]) -> u16 {
    table_lines(model, all).len() as u16 + 2
}

/// Draws the table with the rows around the cursor.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    marks: &mut Marks,
    (all, cursor): (&[Row], usize),
) {
    let theme = &model.appearance.theme;
    let columns = Columns::new(model, all, area.width as usize);
    draw_titles(frame, rows(area, 0, 1), model, marks, &columns);
    let body = rows(area, 1, area.height.saturating_sub(1));
    let lines = table_lines(model, all);
    let at = lines.iter().position(|line| matches!(line, TableLine::Row(row) if *row == cursor)).unwrap_or(0);
    let visible = body.height as usize;
    let first = scrolled(at, visible, lines.len());
    if lines.len() < visible && !columns.hidden.is_empty() {
        let keys =
            [Action::SortPrevious, Action::SortNext].map(|action| model.appearance.keymap.of_action_in(HERE, action));
        let titles: Vec<&str> = columns.hidden.iter().map(|column| column.title()).collect();
        let keys = keys.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let text = clip(
            &format!("    {keys} sorts by other columns and shows them: {}", titles.join(", ")),
            area.width.into(),
        );
        frame.render_widget(Span::styled(text, theme.fg(Role::Muted)), rows(body, body.height - 1, 1));
    }
    scrollbar(frame, body, theme, (first, visible, lines.len()));
    let fastest = model.fastest(all);
    let shown = model.shown_key();
    for (y, line) in (body.y..).zip(lines.iter().skip(first).take(visible)) {
        let place = Rect { y, height: 1, ..body };
        let row = match line {
            TableLine::Title(title) => {
                let text = clip(title, body.width as usize);
                frame.render_widget(Span::styled(text, theme.fg(Role::Accent)), place);
                continue;
            }
            TableLine::Row(row) => *row,
        };
        let selected = row == cursor;
        let mut spans = vec![Span::styled(if selected { "▌" } else { " " }, theme.fg(Role::Focus))];
        spans.extend(row_spans(model, all[row], &columns, &fastest, shown, theme));
        frame.render_widget(Line::from(spans), place);
        if selected && model.focus == Focus::View {
            frame.buffer_mut().set_style(place, theme.selected());
        }
        marks.hits.push((place, Hit::ListRow(row)));
    }
}

/// Rows, with titles between them if there are several objectives.
fn table_lines(model: &Model, all: &[Row]) -> Vec<TableLine> {
    let entry = |row: &Row| match row {
        Row::Plan(key) => model.compared(*key).map(|compared| &compared.entry),
        _ => None,
    };
    let group = |row: &Row| entry(row).and_then(columns::group);
    let mut groups: Vec<&str> = all.iter().filter_map(group).collect();
    groups.dedup();
    let mut lines = vec![];
    let mut last = None;
    for (place, row) in all.iter().enumerate() {
        if let Some(name) = group(row).filter(|name| groups.len() > 1 && last != Some(*name)) {
            last = Some(name);
            let own = all.iter().filter(|row| group(row) == Some(name)).filter_map(entry);
            lines.extend(columns::group_title(own).map(TableLine::Title));
        }
        lines.push(TableLine::Row(place));
    }
    lines
}

fn draw_titles(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, columns: &Columns) {
    let theme = &model.appearance.theme;
    let mut x = area.x + (GUTTER + columns.name + columns.strip + columns.bar) as u16;
    let mut titles = fit("    plan", GUTTER + columns.name);
    if columns.strip > 0 {
        titles += &fit("  stages", columns.strip);
    }
    if columns.bar > 0 {
        titles += &match columns.bar {
            24.. => fit("  time against the best", columns.bar),
            narrow => fit_right("time vs best", narrow),
        };
    }
    frame.render_widget(Span::styled(titles, theme.fg(Role::Muted)), area);
    for &(column, width) in &columns.columns {
        let width = width + columns.meter(column);
        let place = Rect { x, width: (width as u16).min(area.right().saturating_sub(x)), ..area };
        let sorted = column == model.views.compare.sort;
        let sign = match (sorted, model.views.compare.reversed) {
            (false, _) => "",
            (true, false) => " ▴",
            (true, true) => " ▾",
        };
        let style = if sorted { theme.bold(Role::Text) } else { theme.fg(Role::Muted) };
        let text = fit_right(&format!("{}{sign}", head_of(column, columns.each)), width);
        frame.render_widget(Span::styled(text, style), place);
        marks.hits.push((place, Hit::Sort(column)));
        x += width as u16;
    }
}

/// Row of a plan, or of a planner without one.
fn row_spans(
    model: &Model,
    row: Row,
    columns: &Columns,
    fastest: &[Key],
    shown: Option<Key>,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let name_of = |planner: usize| model.session.planners[planner].info().name;
    let rest =
        columns.name + columns.strip + columns.bar + columns.columns.iter().map(|(_, width)| width).sum::<usize>();
    let line = |sign: &'static str, text: String, role: Role| {
        vec![Span::styled(format!(" {sign} "), theme.bold(role)), Span::styled(clip(&text, rest), theme.fg(role))]
    };
    match row {
        Row::Plan(key) => plan_spans(model, key, columns, fastest, shown, theme),
        Row::Waiting(planner) => {
            let sign = if model.views.compare.queue.first() == Some(&planner) { "…" } else { " " };
            let doing = if sign == " " { "waits" } else { "plans" };
            line(sign, format!("{}  {doing}", name_of(planner)), Role::Muted)
        }
        Row::Failed(planner) => {
            let why = match model.views.compare.answer(planner) {
                Some(Answer::Failed(why)) => why.as_str(),
                _ => "",
            };
            line("✗", format!("{}  {why}", name_of(planner)), Role::Bad)
        }
        Row::Folded => {
            let sign = if model.views.compare.unfolded { "▾" } else { "▸" };
            let text = match model.compare_refused() {
                1 => "1 planner cannot plan this workload".into(),
                count => format!("{count} planners cannot plan this workload"),
            };
            line(sign, text, Role::Muted)
        }
        Row::Refused(planner) => line(" ", format!("  {}: {}", name_of(planner), refusal(model, planner)), Role::Muted),
    }
}

/// Row of a plan, from left to right.
fn plan_spans(
    model: &Model,
    key: Key,
    columns: &Columns,
    fastest: &[Key],
    shown: Option<Key>,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let Some(compared) = model.compared(key) else { return vec![] };
    let terms = model.terms(key);
    let valid = compared.entry.value().is_some();
    let (sign, role) = match (valid, terms) {
        (false, _) => ("✗", Role::Bad),
        (_, Terms::Old) => ("○", Role::Muted),
        (_, Terms::OtherLimits) => ("≠", Role::Warning),
        _ if compared.overflows() => ("!", Role::Bad),
        _ if fastest.contains(&key) => ("★", Role::Good),
        _ => (" ", Role::Text),
    };
    let faded = terms == Terms::Old;
    let text = if faded { theme.fg(Role::Muted) } else { plain() };
    let mark = if model.views.compare.marked.contains(&key) { "◆" } else { " " };
    let tail = if shown == Some(key) { SHOWN } else { "" };
    let name = clip(model.compared_name(key), columns.name.saturating_sub(tail.width()));
    let name_style = if matches!(key, Key::Pin(_)) || faded { text } else { theme.bold(Role::Text) };
    let mut spans = vec![
        Span::styled(mark, theme.bold(Role::Accent)),
        Span::styled(sign, theme.bold(role)),
        Span::raw(" "),
        Span::styled(fit(&format!("{name}{tail}"), columns.name), name_style),
    ];
    if !valid && compared.entry.simulated.is_none() {
        let why = match compared.entry.status {
            // The planner's own explanation.
            Some(Status::Infeasible) if compared.entry.plan.is_none() => {
                compared.entry.remarks.first().map_or("no plan keeps the limits", String::as_str)
            }
            Some(Status::Cancelled) => "stopped before it had a plan",
            _ => "the plan is not valid",
        };
        let left = columns.columns.iter().map(|(_, width)| width).sum::<usize>() + columns.strip + columns.bar;
        spans.push(Span::styled(format!("  {}", whole(why, left.saturating_sub(2))), theme.fg(Role::Muted)));
        return spans;
    }
    if columns.strip > 0 {
        spans.extend(pictures::strip(compared, columns.strip, &Shades::new(theme, model.appearance.depth)));
    }
    if columns.bar > 0 {
        spans.extend(pictures::against_best(&compared.entry, columns, fastest.contains(&key), theme));
    }
    for &(column, width) in &columns.columns {
        if columns.meter(column) > 0 {
            spans.extend(meter(column, compared, columns, theme));
        }
        let over = column == Column::Memory && compared.overflows();
        let style = if over { theme.bold(Role::Bad) } else { text };
        spans.push(Span::styled(fit_right(&cell(column, compared, columns.each), width), style));
    }
    spans
}

/// Reason why a planner has no plan of this workload.
pub(super) fn refusal(model: &Model, planner: usize) -> &str {
    match (&model.session.refusals[planner], model.views.compare.answer(planner)) {
        (Some(reason), _) | (None, Some(Answer::Refused(reason))) => reason,
        _ => "",
    }
}

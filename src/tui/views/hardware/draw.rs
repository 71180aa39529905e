//! Table of hardware by number of devices: speed, days and cost, layout of each cell.

use ratatui::{Frame, layout::Rect, text::Span};

use super::state::{CellFigures, State};
use crate::{
    plan::document::CostPart,
    tui::{
        marks::Marks,
        model::{Focus, Hit, Model},
        paint::{
            area::{rows, scrolled},
            phrases::flow,
            text::{clip, fit, fit_right, wrap},
        },
        theme::Role,
    },
    units,
};

/// Width of the names of the hardware, cells.
const NAME: u16 = 12;
/// Width of a cell, at least.
const CELL: u16 = 19;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    let theme = &model.appearance.theme;
    let state = &model.views.hardware;
    let grid = &state.grid;
    let Some(profile) = model.session.workload.training().filter(|_| !grid.rows.is_empty()) else {
        let told = "hardware is compared for a model to be trained";
        frame.render_widget(Span::styled(told, theme.fg(Role::Muted)), rows(area, 0, 1));
        return;
    };
    let muted = |text: String| vec![Span::styled(text, theme.fg(Role::Muted))];
    let title = vec![
        vec![Span::styled("Hardware by devices ", theme.bold(Role::Text))],
        muted("tokens/s a device, MFU;".into()),
        muted(format!("days and cost for {} tokens", units::count_short(state.tokens))),
        muted("(`:tokens 2T`);".into()),
        muted(format!("batch {} of {} tokens", model.session.limits.samples(), profile.sequence)),
    ];
    let title = flow(title, " ", area.width.into(), 1).into_iter().next().unwrap_or_default();
    frame.render_widget(title, rows(area, 0, 1));
    let visible = usize::from(area.width.saturating_sub(NAME) / CELL).clamp(1, grid.columns.len());
    let width = (area.width.saturating_sub(NAME) / visible as u16).min(CELL + 4);
    let first = scrolled(state.cursor.1, visible, grid.columns.len());
    let head: String = grid
        .columns
        .iter()
        .skip(first)
        .take(visible)
        .map(|count| fit(&format!("{count} devices"), width.into()))
        .collect();
    let more = grid.columns.len() - visible;
    let more = if more > 0 { format!("◂▸ {more} more") } else { String::new() };
    let title_line = rows(area, 1, 1);
    frame.render_widget(Span::styled(fit_right(&more, title_line.width.into()), theme.fg(Role::Muted)), title_line);
    let line = Rect { x: area.x + NAME, width: area.width.saturating_sub(NAME), ..rows(area, 2, 1) };
    frame.render_widget(Span::styled(head, theme.fg(Role::Muted)), line);
    // Speed, days and layout, and a blank line, as far as there is room.
    let room = usize::from(area.height.saturating_sub(5));
    let each = (room / grid.rows.len()).clamp(1, 4);
    let shown = (room / each).max(1);
    let top = scrolled(state.cursor.0, shown, grid.rows.len());
    for (place, (row, id)) in grid.rows.iter().enumerate().skip(top).take(shown).enumerate() {
        let y = 3 + (place * each) as u16;
        let here = model.session.dials.iter().any(|dial| dial.id == "hardware" && dial.value == *id);
        let style = if here { theme.bold(Role::Text) } else { theme.fg(Role::Text) };
        frame.render_widget(Span::styled(clip(id, NAME.into()), style), rows(area, y, 1));
        let price = model.session.prices.get(*id);
        if let (Some(price), true) = (price, each > 1) {
            frame.render_widget(
                Span::styled(format!("{}/h", units::money(*price)), theme.fg(Role::Muted)),
                rows(area, y + 1, 1),
            );
        }
        for (at, (column, &devices)) in grid.columns.iter().enumerate().skip(first).take(visible).enumerate() {
            let lines = lines(state, (row, column), devices, price.copied());
            let x = area.x + NAME + at as u16 * width;
            let place = Rect { x, y: area.y + y, width: width.saturating_sub(1), height: each.min(3) as u16 }
                .intersection(area);
            let selected = state.cursor == (row, column);
            for (i, (text, role)) in lines.into_iter().take(place.height.into()).enumerate() {
                let style = if i == 0 && role == Role::Text { theme.bold(role) } else { theme.fg(role) };
                let line = Rect { y: place.y + i as u16, height: 1, ..place };
                frame.render_widget(Span::styled(whole(&text, place.width.into()), style), line);
            }
            if selected {
                let style = if model.focus == Focus::View {
                    theme.selected().fg(theme.color(Role::Text))
                } else {
                    theme.fg(Role::Text)
                };
                frame.buffer_mut().set_style(place, style);
            }
            marks.hits.push((place, Hit::ListRow(row * grid.columns.len() + column)));
        }
    }
    let told: Vec<String> = wrap(&best(model), area.width.into()).into_iter().take(2).collect();
    for (y, text) in (0..).zip(told) {
        let line = rows(area, area.height.saturating_sub(2) + y, 1);
        frame.render_widget(Span::styled(text, theme.fg(Role::Text)), line);
    }
}

/// As many whole words of a text as fit, in a width.
fn whole(text: &str, width: usize) -> String {
    let mut end = text;
    while end.chars().count() > width {
        end = end.rsplit_once(' ').map_or("", |(words, _)| words);
    }
    fit(end, width)
}

/// Days and cost of a cell.
fn cost(own: &CellFigures, devices: u32, price: Option<f64>, tokens: f64) -> Option<CostPart> {
    CostPart::of(price, Some(tokens), own.figures.tokens_per_s, devices.into())
}

/// Lines of a cell: speed, days and cost, layout.
fn lines(state: &State, (row, column): (usize, usize), devices: u32, price: Option<f64>) -> Vec<(String, Role)> {
    match state.grid.cell(row, column) {
        None => vec![("…".into(), Role::Muted)],
        Some(Err(reason)) => vec![(format!("✗ {reason}"), Role::Bad)],
        Some(Ok(own)) => {
            // The mark for a figure without evidence must not be cut: rates of three digits have no fraction.
            let rate = own.figures.per_device();
            let rate = if rate >= 100.0 { format!("{rate:.0}") } else { units::number(rate) };
            let cost = cost(own, devices, price, state.tokens);
            let days = cost.and_then(|cost| cost.days).map(|days| format!("{} d", units::number(days)));
            let total = cost.and_then(|cost| cost.total).map(|total| format!("  {}", units::money(total)));
            let late = cost.is_some_and(|cost| state.late(cost.days));
            let role = if late { Role::Muted } else { Role::Text };
            let late = if late { "  late" } else { "" };
            vec![
                (format!("{rate} tok/s {}{}", own.figures.mfu, if own.figures.untested { " ?" } else { "" }), role),
                (format!("{}{}{late}", days.unwrap_or_default(), total.unwrap_or_default()), role),
                (own.layout.clone(), Role::Muted),
            ]
        }
    }
}

/// Fastest and cheapest cells so far, and how many are still to be planned.
fn best(model: &Model) -> String {
    let state = &model.views.hardware;
    let grid = &state.grid;
    let mut fastest: Option<(f64, String)> = None;
    let mut cheapest: Option<(f64, String)> = None;
    for (row, id) in grid.rows.iter().enumerate() {
        let price = model.session.prices.get(*id).copied();
        for (column, &devices) in grid.columns.iter().enumerate() {
            let Some(Ok(own)) = grid.cell(row, column) else { continue };
            let Some(cost) = cost(own, devices, price, state.tokens) else { continue };
            let name = format!("{devices} {id}");
            if let Some(days) = cost.days.filter(|days| fastest.as_ref().is_none_or(|best| *days < best.0)) {
                fastest = Some((days, name.clone()));
            }
            if state.late(cost.days) {
                continue;
            }
            if let Some(total) = cost.total.filter(|total| cheapest.as_ref().is_none_or(|best| *total < best.0)) {
                cheapest = Some((total, name));
            }
        }
    }
    let in_time = state.within.map_or(String::new(), |days| format!(" within {days} days"));
    let untested = grid.cells.iter().flatten().any(|cell| cell.as_ref().is_ok_and(|own| own.figures.untested));
    let left = grid.cells.iter().filter(|cell| cell.is_none()).count();
    let mut told = vec![];
    told.extend(fastest.map(|(days, name)| format!("fastest: {name}, {} days", units::number(days))));
    match cheapest {
        Some((total, name)) => {
            told.push(format!("cheapest{in_time} of those with a price: {name}, {}", units::money(total)));
        }
        None => {
            told.push("`:price 2.40` gives the hardware in force a price an hour, `:price b200 4.50` another".into());
        }
    }
    let own = model.session.workload.training().map_or(0.0, |profile| profile.accelerator.memory_bytes);
    let limit = model.session.limits.memory_limit();
    told.extend((limit < 0.999 * own).then(|| "each with its own memory, not the limit at the left".to_string()));
    told.extend(untested.then(|| "? no published run is like it".to_string()));
    told.extend((left > 0).then(|| format!("{left} still to plan")));
    told.join("; ")
}

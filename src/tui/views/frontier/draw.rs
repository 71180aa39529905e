//! Parts of the view.
//!
//! ```text
//! Time against memory  20 layouts worth having                   ● TP 4  ● TP 8  ○ recompute  ( ) shown
//!   +50 %  21.6 s   ○┄┄┄┄┄┄┄┐
//!    best  14.4 s           ┆        (●)          │ 80 GiB
//!         memory, GiB   40        60        80
//! table of the layouts, and what differs between two of them
//! ```

use ratatui::{
    Frame,
    layout::Rect,
    style::{Color, Style},
    text::{Line, Span},
};

use super::{
    beside, chart, points,
    points::Point,
    table::{self, differences},
};
use crate::{
    tui::{
        marks::Marks,
        model::Model,
        paint::{area::rows, shades::Shades, text::wrap},
        shown::ShownRun,
        theme::Role,
    },
    units,
};

/// Rows of the chart: at least, and at most.
const CHART: (u16, u16) = (6, 22);

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, shown: &ShownRun) {
    let theme = &model.appearance.theme;
    let points = points::points(model);
    if points.is_empty() {
        let told = "layouts are compared for a model to be trained; `:compare` compares planners";
        frame.render_widget(Span::styled(told, theme.fg(Role::Muted)), rows(area, 0, 1));
        return;
    }
    let at = model.views.frontier.cursor.min(points.len() - 1);
    let shades = Shades::new(theme, model.appearance.depth);
    frame.render_widget(title(model, &points, &shades, area.width.into()), rows(area, 0, 1));
    if let Some(pair) = &model.views.frontier.beside {
        beside::draw(frame, rows(area, 1, area.height.saturating_sub(1)), model, pair, &shades);
        return;
    }
    // Two lines below the table tell what differs.
    let told = differences(&points, at, &model.views.frontier.marked);
    let told: Vec<String> = wrap(&told, area.width.into()).into_iter().take(2).collect();
    let between = u16::from(area.height >= 24);
    let room = area.height.saturating_sub(1 + 2 + between);
    let chart = (room / 2).clamp(CHART.0.min(room), CHART.1);
    let place = rows(area, 1 + between, chart);
    chart::draw(frame.buffer_mut(), place, (&points, at), shown.limits.memory_limit(), (theme, &shades));
    let table = rows(area, 1 + between + chart, room.saturating_sub(chart));
    table::draw(frame, table, model, marks, (&points, at), &shades, shown.limits.memory_limit());
    for (y, text) in (0..).zip(told) {
        let line = rows(area, area.height.saturating_sub(2) + y, 1);
        frame.render_widget(Span::styled(text, theme.fg(Role::Text)), line);
    }
}

/// Title with the legend of what is there.
fn title(model: &Model, points: &[Point], shades: &Shades, width: usize) -> Line<'static> {
    let theme = &model.appearance.theme;
    let muted = theme.fg(Role::Muted);
    let mut spans = vec![
        Span::styled("Time against memory  ", theme.bold(Role::Text)),
        Span::styled(units::counted(points.len(), "layout"), muted),
    ];
    if let Some((axis, value)) = model.views.frontier.only {
        spans.push(Span::styled(format!(", only {} {value}", axis.label()), theme.fg(Role::Accent)));
    }
    let mut degrees: Vec<u32> = points.iter().map(|point| point.configuration.layout.tensor).collect();
    degrees.sort_unstable();
    degrees.dedup();
    let mut legend = vec![];
    for degree in degrees {
        legend.push(Span::styled("● ", Style::new().fg(color(shades, degree))));
        legend.push(Span::styled(format!("TP {degree}  "), muted));
    }
    if points.iter().any(Point::repeats) {
        legend.push(Span::styled("○ recompute  ", muted));
    }
    legend.push(Span::styled("( ) shown", muted));
    let used: usize = spans.iter().chain(&legend).map(Span::width).sum();
    if used + 2 <= width {
        spans.push(Span::raw(" ".repeat(width - used)));
        spans.extend(legend);
    }
    Line::from(spans)
}

/// Colour of a tensor degree.
pub(super) fn color(shades: &Shades, degree: u32) -> Color {
    shades.color(shades.degree(degree))
}

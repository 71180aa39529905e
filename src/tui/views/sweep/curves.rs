//! Curves of the chart in braille, ideal scaling, and the knee.

use ratatui::{
    Frame,
    layout::Rect,
    style::Color,
    symbols::Marker,
    text::Span,
    widgets::canvas::{Canvas, Context, Line as Stroke},
};

use super::{
    draw::{LABEL, column, row, sign, style},
    state::Swept,
};
use crate::{
    study::sweep::{
        chart::{Chart, ChartPoint},
        reading::{self, Knee},
    },
    tui::{model::Model, paint::text::fit_right, theme::Role},
};

/// Dots of a cell, horizontally and vertically.
const DOTS: (f64, f64) = (2.0, 4.0);

/// Horizontal dot of a value: in the middle of the column that has its mark.
fn dot_x(chart: &Chart, plot: Rect, x: f64) -> f64 {
    f64::from(column(chart, plot, x) - plot.x) * DOTS.0 + 0.5
}

/// Vertical dot of a fraction, from below.
fn dot_y(plot: Rect, share: f64) -> f64 {
    share * f64::from(plot.height.saturating_sub(1)) * DOTS.1 + 1.5
}

fn canvas<'a, F: Fn(&mut Context<'_>)>(plot: Rect, ground: Color, paint: F) -> Canvas<'a, F> {
    Canvas::default()
        .background_color(ground)
        .marker(Marker::Braille)
        .x_bounds([0.0, f64::from(plot.width) * DOTS.0 - 1.0])
        .y_bounds([0.0, f64::from(plot.height) * DOTS.1 - 1.0])
        .paint(paint)
}

fn strokes(points: &[(f64, f64)], color: Color, context: &mut Context<'_>) {
    for pair in points.windows(2) {
        let [(x1, y1), (x2, y2)] = [pair[0], pair[1]];
        context.draw(&Stroke { x1, y1, x2, y2, color });
    }
}

/// Draws all curves, the selected one last, over ideal scaling.
pub(super) fn draw(frame: &mut Frame<'_>, plot: Rect, model: &Model, swept: &Swept) {
    let (chart, selected) = (&swept.chart, model.views.sweep.line);
    let color = |style: ratatui::style::Style| style.fg.unwrap_or(Color::Reset);
    let ideal = ideal(chart, plot, swept, selected);
    let muted = model.appearance.theme.color(Role::Idle);
    let widget = canvas(plot, model.appearance.theme.background(), |context| {
        // Every second stroke: ideal scaling is dotted.
        for pair in ideal.windows(2).step_by(2) {
            strokes(pair, muted, context);
        }
        context.layer();
        let order = (0..chart.lines.len()).filter(|&line| line != selected).chain([selected]);
        for line in order.filter(|&line| line < chart.lines.len()) {
            let marks = &chart.lines[line].marks;
            for stretch in marks.split(|mark| mark.y.is_none()) {
                let place = |mark: &ChartPoint| {
                    (dot_x(chart, plot, mark.x), dot_y(plot, swept.y_scale().share(mark.y.unwrap_or_default())))
                };
                let points: Vec<(f64, f64)> = stretch.iter().map(place).collect();
                strokes(&points, color(model.appearance.theme.series(line)), context);
            }
            context.layer();
        }
    });
    frame.render_widget(widget, plot);
}

/// Ideal scaling from the best point of the selected line, as far as it is inside the chart.
fn ideal(chart: &Chart, plot: Rect, swept: &Swept, line: usize) -> Vec<(f64, f64)> {
    let Some(line) = chart.lines.get(line).filter(|_| swept.scales()) else { return vec![] };
    let per_unit = reading::best_per_unit([&reading::rates(chart, line)[..]].into_iter());
    if per_unit <= 0.0 || chart.places.len() < 2 {
        return vec![];
    }
    let more = reading::more_is_better(chart);
    let (first, last) = (chart.places[0], chart.places[chart.places.len() - 1]);
    let scale = swept.y_scale();
    let steps = usize::from(plot.width);
    let at = |step: usize| {
        let share = step as f64 / steps as f64;
        let x = if chart.x.logarithmic { first * (last / first).powf(share) } else { first + share * (last - first) };
        let rate = per_unit * x;
        let y = if more { rate } else { 1.0 / rate };
        let inside = (scale.least..=scale.most).contains(&y);
        let width = f64::from(plot.width.saturating_sub(3));
        inside.then(|| ((1.0 + chart.x.share(x) * width) * DOTS.0 + 0.5, dot_y(plot, scale.share(y))))
    };
    (0..=steps).filter_map(at).collect()
}

/// Draws the scaling efficiency per unit of the limit, relative to the best point of all lines.
pub(super) fn draw_efficiency(frame: &mut Frame<'_>, plot: Rect, model: &Model, swept: &Swept) {
    let chart = &swept.chart;
    let all: Vec<Vec<(f64, f64)>> = chart.lines.iter().map(|line| reading::rates(chart, line)).collect();
    let best = reading::best_per_unit(all.iter().map(Vec::as_slice));
    if best <= 0.0 || plot.height < 3 {
        return;
    }
    let selected = model.views.sweep.line;
    let share = |(x, rate): &(f64, f64)| (*x, rate / x / best);
    let widget = canvas(plot, model.appearance.theme.background(), |context| {
        let order = (0..all.len()).filter(|&line| line != selected).chain([selected]);
        for line in order.filter(|&line| line < all.len()) {
            let points: Vec<(f64, f64)> =
                all[line].iter().map(share).map(|(x, y)| (dot_x(chart, plot, x), dot_y(plot, y))).collect();
            strokes(&points, model.appearance.theme.series(line).fg.unwrap_or(Color::Reset), context);
            context.layer();
        }
    });
    frame.render_widget(widget, plot);
    let (muted, buffer) = (model.appearance.theme.fg(Role::Muted), frame.buffer_mut());
    for (share, text) in [(1.0, "100 %"), (0.5, "50 %"), (0.0, "0 %")] {
        let y = row(plot, share);
        let text = fit_right(text, LABEL as usize - 2) + " ┤";
        buffer.set_stringn(plot.x - LABEL, y, &text, LABEL as usize, muted);
    }
    for y in plot.y..plot.bottom() {
        if buffer[(plot.x - 1, y)].symbol() == " " {
            buffer[(plot.x - 1, y)].set_symbol("│").set_style(model.appearance.theme.fg(Role::Border));
        }
    }
    let Some(own) = all.get(selected) else { return };
    for (x, y) in own.iter().map(share) {
        let place = (column(chart, plot, x), row(plot, y));
        buffer[place].set_symbol(sign(model, selected)).set_style(style(&model.appearance.theme, selected, true));
    }
}

/// Draws the knee of the selected line, with its meaning if that fits.
pub(super) fn draw_knee(frame: &mut Frame<'_>, plot: Rect, model: &Model, swept: &Swept) {
    let chart = &swept.chart;
    let Some(line) = chart.lines.get(model.views.sweep.line).filter(|_| swept.scales()) else { return };
    let Some(Knee { x, gain }) = reading::knee(&reading::rates(chart, line)) else { return };
    let at = column(chart, plot, x);
    let style = model.appearance.theme.fg(Role::Warning);
    let buffer = frame.buffer_mut();
    for y in plot.y..plot.bottom() {
        let cell = &mut buffer[(at, y)];
        if cell.symbol() == " " {
            cell.set_symbol("┊").set_style(style);
        }
    }
    let text = format!(" knee {}: the next doubling gives {gain:.2}x ", chart.show_x(x));
    let width = text.chars().count() as u16;
    // The text goes beside the knee into the first empty row, or is left out.
    for y in (plot.y..plot.bottom()).rev() {
        for from in [at + 1, at.saturating_sub(width)] {
            let inside = from >= plot.x && from + width <= plot.right() && !(from..from + width).contains(&at);
            if inside && (from..from + width).all(|x| buffer[(x, y)].symbol() == " ") {
                frame.render_widget(Span::styled(text, style), Rect { x: from, y, width, height: 1 });
                return;
            }
        }
    }
}

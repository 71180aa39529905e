//! Points of time against memory. The axis of time shows the loss against the fastest layout, compressed by the inverse
//! hyperbolic sine, because most layouts lie within a few percent of it.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};

use super::{draw::color, points::Point};
use crate::{
    tui::{
        paint::shades::Shades,
        theme::{Role, Theme},
    },
    units,
};

/// Width of the axis of time, cells.
const LABEL: u16 = 18;
/// Loss from which the axis is compressed.
const LINEAR: f64 = 0.01;
/// Losses with a line.
const LINES: [f64; 8] = [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];
/// Bytes of a gibibyte.
const GIB: f64 = 1_073_741_824.0;

/// Axes of the chart.
struct Axes {
    place: Rect,
    fastest: f64,
    /// Compressed loss at the top.
    most: f64,
    /// Bytes at both ends.
    from: f64,
    to: f64,
}

impl Axes {
    fn new(place: Rect, points: &[Point], limit: f64) -> Axes {
        let fold =
            |of: fn(&Point) -> f64, pick: fn(f64, f64) -> f64, first: f64| points.iter().map(of).fold(first, pick);
        let fastest = fold(|point| point.seconds, f64::min, f64::INFINITY);
        let slowest = fold(|point| point.seconds, f64::max, 0.0);
        let least = fold(|point| point.bytes, f64::min, f64::INFINITY);
        let fullest = fold(|point| point.bytes, f64::max, 0.0);
        let to = if limit.is_finite() { limit.max(fullest) } else { fullest };
        let air = (to - least).max(to * 0.05) * 0.06;
        let most = compressed(slowest / fastest - 1.0).max(compressed(0.02));
        Axes { place, fastest, most, from: (least - air).max(0.0), to: to + air }
    }

    fn x(&self, bytes: f64) -> u16 {
        let share = ((bytes - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        self.place.x + (share * f64::from(self.place.width.saturating_sub(1))).round() as u16
    }

    fn y(&self, seconds: f64) -> u16 {
        let share = (compressed(seconds / self.fastest - 1.0) / self.most).clamp(0.0, 1.0);
        let height = f64::from(self.place.height.saturating_sub(1));
        self.place.y + (height * (1.0 - share)).round() as u16
    }
}

fn compressed(loss: f64) -> f64 {
    (loss.max(0.0) / LINEAR).asinh()
}

/// Draws the chart; the last row is the axis of memory.
pub(super) fn draw(
    buffer: &mut Buffer,
    area: Rect,
    (points, at): (&[Point], usize),
    limit: f64,
    (theme, shades): (&Theme, &Shades),
) {
    if area.height < 4 || area.width <= LABEL + 10 {
        return;
    }
    let place = Rect { x: area.x + LABEL, width: area.width - LABEL, height: area.height - 1, ..area };
    let axes = Axes::new(place, points, limit);
    draw_lines(buffer, area, &axes, theme);
    if limit.is_finite() {
        let x = axes.x(limit);
        for y in place.top()..place.bottom() {
            buffer[(x, y)].set_symbol("│").set_style(theme.fg(Role::Warning));
        }
    }
    draw_front(buffer, &axes, points, theme);
    // The selected point and the shown one lie on top.
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&i| (points[i].shown, i == at));
    for i in order {
        let point = &points[i];
        let (x, y) = (axes.x(point.bytes), axes.y(point.seconds));
        let sign = if point.repeats() { "○" } else { "●" };
        let style = Style::new().fg(color(shades, point.configuration.layout.tensor));
        buffer[(x, y)].set_symbol(sign).set_style(style);
        let around = |buffer: &mut Buffer, signs: [&str; 2], style: Style| {
            for (x, sign) in [(x.checked_sub(1), signs[0]), (Some(x + 1), signs[1])] {
                if let Some(cell) = x.filter(|x| *x < place.right()).and_then(|x| buffer.cell_mut((x, y))) {
                    cell.set_symbol(sign).set_style(style);
                }
            }
        };
        if point.shown {
            around(buffer, ["(", ")"], theme.bold(Role::Text));
        }
        if i == at {
            around(buffer, if point.shown { ["(", ")"] } else { ["▸", "◂"] }, theme.bold(Role::Focus));
        }
    }
}

/// Lines of equal loss with their times, and the axis of memory.
fn draw_lines(buffer: &mut Buffer, area: Rect, axes: &Axes, theme: &Theme) {
    let (place, muted) = (axes.place, theme.fg(Role::Muted));
    let mut taken = vec![];
    for loss in LINES {
        let seconds = axes.fastest * (1.0 + loss);
        if compressed(loss) > axes.most * 1.001 {
            break;
        }
        let y = axes.y(seconds);
        if taken.contains(&y) {
            continue;
        }
        taken.push(y);
        let name = if loss == 0.0 { "fastest".to_string() } else { format!("+{}", units::percent_whole(loss)) };
        buffer.set_string(area.x, y, format!("{name:>7}  {:>7}", units::seconds(seconds)), muted);
        for x in place.left()..place.right() {
            buffer[(x, y)].set_symbol("─").set_style(theme.fg(Role::Border));
        }
    }
    let y = place.bottom();
    buffer.set_string(area.x, y, "   memory, GiB", muted);
    let step = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];
    let span = (axes.to - axes.from) / GIB;
    let step = step.into_iter().find(|step| span / step <= f64::from(place.width) / 9.0).unwrap_or(1000.0);
    let mut value = (axes.from / GIB / step).ceil() * step;
    while value * GIB <= axes.to {
        let text = format!("{value}");
        let x = axes.x(value * GIB).saturating_sub(text.len() as u16 / 2);
        if x + (text.len() as u16) <= place.right() {
            buffer.set_string(x, y, text, muted);
        }
        value += step;
    }
}

/// Stairs through the layouts that no other beats in both.
fn draw_front(buffer: &mut Buffer, axes: &Axes, points: &[Point], theme: &Theme) {
    let mut front: Vec<&Point> = points.iter().filter(|point| point.on_front).collect();
    front.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    let style = theme.fg(Role::Accent);
    for pair in front.windows(2) {
        let (from, to) =
            ((axes.x(pair[0].bytes), axes.y(pair[0].seconds)), (axes.x(pair[1].bytes), axes.y(pair[1].seconds)));
        for x in from.0..to.0 {
            buffer[(x, from.1)].set_symbol("┄").set_style(style);
        }
        for y in from.1..to.1 {
            buffer[(to.0, y)].set_symbol("┆").set_style(style);
        }
    }
}

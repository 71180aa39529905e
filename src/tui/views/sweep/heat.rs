//! Map of two limits: a cell per pair of values, lighter for better ones, with a sign for values as good as the current
//! plan.

use ratatui::{
    Frame,
    layout::Rect,
    style::{Color, Style},
    text::Span,
};
use unicode_width::UnicodeWidthStr;

use super::state::Swept;
use crate::{
    study::sweep::reading,
    tui::{
        model::{Hit, Model},
        paint::{
            area::rows,
            text::{clip, fit_right},
        },
        theme::{Role, Theme},
    },
};

/// Minimum and maximum width of the labels of the second limit, cells.
const LABEL: (u16, u16) = (13, 20);
/// Width of the colour scale, cells.
const SCALE: u16 = 20;
/// Maximum width of a value, cells.
const WIDEST: u16 = 10;
/// Signs from poor to good, without colours.
const SHADES: [&str; 5] = [" ", "░", "▒", "▓", "█"];

/// Draws the map. Returns the clickable areas.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, swept: &Swept) -> Vec<(Rect, Hit)> {
    let (theme, chart) = (&model.appearance.theme, &swept.chart);
    let more = reading::more_is_better(chart);
    let goal = swept.goal(model.planning.shown.as_deref());
    let told = goal.map_or_else(String::new, |goal| {
        let than = if more { "at least" } else { "at most" };
        format!("◆ as good as the current plan: {than} {}", chart.show_y(goal))
    });
    frame.render_widget(Span::styled(clip(&told, area.width as usize), theme.fg(Role::Muted)), rows(area, 0, 1));
    draw_scale(frame, rows(area, 1, 1), theme, swept);
    let longest = chart.lines.iter().map(|line| line.label.width() as u16 + 1).max().unwrap_or(0);
    let label_width = longest.clamp(LABEL.0, LABEL.1).min(area.width / 3);
    let (columns, lines) = (chart.places.len().max(1) as u16, chart.lines.len().max(1) as u16);
    let map = Rect {
        x: area.x + label_width,
        width: area.width.saturating_sub(label_width),
        ..rows(area, 2, area.height.saturating_sub(4))
    };
    let wide = (map.width / columns).clamp(1, WIDEST);
    let high = (map.height / lines).clamp(1, 3);
    let mut hits = vec![];
    for (line, one) in chart.lines.iter().enumerate().rev() {
        let y = map.y + (lines - 1 - line as u16) * high;
        if y + high > map.bottom() {
            continue;
        }
        let label = Rect { x: area.x, y: y + high / 2, width: label_width.saturating_sub(1), height: 1 };
        let style = if line == model.views.sweep.line { theme.bold(Role::Text) } else { theme.fg(Role::Muted) };
        frame.render_widget(Span::styled(fit_right(&one.label, label.width.into()), style), label);
        for (place, &x) in chart.places.iter().enumerate() {
            let cell = Rect { x: map.x + place as u16 * wide, y, width: wide, height: high }.intersection(map);
            if cell.width == 0 {
                continue;
            }
            let value = one.marks.iter().find(|mark| mark.x == x).map(|mark| mark.y);
            let selected = place == model.views.sweep.cursor && line == model.views.sweep.line;
            let share = value.flatten().map(|y| if more { chart.y.share(y) } else { 1.0 - chart.y.share(y) });
            let reaches = value
                .flatten()
                .zip(goal)
                .is_some_and(|(y, goal)| if more { y >= goal * (1.0 - 1e-9) } else { y <= goal * (1.0 + 1e-9) });
            let text = match (value, share) {
                (None, _) => " ",
                (Some(_), None) => "×",
                (Some(_), Some(_)) if reaches => "◆",
                _ => " ",
            };
            paint(frame, cell, theme, share, text, selected);
        }
        hits.push((Rect { y, height: high, ..map }, Hit::ListRow(line)));
    }
    let axis = map.y + lines * high;
    if axis < area.bottom() {
        let mut free = map.x;
        for (place, &x) in chart.places.iter().enumerate() {
            let (from, text) = (map.x + place as u16 * wide, chart.show_x(x));
            let width = text.chars().count() as u16;
            if from >= free && from + width <= map.right() {
                let style =
                    if place == model.views.sweep.cursor { theme.bold(Role::Text) } else { theme.fg(Role::Muted) };
                frame.render_widget(Span::styled(text, style), Rect { x: from, y: axis, width, height: 1 });
                free = from + width + 1;
            }
        }
    }
    hits
}

/// Draws the colour scale from the worst to the best value, and the meaning of the cross.
fn draw_scale(frame: &mut Frame<'_>, line: Rect, theme: &Theme, swept: &Swept) {
    let chart = &swept.chart;
    let more = reading::more_is_better(chart);
    let (poor, good) = if more { (chart.y.least, chart.y.most) } else { (chart.y.most, chart.y.least) };
    let (left, right) = (format!("{} ", chart.show_y(poor)), format!(" {}", chart.show_y(good)));
    let crossed = chart.lines.iter().any(|line| line.marks.iter().any(|mark| mark.y.is_none()));
    let cross = if crossed { "   × no plan" } else { "" };
    let width = (left.width() + right.width() + cross.width()) as u16 + SCALE;
    if line.height == 0 || width > line.width {
        return;
    }
    let muted = theme.fg(Role::Muted);
    let ramp = Rect { x: line.x + left.width() as u16, width: SCALE, ..line };
    frame.render_widget(Span::styled(left, muted), line);
    for x in ramp.left()..ramp.right() {
        let share = f64::from(x - ramp.x) / f64::from(SCALE - 1);
        paint(frame, Rect { x, width: 1, ..ramp }, theme, Some(share), " ", false);
    }
    let rest = Rect { x: ramp.right(), width: line.right() - ramp.right(), ..line };
    frame.render_widget(Span::styled(format!("{right}{cross}"), muted), rest);
}

/// Draws a cell: its colour from poor to good, and a sign in its middle.
fn paint(frame: &mut Frame<'_>, cell: Rect, theme: &Theme, share: Option<f64>, text: &str, selected: bool) {
    let ground = share.and_then(|share| ramp(theme, share));
    let buffer = frame.buffer_mut();
    for position in cell.positions() {
        let drawn = &mut buffer[position];
        match (ground, share) {
            (Some(color), _) => drawn.set_style(Style::new().bg(color)),
            (None, Some(share)) => drawn.set_symbol(SHADES[(share * 4.0).round() as usize]),
            (None, None) => drawn,
        };
    }
    let middle = (cell.x + cell.width / 2, cell.y + cell.height / 2);
    if text != " " {
        let ink = ground.map_or(theme.fg(Role::Text), |color| Style::new().fg(ink(color)));
        buffer[middle].set_symbol(text).set_style(ink);
    }
    if selected {
        let ends = [(cell.x, "▐"), (cell.right() - 1, "▌")];
        for (x, sign) in ends.into_iter().take(if cell.width > 1 { 2 } else { 1 }) {
            buffer[(x, middle.1)].set_symbol(sign).set_style(theme.fg(Role::Text));
        }
    }
}

/// Colour from dark blue over teal to light yellow, in even steps of lightness; `None` without true colours.
fn ramp(theme: &Theme, share: f64) -> Option<Color> {
    const STOPS: [(f64, f64, f64); 4] =
        [(43.0, 45.0, 92.0), (38.0, 110.0, 142.0), (72.0, 178.0, 130.0), (238.0, 222.0, 108.0)];
    if !matches!(theme.color(Role::Text), Color::Rgb(..)) {
        return None;
    }
    let place = share.clamp(0.0, 1.0) * 3.0;
    let at = (place as usize).min(2);
    let (a, b, part) = (STOPS[at], STOPS[at + 1], place - at as f64);
    let mix = |a: f64, b: f64| (a + (b - a) * part).round() as u8;
    Some(Color::Rgb(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2)))
}

/// Black or white, whichever has more contrast.
fn ink(color: Color) -> Color {
    let Color::Rgb(r, g, b) = color else { return Color::Reset };
    let luma = 0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b);
    if luma > 120.0 { Color::Rgb(0, 0, 0) } else { Color::Rgb(255, 255, 255) }
}

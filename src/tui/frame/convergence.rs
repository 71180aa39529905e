//! Chart of a search: the best plan's value and the proven bound converge over time.
//!
//! ```text
//! ─ ━ best 81.2 ms  ┄ bound 78.6 ms over time ─────
//!  97.4 ms ┤━━━━━
//!          │     ━━━━━━━━━━━━━━━━━━━
//!  78.6 ms ┤        ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
//!           0 s                 12.3 s
//! ```

use ratatui::{Frame, buffer::Buffer, layout::Rect, style::Style, text::Span};

use crate::{
    tui::{
        convergence::Convergence,
        paint::{area::rows, text::fit_right},
        theme::{Role, Theme},
    },
    units,
};

/// Height of the chart, lines.
pub(super) const HEIGHT: u16 = 9;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, course: &Convergence, theme: &Theme) {
    let objective = |value: f64| course.measure.show(value);
    let muted = theme.fg(Role::Muted);
    let width = area.width as usize;
    let last = course.last();
    let values = |words: [&str; 2]| -> String {
        let best = last.and_then(|p| p.best).map(|best| format!("━{} {}", words[0], objective(best)));
        let bound = last.and_then(|p| p.bound).map(|bound| format!("┄{} {}", words[1], objective(bound)));
        [best, bound].into_iter().flatten().collect::<Vec<_>>().join("  ")
    };
    // The signs alone suffice in narrow places.
    let long = format!("{} over time", values([" best", " bound"]));
    let told = if long.chars().count() + 4 <= width { long } else { values(["", ""]) };
    let told = format!(" {} ", told.trim());
    let rule = "─".repeat(width.saturating_sub(told.chars().count() + 1));
    let line = [
        Span::styled("─", theme.fg(Role::Border)),
        Span::styled(told, theme.bold(Role::Text)),
        Span::styled(rule, theme.fg(Role::Border)),
    ];
    frame.render_widget(ratatui::text::Line::from(line.to_vec()), rows(area, 0, 1));
    let grid = rows(area, 1, area.height.saturating_sub(2));
    let label = course.range().map_or(0, |(low, high)| objective(low).len().max(objective(high).len()) as u16 + 2);
    let Some((low, high)) = course.range().filter(|_| grid.width > label + 4 && grid.height > 1) else {
        frame.render_widget(Span::styled("nothing found yet", muted), grid);
        return;
    };
    for (value, y) in [(high, grid.y), (low, grid.bottom() - 1)] {
        let text = fit_right(&objective(value), label as usize - 2) + " ┤";
        frame.render_widget(Span::styled(text, muted), Rect { y, height: 1, ..grid });
    }
    let place = Rect { x: grid.x + label, width: grid.width - label, ..grid };
    draw_lines(frame.buffer_mut(), place, course, (low, high), theme);
    let end = units::seconds(course.lasted_s);
    let axis = format!("0 s{}", fit_right(&end, (place.width as usize).saturating_sub(3)));
    let axis_line = Rect { x: place.x, width: place.width, ..rows(area, area.height.saturating_sub(1), 1) };
    frame.render_widget(Span::styled(axis, muted), axis_line);
}

/// Draws both lines, one sign per column, with the gap between them.
fn draw_lines(buffer: &mut Buffer, place: Rect, course: &Convergence, (low, high): (f64, f64), theme: &Theme) {
    let row = |value: f64| {
        let share = if high > low { (high - value) / (high - low) } else { 0.0 };
        place.y + (share.clamp(0.0, 1.0) * f64::from(place.height - 1)).round() as u16
    };
    let mut put = |x: u16, y: u16, sign: &str, style: Style| {
        buffer[(x, y)].set_symbol(sign).set_style(style);
    };
    for column in 0..place.width {
        // Use the end of a column's time, so that the last column shows the last values.
        let time = course.lasted_s * f64::from(column + 1) / f64::from(place.width);
        let Some(point) = course.at(time) else { continue };
        let x = place.x + column;
        let (best, bound) = (point.best.map(row), point.bound.map(row));
        if let (Some(best), Some(bound)) = (best, bound) {
            for y in best.min(bound) + 1..best.max(bound) {
                put(x, y, "·", theme.fg(Role::Idle));
            }
        }
        if let Some(y) = bound {
            put(x, y, "┄", theme.fg(Role::Good));
        }
        if let Some(y) = best {
            put(x, y, "━", theme.bold(Role::Warning));
        }
    }
}

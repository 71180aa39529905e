//! Overview of the iteration in one line over the rows, while only a part is visible: load of all stages, with that
//! part bright.

use ratatui::{buffer::Buffer, layout::Rect, style::Style};

use super::draw::{LABEL, label};
use crate::tui::{
    paint::{axis::Axis, map::EIGHTHS, shades::Shades, strip::Strip},
    simulated::Simulated,
    theme::{Role, Theme},
};

/// Maximum number of stages in the mean.
const MOST_STAGES: usize = 8;

/// Draws the line; `window` is the visible interval, seconds.
pub(super) fn draw(
    buffer: &mut Buffer,
    line: Rect,
    simulated: &Simulated,
    window: (f64, f64),
    (theme, shades): (&Theme, &Shades),
) {
    let columns = line.width.saturating_sub(LABEL);
    let batch = simulated.timeline.iteration_s;
    if line.height == 0 || columns == 0 || batch <= 0.0 {
        return;
    }
    buffer.set_stringn(line.x, line.y, label("batch"), LABEL.into(), theme.fg(Role::Muted));
    let axis = Axis::linear((0.0, batch), columns);
    let strip = Strip { simulated, shades, theme, axis, playhead_s: None };
    let stages = simulated.timeline.replicas.len();
    let taken = stages.min(MOST_STAGES);
    for column in 0..columns {
        let busy: f64 = (0..taken)
            .filter_map(|i| strip.shares(i * stages / taken, 0, column))
            .map(|shares| shares.iter().sum::<f64>().min(1.0))
            .sum::<f64>()
            / taken.max(1) as f64;
        let middle = (f64::from(column) + 0.5) / f64::from(columns) * batch;
        let half = batch / f64::from(columns) / 2.0;
        let seen = middle + half > window.0 && middle - half < window.1;
        let color = theme.color(if seen { Role::Accent } else { Role::Border });
        let sign = EIGHTHS[(busy * 7.0).round() as usize];
        let style = if seen { Style::new().fg(color) } else { theme.fg(Role::Border) };
        buffer.set_string(line.x + LABEL + column, line.y, sign, style);
    }
}

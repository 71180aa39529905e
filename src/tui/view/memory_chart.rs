//! Memory in use over time on one device of a stage, against the limit.

use ratatui::{buffer::Buffer, layout::Rect};

use super::timeline::{LABEL, label};
use crate::{
    tui::{
        played::Played,
        theme::{Role, Theme},
    },
    units,
};

/// Lower parts of a cell, by eighths.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Draws the chart over the columns of the timeline. The first line is the limit.
pub(super) fn draw(
    buffer: &mut Buffer,
    area: Rect,
    theme: &Theme,
    played: &Played,
    stage: usize,
    limit: f64,
    (from, to): (f64, f64),
) {
    let Some(steps) = played.timeline.memory.get(stage) else { return };
    let columns = area.width.saturating_sub(LABEL);
    if area.height < 2 || columns == 0 || to <= from {
        return;
    }
    let peak = played.timeline.peak_memory_bytes.get(stage).copied().unwrap_or(0.0);
    // Against a limit that is far away nothing could be seen: then the chart ends a little above the peak.
    let far = peak < limit / 8.0;
    let scale = if far { peak * 1.25 } else { limit.max(peak) };
    let fixed = played.pipeline.stages.get(stage).map_or(0.0, |s| s.fixed_bytes);
    let height = area.height - 1;
    // The limit, with a name.
    let over = peak > limit * (1.0 + 1e-9);
    let remark = match (far, over) {
        (true, _) => ", far above".to_string(),
        (_, true) => format!(", exceeded: peak {}x", units::number(peak / limit)),
        _ => String::new(),
    };
    let text = match limit.is_finite() {
        true => format!("─ limit {}{remark} ", units::bytes_exact(limit)),
        false => "─ no limit ".to_string(),
    };
    let line = text.clone() + &"─".repeat((columns as usize).saturating_sub(text.chars().count()));
    buffer.set_stringn(
        area.x + LABEL,
        area.y,
        &line,
        columns as usize,
        if over { theme.bold(Role::Bad) } else { theme.fg(Role::Border) },
    );
    buffer.set_stringn(area.x, area.y, label("memory"), LABEL as usize, theme.fg(Role::Muted));
    buffer.set_stringn(
        area.x,
        area.y + 1,
        label(played.shown.names.caption(stage)),
        LABEL as usize,
        theme.fg(Role::Muted),
    );
    if height > 1 {
        buffer.set_stringn(area.x, area.y + 2, label(&units::bytes(peak)), LABEL as usize, theme.bold(Role::Text));
    }
    let per_column = (to - from) / f64::from(columns);
    for column in 0..columns {
        let start = from + f64::from(column) * per_column;
        let bytes = most(steps, start, start + per_column);
        for row in 0..height {
            let filled = eighths(bytes, scale, height, row);
            let under = eighths(fixed.min(bytes), scale, height, row);
            // The border between weights and activations is rounded to whole cells.
            let role = if under >= 4 { Role::Weights } else { Role::Activations };
            if let Some(cell) = buffer.cell_mut((area.x + LABEL + column, area.bottom() - 1 - row)) {
                cell.set_symbol(EIGHTHS[filled]).set_style(theme.fg(role));
            }
        }
    }
}

/// How many eighths of a row of cells, counted from below, a value fills.
fn eighths(value: f64, scale: f64, height: u16, row: u16) -> usize {
    if scale <= 0.0 || !value.is_finite() {
        return 0;
    }
    let total = (value / scale * f64::from(height) * 8.0).round();
    (total - 8.0 * f64::from(row)).clamp(0.0, 8.0) as usize
}

/// The most memory in use in an interval: what held at its start, and every step within.
fn most(steps: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let first = steps.partition_point(|step| step.0 <= from).saturating_sub(1);
    steps[first..].iter().take_while(|step| step.0 < to).map(|step| step.1).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_counts_what_held_before() {
        let steps = [(0.0, 5.0), (1.0, 9.0), (2.0, 3.0)];
        assert_eq!(most(&steps, 0.0, 0.5), 5.0);
        assert_eq!(most(&steps, 0.5, 1.5), 9.0);
        assert_eq!(most(&steps, 1.5, 3.0), 9.0);
        assert_eq!(most(&steps, 2.5, 3.0), 3.0);
        assert_eq!(most(&[], 0.0, 1.0), 0.0);
    }

    #[test]
    fn rows_fill_from_below() {
        assert_eq!(eighths(1.0, 2.0, 4, 0), 8);
        assert_eq!(eighths(1.0, 2.0, 4, 1), 8);
        assert_eq!(eighths(1.0, 2.0, 4, 2), 0);
        assert_eq!(eighths(1.1, 2.0, 4, 2), 2);
        assert_eq!(eighths(0.0, 0.0, 4, 0), 0);
    }
}

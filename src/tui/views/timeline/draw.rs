//! Timeline: a row per stage (or replica), with time from left to right.
//!
//! ```text
//! 1F1B   1.2 s per iteration   1600 samples/s   idle 8.1%
//! simulated with no overlap, 8 buckets
//! forward, backward, transfer, all-reduce
//! what sets the time of the batch: its critical path
//!          0 ms          200 ms        400 ms
//! ▸ 1 ×4   ▏0 ▏1 ▏2    ▏0  ▏3 ...
//! memory of the selected row, against the limit
//! what is under the cursor
//! ```
//! The head ([`super::head`]) takes as many lines as it needs for whole words and figures. Rows ([`super::rows`]) get
//! the rest.

use ratatui::{Frame, buffer::Buffer, layout::Rect, text::Span};

use super::{cursor, head, rows as timeline_rows, whole};
use crate::tui::{
    action::Action,
    marks::Marks,
    model::Model,
    paint::{
        area::rows,
        axis::Axis,
        memory_chart::MemoryChart,
        shades::Shades,
        text::{fit, fit_right},
    },
    shown::ShownRun,
    simulated::Simulated,
    theme::{Role, Theme},
};

/// Width of the row names at the left, cells.
pub(crate) const LABEL: u16 = 10;

/// Row: stage, and replica if the stage is unfolded.
pub(crate) type Row = (usize, Option<u32>);

impl Model {
    /// Rows of the view, from the top.
    pub(crate) fn timeline_rows(&self, simulated: &Simulated) -> Vec<Row> {
        let mut rows = vec![];
        for (stage, &replicas) in simulated.timeline.replicas.iter().enumerate() {
            rows.push((stage, None));
            if self.views.timeline.unfolded.contains(&stage) {
                rows.extend((0..replicas).map(|replica| (stage, Some(replica))));
            }
        }
        rows
    }
}

/// Minimum height of the grid that head and chart leave, lines.
const LEAST_ROWS: u16 = 3;
/// Height of the grid that a full head leaves, lines.
const GOOD_ROWS: u16 = 6;
/// Maximum height of the memory chart, lines.
const TALLEST_CHART: u16 = 14;
/// Minimum height of the view for a taller memory chart, lines.
const TALL: u16 = 24;
/// Width below which the description of the cursor takes two lines, cells.
const WIDE: u16 = 110;

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, shown: &ShownRun) {
    let theme = &model.appearance.theme;
    let Some(simulated) = model.simulation.simulated.as_deref() else {
        frame.render_widget(Span::styled("simulating the schedule …", theme.fg(Role::Muted)), area);
        return;
    };
    let shades = Shades::new(theme, model.appearance.depth);
    let batch = simulated.timeline.iteration_s;
    let mut state = model.views.timeline.clone();
    state.columns = area.width.saturating_sub(LABEL);
    let window = state.window(batch);
    let all = model.timeline_rows(simulated);
    state.row = state.row.min(all.len().saturating_sub(1));
    let (stage, replica) = all.get(state.row).copied().unwrap_or_default();

    let told_height: u16 = if area.width < WIDE { 2 } else { 1 };
    let below = area.height.saturating_sub(told_height + 1);
    let chart_height = match area.height {
        40.. => 9,
        TALL.. => 7,
        _ => 5,
    };
    let (good, most) = (below.saturating_sub(chart_height + GOOD_ROWS), below.saturating_sub(LEAST_ROWS));
    let path = (state.path, model.appearance.keymap.of_action(Action::MarkPath));
    let mut head = head::lines(simulated, path, window, (theme, &shades), area.width.into(), good.into());
    head.truncate(most.into());
    let told = head.len() as u16;
    for (y, line) in (0..).zip(head) {
        frame.render_widget(line, rows(area, y, 1));
    }
    let part = window.1 - window.0 < batch * 0.999 && area.height >= TALL;
    if part {
        whole::draw(frame.buffer_mut(), rows(area, told, 1), simulated, window, (theme, &shades));
    }
    let axis = told + u16::from(part);
    draw_axis(frame.buffer_mut(), rows(area, axis, 1), window, theme);
    let chart_height = chart_height.min(below.saturating_sub(axis + LEAST_ROWS));
    let grid_height = below.saturating_sub(axis + chart_height);
    // Unused rows make the memory chart taller.
    let spare = timeline_rows::spare(grid_height, all.len()).min(TALLEST_CHART.saturating_sub(chart_height));
    let (grid_height, chart_height) = (grid_height - spare, chart_height + spare);
    timeline_rows::draw(frame, rows(area, axis + 1, grid_height), model, marks, simulated, (&all, state.row), window);
    let chart = rows(area, axis + 1 + grid_height, chart_height);
    let axis_s = Axis::linear(window, state.columns);
    let limit = shown.memory_limit(stage);
    let memory = MemoryChart { theme, shades: &shades, simulated, stage, limit, axis: axis_s, split: true };
    memory.draw(frame.buffer_mut(), chart, LABEL);
    let marked = Rect { y: area.y + axis, height: chart.y.saturating_sub(area.y + axis), ..area };
    cursor::draw(frame.buffer_mut(), marked, model, window, theme);
    let told = cursor::lines(simulated, (stage, replica), model.simulation.playing.at_s, theme, area.width.into());
    let last = area.height.saturating_sub(told_height);
    for (y, line) in (last..).zip(told.into_iter().take(told_height.into())) {
        frame.render_widget(line, rows(area, y, 1));
    }
    marks.views.timeline = Some(state);
}

/// Draws times along the top, at round values.
fn draw_axis(buffer: &mut Buffer, line: Rect, window: (f64, f64), theme: &Theme) {
    let columns = line.width.saturating_sub(LABEL);
    let (from, to) = window;
    if columns < 8 || line.height == 0 || to <= from {
        return;
    }
    let per_column = (to - from) / f64::from(columns);
    let step = round_step(per_column * 14.0);
    let mut tick = (from / step).ceil();
    while tick * step <= to {
        let column = ((tick * step - from) / per_column) as u16;
        let text = format!("│{}", tick_text(tick * step, step));
        if column + (text.chars().count() as u16) <= columns {
            buffer.set_string(line.x + LABEL + column, line.y, &text, theme.fg(Role::Muted));
        }
        tick += 1.0;
    }
}

/// Smallest of 1, 2, 5, 10, 20, ... that is at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= least * 0.999_999).unwrap_or(10.0 * power)
}

/// Time with as many digits as a step needs.
fn tick_text(time: f64, step: f64) -> String {
    let (unit, name) = match step {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e-3, "ms"),
        s if s >= 1e-6 => (1e-6, "µs"),
        _ => (1e-9, "ns"),
    };
    let decimals = (-(step / unit).log10().floor()).max(0.0) as usize;
    format!("{:.decimals$} {name}", time / unit)
}

/// Label at the left of the chart, where rows have their names.
pub(crate) fn label(text: &str) -> String {
    fit(&fit_right(text, LABEL as usize - 1), LABEL as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert!((round_step(0.013) - 0.02).abs() < 1e-12);
        assert!((round_step(5.1) - 10.0).abs() < 1e-12);
        assert_eq!(tick_text(0.04, 0.02), "40 ms");
        assert_eq!(tick_text(1.5, 0.5), "1500 ms");
        assert_eq!(tick_text(3e-6, 5e-7), "3000 ns");
    }
}

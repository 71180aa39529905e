//! Chart of memory over time on one device of a stage, split by use, against the limit.
//!
//! ```text
//! memory    limit 8 GiB, peak 7.4 GiB: █ state 3.1 GiB  ▒ activations 4.3 GiB ─────
//! stage 2   ▒▒▃   ▒▒▒▒▅
//! 7.4 GiB   ███████████
//! ```
//! Each part has its own fill besides its colour. Memory that does not depend on microbatches is at the bottom. The top
//! of a column is drawn in eighths of a cell, the rest in whole cells.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Style},
    text::Span,
};

use super::{
    area::rows,
    axis::Axis,
    facts::{self, of_limit},
    phrases::{Phrase, flow},
    shades::{Memory, Shades},
    text::{fit, fit_right},
};
use crate::{
    simulate::MemoryParts,
    tui::{
        simulated::Simulated,
        theme::{Role, Theme},
    },
    units,
};

/// Lower blocks, by eighths of a cell.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Part of the memory in use: name, fill, colour, bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Layer {
    name: &'static str,
    fill: &'static str,
    role: Role,
    bytes: f64,
}

/// Parts from the bottom up, the state in its parts or as one. The part that grows with the microbatches in flight is
/// last.
fn layers(parts: &MemoryParts, split: bool, buffers: &'static str) -> [Layer; 6] {
    let state = parts.weights + parts.gradients + parts.optimizer + parts.state;
    let whole = MemoryParts { state, buffers: parts.buffers, activations: parts.activations, ..MemoryParts::default() };
    let parts = if split { parts } else { &whole };
    let layer = |name, fill, role, bytes| Layer { name, fill, role, bytes };
    // If weights are separate, the remainder is the rest of the training state.
    let rest = match parts.weights > 0.0 {
        true => ("other state", "▓", Role::State),
        false => ("state", "█", Role::State),
    };
    [
        layer("weights", "█", Role::State, parts.weights),
        layer("gradients", "▓", Role::State, parts.gradients),
        layer("optimizer", "╳", Role::State, parts.optimizer),
        layer(rest.0, rest.1, rest.2, parts.state),
        layer(buffers, "░", Role::Buffers, parts.buffers),
        layer("activations", "▒", Role::Activations, parts.activations),
    ]
}

/// Chart of the memory of a device of a stage.
pub(in crate::tui) struct MemoryChart<'a> {
    pub theme: &'a Theme,
    pub shades: &'a Shades,
    pub simulated: &'a Simulated,
    pub stage: usize,
    /// Memory of a device, bytes.
    pub limit: f64,
    /// Times of the columns.
    pub axis: Axis,
    /// True if the training state is split into its parts.
    pub split: bool,
}

impl MemoryChart<'_> {
    /// Peak in use, bytes, and its parts; `None` if unknown.
    fn peak(&self) -> Option<(f64, &MemoryParts)> {
        let timeline = &self.simulated.timeline;
        Some((*timeline.peak_memory_bytes.get(self.stage)?, timeline.peak_parts.get(self.stage)?))
    }

    /// Bytes of the full height. A distant limit would flatten the chart, so it then ends a little above the peak.
    fn scale(&self, peak: f64) -> f64 {
        if self.is_far(peak) { peak * 1.25 } else { self.limit.max(peak) }
    }

    /// Name of the buffers, among which the memory that stays free counts.
    fn buffers(&self) -> &'static str {
        match self.peak().map_or([0.0; 2], |(_, parts)| facts::buffers(self.simulated, parts)) {
            [_, 0.0] => "buffers",
            [0.0, _] => "kept free",
            _ => "buffers, kept free",
        }
    }

    fn is_far(&self, peak: f64) -> bool {
        peak < self.limit / 8.0
    }

    /// Limit and peak, and the parts of the peak.
    pub(in crate::tui) fn legend(&self) -> Vec<Phrase> {
        let Some((peak, parts)) = self.peak() else { return vec![] };
        let mut phrases = head(
            &layers(parts, self.split, self.buffers()),
            peak,
            self.limit,
            self.is_far(peak),
            (self.theme, self.shades),
        );
        if !self.split && self.limit.is_finite() && peak <= self.limit && !self.is_far(peak) {
            let (held, of) = of_limit(peak, self.limit);
            phrases.splice(..2, [vec![Span::styled(format!("{held}{of}:"), self.theme.bold(Role::Text))]]);
        }
        phrases
    }

    /// Draws the chart with names of `label` columns at the left, and the limit on the first line.
    pub(in crate::tui) fn draw(&self, buffer: &mut Buffer, area: Rect, label: u16) {
        let Some((peak, _)) = self.peak() else { return };
        let columns = area.width.saturating_sub(label);
        if area.height < 2 || columns == 0 {
            return;
        }
        let names = &self.simulated.shown.names;
        let caption = names.caption(self.stage);
        if names.is_cpu(self.stage) {
            let told = format!(
                "{} {caption}: a CPU has no limit",
                fit(&fit_right("memory", usize::from(label) - 1), label.into()).trim_end()
            );
            buffer.set_stringn(area.x, area.y, told, area.width.into(), self.theme.fg(Role::Muted));
            return;
        }
        let most = if area.height >= 5 { 2 } else { 1 };
        let head = flow(self.legend(), " ", columns.into(), most);
        let top = (head.len() as u16).min(area.height - 1);
        for (y, line) in (0..top).zip(head) {
            let used = line.width() as u16;
            let place = Rect { x: area.x + label, width: columns, ..rows(area, y, 1) };
            buffer.set_line(place.x, place.y, &line, columns);
            if columns > used + 1 {
                let rule = "─".repeat((columns - used - 1).into());
                buffer.set_string(place.x + used + 1, place.y, rule, self.theme.fg(Role::Border));
            }
        }
        let muted = self.theme.fg(Role::Muted);
        let value = units::bytes_beside(peak, self.limit);
        let names = [("memory", muted), (caption, muted), (value.as_str(), self.theme.bold(Role::Text))];
        for (y, (text, style)) in (0..area.height).zip(names) {
            let text = fit(&fit_right(text, usize::from(label) - 1), label.into());
            buffer.set_stringn(area.x, area.y + y, text, label.into(), style);
        }
        let height = area.height - top;
        self.draw_grid(buffer, Rect { x: area.x + label, y: area.y + top, width: columns, height });
    }

    /// Draws the columns alone.
    pub(in crate::tui) fn draw_grid(&self, buffer: &mut Buffer, grid: Rect) {
        let Some((peak, parts)) = self.peak() else { return };
        let Some(steps) = self.simulated.timeline.memory.get(self.stage) else { return };
        let (scale, limit) = (self.scale(peak), self.limit);
        let layers = layers(parts, self.split, self.buffers());
        for column in 0..grid.width {
            let Some((start, end)) = self.axis.interval(column, 0.0, 1.0) else { continue };
            let bytes = most_in(steps, start, end);
            for row in 0..grid.height {
                let (symbol, style) = if self.shades.mixes() {
                    exact(&layers, bytes, scale, (row, grid.height), (self.theme, self.shades))
                } else {
                    cell(&layers, bytes, scale, (row, grid.height), self.theme)
                };
                if let Some(cell) = buffer.cell_mut((grid.x + column, grid.bottom() - 1 - row)) {
                    cell.set_symbol(symbol);
                    if self.shades.mixes() && limit.is_finite() {
                        cell.set_bg(self.shades.track());
                    }
                    cell.set_style(style);
                }
            }
            // Without computed colours, and if it is exceeded, the limit is a line.
            if self.shades.mixes() && peak <= limit * (1.0 + 1e-9) {
                continue;
            }
            let at = (limit / scale * f64::from(grid.height)).ceil() as u16;
            if limit.is_finite() && (1..=grid.height).contains(&at) {
                let y = grid.bottom() - at;
                if let Some(cell) = buffer.cell_mut((grid.x + column, y)).filter(|cell| cell.symbol() == " ") {
                    let role = if peak > limit * (1.0 + 1e-9) { Role::Bad } else { Role::Border };
                    cell.set_symbol("▔").set_fg(self.theme.color(role));
                }
            }
        }
    }
}

/// Colour of a part, different from all stages and other parts.
fn color(layer: &Layer, shades: &Shades, theme: &Theme) -> Color {
    if !shades.mixes() {
        return theme.color(layer.role);
    }
    // The parts of the state are shades of one colour.
    let (memory, left) = match (layer.role, layer.name) {
        (Role::Activations, _) => (Memory::Activations, 1.0),
        (Role::Buffers, _) => (Memory::Buffers, 1.0),
        (_, "gradients") => (Memory::State, 0.75),
        (_, "optimizer" | "other state") => (Memory::State, 0.5),
        _ => (Memory::State, 1.0),
    };
    shades.color(shades.towards_ground(shades.memory(memory), left))
}

/// Cell of a row with colours, where borders between parts are exact to an eighth of a row.
fn exact(
    layers: &[Layer],
    bytes: f64,
    scale: f64,
    (row, height): (u16, u16),
    (theme, shades): (&Theme, &Shades),
) -> (&'static str, Style) {
    let (low, high) = (f64::from(row), f64::from(row) + 1.0);
    let rows_of = |bytes: f64| bytes / scale.max(f64::MIN_POSITIVE) * f64::from(height);
    // Extent of each part within this row. Memory beyond the lower parts is in flight.
    let mut below = 0.0;
    let last = layers.len() - 1;
    let mut parts: Vec<(f64, Color)> = vec![];
    for (i, layer) in layers.iter().enumerate() {
        let end = if i == last { bytes } else { (below + layer.bytes).min(bytes) };
        let within = (rows_of(end).min(high) - rows_of(below).max(low)).max(0.0);
        if within > 1.0 / 16.0 {
            parts.push((within, color(layer, shades, theme)));
        }
        below = end.max(below);
    }
    match parts.as_slice() {
        [] => (" ", Style::new()),
        [(share, only)] => (EIGHTHS[((share * 8.0).round() as usize).clamp(1, 8)], Style::new().fg(*only)),
        [(share, lower), more @ ..] => {
            let upper = more.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or(*lower, |part| part.1);
            let filled: f64 = parts.iter().map(|part| part.0).sum();
            // A cell has two colours. If there is a third part and the empty one is large, the empty one is drawn.
            if filled < 0.75 {
                return (EIGHTHS[((filled * 8.0).round() as usize).clamp(1, 8)], Style::new().fg(upper));
            }
            (EIGHTHS[((share * 8.0).round() as usize).clamp(1, 7)], Style::new().fg(*lower).bg(upper))
        }
    }
}

/// Limit and peak, and the parts of the peak.
fn head(layers: &[Layer], peak: f64, limit: f64, far: bool, (theme, shades): (&Theme, &Shades)) -> Vec<Phrase> {
    let over = peak > limit * (1.0 + 1e-9);
    let muted = theme.fg(Role::Muted);
    let told = match limit.is_finite() {
        true if far => format!("limit {}, far above;", units::bytes_exact(limit)),
        true => format!("limit {},", units::bytes_exact(limit)),
        false => "no limit;".to_string(),
    };
    let peak = match over {
        true => format!("✗ peak {}, {}x as much:", units::bytes_beside(peak, limit), units::number(peak / limit)),
        false => format!("peak {}:", units::bytes_beside(peak, limit)),
    };
    let peak_style = if over { theme.bold(Role::Bad) } else { theme.bold(Role::Text) };
    let mut phrases = vec![vec![Span::styled(told, muted)], vec![Span::styled(peak, peak_style)]];
    // In stacking order, from the top.
    phrases.extend(layers.iter().rev().filter(|layer| layer.bytes > 0.0).map(|layer| {
        vec![
            Span::styled(if shades.mixes() { "■" } else { layer.fill }, Style::new().fg(color(layer, shades, theme))),
            Span::styled(format!(" {} {} ", layer.name, units::bytes_beside(layer.bytes, limit)), muted),
        ]
    }));
    phrases
}

/// Cell of a row, counted from below, for a number of bytes in use.
fn cell(layers: &[Layer], bytes: f64, scale: f64, (row, height): (u16, u16), theme: &Theme) -> (&'static str, Style) {
    let filled = eighths(bytes, scale, height, row);
    if filled == 0 {
        return (" ", Style::new());
    }
    // The part at the middle of the cell's filled section. Memory beyond the lower parts is in flight.
    let middle = (f64::from(row) + filled as f64 / 16.0) / f64::from(height) * scale;
    let mut below = 0.0;
    let last = layers.len() - 1;
    let part = layers[..last].iter().find(|layer| {
        below += layer.bytes;
        middle < below
    });
    let part = part.unwrap_or(&layers[last]);
    (if filled == 8 { part.fill } else { EIGHTHS[filled] }, theme.fg(part.role))
}

/// Number of eighths of a row, counted from below, that a value fills.
fn eighths(value: f64, scale: f64, height: u16, row: u16) -> usize {
    if scale <= 0.0 || !value.is_finite() {
        return 0;
    }
    let total = (value / scale * f64::from(height) * 8.0).round();
    (total - 8.0 * f64::from(row)).clamp(0.0, 8.0) as usize
}

/// Maximum memory in use in an interval: the value at its start, and each step within it.
fn most_in(steps: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let first = steps.partition_point(|step| step.0 <= from).saturating_sub(1);
    steps[first..].iter().take_while(|step| step.0 < to).map(|step| step.1).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::{self, Depth};

    #[test]
    fn the_most_counts_what_held_before() {
        let steps = [(0.0, 5.0), (1.0, 9.0), (2.0, 3.0)];
        assert_eq!(most_in(&steps, 0.0, 0.5), 5.0);
        assert_eq!(most_in(&steps, 0.5, 1.5), 9.0);
        assert_eq!(most_in(&steps, 1.5, 3.0), 9.0);
        assert_eq!(most_in(&steps, 2.5, 3.0), 3.0);
        assert_eq!(most_in(&[], 0.0, 1.0), 0.0);
    }

    #[test]
    fn rows_fill_from_below() {
        assert_eq!(eighths(1.0, 2.0, 4, 0), 8);
        assert_eq!(eighths(1.0, 2.0, 4, 1), 8);
        assert_eq!(eighths(1.0, 2.0, 4, 2), 0);
        assert_eq!(eighths(1.1, 2.0, 4, 2), 2);
        assert_eq!(eighths(0.0, 0.0, 4, 0), 0);
    }

    #[test]
    fn every_part_has_a_fill_of_its_own_and_its_place() {
        let parts =
            MemoryParts { weights: 2.0, gradients: 1.0, optimizer: 2.0, state: 0.0, buffers: 1.0, activations: 2.0 };
        let theme = theme::load("dark", None, Depth::None).unwrap();
        let column = |parts: &MemoryParts, bytes: f64| -> String {
            (0..8).map(|row| cell(&layers(parts, true, "buffers"), bytes, 8.0, (row, 8), &theme).0).collect()
        };
        assert_eq!(column(&parts, 8.0), "██▓╳╳░▒▒");
        // Fewer microbatches in flight: the rest stays.
        assert_eq!(column(&parts, 6.5), "██▓╳╳░▄ ");
        let sum = MemoryParts { state: 3.0, activations: 5.0, ..MemoryParts::default() };
        assert_eq!(column(&sum, 8.0), "███▒▒▒▒▒");
        let known = MemoryParts { weights: 1.0, state: 2.0, activations: 5.0, ..MemoryParts::default() };
        assert_eq!(column(&known, 4.0), "█▓▓▒    ");
    }
}

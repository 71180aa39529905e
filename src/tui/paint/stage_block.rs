//! A stage as a block of figures: one below the other, or in three columns where there is width and no height.

use ratatui::{
    Frame,
    layout::Rect,
    style::{Color, Style},
    text::{Line, Span},
};

use super::{
    facts::{COMMUNICATION, Facts, is_unlimited, of_limit},
    shades::Shades,
};
use crate::{
    tui::theme::{Role, Theme},
    units,
};

/// What a block is drawn with.
pub(in crate::tui) struct Block<'a> {
    pub theme: &'a Theme,
    pub shades: &'a Shades,
    pub facts: &'a Facts,
    /// Colour of the stage.
    pub hue: Style,
    /// Bytes of a device.
    pub limit: f64,
}

impl Block<'_> {
    fn title(&self, width: usize) -> Line<'static> {
        let theme = self.theme;
        let mut title =
            vec![Span::styled("█ ", self.hue), Span::styled(self.facts.title.clone(), theme.bold(Role::Text))];
        let taken = 2 + [&self.facts.title, &self.facts.devices].iter().map(|text| text.chars().count()).sum::<usize>();
        if !self.facts.per.is_empty() && taken + self.facts.per.len() + 4 <= width {
            title.push(Span::styled(format!("  {}", self.facts.per), theme.fg(Role::Muted)));
        }
        ends(title, Span::styled(self.facts.devices.clone(), theme.fg(Role::Muted)), width)
    }

    fn time(&self, width: usize) -> Vec<Line<'static>> {
        let Block { theme, shades, facts, .. } = *self;
        if facts.time.is_empty() {
            return vec![];
        }
        let whole: f64 = facts.time.iter().map(|part| part.2).sum::<f64>().max(f64::MIN_POSITIVE);
        let parts = facts.time.iter().map(|part| (shades.color(shades.activity(part.0)), part.2 / whole));
        let mut lines = vec![bar(parts.collect(), shades, width)];
        for (activity, name, seconds) in &facts.time {
            let sign = Span::styled("■ ", Style::new().fg(shades.color(shades.activity(*activity))));
            let value = if *seconds > 0.0 { units::seconds(*seconds) } else { "none".into() };
            lines.push(entry(sign, name, &value, theme, width));
            if let Some(hidden) = facts.hidden_s.filter(|_| *name == COMMUNICATION) {
                let hidden = if hidden > 0.0 { units::seconds(hidden) } else { "none".into() };
                lines.push(entry(Span::raw("    "), "of it hidden", &hidden, theme, width));
            }
        }
        lines
    }

    fn memory(&self, width: usize) -> Vec<Line<'static>> {
        let Block { theme, shades, facts, limit, .. } = *self;
        let Some(peak) = facts.peak_bytes else { return vec![] };
        let scale = if is_unlimited(limit) { peak } else { limit.max(peak) }.max(f64::MIN_POSITIVE);
        let parts = facts.memory.iter().map(|part| (shades.color(shades.memory(part.0)), part.2 / scale));
        let mut lines = vec![bar(parts.collect(), shades, width)];
        let bytes =
            |bytes: f64| if is_unlimited(limit) { units::bytes(bytes) } else { units::bytes_beside(bytes, limit) };
        for (part, name, own) in &facts.memory {
            let sign = Span::styled("■ ", Style::new().fg(shades.color(shades.memory(*part))));
            lines.push(entry(sign, name, &bytes(*own), theme, width));
        }
        let (held, of) = of_limit(peak, limit);
        let told = format!("{held}{of}");
        // Without the limit where there is no room for it.
        let told = if told.chars().count() + TOGETHER.len() + 3 <= width { told } else { bytes(peak) };
        lines.push(entry(Span::raw("  "), TOGETHER, &told, theme, width));
        lines
    }

    fn rows(&self, width: usize) -> Vec<Line<'static>> {
        let line = |(name, value): &(&'static str, String)| entry(Span::raw("  "), name, value, self.theme, width);
        self.facts.rows.iter().map(line).collect()
    }

    /// All of it, one below the other, with air where the height allows it.
    fn stacked(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let parts = [self.time(width), self.memory(width), self.rows(width)];
        let all: usize = parts.iter().map(Vec::len).sum();
        let air = all + 4 <= height;
        let mut lines = vec![self.title(width)];
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            if air {
                lines.push(Line::default());
            }
            lines.extend(part);
        }
        lines.truncate(height);
        lines
    }

    /// Draws it into an area; gives the lines it took.
    pub(in crate::tui) fn draw(&self, frame: &mut Frame<'_>, area: Rect) -> u16 {
        let lines = self.stacked(area.width.into(), area.height.into());
        let count = lines.len() as u16;
        for (y, line) in (area.y..area.bottom()).zip(lines) {
            frame.render_widget(line, Rect { y, height: 1, ..area });
        }
        count
    }

    /// Lines of the block in three columns.
    pub(in crate::tui) fn wide_height(&self) -> u16 {
        let parts = [self.time(20).len(), self.memory(20).len(), self.facts.rows.len()];
        1 + parts.into_iter().max().unwrap_or(0) as u16
    }

    /// Draws it in three columns below its title.
    pub(in crate::tui) fn draw_wide(&self, frame: &mut Frame<'_>, area: Rect) {
        if area.height == 0 {
            return;
        }
        frame.render_widget(self.title((area.width.min(3 * COLUMN + 2 * GAP)).into()), Rect { height: 1, ..area });
        let width = COLUMN.min(area.width.saturating_sub(2 * GAP) / 3);
        for (i, lines) in
            [self.time(width.into()), self.memory(width.into()), self.rows(width.into())].into_iter().enumerate()
        {
            let x = area.x + i as u16 * (width + GAP);
            for (y, line) in (area.y + 1..area.bottom()).zip(lines) {
                frame.render_widget(line, Rect { x, y, width, height: 1 });
            }
        }
    }
}

/// What all of a device's memory is called.
const TOGETHER: &str = "together";

/// Columns of a part where three stand side by side, and between two.
const COLUMN: u16 = 30;
const GAP: u16 = 4;

/// A bar of half the height of a row: parts, then what is left of it.
fn bar(parts: Vec<(Color, f64)>, shades: &Shades, width: usize) -> Line<'static> {
    let mut spans = vec![];
    let (mut sum, mut drawn) = (0.0, 0);
    for (i, (color, share)) in parts.into_iter().enumerate() {
        sum += share.max(0.0);
        let end = ((sum * width as f64).round() as usize).clamp(drawn, width);
        let fill = if shades.coloured() { "▄" } else { ["▄", "▂", "▅", "▁", "▃"][i % 5] };
        spans.push(Span::styled(fill.repeat(end - drawn), Style::new().fg(color)));
        drawn = end;
    }
    if shades.mixes() {
        spans.push(Span::styled("▄".repeat(width - drawn), Style::new().fg(shades.track())));
    }
    Line::from(spans)
}

/// A sign, a name, and a value at the right end.
fn entry(sign: Span<'static>, name: &str, value: &str, theme: &Theme, width: usize) -> Line<'static> {
    let (number, unit) = match value.split_once(' ') {
        Some((number, unit)) if unit.chars().next().is_some_and(char::is_alphabetic) => (number, format!(" {unit}")),
        _ => (value, String::new()),
    };
    let left = vec![sign, Span::styled(name.to_string(), theme.fg(Role::Muted))];
    let used: usize = left.iter().map(Span::width).sum();
    let gap = width.saturating_sub(used + number.chars().count() + unit.chars().count());
    let mut spans = left;
    spans.push(Span::raw(" ".repeat(gap)));
    spans.push(Span::styled(number.to_string(), theme.fg(Role::Text)));
    spans.push(Span::styled(unit, theme.fg(Role::Muted)));
    Line::from(spans)
}

/// A line with something at both ends; what is at the right goes first where both do not fit.
pub(in crate::tui) fn ends(left: Vec<Span<'static>>, right: Span<'static>, width: usize) -> Line<'static> {
    let used: usize = left.iter().map(Span::width).sum();
    let mut spans = left;
    if used + right.width() < width {
        spans.push(Span::raw(" ".repeat(width - used - right.width())));
        spans.push(right);
    }
    Line::from(spans)
}

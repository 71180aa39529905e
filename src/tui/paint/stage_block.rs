//! Block of a stage's figures: in one column, or in three if the area is wide and low.

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

/// Inputs of a block.
pub(in crate::tui) struct Block<'a> {
    pub theme: &'a Theme,
    pub shades: &'a Shades,
    pub facts: &'a Facts,
    /// Colour of the stage.
    pub hue: Style,
    /// Memory of a device, bytes.
    pub limit: f64,
}

impl Block<'_> {
    /// True if the title has room for what the times are of.
    fn told_in_title(&self, width: usize) -> bool {
        let taken = 2 + [&self.facts.title, &self.facts.devices].iter().map(|text| text.chars().count()).sum::<usize>();
        !self.facts.per.is_empty() && taken + self.facts.per.len() + 4 <= width
    }

    fn title(&self, width: usize) -> Line<'static> {
        let theme = self.theme;
        let mut title =
            vec![Span::styled("█ ", self.hue), Span::styled(self.facts.title.clone(), theme.bold(Role::Text))];
        if self.told_in_title(width) {
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
                lines.push(entry(Span::raw("  "), "  during passes", &hidden, theme, width));
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
        // Omit the limit if it does not fit.
        let told = if told.chars().count() + TOGETHER.len() + 3 <= width { told } else { bytes(peak) };
        lines.push(entry(Span::raw("  "), TOGETHER, &told, theme, width));
        lines
    }

    fn rows(&self, width: usize) -> Vec<Line<'static>> {
        let line = |(name, value): &(&'static str, String)| entry(Span::raw("  "), name, value, self.theme, width);
        self.facts.rows.iter().map(line).collect()
    }

    /// All parts in one column, with blank lines if the height allows them.
    fn stacked(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let parts = [self.time(width), self.memory(width), self.rows(width)];
        let all: usize = parts.iter().map(Vec::len).sum();
        let air = all + 4 <= height;
        let mut lines = vec![self.title(width)];
        for (i, part) in parts.into_iter().filter(|part| !part.is_empty()).enumerate() {
            if air {
                // What the times are of, if the title has no room for it.
                let per = self.facts.per.split(';').next().unwrap_or_default();
                let told = i == 0 && !per.is_empty() && lines[0].width() <= width && !self.told_in_title(width);
                lines.push(Line::styled(if told { per } else { "" }, self.theme.fg(Role::Muted)));
            }
            lines.extend(part);
        }
        lines.truncate(height);
        lines
    }

    /// Draws the block into an area. Returns the number of lines used.
    pub(in crate::tui) fn draw(&self, frame: &mut Frame<'_>, area: Rect) -> u16 {
        let lines = self.stacked(area.width.into(), area.height.into());
        let count = lines.len() as u16;
        for (y, line) in (area.y..area.bottom()).zip(lines) {
            frame.render_widget(line, Rect { y, height: 1, ..area });
        }
        count
    }

    /// Height of the block in three columns, lines.
    pub(in crate::tui) fn wide_height(&self) -> u16 {
        let parts = [self.time(20).len(), self.memory(20).len(), self.facts.rows.len()];
        1 + parts.into_iter().max().unwrap_or(0) as u16
    }

    /// Draws the block in three columns below its title.
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

/// Name of the sum of a device's memory.
const TOGETHER: &str = "together";

/// Width of each of three columns, and the gap between them.
const COLUMN: u16 = 30;
const GAP: u16 = 4;

/// Bar of half a row's height: parts, then the empty rest.
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

/// Line of a sign, a name, and a right-aligned value.
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

/// Line with text at both ends. The right one is dropped if both do not fit.
pub(in crate::tui) fn ends(left: Vec<Span<'static>>, right: Span<'static>, width: usize) -> Line<'static> {
    let used: usize = left.iter().map(Span::width).sum();
    let mut spans = left;
    if used + right.width() < width {
        spans.push(Span::raw(" ".repeat(width - used - right.width())));
        spans.push(right);
    }
    Line::from(spans)
}

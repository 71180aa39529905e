//! Phases below a strip, its playhead, and the gap of a broken axis.

use ratatui::{buffer::Buffer, layout::Rect};

use super::Strip;
use crate::{tui::theme::Role, units};

/// Columns that the time takes on either side of the playhead.
const TIME: u16 = 6;

impl Strip<'_> {
    /// Draws the number of hidden microbatches into the gap, centred; with the playhead in it, how many are left.
    pub(super) fn draw_gap(&self, buffer: &mut Buffer, area: Rect) {
        let (Some(gap), Some(steady)) = (self.axis.gap(), self.simulated.steady) else { return };
        let (from, width) = (area.x + gap.columns.0, gap.columns.1 - gap.columns.0);
        let left = match self.playhead_s {
            Some(at) if (gap.times.0..gap.times.1).contains(&at) => (gap.times.1 - at) / steady.microbatch_s,
            _ => f64::from(gap.microbatches),
        };
        let (text, muted) = (self.theme.bold(Role::Text), self.theme.fg(Role::Muted));
        let dots = ("…".to_string(), muted);
        let count = (format!("{left:.0} more"), text);
        let words = ["microbatches".to_string(), format!("{} each", units::seconds(steady.microbatch_s))];
        let fit = words.iter().all(|word| word.chars().count() < usize::from(width));
        let lines = match area.height {
            0 => vec![],
            1 | 2 => vec![count],
            5.. if fit => {
                let words = words.map(|word| (word, muted));
                [dots.clone(), count].into_iter().chain(words).chain([dots]).collect()
            }
            _ => vec![dots.clone(), count, dots],
        };
        let top = area.y + (area.height - lines.len() as u16) / 2;
        for (y, (line, style)) in (top..).zip(lines) {
            let long = line.chars().count() as u16;
            buffer.set_stringn(from + width.saturating_sub(long) / 2, y, line, width.into(), style);
        }
    }

    /// Draws the playhead over a strip, and its time on the line below.
    pub(in crate::tui) fn draw_playhead(&self, buffer: &mut Buffer, strip: Rect, line: Rect, at_s: f64) {
        let Some(column) = self.axis.column(at_s) else { return };
        let x = strip.x + column;
        for y in strip.top()..strip.bottom() {
            let cell = &mut buffer[(x, y)];
            // The number of hidden microbatches stays readable.
            if cell.symbol().chars().any(char::is_alphanumeric) {
                continue;
            }
            let thin = matches!(cell.symbol(), "▔" | "▀" | " ");
            if self.shades.mixes() && !thin {
                cell.bg = cell.fg;
            }
            cell.set_symbol("│").set_style(self.theme.bold(Role::Text));
        }
        if line.height > 0 {
            let text = format!(" {} ", units::seconds(at_s));
            let width = text.chars().count() as u16;
            let left = x.saturating_sub(width / 2).clamp(line.x, line.right().saturating_sub(width).max(line.x));
            buffer.set_stringn(left, line.y, text, line.width.into(), self.theme.bold(Role::Text));
        }
    }

    /// Draws warm-up, steady state and drain on a line below the strip, or times if the iteration has no such phases.
    pub(in crate::tui) fn draw_phases(&self, buffer: &mut Buffer, line: Rect, playhead_s: Option<f64>) {
        if line.height == 0 || line.width < 12 {
            return;
        }
        let (muted, rule) = (self.theme.fg(Role::Muted), self.theme.fg(Role::Border));
        let steady = self.simulated.steady.filter(|_| self.simulated.timeline.replicas.len() > 1);
        let Some(steady) = steady else {
            buffer.set_string(line.x, line.y, "0", muted);
            let end = units::seconds(self.axis.times().1);
            let width = end.chars().count() as u16;
            buffer.set_string(line.right().saturating_sub(width), line.y, &end, muted);
            return;
        };
        let batch = self.simulated.timeline.iteration_s;
        let each = format!(": a microbatch every {}", units::seconds(steady.microbatch_s));
        let spans = [
            ("warm-up", "", 0.0, steady.from_s),
            ("steady", each.as_str(), steady.from_s, steady.until_s),
            ("drain", "", steady.until_s, batch),
        ];
        for (name, more, from, to) in spans {
            let columns = self.axis.column(from).zip(self.axis.column(to));
            let Some((first, end)) = columns.filter(|(first, end)| end > first && to > from) else { continue };
            let width = usize::from(end - first);
            let whole = format!(" {name} {} ", units::seconds(to - from));
            let explained = format!(" {name} {}{more} ", units::seconds(to - from));
            let apart = format!(" {name} ");
            let fits = |text: &&str| text.chars().count() + if text.starts_with(' ') { 4 } else { 2 } <= width;
            let text = [explained.as_str(), whole.as_str(), apart.as_str(), name, ""].into_iter().find(fits);
            let text = text.unwrap_or("");
            let long = text.chars().count();
            // The playhead's time is on the same line, so the name goes to the larger part beside it.
            let (mut from, mut room) = (0, width);
            if let Some(column) = playhead_s.and_then(|at| self.axis.column(at)) {
                let (left, right) = (column.saturating_sub(TIME), column + TIME);
                if left < end && right > first {
                    let before = usize::from(left.saturating_sub(first));
                    let after = usize::from(end.saturating_sub(right));
                    (from, room) = if before >= after { (0, before) } else { (width - after, after) };
                }
            }
            let text = if long + 2 <= room { text } else { "" };
            let left = from + room.saturating_sub(long) / 2;
            for x in 0..width {
                let sign = if x == 0 {
                    "├"
                } else if x + 1 == width {
                    "┤"
                } else {
                    "─"
                };
                buffer[(line.x + first + x as u16, line.y)].set_symbol(sign).set_style(rule);
            }
            buffer.set_string(line.x + first + left as u16, line.y, text, muted);
        }
    }
}

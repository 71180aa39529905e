//! Drawing of the device map: hue is the stage, height the memory, brightness the load. At a moment of the iteration,
//! colour is the activity.
//!
//! A cell of several rows fills from below in eighths of a row. Cells of half a row show memory as brightness. The
//! first cell of a run has the number of its stage. Without colours only number, height and fill remain; the fill shows
//! the activity.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

use super::{
    atlas::Seat,
    map_layout::MapLayout,
    moment::{self, Moment},
    shades::{Shade, Shades},
};
use crate::tui::theme::{Role, Theme};

/// Lower blocks, by eighths of a row.
pub(in crate::tui) const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Inputs of a map.
pub(in crate::tui) struct Map<'a> {
    pub layout: &'a MapLayout,
    pub shades: &'a Shades,
    pub theme: &'a Theme,
    /// Places of the stages of the plan.
    pub stages: &'a [f64],
    /// Seat under the cursor.
    pub cursor: Option<usize>,
    /// Moment to show; `None`: the whole iteration.
    pub moment: Option<Moment<'a>>,
    /// Devices whose stage changed, while that is highlighted.
    pub changed: &'a [u32],
    /// Devices that failed.
    pub failed: &'a [u32],
}

/// Look of a cell.
struct Look {
    shade: Shade,
    /// Filled fraction, 0 to 1.
    level: f64,
    /// Fill without colours.
    fill: &'static str,
}

impl<'a> Map<'a> {
    /// Map of a plan without cursor, moment and changes.
    pub(in crate::tui) fn plain(
        layout: &'a MapLayout,
        (shades, theme): (&'a Shades, &'a Theme),
        stages: &'a [f64],
    ) -> Map<'a> {
        Map { layout, shades, theme, stages, cursor: None, moment: None, changed: &[], failed: &[] }
    }
}

impl Map<'_> {
    /// Draws the map.
    pub(in crate::tui) fn draw(&self, buffer: &mut Buffer, area: Rect) {
        for (x, y, name) in &self.layout.names {
            let room = usize::from(area.width.saturating_sub(*x));
            if *y < area.height {
                let style = self.theme.fg(Role::Muted);
                buffer.set_stringn(area.x + x, area.y + y, name, room, style);
            }
        }
        for (i, seat) in self.layout.atlas.seats.iter().enumerate() {
            let (x, y, low) = self.layout.places[i];
            let size = self.layout.size;
            let place = Rect { x: area.x + x, y: area.y + y, width: size.width, height: size.height.max(1) };
            if place.intersection(area) != place {
                continue;
            }
            match size.height {
                0 => self.draw_half(buffer, place, i, seat, low),
                _ => self.draw_cell(buffer, place, area, i, seat),
            }
        }
    }

    fn look(&self, seat: &Seat) -> Option<Look> {
        let stage = seat.stage?;
        let hue = self.shades.stage(stage, self.stages);
        if self.changed.contains(&seat.device) {
            let shade = self.shades.mix(&[(hue, 0.35), (self.shades.flash(), 0.65)]);
            return Some(Look { shade, level: 1.0, fill: "█" });
        }
        let full = self.layout.atlas.full.max(f64::MIN_POSITIVE);
        let Some(moment) = &self.moment else {
            let shade = self.shades.loaded(hue, seat.load);
            // Memory without a limit is shown as full.
            return Some(Look { shade, level: seat.memory.map_or(1.0, |share| share / full), fill: "█" });
        };
        let shares = moment.shares(stage, seat.replica);
        let planned = seat.memory.map_or(1.0, |share| share / full);
        let peak = moment.simulated.timeline.peak_memory_bytes.get(stage).copied().unwrap_or(0.0);
        let limit = moment.simulated.shown.memory_limit(stage);
        let level = match seat.memory {
            Some(_) if limit.is_finite() && peak > 0.0 => moment.memory(stage) / limit / full,
            _ => planned,
        };
        Some(match moment::most(&shares) {
            Some(most) => Look { shade: moment::stepped(self.shades, &shares), level, fill: most.fill() },
            None => Look { shade: self.shades.towards_ground(hue, 0.38), level, fill: "·" },
        })
    }

    /// True if a cell shows the number of its stage: at the start of a run, again on every line.
    fn begins_run(&self, i: usize) -> bool {
        let Some(before) = i.checked_sub(1) else { return true };
        let seats = &self.layout.atlas.seats;
        // The cells of machines stand in a block for each stage.
        let block = self.layout.atlas.grid.is_some() && self.layout.stands_for > 1;
        let same_line = block || self.layout.places[before].1 == self.layout.places[i].1;
        let one_group = !self.layout.atlas.groups.iter().any(|group| group.seats.start == i);
        !(same_line && one_group && seats[before].stage == seats[i].stage)
    }

    fn draw_cell(&self, buffer: &mut Buffer, place: Rect, area: Rect, i: usize, seat: &Seat) {
        if self.failed.contains(&seat.device) {
            let style = self.theme.bold(Role::Bad);
            (place.top()..place.bottom())
                .for_each(|y| buffer.set_string(place.x, y, "╳".repeat(place.width.into()), style));
            return;
        }
        let Some(look) = self.look(seat) else { return hollow(buffer, place, self.theme) };
        let (full, empty) = (self.shades.color(look.shade), self.shades.color(self.shades.empty(look.shade)));
        let empty = match (self.shades.mixes(), &self.moment) {
            (true, None) => empty,
            // A constant background during playback saves output, because unchanged cells are not sent again.
            (true, Some(_)) => self.shades.track(),
            (false, _) => Color::Reset,
        };
        let eighths = (look.level.clamp(0.0, 1.0) * f64::from(place.height) * 8.0).round() as u16;
        let eighths = if look.level > 0.0 { eighths.max(1) } else { 0 };
        for row in 0..place.height {
            let filled = eighths.saturating_sub(8 * row).min(8);
            let y = place.bottom() - 1 - row;
            for x in place.left()..place.right() {
                let cell = &mut buffer[(x, y)];
                let sign =
                    if filled == 8 && !self.shades.coloured() { look.fill } else { EIGHTHS[usize::from(filled)] };
                cell.set_symbol(sign).set_fg(full);
                if self.shades.mixes() {
                    cell.set_bg(empty);
                }
            }
        }
        // The number is drawn on the filled part of the lowest row.
        if seat.stage.is_some() && self.begins_run(i) {
            let number = seat.number.to_string();
            if number.len() <= usize::from(place.width) {
                let y = place.bottom() - 1;
                let style = if eighths >= 5 && self.shades.mixes() && self.moment.is_none() {
                    Style::new().fg(self.shades.ink(look.shade)).bg(full)
                } else if self.shades.mixes() {
                    Style::new().fg(self.theme.color(Role::Text)).bg(empty)
                } else {
                    Style::new().fg(self.theme.color(Role::Text))
                };
                buffer.set_string(place.x, y, number, style.add_modifier(Modifier::BOLD));
            }
        }
        self.mark(buffer, place, area, i, seat);
    }

    /// Underlines the stage under the cursor, its device most. Without a free line below, marks the device alone.
    fn mark(&self, buffer: &mut Buffer, place: Rect, area: Rect, i: usize, seat: &Seat) {
        let Some(cursor) = self.cursor else { return };
        let here = i == cursor;
        let same = seat.stage.is_some() && self.layout.atlas.seats.get(cursor).is_some_and(|s| s.stage == seat.stage);
        let below = place.bottom();
        let free = below < area.bottom() && self.layout.size.height > 0 && {
            let cell = &buffer[(place.x, below)];
            cell.symbol() == " " && cell.bg == self.theme.base().bg.unwrap_or(Color::Reset)
        };
        if free && same {
            let style = if here { self.theme.bold(Role::Text) } else { self.theme.fg(Role::Muted) };
            for x in place.left()..place.right() {
                buffer[(x, below)].set_symbol(if here { "▀" } else { "▔" }).set_style(style);
            }
        } else if here {
            let y = place.bottom() - 1;
            buffer[(place.right() - 1, y)].set_symbol("◆").set_style(self.theme.bold(Role::Text));
        }
    }

    /// Draws half a row: the upper or lower half of a character cell.
    fn draw_half(&self, buffer: &mut Buffer, place: Rect, i: usize, seat: &Seat, low: bool) {
        let cell = &mut buffer[(place.x, place.y)];
        let here = self.cursor == Some(i);
        let color = match self.look(seat) {
            _ if here => self.theme.color(Role::Text),
            Some(look) => {
                let left = 0.35 + 0.65 * look.level.clamp(0.0, 1.0);
                self.shades.color(self.shades.towards_ground(look.shade, left))
            }
            None => self.shades.color(self.shades.track_shade()),
        };
        if !self.shades.coloured() {
            let both = cell.symbol() == "▀" && low;
            let sign = match (seat.stage.is_some(), low) {
                (false, _) => "·",
                (true, true) if both => "█",
                (true, true) => "▄",
                (true, false) => "▀",
            };
            cell.set_symbol(if here { "◆" } else { sign });
        } else if low {
            // The upper half is drawn already.
            cell.set_bg(color);
        } else {
            cell.set_symbol("▀").set_fg(color);
        }
    }
}

/// Draws an idle device.
fn hollow(buffer: &mut Buffer, place: Rect, theme: &Theme) {
    let style = theme.fg(Role::Border);
    let rows: Vec<String> = match (place.width, place.height) {
        (1, _) => vec!["·".into(); place.height.into()],
        (width, 1) => vec![format!("[{}]", " ".repeat(usize::from(width) - 2))],
        (width, height) => {
            let (rule, blank) = ("─".repeat(usize::from(width) - 2), " ".repeat(usize::from(width) - 2));
            let mut rows = vec![format!("╭{rule}╮")];
            rows.extend((2..height).map(|_| format!("│{blank}│")));
            rows.push(format!("╰{rule}╯"));
            rows
        }
    };
    for (y, row) in (place.y..).zip(rows) {
        buffer.set_string(place.x, y, row, style);
    }
}

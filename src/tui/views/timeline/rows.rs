//! Rows of the timeline: a line of compute for each stage or replica, with one of transfers if it fits.
//!
//! A stage's row shows its first replica; the others behave the same with the microbatches in between. Every column
//! queries the work of its interval ([`Simulated::share`]), so the cost of a frame does not depend on the number of
//! events.

use std::ops::Range;

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

use super::draw::{LABEL, Row};
use crate::{
    simulate::{Event, EventKind},
    tui::{
        marks::Marks,
        model::{Focus, Hit, Model},
        paint::{
            area::scrolled,
            axis::Axis,
            moment,
            shades::{Activity, Shades},
            strip,
            text::{clip, plain},
        },
        simulated::{Lane, Simulated},
        theme::{Role, Theme},
        widget::scrollbar::scrollbar,
    },
};

/// Sign at the start of an event of the critical path.
pub(super) const MARK: &str = "◆";

/// Maximum height of a row's compute, lines.
const TALLEST: u16 = 3;

/// Lines of a height that the rows leave.
pub(super) fn spare(height: u16, rows: usize) -> u16 {
    match usize::from(height) / rows.max(1) {
        0 | 1 => 0,
        pitch => height - (rows * pitch.min(usize::from(TALLEST) + 1)) as u16,
    }
}

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    marks: &mut Marks,
    simulated: &Simulated,
    (all, selected): (&[Row], usize),
    window: (f64, f64),
) {
    let theme = &model.appearance.theme;
    let focused = model.focus == Focus::View;
    let shades = Shades::new(theme, model.appearance.depth);
    // Each row has a thin line of transfers below it if all rows then fit; else each stage, else the selected one.
    let pitch = usize::from(area.height) / all.len().max(1);
    let stages = all.iter().filter(|(_, replica)| replica.is_none()).count();
    let by_stage = all.len() + stages < usize::from(area.height);
    let lines = (pitch.saturating_sub(1) as u16).clamp(1, TALLEST);
    let visible = if pitch >= 2 || by_stage { all.len() } else { (area.height as usize).saturating_sub(1).max(1) };
    let first = scrolled(selected, visible, all.len());
    let mut y = area.y;
    for (i, &(stage, replica)) in all.iter().enumerate().skip(first) {
        if y >= area.bottom() {
            break;
        }
        let line = Rect { y, height: lines.min(area.bottom() - y), ..area };
        marks.hits.push((line, Hit::ListRow(i)));
        let count = simulated.timeline.replicas[stage];
        let unfolded = model.views.timeline.unfolded.contains(&stage);
        let name = (simulated.shown.names.short(stage), replica);
        draw_label(frame, Rect { height: 1, ..line }, theme, name, count, unfolded, (i == selected, focused));
        let hue = shades.color(shades.stage(stage, &simulated.shown.places));
        for y in line.top()..line.bottom() {
            let mark = Span::styled("▌", Style::new().fg(hue));
            let x = line.x + (LABEL - 1).min(line.width);
            frame.render_widget(mark, Rect { x, y, width: 1, height: 1 }.intersection(line));
        }
        let grid = Rect { x: line.x + LABEL.min(line.width), width: line.width.saturating_sub(LABEL), ..line };
        let strip = Strip { grid, simulated, theme, shades: &shades, stage, replica: replica.unwrap_or(0), window };
        // The row of a stage stands for all its replicas.
        let replicas = replica.map_or(0..count, |replica| replica..replica + 1);
        strip.draw_compute(frame.buffer_mut());
        if model.views.timeline.path {
            strip.draw_path(frame.buffer_mut(), Lane::Compute, replicas.clone());
        }
        y += line.height;
        let links = pitch >= 2 || by_stage && replica.is_none();
        if (links || i == selected) && y < area.bottom() {
            let strip = Strip { grid: Rect { y, height: 1, ..grid }, ..strip };
            strip.draw_links(frame.buffer_mut());
            if model.views.timeline.path {
                strip.draw_path(frame.buffer_mut(), Lane::Links, replicas);
            }
            marks.hits.push((Rect { y, height: 1, ..line }, Hit::ListRow(i)));
            y += 1;
        }
    }
    scrollbar(frame, area, theme, (first, visible, all.len()));
    let used = Rect { x: area.x + LABEL.min(area.width), height: y - area.y, ..area };
    for column in 0..area.width.saturating_sub(LABEL) {
        marks.hits.push((Rect { x: used.x + column, width: 1, ..used }, Hit::Time(column as usize)));
    }
}

fn draw_label(
    frame: &mut Frame<'_>,
    line: Rect,
    theme: &Theme,
    (short, replica): (&str, Option<u32>),
    count: u32,
    unfolded: bool,
    (selected, focused): (bool, bool),
) {
    let sign = if selected { "▌" } else { " " };
    let mut spans = vec![Span::styled(sign, theme.fg(Role::Focus))];
    match replica {
        None => {
            spans.push(Span::raw(if count == 1 {
                "  "
            } else if unfolded {
                "▾ "
            } else {
                "▸ "
            }));
            spans.push(Span::styled(short.to_string(), theme.bold(Role::Text)));
            if count > 1 {
                spans.push(Span::styled(format!(" ×{count}"), theme.fg(Role::Muted)));
            }
        }
        Some(replica) => spans.push(Span::styled(format!("    r{}", replica + 1), theme.fg(Role::Muted))),
    }
    let place = Rect { width: line.width.min(LABEL - 1), ..line };
    frame.render_widget(Line::from(spans), place);
    if selected && focused {
        frame.buffer_mut().set_style(place, theme.selected());
    }
}

/// Colour of transfers: of activations, or of gradients alone.
pub(super) fn send_color(shades: &Shades, activations: bool) -> Color {
    let shade = shades.activity(Activity::Communication);
    shades.color(if activations { shade } else { shades.towards_ground(shade, 0.6) })
}

/// Line of one replica: its area, and the time it covers.
#[derive(Clone, Copy)]
struct Strip<'a> {
    grid: Rect,
    simulated: &'a Simulated,
    theme: &'a Theme,
    shades: &'a Shades,
    stage: usize,
    replica: u32,
    /// Start and end, seconds.
    window: (f64, f64),
}

impl Strip<'_> {
    fn is_empty(&self) -> bool {
        self.grid.width == 0 || self.grid.height == 0 || self.window.1 <= self.window.0
    }

    /// Seconds per column.
    fn per_column(&self) -> f64 {
        (self.window.1 - self.window.0) / f64::from(self.grid.width)
    }

    /// Column of a time, from the left of the grid; the width for later times.
    fn column(&self, time: f64) -> u16 {
        (((time - self.window.0) / self.per_column()).round().max(0.0) as u16).min(self.grid.width)
    }

    /// Draws the compute of one replica: boxes if events are wide enough, otherwise fractions per column.
    fn draw_compute(&self, buffer: &mut Buffer) {
        let Strip { grid, simulated, shades, theme, stage, replica, window: (from, to) } = *self;
        if self.is_empty() {
            return;
        }
        let axis = Axis::linear(self.window, grid.width);
        let shares = strip::Strip { simulated, shades, theme, axis, playhead_s: None };
        shares.draw_replica(buffer, grid, stage, replica);
        let events = simulated.compute(stage, replica, from, to);
        if events.len() * 2 <= grid.width as usize {
            let paired: Vec<&[Event]> = simulated.pairs(stage, replica, from, to).collect();
            for event in events {
                let name = match event.kind {
                    EventKind::OptimizerStep => String::new(),
                    _ => simulated.part(event).unwrap_or_else(|| event.microbatch.to_string()),
                };
                self.draw_box(buffer, event, &name);
            }
            paired.into_iter().for_each(|pair| self.draw_pair(buffer, pair));
        }
    }

    /// Draws two passes that run side by side: the forward pass in the upper half, the backward pass below.
    fn draw_pair(&self, buffer: &mut Buffer, pair: &[Event]) {
        let Strip { grid, shades, window: (from, _), .. } = *self;
        let [first, .., last] = pair else { return };
        let (start, end) = (self.column(first.start_s), self.column(last.end_s));
        if end < start + 2 {
            return;
        }
        let [above, below] = [first, last].map(|event| {
            let activity = moment::of(event.kind);
            let shade = shades.activity(activity);
            (shades.color(shade), shades.ink(shade), activity.fill())
        });
        for y in grid.top()..grid.bottom() {
            let upper = (y - grid.top()) * 2 + 1 < grid.height;
            // One line, or the middle one of three, shows both.
            let both = (y - grid.top()) * 2 + 1 == grid.height;
            for x in start..end {
                let cell = &mut buffer[(grid.x + x, y)];
                match (shades.coloured(), both, upper) {
                    (true, true, _) => cell.set_symbol("▀").set_style(Style::new().fg(above.0).bg(below.0)),
                    (true, false, upper) => {
                        let (color, ink, _) = if upper { above } else { below };
                        cell.set_symbol(" ").set_style(Style::new().bg(color).fg(ink))
                    }
                    (false, _, _) => cell.set_symbol("▚").set_style(plain()),
                };
            }
            if first.start_s >= from && !both {
                buffer[(grid.x + start, y)].set_symbol("▏");
            }
        }
        let room = (end - start - 1) as usize;
        let names = [(first, grid.top()), (last, grid.bottom() - 1)];
        if grid.height > 1 {
            for (event, y) in names {
                let name = event.microbatch.to_string();
                if name.len() <= room {
                    let style = buffer[(grid.x + start + 1, y)].style();
                    buffer.set_string(grid.x + start + 1, y, name, style);
                }
            }
        } else {
            let name = format!("{}+{}", first.microbatch, last.microbatch);
            if name.len() + 2 <= room {
                buffer.set_string(grid.x + start + 1, grid.y, name, Style::new().fg(below.1).bg(below.0));
            }
        }
    }

    /// Draws an event of at least two columns, with as much of its name as fits. A forward pass has a name only with
    /// space to spare, because its backward pass has one.
    fn draw_box(&self, buffer: &mut Buffer, event: &Event, name: &str) {
        let Strip { grid, shades, window: (from, _), .. } = *self;
        let (start, end) = (self.column(event.start_s), self.column(event.end_s));
        if end < start + 2 {
            return;
        }
        let activity = moment::of(event.kind);
        let shade = shades.activity(activity);
        let style =
            if shades.coloured() { Style::new().bg(shades.color(shade)).fg(shades.ink(shade)) } else { plain() };
        let fill = if shades.coloured() { " " } else { activity.fill() };
        for y in grid.top()..grid.bottom() {
            for x in start..end {
                buffer[(grid.x + x, y)].set_symbol(fill).set_style(style);
            }
            if event.start_s >= from {
                buffer[(grid.x + start, y)].set_symbol("▏").set_style(style);
            }
        }
        let room = (end - start - 1) as usize;
        let number = name.bytes().all(|c| c.is_ascii_digit());
        let spare = if activity == Activity::Backward { 0 } else { 2 };
        let text = clip(name, room);
        // A cut number misleads.
        let halved = text.strip_suffix('…').is_some_and(|text| text.ends_with(|c: char| c.is_ascii_digit()));
        if !halved && (!number || name.len() + spare <= room) {
            buffer.set_string(grid.x + start + 1, grid.y, text, style);
        }
    }

    /// Draws transfers as a thin line: activations bright, gradients dimmer. Uses arrows without colours.
    fn draw_links(&self, buffer: &mut Buffer) {
        let Strip { grid, simulated, shades, stage, replica, window: (from, _), .. } = *self;
        if self.is_empty() {
            return;
        }
        let per_column = self.per_column();
        for column in 0..grid.width {
            let middle = from + (f64::from(column) + 0.5) * per_column;
            let start = simulated.repeated(stage, replica, middle) - per_column / 2.0;
            let sends = simulated.sending(stage, replica, start, start + per_column);
            let symbol = match sends {
                [true, true] => "↔",
                [true, false] => "→",
                [false, true] => "←",
                [false, false] => continue,
            };
            let cell = &mut buffer[(grid.x + column, grid.y)];
            if shades.coloured() {
                cell.set_symbol("▔").set_fg(send_color(shades, sends[0]));
            } else {
                cell.set_symbol(symbol);
            }
        }
    }

    /// Marks the critical path's events of some replicas on a row: a sign at the start, underlined over its duration.
    fn draw_path(&self, buffer: &mut Buffer, lane: Lane, replicas: Range<u32>) {
        let Strip { grid, simulated, theme, stage, window: (from, to), .. } = *self;
        if self.is_empty() {
            return;
        }
        let events = replicas.flat_map(|replica| simulated.critical(lane, stage, replica, from, to));
        for event in events {
            let (start, end) = (self.column(event.start_s), self.column(event.end_s));
            for x in start..end {
                buffer[(grid.x + x, grid.y)].modifier.insert(Modifier::UNDERLINED);
            }
            if event.start_s >= from && start < grid.width {
                let cell = &mut buffer[(grid.x + start, grid.y)];
                cell.set_symbol(MARK);
                if cell.bg == theme.base().bg.unwrap_or(Color::Reset) {
                    cell.set_style(theme.bold(Role::Accent));
                } else {
                    cell.modifier.insert(Modifier::BOLD);
                }
            }
        }
    }
}

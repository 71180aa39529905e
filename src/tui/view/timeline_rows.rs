//! The rows of the timeline: a line of compute for each stage or replica, and where there is room one of transfers.
//!
//! A stage's row shows its first replica: the others do the same with the microbatches between. Every column asks for
//! the shares of its interval ([`Played::share`]), so a frame costs the same whether it covers ten events or a million.

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

use super::{
    clip, plain,
    timeline::{LABEL, Row},
};
use crate::{
    simulate::{Event, EventKind},
    tui::{
        model::{Focus, Hit, Model},
        played::{Lane, Played, Work},
        theme::{Role, Theme},
    },
};

/// Where an event of the critical path begins.
pub(super) const MARK: &str = "◆";

/// Sign and style of a kind of compute: recomputation is hatched in the colour of what it repeats, the backward of the
/// weights in that of the backward.
pub(super) fn paint_work(theme: &Theme, work: Work) -> (&'static str, Style) {
    match work {
        Work::Forward => paint(theme, Role::Forward, "▒"),
        Work::Recompute => ("╱", hatched(theme, Role::Forward)),
        Work::Backward => paint(theme, Role::Backward, "▓"),
        Work::Weights => ("╲", hatched(theme, Role::Backward)),
        Work::Optimizer => ("╳", hatched(theme, Role::AllReduce)),
    }
}

fn hatched(theme: &Theme, role: Role) -> Style {
    if theme.color(role) == Color::Reset { plain() } else { theme.on(role) }
}

/// Sign and style of a kind of work: a coloured ground where there are colours, else a fill.
pub(super) fn paint(theme: &Theme, role: Role, fill: &'static str) -> (&'static str, Style) {
    if theme.color(role) == Color::Reset { (fill, plain()) } else { (" ", theme.on(role)) }
}

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &mut Model,
    played: &Played,
    all: &[Row],
    window: (f64, f64),
) {
    let theme = model.theme.clone();
    let selected = model.timeline.row;
    let focused = model.focus == Focus::View;
    // Transfers have a line of their own below each row if that leaves room for all rows, else below the selected one.
    let tall = all.len() * 2 <= area.height as usize;
    let visible = if tall { all.len() } else { (area.height as usize).saturating_sub(1).max(1) };
    let first = super::scrolled(selected, visible, all.len());
    let mut y = area.y;
    for (i, &(stage, replica)) in all.iter().enumerate().skip(first) {
        if y >= area.bottom() {
            break;
        }
        let line = Rect { y, height: 1, ..area };
        model.hits.push((line, Hit::ListRow(i)));
        let count = played.timeline.replicas[stage];
        let unfolded = model.timeline.unfolded.contains(&stage);
        draw_label(
            frame,
            line,
            &theme,
            (played.shown.names.short(stage), replica),
            count,
            unfolded,
            (i == selected, focused),
        );
        let grid = Rect { x: line.x + LABEL.min(line.width), width: line.width.saturating_sub(LABEL), ..line };
        let strip = Strip { grid, played, theme: &theme, stage, replica: replica.unwrap_or(0), window };
        strip.draw_compute(frame.buffer_mut());
        if model.timeline.path {
            strip.draw_path(frame.buffer_mut(), Lane::Compute);
        }
        y += 1;
        if (tall || i == selected) && y < area.bottom() {
            let strip = Strip { grid: Rect { y, ..grid }, ..strip };
            strip.draw_links(frame.buffer_mut());
            if model.timeline.path {
                strip.draw_path(frame.buffer_mut(), Lane::Links);
            }
            model.hits.push((Rect { y, ..line }, Hit::ListRow(i)));
            y += 1;
        }
    }
    let used = Rect { x: area.x + LABEL.min(area.width), height: y - area.y, ..area };
    for column in 0..area.width.saturating_sub(LABEL) {
        model.hits.push((Rect { x: used.x + column, width: 1, ..used }, Hit::Time(column as usize)));
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

/// A line of one replica: where it is drawn, and the time it covers.
#[derive(Clone, Copy)]
struct Strip<'a> {
    grid: Rect,
    played: &'a Played,
    theme: &'a Theme,
    stage: usize,
    replica: u32,
    /// Seconds, from and to.
    window: (f64, f64),
}

impl Strip<'_> {
    fn is_empty(&self) -> bool {
        self.grid.width == 0 || self.grid.height == 0 || self.window.1 <= self.window.0
    }

    /// Seconds of a column.
    fn per_column(&self) -> f64 {
        (self.window.1 - self.window.0) / f64::from(self.grid.width)
    }

    /// The column in which a time lies, from the left of the grid; its width for all that is later.
    fn column(&self, time: f64) -> u16 {
        (((time - self.window.0) / self.per_column()).round().max(0.0) as u16).min(self.grid.width)
    }

    /// Forward, backward and all-reduce of one replica; bubbles stay empty.
    fn draw_compute(&self, buffer: &mut Buffer) {
        let Strip { grid, played, theme, stage, replica, window: (from, to) } = *self;
        if self.is_empty() {
            return;
        }
        let per_column = self.per_column();
        for column in 0..grid.width {
            let start = from + f64::from(column) * per_column;
            if played.left_out(stage, replica, start + per_column / 2.0) {
                buffer[(grid.x + column, grid.y)].set_symbol("·").set_style(theme.fg(Role::Muted));
                continue;
            }
            let share = played.share(stage, replica, start, start + per_column);
            let cell = &mut buffer[(grid.x + column, grid.y)];
            let reduce = share.all_reduce_s / per_column;
            let work: f64 = share.work_s.iter().sum::<f64>() / per_column;
            let most =
                Work::ALL.into_iter().max_by(|a, b| share.work_s[*a as usize].total_cmp(&share.work_s[*b as usize]));
            let most = most.unwrap_or(Work::Forward);
            let of = |kinds: &[Work]| kinds.iter().map(|kind| share.work_s[*kind as usize]).sum::<f64>() / per_column;
            let backward = of(&[Work::Recompute, Work::Backward, Work::Weights]);
            let forward = of(&[Work::Forward]);
            if work + reduce < 0.3 {
                // Less than a third: the bubble is what one should see, unless there is next to nothing else around.
                if work + reduce > 0.02 {
                    let role = if forward > backward { Role::Forward } else { Role::Backward };
                    cell.set_symbol("▏").set_style(theme.fg(if reduce > work { Role::AllReduce } else { role }));
                }
            } else if reduce >= forward.max(backward) {
                let (symbol, style) = paint(theme, Role::AllReduce, "█");
                cell.set_symbol(symbol).set_style(style);
            } else if forward > 0.15 && backward > 0.15 && theme.color(Role::Forward) != Color::Reset {
                let style = Style::new().fg(theme.color(Role::Forward)).bg(theme.color(Role::Backward));
                cell.set_symbol("▀").set_style(style);
            } else {
                let (symbol, style) = paint_work(theme, most);
                cell.set_symbol(symbol).set_style(style);
            }
        }
        let events = played.compute(stage, replica, from, to);
        // Boxes and numbers only where events are wide enough to be told apart.
        if events.len() * 2 <= grid.width as usize {
            for event in events {
                let name = match event.kind {
                    EventKind::OptimizerStep => String::new(),
                    _ => played.part(event).unwrap_or_else(|| event.microbatch.to_string()),
                };
                self.draw_box(buffer, event, &name);
            }
        }
    }

    /// The left edge of an event that is at least two columns wide, and as much of its name as fits.
    fn draw_box(&self, buffer: &mut Buffer, event: &Event, name: &str) {
        let Strip { grid, theme, window: (from, _), .. } = *self;
        let (start, end) = (self.column(event.start_s), self.column(event.end_s));
        if end < start + 2 {
            return;
        }
        let (symbol, style) = paint_work(theme, Work::of(event.kind));
        for x in start..end {
            buffer[(grid.x + x, grid.y)].set_symbol(symbol).set_style(style);
        }
        if event.start_s >= from {
            buffer[(grid.x + start, grid.y)].set_symbol("▏").set_style(style);
        }
        let room = (end - start - 1) as usize;
        let number = name.bytes().all(|c| c.is_ascii_digit());
        if !number || name.len() <= room {
            buffer.set_string(grid.x + start + 1, grid.y, clip(name, room), style);
        }
    }

    /// Activations to the right, gradients to the left.
    fn draw_links(&self, buffer: &mut Buffer) {
        let Strip { grid, played, theme, stage, replica, window: (from, _) } = *self;
        if self.is_empty() {
            return;
        }
        let per_column = self.per_column();
        for column in 0..grid.width {
            let start = from + f64::from(column) * per_column;
            let symbol = match played.sending(stage, replica, start, start + per_column) {
                [true, true] => "↔",
                [true, false] => "→",
                [false, true] => "←",
                [false, false] => continue,
            };
            buffer[(grid.x + column, grid.y)].set_symbol(symbol).set_style(theme.fg(Role::Transfer));
        }
    }

    /// Marks the events of the critical path on a row: a sign where one begins, underlined as long as it lasts.
    fn draw_path(&self, buffer: &mut Buffer, lane: Lane) {
        let Strip { grid, played, theme, stage, replica, window: (from, to) } = *self;
        if self.is_empty() {
            return;
        }
        for event in played.critical(lane, stage, replica, from, to) {
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

//! Timeline: rows are stages (or their replicas), time runs to the right.
//!
//! ```text
//! 1F1B   batch 1.2 s   bubble 8.1%   1600 samples/s
//! forward, backward, transfer, all-reduce
//! what sets the time of the batch: its critical path
//!          0 ms          200 ms        400 ms
//! ▸ 1 ×4   ▏0 ▏1 ▏2    ▏0  ▏3 ...
//! memory of the selected row, against the limit
//! what is under the cursor
//! ```
//! A stage's row shows its first replica: the others do the same with the microbatches between. Every column asks for
//! the shares of its interval ([`Played::share`]), so a frame costs the same whether it covers ten events or a million.

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

use super::{clip, fit, fit_right, memory_chart, plain, rows};
use crate::{
    simulate::{Event, EventKind},
    tui::{
        model::{Focus, Hit, Model},
        played::{Lane, Played, Work},
        shown::Shown,
        theme::{Role, Theme},
    },
    units,
};

/// Cells at the left for the name of a row.
pub(crate) const LABEL: u16 = 10;

/// A row: stage, and replica where the stage shows each of them.
pub(crate) type Row = (usize, Option<u32>);

impl Model {
    /// The rows of the view, from the top.
    pub(crate) fn timeline_rows(&self, played: &Played) -> Vec<Row> {
        let mut rows = vec![];
        for (stage, &replicas) in played.timeline.replicas.iter().enumerate() {
            rows.push((stage, None));
            if self.timeline.unfolded.contains(&stage) {
                rows.extend((0..replicas).map(|replica| (stage, Some(replica))));
            }
        }
        rows
    }
}

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, model: &mut Model, shown: &Shown) {
    let theme = model.theme.clone();
    let Some(played) = model.played.clone() else {
        frame.render_widget(Span::styled("playing the schedule …", theme.fg(Role::Muted)), area);
        return;
    };
    let batch = played.timeline.iteration_s;
    model.timeline.columns = area.width.saturating_sub(LABEL);
    let window = model.timeline.window(batch);
    frame.render_widget(summary(&played, &theme, area.width), rows(area, 0, 1));
    frame.render_widget(legend(&played, window, batch, &theme), rows(area, 1, 1));
    frame.render_widget(path_line(&played, model.timeline.path, &theme, area.width), rows(area, 2, 1));
    let chart_height: u16 = if area.height >= 24 { 6 } else { 4 };
    let grid_top = 4;
    let grid_height = area.height.saturating_sub(grid_top + chart_height + 1);
    draw_axis(frame.buffer_mut(), rows(area, 3, 1), window, &theme);
    let all = model.timeline_rows(&played);
    model.timeline.row = model.timeline.row.min(all.len().saturating_sub(1));
    draw_rows(frame, rows(area, grid_top, grid_height), model, &played, &all, window);
    let chart = rows(area, grid_top + grid_height, chart_height);
    let (stage, replica) = all.get(model.timeline.row).copied().unwrap_or_default();
    memory_chart::draw(frame.buffer_mut(), chart, &theme, &played, stage, shown.limits.memory_bytes, window);
    draw_cursor(frame.buffer_mut(), area, chart.y, model, window, &theme);
    let told = tell(&played, stage, replica, model.timeline.cursor_s);
    let at = units::seconds(model.timeline.cursor_s);
    let room = (area.width as usize).saturating_sub(9 + at.chars().count());
    let line = Line::from(vec![
        Span::styled("cursor ", theme.fg(Role::Muted)),
        Span::styled(at, theme.bold(Role::Accent)),
        Span::raw("  "),
        Span::raw(clip(&told, room)),
    ]);
    frame.render_widget(line, rows(area, area.height.saturating_sub(1), 1));
}

fn summary(played: &Played, theme: &Theme, width: u16) -> Line<'static> {
    let (gap, of) = match width < 84 {
        true => ("  ", String::new()),
        false => ("   ", format!(" of {}", played.pipeline.microbatches)),
    };
    let schedule = played.pipeline.schedule(played.schedule);
    let refused = played.pipeline.refusal(played.schedule).filter(|_| schedule != played.schedule);
    let timeline = &played.timeline;
    let over = timeline.peak_memory() > played.shown.limits.memory_bytes * (1.0 + 1e-9);
    let peak = format!("{}{}", units::bytes(timeline.peak_memory()), if over { " ✗ over the limit" } else { "" });
    let peak_style = if over { theme.bold(Role::Bad) } else { theme.fg(Role::Text) };
    Line::from(vec![
        Span::styled(schedule.name(), theme.bold(Role::Accent)),
        Span::styled(format!("{gap}{} per batch", units::seconds(timeline.iteration_s)), theme.bold(Role::Text)),
        Span::raw(of),
        Span::raw(format!("{gap}{} samples/s", units::number(timeline.samples_per_s))),
        Span::raw(format!("{gap}bubble ")),
        Span::styled(units::percent(timeline.bubble), theme.bold(Role::Warning)),
        Span::raw(format!("{gap}peak ")),
        Span::styled(peak, peak_style),
        Span::styled(refused.map_or(String::new(), |reason| format!("{gap}{reason}")), theme.fg(Role::Warning)),
    ])
}

fn legend(played: &Played, window: (f64, f64), batch: f64, theme: &Theme) -> Line<'static> {
    let (from, to) = window;
    let muted = theme.fg(Role::Muted);
    let mut spans = vec![];
    let is_there = |work: Work| match work {
        Work::Recompute => played.pipeline.stages.iter().any(|stage| stage.recompute_s > 0.0),
        Work::Weights => played.pipeline.schedule(played.schedule).splits_backward(),
        Work::Optimizer => played.pipeline.settings.optimizer_step_s > 0.0,
        Work::Forward | Work::Backward => true,
    };
    for work in Work::ALL.into_iter().filter(|work| is_there(*work)) {
        let (symbol, style) = paint_work(theme, work);
        spans.push(Span::styled(symbol.repeat(2), style));
        spans.push(Span::styled(format!(" {}  ", name(work)), muted));
    }
    if played.pipeline.stages.iter().any(|stage| stage.all_reduce_s > 0.0) {
        let (symbol, style) = paint(theme, Role::AllReduce, "█");
        spans.push(Span::styled(symbol.repeat(2), style));
        spans.push(Span::styled(" all-reduce  ", muted));
    }
    spans.push(Span::styled("→←", theme.fg(Role::Transfer)));
    spans.push(Span::styled(" transfers  ", muted));
    if to - from < batch * 0.999 {
        spans.push(Span::raw(format!("  seen: {} of it", units::percent((to - from) / batch))));
    }
    Line::from(spans)
}

fn name(work: Work) -> &'static str {
    match work {
        Work::Forward => "forward",
        Work::Recompute => "recompute",
        Work::Backward => "backward",
        Work::Weights => "weights",
        Work::Optimizer => "optimizer",
    }
}

/// What the critical path consists of; and how it is marked, or with which key it can be.
fn path_line(played: &Played, marked: bool, theme: &Theme, width: u16) -> Line<'static> {
    let (mark, lead) = if marked { (MARK, " critical path: ") } else { ("x", " marks the critical path: ") };
    let room = (width as usize).saturating_sub(1 + lead.len());
    Line::from(vec![
        Span::styled(mark, theme.bold(Role::Accent)),
        Span::styled(lead, theme.fg(Role::Muted)),
        Span::raw(clip(&played.path.summary(), room)),
    ])
}

/// Where an event of the critical path begins.
const MARK: &str = "◆";

/// Sign and style of a kind of compute: recomputation is hatched in the colour of what it repeats, the backward of the
/// weights in that of the backward.
fn paint_work(theme: &Theme, work: Work) -> (&'static str, Style) {
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
fn paint(theme: &Theme, role: Role, fill: &'static str) -> (&'static str, Style) {
    if theme.color(role) == Color::Reset { (fill, plain()) } else { (" ", theme.on(role)) }
}

/// Times along the top, at round values.
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

/// The next of 1, 2, 5, 10, 20, .. that is not below a length.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= least * 0.999_999).unwrap_or(10.0 * power)
}

/// A time with just the digits that a step needs.
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

fn draw_rows(frame: &mut Frame<'_>, area: Rect, model: &mut Model, played: &Played, all: &[Row], window: (f64, f64)) {
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
        let row = (stage, replica.unwrap_or(0));
        draw_compute(frame.buffer_mut(), grid, played, row, window, &theme);
        if model.timeline.path {
            draw_path(frame.buffer_mut(), grid, played, Lane::Compute, row, window, &theme);
        }
        y += 1;
        if (tall || i == selected) && y < area.bottom() {
            let links = Rect { y, ..grid };
            draw_links(frame.buffer_mut(), links, played, row, window, &theme);
            if model.timeline.path {
                draw_path(frame.buffer_mut(), links, played, Lane::Links, row, window, &theme);
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

/// Forward, backward and all-reduce of one replica; bubbles stay empty.
fn draw_compute(
    buffer: &mut Buffer,
    grid: Rect,
    played: &Played,
    (stage, replica): (usize, u32),
    (from, to): (f64, f64),
    theme: &Theme,
) {
    let columns = grid.width;
    if columns == 0 || grid.height == 0 || to <= from {
        return;
    }
    let per_column = (to - from) / f64::from(columns);
    for column in 0..columns {
        let start = from + f64::from(column) * per_column;
        if played.left_out(stage, replica, start + per_column / 2.0) {
            buffer[(grid.x + column, grid.y)].set_symbol("·").set_style(theme.fg(Role::Muted));
            continue;
        }
        let share = played.share(stage, replica, start, start + per_column);
        let cell = &mut buffer[(grid.x + column, grid.y)];
        let reduce = share.all_reduce_s / per_column;
        let work: f64 = share.work_s.iter().sum::<f64>() / per_column;
        let most = Work::ALL.into_iter().max_by(|a, b| share.work_s[*a as usize].total_cmp(&share.work_s[*b as usize]));
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
    if events.len() * 2 <= columns as usize {
        for event in events {
            let name = match event.kind {
                EventKind::OptimizerStep => String::new(),
                _ => played.part(event).unwrap_or_else(|| event.microbatch.to_string()),
            };
            draw_box(buffer, grid, event, &name, (from, per_column), theme);
        }
    }
}

/// The left edge of an event that is at least two columns wide, and as much of its name as fits.
fn draw_box(buffer: &mut Buffer, grid: Rect, event: &Event, name: &str, (from, per_column): (f64, f64), theme: &Theme) {
    let column = |time: f64| (((time - from) / per_column).round().max(0.0) as u16).min(grid.width);
    let (start, end) = (column(event.start_s), column(event.end_s));
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
fn draw_links(
    buffer: &mut Buffer,
    grid: Rect,
    played: &Played,
    (stage, replica): (usize, u32),
    (from, to): (f64, f64),
    theme: &Theme,
) {
    let per_column = (to - from) / f64::from(grid.width.max(1));
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
fn draw_path(
    buffer: &mut Buffer,
    grid: Rect,
    played: &Played,
    lane: Lane,
    (stage, replica): (usize, u32),
    (from, to): (f64, f64),
    theme: &Theme,
) {
    if grid.width == 0 || grid.height == 0 || to <= from {
        return;
    }
    let per_column = (to - from) / f64::from(grid.width);
    let column = |time: f64| (((time - from) / per_column).round().max(0.0) as u16).min(grid.width);
    for event in played.critical(lane, stage, replica, from, to) {
        let (start, end) = (column(event.start_s), column(event.end_s));
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

/// The cursor: a mark on the axis, and a line down through what is empty.
fn draw_cursor(buffer: &mut Buffer, area: Rect, bottom: u16, model: &Model, window: (f64, f64), theme: &Theme) {
    let columns = area.width.saturating_sub(LABEL);
    let (from, to) = window;
    if columns == 0 || to <= from {
        return;
    }
    let share = (model.timeline.cursor_s - from) / (to - from);
    if !(0.0..=1.0).contains(&share) {
        return;
    }
    let x = area.x + LABEL + ((share * f64::from(columns)) as u16).min(columns - 1);
    if let Some(cell) = buffer.cell_mut((x, area.y + 3)) {
        cell.set_symbol("▾").set_style(theme.bold(Role::Accent));
    }
    for y in area.y + 4..bottom {
        if let Some(cell) = buffer.cell_mut((x, y)) {
            if cell.symbol() == " " && cell.bg == theme.base().bg.unwrap_or(Color::Reset) {
                cell.set_symbol("┆").set_style(theme.fg(Role::Accent));
            } else {
                cell.modifier.insert(Modifier::REVERSED);
            }
        }
    }
}

/// What is under the cursor, in words.
fn tell(played: &Played, stage: usize, replica: Option<u32>, time: f64) -> String {
    let names = &played.shown.names;
    let name = names.long(stage);
    let of = match replica {
        Some(replica) => format!("{name}, replica {}", replica + 1),
        None if played.timeline.replicas.get(stage).is_some_and(|&r| r > 1) => format!("{name}, replica 1"),
        None => name.to_string(),
    };
    let replica = replica.unwrap_or(0);
    let compute = played.at(Lane::Compute, stage, replica, time);
    let link = played.at(Lane::Links, stage, replica, time);
    let words = |event: &Event| {
        let m = event.microbatch;
        if let Some(part) = played.part(event) {
            return match event.kind {
                EventKind::ToHost => format!("sending what {part} made"),
                EventKind::FromHost => format!("receiving what {part} needs"),
                _ => part,
            };
        }
        match event.kind {
            EventKind::Forward => format!("forward of microbatch {m}"),
            EventKind::Recompute => format!("recomputing microbatch {m}"),
            EventKind::Backward => format!("backward of microbatch {m}"),
            EventKind::WeightGradient => format!("weight gradients of microbatch {m}"),
            EventKind::OptimizerStep => "optimizer step".to_string(),
            EventKind::SendActivation { to } => format!("activations of {m} to {}", names.long(to as usize)),
            EventKind::SendGradient { to } => format!("gradients of {m} to {}", names.long(to as usize)),
            EventKind::AllReduce if played.pipeline.settings.buckets > 1 => format!("all-reduce of bucket {m}"),
            EventKind::AllReduce => "all-reduce of the gradients".to_string(),
            EventKind::ToHost => "to the host".to_string(),
            EventKind::FromHost => "from the host".to_string(),
        }
    };
    // Where a schedule has several parts of the model on a device, which one.
    let parts = played.pipeline.virtual_stages(played.pipeline.schedule(played.schedule));
    let in_part = |event: &Event| if parts > 1 { format!(", part {}", event.part + 1) } else { String::new() };
    let told = match compute {
        Some(event) => format!(
            "{}{} on {of}, {} until {}",
            words(&event),
            in_part(&event),
            units::seconds(event.end_s - event.start_s),
            units::seconds(event.end_s)
        ),
        None if played.left_out(stage, replica, time) => {
            let left_out = played.timeline.left_out.clone().unwrap_or_default();
            let (first, last) = (left_out.start, left_out.end.saturating_sub(1));
            format!("microbatches {first} to {last} go on like this: they are counted, but not drawn")
        }
        None => match played.neighbour(stage, replica, time, true) {
            Some(next) => format!("bubble on {of} until {}", units::seconds(next)),
            None => format!("{of} is done"),
        },
    };
    match link {
        Some(event) => format!("{told}; {}", words(&event)),
        None => told,
    }
}

/// A label at the left of the chart, where rows have their names.
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

//! Table of the layouts, and what differs between two of them.

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use super::{draw::color, points::Point};
use crate::{
    tui::{
        layout_bar::Axis,
        marks::Marks,
        model::{Focus, Hit, Model},
        paint::{
            area::{rows, scrolled},
            shades::Shades,
            text::{clip, fit_right},
        },
        theme::Role,
        widget::scrollbar::scrollbar,
    },
    units,
};

/// Width from which recomputation has a column, cells.
const LAST: usize = 14;

/// Columns with their widths.
const COLUMNS: [(&str, usize); 11] = [
    ("iteration", 11),
    ("slower", 8),
    ("memory", 11),
    ("limit", 7),
    ("TP", 5),
    ("CP", 4),
    ("PP", 4),
    ("×", 4),
    ("DP", 5),
    ("EP", 4),
    ("mbs", 5),
];

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    marks: &mut Marks,
    (points, at): (&[Point], usize),
    shades: &Shades,
    limit: f64,
) {
    let theme = &model.appearance.theme;
    let mut head = "     ".to_string();
    for (name, width) in &COLUMNS {
        head += &fit_right(name, *width);
    }
    // The last column is there if it has room.
    let last = usize::from(area.width).saturating_sub(head.chars().count()) >= LAST;
    head += if last { "  recompute" } else { "" };
    let order = if model.views.frontier.by_memory { "memory" } else { "time" };
    let order = format!("   by {order}");
    if head.chars().count() + order.len() <= usize::from(area.width) {
        head += &order;
    }
    frame.render_widget(Span::styled(clip(&head, area.width.into()), theme.fg(Role::Muted)), rows(area, 0, 1));
    let list = rows(area, 1, area.height.saturating_sub(1));
    let fastest = points.iter().map(|point| point.seconds).fold(f64::INFINITY, f64::min);
    let first = scrolled(at, list.height.into(), points.len());
    for (y, (i, point)) in (list.y..list.bottom()).zip(points.iter().enumerate().skip(first)) {
        let line = Rect { y, height: 1, ..list };
        let marked = model.views.frontier.marked.contains(&point.number);
        let sign = if i == at { "▌" } else { " " };
        let dot = if point.repeats() { "○" } else { "●" };
        let layout = &point.configuration.layout;
        let spans = vec![
            Span::styled(sign, theme.fg(Role::Focus)),
            Span::styled(if marked { "◆" } else { " " }, theme.bold(Role::Accent)),
            Span::styled(if point.shown { "(" } else { " " }, theme.bold(Role::Text)),
            Span::styled(dot, Style::new().fg(color(shades, layout.tensor))),
            Span::styled(if point.shown { ")" } else { " " }, theme.bold(Role::Text)),
        ];
        let cells = [
            units::seconds(point.seconds),
            units::percent(point.seconds / fastest - 1.0),
            units::bytes_beside(point.bytes, limit),
            if limit.is_finite() { units::percent_whole(point.bytes / limit) } else { "–".into() },
            layout.tensor.to_string(),
            layout.context.to_string(),
            layout.pipeline.to_string(),
            layout.virtual_stages.to_string(),
            layout.data.to_string(),
            layout.expert.to_string(),
            layout.micro_batch.to_string(),
        ];
        let mut used = 5;
        let mut spans = spans;
        for (column, (text, (_, width))) in cells.into_iter().zip(COLUMNS).enumerate() {
            used += width;
            let style = if column == 0 { theme.bold(Role::Text) } else { theme.fg(Role::Text) };
            spans.push(Span::styled(fit_right(&text, width), style));
        }
        if last {
            let again = format!("  {}", extra(point));
            spans.push(Span::styled(clip(&again, usize::from(line.width).saturating_sub(used)), theme.fg(Role::Muted)));
        }
        frame.render_widget(Line::from(spans), line);
        marks.hits.push((line, Hit::ListRow(i)));
        if i == at && model.focus == Focus::View {
            frame.buffer_mut().set_style(line, theme.selected());
        }
    }
    scrollbar(frame, list, theme, (first, list.height.into(), points.len()));
}

/// Recomputation, schedule and uneven layers of a layout.
fn extra(point: &Point) -> String {
    let own = &point.configuration;
    let mut text = own.recompute.to_string();
    if point.runs {
        text = format!("as it runs, {text}");
    }
    if let Some(schedule) = own.zero_bubble {
        text += &format!(", {}", schedule.id());
    }
    if !own.layers.is_empty() {
        text += ", uneven layers";
    }
    text
}

/// Two layouts to compare: the marked ones, else a job's and the fastest, else the shown and the selected one.
pub(super) fn pair<'a>(points: &'a [Point], at: usize, marked: &[usize]) -> Option<(&'a Point, &'a Point)> {
    let find = |number: usize| points.iter().find(|point| point.number == number);
    let shown = points.iter().find(|point| point.shown);
    let pair = match marked {
        [a, b] => find(*a).zip(find(*b)),
        _ => shown.zip(points.get(at)),
    };
    pair.filter(|(a, b)| a.number != b.number)
}

/// Changes of the second of two layouts: the marked ones, else the shown and the selected one.
pub(super) fn differences(points: &[Point], at: usize, marked: &[usize]) -> String {
    let Some((a, b)) = pair(points, at, marked) else {
        return "◂▸ walk; Enter takes a layout, Space marks two to tell what differs".into();
    };
    let axis = |axis: Axis| {
        let [a, b] = [a, b].map(|point| axis.of(&point.configuration.layout));
        a.zip(b).filter(|(a, b)| a != b).map(|(a, b)| format!("{} {b} for {a}", axis.name()))
    };
    let mut changed: Vec<String> = Axis::ALL.into_iter().filter_map(axis).collect();
    let [before, after] = [a, b].map(|point| point.configuration.recompute.to_string());
    if before != after {
        changed.push(format!("recompute {after} for {before}"));
    }
    let words = |point: &Point| {
        let own = &point.configuration;
        let schedule = own.zero_bubble.map_or("1F1B".to_string(), |own| own.id().to_string());
        [schedule, if own.layers.is_empty() { "even layers" } else { "uneven layers" }.to_string()]
    };
    changed.extend(words(a).into_iter().zip(words(b)).filter(|(a, b)| a != b).map(|(_, now)| now));
    let memory = units::more_bytes(b.bytes - a.bytes);
    format!("{}, {memory} on the fullest device: {}", units::faster(a.seconds / b.seconds), changed.join(", "))
}

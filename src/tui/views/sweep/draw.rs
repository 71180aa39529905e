//! Chart of the objective over a limit: a line per planner or setting, and the point under the cursor in words.
//!
//! ```text
//! time per sample by devices   Piper   17 of 17 points
//! ▸ ● piper  20.06 ms/sample
//!  162 ms ┤ ●
//!         │   · ●    ·
//!  2.5 ms ┤         ● · ●
//! no plan ●  ×××
//!           8    64    512
//! 64 devices: 20.06 ms/sample, proven · 8 stages on 63 devices · 45.7 samples/s · peak 7.99 GiB
//! ```

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::{curves, heat, side, state::Swept};
use crate::{
    family,
    plan::Measure,
    planner::Status,
    study::sweep::{
        PointResult,
        chart::{Chart, ChartPoint},
    },
    tui::{
        action::Action,
        marks::Marks,
        model::{Hit, Model},
        paint::{
            area::{rows, scrolled},
            dim::fade,
            phrases::flow,
            text::{fit, fit_right, wrap},
        },
        studies::StudyKind,
        theme::{Role, Theme},
    },
    units,
};

/// Width of the labels at the left, cells.
pub(super) const LABEL: u16 = 13;
/// Maximum number of lines of the legend, and of rows that show missing plans.
const MOST_LEGEND: usize = 6;
const MOST_MISSING: usize = 4;
/// Sign of each line, and its ASCII replacement.
const SIGNS: [&str; 8] = ["●", "■", "▲", "◆", "○", "□", "△", "◇"];
const ASCII_SIGNS: [&str; 8] = ["*", "#", "^", "+", "o", "@", "%", "&"];

/// Areas of the view.
struct Parts {
    title: Rect,
    legend: Rect,
    plot: Rect,
    /// Efficiency chart, if it fits.
    efficiency: Option<Rect>,
    missing: Rect,
    axis: Rect,
    reading: Rect,
}

pub(in crate::tui) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    let Some(swept) = &model.views.sweep.swept else {
        let told = model.planning.refusal.clone().unwrap_or_else(|| "no sweep yet".into());
        for (row, line) in wrap(&told, area.width as usize).into_iter().enumerate() {
            frame.render_widget(Span::styled(line, model.appearance.theme.fg(Role::Muted)), rows(area, row as u16, 1));
        }
        return;
    };
    let hits = match swept.second {
        Some(_) => draw_map(frame, area, model, swept),
        None => draw_chart(frame, area, model, swept),
    };
    marks.hits.extend(hits);
    if model.sweep_stale() {
        fade(frame, rows(area, 1, area.height.saturating_sub(1)), &model.appearance.theme);
    }
}

/// Draws two limits: the map, and the cell under the cursor in words.
fn draw_map(frame: &mut Frame<'_>, area: Rect, model: &Model, swept: &Swept) -> Vec<(Rect, Hit)> {
    draw_title(frame, rows(area, 0, 1), model, swept);
    let below = 3.min(area.height / 4);
    let hits = heat::draw(frame, rows(area, 1, area.height.saturating_sub(below + 2)), model, swept);
    draw_reading(frame, rows(area, area.height.saturating_sub(below), below), model, swept);
    hits
}

/// Draws one limit: the curves, and beside them, if it fits, the figures with their interpretation.
fn draw_chart(frame: &mut Frame<'_>, area: Rect, model: &Model, swept: &Swept) -> Vec<(Rect, Hit)> {
    let (area, side) = beside(area);
    let missing: Vec<usize> = (0..swept.chart.lines.len())
        .filter(|&line| swept.chart.lines[line].marks.iter().any(|mark| mark.y.is_none()))
        .collect();
    let parts = parts(area, swept, missing.len());
    draw_title(frame, parts.title, model, swept);
    draw_legend(frame, parts.legend, model, swept);
    draw_axes(frame, &parts, model, swept);
    if parts.plot.height >= 2 && parts.plot.width >= 8 {
        curves::draw(frame, parts.plot, model, swept);
        draw_marks(frame.buffer_mut(), parts.plot, model, swept);
        if swept.scales() {
            curves::draw_knee(frame, parts.plot, model, swept);
        }
    }
    if let Some(efficiency) = parts.efficiency {
        let told = format!("scaling efficiency, per {}", swept.chart.x_noun().0);
        frame.render_widget(Span::styled(told, model.appearance.theme.fg(Role::Muted)), rows(efficiency, 0, 1));
        curves::draw_efficiency(frame, rows(efficiency, 1, efficiency.height - 1), model, swept);
    }
    draw_missing(frame.buffer_mut(), parts.missing, model, swept, &missing);
    draw_reading(frame, parts.reading, model, swept);
    if let Some(side) = side {
        side::draw(frame, side, model, swept);
    }
    places(&swept.chart, parts.plot)
}

/// Area of the chart, and of the figures beside it if they fit.
fn beside(area: Rect) -> (Rect, Option<Rect>) {
    if area.width < side::WIDTH + 72 || area.height < 16 {
        return (area, None);
    }
    let width = area.width - side::WIDTH;
    let side = Rect { x: area.x + width, width: side::WIDTH, ..area };
    (Rect { width: width - 2, ..area }, Some(side))
}

fn parts(area: Rect, swept: &Swept, missing: usize) -> Parts {
    let chart = &swept.chart;
    let legend = chart.lines.len().min(MOST_LEGEND).min((area.height / 5).max(1) as usize) as u16;
    let missing = missing.min(MOST_MISSING).min((area.height / 6) as usize) as u16;
    let reading = if area.height >= 18 { 3 } else { 2 };
    let fixed = 1 + legend + missing + 2 + reading;
    let free = area.height.saturating_sub(fixed);
    // The efficiency chart gets a third of the height, if that is enough to read it.
    let second = if swept.scales() && free >= 20 { free / 3 } else { 0 };
    let height = free - second;
    let plot = rows(area, 1 + legend, height);
    let right = |from: u16, height: u16| {
        let part = rows(area, from, height);
        Rect { x: part.x + LABEL.min(part.width), width: part.width.saturating_sub(LABEL), ..part }
    };
    Parts {
        title: rows(area, 0, 1),
        legend: rows(area, 1, legend),
        plot: Rect { x: plot.x + LABEL.min(plot.width), width: plot.width.saturating_sub(LABEL), ..plot },
        efficiency: (second > 0).then(|| right(1 + legend + height, second)),
        missing: right(1 + legend + free, missing),
        axis: right(1 + legend + free + missing, 2),
        reading: rows(area, fixed - reading + free, reading),
    }
}

/// Clickable areas: each value has the columns nearest to it.
fn places(chart: &Chart, plot: Rect) -> Vec<(Rect, Hit)> {
    let columns: Vec<u16> = chart.places.iter().map(|&x| column(chart, plot, x)).collect();
    let mut hits = vec![];
    for (place, &at) in columns.iter().enumerate() {
        let from = place.checked_sub(1).map_or(plot.x, |before| columns[before].midpoint(at) + 1);
        let to = columns.get(place + 1).map_or(plot.right(), |&after| at.midpoint(after) + 1);
        hits.push((Rect { x: from, width: to.saturating_sub(from), ..plot }, Hit::Place(place)));
    }
    hits
}

pub(super) fn column(chart: &Chart, plot: Rect, x: f64) -> u16 {
    // One blank cell at both ends.
    let width = f64::from(plot.width.saturating_sub(3));
    plot.x + 1 + (chart.x.share(x) * width).round() as u16
}

pub(super) fn row(plot: Rect, share: f64) -> u16 {
    plot.y + ((1.0 - share) * f64::from(plot.height.saturating_sub(1))).round() as u16
}

pub(super) fn sign(model: &Model, line: usize) -> &'static str {
    if model.appearance.ascii { ASCII_SIGNS[line % 8] } else { SIGNS[line % 8] }
}

pub(super) fn style(theme: &Theme, line: usize, selected: bool) -> Style {
    let style = theme.series(line);
    if selected { style.add_modifier(Modifier::BOLD) } else { style }
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, model: &Model, swept: &Swept) {
    let (done, all) = swept.counts();
    let state = if model.sweep_stale() {
        let key = model.appearance.keymap.of_action(Action::SweepAgain).unwrap_or_default();
        format!("of earlier settings: {key} sweeps again")
    } else if model.planning.studying(StudyKind::Sweep) {
        format!("{done} of {all} points …")
    } else if done < all {
        let key = model.appearance.keymap.of_action(Action::SweepAgain).unwrap_or_default();
        format!("stopped at {done} of {all} points: {key} sweeps again")
    } else {
        format!("{all} points")
    };
    let theme = &model.appearance.theme;
    let role = if model.sweep_stale() { Role::Warning } else { Role::Muted };
    let second = swept.second.map_or_else(String::new, |kind| format!(" and {}", kind.label()));
    let title = format!("{} by {}{second}", swept.chart.y_title(), swept.chart.x_title());
    let spans = vec![
        Span::styled(title, theme.bold(Role::Text)),
        Span::styled(format!("   {}", model.lines_title()), theme.fg(Role::Text)),
        Span::styled(format!("   {state}"), theme.fg(role)),
    ];
    frame.render_widget(Line::from(spans), area);
}

/// Draws sign, name and value at the cursor of each line.
fn draw_legend(frame: &mut Frame<'_>, area: Rect, model: &Model, swept: &Swept) {
    let lines = swept.chart.lines.len();
    let visible = area.height as usize;
    let first = scrolled(model.views.sweep.line.min(lines.saturating_sub(1)), visible, lines);
    let widest = swept.chart.lines.iter().map(|line| line.label.chars().count()).max().unwrap_or(0);
    let label = widest.min((area.width as usize).saturating_sub(24));
    // Explain a flat line, which would otherwise look like a result.
    let deaf = |line: usize| match swept.heeds(line) {
        true => String::new(),
        false => format!("  ignores {}", swept.kind.label()),
    };
    for (at, line) in swept.chart.lines.iter().enumerate().skip(first).take(visible) {
        let selected = at == model.views.sweep.line;
        let value = match swept.read(at, model.views.sweep.cursor) {
            Some((_, ChartPoint { y: Some(y), .. }, _)) => swept.chart.show_y(*y),
            Some((_, _, answer)) if answer.status == Status::Cancelled => "stopped".into(),
            Some(_) => "no plan".into(),
            None => "-".into(),
        };
        let style = style(&model.appearance.theme, at, selected);
        let spans = vec![
            Span::styled(if selected { "▸ " } else { "  " }, model.appearance.theme.bold(Role::Focus)),
            Span::styled(format!("{} ", sign(model, at)), style),
            Span::styled(
                fit(&line.label, label),
                if selected { model.appearance.theme.bold(Role::Text) } else { Style::new() },
            ),
            // Hues are for lines and signs; text keeps the text colour.
            Span::styled(format!("  {value}"), model.appearance.theme.fg(Role::Text)),
            Span::styled(deaf(at), model.appearance.theme.fg(Role::Warning)),
        ];
        frame.render_widget(Line::from(spans), rows(area, (at - first) as u16, 1));
    }
}

fn draw_axes(frame: &mut Frame<'_>, parts: &Parts, model: &Model, swept: &Swept) {
    let (theme, chart, plot) = (&model.appearance.theme, &swept.chart, parts.plot);
    let muted = theme.fg(Role::Muted);
    if plot.height < 2 || plot.width < 8 {
        return;
    }
    let buffer = frame.buffer_mut();
    for y in plot.y..plot.bottom() {
        buffer[(plot.x - 1, y)].set_symbol("│").set_style(theme.fg(Role::Border));
    }
    let any = chart.lines.iter().any(|line| line.marks.iter().any(|mark| mark.y.is_some()));
    if any {
        let mut free = plot.bottom();
        for tick in chart.y_ticks((plot.height / 3).max(2) as usize) {
            let y = row(plot, chart.y.share(tick));
            if y < free {
                let text = fit_right(&chart.show_y_tick(tick), LABEL as usize - 2) + " ┤";
                buffer.set_stringn(plot.x - LABEL, y, &text, LABEL as usize, muted);
                free = y;
            }
        }
    }
    let axis = parts.axis;
    if axis.height < 2 {
        return;
    }
    for x in axis.x..axis.right() {
        buffer[(x, axis.y)].set_symbol("─").set_style(theme.fg(Role::Border));
    }
    let mut free = axis.x;
    for tick in chart.x_ticks((axis.width / 9).max(2) as usize) {
        let (at, text) = (column(chart, plot, tick), chart.show_x(tick));
        let width = text.chars().count() as u16;
        let from = at.saturating_sub(width / 2).max(axis.x).min(axis.right().saturating_sub(width));
        if from >= free {
            buffer[(at, axis.y)].set_symbol("┴");
            buffer.set_stringn(from, axis.y + 1, &text, width as usize, muted);
            free = from + width + 1;
        }
    }
    // Mark the value in force.
    let now = model.session.limits.get(swept.kind);
    if now >= chart.x.least && now <= chart.x.most {
        buffer[(column(chart, plot, now), axis.y)].set_symbol("↑").set_style(theme.bold(Role::Accent));
    }
    // Mark the point under the cursor.
    if let Some(&x) = chart.places.get(model.views.sweep.cursor) {
        let at = column(chart, plot, x);
        for y in plot.y..plot.bottom() {
            buffer[(at, y)].set_symbol("┆").set_style(theme.fg(Role::Focus));
        }
    }
}

/// Draws the points of all lines, those of the selected one last and on top.
fn draw_marks(buffer: &mut Buffer, plot: Rect, model: &Model, swept: &Swept) {
    let chart = &swept.chart;
    let selected = model.views.sweep.line;
    let order = (0..chart.lines.len()).filter(|&line| line != selected).chain([selected]);
    for (line, marks) in order.filter_map(|line| Some((line, &chart.lines.get(line)?.marks))) {
        let style = style(&model.appearance.theme, line, line == selected);
        for (x, y) in marks.iter().filter_map(|mark| Some((mark.x, mark.y?))) {
            let place = (column(chart, plot, x), row(plot, chart.y.share(y)));
            buffer[place].set_symbol(sign(model, line)).set_style(style);
        }
    }
}

/// Draws a row of crosses for each line with missing plans.
fn draw_missing(buffer: &mut Buffer, area: Rect, model: &Model, swept: &Swept, missing: &[usize]) {
    let chart = &swept.chart;
    for (at, &line) in missing.iter().take(area.height as usize).enumerate() {
        let y = area.y + at as u16;
        let style = style(&model.appearance.theme, line, line == model.views.sweep.line);
        let label = fit_right("no plan  ", LABEL as usize - 1);
        buffer.set_stringn(area.x - LABEL, y, label, LABEL as usize - 1, model.appearance.theme.fg(Role::Muted));
        buffer.set_string(area.x - 2, y, sign(model, line), style);
        if area.width < 8 {
            continue;
        }
        for stretch in chart.lines[line].marks.split(|mark| mark.y.is_some()).filter(|stretch| !stretch.is_empty()) {
            let (from, to) = (column(chart, area, stretch[0].x), column(chart, area, stretch[stretch.len() - 1].x));
            for x in from..=to {
                buffer[(x, y)].set_symbol("─").set_style(style);
            }
            for mark in stretch {
                buffer[(column(chart, area, mark.x), y)].set_symbol("×").set_style(style);
            }
        }
    }
}

/// Draws the point under the cursor on the selected line, in words.
fn draw_reading(frame: &mut Frame<'_>, area: Rect, model: &Model, swept: &Swept) {
    let chart = &swept.chart;
    let Some(&x) = chart.places.get(model.views.sweep.cursor) else { return };
    let value = chart.show_x(x);
    let place = if value.bytes().all(|b| b.is_ascii_digit()) {
        format!("{value} {}", chart.x_title())
    } else {
        format!("{} {value}", chart.x_title())
    };
    let told = match swept.read(model.views.sweep.line, model.views.sweep.cursor) {
        None => "not planned yet".into(),
        Some((_, mark, answer)) => match mark.y {
            Some(y) => worth(&chart.show_y(y), answer, model),
            None if answer.has_plan() => answer.why.clone(),
            None => format!("no plan. {}", answer.why),
        },
    };
    let width = area.width as usize;
    // Break lines between points, so that a figure keeps its unit.
    let told = format!("{place}: {told}");
    let phrases =
        told.split(" · ").map(|part| vec![Span::styled(part.to_string(), model.appearance.theme.fg(Role::Text))]);
    let lines = flow(phrases.collect(), " · ", width, area.height.into());
    for (at, line) in lines.into_iter().enumerate() {
        frame.render_widget(line, rows(area, at as u16, 1));
    }
}

fn worth(value: &str, answer: &PointResult, model: &Model) -> String {
    let memory_limit = model.session.limits.memory_limit();
    let proof = match (answer.status, answer.objective.as_ref().zip(answer.bound)) {
        (Status::Optimal, Some((objective, _))) => {
            let of_all = |goal: &str| format!(", proven within its options: {goal}");
            Measure::goal_of(&objective.name).map_or(", proven".into(), of_all)
        }
        (Status::Optimal, None) => ", proven".into(),
        (_, Some((objective, bound))) if objective.value != 0.0 => {
            format!(", at most {} from the best", units::percent(((objective.value - bound) / objective.value).abs()))
        }
        _ => ", not proven".into(),
    };
    let mut parts = vec![format!("{value}{proof}")];
    if let (Some(stages), Some(devices)) = (answer.stages, answer.devices_used) {
        let devices = units::counted(devices as usize, "device");
        // If each stage is a device, or operators share all devices, count only devices.
        let family = family::of(&model.session.workload);
        let alone = family.stages_are_devices() || family.one_stage();
        parts.push(if alone {
            format!("on {devices}")
        } else {
            format!("{} on {devices}", units::counted(stages, "stage"))
        });
    }
    if let Some(simulated) = &answer.simulated {
        parts.push(format!("simulated {} samples/s", units::number(simulated.samples_per_s)));
        parts.push(format!("idle {}", units::percent(simulated.idle)));
        parts.push(format!("peak {}", units::bytes_beside(simulated.peak_memory_bytes, memory_limit)));
    }
    parts.push(format!("planned in {}", units::seconds(answer.seconds)));
    parts.join(" · ")
}

//! Suggestions below the stages: binding limits, then changed limits and options, best simulated time first.
//!
//! ```text
//! ─ What would help: one change each, simulated ─ w choose  W hide ─
//! binding limits, without each: devices 2.00x faster, memory 1.28x faster
//! 2x devices    19.3 s  1.94x faster   memory 10 GiB  36.2 s  3.3% faster
//! 2x bandwidth  35.8 s  4.6% faster    9 stages       37.9 s  1.4% slower
//! ```
//! The panel uses free lines below the stages: a few in a low view, none in a lower one.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

use crate::{
    plan::Measure,
    study::{
        explain::{Cause, ExplainedPlan, NOTICEABLE},
        rivals::Rival,
    },
    tui::{
        marks::Marks,
        model::{Hit, Model},
        paint::{
            area::rows,
            phrases::whole,
            text::{clip, fit, fit_right},
        },
        theme::{Role, Theme},
        would_help::{Phase, Tried, WouldHelp},
    },
    units,
};

/// Title of the panel.
const TITLE: &str = " What would help ";
/// Gap between two columns, cells.
const GAP: usize = 3;

/// Maximum height of the panel, lines.
pub(super) const MOST: u16 = 12;

/// Height of the panel in a view with spare lines. It gets its minimum in any case.
fn lines_with(height: u16, spare: u16) -> u16 {
    match lines(height) {
        0 => 0,
        fewest => spare.min(MOST).max(fewest),
    }
}

/// Minimum height of the panel in a view, lines.
fn lines(height: u16) -> u16 {
    match height {
        0..16 => 0,
        16..24 => 2,
        24..30 => 4,
        30..40 => 6,
        _ => 9,
    }
}

/// Draws the panel at the lower end of the view, on the spare lines and a few more. Returns the remaining area.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, spare: u16) -> Rect {
    let height = if model.planning.would_help.folded { 0 } else { lines_with(area.height, spare) };
    marks.help = Some(height > 0);
    if height == 0 {
        return area;
    }
    let place = rows(area, area.height - height, height);
    let left = rows(area, 0, area.height - height);
    marks.hits.push((place, Hit::Suggestions));
    let theme = &model.appearance.theme;
    let selected = model.suggestion_where(true);
    title(frame, rows(place, 0, 1), model, selected, theme);
    let mut list = rows(place, 1, height);
    let help = &model.planning.would_help;
    // Results for the planner's plan stay beside an edited plan under the same limits.
    let other = help.base.as_ref().is_none_or(|base| base.problem.limits != model.session.limits);
    if model.aside() && (other || help.rows.is_empty()) {
        let text = "`what would help` needs a planner's plan: 0 goes back to it";
        frame.render_widget(Span::styled(clip(text, list.width as usize), theme.fg(Role::Muted)), rows(list, 0, 1));
        return left;
    }
    if let (Some(text), true) = (waiting(help), help.rows.is_empty()) {
        frame.render_widget(Span::styled(clip(text, list.width as usize), theme.fg(Role::Muted)), rows(list, 0, 1));
        return left;
    }
    if list.height > 2 {
        frame.render_widget(what_binds(help, theme, list.width as usize), rows(list, 0, 1));
        list = rows(list, 1, list.height);
    }
    if list.height > 2
        && let Some(line) = wider_links(help, theme, usize::from(list.width))
    {
        frame.render_widget(line, rows(list, 0, 1));
        list = rows(list, 1, list.height);
    }
    if list.height > 3
        && let Some(line) = published(help, theme, usize::from(list.width))
    {
        frame.render_widget(line, rows(list, 0, 1));
        list = rows(list, 1, list.height);
    }
    draw_rows(frame, list, model, marks, selected);
    left
}

/// Draws the rule over the panel: title, progress, keys.
fn title(frame: &mut Frame<'_>, area: Rect, model: &Model, selected: Option<usize>, theme: &Theme) {
    let help = &model.planning.would_help;
    let name = if model.aside() { " What would help the planner's plan, not this one " } else { TITLE };
    let told = match (help.phase, selected) {
        _ if model.aside() => " W hide ".into(),
        (Phase::Asking, None) => format!(" {} of {} ", help.answered.0, help.answered.1),
        (_, Some(at)) => format!(" {} of {}   Enter take  Esc leave ", at + 1, help.rows.len()),
        _ => " w choose  W hide ".into(),
    };
    let width = area.width as usize;
    let long = " What would help: one change each, simulated ";
    let name = if name == TITLE && long.width() + told.width() + 4 <= width { long } else { name };
    let told = if name.width() + told.width() + 4 <= width { told } else { String::new() };
    let rule = "─".repeat(width.saturating_sub(name.width() + told.width() + 2));
    let line = Line::from(vec![
        Span::styled("─", theme.fg(Role::Border)),
        Span::styled(name, theme.bold(if selected.is_some() { Role::Focus } else { Role::Text })),
        Span::styled(rule, theme.fg(Role::Border)),
        Span::styled(told, theme.fg(Role::Muted)),
        Span::styled("─", theme.fg(Role::Border)),
    ]);
    frame.render_widget(line, area);
}

/// Text in place of results.
fn waiting(help: &WouldHelp) -> Option<&'static str> {
    match help.phase {
        Phase::Idle | Phase::Resting(_) => Some("…"),
        Phase::Unasked => Some("this planner takes long: press w for re-plans with one change each"),
        Phase::Asking => Some("re-planning with one change each …"),
        Phase::Done => Some("no single change of a limit or option makes a difference"),
    }
}

/// Binding limits in one line, the first one with an explanation if that fits.
fn what_binds(help: &WouldHelp, theme: &Theme, width: usize) -> Line<'static> {
    if !help.fresh || help.causes.is_empty() {
        let text = match (help.fresh, help.phase) {
            (true, Phase::Done) => "no single limit binds",
            _ => "",
        };
        return Line::styled(text, theme.fg(Role::Muted));
    }
    let told = |cause: &Cause| format!("{} {}", cause.kind.title(), cause.words);
    let mut text = help.causes.iter().map(told).collect::<Vec<_>>().join(", ");
    if let Some(memory) = help.causes.iter().find(|cause| !cause.how.is_empty() && cause.kind.explains()) {
        let longer = format!("{text}   {} {}", memory.kind.title(), memory.how);
        if longer.width() + 31 <= width {
            text = longer;
        }
    }
    // The rows below are simulated, while binding limits use the planner's own measure, unless it simulates too.
    let simulates = help.base.as_ref().is_none_or(|base| base.score.measure == Measure::IterationTime);
    let heads = match simulates {
        true => ["binding limits, without each: ", "binding: "],
        false => ["binding limits, each found by a plan without it: ", "binding, planned: "],
    };
    let first = text.split(", ").next().unwrap_or_default().width();
    let head = heads.into_iter().find(|head| head.width() + first + 3 <= width).unwrap_or(heads[1]);
    let head = Span::styled(head, theme.bold(Role::Warning));
    let room = width.saturating_sub(head.width());
    Line::from(vec![head, Span::raw(whole(&text, room))])
}

/// Links at twice the bandwidth, as many as fit; `None` if that has no effect.
fn wider_links(help: &WouldHelp, theme: &Theme, width: usize) -> Option<Line<'static>> {
    let all: Vec<String> = help.wider.iter().map(|wider| format!("{} ({})", wider.in_words(), wider.told())).collect();
    let text = whole(&format!("links: {}", all.join(", ")), width);
    (!all.is_empty()).then(|| Line::styled(text, theme.fg(if help.fresh { Role::Text } else { Role::Muted })))
}

/// Plans of published planners with reasons, as many as fit; `None` if none were run.
fn published(help: &WouldHelp, theme: &Theme, width: usize) -> Option<Line<'static>> {
    let all: Vec<String> = help.rivals.iter().map(Rival::in_short).collect();
    let text = whole(&format!("published planners: {}", all.join(", ")), width);
    (!all.is_empty()).then(|| Line::styled(text, theme.fg(if help.fresh { Role::Text } else { Role::Muted })))
}

/// Draws the rows, side by side as far as the width allows.
fn draw_rows(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, at: Option<usize>) {
    let (help, theme) = (&model.planning.would_help, &model.appearance.theme);
    let Some(base) = &help.base else { return };
    let cells: Vec<[String; 3]> = help.rows.iter().map(|tried| cell(tried, base)).collect();
    let widest = |column: usize| cells.iter().map(|cell| cell[column].width()).max().unwrap_or(0);
    let mut widths = [widest(0).min(32), widest(1), widest(2)];
    if widths.iter().sum::<usize>() + 4 > usize::from(area.width) {
        // The difference is more informative than the time.
        widths[1] = 0;
        widths[0] = widths[0].min(usize::from(area.width).saturating_sub(widths[2] + 4));
    }
    let width = widths.iter().sum::<usize>() + 4;
    let beside = ((area.width as usize + GAP) / (width + GAP)).max(1);
    let visible = area.height as usize * beside;
    // Scroll by whole lines.
    let first = at.map_or(0, |at| (at / beside + 1).saturating_sub(area.height as usize) * beside);
    let fresh = help.fresh;
    for (place, cell) in cells.iter().enumerate().skip(first).take(visible) {
        let (row, column) = ((place - first) / beside, (place - first) % beside);
        let x = area.x + (column * (width + GAP)) as u16;
        let spot = Rect { x, y: area.y + row as u16, width: width as u16, height: 1 }.intersection(area);
        let role = role(&help.rows[place], fresh);
        let line = Line::from(vec![
            Span::styled(fit(&cell[0], widths[0]), theme.fg(if fresh { Role::Text } else { Role::Muted })),
            Span::styled(format!("  {}", fit_right(&cell[1], widths[1])), theme.fg(Role::Muted)),
            Span::styled(format!("  {}", fit(&cell[2], widths[2])), theme.fg(role)),
        ]);
        frame.render_widget(line, spot);
        if at == Some(place) {
            frame.buffer_mut().set_style(spot, theme.selected());
        }
        if fresh {
            marks.hits.push((spot, Hit::Suggestion(place)));
        }
    }
    marks.help_layout = Some((first, beside));
}

/// Change, its iteration time, and the difference in words. Without a simulation the planned values are used.
fn cell(tried: &Tried, base: &ExplainedPlan) -> [String; 3] {
    let label = tried.answer.label.clone();
    let Some(simulated) = tried.simulated else {
        let value = tried.answer.value.map_or_else(|| "no plan".into(), |value| base.show(value));
        let value = value.trim_end_matches("/sample").trim_end_matches(" one device").to_string();
        let told = tried.rate().map(|rate| format!("{}, planned", units::faster(rate)));
        return [label, value, told.unwrap_or_default()];
    };
    let batch = simulated.batch_s.map(units::seconds).unwrap_or_default();
    [label, batch, units::faster(simulated.rate)]
}

/// Colour of a difference. Its words state the same.
fn role(tried: &Tried, fresh: bool) -> Role {
    match tried.gain() {
        _ if !fresh => Role::Muted,
        Some(gain) if gain > NOTICEABLE => Role::Good,
        Some(gain) if gain < -NOTICEABLE => Role::Warning,
        _ => Role::Muted,
    }
}

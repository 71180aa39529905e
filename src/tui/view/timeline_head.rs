//! Above the timeline: the batch in figures, how it was played and why not otherwise, what the fills mean, and what sets
//! the time of the batch.

use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::{
    phrases::{Phrase, flow, of_text},
    timeline_rows::{MARK, send_color},
    wrap,
};
use crate::{
    simulate::Schedule,
    tui::{
        paint::{
            shades::{Activity, Shades},
            strip,
        },
        played::Played,
        theme::{Role, Theme},
    },
    units,
};

/// All lines; `marked`: whether the critical path is, and the key for it. At most `most` where that leaves something of each; the first ones matter most.
pub(super) fn lines(
    played: &Played,
    marked: (bool, Option<String>),
    window: (f64, f64),
    (theme, shades): (&Theme, &Shades),
    width: usize,
    most: usize,
) -> Vec<Line<'static>> {
    let mut lines = flow(figures(played, theme, width), if width < 84 { "  " } else { "   " }, width, 2);
    lines.extend(refusal(played, theme, width));
    lines.extend(settings(played, theme, width));
    lines.extend(schedules(played, theme, width));
    // What is told of fills and path may take two lines each, if there is room.
    for phrases in [legend(played, window, theme, shades), path(played, marked, theme)] {
        let room = most.saturating_sub(lines.len() + 1).clamp(1, 2);
        lines.extend(flow(phrases, " ", width, room));
    }
    lines
}

/// What one wants to know of a batch.
fn figures(played: &Played, theme: &Theme, width: usize) -> Vec<Phrase> {
    let timeline = &played.timeline;
    let limit = played.shown.limits.memory_bytes;
    let over = timeline.peak_memory() > limit * (1.0 + 1e-9);
    let peak =
        format!("{}{}", units::bytes_like(timeline.peak_memory(), limit), if over { " ✗ over the limit" } else { "" });
    let peak_style = if over { theme.bold(Role::Bad) } else { theme.fg(Role::Text) };
    let schedule = vec![Span::styled(played.schedule().name(), theme.bold(Role::Accent))];
    if timeline.events.is_empty() {
        return vec![schedule, vec![Span::raw("nothing is played")]];
    }
    let of = if width < 84 { String::new() } else { format!(" of {}", played.pipeline.microbatches) };
    let batch = format!("{} per batch", units::seconds(timeline.iteration_s));
    vec![
        schedule,
        vec![Span::styled(batch, theme.bold(Role::Text)), Span::raw(of)],
        vec![Span::raw(format!("{} samples/s", units::number(timeline.samples_per_s)))],
        vec![Span::raw("bubble "), Span::styled(units::percent(timeline.bubble), theme.bold(Role::Warning))],
        vec![Span::raw("peak "), Span::styled(peak, peak_style)],
    ]
}

/// Why the schedule that was asked for is not the one that is shown, and what would make it so.
fn refusal(played: &Played, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let wanted = played.play.schedule;
    // A plan that runs once has its only order for an answer, not a second-best one.
    let answered = played.pipeline.plays_once();
    let Some(reason) = played.pipeline.refusal(wanted).filter(|_| !answered) else { return vec![] };
    let shown = match played.schedule() {
        schedule if schedule == wanted || played.timeline.events.is_empty() => String::new(),
        schedule => format!(" This is {}.", schedule.name()),
    };
    let repair =
        played.pipeline.repair(wanted).map_or_else(String::new, |repair| format!(" What would help: {repair}."));
    let text = format!("✗ {reason}.{repair}{shown}");
    wrap(&text, width).into_iter().map(|line| Line::styled(line, theme.fg(Role::Warning))).collect()
}

/// All schedules where there is room for them, those struck out that this plan cannot run.
fn schedules(played: &Played, theme: &Theme, width: usize) -> Option<Line<'static>> {
    if played.pipeline.plays_once() || played.timeline.events.is_empty() {
        return None;
    }
    let mut spans = vec![Span::styled("schedules ", theme.fg(Role::Muted))];
    for schedule in Schedule::ALL {
        let style = match played.pipeline.refusal(schedule) {
            _ if schedule == played.schedule() => theme.bold(Role::Accent),
            Some(_) => theme.fg(Role::Muted).add_modifier(Modifier::CROSSED_OUT),
            None => theme.fg(Role::Text),
        };
        let sign = if played.pipeline.refusal(schedule).is_some() { " ✗" } else { " " };
        spans.push(Span::styled(sign, theme.fg(Role::Muted)));
        spans.push(Span::styled(schedule.name(), style));
        spans.push(Span::raw(" "));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    (used <= width).then(|| Line::from(spans))
}

/// The settings of the simulator that are not the usual ones.
fn settings(played: &Played, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let changes = played.play.changes();
    if changes.is_empty() || played.pipeline.plays_once() {
        return vec![];
    }
    let mut phrases = vec![vec![Span::styled("played with", theme.fg(Role::Muted))]];
    let last = changes.len() - 1;
    phrases.extend(changes.into_iter().enumerate().map(|(i, change)| {
        vec![Span::styled(format!("{change}{}", if i < last { "," } else { "" }), theme.bold(Role::Accent))]
    }));
    flow(phrases, " ", width, 2)
}

fn legend(played: &Played, (from, to): (f64, f64), theme: &Theme, shades: &Shades) -> Vec<Phrase> {
    let muted = theme.fg(Role::Muted);
    let sign = |activity: Activity| {
        let color = shades.color(shades.activity(activity));
        Span::styled(if shades.coloured() { "■" } else { activity.fill() }, Style::new().fg(color))
    };
    let entries = strip::legend(played).into_iter();
    let mut phrases: Vec<Phrase> =
        entries.map(|(activity, word)| vec![sign(activity), Span::styled(format!(" {word} "), muted)]).collect();
    if !played.pipeline.transfers.is_empty() {
        if shades.coloured() {
            let mark = |activations| Span::styled("▔", Style::new().fg(send_color(shades, activations)));
            phrases.push(vec![mark(true), Span::styled(" sends activations ", muted)]);
            phrases.push(vec![mark(false), Span::styled(" gradients ", muted)]);
        } else {
            phrases.push(vec![Span::raw("→←"), Span::styled(" transfers ", muted)]);
        }
    }
    let batch = played.timeline.iteration_s;
    if to - from < batch * 0.999 {
        phrases.push(vec![Span::raw(format!("seen: {} of it", units::percent((to - from) / batch)))]);
    }
    phrases
}

/// What the critical path consists of; and how it is marked, or with which key it can be.
fn path(played: &Played, (marked, key): (bool, Option<String>), theme: &Theme) -> Vec<Phrase> {
    let (mark, lead) = match key.filter(|_| !marked) {
        Some(key) => (key, " marks the critical path:"),
        None => (MARK.to_string(), " critical path:"),
    };
    let mut phrases =
        vec![vec![Span::styled(mark, theme.bold(Role::Accent)), Span::styled(lead, theme.fg(Role::Muted))]];
    phrases.extend(of_text(&played.path.summary()).into_iter().map(|phrase| vec![Span::raw(phrase)]));
    phrases
}

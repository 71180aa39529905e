//! Above the timeline: the batch in figures, how it was played and why not otherwise, what the fills mean, and what sets
//! the time of the batch.

use ratatui::text::{Line, Span};

use super::{
    phrases::{Phrase, flow, of_text},
    timeline_rows::{MARK, paint, paint_work},
    wrap,
};
use crate::{
    tui::{
        played::{Played, Work},
        theme::{Role, Theme},
    },
    units,
};

/// All lines; `marked`: whether the critical path is, and the key for it. At most `most` where that leaves something of each; the first ones matter most.
pub(super) fn lines(
    played: &Played,
    marked: (bool, Option<String>),
    window: (f64, f64),
    theme: &Theme,
    width: usize,
    most: usize,
) -> Vec<Line<'static>> {
    let mut lines = flow(figures(played, theme, width), if width < 84 { "  " } else { "   " }, width, 2);
    lines.extend(refusal(played, theme, width));
    lines.extend(settings(played, theme, width));
    // What is told of fills and path may take two lines each, if there is room.
    for phrases in [legend(played, window, theme), path(played, marked, theme)] {
        let room = most.saturating_sub(lines.len() + 1).clamp(1, 2);
        lines.extend(flow(phrases, " ", width, room));
    }
    lines
}

/// What one wants to know of a batch.
fn figures(played: &Played, theme: &Theme, width: usize) -> Vec<Phrase> {
    let timeline = &played.timeline;
    let over = timeline.peak_memory() > played.shown.limits.memory_bytes * (1.0 + 1e-9);
    let peak = format!("{}{}", units::bytes(timeline.peak_memory()), if over { " ✗ over the limit" } else { "" });
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

fn legend(played: &Played, (from, to): (f64, f64), theme: &Theme) -> Vec<Phrase> {
    let muted = theme.fg(Role::Muted);
    let is_there = |work: Work| match work {
        Work::Recompute => played.pipeline.stages.iter().any(|stage| stage.recompute_s > 0.0),
        Work::Weights => played.schedule().splits_backward(),
        Work::Optimizer => played.pipeline.settings.optimizer_step_s > 0.0,
        Work::Forward | Work::Backward => true,
    };
    let works = Work::ALL.into_iter().filter(|work| is_there(*work)).map(|work| {
        let (symbol, style) = paint_work(theme, work);
        vec![Span::styled(symbol.repeat(2), style), Span::styled(format!(" {} ", name(work)), muted)]
    });
    let mut phrases: Vec<Phrase> = works.collect();
    if played.pipeline.stages.iter().any(|stage| stage.all_reduce_s > 0.0) {
        let (symbol, style) = paint(theme, Role::AllReduce, "█");
        phrases.push(vec![Span::styled(symbol.repeat(2), style), Span::styled(" all-reduce ", muted)]);
    }
    phrases.push(vec![Span::styled("→←", theme.fg(Role::Transfer)), Span::styled(" transfers ", muted)]);
    let batch = played.timeline.iteration_s;
    if to - from < batch * 0.999 {
        phrases.push(vec![Span::raw(format!("seen: {} of it", units::percent((to - from) / batch)))]);
    }
    phrases
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

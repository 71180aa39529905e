//! Head of the timeline: figures of the iteration, simulation settings, refused schedules, legend, and the critical
//! path.

use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::rows::{MARK, send_color};
use crate::{
    simulate::Schedule,
    tui::{
        paint::{
            phrases::{Phrase, flow, of_text},
            shades::Shades,
            strip,
            text::wrap,
            words::MUCH_IDLE,
        },
        simulated::Simulated,
        theme::{Role, Theme},
    },
    units,
};

/// All lines. `marked` states if the critical path is marked, with its key. Legend and path use two lines each only
/// within `most` lines. The most important lines come first.
pub(super) fn lines(
    simulated: &Simulated,
    marked: (bool, Option<String>),
    window: (f64, f64),
    (theme, shades): (&Theme, &Shades),
    width: usize,
    most: usize,
) -> Vec<Line<'static>> {
    let mut lines = flow(figures(simulated, theme, width), if width < 84 { "  " } else { "   " }, width, 2);
    lines.extend(refusal(simulated, theme, width));
    lines.extend(settings(simulated, theme, width));
    lines.extend(schedules(simulated, theme, width));
    // Legend and path may take two lines each, if they fit.
    for phrases in [legend(simulated, window, theme, shades), path(simulated, marked, theme)] {
        let room = most.saturating_sub(lines.len() + 1).clamp(1, 2);
        lines.extend(flow(phrases, " ", width, room));
    }
    lines
}

/// Main figures of an iteration.
fn figures(simulated: &Simulated, theme: &Theme, width: usize) -> Vec<Phrase> {
    let timeline = &simulated.timeline;
    let (limit, over) = simulated.shown.fullest_limit(&timeline.peak_memory_bytes);
    let peak = format!(
        "{}{}",
        units::bytes_beside(timeline.peak_memory(), limit),
        if over { " ✗ over the limit" } else { "" }
    );
    let peak_style = if over { theme.bold(Role::Bad) } else { theme.fg(Role::Text) };
    // A pipeline that runs once has only one order, and is no batch of microbatches.
    let once = match (&simulated.pipeline.single_sample, simulated.pipeline.steps.is_empty()) {
        (Some(_), _) => Some(("one sample", "from input to result")),
        (None, false) => Some(("one iteration", "per iteration")),
        (None, true) => None,
    };
    let name = once.map_or_else(|| simulated.schedule().name(), |(name, _)| name);
    let schedule = vec![Span::styled(name, theme.bold(Role::Accent))];
    if timeline.events.is_empty() {
        return vec![schedule, vec![Span::raw("nothing simulated")]];
    }
    let of = if width < 84 || once.is_some() {
        String::new()
    } else {
        format!(" of {}", units::counted(simulated.pipeline.microbatches as usize, "microbatch"))
    };
    let batch = format!("{} {}", units::seconds(timeline.iteration_s), once.map_or("per iteration", |(_, per)| per));
    let idle = if timeline.idle > MUCH_IDLE { Role::Warning } else { Role::Text };
    vec![
        schedule,
        vec![Span::styled(batch, theme.bold(Role::Text)), Span::raw(of)],
        vec![Span::raw(format!("{} samples/s", units::number(timeline.samples_per_s)))],
        vec![Span::raw("idle "), Span::styled(units::percent(timeline.idle), theme.bold(idle))],
        vec![Span::raw("peak "), Span::styled(peak, peak_style)],
    ]
}

/// Reason why the requested schedule is not the shown one, with a repair.
fn refusal(simulated: &Simulated, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let wanted = simulated.setup.schedule;
    // A plan that runs once has only one order, so there is no other schedule to explain.
    let answered = simulated.pipeline.runs_once();
    let Some(reason) = simulated.pipeline.refusal(wanted).filter(|_| !answered) else { return vec![] };
    let shown = match simulated.schedule() {
        schedule if schedule == wanted || simulated.timeline.events.is_empty() => String::new(),
        schedule => format!(" This is {}.", schedule.name()),
    };
    let repair =
        simulated.pipeline.repair(wanted).map_or_else(String::new, |repair| format!(" What would help: {repair}."));
    let text = format!("✗ {reason}.{repair}{shown}");
    wrap(&text, width).into_iter().map(|line| Line::styled(line, theme.fg(Role::Warning))).collect()
}

/// All schedules if they fit, with those crossed out that the plan cannot run.
fn schedules(simulated: &Simulated, theme: &Theme, width: usize) -> Option<Line<'static>> {
    if simulated.pipeline.runs_once() || simulated.timeline.events.is_empty() {
        return None;
    }
    let mut spans = vec![Span::styled("schedules ", theme.fg(Role::Muted))];
    for schedule in Schedule::ALL {
        let style = match simulated.pipeline.refusal(schedule) {
            _ if schedule == simulated.schedule() => theme.bold(Role::Accent),
            Some(_) => theme.fg(Role::Muted).add_modifier(Modifier::CROSSED_OUT),
            None => theme.fg(Role::Text),
        };
        let sign = if simulated.pipeline.refusal(schedule).is_some() { " ✗" } else { " " };
        spans.push(Span::styled(sign, theme.fg(Role::Muted)));
        spans.push(Span::styled(schedule.name(), style));
        spans.push(Span::raw(" "));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    (used <= width).then(|| Line::from(spans))
}

/// Settings of the simulator that differ from the defaults.
fn settings(simulated: &Simulated, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let changes = simulated.setup.changes();
    if changes.is_empty() || simulated.pipeline.runs_once() {
        return vec![];
    }
    let mut phrases = vec![vec![Span::styled("simulated with", theme.fg(Role::Muted))]];
    let last = changes.len() - 1;
    phrases.extend(changes.into_iter().enumerate().map(|(i, change)| {
        vec![Span::styled(format!("{change}{}", if i < last { "," } else { "" }), theme.bold(Role::Accent))]
    }));
    flow(phrases, " ", width, 2)
}

fn legend(simulated: &Simulated, (from, to): (f64, f64), theme: &Theme, shades: &Shades) -> Vec<Phrase> {
    let muted = theme.fg(Role::Muted);
    let sign = |entry: strip::Entry| {
        Span::styled(entry.sign(shades), Style::new().fg(shades.color(shades.activity(entry.activity))))
    };
    // Transfers have entries of their own below.
    let entries = strip::legend(simulated).into_iter().filter(|entry| !entry.thin);
    let mut phrases: Vec<Phrase> =
        entries.map(|entry| vec![sign(entry), Span::styled(format!(" {} ", entry.word), muted)]).collect();
    if simulated.shown.operators.is_some() {
        phrases.push(vec![Span::styled("with their transfers and all-reduces ", muted)]);
    }
    if !simulated.pipeline.transfers.is_empty() {
        if shades.coloured() {
            let mark = |activations| Span::styled("━", Style::new().fg(send_color(shades, activations)));
            phrases.push(vec![mark(true), Span::styled(" sends activations ", muted)]);
            phrases.push(vec![mark(false), Span::styled(" gradients ", muted)]);
        } else {
            phrases.push(vec![Span::raw("→←"), Span::styled(" transfers ", muted)]);
        }
    }
    let batch = simulated.timeline.iteration_s;
    if to - from < batch * 0.999 {
        phrases.push(vec![Span::raw(format!("shown: {} of it", units::percent((to - from) / batch)))]);
    }
    phrases
}

/// Contents of the critical path, and its mark or the key to mark it.
fn path(simulated: &Simulated, (marked, key): (bool, Option<String>), theme: &Theme) -> Vec<Phrase> {
    let (mark, lead) = match key.filter(|_| !marked) {
        Some(key) => (key, " marks the critical path:"),
        None => (MARK.to_string(), " critical path:"),
    };
    let mut phrases =
        vec![vec![Span::styled(mark, theme.bold(Role::Accent)), Span::styled(lead, theme.fg(Role::Muted))]];
    phrases.extend(
        of_text(&simulated.path.summary_with(&|stage| simulated.shown.names.long(stage).to_string()))
            .into_iter()
            .map(|phrase| vec![Span::raw(phrase)]),
    );
    phrases
}

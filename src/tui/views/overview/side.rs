//! Beside the picture, below the stage under the cursor: changes that help, then those that hurt.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
};

use crate::tui::{
    action::Action,
    marks::Marks,
    model::{Hit, Model},
    paint::{stage_block::ends, text::clip},
    theme::Role,
    would_help::{Phase, Tried},
};

/// End of the label of another batch.
const PER_SAMPLE: &str = " (per sample)";
/// Gain below which a suggestion is hidden.
const NOTICEABLE: f64 = 0.01;

/// Draws changes that help, then those that hurt, and records their rows for the mouse.
pub(super) fn draw_help(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    let drawn = area.height >= 3;
    marks.help = Some(drawn);
    if area.height < 2 {
        return;
    }
    marks.hits.push((area, Hit::Suggestions));
    marks.help_layout = Some((0, 1));
    let theme = &model.appearance.theme;
    let width = usize::from(area.width);
    let selected = model.suggestion_where(drawn);
    let rows = entries(model, selected);
    let mut y = area.y;
    let mut put = |frame: &mut Frame<'_>, line: Line<'static>| {
        let place = Rect { y, height: 1, ..area };
        if y < area.bottom() {
            frame.render_widget(line, place);
        }
        y += 1;
        place
    };
    let head = |text: &'static str, unit: &'static str| {
        let text = vec![Span::styled(text, theme.bold(Role::Text))];
        ends(text, Span::styled(unit, theme.fg(Role::Muted)), width)
    };
    put(frame, head("What would help", "faster"));
    if area.height >= 8 {
        let simulated = model.planning.would_help.rows.iter().any(|tried| tried.simulated.is_some());
        let told = if simulated { "one change each, simulated" } else { "one change each" };
        put(frame, Line::styled(told, theme.fg(Role::Muted)));
    }
    if let Some(text) = waiting(model, &rows) {
        put(frame, Line::styled(text, theme.fg(Role::Muted)));
        return;
    }
    let fresh = model.planning.would_help.fresh && !model.aside();
    let mut hurts = false;
    let mut hits = vec![];
    // The last line shows the keys.
    let last = area.bottom().saturating_sub(if area.height >= 10 { 2 } else { 0 });
    for row in rows {
        if row.gain < 0.0 && !hurts {
            hurts = true;
            let used = hits.len() as u16;
            if used > 0 && area.y + used + 5 < last {
                put(frame, Line::default());
            }
            put(frame, head("What would hurt", "slower"));
        }
        let role = match (fresh, row.gain > 0.0) {
            (false, _) => Role::Muted,
            (true, true) if row.gain > 0.05 => Role::Good,
            _ => Role::Text,
        };
        let room = width.saturating_sub(row.value.chars().count() + 1);
        // In a narrow column the unit of the comparison goes before a part of a word does.
        let short = if row.label.chars().count() > room { row.label.replace(PER_SAMPLE, "") } else { row.label };
        let label = clip(&short, room);
        let name = vec![Span::styled(label, theme.fg(if fresh { Role::Text } else { Role::Muted }))];
        let place = put(frame, ends(name, Span::styled(row.value, theme.fg(role)), width));
        if place.y >= last {
            break;
        }
        if selected == Some(row.place) {
            frame.buffer_mut().set_style(place, theme.selected());
        }
        if fresh && row.place != usize::MAX {
            hits.push((place, Hit::Suggestion(row.place)));
        }
    }
    marks.hits.extend(hits);
    if area.height >= 10 {
        let keys = keys(model, selected.is_some());
        frame.render_widget(keys, Rect { y: area.bottom() - 1, height: 1, ..area });
    }
}

fn keys(model: &Model, selected: bool) -> Line<'static> {
    let (accent, muted) = (model.appearance.theme.fg(Role::Accent), model.appearance.theme.fg(Role::Muted));
    let mut spans = vec![];
    if selected {
        spans.push(Span::styled("Enter", accent));
        spans.push(Span::styled(" take it", muted));
    } else if let Some(key) = model.appearance.keymap.of_action(Action::WouldHelp) {
        spans.push(Span::styled(key, accent));
        spans.push(Span::styled(" choose one", muted));
    }
    Line::from(spans)
}

/// Text in place of results.
fn waiting(model: &Model, rows: &[Entry]) -> Option<String> {
    let key = model.appearance.keymap.of_action(Action::WouldHelp).unwrap_or_default();
    if model.aside() {
        return Some("only for a planner's plan".into());
    }
    if !rows.is_empty() {
        return None;
    }
    Some(match model.planning.would_help.phase {
        _ if model.planning.would_help.folded => "hidden".into(),
        Phase::Idle | Phase::Resting(_) => "…".into(),
        Phase::Unasked => format!("{key} starts it: it takes time"),
        Phase::Asking => "asking …".into(),
        Phase::Done => "nothing on its own".into(),
    })
}

/// Suggestion to draw.
pub(super) struct Entry {
    /// Index in the list; `usize::MAX` if it cannot be applied.
    place: usize,
    pub label: String,
    pub value: String,
    pub gain: f64,
}

/// Suggestions with an effect, and the selected one, best first.
pub(super) fn entries(model: &Model, selected: Option<usize>) -> Vec<Entry> {
    let entry = |(place, tried): (usize, &Tried)| {
        let gain = tried.gain()?;
        let shown = gain.abs() >= NOTICEABLE || selected == Some(place);
        shown.then(|| Entry { place, label: tried.answer.label.clone(), value: tried.told(), gain })
    };
    let mut entries: Vec<Entry> = model.planning.would_help.rows.iter().enumerate().filter_map(entry).collect();
    // Only the most helpful link, because it cannot be applied.
    if let Some(wider) = model.planning.would_help.wider.first() {
        let at = entries.partition_point(|entry| entry.gain >= wider.gain());
        let entry = Entry { place: usize::MAX, label: wider.label.clone(), value: wider.told(), gain: wider.gain() };
        entries.insert(at, entry);
    }
    entries
}

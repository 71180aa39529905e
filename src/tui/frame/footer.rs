//! Bottom line: keys that matter in the current context, the last message, or a search text.

use ratatui::{
    Frame,
    layout::{Position, Rect},
    text::{Line, Span},
    widgets::Clear,
};
use tui_input::Input;

use crate::{
    cluster::LimitKind,
    tui::{
        action::{Action, Entry, Scope, TABLE},
        keymap,
        model::{Focus, Model, Tone},
        overlay::Overlay,
        paint::text::{clip, plain, wrap},
        playing::Playhead,
        theme::Role,
        views::overview,
    },
};

/// Maximum number of lines of a message.
const MESSAGE: usize = 4;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let theme = &model.appearance.theme;
    if let Some((tone, text)) = &model.message {
        let (sign, role) = match tone {
            Tone::Done => ("✓", Role::Good),
            Tone::Refused => ("✗", Role::Bad),
        };
        // A long message covers lines of the view until the next key, because a cut reason explains nothing.
        let width = usize::from(area.width.saturating_sub(4));
        let mut lines = wrap(text, width);
        lines.truncate(MESSAGE.min(usize::from(area.y)));
        let height = lines.len() as u16;
        let place = Rect { y: (area.y + 1).saturating_sub(height), height, ..area }.intersection(frame.area());
        frame.render_widget(Clear, place);
        frame.buffer_mut().set_style(place, theme.base());
        for (y, (at, text)) in (place.y..).zip(lines.into_iter().enumerate()) {
            let sign = if at == 0 { format!(" {sign} ") } else { "   ".into() };
            let line = Line::from(vec![Span::styled(sign, theme.bold(role)), Span::styled(text, theme.fg(role))]);
            frame.render_widget(line, Rect { y, height: 1, ..area });
        }
        return;
    }
    let mut spans = vec![Span::raw(" ")];
    let width = |(keys, word): &Hint| {
        let word = word.chars().count();
        keys.chars().count() + if word == 0 { 1 } else { word + 3 }
    };
    let (mut hints, always) = hints(model);
    // The last keys are always visible; the others as far as they fit.
    let mut used = 1 + always.iter().map(width).sum::<usize>();
    let fitting = hints.iter().take_while(|hint| {
        used += width(hint);
        used <= area.width as usize
    });
    hints.truncate(fitting.count());
    let own: usize = 1 + hints.iter().map(width).sum::<usize>();
    let gap = usize::from(area.width).saturating_sub(own + always.iter().map(width).sum::<usize>());
    let shown = |(keys, word): Hint| {
        let word = if word.is_empty() { " ".into() } else { format!(" {word}  ") };
        let word = Span::styled(word, theme.fg(Role::Muted));
        [Span::styled(keys, theme.bold(Role::Accent)), word]
    };
    spans.extend(hints.into_iter().flat_map(shown));
    spans.push(Span::raw(" ".repeat(gap)));
    spans.extend(always.into_iter().flat_map(shown));
    frame.render_widget(Line::from(spans), area);
}

/// Last keys of the line, in this order.
const LAST: [Action; 6] = [Action::Export, Action::Ask, Action::WouldHelp, Action::Palette, Action::Help, Action::Quit];
/// Width from which all of them have words, cells.
const WIDE: u16 = 110;
/// Index from which they have words on any screen.
const WORDED: usize = 4;

/// Actions of the playback, which are told together while it runs.
const PLAYS: [Action; 3] = [Action::PlayBatch, Action::PreviousEvent, Action::Slower];

/// Key and its word.
type Hint = (String, String);

/// True if a boundary between stages of the shown plan can move: needs several stages that are not equal virtual ones.
fn moves_boundaries(model: &Model) -> bool {
    model.planning.shown.as_ref().and_then(|shown| shown.plan()).is_some_and(|(plan, _)| {
        let equal = plan.configuration().is_some_and(|configuration| configuration.layout.virtual_stages > 1);
        plan.stages.len() > 1 && !equal
    })
}

/// Hints of the bottom line: first keys that close or stop, then those of this place, then general ones. The second
/// list is always shown.
fn hints(model: &Model) -> (Vec<Hint>, Vec<Hint>) {
    let pair = |key: &str, word: &str| (keymap::shown(key), word.to_string());
    if model.panel.editing.is_some() {
        return (vec![pair("enter", "take it"), pair("esc", "leave it")], vec![]);
    }
    if let Some(overlay) = &model.overlay {
        return (overlay_hints(overlay, model.appearance.ascii), vec![]);
    }
    let mut hints = vec![];
    if model.progress_shown() {
        hints.push(pair("esc", "stop and keep the best plan"));
    }
    let of_view = model.view.behaviour().hints(model).iter();
    hints.extend(
        of_view.filter_map(|(action, word)| Some((model.appearance.keymap.of_action(*action)?, (*word).to_string()))),
    );
    if model.previewed().is_some()
        && let Some(key) = model.appearance.keymap.of_action(Action::Back)
    {
        hints.push((key, "back to Compare".into()));
    }
    for (kind, action) in [(LimitKind::Memory, Action::FitMemory), (LimitKind::Devices, Action::FitDevices)] {
        if let (Some(value), Some(key)) = (model.fitting(kind), model.appearance.keymap.of_action(action)) {
            hints.push((key, format!("{} {}", kind.label(), kind.format(value))));
        }
    }
    if model.remedies().is_some_and(|own| own.count() > 0)
        && model.focus == Focus::Panel
        && let Some(key) = model.appearance.keymap.of_action(Action::NextPanel)
    {
        hints.push((key, "what would do".into()));
    }
    let scopes = model.scopes();
    let idle = model.view.behaviour().idle(model);
    let near = |scope: Scope| scopes.contains(&scope) && scope != Scope::Everywhere && !idle.contains(&scope);
    let special = model.scopes()[0];
    let plays = model.simulation.playhead().is_some() && model.view.uses().playhead;
    if plays {
        let keys = |actions: &[Action]| {
            let keys: Vec<String> = actions.iter().filter_map(|a| model.appearance.keymap.of_action(*a)).collect();
            keys.join(" ")
        };
        let runs = matches!(model.simulation.playing.head, Playhead::Runs(_));
        hints.push((keys(&[Action::PlayBatch]), if runs { "pause" } else { "play" }.into()));
        hints.push((keys(&[Action::Slower, Action::Faster]), "speed".into()));
        hints.push((keys(&[Action::PreviousEvent, Action::NextEvent]), "event by event".into()));
        hints.push((keys(&[Action::Back]), "end".into()));
    }
    let keyed =
        || TABLE.iter().enumerate().filter(|(i, e)| !e.hint.is_empty() && !model.appearance.keymap.of(*i).is_empty());
    // Without a plan a view that draws one has no keys of its own.
    let empty = model.view.uses().plan && model.planning.shown.as_ref().is_none_or(|shown| shown.plan().is_none());
    let own = |e: &Entry| model.view.scopes().contains(&e.scope) || e.scope == Scope::Trained;
    let heard = |e: &Entry| near(e.scope) && (e.scope == special || model.focus != Focus::Panel) && !(empty && own(e));
    let refused = |e: &Entry| e.action == Action::BoundaryBack && !moves_boundaries(model);
    let told = |e: &Entry| plays && PLAYS.contains(&e.action);
    for (i, entry) in keyed().filter(|(_, e)| heard(e) && !refused(e) && !told(e)) {
        let both = |other: Action, between: &str| {
            let other = model.appearance.keymap.of_action(other).unwrap_or_default();
            format!("{}{between}{other}", model.appearance.keymap.shown(i))
        };
        let key = match entry.action {
            Action::Decrease => both(Action::Increase, ""),
            Action::CursorLeft => both(Action::CursorRight, ""),
            Action::ZoomIn => both(Action::ZoomOut, " "),
            Action::SweepFiner => both(Action::SweepWider, " "),
            Action::SortPrevious => both(Action::SortNext, " "),
            Action::BoundaryBack => both(Action::BoundaryForward, " "),
            _ => model.appearance.keymap.shown(i),
        };
        let by_one = entry.action == Action::IncreaseLarge && model.steps_machines();
        hints.push((key, if by_one { "by one" } else { entry.hint }.to_string()));
    }
    // The key that plays the batch also works while the left panel has the focus.
    let offered = model.focus == Focus::Panel && model.simulation.simulated.is_some() && !plays;
    if let Some(key) = model.appearance.keymap.of_action(Action::PlayBatch).filter(|_| offered && near(overview::HERE))
    {
        hints.insert(hints.len().min(2), (key, "play".into()));
    }
    // A key is told once, with the word that comes first.
    let mut told: Vec<String> = vec![];
    hints.retain(|(key, _)| {
        let new = !told.contains(key);
        told.push(key.clone());
        new
    });
    // The last keys are the same in every view.
    let mut always = vec![];
    for (i, entry) in keyed().filter(|(_, e)| e.scope == Scope::Everywhere) {
        let hint = (model.appearance.keymap.shown(i), entry.hint.to_string());
        match LAST.iter().position(|action| *action == entry.action) {
            // On a narrow screen the last two have words.
            Some(at) if at < WORDED && model.appearance.size.0 < WIDE => always.push((at, (hint.0, String::new()))),
            Some(at) => always.push((at, hint)),
            None => hints.push(hint),
        }
    }
    always.sort_by_key(|(at, _)| *at);
    (hints, always.into_iter().map(|(_, hint)| hint).collect())
}

/// Keys of an overlay.
fn overlay_hints(overlay: &Overlay, ascii: bool) -> Vec<Hint> {
    let keys: &[(&[&str], &str)] = match overlay {
        Overlay::Help(_) => {
            &[(&["up", "down"], "scroll"), (&["pageup", "pagedown"], "ten at once"), (&["esc"], "close")]
        }
        Overlay::Palette(_) => &[(&["enter"], "do it"), (&["up", "down"], "choose"), (&["esc"], "close")],
        Overlay::Export(form) => &[
            (&["enter"], if form.overwrite { "replace it" } else { "write" }),
            (&["up", "down"], "format"),
            (&["pageup", "pagedown"], "preview"),
            (&["esc"], "close"),
        ],
        Overlay::Open(_) => &[(&["enter"], "open"), (&["up", "down"], "choose"), (&["esc"], "close")],
        Overlay::Ask(_) => &[
            (&["enter"], "ask, take"),
            (&["up", "down"], "field"),
            (&["left", "right"], "choose"),
            (&["esc"], "close"),
        ],
        Overlay::Schedules(_) => &[(&["enter"], "take"), (&["up", "down"], "choose"), (&["esc"], "close")],
        Overlay::EditSchedule(_) => &[
            (&["[", "]"], "move"),
            (&["p"], "pair"),
            (&["b"], "divide backward"),
            (&["u", "U"], "undo"),
            (&["n"], "what is wrong"),
            (&["e"], "save"),
            (&["enter"], "take"),
            (&["esc"], "close"),
        ],
        // Drawn over this line.
        Overlay::Find(_) | Overlay::Rename(..) | Overlay::Range(_) | Overlay::SaveSchedule(..) => &[],
    };
    let spelled = |key: &&str| if ascii && *key == "enter" { "Enter".into() } else { keymap::shown(key) };
    let hint =
        |(keys, word): &(&[&str], &str)| (keys.iter().map(spelled).collect::<Vec<_>>().join(" "), (*word).to_string());
    let typed = match overlay {
        Overlay::Export(_) => Some(("type".to_string(), "a file name".to_string())),
        Overlay::Help(_) | Overlay::Palette(_) | Overlay::Open(_) => Some(("type".into(), "to search".into())),
        Overlay::Ask(_) => Some(("type".into(), "a value".into())),
        Overlay::Find(_)
        | Overlay::Rename(..)
        | Overlay::Range(_)
        | Overlay::Schedules(_)
        | Overlay::EditSchedule(_)
        | Overlay::SaveSchedule(..) => None,
    };
    keys.iter().map(hint).chain(typed).collect()
}

/// Draws the search text over the last line.
pub(super) fn draw_find(frame: &mut Frame<'_>, area: Rect, model: &Model, input: &Input) {
    let keys = [Action::FindNext, Action::FindPrevious].map(|action| model.appearance.keymap.of_action(action));
    let keys: Vec<String> = keys.into_iter().flatten().collect();
    let then = if keys.is_empty() { String::new() } else { format!("  then {}", keys.join(", ")) };
    draw_line(frame, area, model, input, "/", &format!("Enter keep  Esc close{then}"));
}

/// Draws the name of a pin over the last line.
pub(super) fn draw_rename(frame: &mut Frame<'_>, area: Rect, model: &Model, input: &Input) {
    draw_line(frame, area, model, input, "name:", "Enter keep  Esc cancel");
}

/// Draws the file of an edited schedule over the last line. An error stays beside it.
pub(super) fn draw_save_schedule(frame: &mut Frame<'_>, area: Rect, model: &Model, input: &Input) {
    let told = match &model.message {
        Some((Tone::Refused, why)) => why.clone(),
        _ => "Enter write  Esc back".into(),
    };
    draw_line(frame, area, model, input, "file:", &told);
}

/// Draws the values to sweep over the last line. An error stays beside them.
pub(super) fn draw_range(frame: &mut Frame<'_>, area: Rect, model: &Model, input: &Input) {
    let kind = model.sweep_axis();
    let told = match &model.message {
        Some((Tone::Refused, why)) => why.clone(),
        _ => format!("such as {}  Enter sweep  Esc cancel", model.sweep_range_example()),
    };
    draw_line(frame, area, model, input, &format!("{}:", kind.label()), &told);
}

fn draw_line(frame: &mut Frame<'_>, area: Rect, model: &Model, input: &Input, prompt: &str, keys: &str) {
    let place = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
    let text = format!(" {prompt} {}", input.value());
    let at = place.x + 2 + prompt.len() as u16 + input.visual_cursor() as u16;
    frame.render_widget(Clear, place);
    frame.buffer_mut().set_style(place, model.appearance.theme.base());
    let line = Line::from(vec![
        Span::styled(clip(&text, place.width.saturating_sub(30) as usize), plain()),
        Span::styled(
            clip(&format!("   {keys}"), (place.width as usize).saturating_sub(text.chars().count())),
            model.appearance.theme.fg(Role::Muted),
        ),
    ]);
    frame.render_widget(line, place);
    frame.set_cursor_position(Position::new(at.min(place.right().saturating_sub(1)), place.y));
}

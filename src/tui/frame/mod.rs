//! Drawing of the state: one file per panel.
//!
//! ```text
//! header           workload · planner, how it ended, objective, time
//! panel | view     what can be set | what came of it
//! footer           the keys that matter here, or the last message
//! ```
//! Areas are computed by arithmetic and clipped to the frame, so any size can be drawn. Drawing does not change the
//! model. It records clickable places in [`Marks`].

mod ascii;
mod ask;
mod caption;
mod convergence;
mod export;
mod footer;
mod header;
mod help;
mod layout;
mod no_plan;
mod open;
mod panel;
mod schedules;
mod tasks;
mod term;

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::{Block, BorderType, Clear, Paragraph},
};

use crate::{
    text::is_hostile,
    tui::{
        action::Action,
        marks::Marks,
        model::{Focus, Hit, Model, SMALLEST, View},
        overlay::Overlay,
        paint::{
            area::rows,
            dim::{dim, fade},
            text::wrap,
        },
        shown::Standing,
        theme::{Role, Theme},
        views::overview::slide,
    },
};

/// Height of a view from which a line below the title has a sentence on the selected knob, and from which one more has
/// the words of the title and another one is blank, rows.
const TALL: u16 = 30;
const TALLER: u16 = 40;

/// Views that keep their names on a narrow screen.
const NAMED: usize = 5;

/// Width of the left panel, cells.
const PANEL_WIDTH: u16 = 30;

/// Draws a whole frame. The model stores the resulting places first, because the parts drawn on top need them.
pub(super) fn show(frame: &mut Frame<'_>, model: &mut Model) {
    let area = frame.area();
    let mut marks = model.lend_marks((area.width, area.height));
    frame.buffer_mut().set_style(area, model.appearance.theme.base());
    let room = area.width >= SMALLEST.0 && area.height >= SMALLEST.1;
    if room {
        draw(frame, area, model, &mut marks);
    } else {
        frame.render_widget(Paragraph::new(too_small(area.width, area.height).join("\n")), area);
    }
    model.laid_out(marks);
    if room {
        draw_over(frame, area, model);
    }
    replace(frame, model);
}

/// Draws the plan on the screen as a slide.
pub(super) fn show_slide(frame: &mut Frame<'_>, model: &Model) {
    let area = frame.area();
    frame.buffer_mut().set_style(area, model.appearance.theme.base());
    let line = slide::draw(frame, area, model);
    layout::draw(frame, line, model, &mut Marks::default());
    replace(frame, model);
}

/// Draws the top line, and below it the left panel and the view.
fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    let mut middle = middle(area);
    header::draw(frame, Rect { height: 1, ..area }, model);
    if model.panel_visible() {
        panel::draw(frame, Rect { width: PANEL_WIDTH, ..middle }, model, marks);
        middle = Rect { x: middle.x + PANEL_WIDTH, width: middle.width - PANEL_WIDTH, ..middle };
    }
    draw_view(frame, middle, model, marks);
}

/// Draws the parts that depend on stored places: the note beside a field, the keys in force, and overlays.
fn draw_over(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    panel::draw_note(frame, middle(area), model);
    footer::draw(frame, Rect { y: area.bottom() - 1, height: 1, ..area }, model);
    draw_overlay(frame, area, model);
    if let Some(demo) = &model.demo {
        caption::draw(frame, area, model, demo);
    }
}

/// All lines but the first and the last.
fn middle(area: Rect) -> Rect {
    Rect { y: area.y + 1, height: area.height - 2, ..area }
}

/// Replaces signs that the terminal lacks, and removes characters that it would interpret.
fn replace(frame: &mut Frame<'_>, model: &Model) {
    if model.appearance.ascii {
        ascii::replace(frame.buffer_mut());
    } else if model.appearance.console {
        ascii::replace_for_console(frame.buffer_mut());
    }
    harmless(frame.buffer_mut());
}

/// Removes characters that a terminal would interpret. Zero-width marks share a cell with the character before them, in
/// any widget.
fn harmless(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        if !symbol.is_ascii() && symbol.chars().any(is_hostile) {
            let clean: String = symbol.chars().filter(|c| !is_hostile(*c)).collect();
            cell.set_symbol(if clean.is_empty() { " " } else { &clean });
        }
    }
}

/// Message for a screen that is too small: the longest text that fits, or nothing, since a cut number would be wrong.
fn too_small(width: u16, height: u16) -> Vec<String> {
    let needed = format!("plantui needs {} x {}", SMALLEST.0, SMALLEST.1);
    let short = format!("{}x{}", SMALLEST.0, SMALLEST.1);
    let texts = [
        format!("{needed}, this is {width} x {height}"),
        needed,
        format!("plantui needs {short}"),
        format!("needs {short}"),
        short,
    ];
    let fits = |lines: &Vec<String>| {
        lines.len() <= usize::from(height) && lines.iter().all(|line| !line.contains('…')) && width > 0
    };
    texts.iter().map(|text| wrap(text, width.into())).find(fits).unwrap_or_default()
}

fn draw_view(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    marks.hits.push((area, Hit::ViewArea));
    let focused = model.focus == Focus::View;
    draw_tabs(frame, area, model, marks, focused);
    let air = u16::from(area.height >= TALL) + u16::from(area.height >= TALLER);
    // Labels of a model's layout are explained.
    let title = if air > 1 && model.session.workload.training().is_some() { 2 } else { 1 };
    let mut inner = rows(area, 2 + title + air, area.height);
    inner = Rect { x: inner.x + 2.min(inner.width), width: inner.width.saturating_sub(3), ..inner };
    layout::draw(
        frame,
        rows(area, 2, title).intersection(Rect { x: inner.x, width: inner.width, ..area }),
        model,
        marks,
    );
    if air > 0 {
        layout::draw_sentence(frame, Rect { x: inner.x, width: inner.width, ..rows(area, 2 + title, 1) }, model);
    }
    if model.convergence_shown() {
        // The view gets the larger part.
        let height = convergence::HEIGHT.min(inner.height / 2);
        let chart = rows(inner, inner.height - height, height);
        inner.height -= height;
        convergence::draw(frame, chart, &model.planning.convergence, &model.appearance.theme);
    }
    let behaviour = model.view.behaviour();
    if !model.view.uses().plan {
        behaviour.draw(frame, inner, model, marks);
        return;
    }
    if let Some(refusal) = &model.planning.refusal {
        no_plan::draw_refusal(frame, inner, model, refusal);
        return;
    }
    let Some(shown) = &model.planning.shown else {
        let text = if model.planning.stopped { "no plan" } else { "planning …" };
        frame.render_widget(Paragraph::new(text).style(model.appearance.theme.fg(Role::Muted)), inner);
        return;
    };
    if shown.plan().is_some() {
        behaviour.draw(frame, inner, model, marks);
    } else {
        no_plan::draw(frame, inner, model, marks, shown);
    }
    if model.stale() || behaviour.outdated(model) {
        fade(frame, inner, &model.appearance.theme);
    }
}

/// Standing of the shown plan, unless it is a planner's final one; in full, and short.
fn standing(model: &Model) -> Option<[String; 2]> {
    let shown = model.planning.shown.as_ref().filter(|shown| shown.plan().is_some())?;
    match shown.standing {
        Standing::Done => None,
        Standing::Edited => {
            // Only keys that do so in this view.
            let scopes = model.scopes();
            let key = |action| scopes.iter().find_map(|scope| model.appearance.keymap.of_action_in(*scope, action));
            let ways = [(Action::Undo, "undo"), (Action::PlannersPlan, "planner's plan")];
            let ways = ways.into_iter().filter_map(|(action, word)| Some(format!("{} {word}", key(action)?)));
            let ways = ways.collect::<Vec<_>>().join(", ");
            let short = "edited by hand".to_string();
            Some([if ways.is_empty() { short.clone() } else { format!("{short}: {ways}") }, short])
        }
        Standing::BestSoFar { .. } if model.planning.best_so_far_shown() => {
            Some(["best plan so far; the search continues", "best plan so far"].map(String::from))
        }
        Standing::BestSoFar { .. } => {
            Some(["best plan so far of a stopped search", "best plan so far"].map(String::from))
        }
    }
}

/// Draws the names of the views over a rule that is strong under the shown one. At the rule's right end stands the
/// plan's standing, and the limits if the left panel is hidden.
fn draw_tabs(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, focused: bool) {
    let mut titles: Vec<(View, String, &'static str)> =
        View::tabs(model.session.workload.training().is_some(), model.view)
            .into_iter()
            .map(|view| (view, format!("{} ", view.number()), view.title()))
            .collect();
    let room = usize::from(area.width.saturating_sub(3));
    let names: usize = titles.iter().map(|(_, _, name)| name.len() + 1).sum();
    let numbers: usize = titles.iter().map(|(_, number, _)| number.len()).sum();
    let numbered = names + numbers <= room + 1;
    // Without a blank each, numbers stay where there is less room.
    let close = titles.len();
    let tight = !numbered;
    if tight {
        titles.iter_mut().for_each(|(_, number, _)| *number = number.trim().to_string());
    }
    let numbered = numbered || names + numbers - close <= room + 1;
    // If the names do not all fit, shorten the others: keys and a few letters suffice.
    let short = |most: usize| {
        let name =
            |view: View, name: &'static str| if view == model.view { name } else { &name[..most.min(name.len())] };
        titles.iter().map(|(view, n, whole)| (*view, n.clone(), name(*view, whole))).collect::<Vec<_>>()
    };
    let cells =
        |titles: &[(View, String, &str)]| titles.iter().map(|(_, n, name)| n.len() + name.len() + 1).sum::<usize>();
    let shortest = (3..6).rev().map(short).find(|titles| cells(titles) <= room + 1).unwrap_or_else(|| short(0));
    // Whole names with their keys, else the first few with theirs and the keys of the others.
    let few = || -> Vec<(View, String, &str)> {
        let named = |at: usize, view: View| at < NAMED || view == model.view;
        let titles = titles.iter().enumerate();
        titles.map(|(at, (view, n, name))| (*view, n.clone(), if named(at, *view) { *name } else { "" })).collect()
    };
    let titles: Vec<(View, String, &str)> = match numbered {
        true => titles,
        false => Some(few()).filter(|titles| cells(titles) <= room + 1).unwrap_or(shortest),
    };
    // Reduce the gaps in narrow places, so that no name is lost.
    let whole: usize = titles.iter().map(|(_, number, name)| number.len() + name.len()).sum();
    let gap = (room.saturating_sub(whole) / titles.len()).clamp(1, 3) as u16;
    let rule = Rect { y: area.y + 1, height: 1.min(area.height.saturating_sub(1)), ..area };
    let line = "─".repeat(usize::from(area.width.saturating_sub(3)));
    let start = area.x + 2.min(area.width);
    frame.render_widget(
        Span::styled(line, model.appearance.theme.fg(Role::Border)),
        Rect { x: start, ..rule }.intersection(area),
    );
    let (mut x, mut mark) = (start, start);
    for (view, number, name) in titles {
        let width = ((number.len() + name.len()) as u16).min(area.right().saturating_sub(x));
        let tab = Rect { x, y: area.y, width, height: 1 };
        let here = view == model.view;
        let style = match (here, focused) {
            (true, true) => model.appearance.theme.bold(Role::Text),
            (true, false) => model.appearance.theme.fg(Role::Text),
            (false, _) => model.appearance.theme.fg(Role::Muted),
        };
        let figure = if here {
            model.appearance.theme.bold(Role::Focus)
        } else {
            model.appearance.theme.fg(if tight { Role::Accent } else { Role::Muted })
        };
        frame.render_widget(Line::from(vec![Span::styled(number, figure), Span::styled(name, style)]), tab);
        if here && rule.height > 0 {
            let strong = Span::styled("━".repeat(usize::from(width)), model.appearance.theme.fg(Role::Focus));
            frame.render_widget(strong, Rect { x, width, ..rule });
            mark = x + width;
        }
        // A tab includes no gap: clicks between names count for the view.
        marks.hits.push((tab, Hit::Tab(view)));
        x += width + gap;
    }
    draw_on_rule(frame, rule, model, mark);
}

/// Draws words on the rule below the tabs, as many as fit behind the mark of the active one, which ends at `mark`.
fn draw_on_rule(frame: &mut Frame<'_>, rule: Rect, model: &Model, mark: u16) {
    if rule.height == 0 {
        return;
    }
    let mut words: Vec<Span<'static>> = vec![];
    let room = usize::from(rule.right().saturating_sub(mark + 2));
    if let Some([whole, short]) = standing(model) {
        let text = if whole.chars().count() + 4 <= room { whole } else { short };
        words.push(Span::styled(format!(" {text} "), model.appearance.theme.bold(Role::Warning)));
    }
    // Without a line of their own, the prices of the knob or the last change stand here.
    if model.appearance.size.1 < TALL + 2 && model.view.uses().plan {
        let mut told = layout::on_rule(model, room);
        let whole = |told: &[Span<'_>]| told.iter().map(Span::width).sum::<usize>() + 2;
        while whole(&told) > room {
            told.pop();
        }
        if !told.is_empty() {
            words.push(Span::raw(" "));
            words.append(&mut told);
            words.push(Span::raw(" "));
        }
    }
    if !model.panel_visible() {
        let limits = model.session.current_planner().limits_for(&model.session.workload);
        let limits = limits.iter().map(|&kind| kind.counted(model.session.limits.get(kind)));
        for (i, limit) in limits.enumerate() {
            let text = if i == 0 { format!(" {limit} ") } else { format!("· {limit} ") };
            words.push(Span::styled(text, model.appearance.theme.fg(Role::Text)));
        }
    }
    let width = |words: &[Span<'_>]| words.iter().map(Span::width).sum::<usize>();
    while width(&words) + 2 > room {
        if words.pop().is_none() {
            return;
        }
    }
    let width = width(&words) as u16;
    let place = Rect { x: rule.right().saturating_sub(width + 2).max(rule.x), width, ..rule };
    frame.render_widget(Line::from(words), place);
}

fn draw_overlay(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let Some(overlay) = &model.overlay else { return };
    if !matches!(overlay, Overlay::Find(_) | Overlay::Rename(..) | Overlay::Range(_)) {
        // The bottom line shows the overlay's keys.
        let behind = Rect { height: area.height.saturating_sub(1), ..area };
        dim(frame.buffer_mut(), behind, &model.appearance.theme);
    }
    match overlay {
        Overlay::Help(filter) => help::draw_help(frame, area, model, filter),
        Overlay::Palette(filter) => help::draw_palette(frame, area, model, filter),
        Overlay::Export(form) => export::draw(frame, area, model, form),
        Overlay::Open(form) => open::draw(frame, area, model, form),
        Overlay::Find(input) => footer::draw_find(frame, area, model, input),
        Overlay::Range(input) => footer::draw_range(frame, area, model, input),
        Overlay::Ask(form) => ask::draw(frame, area, model, form),
        Overlay::Rename(_, input) => footer::draw_rename(frame, area, model, input),
        Overlay::Schedules(list) => schedules::draw(frame, area, model, list),
        Overlay::EditSchedule(editor) => schedules::draw_editor(frame, area, model, editor),
        Overlay::SaveSchedule(editor, input) => {
            schedules::draw_editor(frame, area, model, editor);
            footer::draw_save_schedule(frame, area, model, input);
        }
    }
}

/// Block with rounded corners.
fn bordered(theme: &Theme, focused: bool) -> Block<'static> {
    let role = if focused { Role::Focus } else { Role::Border };
    Block::bordered().border_type(BorderType::Rounded).border_style(theme.fg(role))
}

/// Area inside a border and a blank column.
fn inside(area: Rect) -> Rect {
    Rect {
        x: area.x + 2.min(area.width),
        y: area.y + 1.min(area.height),
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    }
}

/// Draws an empty box in the middle of an area, clipped to it. Returns its inside.
fn modal(frame: &mut Frame<'_>, area: Rect, theme: &Theme, title: &str, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
        .intersection(frame.area());
    frame.render_widget(Clear, place);
    frame.buffer_mut().set_style(place, theme.base());
    let title = Span::styled(format!(" {title} "), theme.bold(Role::Text));
    frame.render_widget(bordered(theme, true).title(title), place);
    inside(place)
}

/// Draws, in the lower border of a modal, the visible part of its list (first index, visible count, total). Draws
/// nothing if all is visible.
fn draw_position(
    frame: &mut Frame<'_>,
    inner: Rect,
    theme: &Theme,
    (first, visible, count): (usize, usize, usize),
    what: &str,
) {
    if visible >= count || visible == 0 {
        return;
    }
    let last = (first + visible).min(count);
    let (up, down) = (if first > 0 { "↑ " } else { "" }, if last < count { " ↓" } else { "" });
    let text = format!(" {up}{what} {}–{last} of {count}{down} ", first + 1);
    let width = (text.chars().count() as u16).min(inner.width);
    let place = Rect { x: inner.right() - width, y: inner.bottom(), width, height: 1 }.intersection(frame.area());
    frame.render_widget(Span::styled(text, theme.fg(Role::Text)), place);
}

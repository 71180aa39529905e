//! Drawing the state: one file per panel.
//!
//! ```text
//! header           workload · planner, how it ended, objective, time
//! panel | view     what can be set | what came of it
//! footer           the keys that matter here, or the last message
//! ```
//! Areas are made by arithmetic and cut to the frame, so any size can be drawn. Drawing also notes where things lie, for
//! the mouse.

mod ascii;
mod ask;
mod caption;
mod compare;
mod compare_pictures;
mod compare_side;
mod convergence;
mod devices;
mod export;
mod footer;
mod header;
mod help;
mod links;
mod load_parts;
mod machine_map;
mod memory_chart;
mod no_plan;
mod node_rows;
mod open;
mod operator_flows;
mod panel;
mod phrases;
pub(super) mod stage_tree;
mod stages;
mod summary;
mod sweep;
pub(super) mod timeline;
mod timeline_cursor;
mod timeline_head;
mod timeline_rows;
pub(super) mod workload;
mod would_help;

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, BorderType, Clear, Paragraph},
};

use super::{
    model::{Focus, Hit, Model, View},
    overlay::Overlay,
    shown::{Shown, Standing},
    theme::{Role, Theme},
};
use crate::text::is_hostile;

/// The smallest screen on which everything has its place.
pub(super) const SMALLEST: (u16, u16) = (60, 16);
/// Width of the left panel.
const PANEL_WIDTH: u16 = 30;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model) {
    let area = frame.area();
    model.size = (area.width, area.height);
    // A view may have taken rows of the left panel with it.
    model.panel_cursor = model.panel_cursor.min(model.panel_rows().len().saturating_sub(1));
    model.hits.clear();
    frame.buffer_mut().set_style(area, model.theme.base());
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        frame.render_widget(Paragraph::new(too_small(area.width, area.height).join("\n")), area);
    } else {
        let middle = Rect { y: area.y + 1, height: area.height - 2, ..area };
        header::draw(frame, Rect { height: 1, ..area }, model);
        footer::draw(frame, Rect { y: area.bottom() - 1, height: 1, ..area }, model);
        let mut right = middle;
        if model.panel_visible() {
            let left = Rect { width: PANEL_WIDTH, ..middle };
            panel::draw(frame, left, model);
            right = Rect { x: middle.x + PANEL_WIDTH, width: middle.width - PANEL_WIDTH, ..middle };
        }
        draw_view(frame, right, model);
        panel::draw_note(frame, middle, model);
        draw_overlay(frame, area, model);
        if let Some(demo) = &model.demo {
            caption::draw(frame, area, model, demo);
        }
    }
    if model.ascii {
        ascii::replace(frame.buffer_mut());
    } else if model.console {
        ascii::replace_for_console(frame.buffer_mut());
    }
    harmless(frame.buffer_mut());
}

/// Takes out what a terminal would obey: marks without a width of their own come along with the character before them,
/// whichever widget drew it.
fn harmless(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        if !symbol.is_ascii() && symbol.chars().any(is_hostile) {
            let clean: String = symbol.chars().filter(|c| !is_hostile(*c)).collect();
            cell.set_symbol(if clean.is_empty() { " " } else { &clean });
        }
    }
}

/// What is said on a screen that is too small, in lines for it: the longest text that fits, none where nothing does, since
/// half a number would be another one.
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

fn draw_view(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {
    model.hits.push((area, Hit::ViewArea));
    let focused = model.focus == Focus::View;
    frame.render_widget(bordered(&model.theme, focused), area);
    draw_tabs(frame, area, model, focused);
    let mut inner = inside(area);
    if model.convergence_shown() {
        // The view keeps the larger part.
        let height = convergence::HEIGHT.min(inner.height / 2);
        let chart = rows(inner, inner.height - height, height);
        inner.height -= height;
        convergence::draw(frame, chart, &model.convergence, &model.theme);
    }
    if model.view == View::Workload {
        workload::draw(frame, inner, model);
        return;
    }
    if model.view == View::Sweep {
        sweep::draw(frame, inner, model);
        return;
    }
    if model.view == View::Compare {
        compare::draw(frame, inner, model);
        return;
    }
    if let Some(refusal) = model.refusal.clone() {
        no_plan::draw_refusal(frame, inner, model, &refusal);
        return;
    }
    let Some(shown) = model.shown.clone() else {
        let text = if model.stopped { "no plan" } else { "planning …" };
        frame.render_widget(Paragraph::new(text).style(model.theme.fg(Role::Muted)), inner);
        return;
    };
    match (shown.plan(), model.view) {
        (None, _) => no_plan::draw(frame, inner, model, &shown),
        (Some((plan, score)), View::Stages) => stages::draw(frame, inner, model, &shown, plan, score),
        (Some((plan, score)), View::Devices) => devices::draw(frame, inner, model, &shown, plan, score),
        (Some(_), _) => timeline::draw(frame, inner, model, &shown),
    }
    let other = model.played.as_ref().is_some_and(|played| !std::sync::Arc::ptr_eq(&played.shown, &shown));
    draw_standing(frame, area, model, &shown);
    if model.stale() || (model.view == View::Timeline && other) {
        fade(frame, inner, &model.theme);
    }
}

/// In the lower border, what the shown plan is if it is no planner's last word.
fn draw_standing(frame: &mut Frame<'_>, area: Rect, model: &Model, shown: &Shown) {
    let text = match shown.standing {
        Standing::Done => return,
        Standing::Edited => " edited by hand: u undo, 0 planner's plan ",
        Standing::BestSoFar { .. } if model.best_so_far_shown() => " best so far: the search goes on ",
        Standing::BestSoFar { .. } => " best so far of a search that was left ",
    };
    let width = (text.chars().count() as u16).min(area.width.saturating_sub(4));
    let place = Rect { x: area.x + 2, y: area.bottom().saturating_sub(1), width, height: 1 };
    frame.render_widget(Span::styled(text, model.theme.bold(Role::Warning)), place.intersection(area));
}

/// The views' names in the upper border, with the limits after them when the left panel is away.
fn draw_tabs(frame: &mut Frame<'_>, area: Rect, model: &mut Model, focused: bool) {
    let titles = View::ALL.into_iter().enumerate().map(|(i, view)| (view, format!("{} {}", i + 1, view.title())));
    let titles: Vec<(View, String)> = titles.collect();
    // At the smallest size names stand without blanks around them, so that none is lost.
    let whole: usize = titles.iter().map(|(_, title)| title.len() + 3).sum();
    let blank = if whole + 2 <= area.width.into() { " " } else { "" };
    let mut x = area.x + 1 + blank.len() as u16;
    for (view, title) in titles {
        let text = format!("{blank}{title}{blank}");
        let width = (text.chars().count() as u16).min(area.right().saturating_sub(x + 1));
        let style = match (view == model.view, focused) {
            (true, true) => model.theme.bold(Role::Focus).add_modifier(Modifier::UNDERLINED),
            (true, false) => model.theme.bold(Role::Text).add_modifier(Modifier::UNDERLINED),
            (false, _) => model.theme.fg(Role::Muted),
        };
        let text_style = style.remove_modifier(Modifier::UNDERLINED);
        let tab = Rect { x, y: area.y, width, height: 1 };
        // The name alone is underlined, not the blanks around it.
        let line = Line::from(vec![
            Span::styled(blank, text_style),
            Span::styled(title, style),
            Span::styled(blank, text_style),
        ]);
        frame.render_widget(line, tab);
        model.hits.push((tab, Hit::Tab(view)));
        x += width + 1;
    }
    if !model.panel_visible() {
        let mut limits: Vec<String> = model
            .current_planner()
            .limits_for(&model.workload)
            .iter()
            .map(|&kind| kind.counted(model.limits.get(kind)))
            .collect();
        let width = |limits: &[String]| limits.join(" · ").chars().count() as u16 + 2;
        // Beside the tabs, else in the lower border: there as many as there is room for; the first ones matter most.
        let above = x + width(&limits) + 2 <= area.right();
        let (y, x) = if above { (area.y, x) } else { (area.bottom().saturating_sub(1), area.x + area.width / 2) };
        while !limits.is_empty() && x + width(&limits) + 2 > area.right() {
            limits.pop();
        }
        if !limits.is_empty() {
            let width = width(&limits);
            let text = format!(" {} ", limits.join(" · "));
            let place = Rect { x: area.right() - 2 - width, y, width, height: 1 };
            frame.render_widget(Span::styled(text, model.theme.fg(Role::Text)), place);
        }
    }
}

fn draw_overlay(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {
    let Some(overlay) = model.overlay.take() else { return };
    match &overlay {
        Overlay::Help(filter) => help::draw_help(frame, area, model, filter),
        Overlay::Palette(filter) => help::draw_palette(frame, area, model, filter),
        Overlay::Export(form) => export::draw(frame, area, model, form),
        Overlay::Open(form) => open::draw(frame, area, model, form),
        Overlay::Find(input) => footer::draw_find(frame, area, model, input),
        Overlay::Range(input) => footer::draw_range(frame, area, model, input),
        Overlay::Ask(form) => ask::draw(frame, area, model, form),
        Overlay::Rename(_, input) => footer::draw_rename(frame, area, model, input),
    }
    model.overlay = Some(overlay);
}

/// A frame with rounded corners.
fn bordered(theme: &Theme, focused: bool) -> Block<'static> {
    let role = if focused { Role::Focus } else { Role::Border };
    Block::bordered().border_type(BorderType::Rounded).border_style(theme.fg(role))
}

/// What is inside a border and a column of air.
fn inside(area: Rect) -> Rect {
    Rect {
        x: area.x + 2.min(area.width),
        y: area.y + 1.min(area.height),
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    }
}

/// An emptied box of a size in the middle of an area, cut to it; returns its inside.
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

/// In the lower border of a modal, which part of its list is seen: the first place, how many, of how many. Nothing where
/// all is.
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

/// At the right edge of a list that does not fit, which part of it is seen: the first place, how many, of how many.
fn scrollbar(frame: &mut Frame<'_>, list: Rect, theme: &Theme, (first, visible, count): (usize, usize, usize)) {
    if visible >= count || visible == 0 || list.width == 0 || list.height == 0 {
        return;
    }
    let height = usize::from(list.height);
    let thumb = (height * visible / count).max(1);
    let top = (first * (height - thumb)).div_ceil((count - visible).max(1)).min(height - thumb);
    let x = list.right().min(frame.area().right().saturating_sub(1));
    for row in 0..height {
        let inside = (top..top + thumb).contains(&row);
        let position = (x, list.y + row as u16);
        if let Some(cell) = frame.buffer_mut().cell_mut(position) {
            let (sign, role) = if inside { ("█", Role::Muted) } else { ("│", Role::Border) };
            cell.set_symbol(sign).set_style(theme.fg(role));
        }
    }
}

/// The part of an area from a row on, of a height, cut to it.
fn rows(area: Rect, from: u16, height: u16) -> Rect {
    let from = from.min(area.height);
    Rect { y: area.y + from, height: height.min(area.height - from), ..area }
}

/// Takes the colours out of what no longer holds: still readable, plainly not current.
fn fade(frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let muted = theme.color(Role::Muted);
    let buffer = frame.buffer_mut();
    for position in area.intersection(buffer.area).positions() {
        let cell = &mut buffer[position];
        if cell.fg != Color::Reset || muted != Color::Reset {
            cell.set_fg(muted);
        }
        cell.modifier.remove(Modifier::BOLD);
    }
}

/// A text cut to a width, with a sign where something is missing.
fn clip(text: &str, width: usize) -> String {
    use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
    if text.width() <= width {
        return text.to_string();
    }
    let mut clipped = String::new();
    let mut used = 0;
    for c in text.chars() {
        let next = c.width().unwrap_or(0);
        if used + next + 1 > width {
            break;
        }
        clipped.push(c);
        used += next;
    }
    if width > 0 {
        clipped.push('…');
    }
    clipped
}

/// A text clipped and filled up to a width.
fn fit(text: &str, width: usize) -> String {
    use unicode_width::UnicodeWidthStr;
    let clipped = clip(text, width);
    let missing = width.saturating_sub(clipped.width());
    clipped + &" ".repeat(missing)
}

/// A text filled up from the left, or clipped.
fn fit_right(text: &str, width: usize) -> String {
    use unicode_width::UnicodeWidthStr;
    let clipped = clip(text, width);
    " ".repeat(width.saturating_sub(clipped.width())) + &clipped
}

/// A text broken at blanks into lines of at most `width` cells.
fn wrap(text: &str, width: usize) -> Vec<String> {
    use unicode_width::UnicodeWidthStr;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(&clip(word, width));
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(clip(word, width));
        }
    }
    lines
}

/// Nothing but a style, for texts that take it from their line.
fn plain() -> Style {
    Style::new()
}

/// The first row to show of `count`, so that the selected one is among the `visible`.
fn scrolled(selected: usize, visible: usize, count: usize) -> usize {
    (selected + 1).saturating_sub(visible).min(count.saturating_sub(visible))
}

//! Help and palette: two lists of the action table. The palette also lists exports.

use ratatui::{
    Frame,
    layout::{Position, Rect},
    text::{Line, Span},
    widgets::Paragraph,
};
use unicode_width::UnicodeWidthStr;

use crate::tui::{
    action::TABLE,
    frame::{draw_position, modal, tasks, term},
    model::Model,
    overlay::help_order,
    paint::{
        area::{rows, scrolled},
        text::{clip, fit, fit_right, plain, wrap},
    },
    palette::Command,
    theme::Role,
    widget::{filter::Filter, scrollbar::scrollbar},
};

/// Gap between columns and indent of the keys in the help, cells.
const GAP: usize = 2;
const INDENT: usize = 2;
/// Width of the key of a task, cells.
const TASK_KEY: usize = 6;
/// Minimum width for two columns of help, cells.
const BOTH: u16 = 110;
/// Width of a column if there is one, and if there are two, cells.
const COLUMN: [u16; 2] = [96, 54];

/// Draws the typed text with its cursor in a line.
pub(super) fn draw_input(frame: &mut Frame<'_>, line: Rect, model: &Model, filter: &Filter, empty: &str) {
    let text = filter.input.value();
    let shown = if text.is_empty() {
        Span::styled(clip(empty, line.width.saturating_sub(2) as usize), model.appearance.theme.fg(Role::Muted))
    } else {
        Span::styled(clip(text, line.width.saturating_sub(2) as usize), plain())
    };
    frame.render_widget(Line::from(vec![Span::styled("> ", model.appearance.theme.bold(Role::Accent)), shown]), line);
    let at = line.x + 2 + filter.input.visual_cursor() as u16;
    if line.height > 0 {
        frame.set_cursor_position(Position::new(at.min(line.right().saturating_sub(1)), line.y));
    }
}

/// Width of the widest text, cells.
fn widest<T: AsRef<str>>(texts: impl Iterator<Item = T>) -> usize {
    texts.map(|text| text.as_ref().width()).max().unwrap_or(0)
}

/// Line of the help.
enum HelpLine {
    /// Key and words of a task.
    Task(String, &'static str),
    /// Scope of the keys below.
    Heading(&'static str),
    /// Line of an entry: with keys and title if `first`, else a continuation. `place` is the index among the matches.
    Entry { place: usize, first: bool, help: String },
}

/// Draws tasks, then all keys, those of the current context first.
pub(super) fn draw_help(frame: &mut Frame<'_>, area: Rect, model: &Model, filter: &Filter) {
    // What a search finds is explained line by line.
    let searched = !filter.input.value().trim().is_empty();
    let beside = if area.width >= BOTH && !searched { 2 } else { 1 };
    let width = COLUMN[usize::from(beside) - 1] * beside;
    let inner = modal(frame, area, &model.appearance.theme, "Keys", width, area.height.saturating_sub(2));
    draw_input(frame, rows(inner, 0, 1), model, filter, "type to search keys and words, Esc closes");
    // Definitions come first, but leave at least half of the lines to keys.
    let mut meant = term::lines(model, filter, inner.width.into());
    meant.truncate(usize::from(inner.height.saturating_sub(2)) / 2);
    let top = 2 + meant.len() as u16;
    frame.render_widget(Paragraph::new(meant), rows(inner, 2, inner.height));
    // In two columns keys have their titles alone; the last lines explain the selected one.
    let below = if beside > 1 { 3 } else { 0 };
    let whole = rows(inner, top, inner.height.saturating_sub(top + below));
    // The rightmost column belongs to the scrollbar.
    let list = Rect { width: (whole.width + 1) / beside - if beside > 1 { 3 } else { 2 }, ..whole };
    // The first column continues in the second.
    let places: Vec<Rect> = (0..beside)
        .flat_map(|column| {
            let x = list.x + column * (list.width + 3);
            (list.y..list.bottom()).map(move |y| Rect { x, y, height: 1, ..list })
        })
        .collect();
    let matches = help_order(filter, model);
    let keys = widest(matches.iter().map(|&i| model.appearance.keymap.all_shown(i))).min(16) + GAP;
    let titles = widest(matches.iter().map(|&i| TABLE[i].title)) + GAP;
    let room = (list.width as usize).saturating_sub(INDENT + keys + titles);
    let mut lines = vec![];
    if !searched {
        lines.push(HelpLine::Heading("What do you want to do?"));
        lines.extend(tasks::of(model).into_iter().map(|(key, told)| HelpLine::Task(key, told)));
    }
    for (place, &i) in matches.iter().enumerate() {
        let entry = &TABLE[i];
        if place == 0 || TABLE[matches[place - 1]].scope != entry.scope {
            lines.push(HelpLine::Heading(entry.scope.title()));
        }
        if beside > 1 {
            lines.push(HelpLine::Entry { place, first: true, help: String::new() });
        } else {
            let told = wrap(entry.help, room).into_iter().enumerate();
            lines.extend(told.map(|(line, help)| HelpLine::Entry { place, first: line == 0, help }));
        }
    }
    let of_cursor = |line: &HelpLine| matches!(line, HelpLine::Entry { place, .. } if *place == filter.cursor);
    // It opens at the tasks; then the selected line stays in the middle, so that a page of the cursor is a page of the
    // list.
    let last = lines.iter().rposition(of_cursor).filter(|_| filter.cursor > 0).unwrap_or(0);
    let first = (last + 1).saturating_sub(places.len() / 2).min(lines.len().saturating_sub(places.len()));
    for (&place, line) in places.iter().zip(lines.iter().skip(first)) {
        let spans = match line {
            HelpLine::Heading(title) => vec![Span::styled(*title, model.appearance.theme.fg(Role::Muted))],
            HelpLine::Task(key, told) => vec![
                Span::raw(" ".repeat(INDENT)),
                Span::styled(fit(key, TASK_KEY), model.appearance.theme.bold(Role::Accent)),
                Span::styled(*told, model.appearance.theme.fg(Role::Text)),
            ],
            HelpLine::Entry { place, first, help } => {
                let i = matches[*place];
                let (key, title) =
                    if *first { (model.appearance.keymap.all_shown(i), TABLE[i].title) } else { (String::new(), "") };
                vec![
                    Span::raw(" ".repeat(INDENT)),
                    Span::styled(fit(&key, keys - GAP), model.appearance.theme.bold(Role::Accent)),
                    Span::raw(" ".repeat(GAP)),
                    Span::styled(fit(title, titles), model.appearance.theme.bold(Role::Text)),
                    Span::raw(help.clone()),
                ]
            }
        };
        frame.render_widget(Line::from(spans), place);
        if of_cursor(line) {
            frame.buffer_mut().set_style(place, model.appearance.theme.selected());
        }
    }
    if let Some(&entry) = matches.get(filter.cursor).filter(|_| beside > 1) {
        let told = wrap(TABLE[entry].help, inner.width.into()).into_iter().take(2);
        for (y, text) in (inner.height.saturating_sub(2)..).zip(told) {
            frame.render_widget(Span::styled(text, model.appearance.theme.fg(Role::Muted)), rows(inner, y, 1));
        }
    }
    if matches.is_empty() {
        frame.render_widget(
            Span::styled("no key has this function", model.appearance.theme.fg(Role::Muted)),
            rows(list, 0, 1),
        );
    }
    let seen = (first, places.len(), lines.len());
    scrollbar(frame, whole, &model.appearance.theme, seen);
    draw_position(frame, inner, &model.appearance.theme, seen, "lines");
}

/// Draws actions and exports by name. Enter runs the selected one.
pub(super) fn draw_palette(frame: &mut Frame<'_>, area: Rect, model: &Model, filter: &Filter) {
    let inner = modal(frame, area, &model.appearance.theme, "Command", 96, area.height.saturating_sub(2).min(24));
    let width = inner.width as usize;
    draw_input(frame, rows(inner, 0, 1), model, filter, "type an action");
    let commands = model.palette(filter);
    let titles = widest(commands.iter().map(Command::title)) + GAP;
    let keys = widest(commands.iter().map(|command| command.key(&model.appearance.keymap))) + GAP;
    let room = width.saturating_sub(2 + titles + keys);
    // Show in full, below the list, the help of the selected entry if the list cuts it.
    let told = commands.get(filter.cursor).filter(|command| command.help().width() > room);
    let told = told.map(|command| wrap(command.help(), width)).unwrap_or_default();
    let below = if widest(commands.iter().map(Command::help)) > room { 3 } else { 0 };
    let list = rows(inner, 2, inner.height.saturating_sub(2 + below));
    let first = scrolled(filter.cursor, list.height as usize, commands.len());
    for (y, (place, command)) in (list.y..list.bottom()).zip(commands.iter().enumerate().skip(first)) {
        let line = Rect { y, height: 1, ..list };
        let selected = place == filter.cursor;
        let spans = vec![
            Span::styled(if selected { "▌ " } else { "  " }, model.appearance.theme.fg(Role::Focus)),
            Span::styled(fit(&command.title(), titles), model.appearance.theme.bold(Role::Text)),
            Span::styled(fit(command.help(), room), plain()),
            Span::styled(
                fit_right(&command.key(&model.appearance.keymap), keys),
                model.appearance.theme.fg(Role::Accent),
            ),
        ];
        frame.render_widget(Line::from(spans), line);
        if selected {
            frame.buffer_mut().set_style(line, model.appearance.theme.selected());
        }
    }
    for (y, text) in (list.bottom() + 1..inner.bottom()).zip(told) {
        let line = Rect { y, height: 1, ..inner };
        frame.render_widget(Span::styled(text, model.appearance.theme.fg(Role::Muted)), line);
    }
    if commands.is_empty() {
        frame.render_widget(Span::styled("  no such name", model.appearance.theme.fg(Role::Muted)), rows(list, 0, 1));
    }
    let seen = (first, list.height as usize, commands.len());
    scrollbar(frame, list, &model.appearance.theme, seen);
    draw_position(frame, inner, &model.appearance.theme, seen, "commands");
}

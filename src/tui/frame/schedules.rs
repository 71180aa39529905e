//! List of schedules, and editor of one.
//!
//! ```text
//!   schedule          iteration  slower   idle    fullest   engines
//! ▌ 1F1B                15.38 s    1.2%  12.1%   61.2 GiB ● megatron torch
//!   DualPipe          needs an even number of stages, not 3
//! ```

use ratatui::{
    Frame,
    layout::Rect,
    style::Modifier,
    text::{Line, Span},
};

use crate::{
    schedule::{ActionKind, Step},
    study::schedules,
    tui::{
        frame::{draw_position, modal},
        model::Model,
        paint::{
            area::{rows, scrolled},
            shades::{Activity, Shades},
            text::{clip, fit, fit_right, wrap},
        },
        schedule_editor::ScheduleEditor,
        schedule_list::{ListedSchedule, ScheduleList},
        theme::{Role, Theme},
        widget::scrollbar::scrollbar,
    },
    units,
};

/// Widths of the columns before the engines, cells.
const NAME: usize = 20;
const COLUMNS: [(&str, usize); 4] = [("iteration", 11), ("slower", 9), ("idle", 8), ("fullest", 13)];
/// Lines below the list.
const BELOW: u16 = 5;

/// Draws the list.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, list: &ScheduleList) {
    let theme = &model.appearance.theme;
    let height = (list.rows.len() as u16 + BELOW + 4).min(area.height.saturating_sub(2));
    let inner = modal(frame, area, theme, &format!("Schedules of {}", list.of.shown.planner.name), 108, height);
    let width = usize::from(inner.width);
    let mut head = format!("  {}", fit("schedule", NAME));
    COLUMNS.iter().for_each(|(name, width)| head += &fit_right(name, *width));
    head += "   engines";
    frame.render_widget(Span::styled(clip(&head, width), theme.fg(Role::Muted)), rows(inner, 0, 1));
    let place = rows(inner, 1, inner.height.saturating_sub(BELOW + 1));
    let first = scrolled(list.cursor, place.height.into(), list.rows.len());
    let fastest = list.fastest();
    for (y, (at, row)) in (place.y..place.bottom()).zip(list.rows.iter().enumerate().skip(first)) {
        let line = Rect { y, height: 1, ..place };
        let sign = Span::styled(if at == list.cursor { "▌ " } else { "  " }, theme.fg(Role::Focus));
        let mut spans = vec![sign];
        spans.extend(cells(list, row, fastest, theme, width.saturating_sub(2)));
        frame.render_widget(Line::from(spans), line);
        if at == list.cursor {
            frame.buffer_mut().set_style(line, theme.selected());
        }
    }
    let seen = (first, usize::from(place.height), list.rows.len());
    scrollbar(frame, place, theme, seen);
    draw_position(frame, inner, theme, seen, "schedules");
    for (y, (text, role)) in (0..).zip(told(list, model, width).into_iter().take(usize::from(BELOW) - 1)) {
        let line = rows(inner, inner.height.saturating_sub(BELOW - 1) + y, 1);
        frame.render_widget(Span::styled(text, theme.fg(role)), line);
    }
}

/// Cells of a row.
fn cells(
    list: &ScheduleList,
    row: &ListedSchedule,
    fastest: Option<f64>,
    theme: &Theme,
    width: usize,
) -> Vec<Span<'static>> {
    let parts = list.of.pipeline.virtual_stages(row.schedule);
    let name = match parts {
        0 | 1 => row.schedule.name().to_string(),
        _ => format!("{} ×{parts}", row.schedule.name()),
    };
    let current = row.schedule == list.of.schedule();
    let role = if current { theme.bold(Role::Accent) } else { theme.fg(Role::Text) };
    if let Some(reason) = &row.refused {
        let short = reason.strip_prefix(row.schedule.name()).unwrap_or(reason).trim_start();
        let name = row.schedule.name();
        let blank = Span::raw(" ".repeat(NAME.saturating_sub(name.chars().count())));
        let name = Span::styled(name, theme.fg(Role::Muted).add_modifier(Modifier::CROSSED_OUT));
        let room = width.saturating_sub(NAME + 3);
        return vec![name, blank, Span::styled(format!(" ✗ {}", clip(short, room)), theme.fg(Role::Muted))];
    }
    let mut spans = vec![Span::styled(fit(&name, NAME), role)];
    if !row.schedule.has_backward() {
        spans.push(Span::styled("   forward passes only", theme.fg(Role::Muted)));
        return spans;
    }
    let Some((known, own)) = list.of(row) else {
        COLUMNS.iter().for_each(|(_, width)| spans.push(Span::styled(fit_right("–", *width), theme.fg(Role::Muted))));
        return spans;
    };
    let slower = fastest.map_or(0.0, |fastest| own.iteration_s / fastest - 1.0);
    let limit = list.of.shown.limits.memory_limit();
    let texts = [
        units::seconds(own.iteration_s),
        units::percent(slower),
        units::percent(own.idle),
        units::bytes_beside(own.peak_memory_bytes, limit),
    ];
    for (i, (text, (_, width))) in texts.into_iter().zip(COLUMNS).enumerate() {
        let role = if i == 3 && own.fits == Some(false) { Role::Bad } else { Role::Text };
        spans.push(Span::styled(fit_right(&text, width), theme.fg(role)));
    }
    let (sign, role) = match (own.fits, own.on_front) {
        (Some(false), _) => (" ✗ ", Role::Bad),
        (_, true) => (" ● ", Role::Good),
        _ => ("   ", Role::Muted),
    };
    spans.push(Span::styled(sign, theme.fg(role)));
    let used = NAME + 3 + COLUMNS.iter().map(|(_, width)| width).sum::<usize>();
    spans.push(Span::styled(clip(&known.engines.join(" "), width.saturating_sub(used)), theme.fg(Role::Muted)));
    spans
}

/// Lines below the list: on the selected row, and on the figures.
fn told(list: &ScheduleList, model: &Model, width: usize) -> Vec<(String, Role)> {
    let mut lines = vec![];
    let Some(row) = list.rows.get(list.cursor) else { return lines };
    if let Some(reason) = &row.refused {
        let repair = row.repair.as_ref().map_or_else(String::new, |repair| format!("; {repair}"));
        let plans = model.plannable_schedule(Some(row.schedule));
        let plans = plans.map_or_else(String::new, |(planner, ..)| {
            format!("; Enter: {} plans for it", model.session.planners[planner].info().name)
        });
        let text = format!("✗ {reason}{repair}{plans}");
        lines.extend(wrap(&text, width).into_iter().map(|line| (line, Role::Warning)));
    }
    match &list.figures {
        None => lines.push(("simulating …".into(), Role::Accent)),
        Some(Err(why)) => lines.extend(wrap(why, width).into_iter().map(|line| (line, Role::Bad))),
        Some(Ok(rows)) => {
            let mut all = vec!["● no other that fits takes less of both time and memory"];
            all.extend(schedules::assumptions(rows));
            lines.extend(wrap(&all.join("; "), width).into_iter().map(|line| (line, Role::Muted)));
        }
    }
    lines
}

/// Draws the editor.
pub(super) fn draw_editor(frame: &mut Frame<'_>, area: Rect, model: &Model, editor: &ScheduleEditor) {
    let theme = &model.appearance.theme;
    let schedule = editor.schedule();
    let ranks = schedule.ranks.len();
    let height = (ranks as u16 + 10).min(area.height.saturating_sub(2));
    let inner = modal(frame, area, theme, "Edit the schedule", area.width.saturating_sub(4), height);
    let width = usize::from(inner.width);
    let edits = match editor.edits() {
        0 => "not edited".to_string(),
        count => format!("{} after", units::counted(count, "edit")),
    };
    let head = format!("{edits}: {}, {} ranks", editor.from, ranks);
    frame.render_widget(Span::styled(clip(&head, width), theme.bold(Role::Text)), rows(inner, 0, 1));
    let grid = rows(inner, 2, inner.height.saturating_sub(7));
    draw_steps(frame, grid, model, editor);
    let mut lines: Vec<(String, Role)> =
        wrap(&editor.selected(), width).into_iter().map(|line| (line, Role::Text)).collect();
    lines.extend(answer(editor, width));
    for (y, (text, role)) in (0..4).zip(lines) {
        frame.render_widget(Span::styled(text, theme.fg(role)), rows(inner, inner.height.saturating_sub(4) + y, 1));
    }
}

/// Draws the steps of the ranks around the selected one.
fn draw_steps(frame: &mut Frame<'_>, grid: Rect, model: &Model, editor: &ScheduleEditor) {
    const LABEL: u16 = 9;
    let theme = &model.appearance.theme;
    let shades = Shades::new(theme, model.appearance.depth);
    let schedule = editor.schedule();
    let text = |step: &Step| step.to_string().replace("OVERLAP_F_B", "");
    let longest = schedule.ranks.iter().flatten().map(|step| text(step).chars().count()).max().unwrap_or(1);
    let cell = longest + 1;
    let visible = (usize::from(grid.width.saturating_sub(LABEL)) / cell).max(1);
    let steps = schedule.ranks.iter().map(Vec::len).max().unwrap_or(0);
    let first_step =
        scrolled(editor.step + visible / 3, visible, steps.max(visible)).min(steps.saturating_sub(visible));
    let first = scrolled(editor.rank, grid.height.into(), schedule.ranks.len());
    for (y, (rank, steps)) in (grid.y..grid.bottom()).zip(schedule.ranks.iter().enumerate().skip(first)) {
        let line = Rect { y, height: 1, ..grid };
        let here = rank == editor.rank;
        let label = format!("{} rank {rank}", if here { "▌" } else { " " });
        frame.render_widget(Span::styled(clip(&label, LABEL.into()), theme.fg(Role::Muted)), line);
        let mut x = line.x + LABEL;
        for (at, step) in steps.iter().enumerate().skip(first_step).take(visible) {
            let kind = step.actions().last().map_or(ActionKind::Forward, |action| action.kind);
            let activity = match kind {
                ActionKind::Forward => Activity::Forward,
                ActionKind::Backward | ActionKind::InputGradient => Activity::Backward,
                ActionKind::WeightGradient => Activity::Recompute,
            };
            let mut style = theme.fg(Role::Text).fg(shades.color(shades.activity(activity)));
            if editor.flaws.iter().any(|flaw| flaw.rank == rank && flaw.step == Some(at)) {
                style = theme.bold(Role::Bad).add_modifier(Modifier::UNDERLINED);
            }
            if here && at == editor.step {
                style = style.add_modifier(Modifier::REVERSED);
            }
            let place = Rect { x, width: (longest as u16).min(line.right().saturating_sub(x)), ..line };
            frame.render_widget(Span::styled(text(step), style), place);
            x += cell as u16;
        }
    }
    scrollbar(frame, grid, theme, (first, grid.height.into(), schedule.ranks.len()));
}

/// Flaw that keeps the schedule from running, or its figures against those of the schedule that the edits began with.
fn answer(editor: &ScheduleEditor, width: usize) -> Vec<(String, Role)> {
    let lines = |text: String, role: Role| wrap(&text, width).into_iter().map(move |line| (line, role));
    if let Some(flaw) = editor.flaws.iter().find(|flaw| flaw.kind.breaks()) {
        return lines(format!("✗ {flaw}; {}", flaw.repair()), Role::Bad).collect();
    }
    let Some(own) = editor.figures else { return vec![("✓ it runs; simulating …".into(), Role::Accent)] };
    let before = editor.of.timeline.iteration_s;
    let against = units::faster(before / own.iteration_s);
    let limit = editor.of.shown.limits.memory_limit();
    let text = format!(
        "✓ it runs: {}, {against} {} {}; idle {}; fullest {}{}",
        units::seconds(own.iteration_s),
        if against.starts_with("as") { "as" } else { "than" },
        editor.of.schedule().name(),
        units::percent(own.idle),
        units::bytes_beside(own.peak_memory_bytes, limit),
        if own.fits == Some(false) { " ✗ over the limit" } else { "" },
    );
    let mut all: Vec<(String, Role)> = lines(text, Role::Good).collect();
    all.extend(editor.flaws.iter().flat_map(|flaw| lines(format!("{flaw}; {}", flaw.repair()), Role::Warning)));
    all
}

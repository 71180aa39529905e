//! Compare: a row per plan, all simulated in one simulator under one schedule; below, what the selected one rests on.
//!
//! ```text
//! simulated as 1F1B, 1920 microbatches                     a asks every planner, 10 s each
//!    plan                          time ▴        objective  peak memory  devices
//! ▌◆★ Piper ◂                     38.79 s  20.20 ms/sample     7.42 GiB       64
//!   ○ Equal partition             49.10 s  25.57 ms/sample     6.94 GiB       64
//!   ▸ 11 planners cannot plan this workload
//! Piper: optimal, planned for 64 devices, 8 GiB, ..
//! ```
//! Columns are left out whole, the least telling first; the one that is sorted by is always there.

use std::sync::Arc;

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};
use unicode_width::UnicodeWidthStr;

use super::{
    beside,
    columns::{Columns, cell, head_of, meter, per_sample},
    pictures,
    pins::limits_in_words,
    side::Side,
    stages,
    state::{Answer, Key, Row, Terms},
};
use crate::{
    family,
    planner::Status,
    study::{
        columns::{self, Column},
        why::{Named, why},
    },
    tui::{
        action::Action,
        marks::Marks,
        model::{Focus, Hit, Model},
        paint::{
            area::{rows, scrolled},
            batch,
            phrases::whole,
            shades::Shades,
            text::{clip, fit, fit_right, plain, wrap},
            words,
        },
        simulated::Simulated,
        studies::StudyKind,
        theme::{Role, Theme},
        widget::scrollbar::scrollbar,
    },
    units,
};

/// Cells before a name: selection, mark, sign, a blank.
pub(super) const GUTTER: usize = 4;
/// The least and the most cells of a name.
pub(super) const NAME: (usize, usize) = (18, 46);
/// The sign of the plan that the other views show.
pub(super) const SHOWN: &str = " ◂";

/// What is drawn in a line of the table.
enum TableLine {
    /// What the plans below are measured by.
    Title(String),
    /// A row, by its place.
    Row(usize),
}

pub(in crate::tui) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    if let Some(side) = model.views.compare.side {
        let drawn = beside::draw(frame, area, model, marks, side);
        // So that the next step starts from what is seen.
        marks.views.compare = Some(drawn.map(|top| Side { top, ..side }));
        if drawn.is_some() {
            return;
        }
    }
    let theme = &model.theme;
    let all = model.compare_rows();
    let cursor = model.compare_cursor(&all);
    let width = area.width as usize;
    let head = head(model, width, theme);
    let top = head.len() as u16;
    frame.render_widget(Paragraph::new(head), rows(area, 0, top));
    let detail = detail(model, &all, cursor, width, theme);
    let below = (detail.len() as u16 + 1).min(area.height.saturating_sub(top) / 3).min(10);
    // What is said of the selected row stands right below the table, not at the bottom edge.
    let lines = table_lines(model, &all).len() as u16 + 2;
    let table = rows(area, top, area.height.saturating_sub(top + below).min(lines));
    let told = top + table.height;
    frame.render_widget(Paragraph::new(detail), rows(area, told + 1, below.saturating_sub(1)));
    draw_table(frame, table, model, marks, (&all, cursor));
    let rest = rows(area, told + below + 1, area.height);
    if let [_, _] = model.views.compare.marked[..] {
        preview(frame, rest, model, marks);
    } else if let Some(Row::Plan(key)) = all.get(cursor)
        && let Some(compared) = model.compared(*key)
    {
        stages::draw(frame, rest, model, &compared.shown);
        let used = compared.shown.plan().map_or(0, |(plan, _)| plan.stages.len() as u16 + 2);
        let same = |simulated: &&Arc<Simulated>| Arc::ptr_eq(&simulated.shown, &compared.shown);
        let shades = Shades::new(theme, model.depth);
        let simulated = model.simulated.as_ref().filter(same).map(Arc::as_ref);
        batch::draw(frame, rows(rest, used, 2 * used), (&shades, theme), (simulated, usize::MAX));
    }
}

/// The two marked plans stage by stage, where there is room below the table.
fn preview(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    const LEAST: u16 = 9;
    let &[first, second] = &model.views.compare.marked[..] else { return };
    if area.height < LEAST {
        return;
    }
    let rule = "─".repeat(area.width as usize);
    frame.render_widget(Span::styled(rule, model.theme.fg(Role::Border)), rows(area, 0, 1));
    beside::draw(frame, rows(area, 1, area.height), model, marks, Side { first, second, top: 0 });
}

/// Schedule and settings in words.
fn simulated_as(model: &Model) -> String {
    let changes = model.setup.changes();
    let with = if changes.is_empty() { String::new() } else { format!(" with {}", changes.join(", ")) };
    let wanted = model.setup.schedule.name();
    let own = |row: &Row| match row {
        Row::Plan(key) => model.compared(*key)?.entry.simulated.as_ref().map(|simulated| simulated.schedule.name()),
        _ => None,
    };
    // Of one plan alone what it was simulated as; of several those that run another one say so below.
    let mut run: Vec<&str> = model.compare_rows().iter().filter_map(own).collect();
    run.dedup();
    let name = if let [only] = run[..] { only } else { wanted };
    format!("{name}{with}")
}

/// How everything is simulated, and what is being asked or could be.
fn head(model: &Model, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let family = family::of(&model.workload);
    let batch = family.batch(&model.limits);
    let simulated = match family.one_stage() {
        true => format!("all simulated: {batch}"),
        false => format!("all simulated as {}, {batch}", simulated_as(model)),
    };
    let each = model.time_for_each();
    let each = match each.subsec_nanos() {
        0 => format!("{} s", each.as_secs()),
        _ => units::seconds(each.as_secs_f64()),
    };
    let (doing, role) = match (model.studying(StudyKind::Compare), model.views.compare.queue.as_slice()) {
        (true, &[next, ..]) => {
            let more = match model.views.compare.queue.len() - 1 {
                0 => String::new(),
                more => format!(", {more} more to ask"),
            };
            let name = model.planners[next].info().name;
            (format!("… asking {name}, at most {each}{more}; Esc stops"), Role::Accent)
        }
        (true, []) => ("… simulating".into(), Role::Accent),
        (false, _) => {
            let key = model.keymap.of_action(Action::CompareAll).unwrap_or_else(|| ":".into());
            (format!("{key} asks every planner, {each} each"), Role::Muted)
        }
    };
    let simulated = Span::styled(simulated, theme.fg(Role::Text));
    let doing = Span::styled(clip(&doing, width), theme.fg(role));
    let used = simulated.width() + doing.width();
    if used + 3 <= width {
        return vec![Line::from(vec![simulated, Span::raw(" ".repeat(width - used)), doing])];
    }
    vec![Line::from(simulated), Line::from(doing)]
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, (all, cursor): (&[Row], usize)) {
    let theme = &model.theme;
    let columns = Columns::new(model, all, area.width as usize);
    draw_titles(frame, rows(area, 0, 1), model, marks, &columns);
    let body = rows(area, 1, area.height.saturating_sub(1));
    let lines = table_lines(model, all);
    let at = lines.iter().position(|line| matches!(line, TableLine::Row(row) if *row == cursor)).unwrap_or(0);
    let visible = body.height as usize;
    let first = scrolled(at, visible, lines.len());
    if lines.len() < visible && !columns.hidden.is_empty() {
        let keys = [Action::SortPrevious, Action::SortNext].map(|action| model.keymap.of_action(action));
        let titles: Vec<&str> = columns.hidden.iter().map(|column| column.title()).collect();
        let keys = keys.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let text = clip(
            &format!("    {keys} sorts by other columns and shows them: {}", titles.join(", ")),
            area.width.into(),
        );
        frame.render_widget(Span::styled(text, theme.fg(Role::Muted)), rows(body, body.height - 1, 1));
    }
    scrollbar(frame, body, theme, (first, visible, lines.len()));
    let fastest = model.fastest(all);
    let shown = model.shown_key();
    for (y, line) in (body.y..).zip(lines.iter().skip(first).take(visible)) {
        let place = Rect { y, height: 1, ..body };
        let row = match line {
            TableLine::Title(title) => {
                let text = clip(title, body.width as usize);
                frame.render_widget(Span::styled(text, theme.fg(Role::Accent)), place);
                continue;
            }
            TableLine::Row(row) => *row,
        };
        let selected = row == cursor;
        let mut spans = vec![Span::styled(if selected { "▌" } else { " " }, theme.fg(Role::Focus))];
        spans.extend(row_spans(model, all[row], &columns, &fastest, shown, theme));
        frame.render_widget(Line::from(spans), place);
        if selected && model.focus == Focus::View {
            frame.buffer_mut().set_style(place, theme.selected());
        }
        marks.hits.push((place, Hit::ListRow(row)));
    }
}

/// The rows with titles between them, where there is more than one objective.
fn table_lines(model: &Model, all: &[Row]) -> Vec<TableLine> {
    let entry = |row: &Row| match row {
        Row::Plan(key) => model.compared(*key).map(|compared| &compared.entry),
        _ => None,
    };
    let group = |row: &Row| entry(row).and_then(columns::group);
    let mut groups: Vec<&str> = all.iter().filter_map(group).collect();
    groups.dedup();
    let mut lines = vec![];
    let mut last = None;
    for (place, row) in all.iter().enumerate() {
        if let Some(name) = group(row).filter(|name| groups.len() > 1 && last != Some(*name)) {
            last = Some(name);
            let measure = entry(row).and_then(|entry| entry.score.as_ref()).map(|score| score.measure);
            lines.extend(measure.map(|measure| TableLine::Title(columns::group_title(measure))));
        }
        lines.push(TableLine::Row(place));
    }
    lines
}

fn draw_titles(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, columns: &Columns) {
    let theme = &model.theme;
    let mut x = area.x + (GUTTER + columns.name + columns.strip + columns.bar) as u16;
    let mut titles = fit("    plan", GUTTER + columns.name);
    if columns.strip > 0 {
        titles += &fit("  stages", columns.strip);
    }
    if columns.bar > 0 {
        titles += &fit("  time against the best", columns.bar);
    }
    frame.render_widget(Span::styled(titles, theme.fg(Role::Muted)), area);
    for &(column, width) in &columns.columns {
        let width = width + columns.meter(column);
        let place = Rect { x, width: (width as u16).min(area.right().saturating_sub(x)), ..area };
        let sorted = column == model.views.compare.sort;
        let sign = match (sorted, model.views.compare.reversed) {
            (false, _) => "",
            (true, false) => " ▴",
            (true, true) => " ▾",
        };
        let style = if sorted { theme.bold(Role::Text) } else { theme.fg(Role::Muted) };
        let text = fit_right(&format!("{}{sign}", head_of(column, columns.each)), width);
        frame.render_widget(Span::styled(text, style), place);
        marks.hits.push((place, Hit::Sort(column)));
        x += width as u16;
    }
}

// Long: a row from its left to its right.
fn row_spans(
    model: &Model,
    row: Row,
    columns: &Columns,
    fastest: &[Key],
    shown: Option<Key>,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let name_of = |planner: usize| model.planners[planner].info().name;
    let rest =
        columns.name + columns.strip + columns.bar + columns.columns.iter().map(|(_, width)| width).sum::<usize>();
    let shades = Shades::new(theme, model.depth);
    let line = |sign: &'static str, text: String, role: Role| {
        vec![Span::styled(format!(" {sign} "), theme.bold(role)), Span::styled(clip(&text, rest), theme.fg(role))]
    };
    let key = match row {
        Row::Plan(key) => key,
        Row::Waiting(planner) => {
            let sign = if model.views.compare.queue.first() == Some(&planner) { "…" } else { " " };
            return line(
                sign,
                format!("{}  {}", name_of(planner), if sign == " " { "waits" } else { "plans" }),
                Role::Muted,
            );
        }
        Row::Failed(planner) => {
            let why = match model.views.compare.answer(planner) {
                Some(Answer::Failed(why)) => why.as_str(),
                _ => "",
            };
            return line("✗", format!("{}  {why}", name_of(planner)), Role::Bad);
        }
        Row::Folded => {
            let sign = if model.views.compare.unfolded { "▾" } else { "▸" };
            let text = match model.compare_refused() {
                1 => "1 planner cannot plan this workload".into(),
                count => format!("{count} planners cannot plan this workload"),
            };
            return line(sign, text, Role::Muted);
        }
        Row::Refused(planner) => {
            return line(" ", format!("  {}: {}", name_of(planner), refusal(model, planner)), Role::Muted);
        }
    };
    let Some(compared) = model.compared(key) else { return vec![] };
    let terms = model.terms(key);
    let valid = compared.entry.value().is_some();
    let (sign, role) = match (valid, terms) {
        (false, _) => ("✗", Role::Bad),
        (_, Terms::Old) => ("○", Role::Muted),
        (_, Terms::OtherLimits) => ("≠", Role::Warning),
        _ if compared.overflows() => ("!", Role::Bad),
        _ if fastest.contains(&key) => ("★", Role::Good),
        _ => (" ", Role::Text),
    };
    let faded = terms == Terms::Old;
    let text = if faded { theme.fg(Role::Muted) } else { plain() };
    let mark = if model.views.compare.marked.contains(&key) { "◆" } else { " " };
    let tail = if shown == Some(key) { SHOWN } else { "" };
    let name = clip(model.compared_name(key), columns.name.saturating_sub(tail.width()));
    let name_style = if matches!(key, Key::Pin(_)) || faded { text } else { theme.bold(Role::Text) };
    let mut spans = vec![
        Span::styled(mark, theme.bold(Role::Accent)),
        Span::styled(sign, theme.bold(role)),
        Span::raw(" "),
        Span::styled(fit(&format!("{name}{tail}"), columns.name), name_style),
    ];
    if !valid && compared.entry.simulated.is_none() {
        let why = match compared.entry.status {
            // Its planner says what is in the way.
            Some(Status::Infeasible) if compared.entry.plan.is_none() => {
                compared.entry.remarks.first().map_or("no plan keeps the limits", String::as_str)
            }
            Some(Status::Cancelled) => "stopped before it had a plan",
            _ => "the plan is not valid",
        };
        let left = columns.columns.iter().map(|(_, width)| width).sum::<usize>() + columns.strip + columns.bar;
        spans.push(Span::styled(format!("  {}", whole(why, left.saturating_sub(2))), theme.fg(Role::Muted)));
        return spans;
    }
    if columns.strip > 0 {
        spans.extend(pictures::strip(compared, columns.strip, &shades));
    }
    if columns.bar > 0 {
        spans.extend(pictures::against_best(&compared.entry, columns, fastest.contains(&key), theme));
    }
    for &(column, width) in &columns.columns {
        if columns.meter(column) > 0 {
            spans.extend(meter(column, compared, columns, theme));
        }
        let over = column == Column::Memory && compared.overflows();
        let style = if over { theme.bold(Role::Bad) } else { text };
        spans.push(Span::styled(fit_right(&cell(column, compared, columns.each), width), style));
    }
    spans
}

/// Why the two marked plans differ; else why the selected one and the best do.
fn why_they_differ(model: &Model, all: &[Row], selected: Key) -> Option<String> {
    let alone = |key: Key| model.compared(key).map(|compared| compared.entry.runs_alone());
    let best = || model.fastest(all).into_iter().find(|&key| alone(key) == alone(selected));
    let (first, second) = match model.views.compare.marked[..] {
        [first, second] => (first, second),
        [first] if first != selected => (first, selected),
        _ => (best()?, selected),
    };
    if first == second {
        return None;
    }
    let named =
        |key: Key| model.compared(key).map(|compared| Named { name: model.compared_name(key), entry: &compared.entry });
    why(named(first)?, named(second)?)
}

fn refusal(model: &Model, planner: usize) -> &str {
    match (&model.refusals[planner], model.views.compare.answer(planner)) {
        (Some(reason), _) | (None, Some(Answer::Refused(reason))) => reason,
        _ => "",
    }
}

/// What the selected row rests on: how it ended, its limits, what was assumed.
fn detail(model: &Model, all: &[Row], cursor: usize, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = vec![];
    let mut tell = |text: &str| lines.extend(wrap(text, width).into_iter().map(Line::from));
    match all.get(cursor) {
        Some(&Row::Plan(key)) => {
            let Some(compared) = model.compared(key) else { return vec![] };
            let mut first = vec![Span::styled(model.compared_name(key).to_string(), theme.bold(Role::Text))];
            if let Some(status) = compared.entry.status {
                first.push(Span::raw("  "));
                first.push(words::status(status, compared.entry.gap(), theme));
            }
            let limits = limits_in_words(&model.workload, &compared.shown.limits, 8);
            let by = match key {
                Key::Pin(_) => format!("  pin, by {}: {limits}", compared.entry.name),
                _ => format!("  {limits}"),
            };
            let used: usize = first.iter().map(Span::width).sum();
            first.push(Span::raw(format!("  {}", whole(by.trim_start(), width.saturating_sub(used + 2)))));
            let terms = match model.terms(key) {
                Terms::Current => None,
                Terms::Old => Some("○ old: limits, options, schedule or file have changed since"),
                Terms::OtherLimits => Some("≠ made and simulated under other limits than those at the left"),
            };
            if let Some(text) = terms {
                tell(text);
            }
            if let Some(verdict) = holds_now(model, key) {
                tell(&verdict);
            }
            if let Some(simulated) = &compared.entry.simulated {
                match (per_sample(&compared.entry), compared.entry.prediction_error()) {
                    (Some(promised), Some(error)) => tell(&format!(
                        "· its objective promises {promised} per sample, simulated as {} it takes {}",
                        simulated.schedule.name(),
                        // The error is the promise against the simulator: here the simulator is told against the promise.
                        promise_kept(&units::seconds(1.0 / simulated.samples_per_s), 1.0 / (1.0 + error) - 1.0),
                    )),
                    _ if simulated.schedule != compared.setup.schedule => {
                        tell(&format!("· simulated as {}", simulated.schedule.name()));
                    }
                    _ => {}
                }
            }
            if let Some(told) = why_they_differ(model, all, key) {
                tell(&told);
            }
            for remark in &compared.entry.remarks {
                // The star is that of the column, which may be hidden here.
                let gap = match compared.entry.gap().filter(|gap| *gap > 0.0) {
                    Some(gap) => format!("its gap of {}*", units::percent(gap)),
                    None => "its gap of 0*".into(),
                };
                tell(&format!("· {}", remark.replace("its gap*", &gap)));
            }
            lines.insert(0, Line::from(first));
        }
        Some(&Row::Failed(planner)) => {
            if let Some(Answer::Failed(why)) = model.views.compare.answer(planner) {
                tell(&format!("{}: {why}", model.planners[planner].info().name));
            }
        }
        Some(&Row::Refused(planner)) => {
            tell(&format!("{} cannot: {}", model.planners[planner].info().name, refusal(model, planner)));
        }
        Some(Row::Folded) => tell("Enter lists them with their reasons"),
        Some(Row::Waiting(_)) => tell("rows arrive as planners are done, those for this kind of workload first"),
        None => tell("the plan is on its way"),
    }
    lines
}

/// What a sample takes in the simulator against what was promised, in words: `21.90 ms, 9.2% more`.
fn promise_kept(takes: &str, more: f64) -> String {
    match more {
        more if more.abs() < units::AS_FAST => format!("{takes}, as promised"),
        more if more > 0.0 => format!("{takes}, {} more", units::percent(more)),
        less => format!("{takes}, {} less", units::percent(-less)),
    }
}

/// Whether a pin of other limits would also keep those in force.
fn holds_now(model: &Model, key: Key) -> Option<String> {
    let compared = model.compared(key).filter(|_| model.terms(key) == Terms::OtherLimits)?;
    let (plan, _) = compared.shown.plan()?;
    let plan = plan.clone().with_cpus_behind(compared.shown.limits.devices, model.limits.devices);
    let score = crate::family::check(&model.workload, &model.limits, &plan);
    Some(match score.violations.first() {
        None => format!("✓ it keeps the limits at the left, too: {}", score.measure.show(score.value)),
        Some(violation) => format!("✗ it would not keep the limits at the left: {violation}"),
    })
}

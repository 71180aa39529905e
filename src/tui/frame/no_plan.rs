//! Screen without a plan: the limits that exclude one, sufficient values, and their keys.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use crate::{
    cluster::LimitKind,
    study::{
        explain::limits_of,
        remedies::{InputChange, Remedy},
    },
    tui::{
        Action,
        marks::Marks,
        model::{Focus, Hit, Model},
        paint::{
            area::{rows, scrolled},
            text::{clip, fit, fit_right, fitting, wrap},
        },
        remedies::Remedies,
        shown::ShownRun,
        theme::Role,
    },
    units,
};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, shown: &ShownRun) {
    if let Some(own) = model.remedies() {
        draw_remedies(frame, area, model, marks, (shown, own));
        return;
    }
    let theme = &model.appearance.theme;
    let width = (area.width as usize).min(84);
    let mut lines =
        vec![Line::default(), Line::styled("✗ No plan keeps these limits", theme.bold(Role::Bad)), Line::default()];
    let infeasible = shown.outcome.infeasible.clone().unwrap_or_default();
    lines.extend(wrap(&infeasible.explanation, width).into_iter().map(Line::from));
    lines.push(Line::default());
    for &kind in limits_of(model.session.current_planner(), &model.session.workload) {
        let value = kind.format(shown.limits.get(kind));
        let mut spans = vec![
            Span::styled(format!("  {}", fit(kind.label(), 14)), theme.fg(Role::Muted)),
            Span::styled(fit(&value, 12), theme.bold(Role::Text)),
        ];
        let in_the_way = infeasible.limits.contains(&kind);
        let mark = match (in_the_way, area.width >= 84) {
            (true, true) => "✗ in the way    ",
            (true, false) => "✗ ",
            (false, true) => "                ",
            (false, false) => "  ",
        };
        spans.push(Span::styled(mark, theme.fg(Role::Bad)));
        if let Some(would_do) = model.fitting(kind) {
            let action = if kind == LimitKind::Memory { Action::FitMemory } else { Action::FitDevices };
            let exact = match kind {
                LimitKind::Memory => {
                    let needed = infeasible.smallest_memory_bytes.unwrap_or(would_do);
                    format!("needs {}", units::bytes_enough(needed, shown.limits.memory_limit()))
                }
                _ => format!("needs {would_do}"),
            };
            spans.push(Span::styled(fit(&exact, 17), theme.fg(Role::Text)));
            if let Some(key) = model.appearance.keymap.of_action(action) {
                spans.push(Span::styled("press ", theme.fg(Role::Muted)));
                spans.push(Span::styled(key, theme.bold(Role::Accent)));
            }
            spans.push(Span::styled(format!(" for {}", kind.format(would_do)), theme.fg(Role::Good)));
        }
        lines.push(Line::from(spans));
    }
    lines.push(Line::default());
    let nothing = LimitKind::ALL.iter().all(|&kind| model.fitting(kind).is_none());
    let advice = if nothing {
        "No change of memory or devices alone is enough: change another limit or an option at the left."
    } else {
        "Each value is the least that works with the other limits unchanged."
    };
    lines.extend(wrap(advice, width).into_iter().map(|text| Line::styled(text, theme.fg(Role::Muted))));
    frame.render_widget(Paragraph::new(lines), area);
}

/// Width of the bar of the memory needed, cells.
const BAR: u16 = 64;
/// Columns of the remedies with their widths.
const COLUMNS: [(&str, usize); 6] =
    [("change", 14), ("to", 27), ("iteration", 11), ("tok/s/device", 14), ("MFU", 9), ("an hour", 11)];
/// Most changes listed that are not enough.
const REFUSED: usize = 8;

/// Draws what is needed, the changes that would do, and those that would not.
fn draw_remedies(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    marks: &mut Marks,
    (shown, own): (&ShownRun, &Remedies),
) {
    let theme = &model.appearance.theme;
    let (muted, width) = (theme.fg(Role::Muted), usize::from(area.width));
    let infeasible = shown.outcome.infeasible.clone().unwrap_or_default();
    let limit = shown.limits.memory_limit();
    let devices = units::counted(shown.limits.devices as usize, "device");
    let needed = infeasible.smallest_memory_bytes.filter(|_| limit.is_finite());
    let told = match needed {
        Some(bytes) => format!(
            "No layout fits: the leanest needs {} on each of {devices}, which have {}.",
            units::bytes_beside(bytes, limit),
            units::bytes_exact(limit)
        ),
        None => infeasible.explanation.clone(),
    };
    let mut y = 1;
    for text in wrap(&told, width) {
        frame.render_widget(Line::styled(text, theme.bold(Role::Bad)), rows(area, y, 1));
        y += 1;
    }
    if let Some(bytes) = needed.filter(|_| area.height >= 20) {
        let bar = BAR.min(area.width.saturating_sub(36));
        let cells = ((limit / bytes).clamp(0.0, 1.0) * f64::from(bar)).round() as usize;
        let bar = Line::from(vec![
            Span::styled("there   ", muted),
            Span::styled("▄".repeat(cells), theme.fg(Role::Bad)),
            Span::styled("▄".repeat(usize::from(bar) - cells), theme.fg(Role::Border)),
            Span::styled(format!("  {} of {}", units::percent(limit / bytes), units::bytes(bytes)), muted),
        ]);
        frame.render_widget(bar, rows(area, y + 1, 1));
        y += 2;
    }
    y += 1;
    let heard = model.focus == Focus::View;
    let waits = if own.done { "" } else { "  …" };
    let priced = own.rows().any(|remedy| hourly(model, shown, remedy).is_some());
    let all = if priced { &COLUMNS[..] } else { &COLUMNS[..COLUMNS.len() - 1] };
    let columns = fitting(all, 2, area.width);
    let marked = columns.iter().any(|(name, _)| *name == "MFU") && own.rows().any(|remedy| remedy.figures.untested);
    let unlike = if marked { "; ? no published run is like it" } else { "" };
    let head = Line::from(vec![
        Span::styled("What would do  ", theme.bold(Role::Text)),
        Span::styled(format!("one change each{unlike}{waits}"), muted),
    ]);
    frame.render_widget(head, rows(area, y, 1));
    let titles: String = columns.iter().map(|(name, width)| aligned(name, name, *width)).collect();
    frame.render_widget(Line::styled(format!("  {titles}"), muted), rows(area, y + 1, 1));
    y += 2;
    let (all, refused) = (own.count() as u16, own.refused().count().min(REFUSED) as u16);
    let room = area.height.saturating_sub(y + if refused > 0 { 2 + refused.min(3) } else { 0 }).max(1);
    let first = scrolled(own.selected, room.into(), all.into());
    let mut subject = "";
    for (row, remedy) in own.rows().enumerate().skip(first).take(room.into()) {
        let line = rows(area, y, 1);
        let lead = if remedy.subject == subject { "" } else { remedy.subject.as_str() };
        subject = &remedy.subject;
        let figures = &remedy.figures;
        let cell = |name: &str| match name {
            "change" => lead.to_string(),
            "to" => remedy.to.clone(),
            "iteration" => units::seconds(figures.iteration_s),
            "tok/s/device" => units::number(figures.per_device()),
            "MFU" => format!("{}{}", figures.mfu, if figures.untested { " ?" } else { "" }),
            _ => hourly(model, shown, remedy).map_or("–".into(), units::money),
        };
        let sign = if row == own.selected { "▌ " } else { "  " };
        let mut spans = vec![Span::styled(sign, theme.fg(Role::Focus))];
        spans.extend(columns.iter().map(|(name, width)| {
            let style = if *name == "to" { theme.bold(Role::Text) } else { theme.fg(Role::Text) };
            Span::styled(aligned(name, &cell(name), *width), style)
        }));
        let used: usize = spans.iter().map(Span::width).sum();
        if !remedy.remark.is_empty() && used + 2 + remedy.remark.len() <= width {
            spans.push(Span::styled(format!("  {}", remedy.remark), muted));
        }
        frame.render_widget(Line::from(spans), line);
        if row == own.selected && heard {
            frame.buffer_mut().set_style(line, theme.selected());
        }
        marks.hits.push((line, Hit::Remedy(row)));
        y += 1;
    }
    if all == 0 {
        let text = if own.done { "no single change is enough" } else { "looking …" };
        frame.render_widget(Line::styled(format!("  {text}"), muted), rows(area, y, 1));
        y += 1;
    }
    if refused == 0 || y + 2 >= area.height {
        return;
    }
    frame.render_widget(Line::styled("What would not", theme.bold(Role::Text)), rows(area, y + 1, 1));
    for (y, (what, why)) in (y + 2..area.height).zip(own.refused().take(REFUSED)) {
        let text = format!("  {} {why}", fit(what, COLUMNS[0].1 + COLUMNS[1].1 - 1));
        frame.render_widget(Line::styled(clip(&text, width), muted), rows(area, y, 1));
    }
}

/// Text in a column: numbers to the right, names to the left.
fn aligned(column: &str, text: &str, width: usize) -> String {
    if matches!(column, "change" | "to") { fit(text, width) } else { fit_right(text, width) }
}

/// Price of a remedy's devices an hour, if its hardware has one.
fn hourly(model: &Model, shown: &ShownRun, remedy: &Remedy) -> Option<f64> {
    let id = match remedy.change {
        InputChange::Hardware(id, _) => id,
        _ => shown.workload.training()?.accelerator.id,
    };
    model.session.prices.get(id).map(|price| price * f64::from(remedy.figures.devices))
}

/// Reason why the chosen planner cannot plan this workload.
pub(super) fn draw_refusal(frame: &mut Frame<'_>, area: Rect, model: &Model, reason: &str) {
    let theme = &model.appearance.theme;
    let name = model.session.current_planner().info().name;
    let mut lines = vec![
        Line::default(),
        Line::styled(format!("✗ {name} cannot plan this workload"), theme.bold(Role::Bad)),
        Line::default(),
    ];
    lines.extend(wrap(reason, (area.width as usize).min(84)).into_iter().map(Line::from));
    frame.render_widget(Paragraph::new(lines), area);
}

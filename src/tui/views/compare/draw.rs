//! Compare: a row per plan, all in one simulator under one schedule, with details of the selected one below.
//!
//! ```text
//! simulated as 1F1B, 1920 microbatches                     a asks every planner, 10 s each
//!    plan                          time ▴        objective  peak memory  devices
//! ▌◆★ Piper ◂                     38.79 s  20.20 ms/sample     7.42 GiB       64
//!   ○ Equal partition             49.10 s  25.57 ms/sample     6.94 GiB       64
//!   ▸ 11 planners cannot plan this workload
//! Piper: optimal, planned for 64 devices, 8 GiB, ..
//! ```
//! Columns are dropped whole, the least informative first. The sort column always stays.

use std::sync::Arc;

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{
    beside,
    detail::detail,
    stages,
    state::{Row, Side},
    table,
};
use crate::{
    family,
    tui::{
        action::Action,
        marks::Marks,
        model::Model,
        paint::{area::rows, batch, phrases::flow, shades::Shades, text::clip},
        simulated::Simulated,
        studies::StudyKind,
        theme::{Role, Theme},
    },
    units,
};

/// Meaning of the signs of the table.
const LEGEND: [&str; 5] = [
    "    ★ fastest ",
    "◂ on the screen ",
    "✗ no plan ",
    "* among the plans of its own kind ",
    "model: planned against simulated",
];

pub(in crate::tui) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    if let Some(side) = model.views.compare.side {
        let drawn = beside::draw(frame, area, model, marks, side);
        // The next step scrolls from the visible position.
        marks.views.compare = Some(drawn.map(|top| Side { top, ..side }));
        if drawn.is_some() {
            return;
        }
    }
    let theme = &model.appearance.theme;
    let all = model.compare_rows();
    let cursor = model.compare_cursor(&all);
    let width = area.width as usize;
    let head = head(model, width, theme);
    let top = head.len() as u16;
    frame.render_widget(Paragraph::new(head), rows(area, 0, top));
    let detail = detail(model, &all, cursor, width, theme);
    let below = (detail.len() as u16 + 1).min(area.height.saturating_sub(top) / 3).min(10);
    // The details stand directly below the table, not at the bottom edge.
    let lines = table::height(model, &all);
    let place = rows(area, top, area.height.saturating_sub(top + below).min(lines));
    let told = top + place.height;
    if below > 0 && !all.is_empty() {
        let signs = LEGEND.map(|text| vec![Span::styled(text, theme.fg(Role::Muted))]);
        frame.render_widget(Paragraph::new(flow(signs.to_vec(), " ", area.width.into(), 1)), rows(area, told, 1));
    }
    frame.render_widget(Paragraph::new(detail), rows(area, told + 1, below.saturating_sub(1)));
    table::draw(frame, place, model, marks, (&all, cursor));
    let rest = rows(area, told + below + 1, area.height);
    if let [_, _] = model.views.compare.marked[..] {
        preview(frame, rest, model, marks);
    } else if let Some(Row::Plan(key)) = all.get(cursor)
        && let Some(compared) = model.compared(*key)
    {
        stages::draw(frame, rest, model, &compared.shown);
        let used = compared.shown.plan().map_or(0, |(plan, _)| plan.stages.len() as u16 + 2);
        let same = |simulated: &&Arc<Simulated>| Arc::ptr_eq(&simulated.shown, &compared.shown);
        let shades = Shades::new(theme, model.appearance.depth);
        let simulated = model.simulation.simulated.as_ref().filter(same).map(Arc::as_ref);
        batch::draw(frame, rows(rest, used, 2 * used), (&shades, theme), (simulated, usize::MAX));
    }
}

/// Draws the two marked plans stage by stage, if they fit below the table.
fn preview(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    const LEAST: u16 = 9;
    let &[first, second] = &model.views.compare.marked[..] else { return };
    if area.height < LEAST {
        return;
    }
    let rule = "─".repeat(area.width as usize);
    frame.render_widget(Span::styled(rule, model.appearance.theme.fg(Role::Border)), rows(area, 0, 1));
    beside::draw(frame, rows(area, 1, area.height), model, marks, Side { first, second, top: 0 });
}

/// Schedule and settings in words.
fn simulated_as(model: &Model) -> String {
    let changes = model.simulation.setup.changes();
    let with = if changes.is_empty() { String::new() } else { format!(" with {}", changes.join(", ")) };
    let wanted = model.simulation.setup.schedule.name();
    let own = |row: &Row| match row {
        Row::Plan(key) => model.compared(*key)?.entry.simulated.as_ref().map(|simulated| simulated.schedule.name()),
        _ => None,
    };
    // A single plan shows its actual schedule. With several, plans under another schedule say so below.
    let mut run: Vec<&str> = model.compare_rows().iter().filter_map(own).collect();
    run.dedup();
    let name = if let [only] = run[..] { only } else { wanted };
    format!("{name}{with}")
}

/// Head of the view: simulation settings, and the running or the possible study.
fn head(model: &Model, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let family = family::of(&model.session.workload);
    let batch = family.batch(&model.session.limits);
    let simulated = match family.one_stage() {
        true => format!("all simulated: {batch}"),
        false => format!("all simulated as {}, {batch}", simulated_as(model)),
    };
    let each = model.session.time_for_each();
    let each = match each.subsec_nanos() {
        0 => format!("{} s", each.as_secs()),
        _ => units::seconds(each.as_secs_f64()),
    };
    let (doing, role) = match (model.planning.studying(StudyKind::Compare), model.views.compare.queue.as_slice()) {
        (true, &[next, ..]) => {
            let more = match model.views.compare.queue.len() - 1 {
                0 => String::new(),
                more => format!(", {more} more to plan"),
            };
            let name = model.session.planners[next].info().name;
            (format!("… planning with {name}, at most {each}{more}; Esc stops"), Role::Accent)
        }
        (true, []) => ("… simulating".into(), Role::Accent),
        (false, _) => {
            let key = model.appearance.keymap.of_action(Action::CompareAll).unwrap_or_else(|| ":".into());
            let best = if model.has_planner_of_planners() { " (Ensemble is the best of them)" } else { "" };
            (format!("{key} runs every planner, {each} each{best}"), Role::Muted)
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

//! Screen without a plan: the limits that exclude one, sufficient values, and their keys.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use crate::{
    cluster::LimitKind,
    study::explain::limits_of,
    tui::{
        Action,
        model::Model,
        paint::text::{fit, wrap},
        shown::ShownRun,
        theme::Role,
    },
    units,
};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, shown: &ShownRun) {
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

//! Operators that share their devices: the most expensive tensor transfers.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
};

use crate::{
    family::operators::usage::OperatorUse,
    tui::{model::Model, shown::ShownRun, theme::Role},
    units,
    workload::NodeIndex,
};

/// Width of the names, and maximum length of a bar, columns.
const NAMES: usize = 36;
const LONGEST: usize = 40;

/// Minimum height from which transfers take only a third of the rows.
const ROOMY: u16 = 12;

/// Draws as many transfers as fit, most expensive first. Returns the number of rows used.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, shown: &ShownRun, used: &OperatorUse) -> u16 {
    if area.height < 2 {
        return area.height;
    }
    let theme = &model.appearance.theme;
    let costly = used.edges.iter().filter(|edge| edge.seconds > 0.0);
    let whole = used.step_s.max(f64::MIN_POSITIVE);
    let all: f64 = costly.clone().map(|edge| edge.seconds).sum();
    let told = format!("{} of an iteration is transfers between operators", units::percent(all / whole));
    let head = vec![Span::styled("Transfers  ", theme.bold(Role::Text)), Span::styled(told, theme.fg(Role::Muted))];
    frame.render_widget(Line::from(head), Rect { height: 1, ..area });
    let most = costly.clone().map(|edge| edge.seconds).fold(f64::MIN_POSITIVE, f64::max);
    let bar = usize::from(area.width).saturating_sub(NAMES + 12).min(LONGEST);
    let name = |node: NodeIndex| shown.workload.nodes[node].label();
    // Leave rows for the operators below, if both fit.
    let rows = if area.height >= ROOMY { area.height / 3 } else { area.height };
    for (y, edge) in (area.y + 1..area.y + rows).zip(costly.clone()) {
        let text: String = format!("{} → {}", name(edge.from), name(edge.to)).chars().take(NAMES - 2).collect();
        let cells = ((edge.seconds / most * bar as f64).round() as usize).clamp(1.min(bar), bar);
        let line = Line::from(vec![
            Span::styled(format!("{text:<NAMES$}"), theme.fg(Role::Text)),
            Span::styled("▄".repeat(cells), theme.fg(Role::Communication)),
            Span::raw(" ".repeat(bar - cells)),
            Span::styled(format!("{:>12}", units::seconds(edge.seconds)), theme.fg(Role::Muted)),
        ]);
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
    rows.min(1 + costly.count() as u16)
}

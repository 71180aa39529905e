//! Operators that share their devices: time of each in a step, most expensive first. `O(n log n)` for n operators.

use ratatui::{
    Frame,
    layout::Rect,
    style::Color,
    text::{Line, Span},
};

use crate::{
    plan::{NodeScore, Plan, Score},
    tui::{
        shown::ShownRun,
        theme::{Role, Theme},
        widget::bar::{self, Part},
    },
    units,
    workload::Choice,
};

/// Widths of a name, of its split and of a figure, and maximum length of a bar, columns.
const NAME: usize = 22;
const SPLIT: usize = 14;
const FIGURE: usize = 12;
const LONGEST: usize = 60;

/// Draws as many operators as fit, below a title.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, theme: &Theme, (shown, plan, score): (&ShownRun, &Plan, &Score)) {
    let (Some(stage), Some(scored)) = (plan.stages.first(), score.stages.first()) else { return };
    if area.height < 3 || usize::from(area.width) < NAME + SPLIT + 2 * FIGURE + 8 {
        return;
    }
    let time = |node: &NodeScore| node.compute_s + node.communication_s + node.sync_s;
    let mut order: Vec<usize> = (0..scored.nodes.len().min(stage.nodes.len())).collect();
    order.sort_by(|&a, &b| time(&scored.nodes[b]).total_cmp(&time(&scored.nodes[a])));
    let sign = |role: Role, word: &str| {
        vec![Span::styled("■ ", theme.fg(role)), Span::styled(format!("{word}  "), theme.fg(Role::Muted))]
    };
    let mut head = vec![
        Span::styled("Operators  ", theme.bold(Role::Text)),
        Span::styled("share of an iteration, largest first   ", theme.fg(Role::Muted)),
    ];
    let parts = [(Role::Forward, "compute"), (Role::Communication, "transfers"), (Role::Communication, "all-reduce")];
    head.extend(parts.iter().flat_map(|(role, word)| sign(*role, word)));
    frame.render_widget(Line::from(head), Rect { height: 1, ..area });
    let most = order.first().map_or(0.0, |&i| time(&scored.nodes[i])).max(f64::MIN_POSITIVE);
    let cells = (usize::from(area.width) - NAME - SPLIT - 2 * FIGURE - 2).min(LONGEST);
    for (y, i) in (area.y + 1..area.bottom()).zip(order) {
        let node = &scored.nodes[i];
        let name: String = shown.workload.nodes[stage.nodes[i]].label().chars().take(NAME - 1).collect();
        let split = stage.choices.get(i).map(Choice::label).unwrap_or_default();
        let bars = [node.compute_s, node.communication_s, node.sync_s];
        let bars: Vec<Part> = bars
            .iter()
            .zip(parts)
            .zip(["█", "▓", "▒"])
            .map(|((seconds, (role, _)), fill)| {
                let fill = if theme.color(role) == Color::Reset { fill } else { "▄" };
                Part { share: seconds / most, fill, style: theme.fg(role) }
            })
            .collect();
        let mut spans = vec![
            Span::styled(format!("{name:<NAME$}"), theme.fg(Role::Text)),
            Span::styled(format!("{split:<SPLIT$}"), theme.fg(Role::Muted)),
        ];
        spans.extend(bar::stacked(&bars, cells));
        spans.push(Span::styled(format!("{:>FIGURE$}", units::seconds(time(node))), theme.fg(Role::Text)));
        spans.push(Span::styled(format!("{:>FIGURE$}", units::bytes(node.memory_bytes)), theme.fg(Role::Muted)));
        frame.render_widget(Line::from(spans), Rect { y, height: 1, ..area });
    }
}

//! Operators that share their devices: the most expensive tensors to transfer, and operators that leave devices idle.

use ratatui::text::{Line, Span};

use crate::{
    family::operators::usage::OperatorUse,
    tui::{
        paint::{
            links::title,
            text::{fit, fit_right},
        },
        shown::ShownRun,
        theme::{Role, Theme},
        widget::bar::{self, Part},
    },
    units,
    workload::NodeIndex,
};

/// Widths of the names, of a time and of its percentage, cells.
const NAMES: usize = 44;
const TIME: usize = 11;
const SHARE: usize = 7;

/// As many lines of both as fit; half each, if neither fits whole.
pub(super) fn lines(shown: &ShownRun, (width, height): (usize, usize), theme: &Theme) -> Vec<Line<'static>> {
    let Some(found) = &shown.operators else { return vec![] };
    let idle = idle_lines(shown, found, width, theme);
    let edges = edge_lines(shown, found, width, theme);
    let blank = usize::from(height > 4);
    let room = height.saturating_sub(blank);
    let for_idle = idle.len().min(room.saturating_sub(edges.len()).max(room / 2));
    let mut lines: Vec<Line<'static>> = edges.into_iter().take(room - for_idle).collect();
    if blank > 0 {
        lines.push(Line::default());
    }
    lines.extend(idle.into_iter().take(for_idle));
    lines
}

fn edge_lines(shown: &ShownRun, found: &OperatorUse, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let whole: f64 = found.step_s.max(f64::MIN_POSITIVE);
    let name = |node: NodeIndex| shown.workload.nodes[node].label();
    let costly = found.edges.iter().filter(|edge| edge.seconds > 0.0);
    let all: f64 = costly.clone().map(|edge| edge.seconds).sum();
    let text = format!(
        "most expensive tensor transfers; all: {}, {} of an iteration",
        units::seconds(all),
        units::percent(all / whole)
    );
    let mut lines = vec![title(&text, width, theme)];
    let names = NAMES.min(width.saturating_sub(TIME + SHARE + 2));
    let largest = costly.clone().map(|edge| edge.seconds).fold(f64::MIN_POSITIVE, f64::max);
    for edge in costly {
        let mut spans = vec![
            Span::raw(fit(&format!("  {} → {}", name(edge.from), name(edge.to)), names)),
            Span::raw(fit_right(&units::seconds(edge.seconds), TIME)),
            Span::styled(fit_right(&units::percent(edge.seconds / whole), SHARE), theme.fg(Role::Muted)),
            Span::raw("  "),
        ];
        let part = Part { share: edge.seconds / largest, fill: "▓", style: theme.fg(Role::Communication) };
        spans.extend(bar::stacked(&[part], width.saturating_sub(names + TIME + SHARE + 2)));
        lines.push(Line::from(spans));
    }
    if lines.len() == 1 {
        lines.push(Line::styled("  no transfers: every operator reads from its own device", theme.fg(Role::Muted)));
    }
    lines
}

fn idle_lines(shown: &ShownRun, found: &OperatorUse, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let count = found.idle.len();
    let text = match count {
        0 => format!("no device is idle: every operator uses all {}", found.devices),
        1 => "1 operator leaves devices idle".to_string(),
        _ => format!("{count} operators leave devices idle"),
    };
    let mut lines = vec![title(&text, width, theme)];
    for idle in &found.idle {
        let name = shown.workload.nodes[idle.node].label();
        let used = format!("on {} of {}", units::exact_number(idle.pieces), found.devices);
        lines.push(Line::from(vec![
            Span::raw(fit(&format!("  {name}"), NAMES.min(width.saturating_sub(TIME + SHARE)))),
            Span::raw(fit_right(&units::seconds(idle.seconds), TIME)),
            Span::styled(format!("  {used} devices"), theme.fg(Role::Muted)),
        ]));
    }
    lines
}

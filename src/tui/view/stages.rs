//! Stages: a tree from stage to nodes, with degrees, time and memory; above it the plan in two lines.
//!
//! ```text
//! objective   throughput   stages, devices   bound
//! limited by stage 3: compute 91%, edges 6%, sync 3%
//!
//!   stage       d × t  nodes   time/sample               memory, limit 8 GiB
//!                              █compute ▓edges ▒sync
//! ▸ 3           6 × 1      3   ████████▓▒  20.2 ms ◂     ███████▊│  7.9 GiB
//! ```

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{fit, fit_right, header, plain, rows};
use crate::{
    plan::{NodeScore, Plan, Score, Stage, StageScore},
    planner::Status,
    tui::{
        model::Model,
        shown::Shown,
        theme::{Role, Theme},
        widget::{
            bar::{self, Part},
            tree::{Branch, TreePane},
        },
    },
    units,
    workload::Workload,
};

/// Cells of a printed duration or size with a blank before it.
const VALUE: usize = 10;

/// Where the columns lie, for a width.
#[derive(Debug, Clone, Copy)]
struct Columns {
    /// Cells up to the end of the node count, signs of the tree included.
    left: usize,
    /// Cells of each of the two bars; 0 where there is no room.
    bar: usize,
}

impl Columns {
    fn new(width: usize) -> Self {
        let left = if width < 60 { 22 } else { (width * 36 / 100).clamp(26, 42) };
        // Two gaps of two, two values, the sign of the bottleneck.
        let rest = width.saturating_sub(left + 4 + 2 * VALUE + 2);
        Columns { left, bar: rest / 2 }
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &mut Model, shown: &Shown, plan: &Plan, score: &Score) {
    let theme = model.theme.clone();
    frame.render_widget(Paragraph::new(summary(shown, plan, score, &theme, area.width)), rows(area, 0, 2));
    let columns = Columns::new(area.width as usize);
    frame.render_widget(titles(shown, columns, &theme), rows(area, 3, 2));
    let table = rows(area, 5, area.height);
    model.stages.prepare((model.generation, area.width), || branches(shown, plan, score, columns, &theme));
    model.stages.draw(frame, table, &theme);
}

/// The plan in two lines: how good, and what limits it.
pub(super) fn summary(shown: &Shown, plan: &Plan, score: &Score, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    let gap = if width < 84 { "  " } else { "   " };
    let time = score.slowest_s;
    let bound = match (shown.outcome.status, shown.outcome.gap()) {
        (Status::Optimal, _) => "bound: proven".to_string(),
        (_, Some(share)) => format!("bound: within {}", units::percent(share)),
        _ => "bound: none".to_string(),
    };
    let count = plan.stages.len();
    let mut first = vec![
        Span::styled(score.measure.show(shown.outcome.objective.unwrap_or(score.value)), theme.bold(Role::Text)),
        Span::raw(format!("{gap}{} samples/s", units::number(1.0 / time))),
        Span::raw(format!("{gap}{count} stage{}", if count == 1 { "" } else { "s" })),
        Span::raw(format!(" on {} of {} devices", plan.devices_used(), shown.limits.all_devices())),
        Span::styled(format!("{gap}{bound}"), theme.fg(Role::Muted)),
    ];
    if shown.outcome.status == Status::Cancelled {
        first.push(Span::raw("   "));
        first.push(header::status(Status::Cancelled, None, theme));
    }
    let mut lines = vec![Line::from(first)];
    if let Some(i) = score.bottleneck() {
        let stage = &score.stages[i];
        let share = |part: f64| units::percent_whole(part / stage.load_s.max(f64::MIN_POSITIVE));
        lines.push(Line::from(vec![
            Span::styled(format!("limited by stage {}", i + 1), theme.bold(Role::Warning)),
            Span::raw(": compute "),
            Span::styled(share(stage.compute_s), theme.fg(Role::Compute)),
            Span::raw(", edges "),
            Span::styled(share(stage.communication_s), theme.fg(Role::Communication)),
            Span::raw(", sync "),
            Span::styled(share(stage.sync_s), theme.fg(Role::Sync)),
        ]));
    }
    lines
}

/// Titles over the columns, and below what the fills mean.
fn titles(shown: &Shown, columns: Columns, theme: &Theme) -> Paragraph<'static> {
    let muted = theme.fg(Role::Muted);
    let time_width = columns.bar + VALUE + 4;
    let limit = units::bytes_exact(shown.limits.memory_bytes);
    let memory = if columns.bar + VALUE >= 20 { format!("memory, limit {limit}") } else { format!("mem ≤ {limit}") };
    let first = vec![
        Span::styled(fit("   stage", columns.left.saturating_sub(16)), muted),
        Span::styled(fit_right("d × t", 9), muted),
        Span::styled(fit_right("nodes", 7), muted),
        Span::raw("  "),
        Span::styled(fit("time/sample", time_width), muted),
        Span::styled(memory, muted),
    ];
    let second = vec![
        Span::raw(" ".repeat(columns.left + 2)),
        Span::styled("█compute ", theme.fg(Role::Compute)),
        Span::styled("▓edges ", theme.fg(Role::Communication)),
        Span::styled("▒sync", theme.fg(Role::Sync)),
    ];
    let legend = if columns.bar >= 8 { Line::from(second) } else { Line::default() };
    Paragraph::new(vec![Line::from(first), legend])
}

fn branches(shown: &Shown, plan: &Plan, score: &Score, columns: Columns, theme: &Theme) -> Vec<Branch> {
    let slowest = score.slowest_s.max(f64::MIN_POSITIVE);
    let scale = Scale { slowest, memory: shown.limits.memory_bytes.max(score.peak_memory_bytes()) };
    let bottleneck = score.bottleneck();
    let branch = |(i, (stage, scored)): (usize, (&Stage, &StageScore))| Branch {
        label: format!("stage {}", i + 1),
        line: stage_line(i, stage, scored, scale, columns, bottleneck == Some(i), theme),
        children: node_branches(&shown.workload, stage, scored, scale, columns, theme),
    };
    plan.stages.iter().zip(&score.stages).enumerate().map(branch).collect()
}

/// What a full bar stands for.
#[derive(Debug, Clone, Copy)]
struct Scale {
    slowest: f64,
    memory: f64,
}

fn stage_line(
    index: usize,
    stage: &Stage,
    scored: &StageScore,
    scale: Scale,
    columns: Columns,
    bottleneck: bool,
    theme: &Theme,
) -> Line<'static> {
    let name = columns.left.saturating_sub(TreePane::indent(0) + 16);
    let degrees = format!("{} × {}", stage.data_parallel, stage.tensor_parallel);
    let mut spans = vec![
        Span::styled("● ", theme.stage(index)),
        Span::styled(fit(&(index + 1).to_string(), name.saturating_sub(2)), theme.bold(Role::Text)),
        Span::raw(fit_right(&degrees, 9)),
        Span::raw(fit_right(&stage.nodes.len().to_string(), 7)),
        Span::raw("  "),
    ];
    let parts = [
        (scored.compute_s, "█", Role::Compute),
        (scored.communication_s, "▓", Role::Communication),
        (scored.sync_s, "▒", Role::Sync),
    ]
    .map(|(time, fill, role)| Part { share: time / scale.slowest, fill, style: theme.fg(role) });
    spans.extend(bar::stacked(&parts, columns.bar));
    let style = if bottleneck { theme.bold(Role::Warning) } else { plain() };
    spans.push(Span::styled(fit_right(&units::seconds(scored.load_s), VALUE), style));
    spans.push(Span::styled(if bottleneck { " ◂" } else { "  " }, style));
    spans.push(Span::raw("  "));
    spans.extend(memory(scored.memory_bytes, scale, columns, theme, true));
    Line::from(spans)
}

/// A bar against the limit, and the value; nearly full is marked.
fn memory(bytes: f64, scale: Scale, columns: Columns, theme: &Theme, marked: bool) -> Vec<Span<'static>> {
    let bar_style = theme.fg(Role::Weights);
    let full = marked && bytes > 0.97 * scale.memory;
    let style = if full { theme.bold(Role::Warning) } else { plain() };
    vec![
        Span::styled(bar::solid(bytes / scale.memory, columns.bar.saturating_sub(1)), bar_style),
        Span::styled(if columns.bar > 0 && marked { "│" } else { "" }, theme.fg(Role::Border)),
        Span::raw(if columns.bar > 0 && !marked { " " } else { "" }),
        Span::styled(fit_right(&units::bytes(bytes), VALUE), style),
    ]
}

/// The nodes of a stage; a run of three or more that are alike folds into one row.
fn node_branches(
    workload: &Workload,
    stage: &Stage,
    scored: &StageScore,
    scale: Scale,
    columns: Columns,
    theme: &Theme,
) -> Vec<Branch> {
    let name = |i: usize| workload.nodes[stage.nodes[i]].label();
    let title = |i: usize| numbered(workload, stage.nodes[i]);
    let alike = |a: usize, b: usize| kind(&name(a)) == kind(&name(b)) && stage.choices[a] == stage.choices[b];
    let mut branches = vec![];
    let mut first = 0;
    while first < stage.nodes.len() {
        let end = (first + 1..stage.nodes.len()).find(|&i| !alike(first, i)).unwrap_or(stage.nodes.len());
        let row = |i: usize, depth: usize| Branch {
            label: title(i),
            line: node_line(&title(i), &stage.choices[i], &scored.nodes[i], depth, scale, columns, theme),
            children: vec![],
        };
        if end - first >= 3 {
            let sum = scored.nodes[first..end].iter().fold(NodeScore::default(), |mut sum, node| {
                sum.compute_s += node.compute_s;
                sum.communication_s += node.communication_s;
                sum.sync_s += node.sync_s;
                sum.memory_bytes += node.memory_bytes;
                sum
            });
            let label = format!("{} × {}", end - first, kind(&name(first)));
            branches.push(Branch {
                line: node_line(&label, &stage.choices[first], &sum, 1, scale, columns, theme),
                label,
                children: (first..end).map(|i| row(i, 2)).collect(),
            });
        } else {
            branches.extend((first..end).map(|i| row(i, 1)));
        }
        first = end;
    }
    branches
}

/// A node's name after its id, which alone tells layers of one name apart and so must not be cut off.
pub(super) fn numbered(workload: &Workload, node: usize) -> String {
    match &workload.nodes[node].name {
        Some(name) => format!("#{} {name}", workload.nodes[node].id),
        None => workload.nodes[node].label(),
    }
}

/// A node's name without the number at its end.
pub(super) fn kind(name: &str) -> &str {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let bare = bare.trim_end_matches([' ', '_', '-', '.', '#', '/']);
    if bare.is_empty() { name } else { bare }
}

fn node_line(
    name: &str,
    choice: &str,
    scored: &NodeScore,
    depth: usize,
    scale: Scale,
    columns: Columns,
    theme: &Theme,
) -> Line<'static> {
    let space = columns.left.saturating_sub(TreePane::indent(depth));
    let mode = super::fit_right(choice, choice.chars().count().min(space / 2));
    let parts = [
        (scored.compute_s, "█", Role::Compute),
        (scored.communication_s, "▓", Role::Communication),
        (scored.sync_s, "▒", Role::Sync),
    ]
    .map(|(time, fill, role)| Part { share: time / scale.slowest, fill, style: theme.fg(role) });
    let load = scored.compute_s + scored.communication_s + scored.sync_s;
    let mut spans = vec![
        Span::raw(fit(name, space.saturating_sub(mode.chars().count() + 1))),
        Span::raw(" "),
        Span::styled(mode, theme.fg(Role::Muted)),
        Span::raw("  "),
    ];
    spans.extend(bar::stacked(&parts, columns.bar));
    spans.push(Span::styled(fit_right(&units::seconds(load), VALUE), theme.fg(Role::Muted)));
    spans.push(Span::raw("    "));
    spans.extend(memory(scored.memory_bytes, scale, columns, theme, false));
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_end_are_no_part_of_the_kind() {
        assert_eq!(kind("transformer 12"), "transformer");
        assert_eq!(kind("block.3"), "block");
        assert_eq!(kind("conv2d_4"), "conv2d");
        assert_eq!(kind("17"), "17");
    }
}

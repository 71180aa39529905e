//! Rows of the Stages tree: stages, groups of nodes, nodes.
//!
//! In a pipeline of layers, a run of equal layers folds into one row. In a device placement, so do the nodes of a
//! colour class, which must stay together.

use std::collections::BTreeSet;

use ratatui::{
    style::{Color, Style},
    text::{Line, Span},
};

use crate::{
    family,
    plan::{NodeScore, Plan, Score, Stage, StageScore, Violation},
    study::pace::ALIKE,
    tui::{
        paint::{
            load_parts::{LoadPart, bar_parts, load_parts, node_parts},
            shades::Shades,
            text::{fit, fit_right, plain},
        },
        shown::ShownRun,
        theme::{Role, Theme},
        widget::{
            bar,
            tree::{Branch, TreePane},
        },
    },
    units,
    workload::{NodeIndex, Workload},
};

/// Width of a printed duration or size, with a blank before it, cells.
pub(super) const VALUE: usize = 10;

/// Maximum length of a bar; more cells add no information.
const LONGEST: usize = 40;
/// Minimum width for a column of slack.
const WITH_SLACK: usize = 100;

/// Sign before the number of nodes that recompute.
pub(super) const RECOMPUTES: &str = "↻";

/// Number of a stage's nodes that recompute their activations.
pub(super) fn recomputed(stage: &Stage) -> usize {
    stage.recomputed()
}

/// Widths of the columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    /// Cells up to the end of the node count, including the signs of the tree.
    pub left: usize,
    /// Cells of the degrees, within `left`; 0 without degrees.
    pub degrees: usize,
    /// Cells of the node count, within `left`.
    pub nodes: usize,
    /// Cells before the memory.
    pub gap: usize,
    /// Cells of each of the two bars; 0 if they do not fit.
    pub bar: usize,
    /// Cells after the time: the slack to the slowest stage, or only the sign of that stage.
    pub slack: usize,
}

impl Columns {
    /// Columns for a width, with or without degrees.
    pub(super) fn new(width: usize, degrees: bool) -> Self {
        let narrow = width < 48;
        let left = match width {
            ..48 => 21,
            48..60 => 22,
            _ => (width * 36 / 100).clamp(26, 42),
        };
        let slack = if width < WITH_SLACK { 2 } else { 11 };
        let gap = if narrow { 0 } else { 2 };
        // Two gaps, two values.
        let rest = width.saturating_sub(left + 2 + gap + 2 * VALUE + slack);
        let (degrees, nodes) = (if degrees { 9 - usize::from(narrow) } else { 0 }, 7 - usize::from(narrow));
        Columns { left, degrees, nodes, gap, bar: (rest / 2).min(LONGEST), slack }
    }
}

/// Data shared by all rows.
struct Tree<'a> {
    shown: &'a ShownRun,
    theme: &'a Theme,
    shades: &'a Shades,
    columns: Columns,
    parts: Vec<LoadPart>,
    /// Parts of a node's time, as the planner counts them.
    node_parts: Vec<LoadPart>,
    /// Time of a full bar, seconds.
    slowest: f64,
    /// Memory of a full bar, bytes.
    /// Stages with a violation.
    broken: BTreeSet<usize>,
}

/// Bar of half a line's height, or one that is visible without colours.
fn filled(share: f64, width: usize, theme: &Theme) -> String {
    if theme.color(Role::State) == Color::Reset {
        return bar::solid(share, width);
    }
    let cells = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    "▄".repeat(cells) + &" ".repeat(width - cells)
}

/// Rows of a plan.
pub(super) fn branches(
    shown: &ShownRun,
    plan: &Plan,
    score: &Score,
    columns: Columns,
    (theme, shades): (&Theme, &Shades),
) -> Vec<Branch> {
    let tree = Tree {
        shown,
        theme,
        shades,
        columns,
        parts: load_parts(score),
        node_parts: load_parts(shown.plan().map_or(score, |(_, score)| score)),
        slowest: score.slowest_s.max(f64::MIN_POSITIVE),
        broken: score.violations.iter().flat_map(Violation::stages).collect(),
    };
    let bottleneck = score.bottleneck();
    let branch = |(i, (stage, scored)): (usize, (&Stage, &StageScore))| Branch {
        label: shown.names.long(i).to_string(),
        line: tree.stage_line(i, stage, scored, bottleneck == Some(i)),
        children: tree.parts(i, stage, scored),
    };
    plan.stages.iter().zip(&score.stages).enumerate().map(branch).collect()
}

/// Nodes of a row, by its path; empty for a whole stage.
pub(in crate::tui) fn nodes_of(workload: &Workload, plan: &Plan, path: &[u32]) -> Vec<NodeIndex> {
    let (Some(stage), Some(&row)) = (path.first().and_then(|&i| plan.stages.get(i as usize)), path.get(1)) else {
        return vec![];
    };
    let group = family::of(workload).stage_groups(workload, stage).into_iter().nth(row as usize).unwrap_or_default();
    let nodes = group.into_iter().map(|i| stage.nodes[i]);
    match path.get(2) {
        Some(&child) => nodes.skip(child as usize).take(1).collect(),
        None => nodes.collect(),
    }
}

/// Path of a node's row, if the plan has it.
pub(in crate::tui) fn path_of(workload: &Workload, plan: &Plan, node: NodeIndex) -> Vec<u32> {
    let Some(stage) = plan.stage_of(node) else { return vec![] };
    let found =
        family::of(workload).stage_groups(workload, &plan.stages[stage]).iter().enumerate().find_map(|(row, group)| {
            let child = group.iter().position(|&i| plan.stages[stage].nodes[i] == node)?;
            Some(if group.len() == 1 { vec![row] } else { vec![row, child] })
        });
    std::iter::once(stage).chain(found.unwrap_or_default()).map(|at| at as u32).collect()
}

impl Tree<'_> {
    fn stage_line(&self, index: usize, stage: &Stage, scored: &StageScore, bottleneck: bool) -> Line<'static> {
        let (theme, columns) = (self.theme, self.columns);
        let name = columns.left.saturating_sub(TreePane::indent(0) + columns.nodes + columns.degrees);
        let degrees = self.shown.names.degrees_of(stage);
        let label = if name < 16 { self.shown.names.short(index) } else { self.shown.names.row(index) };
        let machines = self.shown.names.machines(index);
        let recomputed = recomputed(stage);
        let mark = if recomputed > 0 { format!("{RECOMPUTES}{recomputed}") } else { String::new() };
        // If both do not fit, the name takes precedence.
        let mark = if mark.chars().count() + 1 + label.chars().count() + 2 <= name { mark } else { String::new() };
        let marked = if mark.is_empty() { 0 } else { mark.chars().count() + 1 };
        let room = name.saturating_sub(label.chars().count() + 4 + marked);
        let brief = || machines.replace("machines ", "m ").replace("machine ", "m ");
        let machines = if machines.chars().count() <= room { machines.to_string() } else { brief() };
        let label_width =
            label.chars().count().min(name.saturating_sub(2 + marked)) + usize::from(!machines.is_empty()) * 2;
        let between = name.saturating_sub(label_width + 2 + marked);
        // A part of a kind's name tells nothing.
        let kind = family::of(&self.shown.workload).stage_kind(stage).is_some();
        let machines = if kind && machines.chars().count() > between { String::new() } else { machines };
        let sign = if self.broken.contains(&(index + 1)) {
            Span::styled("✗ ", theme.bold(Role::Bad))
        } else {
            Span::styled("● ", Style::new().fg(self.shades.color(self.shades.stage(index, &self.shown.places))))
        };
        let layers = family::of(&self.shown.workload).layers(&stage.nodes);
        let mut spans = vec![
            sign,
            Span::styled(fit(label, label_width), theme.bold(Role::Text)),
            Span::styled(fit(&machines, between), theme.fg(Role::Muted)),
            Span::styled(fit_right(&mark, marked), theme.fg(Role::Muted)),
            Span::raw(fit_right(if columns.degrees > 0 { &degrees } else { "" }, columns.degrees)),
            Span::raw(fit_right(&layers.to_string(), columns.nodes)),
            Span::raw("  "),
        ];
        spans.extend(bar::stacked(&bar_parts(&self.parts, scored, self.slowest, theme), columns.bar));
        let style = if bottleneck { theme.bold(Role::Warning) } else { plain() };
        spans.push(Span::styled(fit_right(&units::seconds(scored.load_s), VALUE), style));
        let slack = match (columns.slack > 2, bottleneck) {
            (true, false) => match self.slowest - scored.load_s {
                slack if slack > (1.0 - ALIKE) * self.slowest => fit_right(&units::seconds(slack), columns.slack),
                _ => fit_right("none", columns.slack),
            },
            (true, true) => fit(" ◂ slowest", columns.slack),
            (false, true) => " ◂".into(),
            (false, false) => "  ".into(),
        };
        spans.push(Span::styled(slack, if bottleneck { style } else { theme.fg(Role::Muted) }));
        spans.push(Span::raw(" ".repeat(columns.gap)));
        if self.shown.names.is_cpu(index) {
            spans.push(Span::styled(fit("no limit", columns.bar + VALUE), theme.fg(Role::Muted)));
        } else {
            spans.extend(self.memory(scored.memory_bytes, self.shown.memory_limit(index), true));
        }
        Line::from(spans)
    }

    /// Bar relative to the limit, and the value. Nearly full and exceeded limits are marked.
    fn memory(&self, bytes: f64, limit: f64, marked: bool) -> Vec<Span<'static>> {
        let (theme, width) = (self.theme, self.columns.bar);
        let over = marked && bytes > limit;
        let style = match marked {
            true if over => theme.bold(Role::Bad),
            true if bytes > 0.97 * limit => theme.bold(Role::Warning),
            _ => plain(),
        };
        let (end, border) = if over { ("✗", theme.bold(Role::Bad)) } else { ("│", theme.fg(Role::Border)) };
        vec![
            Span::styled(filled(bytes / limit, width.saturating_sub(1), theme), theme.fg(Role::State)),
            Span::styled(if width > 0 && marked { end } else { "" }, border),
            Span::raw(if width > 0 && !marked { " " } else { "" }),
            Span::styled(fit_right(&units::bytes_beside(bytes, limit), VALUE), style),
        ]
    }

    /// Rows inside a stage.
    fn parts(&self, index: usize, stage: &Stage, scored: &StageScore) -> Vec<Branch> {
        let workload = &self.shown.workload;
        let branch = |places: Vec<usize>| {
            let first = places[0];
            if places.len() == 1 {
                return self.node(index, stage, scored, first, 1);
            }
            let (label, remark) = family::of(workload).stage_group_label(workload, stage, &places);
            self.group(index, stage, scored, &places, label, &remark)
        };
        family::of(workload).stage_groups(workload, stage).into_iter().map(branch).collect()
    }

    /// Row for several nodes of a stage, which are its children.
    fn group(
        &self,
        index: usize,
        stage: &Stage,
        scored: &StageScore,
        places: &[usize],
        label: String,
        remark: &str,
    ) -> Branch {
        let (mut forward, mut backward) = (NodeScore::default(), NodeScore::default());
        for &i in places {
            let node = &scored.nodes[i];
            let sum = if self.is_backward(stage.nodes[i]) { &mut backward } else { &mut forward };
            sum.compute_s += node.compute_s;
            sum.communication_s += node.communication_s;
            sum.sync_s += node.sync_s;
            sum.memory_bytes += node.memory_bytes;
        }
        Branch {
            line: self.node_line(index, &label, remark, [&forward, &backward], 1),
            label,
            children: places.iter().map(|&i| self.node(index, stage, scored, i, 2)).collect(),
        }
    }

    fn node(&self, index: usize, stage: &Stage, scored: &StageScore, i: usize, depth: usize) -> Branch {
        let label = self.shown.workload.nodes[stage.nodes[i]].numbered();
        let backward = self.is_backward(stage.nodes[i]);
        // The row above states the kind of device, but not the pass.
        let remark = family::of(&self.shown.workload).node_remark(stage, i);
        let none = NodeScore::default();
        let sums = if backward { [&none, &scored.nodes[i]] } else { [&scored.nodes[i], &none] };
        Branch { line: self.node_line(index, &label, &remark, sums, depth), label, children: vec![] }
    }

    fn is_backward(&self, node: NodeIndex) -> bool {
        family::of(&self.shown.workload).is_backward(node)
    }

    /// Line with the costs of forward and backward pass side by side.
    fn node_line(
        &self,
        index: usize,
        name: &str,
        remark: &str,
        [forward, backward]: [&NodeScore; 2],
        depth: usize,
    ) -> Line<'static> {
        let (theme, columns) = (self.theme, self.columns);
        let space = columns.left.saturating_sub(TreePane::indent(depth));
        let remark = fit_right(remark, remark.chars().count().min(space / 2));
        let [mut a, mut b] = [(forward, false), (backward, true)].map(|(node, is_backward)| {
            node_parts(&self.node_parts, node, is_backward, self.slowest, theme).into_iter()
        });
        // Compute of both passes first, then transfers and all-reduce.
        let parts: Vec<_> = std::iter::from_fn(|| a.next().zip(b.next())).flat_map(|(a, b)| [a, b]).collect();
        let load: f64 = [forward, backward].iter().map(|n| n.compute_s + n.communication_s + n.sync_s).sum();
        let mut spans = vec![
            Span::raw(fit(name, space.saturating_sub(remark.chars().count() + 1))),
            Span::raw(" "),
            Span::styled(remark, theme.fg(Role::Muted)),
            Span::raw("  "),
        ];
        spans.extend(bar::stacked(&parts, columns.bar));
        spans.push(Span::styled(fit_right(&units::seconds(load), VALUE), theme.fg(Role::Muted)));
        spans.push(Span::raw(" ".repeat(2 + columns.gap)));
        if !self.shown.names.is_cpu(index) {
            spans.extend(self.memory(
                forward.memory_bytes + backward.memory_bytes,
                self.shown.memory_limit(index),
                false,
            ));
        }
        Line::from(spans)
    }
}

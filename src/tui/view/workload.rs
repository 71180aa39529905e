//! Workload: the network as its file has it, in sections: nodes, edges, findings about its profile, what
//! it says of itself.

use std::borrow::Cow;

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{
    clip, fit, fit_right, plain, rows,
    stages::{kind, numbered},
    wrap,
};
use crate::{
    tui::{
        model::{Focus, Hit, Model},
        theme::{Role, Theme},
        widget::{
            bar,
            tree::{Branch, TreePane},
        },
    },
    units,
    workload::{Mode, PiperProfile, Profile, Workload, placement::SECONDS},
};

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// The nodes, runs of like ones folded.
    Nodes,
    /// The edges with what crosses them.
    Edges,
    /// What may mislead a planner, worst first.
    Findings,
    /// Where the file came from and what it assumes.
    About,
}

impl Section {
    const ALL: [Section; 4] = [Section::Nodes, Section::Edges, Section::Findings, Section::About];

    /// The one after it, going round.
    pub(crate) fn next(self) -> Self {
        let at = Section::ALL.iter().position(|s| *s == self).unwrap_or(0);
        Section::ALL[(at + 1) % Section::ALL.len()]
    }
}

/// More lines than any text here has.
const TEXT_LINES: usize = 1 << 20;

impl Model {
    /// Rows of the section, where it is a plain list.
    pub(crate) fn section_rows(&self) -> usize {
        match self.section {
            Section::Nodes => 0,
            Section::Edges => self.workload.dag.edges().len(),
            // Texts scroll by line; how many lines there are depends on the width, and drawing stops at the end.
            Section::Findings | Section::About => TEXT_LINES,
        }
    }
}

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {
    let theme = model.theme.clone();
    draw_sections(frame, rows(area, 0, 1), model, &theme);
    let body = rows(area, 2, area.height);
    match model.section {
        Section::Nodes => draw_nodes(frame, body, model, &theme),
        Section::Edges => draw_edges(frame, body, model, &theme),
        Section::Findings => draw_text(frame, body, model, findings(model, body.width as usize), &theme),
        Section::About => draw_text(frame, body, model, about(&model.workload, body.width as usize), &theme),
    }
}

fn draw_sections(frame: &mut Frame<'_>, line: Rect, model: &Model, theme: &Theme) {
    let mut spans = vec![];
    for section in Section::ALL {
        let text = match section {
            Section::Nodes => format!("{} nodes", model.workload.nodes.len()),
            Section::Edges => format!("{} edges", model.workload.dag.edges().len()),
            Section::Findings => match model.findings.len() {
                1 => "1 finding".into(),
                count => format!("{count} findings"),
            },
            Section::About => "about this file".into(),
        };
        let current = section == model.section;
        let style = if current { theme.bold(Role::Focus) } else { theme.fg(Role::Muted) };
        spans.push(Span::styled(if current { "▸ " } else { "  " }, style));
        spans.push(Span::styled(text, style));
        spans.push(Span::raw("   "));
    }
    spans.push(Span::styled("s", theme.bold(Role::Accent)));
    spans.push(Span::styled(" next section", theme.fg(Role::Muted)));
    frame.render_widget(Line::from(spans), line);
}

/// Cells of a value column.
const VALUE: usize = 11;

fn draw_nodes(frame: &mut Frame<'_>, area: Rect, model: &mut Model, theme: &Theme) {
    let profile = modes(&model.workload);
    let profile = profile.as_ref();
    let detail_height = (area.height / 2).min(12);
    let width = area.width as usize;
    let name = width.saturating_sub(4 * VALUE + 2 + 14).clamp(12, 48);
    let muted = theme.fg(Role::Muted);
    let titles = format!(
        "   {}{}{}{}{}",
        fit("node", name.saturating_sub(3)),
        fit_right("time", VALUE),
        fit_right("parameters", VALUE),
        fit_right("memory", VALUE),
        fit_right("degrees", VALUE)
    );
    frame.render_widget(Span::styled(clip(&titles, width), muted), rows(area, 0, 1));
    let workload = model.workload.clone();
    model.nodes.prepare((model.generation, area.width), || branches(&workload, profile, name, width, theme));
    let tree = rows(area, 1, area.height.saturating_sub(detail_height + 1));
    model.nodes.draw(frame, tree, theme);
    if let Some(node) = selected_node(&model.workload, model.nodes.selected()) {
        let detail = rows(area, area.height.saturating_sub(detail_height), detail_height);
        draw_detail(frame, detail, &model.workload, profile, node, theme);
    }
}

/// Operations per second at which operators are shown where the file names no rate.
const SHOWN_FLOPS: f64 = 10e12;

/// What every node can run as, whatever the profile.
fn modes(workload: &Workload) -> Cow<'_, PiperProfile> {
    match &workload.profile {
        Profile::Piper(profile) => Cow::Borrowed(profile),
        Profile::Placement(profile) => Cow::Owned(profile.as_modes(&workload.dag)),
        Profile::Layers(profile) => Cow::Owned(profile.as_modes(&workload.dag)),
        Profile::Operators(profile) => {
            let flops = workload.limits.flops_per_s.unwrap_or(SHOWN_FLOPS);
            Cow::Owned(profile.as_modes(&workload.dag, flops))
        }
    }
}

/// What an edge carries: the figure for its bar, and its text.
fn edge_cost(workload: &Workload, edge: usize) -> (f64, String) {
    match &workload.profile {
        Profile::Piper(profile) => (profile.edge_bytes[edge], units::bytes(profile.edge_bytes[edge])),
        Profile::Operators(profile) => {
            let (from, to) = workload.dag.edges()[edge];
            let bytes = profile.link_bytes(from as usize, to as usize);
            (bytes, units::bytes(bytes))
        }
        Profile::Layers(profile) => {
            let bytes = profile.nodes[workload.dag.edges()[edge].0 as usize].activation();
            (bytes, units::bytes(bytes))
        }
        Profile::Placement(profile) => {
            let seconds = profile.nodes[workload.dag.edges()[edge].0 as usize].transfer * SECONDS;
            (seconds, units::seconds(seconds))
        }
    }
}

/// Runs of nodes of one kind and about one cost: (first, end).
fn runs(workload: &Workload, profile: &PiperProfile) -> Vec<(usize, usize)> {
    // Measured layers of one kind differ by a few percent.
    let near = |a: f64, b: f64| (a - b).abs() <= 0.05 * a.max(b);
    let alike = |a: usize, b: usize| {
        let same = match (first_mode(profile, a), first_mode(profile, b)) {
            (Some(a), Some(b)) => a.parameters == b.parameters && near(a.time_s, b.time_s),
            _ => false,
        };
        same && kind(&workload.nodes[a].label()) == kind(&workload.nodes[b].label())
    };
    let n = workload.nodes.len();
    let mut runs = vec![];
    let mut first = 0;
    while first < n {
        let end = (first + 1..n).find(|&i| !alike(first, i)).unwrap_or(n);
        if end - first >= 3 {
            runs.push((first, end));
        } else {
            runs.extend((first..end).map(|i| (i, i + 1)));
        }
        first = end;
    }
    runs
}

/// The mode a file names first at the smallest degree: what the node is by itself.
fn first_mode(profile: &PiperProfile, node: usize) -> Option<&Mode> {
    profile.nodes.get(node)?.degrees.first()?.modes.first()
}

/// The node of a row of the tree; the first of them for a run.
fn selected_node(workload: &Workload, path: &[u32]) -> Option<usize> {
    let profile = modes(workload);
    let profile = profile.as_ref();
    let run = *runs(workload, profile).get(*path.first()? as usize)?;
    Some(run.0 + path.get(1).map_or(0, |&i| i as usize))
}

fn branches(workload: &Workload, profile: &PiperProfile, name: usize, width: usize, theme: &Theme) -> Vec<Branch> {
    let slowest = (0..workload.nodes.len())
        .filter_map(|i| first_mode(profile, i))
        .map(|m| m.time_s)
        .fold(f64::MIN_POSITIVE, f64::max);
    let row = |i: usize, label: String, depth: usize| {
        let mut spans = vec![Span::raw(fit(&label, (name + 3).saturating_sub(TreePane::indent(depth))))];
        let degrees: Vec<String> = profile.nodes[i].degrees.iter().map(|d| d.degree.to_string()).collect();
        if let Some(mode) = first_mode(profile, i) {
            spans.push(Span::raw(fit_right(&units::seconds(mode.time_s), VALUE)));
            spans.push(Span::raw(fit_right(&units::count_short(mode.parameters), VALUE)));
            spans.push(Span::raw(fit_right(&units::bytes(mode.memory_a + mode.memory_b), VALUE)));
            spans.push(Span::styled(fit_right(&degrees.join(","), VALUE), theme.fg(Role::Muted)));
            let space = width.saturating_sub(name + 3 + 4 * VALUE + 3);
            spans.push(Span::raw("  "));
            spans.push(Span::styled(bar::solid(mode.time_s / slowest, space), theme.fg(Role::Compute)));
        }
        Branch { label, line: Line::from(spans), children: vec![] }
    };
    runs(workload, profile)
        .into_iter()
        .map(|(first, end)| {
            if end - first == 1 {
                return row(first, numbered(workload, first), 0);
            }
            let label = workload.nodes[first].label();
            let mut branch = row(first, format!("{} × {}", end - first, kind(&label)), 0);
            branch.children = (first..end).map(|i| row(i, numbered(workload, i), 1)).collect();
            branch
        })
        .collect()
}

/// Every mode of a node by degree, and its edges.
fn draw_detail(
    frame: &mut Frame<'_>,
    area: Rect,
    workload: &Workload,
    profile: &PiperProfile,
    node: usize,
    theme: &Theme,
) {
    let muted = theme.fg(Role::Muted);
    let width = area.width as usize;
    let end = |edge: u32, other: usize| {
        format!("{} ({})", workload.nodes[other].label(), edge_cost(workload, edge as usize).1)
    };
    let edges = workload.dag.edges();
    let list = |ids: &[u32], from: bool| -> String {
        let all: Vec<String> = ids
            .iter()
            .map(|&e| end(e, if from { edges[e as usize].0 } else { edges[e as usize].1 } as usize))
            .collect();
        if all.is_empty() { "nothing".into() } else { all.join(", ") }
    };
    let title = format!("─ {} (id {}) ", workload.nodes[node].label(), workload.nodes[node].id);
    let rule = "─".repeat(width.saturating_sub(title.chars().count()));
    let mut lines = vec![
        Line::from(vec![Span::styled(title, theme.bold(Role::Text)), Span::styled(rule, theme.fg(Role::Border))]),
        Line::from(vec![
            Span::styled("from ", muted),
            Span::raw(clip(&list(workload.dag.in_edges(node), true), width.saturating_sub(5))),
        ]),
        Line::from(vec![
            Span::styled("to   ", muted),
            Span::raw(clip(&list(workload.dag.out_edges(node), false), width.saturating_sub(5))),
        ]),
        Line::styled(
            clip(
                &format!(
                    "  t  {}{}{}{}",
                    fit("mode", 20),
                    fit_right("time", VALUE),
                    fit_right("parameters", VALUE),
                    "   memory for y microbatches in flight"
                ),
                width,
            ),
            muted,
        ),
    ];
    for degree in &profile.nodes[node].degrees {
        for mode in &degree.modes {
            lines.push(Line::raw(clip(
                &format!(
                    "{:>3}  {}{}{}   {} · y + {}",
                    degree.degree,
                    fit(&mode.id, 20),
                    fit_right(&units::seconds(mode.time_s), VALUE),
                    fit_right(&units::count_short(mode.parameters), VALUE),
                    units::bytes(mode.memory_a),
                    units::bytes(mode.memory_b)
                ),
                width,
            )));
        }
    }
    let hidden = lines.len().saturating_sub(area.height as usize);
    if hidden > 0 && area.height > 1 {
        lines.truncate(area.height as usize - 1);
        lines.push(Line::styled(format!("  … {} more modes", hidden + 1), muted));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_edges(frame: &mut Frame<'_>, area: Rect, model: &mut Model, theme: &Theme) {
    let edges = model.workload.dag.edges();
    if edges.is_empty() {
        frame.render_widget(Span::styled("there are no edges", theme.fg(Role::Muted)), area);
        return;
    }
    let width = area.width as usize;
    let name = (width.saturating_sub(2 * VALUE + 6) / 2).min(36);
    let titles = format!("  {}  {}{}", fit("from", name), fit("to", name + 1), fit_right("per microbatch", VALUE + 4));
    frame.render_widget(Span::styled(clip(&titles, width), theme.fg(Role::Muted)), rows(area, 0, 1));
    let list = rows(area, 1, area.height);
    let largest = (0..edges.len()).map(|i| edge_cost(&model.workload, i).0).fold(f64::MIN_POSITIVE, f64::max);
    let first = super::scrolled(model.section_cursor, list.height as usize, edges.len());
    for (y, i) in (list.y..list.bottom()).zip(first..edges.len()) {
        let line = Rect { y, height: 1, ..list };
        let selected = i == model.section_cursor;
        let label = |v: u32| fit(&model.workload.nodes[v as usize].label(), name);
        let (cost, text) = edge_cost(&model.workload, i);
        let space = width.saturating_sub(2 * name + VALUE + 12);
        let spans = vec![
            Span::styled(if selected { "▌ " } else { "  " }, theme.fg(Role::Focus)),
            Span::raw(label(edges[i].0)),
            Span::styled("→ ", theme.fg(Role::Muted)),
            Span::raw(label(edges[i].1)),
            Span::raw(fit_right(&text, VALUE + 4)),
            Span::raw("  "),
            Span::styled(bar::solid(cost / largest, space.min(40)), theme.fg(Role::Communication)),
        ];
        frame.render_widget(Line::from(spans), line);
        if selected && model.focus == Focus::View {
            frame.buffer_mut().set_style(line, theme.selected());
        }
        model.hits.push((line, Hit::ListRow(i)));
    }
}

/// What the file says of itself: (is a title, text).
fn about(workload: &Workload, width: usize) -> Vec<(bool, String)> {
    let mut lines = vec![(false, format!("read from {} as {}", workload.source, workload.format))];
    let mut section = |title: &str, items: &[String]| {
        lines.push((false, String::new()));
        lines.push((true, title.to_string()));
        for item in items {
            let wrapped = wrap(item, width.saturating_sub(2));
            lines.extend(
                wrapped.iter().enumerate().map(|(i, l)| (false, format!("{}{l}", if i == 0 { "· " } else { "  " }))),
            );
        }
    };
    match &workload.provenance {
        Some(provenance) => {
            section("Made by", std::slice::from_ref(&provenance.made_by));
            section("It assumes", &provenance.assumptions);
        }
        None => section("Where it comes from", &["the file does not say how it was made".to_string()]),
    }
    if !workload.unknown_fields.is_empty() {
        section("Fields that are not used", &workload.unknown_fields);
    }
    lines
}

/// The findings as text: (is a title, text).
fn findings(model: &Model, width: usize) -> Vec<(bool, String)> {
    let mut lines = vec![];
    for finding in &model.findings {
        let title = format!("{}: {}", finding.severity, finding.subject(&model.workload));
        lines.extend(wrap(&title, width).into_iter().map(|text| (true, text)));
        for text in [finding.what.as_str(), finding.why] {
            let wrapped = wrap(text, width.saturating_sub(2));
            lines.extend(wrapped.into_iter().map(|text| (false, format!("  {text}"))));
        }
        lines.push((false, String::new()));
    }
    if lines.is_empty() {
        lines.push((false, "nothing in this profile looks as if it would mislead a planner".into()));
    }
    lines
}

/// Lines of text from the selected one on.
fn draw_text(frame: &mut Frame<'_>, area: Rect, model: &mut Model, lines: Vec<(bool, String)>, theme: &Theme) {
    model.section_cursor = model.section_cursor.min(lines.len().saturating_sub(area.height as usize));
    let shown: Vec<Line<'_>> = lines
        .into_iter()
        .skip(model.section_cursor)
        .map(|(title, text)| Line::styled(text, if title { theme.bold(Role::Text) } else { plain() }))
        .collect();
    frame.render_widget(Paragraph::new(shown), area);
}

//! Workload: the network as in its file, in sections: nodes, edges, findings about its profile, and its provenance.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{nodes, profile, state::Section};
use crate::{
    family,
    tui::{
        marks::Marks,
        model::{Focus, Hit, Model},
        paint::{
            area::{rows, scrolled},
            phrases::{Phrase, flow, whole},
            text::{clip, fit, fit_right, plain, wrap},
        },
        theme::{Role, Theme},
        widget::{bar, scrollbar::scrollbar, tree::TreePane},
    },
    workload::{NodeIndex, Workload},
};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    let theme = &model.appearance.theme;
    draw_sections(frame, rows(area, 0, 1), model, theme);
    let facts = whole(&family::of(&model.session.workload).facts(), area.width as usize);
    frame.render_widget(Span::styled(facts, theme.fg(Role::Muted)), rows(area, 1, 1));
    let body = rows(area, 2, area.height);
    match model.views.workload.section {
        Section::Nodes => draw_nodes(frame, body, model, &mut marks.tree),
        Section::Edges => draw_edges(frame, body, model, marks),
        Section::Findings => {
            draw_text(frame, body, model, marks, findings(model, usize::from(body.width).saturating_sub(2)));
        }
        Section::About => {
            draw_text(
                frame,
                body,
                model,
                marks,
                about(&model.session.workload, usize::from(body.width).saturating_sub(2)),
            );
        }
    }
}

fn draw_sections(frame: &mut Frame<'_>, line: Rect, model: &Model, theme: &Theme) {
    let section_of = |section: Section| {
        let text = match section {
            Section::Nodes => family::of(&model.session.workload).size(&model.session.workload).remove(0),
            Section::Edges => format!("{} edges", model.session.workload.dag.edges().len()),
            Section::Findings => match model.session.findings.len() {
                1 => "1 finding".into(),
                count => format!("{count} findings"),
            },
            Section::About => "about this file".into(),
        };
        let current = section == model.views.workload.section;
        let style = if current { theme.bold(Role::Focus) } else { theme.fg(Role::Muted) };
        vec![Span::styled(if current { "▸ " } else { "  " }, style), Span::styled(text, style)]
    };
    let mut phrases: Vec<Phrase> = Section::ALL.into_iter().map(section_of).collect();
    phrases
        .push(vec![Span::styled("s", theme.bold(Role::Accent)), Span::styled(" next section", theme.fg(Role::Muted))]);
    let told = flow(phrases, "   ", line.width.into(), 1).pop().unwrap_or_default();
    frame.render_widget(told, line);
}

/// Width of a value column, cells.
const VALUE: usize = 11;

fn draw_nodes(frame: &mut Frame<'_>, area: Rect, model: &Model, pane: &mut TreePane) {
    let (workload, theme) = (&model.session.workload, &model.appearance.theme);
    let detail_height = (area.height / 2).min(12);
    let width = area.width as usize;
    let muted = theme.fg(Role::Muted);
    frame.render_widget(Span::styled(clip(&nodes::titles(workload, width), width), muted), rows(area, 0, 1));
    pane.prepare((model.planning.generation, area.width), || nodes::branches(workload, width, theme));
    // The details of the selected node stand directly below the list, not at the bottom edge.
    let most = area.height.saturating_sub(detail_height + 1);
    let tree = rows(area, 1, (pane.rows() as u16 + 1).min(most));
    pane.draw(frame, tree, theme);
    if let Some(node) = nodes::selected(workload, pane.selected()) {
        let detail = rows(area, 1 + tree.height, area.height);
        let told = draw_detail(frame, detail, workload, node, theme) + 1;
        let rest = rows(detail, told, detail.height);
        profile::draw(frame, rest, model, (workload, node));
    }
}

/// Draws a node's edges and its whole profile. Returns the number of rows used.
fn draw_detail(frame: &mut Frame<'_>, area: Rect, workload: &Workload, node: NodeIndex, theme: &Theme) -> u16 {
    let muted = theme.fg(Role::Muted);
    let width = area.width as usize;
    let list = |ids: &[u32], from: bool| -> String {
        let end = |edge: usize| {
            let (source, reader) = workload.edge(edge);
            let other = if from { source } else { reader };
            format!("{} ({})", workload.nodes[other].label(), family::of(workload).edge(workload, edge).text())
        };
        let all: Vec<String> = ids.iter().map(|&edge| end(edge as usize)).collect();
        if all.is_empty() { "nothing".into() } else { all.join(", ") }
    };
    let title = format!("─ {} (id {}) ", workload.nodes[node].label(), workload.nodes[node].id);
    let rule = "─".repeat(width.saturating_sub(title.chars().count()));
    let mut lines = vec![
        Line::from(vec![Span::styled(title, theme.bold(Role::Text)), Span::styled(rule, theme.fg(Role::Border))]),
        Line::from(vec![
            Span::styled("from ", muted),
            Span::raw(clip(&list(workload.dag.in_edges(node.index()), true), width.saturating_sub(5))),
        ]),
        Line::from(vec![
            Span::styled("to   ", muted),
            Span::raw(clip(&list(workload.dag.out_edges(node.index()), false), width.saturating_sub(5))),
        ]),
    ];
    lines.extend(nodes::details(workload, node, width).into_iter().map(|(title, text)| {
        let text = clip(&text, width);
        if title { Line::styled(text, muted) } else { Line::raw(text) }
    }));
    let hidden = lines.len().saturating_sub(area.height as usize);
    if hidden > 0 && area.height > 1 {
        lines.truncate(area.height as usize - 1);
        lines.push(Line::styled(format!("  … {} more lines", hidden + 1), muted));
    }
    let told = lines.len() as u16;
    frame.render_widget(Paragraph::new(lines), area);
    told.min(area.height)
}

fn draw_edges(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    let (edges, theme) = (model.session.workload.dag.edges().len(), &model.appearance.theme);
    if edges == 0 {
        frame.render_widget(Span::styled("there are no edges", theme.fg(Role::Muted)), area);
        return;
    }
    let width = area.width as usize;
    let name = (width.saturating_sub(2 * VALUE + 6) / 2).min(36);
    let per = family::of(&model.session.workload).edge_title();
    let titles = format!("  {}  {}{}", fit("from", name), fit("to", name + 1), fit_right(per, VALUE + 4));
    frame.render_widget(Span::styled(clip(&titles, width), theme.fg(Role::Muted)), rows(area, 0, 1));
    let list = rows(area, 1, area.height);
    let largest = (0..edges)
        .map(|i| family::of(&model.session.workload).edge(&model.session.workload, i).value())
        .fold(f64::MIN_POSITIVE, f64::max);
    let first = scrolled(model.views.workload.cursor, list.height as usize, edges);
    for (y, i) in (list.y..list.bottom()).zip(first..edges) {
        let line = Rect { y, height: 1, ..list };
        let selected = i == model.views.workload.cursor;
        let label = |v: NodeIndex| fit(&model.session.workload.nodes[v].label(), name);
        let (source, reader) = model.session.workload.edge(i);
        let carried = family::of(&model.session.workload).edge(&model.session.workload, i);
        let (cost, text) = (carried.value(), carried.text());
        let space = width.saturating_sub(2 * name + VALUE + 12);
        let spans = vec![
            Span::styled(if selected { "▌ " } else { "  " }, theme.fg(Role::Focus)),
            Span::raw(label(source)),
            Span::styled("→ ", theme.fg(Role::Muted)),
            Span::raw(label(reader)),
            Span::raw(fit_right(&text, VALUE + 4)),
            Span::raw("  "),
            Span::styled(bar::solid(cost / largest, space.min(40)), theme.fg(Role::Communication)),
        ];
        frame.render_widget(Line::from(spans), line);
        if selected && model.focus == Focus::View {
            frame.buffer_mut().set_style(line, theme.selected());
        }
        marks.hits.push((line, Hit::ListRow(i)));
    }
    scrollbar(frame, narrower(list), theme, (first, usize::from(list.height), edges));
}

/// List without its last column, which has the scrollbar.
fn narrower(list: Rect) -> Rect {
    Rect { width: list.width.saturating_sub(1), ..list }
}

/// Provenance of the file: (is a title, text).
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
        None => section("Source", &["the file does not state its source".to_string()]),
    }
    if !workload.unknown_fields.is_empty() {
        section("Fields not used", &workload.unknown_fields);
    }
    lines
}

/// Findings as text: (is a title, text).
fn findings(model: &Model, width: usize) -> Vec<(bool, String)> {
    let mut lines = vec![];
    for finding in &model.session.findings {
        let title = format!("{}: {}", finding.severity, finding.subject(&model.session.workload));
        lines.extend(wrap(&title, width).into_iter().map(|text| (true, text)));
        for text in [finding.what.as_str(), finding.why] {
            let wrapped = wrap(text, width.saturating_sub(2));
            lines.extend(wrapped.into_iter().map(|text| (false, format!("  {text}"))));
        }
        lines.push((false, String::new()));
    }
    if lines.is_empty() {
        lines.push((false, "no finding: nothing in this profile should mislead a planner".into()));
    }
    lines
}

/// Draws lines of text from the selected one on.
fn draw_text(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks, lines: Vec<(bool, String)>) {
    let theme = &model.appearance.theme;
    let (count, visible) = (lines.len(), usize::from(area.height));
    let first = model.views.workload.cursor.min(count.saturating_sub(visible));
    marks.views.workload = Some(first);
    let shown: Vec<Line<'_>> = lines
        .into_iter()
        .skip(first)
        .map(|(title, text)| Line::styled(text, if title { theme.bold(Role::Text) } else { plain() }))
        .collect();
    frame.render_widget(Paragraph::new(shown), area);
    scrollbar(frame, narrower(area), theme, (first, visible, count));
}

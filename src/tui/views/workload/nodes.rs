//! List of nodes of the Workload view: its columns, its groups, and the details of one node.

use ratatui::text::{Line, Span};

use unicode_width::UnicodeWidthStr;

use crate::{
    family::{
        self,
        describe::{CPU_ONLY, Detail},
    },
    tui::{
        paint::text::{clip, fit, fit_right},
        theme::{Role, Theme},
        widget::tree::{Branch, TreePane},
    },
    workload::{NodeIndex, Workload},
};

/// Maximum length of a bar, cells.
const LONGEST: usize = 40;

/// Minimum width of a name, cells.
const NAME: usize = 12;

/// Value columns with their widths in cells, wide enough to separate titles. Columns that do not fit are dropped from
/// the end.
fn columns(workload: &Workload, width: usize) -> impl Iterator<Item = (&'static str, usize)> {
    let mut room = width.saturating_sub(NAME + 2);
    let all = family::of(workload).columns().iter().map(|&(title, width)| (title, width.max(title.len() + 2)));
    all.take_while(move |&(_, width)| {
        let fits = width <= room;
        room = room.saturating_sub(width);
        fits
    })
}

/// Width of the name including the signs of the tree, for a width, cells.
fn name_width(workload: &Workload, width: usize) -> usize {
    let values: usize = columns(workload, width).map(|column| column.1).sum();
    // Reserve space for a bar after the values, unless names need it.
    let (with, without) = (width.saturating_sub(values + 2 + 14), width.saturating_sub(values + 2));
    with.max(without.min(28)).clamp(NAME, 48)
}

/// Line of titles.
pub(super) fn titles(workload: &Workload, width: usize) -> String {
    let mut text = format!(
        "   {}",
        fit(family::of(workload).nouns().trim_end_matches('s'), name_width(workload, width).saturating_sub(3))
    );
    for (title, width) in columns(workload, width) {
        text += &fit_right(title, width);
    }
    text
}

/// Node of a row of the tree; the first one of a group.
pub(super) fn selected(workload: &Workload, path: &[u32]) -> Option<NodeIndex> {
    let groups = family::of(workload).groups(workload);
    let group = groups.get(*path.first()? as usize)?;
    group.get(path.get(1).map_or(0, |&i| i as usize)).copied()
}

/// Rows of the list.
pub(super) fn branches(workload: &Workload, width: usize, theme: &Theme) -> Vec<Branch> {
    let family = family::of(workload);
    let name = name_width(workload, width);
    let groups = family::of(workload).groups(workload);
    let slowest = workload.indices().map(|node| family.weight(node)).fold(f64::MIN_POSITIVE, f64::max);
    let values: usize = columns(workload, width).map(|column| column.1).sum();
    let space = width.saturating_sub(name + 3 + values + 4).min(LONGEST);
    let row = |members: &[NodeIndex], label: String, depth: usize| {
        let mut spans = vec![Span::raw(fit(&label, name.saturating_sub(TreePane::indent(depth))))];
        for (text, (_, width)) in family.cells(members).into_iter().zip(columns(workload, width)) {
            let role = if text == CPU_ONLY { Role::Warning } else { Role::Text };
            spans.push(Span::styled(fit_right(&shortened(&text, width - 1), width), theme.fg(role)));
        }
        spans.push(Span::raw("  "));
        // Half a line: full bars would merge into one block.
        let cells = (family.weight(members[0]) / slowest * space as f64).round() as usize;
        spans.push(Span::styled("▄".repeat(cells.min(space)), theme.fg(Role::Forward)));
        Branch { label, line: Line::from(spans), children: vec![] }
    };
    let numbered = |node: NodeIndex| workload.nodes[node].numbered();
    let branch = |members: &Vec<NodeIndex>| {
        if members.len() == 1 {
            return row(members, numbered(members[0]), 0);
        }
        let label = family.group_label(workload, members);
        let mut branch = row(members, label, 0);
        branch.children = members.iter().map(|&i| row(&[i], numbered(i), 1)).collect();
        branch
    };
    groups.iter().map(branch).collect()
}

/// Text of a cell, or as many factors of a product as fit.
fn shortened(text: &str, width: usize) -> String {
    let factors: Vec<&str> = text.split(" × ").collect();
    let fitting = (1..factors.len()).rev().map(|count| format!("{} …", factors[..count].join(" × ")));
    match text.width() <= width {
        true => text.to_string(),
        false => fitting.into_iter().find(|text| text.width() <= width).unwrap_or_else(|| clip(text, width)),
    }
}

/// Remaining profile of a node: (is a title, text). Columns that do not fit are dropped.
pub(super) fn details(workload: &Workload, node: NodeIndex, width: usize) -> Vec<(bool, String)> {
    let text = |detail| match detail {
        Detail::Line(text) => (false, text),
        Detail::Row { title, cells: [degree, mode, time, parameters, memory] } => {
            let mut text = format!("{degree:>3}  {}{}", fit(&mode, 20), fit_right(&time, 11));
            for column in [fit_right(&parameters, 12), format!("   {memory}")] {
                if text.width() + column.width() > width {
                    break;
                }
                text += &column;
            }
            (title, text)
        }
    };
    family::of(workload).details(node).into_iter().map(text).collect()
}

//! Chart of node costs below the list, if it fits, in the order of the network. A column is one node or the mean of
//! several; its hue is the stage in the plan. `O(nodes + cells)`.

use std::sync::Arc;

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use crate::{
    family,
    tui::{
        model::Model,
        paint::{area::rows, map::EIGHTHS, shades::Shades, text::fit_right},
        theme::Role,
    },
    workload::{NodeIndex, Workload},
};

/// Minimum and maximum height of the chart, rows.
const LEAST: u16 = 9;
const MOST: u16 = 12;
/// Width of the figures at the left, and maximum width of a node, columns.
const LABEL: u16 = 12;
const WIDEST: u16 = 8;

/// Draws the chart; `selected` is the node marked below its column.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    (workload, selected): (&Arc<Workload>, NodeIndex),
) {
    let count = workload.nodes.len();
    if area.height < LEAST || area.width < LABEL + 20 || count < 2 {
        return;
    }
    let (theme, family) = (&model.appearance.theme, family::of(workload));
    let nouns = family.nouns();
    let (weight, show) = family.weight_format();
    let width = usize::from(area.width - LABEL - 1);
    let each = (width / count).clamp(1, usize::from(WIDEST));
    let together = count.div_ceil(width);
    let columns = count.div_ceil(together);
    let value = |column: usize| {
        let nodes = column * together..((column + 1) * together).min(count);
        let many = nodes.len().max(1) as f64;
        nodes.map(|node| family.weight(NodeIndex::new(node))).sum::<f64>() / many
    };
    let most = (0..columns).map(value).fold(f64::MIN_POSITIVE, f64::max);
    let stages = stages(model, workload);
    let mut told = format!("{weight} of each, in order");
    if together > 1 {
        told += &format!(", a column the mean of {together}");
    }
    if stages.is_some() {
        told += "; hue: its stage in the plan";
    }
    let head = vec![
        Span::styled(format!("{}{}  ", nouns[..1].to_uppercase(), &nouns[1..]), theme.bold(Role::Text)),
        Span::styled(told, theme.fg(Role::Muted)),
    ];
    frame.render_widget(Line::from(head), rows(area, 0, 1));
    let chart = rows(area, 1, (area.height - 2).min(MOST));
    let label = |y: u16, text: &str| {
        (Span::styled(fit_right(text, usize::from(LABEL) - 1), theme.fg(Role::Muted)), Rect { y, height: 1, ..chart })
    };
    for (text, place) in [label(chart.y, &show(most)), label(chart.bottom() - 1, "0")] {
        frame.render_widget(text, place);
    }
    let shades = Shades::new(theme, model.appearance.depth);
    let buffer = frame.buffer_mut();
    for column in 0..columns {
        let eighths = (value(column) / most * f64::from(chart.height) * 8.0).round() as u16;
        let eighths = if value(column) > 0.0 { eighths.max(1) } else { 0 };
        let style = match stages.as_ref().and_then(|(of, all)| of[column * together].map(|stage| (stage, all))) {
            Some((stage, all)) => Style::new().fg(shades.color(shades.stage(stage, all))),
            None => theme.fg(Role::Forward),
        };
        // One blank column between wide ones.
        let own = if each > 2 { each - 1 } else { each };
        let x = chart.x + LABEL + (column * each) as u16;
        for row in 0..chart.height {
            let filled = eighths.saturating_sub(8 * row).min(8);
            if filled > 0 {
                let y = chart.bottom() - 1 - row;
                buffer.set_string(x, y, EIGHTHS[usize::from(filled)].repeat(own), style);
            }
        }
        if selected.index() / together == column && chart.bottom() < area.bottom() {
            let sign = format!("▲ {}", workload.nodes[selected].numbered());
            let room = usize::from(area.right().saturating_sub(x));
            buffer.set_stringn(x, chart.bottom(), sign, room, theme.fg(Role::Accent));
        }
    }
}

/// Stage of each node in the shown plan, and the places of the stages; `None` if there is only one or no such plan.
fn stages<'a>(model: &'a Model, workload: &Arc<Workload>) -> Option<(Vec<Option<usize>>, &'a [f64])> {
    let shown = model.planning.shown.as_ref().filter(|shown| Arc::ptr_eq(&shown.workload, workload))?;
    let (plan, _) = shown.plan().filter(|(plan, _)| plan.stages.len() > 1)?;
    let mut of = vec![None; workload.nodes.len()];
    for (i, stage) in plan.stages.iter().enumerate() {
        for &node in &stage.nodes {
            if let Some(place) = of.get_mut(node.index()) {
                *place = Some(i);
            }
        }
    }
    Some((of, &shown.places))
}

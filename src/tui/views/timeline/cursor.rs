//! Cursor of the timeline: its position, and a description of what is under it.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier},
    text::{Line, Span},
};

use super::draw::{LABEL, Row};
use crate::{
    simulate::{Event, EventKind},
    tui::{
        model::Model,
        paint::phrases::flow,
        simulated::{Lane, Simulated},
        theme::{Role, Theme},
    },
    units,
};

/// Lines below the chart: the time under the cursor, and the events of a row at that time.
pub(super) fn lines(simulated: &Simulated, row: Row, cursor_s: f64, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let mut groups = vec![vec![
        Span::styled("cursor ", theme.fg(Role::Muted)),
        Span::styled(units::seconds(cursor_s), theme.bold(Role::Accent)),
        Span::raw(" "),
    ]];
    groups.extend(tell(simulated, row, cursor_s).into_iter().map(|phrase| vec![Span::raw(phrase)]));
    flow(groups, " ", width, 2)
}

/// Draws a mark on the axis, the first line of the area, and a vertical line through empty cells.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, model: &Model, window: (f64, f64), theme: &Theme) {
    let columns = area.width.saturating_sub(LABEL);
    let (from, to) = window;
    if columns == 0 || to <= from {
        return;
    }
    let share = (model.simulation.playing.at_s - from) / (to - from);
    if !(0.0..=1.0).contains(&share) {
        return;
    }
    let x = area.x + LABEL + ((share * f64::from(columns)) as u16).min(columns - 1);
    // Keep the figures of the axis whole, including the blank before their unit.
    let beside = [x.checked_sub(1), x.checked_add(1)].into_iter().flatten();
    let blank = beside.filter_map(|x| buffer.cell((x, area.y))).any(|cell| cell.symbol() == " ");
    if let Some(cell) = buffer.cell_mut((x, area.y)) {
        if cell.symbol() == "│" || (cell.symbol() == " " && blank) {
            cell.set_symbol("▾");
        } else {
            cell.modifier.insert(Modifier::REVERSED);
        }
        cell.set_style(theme.bold(Role::Accent));
    }
    for y in area.y + 1..area.bottom() {
        if let Some(cell) = buffer.cell_mut((x, y)) {
            let empty = matches!(cell.symbol(), " " | "▔") && cell.bg == theme.base().bg.unwrap_or(Color::Reset);
            if empty {
                cell.set_symbol("│").set_style(theme.fg(Role::Accent));
            } else if theme.color(Role::Text) == Color::Reset {
                cell.modifier.insert(Modifier::REVERSED);
            } else {
                // A line over the cell's own colour: its fill becomes the background.
                if !matches!(cell.symbol(), " " | "▏") && !cell.symbol().is_ascii() {
                    cell.bg = cell.fg;
                }
                cell.set_symbol("│").set_fg(theme.color(Role::Text));
            }
        }
    }
}

/// Description of what is under the cursor, as phrases that stay together.
fn tell(simulated: &Simulated, (stage, replica): Row, time: f64) -> Vec<String> {
    let names = &simulated.shown.names;
    let name = names.long(stage);
    let of = match replica {
        _ if !simulated.pipeline.steps.is_empty() => "all devices".to_string(),
        Some(replica) => format!("{name}, replica {}", replica + 1),
        None if simulated.timeline.replicas.get(stage).is_some_and(|&r| r > 1) => format!("{name}, replica 1"),
        None => name.to_string(),
    };
    let replica = replica.unwrap_or(0);
    let compute = simulated.at(Lane::Compute, stage, replica, time);
    let link = simulated.at(Lane::Links, stage, replica, time);
    let words = |event: &Event| {
        let m = event.microbatch;
        if let Some(part) = simulated.part(event) {
            return match event.kind {
                EventKind::ToHost => format!("sending the output of {part}"),
                EventKind::FromHost => format!("receiving the input of {part}"),
                _ => part,
            };
        }
        if let Some(step) = simulated.pipeline.steps.get(m as usize) {
            let name = simulated.shown.workload.nodes[step.node].label();
            let pass = if event.kind == EventKind::Backward { "backward" } else { "forward" };
            return format!("{pass} of {name}");
        }
        match event.kind {
            EventKind::Forward => format!("forward of microbatch {m}"),
            EventKind::Recompute => format!("recomputing microbatch {m}"),
            EventKind::Backward => format!("backward of microbatch {m}"),
            EventKind::WeightGradient => format!("weight gradients of microbatch {m}"),
            EventKind::OptimizerStep => "optimizer step".to_string(),
            EventKind::SendActivation { to, .. } => format!("activations of {m} to {}", names.long(to as usize)),
            EventKind::SendGradient { to, .. } => format!("gradients of {m} to {}", names.long(to as usize)),
            EventKind::AllReduce if simulated.pipeline.settings.buckets > 1 => format!("all-reduce of bucket {m}"),
            EventKind::AllReduce => "all-reduce of the gradients".to_string(),
            EventKind::ToHost => "to the host".to_string(),
            EventKind::FromHost => "from the host".to_string(),
        }
    };
    // Name the part, if a schedule puts several parts of the model on a device.
    let parts = simulated.pipeline.virtual_stages(simulated.schedule());
    let in_part = |event: &Event| if parts > 1 { format!(", part {}", event.part + 1) } else { String::new() };
    let pair = simulated.pairs(stage, replica, time, time.next_up()).next();
    let mut told = match (compute, pair) {
        (Some(_), Some([first, .., last])) => vec![
            format!("{}{}", words(first), in_part(first)),
            format!("beside {}{}", words(last), in_part(last)),
            format!("on {of},"),
            format!("{} until {}", units::seconds(last.end_s - first.start_s), units::seconds(last.end_s)),
        ],
        (Some(event), _) => vec![
            format!("{}{}", words(&event), in_part(&event)),
            format!("on {of},"),
            format!("{} until {}", units::seconds(event.end_s - event.start_s), units::seconds(event.end_s)),
        ],
        _ if simulated.left_out(stage, replica, time) => {
            let left_out = simulated.timeline.left_out.clone().unwrap_or_default();
            let (first, last) = (left_out.start, left_out.end.saturating_sub(1));
            vec![
                format!("microbatches {first} to {last} repeat this pattern:"),
                "they are counted, but not drawn".into(),
            ]
        }
        _ => match simulated.neighbour(stage, replica, time, true) {
            Some(next) => vec![format!("idle: {of}"), format!("until {}", units::seconds(next))],
            None => vec![format!("{of} is done")],
        },
    };
    if let (Some(event), Some(last)) = (link, told.last_mut()) {
        last.push(';');
        told.push(words(&event));
    }
    told
}

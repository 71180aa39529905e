//! Devices drawn on their machines: a sign for each, that of its stage.

use ratatui::text::{Line, Span};

use super::{fit, links::title, scrolled};
use crate::{
    plan::Plan,
    tui::{
        shown::Shown,
        theme::{Role, Theme},
    },
};

/// Machines that are worth a picture of their own, at the least.
const SEVERAL: usize = 2;

/// Every device's stage, by machine; empty where there are no machines, or the plan numbers no devices.
fn machines(shown: &Shown, plan: &Plan) -> Vec<Vec<Option<usize>>> {
    let sizes = shown.limits.machines.sizes();
    if sizes.len() < SEVERAL || plan.stages.iter().all(|stage| stage.devices.is_empty()) {
        return vec![];
    }
    let mut machines: Vec<Vec<Option<usize>>> = sizes.iter().map(|&size| vec![None; usize::from(size)]).collect();
    for (i, stage) in plan.stages.iter().enumerate() {
        for &device in &stage.devices {
            if let Some(machine) = shown.limits.machines.machine_of(device) {
                machines[machine][(device - shown.limits.machines.first_of(machine)) as usize] = Some(i);
            }
        }
    }
    machines
}

/// The sign of a stage: 1 to 9, then letters, then the same again.
fn sign(stage: usize) -> char {
    let at = stage % 61;
    match at {
        0..9 => char::from(b'1' + at as u8),
        9..35 => char::from(b'a' + (at - 9) as u8),
        _ => char::from(b'A' + (at - 35) as u8),
    }
}

/// The picture, at most `height` lines; the machine with the first device of the selected stage is among them.
pub(super) fn lines(
    shown: &Shown,
    plan: &Plan,
    selected: usize,
    (width, height): (usize, usize),
    theme: &Theme,
) -> Vec<Line<'static>> {
    let machines = machines(shown, plan);
    let Some(Grid { name, largest, across, rows }) = Grid::new(&machines, width).filter(|_| height > 1) else {
        return vec![];
    };
    let visible = rows.min(height - 1);
    let first_device = plan.stages.get(selected).and_then(|stage| stage.devices.first());
    let home = first_device.and_then(|&device| shown.limits.machines.machine_of(device)).unwrap_or(0);
    let first = scrolled(home / across, visible, rows);
    let part = if visible < rows { format!(", {visible} of {rows} lines") } else { String::new() };
    let mut lines =
        vec![title(&format!("devices on their machines, each with its stage; · is idle{part}"), width, theme)];
    for row in first..first + visible {
        let mut spans = vec![];
        for (i, devices) in machines.iter().enumerate().skip(row * across).take(across) {
            let style = theme.fg(if i == home { Role::Text } else { Role::Muted });
            spans.push(Span::styled(fit(&format!("  machine {}", i + 1), name), style));
            for stage in devices.iter().take(width.saturating_sub(name)) {
                spans.push(match stage {
                    Some(stage) => Span::styled(sign(*stage).to_string(), theme.stage(*stage)),
                    None => Span::styled("·", theme.fg(Role::Muted)),
                });
            }
            spans.push(Span::raw(" ".repeat(largest - devices.len() + 2)));
        }
        lines.push(Line::from(spans));
    }
    lines
}

/// Lines that all of it takes.
pub(super) fn wanted(shown: &Shown, plan: &Plan, width: usize) -> usize {
    Grid::new(&machines(shown, plan), width).map_or(0, |grid| grid.rows + 1)
}

/// How machines are laid out.
struct Grid {
    /// Cells of a machine's name.
    name: usize,
    /// Devices of the largest machine.
    largest: usize,
    /// Machines in a line.
    across: usize,
    /// Lines.
    rows: usize,
}

impl Grid {
    fn new(machines: &[Vec<Option<usize>>], width: usize) -> Option<Self> {
        let largest = machines.iter().map(Vec::len).max()?;
        let name = machines.len().to_string().len() + 11;
        let across = (width / (name + largest + 2)).clamp(1, machines.len());
        Some(Grid { name, largest, across, rows: machines.len().div_ceil(across) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_have_signs_that_repeat_late() {
        assert_eq!([0, 8, 9, 34, 35, 60, 61].map(sign), ['1', '9', 'a', 'z', 'A', 'Z', '1']);
    }
}

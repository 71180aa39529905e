//! Arcs of the transfers below the map: between machines if there are several, else between stages. If all devices are
//! on one line, the arcs hang from them; otherwise a line names the ends.
//!
//! ```text
//! Transfers  most from stage 3 to stage 4: 640 MiB, activations of a microbatch
//! █ 1         █ 2         █ 3         █ 4
//! ╰───────────╯ ╰─────────╯ ╰━━━━━━━━━╯
//! ```
//! The largest transfers come first. Those without a free row are left out, and the title says so. `O(pairs · log
//! pairs)`, then at most [`MOST`] wires are laid, once per plan and size.

use std::collections::BTreeMap;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use crate::{
    family,
    plan::Plan,
    tui::{
        paint::{
            map_layout::MapLayout,
            phrases::whole,
            shades::Shades,
            topology::{
                self,
                grid::Grid,
                wiring::{Wire, Wiring},
            },
        },
        shown::ShownRun,
        theme::{Role, Theme},
    },
};

/// Maximum number of wires; more are unreadable.
const MOST: usize = 48;
/// Maximum number of machines side by side.
const MACHINES: usize = 16;

/// Arcs of a plan.
#[derive(Debug, Clone)]
pub(in crate::tui) struct Arcs {
    grid: Grid,
    /// Column, name and the stage that gives its hue; empty if the arcs hang from the map.
    heads: Vec<(usize, String, Option<usize>)>,
    told: String,
}

impl Arcs {
    /// Arcs in a width and a number of rows without title and names. `None` if there is no traffic, or if another
    /// picture shows it: a topology and operators that share all devices have their own.
    pub(super) fn new(shown: &ShownRun, layout: &MapLayout, width: u16, rows: usize) -> Option<Arcs> {
        let (plan, _) = shown.plan()?;
        if plan.topology.is_some() || shown.operators.is_some() {
            return None;
        }
        let width = usize::from(width);
        let choices = between_machines(shown, plan).into_iter().chain([between_stages(shown, plan)]);
        let mut fitting = choices.filter_map(|wiring| Some((fitted(&wiring, (width, rows), layout, plan)?, wiring)));
        let ((drawn, mut arcs), all) = fitting.next()?;
        let (drawn, all) = (drawn.wires.len(), all.wires.len());
        arcs.told = told(shown, (drawn < all).then_some((drawn, all)));
        Some(arcs)
    }

    /// Height of the arcs, rows.
    pub(super) fn rows(&self) -> u16 {
        1 + u16::from(!self.heads.is_empty()) + self.grid.rows() as u16
    }

    /// Draws the arcs.
    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect, (theme, shades): (&Theme, &Shades), places: &[f64]) {
        let mut lines = vec![];
        let room = usize::from(area.width).saturating_sub(11);
        let title = vec![
            Span::styled("Transfers  ", theme.bold(Role::Text)),
            Span::styled(whole(&self.told, room), theme.fg(Role::Muted)),
        ];
        let arcs = (0..self.grid.rows()).map(|row| topology::line(&self.grid, row, (theme, shades)));
        if self.heads.is_empty() {
            lines.extend(arcs);
            lines.push(Line::from(title));
        } else {
            lines.push(Line::from(title));
            lines.push(self.names(theme, shades, places));
            lines.extend(arcs);
        }
        for (y, line) in (area.y..area.bottom()).zip(lines) {
            buffer.set_line(area.x, y, &line, area.width);
        }
    }

    fn names(&self, theme: &Theme, shades: &Shades, places: &[f64]) -> Line<'static> {
        let mut spans = vec![];
        let mut at = 0;
        for (column, name, stage) in &self.heads {
            let hue =
                stage.map_or(theme.fg(Role::Muted), |stage| Style::new().fg(shades.color(shades.stage(stage, places))));
            spans.push(Span::raw(" ".repeat(column.saturating_sub(at))));
            spans.push(Span::styled("█ ", hue));
            spans.push(Span::styled(name.clone(), theme.fg(Role::Text)));
            at = column + 2 + name.chars().count();
        }
        Line::from(spans)
    }
}

/// Largest transfer, and the number of drawn ones.
fn told(shown: &ShownRun, part: Option<(usize, usize)>) -> String {
    let most = shown.traffic.iter().max_by(|a, b| a.amount.value().total_cmp(&b.amount.value()));
    let name = |stage| shown.names.long(stage);
    let most = most.map_or(String::new(), |flow| {
        let amount = flow.amount.text_beside(shown.limits.memory_limit());
        format!("most from {} to {}: {amount}", name(flow.from), name(flow.to))
    });
    let part = part.map_or(String::new(), |(drawn, all)| format!("the {drawn} heaviest of {all}, "));
    format!("{part}{most}, {}", family::of(&shown.workload).flows_of())
}

/// As many of the largest wires as have a free row.
fn fitted(wiring: &Wiring, (width, rows): (usize, usize), map: &MapLayout, plan: &Plan) -> Option<(Wiring, Arcs)> {
    let mut wires = wiring.wires.clone();
    wires.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.ends.cmp(&b.ends)));
    wires.truncate(MOST);
    let places = places(wiring, map);
    while !wires.is_empty() {
        let fewer = Wiring { wires: wires.clone(), ..wiring.clone() };
        let hanging = places.as_ref().and_then(|places| Grid::below(&fewer, width, places));
        let named = hanging.is_none();
        let grid = hanging.or_else(|| Grid::new(&fewer, width));
        if let Some(grid) = grid.filter(|grid| (1..=rows).contains(&grid.rows())) {
            let heads = if named { heads(&fewer, grid.pitch, plan) } else { vec![] };
            return Some((fewer, Arcs { grid, heads, told: String::new() }));
        }
        wires.truncate(wires.len() * 3 / 4);
    }
    None
}

fn heads(wiring: &Wiring, pitch: usize, plan: &Plan) -> Vec<(usize, String, Option<usize>)> {
    let own = wiring.columns.len() == plan.stages.len() && wiring.devices.is_empty();
    let columns = wiring.columns.iter().enumerate();
    columns.map(|(i, name)| (i * pitch, name.clone(), own.then_some(i))).collect()
}

/// Columns and widths on the map, if all are on one line and each is in one piece.
fn places(wiring: &Wiring, map: &MapLayout) -> Option<Vec<(usize, usize)>> {
    let (_, line, _) = *map.places.first()?;
    if map.size.height == 0 || map.places.iter().any(|&(_, y, _)| y != line) {
        return None;
    }
    let mut ends: Vec<Option<(u16, u16, usize, usize)>> = vec![None; wiring.columns.len()];
    for (at, (seat, &(x, _, _))) in map.atlas.seats.iter().zip(&map.places).enumerate() {
        let column = match wiring.devices.is_empty() {
            true => seat.stage,
            false => wiring.devices.iter().position(|devices| devices.contains(&seat.device)),
        };
        let Some(end) = column.and_then(|column| ends.get_mut(column)) else { continue };
        let right = x + map.size.width;
        match end {
            None => *end = Some((x, right, at, at)),
            Some((_, to, _, last)) if *last + 1 == at => (*to, *last) = (right, at),
            Some(_) => return None,
        }
    }
    ends.into_iter().map(|end| end.map(|(from, to, ..)| (usize::from(from), usize::from(to - from)))).collect()
}

/// Wires with loads relative to the largest. Both directions count as one.
fn wires(amounts: BTreeMap<[usize; 2], f64>) -> Vec<Wire> {
    let most = amounts.values().copied().fold(f64::MIN_POSITIVE, f64::max);
    let heavy = amounts.into_iter().filter(|(_, amount)| *amount > 0.0);
    heavy.map(|(ends, amount)| Wire { ends, share: amount / most }).collect()
}

fn between_stages(shown: &ShownRun, plan: &Plan) -> Wiring {
    let mut amounts: BTreeMap<[usize; 2], f64> = BTreeMap::new();
    for flow in &shown.traffic {
        let ends = [flow.from.min(flow.to), flow.from.max(flow.to)];
        *amounts.entry(ends).or_default() += flow.amount.value();
    }
    let columns = (0..plan.stages.len()).map(|stage| shown.names.short(stage).to_string()).collect();
    Wiring { columns, devices: vec![], hubs: vec![], wires: wires(amounts) }
}

/// Traffic between machines, by the stages on them; `None` for one machine, or for many.
fn between_machines(shown: &ShownRun, plan: &Plan) -> Option<Wiring> {
    let machines = &shown.limits.machines;
    let sizes = machines.sizes();
    if !(2..=MACHINES).contains(&sizes.len()) {
        return None;
    }
    let on: Vec<Vec<usize>> = plan
        .stages
        .iter()
        .map(|stage| {
            let mut own: Vec<usize> = stage.devices.iter().filter_map(|&d| machines.machine_of(d)).collect();
            own.sort_unstable();
            own.dedup();
            own
        })
        .collect();
    let mut amounts: BTreeMap<[usize; 2], f64> = BTreeMap::new();
    for flow in &shown.traffic {
        let (senders, receivers) = (on.get(flow.from)?, on.get(flow.to)?);
        // Each pair of machines carries an equal part of the stages' traffic.
        let part = flow.amount.value() / (senders.len() * receivers.len()) as f64;
        for &from in senders {
            for &to in receivers.iter().filter(|&&to| to != from) {
                *amounts.entry([from.min(to), from.max(to)]).or_default() += part;
            }
        }
    }
    if amounts.is_empty() {
        return None;
    }
    let mut first = 0;
    let devices = sizes.iter().map(|&size| {
        let own = first..first + u32::from(size);
        first = own.end;
        own.collect()
    });
    let devices = devices.collect();
    let columns = (1..=sizes.len()).map(|machine| format!("machine {machine}")).collect();
    Some(Wiring { columns, devices, hubs: vec![], wires: wires(amounts) })
}

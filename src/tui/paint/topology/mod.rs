//! Topology of a plan with the load of each link. Shows machines with one bundle each, the selected machine with all
//! its links, and the fullest links in figures.
//!
//! ```text
//! ─ dgx-1: links under this plan; fullest gpu3 → gpu0: 1.659 ms a microbatch ──────
//! █ gpu0       █ gpu1       █ gpu2       █ gpu3
//!   stage 1      stage 1      stage 1      stage 2
//! ┃  │         │  ┆         ┆  ┆         │ ┃
//! ┃  ╰─────────╯  ╰┄┄┄┄┄┄┄┄┄╯  ┆         │ ┃
//! gpu3 → gpu0   2 x NVLink 2   50 GB/s   1.659 ms  ▄▄▄▄▄▄▄▄▄▄
//! ```
//! Idle links are dotted and the fullest are heavy, so colour is not needed. If a machine does not fit with all its
//! links, only the loaded ones are drawn. `O(links · rows)` per frame.

pub(in crate::tui) mod grid;
pub(in crate::tui) mod wiring;

use std::sync::Arc;

use ratatui::{
    style::Style,
    text::{Line, Span},
};

use crate::{
    cluster::topology::Topology,
    study::links::LinkLoad,
    tui::{
        paint::{
            links::title,
            shades::{Activity, Shades},
            text::{fit, fit_right},
            topology::{
                grid::{FULLEST, Grid, Sign},
                wiring::Wiring,
            },
        },
        shown::ShownRun,
        theme::{Role, Theme},
    },
    units,
};

/// Minimum and maximum rows of the list of links below pictures.
const LISTED: (usize, usize) = (3, 8);
/// Maximum number of machines drawn side by side.
const MACHINES: usize = 16;

/// Inputs of the section.
pub(in crate::tui) struct Section<'a> {
    pub shown: &'a ShownRun,
    pub theme: &'a Theme,
    pub shades: Shades,
    /// Stage whose machine is drawn.
    pub selected: usize,
}

/// Columns, and the lines below them.
struct Picture {
    wiring: Wiring,
    grid: Grid,
}

impl Picture {
    fn new(wiring: Wiring, width: usize) -> Option<Picture> {
        let grid = Grid::new(&wiring, width)?;
        (grid.rows() > 0).then_some(Picture { wiring, grid })
    }

    /// Height including the names of the columns, rows.
    fn rows(&self) -> usize {
        self.grid.rows() + 2
    }
}

impl Section<'_> {
    fn topology(&self) -> Option<&Arc<Topology>> {
        self.shown.plan()?.0.topology.as_ref()
    }

    /// Load of each link relative to the fullest.
    fn shares(&self, topology: &Topology) -> Vec<f64> {
        let mut shares = vec![0.0_f64; topology.links().len()];
        let fullest = self.shown.links.first().map_or(1.0, |load| load.seconds).max(f64::MIN_POSITIVE);
        for load in &self.shown.links {
            let share = &mut shares[load.channel as usize / 2];
            *share = share.max(load.seconds / fullest);
        }
        shares
    }

    /// Lines of the full section at a width; 0 if the plan has no topology.
    pub(in crate::tui) fn wanted(&self, width: usize) -> usize {
        if self.topology().is_none() {
            return 0;
        }
        let pictures = self.pictures(width, usize::MAX);
        pictures.iter().map(|picture| picture.rows() + 1).sum::<usize>().max(1)
            + self.shown.links.len().clamp(1, LISTED.1)
    }

    /// Pictures for a width that fit into `rows`: machines first, then the inside of one.
    fn pictures(&self, width: usize, rows: usize) -> Vec<Picture> {
        let Some(topology) = self.topology() else { return vec![] };
        let (shares, machines) = (self.shares(topology), topology.machines().sizes().len());
        let mut left = rows;
        let mut pictures = vec![];
        let mut take = |wirings: [Option<Wiring>; 2]| {
            let blank = usize::from(!pictures.is_empty());
            let fits = |picture: &Picture| picture.rows() + blank <= left;
            let mut tried = wirings.into_iter().flatten();
            if let Some(picture) = tried.find_map(|wiring| Picture::new(wiring, width).filter(fits)) {
                left -= picture.rows() + blank;
                pictures.push(picture);
            }
        };
        if (2..=MACHINES).contains(&machines) {
            take([Some(Wiring::of_machines(topology, &shares)), None]);
        }
        let device = self.shown.plan().and_then(|(plan, _)| plan.stages.get(self.selected)?.devices.first().copied());
        let machine =
            device.filter(|&d| (d as usize) < topology.devices()).map_or(0, |d| topology.machine_of(d as usize));
        let whole = Wiring::of_machine(topology, &shares, machine);
        let loaded = whole.loaded();
        take([Some(whole), Some(loaded).filter(|loaded| !loaded.wires.is_empty())]);
        pictures
    }

    /// Lines of the section for a width and height in cells.
    pub(in crate::tui) fn lines(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let Some(topology) = self.topology().filter(|_| height > 1) else { return vec![] };
        let links = &self.shown.links;
        let most = links.first().map_or("; none carries anything".to_string(), |load| {
            format!("; fullest {}: {} a microbatch", arrowed(&load.name), units::seconds(load.seconds))
        });
        let mut lines = vec![title(&format!("{}: links under this plan{most}", topology.name), width, self.theme)];
        let least = links.len().min(LISTED.0);
        let pictures = self.pictures(width, (height - 1).saturating_sub(least));
        for (i, picture) in pictures.iter().enumerate() {
            lines.extend((i > 0).then(Line::default));
            lines.extend(self.columns(picture));
            lines.extend((0..picture.grid.rows()).map(|row| line(&picture.grid, row, (self.theme, &self.shades))));
        }
        let room = height.saturating_sub(lines.len()).min(LISTED.1);
        lines.extend(links.iter().take(room).map(|load| self.listed(load, width)));
        lines
    }

    /// Names of the columns, with the stages on them.
    fn columns(&self, picture: &Picture) -> [Line<'static>; 2] {
        let mut lines = [vec![], vec![]];
        let Some((plan, _)) = self.shown.plan() else { return lines.map(Line::from) };
        let pitch = picture.grid.pitch;
        for (name, devices) in picture.wiring.columns.iter().zip(&picture.wiring.devices) {
            let holds = |(_, stage): &(usize, &crate::plan::Stage)| stage.devices.iter().any(|d| devices.contains(d));
            let stages: Vec<usize> = plan.stages.iter().enumerate().filter(holds).map(|(i, _)| i).collect();
            let hue = stages.first().map_or(self.theme.fg(Role::Border), |&stage| {
                Style::new().fg(self.shades.color(self.shades.stage(stage, &self.shown.places)))
            });
            let numbers: Vec<String> = stages.iter().map(|stage| (stage + 1).to_string()).collect();
            let told = match numbers.as_slice() {
                [] => "idle".to_string(),
                [only] => format!("stage {only}"),
                [first, .., last] => format!("stages {first}–{last}"),
            };
            // Where words do not fit, show the number alone.
            let told =
                if told.chars().count() + 3 > pitch { told.replace("stages ", "").replace("stage ", "") } else { told };
            lines[0].push(Span::styled(if stages.is_empty() { "□ " } else { "█ " }, hue));
            lines[0].push(Span::styled(fit(name, pitch - 2), self.theme.bold(Role::Text)));
            lines[1].push(Span::styled(format!("  {}", fit(&told, pitch - 2)), self.theme.fg(Role::Muted)));
        }
        lines.map(Line::from)
    }

    /// Link in figures.
    fn listed(&self, load: &LinkLoad, width: usize) -> Line<'static> {
        let fullest = self.shown.links.first().map_or(1.0, |load| load.seconds).max(f64::MIN_POSITIVE);
        let text = self.theme.fg(Role::Text);
        let muted = self.theme.fg(Role::Muted);
        let name = 24.min(width / 3);
        let mut spans = vec![Span::styled(fit(&arrowed(&load.name), name), text)];
        let kind = 20;
        let fixed = name + 12 + 12 + 2;
        if width >= fixed + kind + 8 {
            spans.push(Span::styled(fit(&load.kind, kind), muted));
        }
        let bandwidth = format!("{}/s", units::bytes_exact(load.bandwidth));
        spans.push(Span::styled(fit_right(&bandwidth, 12), muted));
        spans.push(Span::styled(fit_right(&units::seconds(load.seconds), 12), text));
        let used: usize = spans.iter().map(Span::width).sum();
        let bar = width.saturating_sub(used + 2).min(40);
        let share = load.seconds / fullest;
        let cells = (share * bar as f64).round() as usize;
        spans.push(Span::styled(format!("  {}", "▄".repeat(cells)), strength(share, (self.theme, &self.shades))));
        Line::from(spans)
    }
}

/// Row of a grid.
pub(in crate::tui) fn line(grid: &Grid, row: usize, look: (&Theme, &Shades)) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = vec![];
    for sign in grid.signs(row) {
        let (c, style) = match sign {
            Sign::Blank => (' ', Style::new()),
            Sign::Letter(c) => (c, look.0.fg(Role::Muted)),
            Sign::Line(c, share) => (c, strength(share, look)),
        };
        match spans.last_mut().filter(|span| span.style == style) {
            Some(span) => span.content.to_mut().push(c),
            None => spans.push(Span::styled(c.to_string(), style)),
        }
    }
    Line::from(spans)
}

/// Style of a link by its load.
fn strength(share: f64, (theme, shades): (&Theme, &Shades)) -> Style {
    match share {
        share if share <= 0.0 => theme.fg(Role::Border),
        share if share >= FULLEST || !shades.mixes() => theme.fg(Role::Communication),
        share => {
            let shade = shades.activity(Activity::Communication);
            Style::new().fg(shades.color(shades.towards_ground(shade, 0.35 + 0.65 * share)))
        }
    }
}

/// Name of a link, with an arrow.
pub(in crate::tui) fn arrowed(name: &str) -> String {
    name.replace("->", "→").replace("<>", "↔")
}

//! Groups that communicate: the devices once for each axis of the layout, with those of one device bright.
//!
//! ```text
//! Groups  64 devices; device 13 and its groups are bright
//!            TP 4  16 groups          CP 2  32 groups          DP 2 ..
//! machine 0   0  1  2  3  4  5  6  7   0  1  2 ..
//! machine 1   8  9 10 11 12 13 14 15   8  9 ..
//!
//! group  with          where          link              carries               an iteration
//! TP 4   12-15         machine 1      NVLink 450 GB/s   activations, layers   434.9 ms  3.0 %
//! ```
//!
//! `O(devices)` for each axis and frame.

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use crate::{
    family::training::{
        self, Estimate, configured,
        ranks::{GroupAxis, RankNumbers},
    },
    plan::Plan,
    study::improve,
    tui::{
        model::Model,
        paint::{
            area::rows,
            shades::Shades,
            text::{clip, fit, fit_right, fitting, wrap},
        },
        shown::ShownRun,
        theme::{Role, Theme},
    },
    units,
    workload::TrainingProfile,
};

/// Width of the names of machines, cells.
const NAME: u16 = 12;
/// Widest row of devices.
const ROW: usize = 8;
/// Number of devices up to which cells have numbers.
const NUMBERED: usize = 128;
/// Columns of the table with their widths.
const COLUMNS: [(&str, usize); 6] =
    [("group", 9), ("with", 20), ("where", 18), ("an iteration", 18), ("link, each way", 20), ("carries", 26)];

/// Groups of a plan, and the time that each axis takes.
#[derive(Debug)]
pub(in crate::tui) struct Groups {
    /// Axes whose groups have more than one device.
    axes: Vec<AxisGroups>,
    /// Prediction of the run; `None` if an engine refuses it.
    estimate: Option<Estimate>,
    /// True if links are those of a topology.
    routed: bool,
}

impl Groups {
    /// Groups of a plan; `None` unless it is one of a model to be trained. Costs one prediction.
    pub(super) fn of(shown: &ShownRun, plan: &Plan) -> Option<Groups> {
        let profile = shown.workload.training()?;
        let configuration = configured::of_plan(profile, plan);
        let mut run = profile.run(&configuration, shown.limits.samples());
        if let Some(wired) = &plan.topology {
            let devices: Vec<usize> = plan.devices().map(|device| device as usize).collect();
            run.links = training::links(wired, &devices, &run);
        }
        let axes = AxisGroups::of(&RankNumbers::of(&configuration.layout));
        Some(Groups { axes, estimate: improve::predict(profile, &run), routed: run.links.is_some() })
    }
}

/// Axis with its groups.
#[derive(Debug)]
struct AxisGroups {
    axis: GroupAxis,
    degree: usize,
    /// Group of each device.
    group_of: Vec<usize>,
    groups: Vec<Vec<usize>>,
}

fn label(axis: GroupAxis) -> &'static str {
    match axis {
        GroupAxis::Tensor => "TP",
        GroupAxis::Context => "CP",
        GroupAxis::Expert => "EP",
        GroupAxis::Data => "DP",
        GroupAxis::Pipeline => "PP",
    }
}

/// Data that the groups of an axis exchange.
fn carries(axis: GroupAxis) -> &'static str {
    match axis {
        GroupAxis::Tensor => "activations, every layer",
        GroupAxis::Context => "keys and values",
        GroupAxis::Expert => "tokens, every layer",
        GroupAxis::Data => "gradients, once",
        GroupAxis::Pipeline => "activations, gradients",
    }
}

/// Name of an axis among the parts of an estimate.
fn part(axis: GroupAxis) -> &'static str {
    match axis {
        GroupAxis::Tensor => "tensor_parallel",
        GroupAxis::Context => "context_parallel",
        GroupAxis::Expert => "expert_parallel",
        GroupAxis::Data => "data_parallel",
        GroupAxis::Pipeline => "p2p",
    }
}

impl AxisGroups {
    fn of(ranks: &RankNumbers) -> Vec<AxisGroups> {
        let axes = GroupAxis::ALL.into_iter().map(|axis| (axis, ranks.groups(axis)));
        let several = axes.filter(|(_, groups)| groups.first().is_some_and(|group| group.len() > 1));
        several
            .map(|(axis, groups)| {
                let mut group_of = vec![0; ranks.count()];
                for (number, group) in groups.iter().enumerate() {
                    group.iter().for_each(|&rank| group_of[rank] = number);
                }
                AxisGroups { axis, degree: groups[0].len(), group_of, groups }
            })
            .collect()
    }
}

/// Number of devices in a row of the maps: a machine, or eight of a rack.
pub(super) fn row_width(shown: &ShownRun) -> usize {
    let domain = shown.workload.training().map_or(ROW, |profile| profile.accelerator.domain as usize);
    domain.clamp(1, ROW)
}

/// Draws the view; the plan is one of a model to be trained.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, shown: &ShownRun, (plan, own): (&Plan, &Groups)) {
    let Some(profile) = shown.workload.training() else { return };
    let theme = &model.appearance.theme;
    let shades = Shades::new(theme, model.appearance.depth);
    let axes = &own.axes;
    let devices: Vec<u32> = plan.devices().collect();
    let at = model.views.devices.rank.min(devices.len().saturating_sub(1));
    let muted = theme.fg(Role::Muted);
    let title = Line::from(vec![
        Span::styled("Groups  ", theme.bold(Role::Text)),
        Span::styled(format!("{}; ", units::counted(devices.len(), "device")), muted),
        Span::styled(format!("device {}", devices.get(at).copied().unwrap_or(0)), theme.bold(Role::Text)),
        Span::styled(" and its groups are bright; hue: stage", muted),
    ]);
    frame.render_widget(title, rows(area, 0, 1));
    if axes.is_empty() {
        frame.render_widget(Span::styled("one device works alone: there are no groups", muted), rows(area, 2, 1));
        return;
    }
    let table = axes.len() as u16 + 4;
    let maps = rows(area, 2, area.height.saturating_sub(2 + table));
    let used = draw_maps(frame, maps, (theme, &shades), shown, (plan, axes, at));
    let below = rows(area, 2 + used, area.height.saturating_sub(2 + used));
    draw_table(frame, below, model, profile, (own, at));
}

/// Draws one map for each axis, side by side. Returns the rows used, with a blank one.
fn draw_maps(
    frame: &mut Frame<'_>,
    area: Rect,
    (theme, shades): (&Theme, &Shades),
    shown: &ShownRun,
    (plan, axes, at): (&Plan, &[AxisGroups], usize),
) -> u16 {
    let muted = theme.fg(Role::Muted);
    let count = axes[0].group_of.len();
    let width = row_width(shown);
    let each = area.width.saturating_sub(NAME) / axes.len() as u16;
    let cell = match usize::from(each) {
        room if count <= NUMBERED && room > 4 * width => 4,
        room if count <= NUMBERED && room > 3 * width => 3,
        room if room > 2 * width => 2,
        _ => 1,
    };
    let lines = usize::from(area.height.saturating_sub(1));
    let machines = count.div_ceil(width);
    // With more machines than rows, a cell stands for several devices.
    let stands = machines.div_ceil(lines.max(1)).max(1);
    let all = machines.div_ceil(stands);
    let pitch = if lines > 2 * all { 2 } else { 1 };
    let stage_of: Vec<usize> =
        plan.stages.iter().enumerate().flat_map(|(i, stage)| stage.devices.iter().map(move |_| i)).collect();
    let domain = shown.workload.training().map_or(1, |profile| profile.accelerator.domain as usize);
    for row in 0..all {
        let first = row * stands * width;
        let name = match (stands, domain == width) {
            (1, true) => format!("machine {row}"),
            _ => format!("{first}–{}", (first + stands * width).min(count) - 1),
        };
        let here = (first..first + stands * width).contains(&at);
        let style = if here { theme.bold(Role::Text) } else { muted };
        let line = Rect { width: NAME - 1, ..rows(area, 1 + (row * pitch) as u16, 1) };
        frame.render_widget(Span::styled(clip(&name, usize::from(NAME) - 1), style), line);
    }
    for (i, drawn) in axes.iter().enumerate() {
        let x = area.x + NAME + i as u16 * each;
        let groups = units::counted(drawn.groups.len(), "group");
        let head = Line::from(vec![
            Span::styled(format!("{} {}  ", label(drawn.axis), drawn.degree), theme.bold(Role::Text)),
            Span::styled(groups, muted),
        ]);
        frame.render_widget(head, Rect { x, width: each, ..rows(area, 0, 1) });
        let own = drawn.group_of[at];
        for rank in (0..count).step_by(stands) {
            let (row, column) = (rank / stands / width, rank / stands % width);
            let y = area.y + 1 + (row * pitch) as u16;
            if y >= area.bottom() {
                break;
            }
            let group = drawn.group_of[rank];
            let alike = drawn.group_of[rank..(rank + stands).min(count)].contains(&own);
            let stage = shades.stage(stage_of.get(rank).copied().unwrap_or(0), &shown.places);
            let cursor = (rank..rank + stands).contains(&at);
            let style = match (cursor, alike) {
                (true, _) => Style::new().bg(shades.color(shades.flash())).fg(shades.ink(shades.flash())),
                (false, true) => Style::new().bg(shades.color(stage)).fg(shades.ink(stage)),
                (false, false) => {
                    let dim = shades.towards_ground(stage, if group.is_multiple_of(2) { 0.35 } else { 0.2 });
                    Style::new().bg(shades.color(dim)).fg(theme.color(Role::Muted))
                }
            };
            // Without colours the cursor's group has a sign.
            let text = match (cell >= 3 && stands == 1, shades.coloured(), cursor, alike) {
                (true, true, ..) => fit_right(&rank.to_string(), cell - 1),
                (true, false, false, false) => fit_right(&rank.to_string(), cell - 1),
                (true, false, true, _) => fit_right(&format!("[{rank}"), cell - 1),
                (true, false, false, true) => fit_right(&format!("*{rank}"), cell - 1),
                (false, true, ..) => " ".repeat(cell.max(2) - 1),
                (false, false, true, _) => "+".into(),
                (false, false, false, own) => if own { "*" } else { "." }.into(),
            };
            let x = x + (column * cell) as u16;
            let style = if shades.mixes() || cursor || alike { style } else { Style::new() };
            frame.buffer_mut().set_stringn(x, y, text, cell.max(2) - 1, style);
        }
    }
    (2 + all * pitch).min(area.height.into()) as u16
}

/// Machines of some devices.
fn machines_of(group: &[usize], domain: usize) -> Vec<usize> {
    let mut machines: Vec<usize> = group.iter().map(|device| device / domain.max(1)).collect();
    machines.dedup();
    machines
}

/// Numbers in short: `12–15`, `9, 13`, `0, 8, .. 56`.
fn told(numbers: &[usize], separator: &str) -> String {
    match numbers {
        [first, .., last] if numbers.len() > 2 && last - first + 1 == numbers.len() => format!("{first}–{last}"),
        [first, second, .., last] if numbers.len() > 4 => format!("{first}{separator}{second} … {last}"),
        _ => numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator),
    }
}

/// Draws a row for each axis, and whether fast links carry what costs most.
fn draw_table(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    profile: &TrainingProfile,
    (own, at): (&Groups, usize),
) {
    let theme = &model.appearance.theme;
    let (text, muted) = (theme.fg(Role::Text), theme.fg(Role::Muted));
    let Some(estimate) = &own.estimate else { return };
    let columns = fitting(&COLUMNS, 0, area.width);
    let head: String = columns.iter().map(|(name, width)| fit(name, *width)).collect();
    frame.render_widget(Span::styled(head, muted), rows(area, 0, 1));
    let accelerator = &profile.accelerator;
    let domain = accelerator.domain.max(1) as usize;
    let seconds = |axis: GroupAxis| -> f64 {
        estimate.parts.iter().filter(|(name, _)| *name == part(axis)).map(|(_, seconds)| seconds).sum()
    };
    let (mut inside, mut outside_s) = (vec![], 0.0);
    for (y, drawn) in (1..).zip(&own.axes) {
        let group = &drawn.groups[drawn.group_of[at]];
        let within = drawn.groups.iter().all(|group| machines_of(group, domain).len() == 1);
        let machines = machines_of(group, domain);
        let noun = if domain > ROW { "rack" } else { "machine" };
        let place = match machines.as_slice() {
            [only] => format!("in {noun} {only}"),
            several => format!("{noun}s {}", told(several, " ")),
        };
        let link = match (own.routed, within) {
            (true, _) => "its routes".to_string(),
            (false, true) => {
                format!("{} {}", accelerator.joined_by, units::bandwidth_exact(accelerator.inner_link))
            }
            (false, false) => format!("one NIC {}", units::bandwidth_exact(accelerator.outer_link)),
        };
        let time = seconds(drawn.axis);
        if within {
            inside.push(label(drawn.axis));
        } else {
            outside_s += time;
        }
        let arrow = if drawn.axis == GroupAxis::Pipeline { " → " } else { " " };
        let cell = |name: &str| match name {
            "group" => format!("{} {}", label(drawn.axis), drawn.degree),
            "with" => told(group, arrow),
            "where" => place.clone(),
            "link, each way" => link.clone(),
            "carries" => carries(drawn.axis).into(),
            _ => format!("{}  {}", units::seconds(time), units::percent(time / estimate.iteration_s)),
        };
        let spans: Vec<Span<'static>> = columns
            .iter()
            .map(|(name, width)| {
                let style = match *name {
                    "group" => theme.bold(Role::Text),
                    "where" => theme.fg(if machines.len() == 1 { Role::Good } else { Role::Warning }),
                    _ => text,
                };
                Span::styled(fit(&clip(&cell(name), width - 1), *width), style)
            })
            .collect();
        frame.render_widget(Line::from(spans), rows(area, y, 1));
    }
    let share = units::percent(outside_s / estimate.iteration_s);
    let stay = if inside.is_empty() { "no group stays".to_string() } else { format!("{} stay", inside.join(" and ")) };
    let sentence = format!("{stay} in the machine; the iteration waits {share} of its time for the network");
    let lines: Vec<String> = wrap(&sentence, area.width.into()).into_iter().take(2).collect();
    for (y, line) in (own.axes.len() as u16 + 2..).zip(lines) {
        frame.render_widget(Span::styled(line, text), rows(area, y, 1));
    }
}

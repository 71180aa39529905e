//! What the Workload view says of nodes, by profile: the columns of the list, what is grouped in it, and the details of
//! one node.

use std::collections::{BTreeMap, BTreeSet};

use ratatui::text::{Line, Span};

use super::{fit, fit_right, stage_tree::kind};
use crate::{
    tui::{
        theme::{Role, Theme},
        widget::{
            bar,
            tree::{Branch, TreePane},
        },
    },
    units,
    workload::{
        Mode, PiperProfile, PlacementProfile, Profile, Workload, layer_profile::MILLISECONDS, operators::Operator,
        placement::SECONDS,
    },
};

/// Titles and widths of the columns after the name.
fn columns(workload: &Workload) -> &'static [(&'static str, usize)] {
    match &workload.profile {
        Profile::Piper(_) => &[("time", 11), ("parameters", 11), ("memory", 11), ("degrees", 11)],
        Profile::Layers(_) => &[("forward", 11), ("backward", 11), ("output", 11), ("parameters", 11)],
        Profile::Operators(_) => &[("kind", 12), ("operations", 11), ("weights", 10), ("iterates over", 26)],
        Profile::Placement(_) => {
            &[("pass", 9), ("class", 6), ("accelerator", 12), ("CPU", 10), ("size", 10), ("transfer", 10)]
        }
    }
}

/// Cells of the name, signs of the tree included, for a width.
fn name_width(workload: &Workload, width: usize) -> usize {
    let values: usize = columns(workload).iter().map(|column| column.1).sum();
    // A bar after the values, unless names need its cells.
    let (with, without) = (width.saturating_sub(values + 2 + 14), width.saturating_sub(values + 2));
    with.max(without.min(28)).clamp(12, 48)
}

/// The line of titles.
pub(super) fn titles(workload: &Workload, width: usize) -> String {
    let mut text = format!("   {}", fit("node", name_width(workload, width).saturating_sub(3)));
    for (title, width) in columns(workload) {
        text += &fit_right(title, *width);
    }
    text
}

/// The whole in one line.
pub(super) fn facts(workload: &Workload) -> String {
    let Profile::Placement(profile) = &workload.profile else { return String::new() };
    let backward = profile.nodes.iter().filter(|node| node.backward).count();
    let free = profile.nodes.iter().filter(|node| node.colour_class.is_none()).count();
    let classes: BTreeSet<i64> = profile.nodes.iter().filter_map(|node| node.colour_class).collect();
    let bound = profile.nodes.iter().filter(|node| !node.supported).count();
    let mut facts = vec![format!("{} forward, {backward} backward", profile.nodes.len() - backward)];
    facts.push(match free {
        0 => format!("{} colour classes", classes.len()),
        free => format!("{} colour classes, {free} nodes without", classes.len()),
    });
    facts.push(match bound {
        0 => "accelerators can run every node".to_string(),
        1 => "1 node needs a CPU".to_string(),
        bound => format!("{bound} nodes need a CPU"),
    });
    facts.join(" · ")
}

/// Nodes by row of the list.
fn groups(workload: &Workload) -> Vec<Vec<usize>> {
    match &workload.profile {
        Profile::Piper(profile) => runs(workload, profile),
        Profile::Layers(profile) => runs(workload, &profile.as_modes(&workload.dag)),
        // Operators of one kind differ in what they iterate over, which is what matters here.
        Profile::Operators(_) => (0..workload.nodes.len()).map(|i| vec![i]).collect(),
        Profile::Placement(profile) => classes(profile),
    }
}

/// Runs of three or more nodes of one kind and about one cost.
fn runs(workload: &Workload, profile: &PiperProfile) -> Vec<Vec<usize>> {
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
            runs.push((first..end).collect());
        } else {
            runs.extend((first..end).map(|i| vec![i]));
        }
        first = end;
    }
    runs
}

/// Colour classes in the order of their first nodes; a node without one is alone.
fn classes(profile: &PlacementProfile) -> Vec<Vec<usize>> {
    let mut place: BTreeMap<i64, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = vec![];
    for (i, node) in profile.nodes.iter().enumerate() {
        let at = node.colour_class.map_or(groups.len(), |class| *place.entry(class).or_insert(groups.len()));
        if at == groups.len() {
            groups.push(vec![]);
        }
        groups[at].push(i);
    }
    groups
}

/// The mode a file names first at the smallest degree: what the node is by itself.
fn first_mode(profile: &PiperProfile, node: usize) -> Option<&Mode> {
    profile.nodes.get(node)?.degrees.first()?.modes.first()
}

/// The node of a row of the tree; the first of them for a group.
pub(super) fn selected(workload: &Workload, path: &[u32]) -> Option<usize> {
    let groups = groups(workload);
    let group = groups.get(*path.first()? as usize)?;
    group.get(path.get(1).map_or(0, |&i| i as usize)).copied()
}

/// The rows of the list.
pub(super) fn branches(workload: &Workload, width: usize, theme: &Theme) -> Vec<Branch> {
    let name = name_width(workload, width);
    let groups = groups(workload);
    let slowest = (0..workload.nodes.len()).map(|i| time(workload, i)).fold(f64::MIN_POSITIVE, f64::max);
    let values: usize = columns(workload).iter().map(|column| column.1).sum();
    let space = width.saturating_sub(name + 3 + values + 3);
    let row = |members: &[usize], label: String, depth: usize| {
        let mut spans = vec![Span::raw(fit(&label, name.saturating_sub(TreePane::indent(depth))))];
        for (text, (_, width)) in cells(workload, members).into_iter().zip(columns(workload)) {
            let role = if text == CPU_ONLY { Role::Warning } else { Role::Text };
            spans.push(Span::styled(fit_right(&text, *width), theme.fg(role)));
        }
        spans.push(Span::raw("  "));
        spans.push(Span::styled(bar::solid(time(workload, members[0]) / slowest, space), theme.fg(Role::Compute)));
        Branch { label, line: Line::from(spans), children: vec![] }
    };
    let numbered = |node: usize| workload.nodes[node].numbered();
    let branch = |members: &Vec<usize>| {
        if members.len() == 1 {
            return row(members, numbered(members[0]), 0);
        }
        let label = match &workload.profile {
            Profile::Piper(_) | Profile::Layers(_) | Profile::Operators(_) => {
                let first = workload.nodes[members[0]].label();
                format!("{} × {}", members.len(), kind(&first))
            }
            // The first node's name says more than the number of the class, which has a column.
            Profile::Placement(_) => format!("{} + {} more", numbered(members[0]), members.len() - 1),
        };
        let mut branch = row(members, label, 0);
        branch.children = members.iter().map(|&i| row(&[i], numbered(i), 1)).collect();
        branch
    };
    groups.iter().map(branch).collect()
}

/// What is said instead of a time on accelerators that cannot run a node.
const CPU_ONLY: &str = "CPU only";

/// What the bars compare: how long a node takes, seconds (on an accelerator, if one can run it); for operators, whose
/// profile has no times, their operations.
fn time(workload: &Workload, node: usize) -> f64 {
    match &workload.profile {
        Profile::Piper(profile) => first_mode(profile, node).map_or(0.0, |mode| mode.time_s),
        Profile::Layers(profile) => profile.nodes[node].seconds(),
        Profile::Operators(profile) => profile.operators[node].operations(),
        Profile::Placement(profile) => {
            let cost = &profile.nodes[node];
            cost.compute(!cost.supported) * SECONDS
        }
    }
}

/// The values of a row: those of one node, or of a group. Like layers show what each of them costs, a class its sum.
fn cells(workload: &Workload, members: &[usize]) -> Vec<String> {
    match &workload.profile {
        Profile::Piper(profile) => {
            let Some(mode) = first_mode(profile, members[0]) else { return vec![] };
            let degrees = profile.nodes[members[0]].degrees.iter().map(|d| d.degree.to_string());
            vec![
                units::seconds(mode.time_s),
                units::count_short(mode.parameters),
                units::bytes(mode.memory_a + mode.memory_b),
                degrees.collect::<Vec<_>>().join(","),
            ]
        }
        Profile::Layers(profile) => {
            let cost = &profile.nodes[members[0]];
            vec![
                units::seconds(cost.forward_ms * MILLISECONDS),
                units::seconds(cost.backward_ms * MILLISECONDS),
                units::bytes(cost.activation()),
                units::bytes(cost.parameter_bytes),
            ]
        }
        Profile::Operators(profile) => {
            let operator = &profile.operators[members[0]];
            vec![
                operator.kind_name().to_string(),
                units::count_short(operator.operations()),
                units::count_short(operator.parameters()),
                super::clip(&space(operator), 25),
            ]
        }
        Profile::Placement(profile) => {
            let nodes: Vec<_> = members.iter().map(|&i| &profile.nodes[i]).collect();
            let sum =
                |of: &dyn Fn(&crate::workload::PlacementNode) -> f64| nodes.iter().map(|node| of(node)).sum::<f64>();
            let pass = match (nodes.iter().any(|n| !n.backward), nodes.iter().any(|n| n.backward)) {
                (true, true) => "both",
                (false, true) => "backward",
                _ => "forward",
            };
            let supported = nodes.iter().all(|node| node.supported);
            let accelerator = units::seconds(sum(&|node| node.accelerator_time) * SECONDS);
            vec![
                pass.to_string(),
                nodes[0].colour_class.map_or("-".into(), |class| class.to_string()),
                if supported { accelerator } else { CPU_ONLY.to_string() },
                units::seconds(sum(&|node| node.cpu_time) * SECONDS),
                units::bytes(sum(&|node| node.size_bytes)),
                units::seconds(sum(&|node| node.transfer) * SECONDS),
            ]
        }
    }
}

/// The iteration space of an operator: `b 128 × n 512`.
fn space(operator: &Operator) -> String {
    operator.dims.iter().map(|dim| format!("{} {}", dim.name, dim.extent)).collect::<Vec<_>>().join(" × ")
}

/// Everything else the profile says of a node: (is a title, text).
pub(super) fn details(workload: &Workload, node: usize) -> Vec<(bool, String)> {
    match &workload.profile {
        Profile::Piper(profile) => modes(profile, node),
        Profile::Layers(profile) => {
            let cost = &profile.nodes[node];
            let time = format!(
                "{} forward, {} backward, for the batch that was profiled",
                units::seconds(cost.forward_ms * MILLISECONDS),
                units::seconds(cost.backward_ms * MILLISECONDS)
            );
            let outputs = match cost.activation_bytes.len() {
                1 => String::new(),
                count => format!(" in {count} tensors"),
            };
            let stage = cost.stage.map(|stage| format!("; the file puts it on stage {stage}")).unwrap_or_default();
            let (out, own) = (units::bytes(cost.activation()), units::bytes(cost.parameter_bytes));
            vec![(false, time), (false, format!("puts out {out}{outputs}, has {own} of parameters{stage}"))]
        }
        Profile::Operators(profile) => {
            let operator = &profile.operators[node];
            let work = units::count_short(operator.operations());
            let bytes = units::bytes(operator.whole_bytes());
            vec![
                (false, format!("{} over {}", operator.kind_name(), space(operator))),
                (false, format!("{work} operations in a training step; {bytes} of weights, gradients and outputs")),
            ]
        }
        Profile::Placement(profile) => {
            let cost = &profile.nodes[node];
            let pass = if cost.backward { "backward" } else { "forward" };
            let layer = cost.layer.map(|layer| format!(", layer {layer}")).unwrap_or_default();
            let class = match cost.colour_class {
                None => "no colour class: it may go anywhere by itself".to_string(),
                Some(class) => {
                    match profile.nodes.iter().filter(|other| other.colour_class == Some(class)).count() - 1 {
                        0 => format!("colour class {class}, which has no other node"),
                        others => format!("colour class {class}: on one device with {others} more"),
                    }
                }
            };
            let cpu = units::seconds(cost.cpu_time * SECONDS);
            let accelerator = units::seconds(cost.accelerator_time * SECONDS);
            let times = match cost.supported {
                true if cost.accelerator_time > 0.0 => {
                    let ratio = units::number(cost.cpu_time / cost.accelerator_time);
                    format!("{accelerator} on an accelerator, {cpu} on a CPU ({ratio} times as long)")
                }
                true => format!("{accelerator} on an accelerator, {cpu} on a CPU"),
                false => format!("{cpu} on a CPU; an accelerator cannot run it"),
            };
            let size = units::bytes(cost.size_bytes);
            let transfer = units::seconds(cost.transfer * SECONDS);
            vec![
                (false, format!("{pass} pass{layer}; {class}")),
                (false, times),
                (false, format!("{size} on an accelerator; {transfer} to send what it computes over the link, once")),
            ]
        }
    }
}

/// Every mode of a node by degree.
fn modes(profile: &PiperProfile, node: usize) -> Vec<(bool, String)> {
    let title = format!(
        "  t  {}{}{}   memory for y microbatches in flight",
        fit("mode", 20),
        fit_right("time", 11),
        fit_right("parameters", 11)
    );
    let mut lines = vec![(true, title)];
    for degree in &profile.nodes[node].degrees {
        for mode in &degree.modes {
            let text = format!(
                "{:>3}  {}{}{}   {} · y + {}",
                degree.degree,
                fit(&mode.id, 20),
                fit_right(&units::seconds(mode.time_s), 11),
                fit_right(&units::count_short(mode.parameters), 11),
                units::bytes(mode.memory_a),
                units::bytes(mode.memory_b)
            );
            lines.push((false, text));
        }
    }
    lines
}

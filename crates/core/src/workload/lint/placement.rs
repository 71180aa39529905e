//! Rules for device placement. `O((nodes + edges) · log nodes)` time.
//!
//! The order of classes is computed here without the planners' code, so that a finding about a cycle describes the file
//! and not a planner's result.

use super::{Findings, Severity, spread};
use crate::{
    units,
    workload::{
        colour::ColourClasses,
        node_index::NodeIndex,
        placement::{PlacementNode, PlacementProfile},
        profiled::Workload,
    },
};

/// Applies all rules, in display order for equal severity.
pub(super) fn lint(workload: &Workload, profile: &PlacementProfile, findings: &mut Findings) {
    let classes = ColourClasses::new(profile);
    unsupported(workload, profile, findings);
    memory(workload, profile, &classes, findings);
    slower_than_cpu(profile, findings);
    class_cycles(workload, profile, &classes, findings);
    without_class(profile, findings);
    orphans(profile, &classes, findings);
    transfers(workload, profile, &classes, findings);
    repeated_edges(profile, findings);
    zero_time(profile, findings);
    spread::placement(profile, findings);
    disconnected(workload, &classes, findings);
}

/// Nodes for which the predicate holds.
fn those(profile: &PlacementProfile, holds: impl Fn(&PlacementNode) -> bool) -> Vec<NodeIndex> {
    NodeIndex::enumerate(&profile.nodes).filter(|(_, node)| holds(node)).map(|(index, _)| index).collect()
}

/// Finds edges that the file states more than once.
fn repeated_edges(profile: &PlacementProfile, findings: &mut Findings) {
    if !profile.repeated_edges.is_empty() {
        findings.add(
            "repeated-edges",
            Severity::Warning,
            &profile.repeated_edges,
            "has several edges to the same node".into(),
            "they are read as one: if they stand for different tensors, transfers count too little",
        );
    }
}

/// Finds nodes that no accelerator can run.
fn unsupported(workload: &Workload, profile: &PlacementProfile, findings: &mut Findings) {
    let nodes = those(profile, |node| !node.supported);
    if nodes.is_empty() {
        return;
    }
    if workload.limits.cpus().unwrap_or(0) == 0 {
        findings.add(
            "unsupported",
            Severity::Error,
            &nodes,
            "cannot run on an accelerator, and the file allows no CPU".into(),
            "no plan exists unless CPUs are allowed: give --cpus",
        );
    } else {
        findings.add(
            "unsupported",
            Severity::Note,
            &nodes,
            "cannot run on an accelerator".into(),
            "its whole colour class has to be on a CPU, at the CPU's speed",
        );
    }
}

/// Finds classes that fit on no accelerator, and graphs that do not fit on all accelerators together.
fn memory(workload: &Workload, profile: &PlacementProfile, classes: &ColourClasses, findings: &mut Findings) {
    let Some(limit) = workload.limits.memory_bytes() else { return };
    let size = |nodes: &[NodeIndex]| nodes.iter().map(|&v| profile.nodes[v].size_bytes).sum::<f64>();
    let no_cpu = workload.limits.cpus().unwrap_or(0) == 0;
    let mut nodes = vec![];
    let mut most = 0.0f64;
    for members in &classes.members {
        let bytes = size(members);
        if bytes > limit {
            nodes.extend_from_slice(members);
            most = most.max(bytes);
        }
    }
    if !nodes.is_empty() {
        nodes.sort_unstable();
        let what = format!(
            "belongs to a colour class of up to {}, more than an accelerator's {}",
            units::bytes_like(most, limit),
            units::bytes_exact(limit)
        );
        let (severity, why) = if no_cpu {
            (Severity::Error, "no plan exists: a class is on one device, and the file allows no CPU")
        } else {
            (Severity::Warning, "only a CPU can hold it: its work is done at the CPU's speed, whatever else is planned")
        };
        findings.add("memory-too-large", severity, &nodes, what, why);
    }
    let all: f64 = profile.nodes.iter().map(|node| node.size_bytes).sum();
    let accelerators = workload.limits.devices().filter(|_| nodes.is_empty());
    if let Some(count) = accelerators.filter(|&count| all > limit * f64::from(count)) {
        let what = format!(
            "the nodes need {} together, {count} accelerators of {} hold {}",
            units::bytes_like(all, limit),
            units::bytes_exact(limit),
            units::bytes_like(limit * f64::from(count), limit)
        );
        let (severity, why) = if no_cpu {
            (Severity::Error, "no plan exists at these limits, and the file allows no CPU")
        } else {
            (Severity::Warning, "part of the network has to be on CPUs, at their speed")
        };
        findings.add("memory-too-small", severity, &[], what, why);
    }
}

/// Finds nodes that a CPU runs faster than an accelerator.
fn slower_than_cpu(profile: &PlacementProfile, findings: &mut Findings) {
    let sum = |time: fn(&PlacementNode) -> f64| profile.nodes.iter().map(time).sum::<f64>();
    let (cpu, accelerator) = (sum(|node| node.cpu_time), sum(|node| node.accelerator_time));
    if accelerator > cpu {
        findings.add(
            "slower-than-cpu",
            Severity::Warning,
            &[],
            format!(
                "everything takes {} ms on an accelerator and {} ms on a CPU: the two look exchanged",
                units::number(accelerator),
                units::number(cpu)
            ),
            "work moves to the CPUs; if it should not, cpuLatency and fpgaLatency are in each other's place",
        );
        return;
    }
    let nodes = those(profile, |node| node.supported && node.accelerator_time > node.cpu_time);
    if !nodes.is_empty() {
        findings.add(
            "slower-than-cpu",
            Severity::Note,
            &nodes,
            "takes longer on an accelerator than on a CPU".into(),
            "plans may use a CPU for it, although a transfer to the host is then paid on both sides",
        );
    }
}

/// Finds classes on a common cycle: a contiguous split cannot separate them.
fn class_cycles(workload: &Workload, profile: &PlacementProfile, classes: &ColourClasses, findings: &mut Findings) {
    let groups = classes.groups(&workload.dag, profile);
    for group in groups.iter().filter(|group| group.len() > 1) {
        let mut colours: Vec<i64> = group.iter().filter_map(|&class| classes.colour[class]).collect();
        colours.sort_unstable();
        let alone = group.len() - colours.len();
        let shown: Vec<String> = colours.iter().take(8).map(i64::to_string).collect();
        let more = if colours.len() > shown.len() { ", .." } else { "" };
        let named = match colours.len() {
            1 => format!("colour class {}", shown[0]),
            count => format!("{count} colour classes ({}{more})", shown.join(", ")),
        };
        let nodes_alone = match alone {
            0 => String::new(),
            1 => " and 1 node without a class".into(),
            count => format!(" and {count} nodes without a class"),
        };
        let mut nodes: Vec<NodeIndex> =
            group.iter().flat_map(|&class| classes.members[class].iter().copied()).collect();
        nodes.sort_unstable();
        findings.add(
            "class-cycle",
            Severity::Warning,
            &nodes,
            format!("{named}{nodes_alone} lead into one another"),
            "a contiguous split has to keep them on one device, as if they were one class: fewer places to cut",
        );
    }
}

/// Finds nodes without a class in a profile with classes.
fn without_class(profile: &PlacementProfile, findings: &mut Findings) {
    if profile.nodes.iter().all(|node| node.colour_class.is_none()) {
        return;
    }
    let nodes = those(profile, |node| node.colour_class.is_none());
    if nodes.is_empty() {
        return;
    }
    let training = profile.nodes.iter().any(|node| node.backward);
    let (severity, why) = if training {
        (
            Severity::Warning,
            "it is placed by itself: its forward and backward parts may come to lie on different devices",
        )
    } else {
        (Severity::Note, "it is placed by itself, wherever its neighbours are")
    };
    findings.add("no-class", severity, &nodes, "has no colour class, though others have".into(), why);
}

/// Finds backward nodes whose class has no forward node.
fn orphans(profile: &PlacementProfile, classes: &ColourClasses, findings: &mut Findings) {
    let mut nodes: Vec<NodeIndex> = (0..classes.members.len())
        .filter(|&class| classes.is_orphan(profile, class))
        .flat_map(|class| classes.members[class].iter().copied())
        .collect();
    if nodes.is_empty() {
        return;
    }
    nodes.sort_unstable();
    findings.add(
        "orphan",
        Severity::Note,
        &nodes,
        "is of the backward pass, and no forward node shares its colour class".into(),
        "contiguity is asked of the forward pass: its place is where the backward pass, mirrored, puts it",
    );
}

/// Finds transfers whose edges differ slightly, and transfers that are never paid.
fn transfers(workload: &Workload, profile: &PlacementProfile, classes: &ColourClasses, findings: &mut Findings) {
    if !profile.uneven_transfers.is_empty() {
        findings.add(
            "uneven-cost",
            Severity::Note,
            &profile.uneven_transfers,
            "has outgoing edges whose costs differ by up to a millionth".into(),
            "a node sends one output at one cost: that of the first edge counts",
        );
    }
    let inside = |&v: &NodeIndex| {
        workload.dag.out_degree(v.index()) > 0
            && profile.nodes[v].transfer > 0.0
            && workload.successors(v).all(|w| classes.of[w.index()] == classes.of[v.index()])
    };
    let nodes: Vec<NodeIndex> = workload.indices().filter(inside).collect();
    if !nodes.is_empty() {
        findings.add(
            "unused-cost",
            Severity::Note,
            &nodes,
            "is read by its own colour class alone".into(),
            "the cost of sending its output is never paid: a class is on one device",
        );
    }
}

/// Finds nodes that take no time.
fn zero_time(profile: &PlacementProfile, findings: &mut Findings) {
    let half = those(profile, |node| (node.cpu_time == 0.0) != (node.accelerator_time == 0.0));
    if !half.is_empty() {
        findings.add(
            "zero-time",
            Severity::Warning,
            &half,
            "takes no time on one kind of device and some on the other".into(),
            "work that costs nothing is put there, however much it is: was it not measured?",
        );
    }
    let none = those(profile, |node| node.cpu_time == 0.0 && node.accelerator_time == 0.0);
    if !none.is_empty() {
        findings.add(
            "zero-time",
            Severity::Note,
            &none,
            "takes no time on any device".into(),
            "only its size and its transfers count; it may be placed far from its neighbours where these are free",
        );
    }
}

/// Finds parts of the graph that share neither an edge nor a class with the largest part.
fn disconnected(workload: &Workload, classes: &ColourClasses, findings: &mut Findings) {
    let dag = &workload.dag;
    let mut part = vec![usize::MAX; dag.len()];
    let mut joined = vec![false; classes.members.len()];
    let mut parts: Vec<Vec<usize>> = vec![];
    for start in 0..dag.len() {
        if part[start] != usize::MAX {
            continue;
        }
        let mut members = vec![start];
        part[start] = parts.len();
        let mut next = 0;
        while let Some(&v) = members.get(next) {
            next += 1;
            // The whole class joins the part with its first member.
            let class = classes.of[v] as usize;
            let others = if std::mem::replace(&mut joined[class], true) { &[][..] } else { &classes.members[class] };
            for w in dag.successors(v).chain(dag.predecessors(v)).chain(others.iter().map(|other| other.index())) {
                if part[w] == usize::MAX {
                    part[w] = parts.len();
                    members.push(w);
                }
            }
        }
        parts.push(members);
    }
    if parts.len() < 2 {
        return;
    }
    // The first of the largest parts.
    let largest = (0..parts.len()).rev().max_by_key(|&p| parts[p].len()).unwrap_or_default();
    let nodes: Vec<NodeIndex> = workload.indices().filter(|v| part[v.index()] != largest).collect();
    findings.add(
        "disconnected",
        Severity::Note,
        &nodes,
        format!("shares neither an edge nor a colour class with the rest: the graph has {} parts", parts.len()),
        "parts may be cut anywhere beside one another, which multiplies the splits a search has to look at",
    );
}

//! Topology as text: bandwidths of pairs, and the links of each vertex.

use std::{collections::BTreeMap, fmt::Write};

use plantui_core::{
    cluster::topology::{Duplex, Topology, VertexKind},
    units,
};

/// Most devices shown in a matrix, and most vertices shown with their links.
const SHOWN: usize = 16;

/// Bytes per second as GB/s, without the unit.
fn gigabytes(bandwidth: f64) -> String {
    units::exact_number((bandwidth / 1e6).round() / 1e3)
}

/// Pairs of the first machine, pairs of machines, and the links.
pub fn text(topology: &Topology) -> String {
    let mut out = String::new();
    let machines = topology.machines();
    let first = if topology.devices() <= SHOWN || machines.sizes().len() < 2 {
        topology.devices()
    } else {
        usize::from(machines.sizes()[0])
    };
    let shown = first.min(SHOWN);
    let _ = writeln!(out, "GB/s of each pair by itself (the row sends to the column)");
    let names: Vec<&str> = (0..shown).map(|device| topology.device_name(device)).collect();
    let rows: Vec<Vec<f64>> = (0..shown).map(|device| topology.pairs_from(device)).collect();
    let cell = |a: usize, b: usize| if a == b { ".".into() } else { gigabytes(rows[a][b]) };
    let pairs = (0..shown).flat_map(|a| (0..shown).filter(move |&b| a != b).map(move |b| (a, b)));
    let mut widths = pairs.map(|(a, b)| rows[a][b]);
    let width = widths.next().filter(|&first| shown > 2 && widths.all(|width| width == first));
    if let Some(width) = width {
        let _ = writeln!(out, "  {} to any of {} .. {}", gigabytes(width), names[0], names[shown - 1]);
    } else {
        matrix(&mut out, &names, cell);
    }
    if shown < topology.devices() {
        let _ = writeln!(out, "  .. and {} devices more", topology.devices() - shown);
    }
    if machines.sizes().len() > 1 {
        between(&mut out, topology);
    }
    let several = topology.machines_alike() && machines.sizes().len() > 1;
    let _ = writeln!(out, "\nwired{}", if several { " (the first machine; the others are like it)" } else { "" });
    wires(&mut out, topology);
    out
}

fn matrix(out: &mut String, names: &[&str], cell: impl Fn(usize, usize) -> String) {
    let cells: Vec<Vec<String>> = (0..names.len()).map(|a| (0..names.len()).map(|b| cell(a, b)).collect()).collect();
    let all = cells.iter().flatten().map(String::as_str).chain(names.iter().copied());
    let width = all.map(|cell| cell.chars().count()).max().unwrap_or(1);
    let _ = write!(out, "  {:width$}", "");
    for name in names {
        let _ = write!(out, " {name:>width$}");
    }
    let _ = writeln!(out);
    for (name, row) in names.iter().zip(cells) {
        let _ = write!(out, "  {name:width$}");
        for cell in &row {
            let _ = write!(out, " {cell:>width$}");
        }
        let _ = writeln!(out);
    }
}

/// Slowest pair between each two machines.
fn between(out: &mut String, topology: &Topology) {
    let machines = topology.machines();
    let count = machines.sizes().len();
    let first = machines.first_of(0) as usize;
    let away = machines.first_of(1) as usize;
    let route = topology.route(first, away);
    let (bandwidth, latency) = (gigabytes(route.bandwidth), units::seconds(route.latency_s));
    if topology.machines_alike() || count > SHOWN {
        let _ = writeln!(out, "\nbetween machines: {bandwidth} GB/s a pair, {latency} until the first byte");
        return;
    }
    let _ = writeln!(out, "\nGB/s between machines (the slowest pair)");
    let names: Vec<String> = (0..count).map(|machine| format!("m{machine}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let slowest = |a: usize, b: usize| {
        let devices = |m: usize| {
            let first = machines.first_of(m) as usize;
            first..first + usize::from(machines.sizes()[m])
        };
        let pairs = devices(a).map(|from| {
            let row = topology.pairs_from(from);
            devices(b).map(|to| row[to]).fold(f64::INFINITY, f64::min)
        });
        pairs.fold(f64::INFINITY, f64::min)
    };
    matrix(out, &names, |a, b| if a == b { ".".into() } else { gigabytes(slowest(a, b)) });
}

/// Links of each vertex, by bandwidth; each link is listed at its first end.
fn wires(out: &mut String, topology: &Topology) {
    let name = |vertex: u32| topology.vertices()[vertex as usize].name.as_str();
    let mut from: BTreeMap<u32, Vec<(String, &str)>> = BTreeMap::new();
    // Parts that all machines share are shown once.
    let machine = |vertex: u32| topology.vertices()[vertex as usize].machine;
    let shown = |vertex: u32| !topology.machines_alike() || machine(vertex).is_none_or(|machine| machine == 0);
    for link in topology.links().iter().filter(|link| shown(link.from) && shown(link.to)) {
        let duplex =
            if link.duplex == Duplex::Full { String::new() } else { format!(", {} duplex", link.duplex.name()) };
        let duplex = duplex.replace("one-way duplex", "one way");
        let what = if link.what.is_empty() { String::new() } else { format!("{}, ", link.what) };
        let words = format!("{what}{} GB/s{duplex}", gigabytes(link.bandwidth));
        // Links of a vertex with many ends are easier to read in one line.
        let (at, other) = if crowded(topology, link.to) { (link.to, link.from) } else { (link.from, link.to) };
        from.entry(at).or_default().push((words, name(other)));
    }
    let more = from.len().saturating_sub(SHOWN);
    let width = from.keys().take(SHOWN).map(|&v| name(v).chars().count()).max().unwrap_or(0);
    for (&vertex, links) in from.iter().take(SHOWN) {
        let mut by_words: Vec<(&str, Vec<&str>)> = vec![];
        for (words, other) in links {
            match by_words.iter_mut().find(|known| known.0 == words) {
                Some(known) => known.1.push(other),
                None => by_words.push((words, vec![other])),
            }
        }
        let told: Vec<String> = by_words.iter().map(|(words, ends)| format!("{words}: {}", some(ends))).collect();
        let _ = writeln!(out, "  {:width$}  {}", name(vertex), told.join("; "));
    }
    if more > 0 {
        let _ = writeln!(out, "  .. and {more} more");
    }
}

fn some(ends: &[&str]) -> String {
    match ends {
        [first, .., last] if ends.len() > 10 => format!("{first} .. {last} ({})", ends.len()),
        _ => ends.join(", "),
    }
}

/// True if a vertex that is not a device has more than two links.
fn crowded(topology: &Topology, vertex: u32) -> bool {
    let kind = topology.vertices()[vertex as usize].kind;
    kind != VertexKind::Device && topology.hops(vertex).len() > 2
}

//! Output of nccl-tests: the bus bandwidth of a collective over all devices at once.
//!
//! The test gives one figure for all devices. Every device is taken to have a port of that bandwidth on one switch,
//! because a ring over such ports attains it. Single pairs may attain more or less, which the figure does not show.

use std::collections::{BTreeMap, BTreeSet};

use super::refused;
use crate::{
    cluster::topology::graph::{Duplex, Link, Topology, Vertex, VertexKind},
    source::LoadError,
    units,
};

/// Maximum number of ranks of a process.
const MOST_RANKS: usize = 1024;

/// True if a line is the head of the table.
pub(super) fn is_head(line: &str) -> bool {
    line.starts_with('#') && line.contains("algbw") && line.contains("busbw")
}

/// Reads the ranks and the bus bandwidth of the largest message.
pub(super) fn read(text: &str, source: &str, name: &str) -> Result<Topology, LoadError> {
    let mut hosts: Vec<String> = vec![];
    let mut processes: BTreeSet<(String, String)> = BTreeSet::new();
    let mut each = 0;
    let mut rows: BTreeMap<u64, f64> = BTreeMap::new();
    let column = text.lines().find(|line| is_head(line)).and_then(|head| {
        // The first word of the head is the `#` that begins the line.
        head.trim_start_matches('#').split_whitespace().position(|word| word == "busbw")
    });
    for line in text.lines() {
        let words: Vec<&str> = line.trim_start_matches('#').split_whitespace().collect();
        if line.starts_with('#') && words.first() == Some(&"Rank") {
            let after = |word: &str| {
                let next = words.iter().position(|own| own.eq_ignore_ascii_case(word)).and_then(|at| words.get(at + 1));
                next.map_or_else(String::new, ToString::to_string)
            };
            processes.insert((after("on"), after("Pid")));
            hosts.push(after("on"));
        } else if line.starts_with('#') && words.first() == Some(&"nThread") {
            let count = |name: &str| {
                let next = words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
                next.and_then(|count| count.parse::<usize>().ok()).unwrap_or(0)
            };
            each = (count("nThread") * count("nGpus")).min(MOST_RANKS);
        } else if let (Some(column), Some(Ok(size))) = (column, words.first().map(|word| word.parse::<u64>()))
            && let Some(Ok(rate)) = words.get(column).map(|word| word.parse::<f64>())
        {
            rows.insert(size, rate);
        }
    }
    // An incomplete listing names only some ranks of each process.
    let short = processes.len() <= MOST_RANKS && processes.len() * each > hosts.len();
    for (host, _) in processes.iter().filter(|_| short) {
        let known = hosts.iter().filter(|own| *own == host).count();
        let own = processes.iter().filter(|(other, _)| other == host).count() * each;
        hosts.extend(std::iter::repeat_n(host.clone(), own.saturating_sub(known)));
    }
    let repair = "copy all that the test prints, the lines that begin with # as well";
    if hosts.len() < 2 {
        return Err(LoadError::file(source, "lists fewer than two ranks (`#  Rank  0 .. on host device 0`)", repair));
    }
    let Some((&size, &rate)) = rows.iter().next_back().filter(|(_, rate)| **rate > 0.0) else {
        return Err(LoadError::file(source, "has no row with a bus bandwidth", repair));
    };
    // Devices of a host are consecutive, in the order of the ranks.
    let mut known: Vec<&String> = vec![];
    hosts.iter().for_each(|host| {
        if !known.contains(&host) {
            known.push(host);
        }
    });
    let mut vertices = vec![];
    for (machine, host) in (0..).zip(&known) {
        for _ in hosts.iter().filter(|other| other == host) {
            let name = format!("gpu{}", vertices.len());
            vertices.push(Vertex { name, kind: VertexKind::Device, machine: Some(machine) });
        }
    }
    let count = vertices.len() as u32;
    let machine = if known.len() == 1 { Some(0) } else { None };
    vertices.push(Vertex { name: "switch".into(), kind: VertexKind::Switch, machine });
    let port = |from: u32| Link {
        from,
        to: count,
        bandwidth: rate * 1e9,
        latency_s: 0.0,
        duplex: Duplex::Full,
        what: "measured".into(),
    };
    let topology = Topology::new(name, vertices, (0..count).map(port).collect());
    let mut topology = topology.map_err(|problem| refused(source, &problem))?;
    topology.notes = vec![format!(
        "measured by nccl-tests: {} of bus bandwidth over all {count} devices at {}; every device is taken to have a port of \
         that on one switch, and what single pairs attain is not known",
        units::bandwidth_exact(rate * 1e9),
        units::bytes(size as f64)
    )];
    Ok(topology)
}

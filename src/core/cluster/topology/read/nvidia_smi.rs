//! What `nvidia-smi topo -m` prints: the kind of link between each two devices.
//!
//! The text names kinds and no bandwidths. `NV#` is so many NVLinks of 25 GB/s each (V100, A100, H100; 20 on a P100, 50 on
//! a B200). Where all pairs have the same number, and more than a device has links, they go through a switch. What is
//! joined by PCIe alone forms a tree: 12 GB/s (PCIe 3 x16) within, 10 GB/s between sockets, as NCCL's model of machines has
//! it. All of that stands in the notes.

use super::{joined, refused};
use crate::{
    cluster::topology::{Duplex, Link, Topology, Vertex, VertexKind},
    source::LoadError,
    text::printable,
};

const NVLINK: f64 = 25e9;
const PCIE: f64 = 12e9;
const SOCKETS: f64 = 10e9;
/// The most NVLinks that a device has (H100, B200).
const MOST_LINKS: u32 = 18;
/// Seconds between two devices on NVLink, and over one link of PCIe.
const LATENCY: (f64, f64) = (0.3e-6, 0.5e-6);

/// What joins two devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nvlink(u32),
    /// The level of the tree: one switch, several, the host bridge, the node, between sockets.
    Pcie(usize),
}

const LEVELS: [&str; 5] = ["PIX", "PXB", "PHB", "NODE", "SYS"];

fn kind(cell: &str) -> Option<Kind> {
    if let Some(links) = cell.strip_prefix("NV") {
        return links.parse().ok().filter(|links| (1..=MOST_LINKS).contains(links)).map(Kind::Nvlink);
    }
    // Older drivers call what goes between sockets SOC.
    let level = LEVELS.iter().position(|level| *level == cell).or((cell == "SOC").then_some(4));
    level.map(Kind::Pcie)
}

/// A line without the underlines that it is printed with.
fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            out.push(c);
        }
    }
    out
}

fn device_number(word: &str) -> Option<usize> {
    word.strip_prefix("GPU")?.parse().ok()
}

/// Whether a line is the head of the table: nothing but names, the first of them of a device.
pub(super) fn is_head(line: &str) -> bool {
    let line = plain(line);
    let mut words = line.split_whitespace();
    words.next() == Some("GPU0") && words.next().is_none_or(|word| !matches!(word, "X")) && !line.contains(" X ")
}

/// Reads the table.
pub(super) fn read(text: &str, source: &str, name: &str) -> Result<Topology, LoadError> {
    let kinds = table(text, source)?;
    let count = kinds.len();
    let vertex = |device: usize| Vertex { name: format!("gpu{device}"), kind: VertexKind::Device, machine: Some(0) };
    let mut vertices: Vec<Vertex> = (0..count).map(vertex).collect();
    let mut links = vec![];
    let mut notes = vec![];
    let mut link = |from: usize, to: usize, bandwidth, latency_s, what: String| {
        links.push(Link { from: from as u32, to: to as u32, bandwidth, latency_s, duplex: Duplex::Full, what });
    };
    if let Some(ports) = switched(&kinds) {
        vertices.push(Vertex { name: "nvswitch".into(), kind: VertexKind::Switch, machine: Some(0) });
        for device in 0..count {
            link(device, count, f64::from(ports) * NVLINK, LATENCY.0 / 2.0, format!("{ports} x NVLink"));
        }
        notes.push(format!(
            "NV{ports} between all is more than devices have links: they are taken to go through a switch"
        ));
    } else {
        for (a, row) in kinds.iter().enumerate() {
            for (b, kind) in row.iter().enumerate().skip(a + 1) {
                if let Some(Kind::Nvlink(links)) = kind {
                    link(a, b, f64::from(*links) * NVLINK, LATENCY.0, format!("{links} x NVLink"));
                }
            }
        }
        tree(&kinds, &mut vertices, &mut link);
    }
    if kinds.iter().flatten().any(|kind| matches!(kind, Some(Kind::Nvlink(_)))) {
        notes.push("the text tells no bandwidths: an NVLink is taken as 25 GB/s each way (P100 20, B200 50)".into());
    }
    if links.iter().any(|link| link.what == "PCIe") {
        notes.push(
            "PCIe is taken as 12 GB/s (gen 3 x16), what goes between sockets as 10 GB/s, as NCCL has them".into(),
        );
    }
    let mut topology = Topology::new(name, vertices, links).map_err(|problem| refused(source, &problem))?;
    topology.notes = notes;
    joined(topology, source)
}

/// What joins each two devices; nothing on the diagonal.
fn table(text: &str, source: &str) -> Result<Vec<Vec<Option<Kind>>>, LoadError> {
    let head =
        (0..).zip(text.lines()).find(|(_, line)| is_head(line)).map_or((0, String::new()), |(at, l)| (at, plain(l)));
    let count = head.1.split_whitespace().map_while(device_number).count();
    let refuse =
        |line: usize, problem: String, repair: &str| Err(LoadError::file(source, problem, repair).on_line(Some(line)));
    let mut kinds: Vec<Vec<Option<Kind>>> = vec![];
    let mut lines = vec![];
    for (line, row) in (1..).zip(text.lines()).skip(head.0 + 1) {
        let row = plain(row);
        let mut words = row.split_whitespace();
        if words.next().and_then(device_number) != Some(kinds.len()) {
            if kinds.len() < count {
                let problem = format!("is not the row of GPU{}", kinds.len());
                return refuse(line, problem, "copy the whole table, a row for each device");
            }
            break;
        }
        if kinds.len() == count {
            let problem = format!("is the row of GPU{count}, which the first line has no column for");
            return refuse(line, problem, "copy the whole table, a column for each device");
        }
        let cells: Vec<&str> = words.take(count).collect();
        if cells.len() < count {
            let problem = format!("has {} of {count} columns", cells.len());
            return refuse(line, problem, "copy the whole table, a row for each device");
        }
        let from = kinds.len();
        let mut read = vec![];
        for (to, cell) in cells.into_iter().enumerate() {
            let known = kind(cell);
            if known.is_none() != (from == to) {
                let problem = format!("GPU{from} to GPU{to} is `{}`", printable(cell));
                return refuse(line, problem, "write NV1 to NV18, PIX, PXB, PHB, NODE or SYS, and X on the diagonal");
            }
            read.push(known);
        }
        for (to, &known) in read.iter().enumerate().take(from) {
            if kinds[to][from] != known {
                let problem =
                    format!("GPU{from} to GPU{to} is other than on line {}, and the other way round", lines[to]);
                return refuse(line, problem, "copy the table as it was printed");
            }
        }
        kinds.push(read);
        lines.push(line);
    }
    if kinds.len() < count {
        let problem = format!("ends before the row of GPU{}", kinds.len());
        return Err(LoadError::file(source, problem, "copy the whole table, a row for each device"));
    }
    Ok(kinds)
}

/// The links of every device's port, where all pairs have the same number and no device can have so many to each.
fn switched(kinds: &[Vec<Option<Kind>>]) -> Option<u32> {
    let mut pairs = kinds.iter().flatten().flatten();
    let Some(Kind::Nvlink(ports)) = pairs.next() else { return None };
    let same = pairs.all(|kind| *kind == Kind::Nvlink(*ports));
    (same && ports * (kinds.len() as u32 - 1) > MOST_LINKS).then_some(*ports)
}

/// The tree of PCIe: who is joined by a level or a lower one is below one vertex of it.
fn tree(
    kinds: &[Vec<Option<Kind>>],
    vertices: &mut Vec<Vertex>,
    link: &mut impl FnMut(usize, usize, f64, f64, String),
) {
    let count = kinds.len();
    // Of each device the highest vertex above it, and the group that this stands for.
    let mut top: Vec<usize> = (0..count).collect();
    let mut group: Vec<usize> = (0..count).collect();
    for (level, name) in LEVELS.iter().enumerate() {
        let before = group.clone();
        for a in 0..count {
            for b in 0..a {
                if kinds[a][b] == Some(Kind::Pcie(level)) && group[a] != group[b] {
                    let (low, high) = (group[a].min(group[b]), group[a].max(group[b]));
                    group.iter_mut().filter(|group| **group == high).for_each(|group| *group = low);
                }
            }
        }
        for root in 0..count {
            let members: Vec<usize> = (0..count).filter(|&device| group[device] == root).collect();
            if members.iter().all(|&device| before[device] == root) || members.is_empty() {
                continue;
            }
            let kind = if level < 2 { VertexKind::Switch } else { VertexKind::Host };
            let vertex = vertices.len();
            vertices.push(Vertex { name: format!("{}{root}", name.to_lowercase()), kind, machine: Some(0) });
            let mut below: Vec<usize> = members.iter().map(|&device| top[device]).collect();
            below.sort_unstable();
            below.dedup();
            let bandwidth = if level == 4 { SOCKETS } else { PCIE };
            below.into_iter().for_each(|lower| link(lower, vertex, bandwidth, LATENCY.1, "PCIe".into()));
            members.into_iter().for_each(|device| top[device] = vertex);
        }
    }
}

//! Output of `nvidia-smi topo -m`: the kind of link between any two devices, and from each device to each NIC.
//!
//! The text names kinds, not bandwidths. `NV#` is a number of NVLinks. If all pairs have the same number, and that is
//! more than a device has links, they go through a switch. PCIe forms a tree, whose sockets follow from the NUMA and
//! CPU affinities. A second table belongs to a second host, a machine of its own. Bandwidths are assumed
//! ([`AssumedBandwidths`]), as in NCCL's model of machines. Every assumption is in the notes, with the flag that
//! changes it.

use std::collections::BTreeMap;

use super::{AssumedBandwidths, joined, refused};
use crate::{
    cluster::topology::graph::{Duplex, Link, Topology, Vertex, VertexKind},
    source::LoadError,
    text::printable,
    units,
};

/// Bytes per second between sockets.
const SOCKETS: f64 = 10e9;
/// Maximum number of NVLinks of a device (H100, B200).
const MOST_LINKS: u32 = 18;
/// Bytes per second of an NVLink on a V100, A100, H100, and on a bridge of GA102 (RTX 3090, A6000).
const NVLINK: f64 = 25e9;
const BRIDGED: f64 = 14.0625e9;
/// Number of links of such a bridge. Its devices have no other links.
const BRIDGE_LINKS: u32 = 4;
/// Latency in seconds between two devices on NVLink, and over one PCIe link.
const LATENCY: (f64, f64) = (0.3e-6, 0.5e-6);

/// Kind of link between two devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkKind {
    Nvlink(u32),
    /// Level of the tree: one switch, several, the host bridge, the NUMA node, between sockets.
    Pcie(usize),
}

const LEVELS: [&str; 5] = ["PIX", "PXB", "PHB", "NODE", "SYS"];
const SYS: usize = 4;

fn kind(cell: &str) -> Option<LinkKind> {
    if let Some(links) = cell.strip_prefix("NV") {
        return links.parse().ok().filter(|links| (1..=MOST_LINKS).contains(links)).map(LinkKind::Nvlink);
    }
    // Older drivers write SOC for links between sockets.
    let level = LEVELS.iter().position(|level| *level == cell).or((cell == "SOC").then_some(SYS));
    level.map(LinkKind::Pcie)
}

/// Line without escape sequences, which underline it.
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

/// True if a line is the head of the table: only names, the first of them of a device.
pub(super) fn is_head(line: &str) -> bool {
    let line = plain(line);
    let mut words = line.split_whitespace();
    words.next() == Some("GPU0") && words.next().is_none_or(|word| kind(word).is_none() && word != "X")
}

/// Table of one host.
#[derive(Debug, Default)]
struct Host {
    /// Kind of link between any two devices; `None` on the diagonal.
    kinds: Vec<Vec<Option<LinkKind>>>,
    /// Name of each NIC, and the level of its link to each device.
    nics: Vec<(String, Vec<usize>)>,
    /// Affinity that identifies the socket of each device.
    sockets: Vec<Option<String>>,
}

/// Reads the tables, one per host.
pub(super) fn read(text: &str, source: &str, name: &str, assumed: &AssumedBandwidths) -> Result<Topology, LoadError> {
    let lines: Vec<(usize, String)> = (1..).zip(text.lines().map(plain)).collect();
    let heads: Vec<usize> = (0..lines.len()).filter(|&at| is_head(&lines[at].1)).collect();
    let mut hosts = vec![];
    for (number, &head) in heads.iter().enumerate() {
        let end = heads.get(number + 1).copied().unwrap_or(lines.len());
        hosts.push(table(&lines[head..end], source)?);
    }
    let mut drawn =
        HostTopology { several: hosts.len() > 1, speeds: Speeds::of(&hosts, assumed), ..HostTopology::default() };
    for (machine, host) in (0..).zip(&hosts) {
        drawn.host(host, machine);
    }
    let HostTopology { vertices, links, .. } = drawn;
    let mut notes = drawn.speeds.notes(&hosts, &links);
    notes.extend(drawn.notes);
    let mut topology = Topology::new(name, vertices, links).map_err(|problem| refused(source, &problem))?;
    topology.notes = notes;
    // No table has the links between several hosts.
    if hosts.len() == 1 { joined(topology, source) } else { Ok(topology) }
}

/// Assumed bandwidths of links, bytes per second.
#[derive(Debug, Clone, Copy, Default)]
struct Speeds {
    nvlink: f64,
    pcie: f64,
    /// True for the bandwidths that the user gave.
    given: [bool; 2],
}

impl Speeds {
    fn of(hosts: &[Host], assumed: &AssumedBandwidths) -> Self {
        let bridges = hosts.iter().any(Host::is_bridged);
        let most = hosts.iter().flat_map(|host| host.kinds.iter().flatten().flatten());
        let most = most.filter_map(|kind| if let LinkKind::Nvlink(links) = kind { Some(*links) } else { None }).max();
        // The number of NVLinks shows the device's generation, which gives the generation of PCIe.
        let pcie = match most {
            Some(13..) => 48e9,
            Some(8..13) => 24e9,
            _ => 12e9,
        };
        Speeds {
            nvlink: assumed.nvlink.unwrap_or(if bridges { BRIDGED } else { NVLINK }),
            pcie: assumed.pcie.unwrap_or(pcie),
            given: [assumed.nvlink.is_some(), assumed.pcie.is_some()],
        }
    }

    /// Notes on the assumptions, with the flags that change them.
    fn notes(&self, hosts: &[Host], links: &[Link]) -> Vec<String> {
        let mut notes = vec![];
        let rate = |rate: f64| format!("{} GB/s", units::exact_number(rate / 1e9));
        if links.iter().any(|link| link.what.ends_with("NVLink")) {
            let why = match self.given[0] {
                true => "as was given",
                false if hosts.iter().any(Host::is_bridged) => {
                    "as on bridges of RTX 3090 and A6000; --nvlink-gbps or --hardware sets another"
                }
                false => "as on V100, A100 and H100; --nvlink-gbps or --hardware sets another",
            };
            notes.push(format!(
                "the table has no bandwidths: an NVLink is assumed to carry {} each way, {why}",
                rate(self.nvlink)
            ));
        }
        if links.iter().any(|link| link.what == "PCIe") {
            let why = if self.given[1] { "as was given" } else { "--pcie sets another" };
            let (pcie, sockets) = (rate(self.pcie), rate(SOCKETS));
            notes.push(format!(
                "PCIe is assumed to carry {pcie} ({why}), traffic between sockets {sockets}, as in NCCL"
            ));
        }
        notes
    }
}

/// Reads the table of one host.
fn table(lines: &[(usize, String)], source: &str) -> Result<Host, LoadError> {
    let head: Vec<&str> = lines[0].1.split_whitespace().collect();
    let count = head.iter().map_while(|word| device_number(word)).count();
    let nics: Vec<&str> = head[count..]
        .iter()
        .copied()
        .take_while(|word| !["CPU", "NUMA"].iter().any(|after| word.starts_with(after)))
        .collect();
    let has_numa = head.contains(&"NUMA");
    let refuse =
        |line: usize, problem: String, repair: &str| Err(LoadError::file(source, problem, repair).on_line(Some(line)));
    let mut host = Host { nics: nics.iter().map(|nic| (printable(nic), vec![])).collect(), ..Host::default() };
    let mut places = vec![];
    for (line, row) in &lines[1..] {
        let (line, kinds) = (*line, &host.kinds);
        let mut words = row.split_whitespace();
        let first = words.next();
        if first.and_then(device_number) != Some(kinds.len()) {
            if kinds.len() < count {
                let problem = format!("is not the row of GPU{}", kinds.len());
                return refuse(line, problem, "copy the whole table, a row for each device");
            }
            host.names_of_nics(row);
            continue;
        }
        if kinds.len() == count {
            let problem = format!("is the row of GPU{count}, for which the first line has no column");
            return refuse(line, problem, "copy the whole table, a column for each device");
        }
        let all: Vec<&str> = words.collect();
        if all.len() < count {
            let problem = format!("has {} of {count} columns", all.len());
            return refuse(line, problem, "copy the whole table, a row for each device");
        }
        let from = kinds.len();
        let mut read = vec![];
        for (to, cell) in all[..count].iter().enumerate() {
            let known = kind(cell);
            if known.is_none() != (from == to) {
                let problem = format!("GPU{from} to GPU{to} is `{}`", printable(cell));
                return refuse(line, problem, "write NV1 to NV18, PIX, PXB, PHB, NODE or SYS, and X on the diagonal");
            }
            read.push(known);
        }
        for (to, &known) in read.iter().enumerate().take(from) {
            if kinds[to][from] != known {
                let problem = format!("GPU{from} to GPU{to} differs from line {} in the other direction", places[to]);
                return refuse(line, problem, "copy the table as it was printed");
            }
        }
        let rest = &all[count..];
        for ((nic, levels), cell) in host.nics.iter_mut().zip(rest) {
            match kind(cell) {
                Some(LinkKind::Pcie(level)) => levels.push(level),
                _ => {
                    let problem = format!("GPU{from} to {nic} is `{}`", printable(cell));
                    return refuse(line, problem, "write PIX, PXB, PHB, NODE or SYS");
                }
            }
        }
        let after: Vec<&str> = rest.iter().skip(nics.len()).copied().collect();
        let told = if has_numa { after.get(1).or(after.first()) } else { after.first() };
        host.sockets
            .push(told.filter(|told| told.starts_with(|c: char| c.is_ascii_digit())).map(|told| printable(told)));
        host.kinds.push(read);
        places.push(line);
    }
    if host.kinds.len() < count {
        let problem = format!("ends before the row of GPU{}", host.kinds.len());
        return Err(LoadError::file(source, problem, "copy the whole table, a row for each device"));
    }
    // A NIC that is missing in some row is dropped.
    host.nics.retain(|(_, levels)| levels.len() == count);
    Ok(host)
}

impl Host {
    /// Reads the name of a NIC from a line of the legend: `NIC0: mlx5_0`.
    fn names_of_nics(&mut self, row: &str) {
        let Some((short, name)) = row.trim().split_once(':') else { return };
        if let Some((nic, _)) = self.nics.iter_mut().find(|(nic, _)| nic == short.trim()) {
            *nic = printable(name.trim());
        }
    }

    /// Links per device port, if all pairs have the same number and no device has that many to each.
    fn switched(&self) -> Option<u32> {
        let mut pairs = self.kinds.iter().flatten().flatten();
        let Some(LinkKind::Nvlink(ports)) = pairs.next() else { return None };
        let same = pairs.all(|kind| *kind == LinkKind::Nvlink(*ports));
        (same && ports * (self.kinds.len() as u32 - 1) > MOST_LINKS).then_some(*ports)
    }

    /// True if all NVLinks are those of bridges between two devices of GA102: four links, and no others.
    fn is_bridged(&self) -> bool {
        let of = |row: &Vec<Option<LinkKind>>| -> Vec<u32> {
            let links =
                |kind: &Option<LinkKind>| if let Some(LinkKind::Nvlink(links)) = kind { Some(*links) } else { None };
            row.iter().filter_map(links).collect()
        };
        let mut joined = self.kinds.iter().map(of).filter(|links| !links.is_empty()).peekable();
        joined.peek().is_some() && joined.all(|links| links == [BRIDGE_LINKS])
    }
}

/// Vertices and links added so far.
#[derive(Default)]
struct HostTopology {
    vertices: Vec<Vertex>,
    links: Vec<Link>,
    notes: Vec<String>,
    speeds: Speeds,
    /// True if there are several hosts, so that vertex names need the machine.
    several: bool,
    devices: usize,
}

impl HostTopology {
    fn vertex(&mut self, kind: VertexKind, name: String, machine: u32) -> usize {
        let name = if self.several && kind != VertexKind::Device { format!("m{machine}.{name}") } else { name };
        self.vertices.push(Vertex { name, kind, machine: Some(machine) });
        self.vertices.len() - 1
    }

    fn link(&mut self, from: usize, to: usize, bandwidth: f64, latency_s: f64, what: String) {
        self.links.push(Link { from: from as u32, to: to as u32, bandwidth, latency_s, duplex: Duplex::Full, what });
    }

    /// Adds a host.
    fn host(&mut self, host: &Host, machine: u32) {
        let count = host.kinds.len();
        let first = self.devices;
        self.devices += count;
        let leaves: Vec<usize> =
            (0..count).map(|gpu| self.vertex(VertexKind::Device, format!("gpu{}", first + gpu), machine)).collect();
        let nvlink = self.speeds.nvlink;
        if let Some(ports) = host.switched() {
            let switch = self.vertex(VertexKind::Switch, "nvswitch".into(), machine);
            for &leaf in &leaves {
                self.link(leaf, switch, f64::from(ports) * nvlink, LATENCY.0 / 2.0, format!("{ports} x NVLink"));
            }
            self.notes.push(format!(
                "NV{ports} between all pairs is more than the devices have links: they are assumed to go through a \
                switch"
            ));
        } else {
            for (a, row) in host.kinds.iter().enumerate() {
                for (b, kind) in row.iter().enumerate().skip(a + 1) {
                    if let Some(LinkKind::Nvlink(links)) = kind {
                        let what = format!("{links} x NVLink");
                        self.link(leaves[a], leaves[b], f64::from(*links) * nvlink, LATENCY.0, what);
                    }
                }
            }
        }
        let nics: Vec<usize> =
            host.nics.iter().map(|(name, _)| self.vertex(VertexKind::Nic, name.clone(), machine)).collect();
        PcieTree { host, machine, tops: [leaves, nics].concat(), groups: (0..count + host.nics.len()).collect() }
            .grow(self);
    }
}

/// PCIe tree under construction: devices, then NICs, by their group.
struct PcieTree<'a> {
    host: &'a Host,
    machine: u32,
    /// Highest vertex so far of each.
    tops: Vec<usize>,
    /// Lowest number in the group of each.
    groups: Vec<usize>,
}

impl PcieTree<'_> {
    fn grow(mut self, drawn: &mut HostTopology) {
        let (count, host) = (self.host.kinds.len(), self.host);
        let pcie = drawn.speeds.pcie;
        for (level, name) in LEVELS.iter().enumerate().take(SYS) {
            let before = self.groups.clone();
            for a in 0..count {
                for b in 0..a {
                    if host.kinds[a][b] == Some(LinkKind::Pcie(level)) {
                        self.join(a, b);
                    }
                }
            }
            // A NIC is below the vertex that joins it to its nearest devices.
            for (nic, (_, levels)) in host.nics.iter().enumerate() {
                let nearest = levels.iter().min().filter(|nearest| **nearest == level);
                if let Some(device) = nearest.and_then(|nearest| levels.iter().position(|own| own == nearest)) {
                    self.join(count + nic, device);
                }
            }
            let kind = if level < 2 { VertexKind::Switch } else { VertexKind::Host };
            self.rise(drawn, &before, kind, &name.to_lowercase(), pcie);
        }
        let apart = host.kinds.iter().flatten().any(|kind| *kind == Some(LinkKind::Pcie(SYS)));
        if !apart && host.nics.is_empty() {
            return;
        }
        // Devices of one socket are on the same side of the link between sockets, whatever their cells say.
        let before = self.groups.clone();
        let mut sockets: BTreeMap<&str, usize> = BTreeMap::new();
        for device in 0..count {
            let Some(socket) = host.sockets.get(device).and_then(Option::as_deref) else { continue };
            let first = *sockets.entry(socket).or_insert(device);
            self.join(device, first);
        }
        self.rise(drawn, &before, VertexKind::Host, "numa", pcie);
        let before = self.groups.clone();
        (1..self.groups.len()).for_each(|leaf| self.join(leaf, 0));
        self.rise(drawn, &before, VertexKind::Host, "sys", SOCKETS);
    }

    /// Merges the groups of two.
    fn join(&mut self, a: usize, b: usize) {
        let (low, high) = (self.groups[a].min(self.groups[b]), self.groups[a].max(self.groups[b]));
        self.groups.iter_mut().filter(|group| **group == high).for_each(|group| *group = low);
    }

    /// Adds a vertex above every group that has grown since `before`.
    fn rise(&mut self, drawn: &mut HostTopology, before: &[usize], kind: VertexKind, name: &str, bandwidth: f64) {
        for root in 0..self.groups.len() {
            let members: Vec<usize> = (0..self.groups.len()).filter(|&leaf| self.groups[leaf] == root).collect();
            if members.iter().all(|&leaf| before[leaf] == root) {
                continue;
            }
            let vertex = drawn.vertex(kind, format!("{name}{root}"), self.machine);
            let mut below: Vec<usize> = members.iter().map(|&leaf| self.tops[leaf]).collect();
            below.sort_unstable();
            below.dedup();
            below.into_iter().for_each(|lower| drawn.link(lower, vertex, bandwidth, LATENCY.1, "PCIe".into()));
            members.into_iter().for_each(|leaf| self.tops[leaf] = vertex);
        }
    }
}

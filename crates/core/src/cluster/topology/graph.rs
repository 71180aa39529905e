//! Graph of a topology: devices, switches, NICs and host bridges, joined by links with bandwidth, latency and duplex.
//!
//! A link has one or two *channels*, which transfers share: a full-duplex link has one per direction, a half-duplex
//! link a single one for both. A switch is limited by its ports, which are its links. Devices are numbered from 0 in
//! their order, the devices of a machine one after the other, as in [`Machines`]. `O(vertices + links)` memory.

use thiserror::Error;

use super::ways::RouteCache;
use crate::cluster::{
    limit_kind::MOST_LISTED_DEVICES,
    machines::{MOST_MACHINES, Machines},
};

/// Kind of vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VertexKind {
    /// Device: it computes, and stages of a plan run on it.
    Device,
    /// Switch: it forwards data as fast as its ports allow.
    Switch,
    /// Port of a machine to a network.
    Nic,
    /// Bridge of a processor: PCIe on one side, the other sockets on the other.
    Host,
}

impl VertexKind {
    /// All kinds, in the order of files.
    pub const ALL: [VertexKind; 4] = [VertexKind::Device, VertexKind::Switch, VertexKind::Nic, VertexKind::Host];

    /// Name in files and pictures.
    pub fn name(self) -> &'static str {
        match self {
            VertexKind::Device => "device",
            VertexKind::Switch => "switch",
            VertexKind::Nic => "nic",
            VertexKind::Host => "host",
        }
    }
}

/// Vertex of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vertex {
    /// Name, unique in the topology.
    pub name: String,
    /// Kind.
    pub kind: VertexKind,
    /// Machine of the vertex; `None` if it is between machines.
    pub machine: Option<u32>,
}

/// Relation of the two directions of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplex {
    /// Each direction has the full bandwidth.
    Full,
    /// Both directions share the bandwidth.
    Half,
    /// Only the direction from the first end to the second exists.
    OneWay,
}

impl Duplex {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Duplex::Full => "full",
            Duplex::Half => "half",
            Duplex::OneWay => "one-way",
        }
    }
}

/// Link between two vertices.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Vertex at its first end, by index.
    pub from: u32,
    /// Vertex at its second end, by index.
    pub to: u32,
    /// Bytes per second and direction; for half duplex, of both directions together.
    pub bandwidth: f64,
    /// Seconds until the first byte arrives.
    pub latency_s: f64,
    /// Relation of its directions.
    pub duplex: Duplex,
    /// Type of the link: `NVLink 2`, `PCIe 3 x16`.
    pub what: String,
}

impl Link {
    /// Channels of the link with this index: forward, and back if there is one.
    pub(super) fn channels(&self, index: usize) -> (u32, Option<u32>) {
        let first = 2 * index as u32;
        match self.duplex {
            Duplex::Full => (first, Some(first + 1)),
            Duplex::Half => (first, Some(first)),
            Duplex::OneWay => (first, None),
        }
    }
}

/// Step along a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hop {
    /// Vertex that it leads to.
    pub to: u32,
    /// Channel that it uses.
    pub channel: u32,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Latency, seconds.
    pub latency_s: f64,
}

/// Source of a topology's figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FigureSource {
    /// Stated figure.
    pub figure: String,
    /// Place where it is stated.
    pub source: String,
}

/// Devices and the links between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Name: `2xdgx-a100`, or the name in a file.
    pub name: String,
    /// Description.
    pub title: String,
    vertices: Vec<Vertex>,
    links: Vec<Link>,
    /// Vertex of each device.
    devices: Vec<u32>,
    machines: Machines,
    /// Hops from each vertex, in the order of the links.
    hops: Vec<Vec<Hop>>,
    /// Hops to each vertex: the vertex they start at, and their index there.
    pub(super) leading: Vec<Vec<(u32, u32)>>,
    /// Bytes of memory per device, if known.
    pub memory_bytes: Option<f64>,
    /// Hardware preset of its devices, if known.
    pub hardware: Option<String>,
    /// True if data may pass through a device on the way to another.
    pub relay: bool,
    /// True if every machine is a copy of the first and joined to the rest in the same way.
    pub(super) alike: bool,
    /// Sources of the figures.
    pub sources: Vec<FigureSource>,
    /// Assumptions.
    pub notes: Vec<String>,
    /// Cache of routes.
    pub(super) cache: RouteCache,
}

/// Reason why vertices and links do not form a topology.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TopologyProblem {
    /// There is no device.
    #[error("has no device; list at least one")]
    NoDevice,
    /// There are too many devices.
    #[error("has {0} devices, more than {MOST_LISTED_DEVICES}; leave some out")]
    TooManyDevices(usize),
    /// There are too many machines.
    #[error("has more than {MOST_MACHINES} machines; leave some out")]
    TooManyMachines,
    /// The devices of one machine are not consecutive.
    #[error("device `{0}` is not next to the other devices of its machine; list the devices machine by machine")]
    Scattered(String),
    /// Two vertices have one name.
    #[error("has two vertices named `{0}`; give each a different name")]
    Twice(String),
    /// A link leads from a vertex to itself.
    #[error("has a link from `{0}` to itself; leave it out")]
    Loop(String),
    /// A bandwidth is zero, negative, or not finite.
    #[error("has a link from `{from}` to `{to}` with a bandwidth of {value}; it must be above 0 and at most 1e30")]
    Bandwidth {
        /// First end.
        from: String,
        /// Second end.
        to: String,
        /// Value.
        value: String,
    },
    /// A latency is negative or not finite.
    #[error("has a link from `{from}` to `{to}` with a latency of {value} s; it must be from 0 to 1000")]
    Latency {
        /// First end.
        from: String,
        /// Second end.
        to: String,
        /// Value.
        value: String,
    },
    /// Some devices cannot reach others.
    #[error("has two parts without a link between them: {from} cannot reach {to}; add a link")]
    Apart {
        /// Names of the devices in the first part.
        from: String,
        /// Names of the devices that the first part does not reach.
        to: String,
    },
}

impl Topology {
    /// Builds a topology. Devices need not reach one another: see [`Topology::apart`].
    ///
    /// # Errors
    /// [`TopologyProblem`] with the vertex or link at fault.
    pub fn new(name: &str, vertices: Vec<Vertex>, links: Vec<Link>) -> Result<Self, TopologyProblem> {
        let mut names = std::collections::HashSet::new();
        if let Some(twice) = vertices.iter().find(|vertex| !names.insert(vertex.name.as_str())) {
            return Err(TopologyProblem::Twice(twice.name.clone()));
        }
        let devices: Vec<u32> =
            (0..vertices.len() as u32).filter(|&v| vertices[v as usize].kind == VertexKind::Device).collect();
        if devices.is_empty() {
            return Err(TopologyProblem::NoDevice);
        }
        if devices.len() > MOST_LISTED_DEVICES as usize {
            return Err(TopologyProblem::TooManyDevices(devices.len()));
        }
        let machines = machines(&vertices, &devices)?;
        let mut hops: Vec<Vec<Hop>> = vec![vec![]; vertices.len()];
        for (index, link) in links.iter().enumerate() {
            let name = |v: u32| vertices[v as usize].name.clone();
            let (from, to) = (name(link.from), name(link.to));
            if link.from == link.to {
                return Err(TopologyProblem::Loop(from));
            }
            if !(link.bandwidth > 0.0 && link.bandwidth <= 1e30) {
                return Err(TopologyProblem::Bandwidth { from, to, value: crate::units::exact_number(link.bandwidth) });
            }
            if !(0.0..=1000.0).contains(&link.latency_s) {
                return Err(TopologyProblem::Latency { from, to, value: crate::units::exact_number(link.latency_s) });
            }
            let (forward, back) = link.channels(index);
            let hop = |to, channel| Hop { to, channel, bandwidth: link.bandwidth, latency_s: link.latency_s };
            hops[link.from as usize].push(hop(link.to, forward));
            if let Some(back) = back {
                hops[link.to as usize].push(hop(link.from, back));
            }
        }
        let mut leading = vec![vec![]; hops.len()];
        for (from, own) in (0..).zip(&hops) {
            for (index, hop) in (0..).zip(own) {
                leading[hop.to as usize].push((from, index));
            }
        }
        Ok(Topology {
            name: name.into(),
            title: name.into(),
            vertices,
            links,
            devices,
            machines,
            hops,
            leading,
            memory_bytes: None,
            hardware: None,
            relay: false,
            alike: false,
            sources: vec![],
            notes: vec![],
            cache: RouteCache::default(),
        })
    }

    /// Topology of a single device.
    pub(super) fn lonely() -> Self {
        let vertices = vec![Vertex { name: "gpu0".into(), kind: VertexKind::Device, machine: Some(0) }];
        Topology {
            name: "one device".into(),
            title: "one device".into(),
            vertices,
            links: vec![],
            devices: vec![0],
            machines: Machines::one(1),
            hops: vec![vec![]],
            leading: vec![vec![]],
            memory_bytes: None,
            hardware: None,
            relay: false,
            alike: true,
            sources: vec![],
            notes: vec![],
            cache: RouteCache::default(),
        }
    }

    /// Vertices.
    pub fn vertices(&self) -> &[Vertex] {
        &self.vertices
    }

    /// Links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Number of devices.
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Vertex of a device.
    #[inline]
    pub fn vertex_of(&self, device: usize) -> u32 {
        self.devices[device]
    }

    /// Name of a device.
    pub fn device_name(&self, device: usize) -> &str {
        &self.vertices[self.devices[device] as usize].name
    }

    /// Machines of the devices.
    pub fn machines(&self) -> Machines {
        self.machines.clone()
    }

    /// Machine of a device.
    pub fn machine_of(&self, device: usize) -> usize {
        self.machines.machine_of(device as u32).unwrap_or(0)
    }

    /// True if every machine is a copy of the first and joined to the rest in the same way.
    pub fn machines_alike(&self) -> bool {
        self.alike
    }

    /// Hops from a vertex.
    #[inline]
    pub fn hops(&self, vertex: u32) -> &[Hop] {
        &self.hops[vertex as usize]
    }

    /// Upper bound of channel numbers: two per link. One-way and half-duplex links use only one of them.
    pub fn channels(&self) -> usize {
        2 * self.links.len()
    }

    /// Copy in which the bandwidth of the links that `which` selects, by index and link, is multiplied by `times`.
    #[must_use]
    pub fn widened(&self, which: impl Fn(usize, &Link) -> bool, times: f64) -> Topology {
        let mut wider = self.clone();
        for (index, link) in wider.links.iter_mut().enumerate() {
            if which(index, link) {
                link.bandwidth *= times;
            }
        }
        for hop in wider.hops.iter_mut().flatten() {
            hop.bandwidth = wider.links[hop.channel as usize / 2].bandwidth;
        }
        // The machines may no longer be copies of one another.
        wider.alike = false;
        wider
    }

    /// Bytes per second of a channel.
    pub fn channel_bandwidth(&self, channel: u32) -> f64 {
        self.links[channel as usize / 2].bandwidth
    }

    /// Type of link between the devices of a machine, in one word: the fastest that a device has.
    pub fn joined_by(&self) -> &'static str {
        const KINDS: [&str; 4] = ["NVLink", "xGMI", "ICI", "PCIe"];
        let widest = self.devices.iter().flat_map(|&vertex| &self.hops[vertex as usize]);
        let widest = widest.max_by(|a, b| a.bandwidth.total_cmp(&b.bandwidth));
        let what = widest.map_or("", |hop| &*self.links[hop.channel as usize / 2].what);
        KINDS.into_iter().find(|kind| what.contains(kind)).unwrap_or("links")
    }

    /// Channel as text: `gpu3 -> nvswitch`.
    pub fn channel_name(&self, channel: u32) -> String {
        let link = &self.links[channel as usize / 2];
        let (from, to) = if channel.is_multiple_of(2) { (link.from, link.to) } else { (link.to, link.from) };
        let arrow = if link.duplex == Duplex::Half { "<>" } else { "->" };
        format!("{} {arrow} {}", self.vertices[from as usize].name, self.vertices[to as usize].name)
    }

    /// True if data may pass through a vertex on its way.
    #[inline]
    pub(super) fn passes(&self, vertex: u32) -> bool {
        self.relay || self.vertices[vertex as usize].kind != VertexKind::Device
    }

    /// Two parts of the devices, if one device cannot reach all others: the devices that it reaches, and the rest.
    /// `O(devices · links)` at worst, `O(links)` if every link has both directions and devices relay, or machines are
    /// alike.
    pub fn apart(&self) -> Option<(Vec<usize>, Vec<usize>)> {
        let both_ways = self.links.iter().all(|link| link.duplex != Duplex::OneWay);
        // Devices that do not relay reach different sets, so each device must be tested.
        let enough = both_ways && self.relay || self.alike;
        for source in 0..if enough { 1 } else { self.devices() } {
            let reached = self.reached_from(source);
            if reached.iter().any(|&reached| !reached) {
                let part = |inside: bool| (0..self.devices()).filter(|&d| reached[d] == inside).collect();
                return Some((part(true), part(false)));
            }
        }
        None
    }

    /// True for the devices that `source` reaches.
    fn reached_from(&self, source: usize) -> Vec<bool> {
        let start = self.devices[source];
        let mut seen = vec![false; self.vertices.len()];
        seen[start as usize] = true;
        let mut stack = vec![start];
        while let Some(v) = stack.pop() {
            if v != start && !self.passes(v) {
                continue;
            }
            for hop in &self.hops[v as usize] {
                if !std::mem::replace(&mut seen[hop.to as usize], true) {
                    stack.push(hop.to);
                }
            }
        }
        self.devices.iter().map(|&v| seen[v as usize]).collect()
    }

    /// Checks that all devices reach one another.
    ///
    /// # Errors
    /// [`TopologyProblem::Apart`] with the two parts.
    pub fn joined(&self) -> Result<(), TopologyProblem> {
        let Some((from, to)) = self.apart() else { return Ok(()) };
        Err(TopologyProblem::Apart { from: self.listed(&from), to: self.listed(&to) })
    }

    /// Names of devices; only the first few of many.
    pub fn listed(&self, devices: &[usize]) -> String {
        const SHOWN: usize = 8;
        let names: Vec<&str> = devices.iter().take(SHOWN).map(|&device| self.device_name(device)).collect();
        let more = devices.len().saturating_sub(SHOWN);
        if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
    }
}

/// Number of devices per machine; one machine if none is named.
fn machines(vertices: &[Vertex], devices: &[u32]) -> Result<Machines, TopologyProblem> {
    let mut sizes: Vec<u16> = vec![];
    let mut known: Vec<Option<u32>> = vec![];
    for &device in devices {
        let machine = vertices[device as usize].machine;
        if known.last() == Some(&machine) {
            if let Some(size) = sizes.last_mut() {
                *size += 1;
            }
            continue;
        }
        if known.contains(&machine) {
            return Err(TopologyProblem::Scattered(vertices[device as usize].name.clone()));
        }
        known.push(machine);
        sizes.push(1);
    }
    Machines::new(&sizes).ok_or(TopologyProblem::TooManyMachines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, machine: u32) -> Vertex {
        Vertex { name: name.into(), kind: VertexKind::Device, machine: Some(machine) }
    }

    fn link(from: u32, to: u32, bandwidth: f64, duplex: Duplex) -> Link {
        Link { from, to, bandwidth, latency_s: 0.0, duplex, what: String::new() }
    }

    #[test]
    fn what_is_no_topology_is_told() {
        let two = || vec![device("a", 0), device("b", 1)];
        let told = |vertices, links| Topology::new("t", vertices, links).unwrap_err().to_string();
        assert!(told(vec![], vec![]).contains("no device"));
        assert!(told(vec![device("a", 0), device("a", 0)], vec![]).contains("two vertices named `a`"));
        assert!(told(two(), vec![link(0, 0, 1.0, Duplex::Full)]).contains("to itself"));
        assert!(told(two(), vec![link(0, 1, 0.0, Duplex::Full)]).contains("bandwidth of 0"));
        assert!(told(two(), vec![link(0, 1, f64::NAN, Duplex::Full)]).contains("bandwidth"));
        let late = Link { latency_s: -1.0, ..link(0, 1, 1.0, Duplex::Full) };
        assert!(told(two(), vec![late]).contains("latency of -1"));
        assert!(told(vec![device("a", 0), device("b", 1), device("c", 0)], vec![]).contains("`c` is not"));
    }

    #[test]
    fn parts_that_nothing_joins_are_named() {
        let vertices = || vec![device("a", 0), device("b", 0), device("c", 0)];
        let chain = vec![link(0, 1, 1.0, Duplex::Full), link(1, 2, 1.0, Duplex::Full)];
        let mut topology = Topology::new("t", vertices(), chain).unwrap();
        // A device passes nothing on unless it may.
        let error = topology.joined().unwrap_err().to_string();
        assert!(error.contains("a, b cannot reach c"), "{error}");
        topology.relay = true;
        assert_eq!(topology.joined(), Ok(()));
        let one_way = vec![link(0, 1, 1.0, Duplex::OneWay), link(1, 2, 1.0, Duplex::OneWay)];
        let topology = Topology { relay: true, ..Topology::new("t", vertices(), one_way).unwrap() };
        assert_eq!(topology.apart(), Some((vec![1, 2], vec![0])));
    }

    #[test]
    fn directions_have_channels() {
        let topology =
            Topology::new("t", vec![device("a", 0), device("b", 0)], vec![link(0, 1, 5.0, Duplex::Full)]).unwrap();
        assert_eq!((topology.hops(0)[0].channel, topology.hops(1)[0].channel), (0, 1));
        assert_eq!(topology.channel_name(1), "b -> a");
        let half =
            Topology::new("t", vec![device("a", 0), device("b", 0)], vec![link(0, 1, 5.0, Duplex::Half)]).unwrap();
        assert_eq!((half.hops(0)[0].channel, half.hops(1)[0].channel), (0, 0));
    }
}

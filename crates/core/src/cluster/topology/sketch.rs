//! Topology under construction: vertices and links, one machine after the other.

use super::graph::{Duplex, Link, Topology, TopologyProblem, Vertex, VertexKind};

/// Latency from one NIC to another in seconds, half of it on each side.
pub(super) const NETWORK_S: f64 = 2.6e-6;
/// Latency from a leaf switch to the spine, seconds.
const SPINE_S: f64 = 0.3e-6;

/// Vertices and links added so far.
#[derive(Default)]
pub(super) struct TopologyBuilder {
    vertices: Vec<Vertex>,
    links: Vec<Link>,
    machine: Option<u32>,
    devices: u32,
    /// True if there are several machines, so that vertex names need the machine.
    several: bool,
}

impl TopologyBuilder {
    /// Empty sketch of several machines or of one.
    pub(super) fn new(several: bool) -> Self {
        TopologyBuilder { several, ..TopologyBuilder::default() }
    }

    /// Sets the machine of all vertices added from now on; `None` is between machines.
    pub(super) fn enter(&mut self, machine: Option<u32>) {
        self.machine = machine;
    }

    /// Adds devices, numbered through all machines, and returns their vertices.
    pub(super) fn devices(&mut self, count: u32) -> Vec<u32> {
        let first = self.devices;
        self.devices += count;
        (first..first + count).map(|number| self.add(VertexKind::Device, format!("gpu{number}"))).collect()
    }

    /// Adds a vertex that is not a device. With several machines, its name gets the machine.
    pub(super) fn vertex(&mut self, kind: VertexKind, name: &str) -> u32 {
        let name = match self.machine {
            Some(machine) if self.several => format!("m{machine}.{name}"),
            _ => name.into(),
        };
        self.add(kind, name)
    }

    /// First host bridge of the machine.
    pub(super) fn host(&self) -> Option<u32> {
        let own = |vertex: &Vertex| vertex.kind == VertexKind::Host && vertex.machine == self.machine;
        self.vertices.iter().position(own).map(|index| index as u32)
    }

    fn add(&mut self, kind: VertexKind, name: String) -> u32 {
        self.vertices.push(Vertex { name, kind, machine: self.machine });
        self.vertices.len() as u32 - 1
    }

    /// Adds a link.
    pub(super) fn link(&mut self, link: Link) {
        self.links.push(link);
    }

    /// Adds a link from its parts.
    pub(super) fn join(&mut self, from: u32, to: u32, bandwidth: f64, latency_s: f64, duplex: Duplex, what: &str) {
        self.link(Link { from, to, bandwidth, latency_s, duplex, what: what.into() });
    }

    /// Joins machines by their NICs, given by rail: one switch per rail, and a spine that joins several rails at full
    /// speed.
    pub(super) fn network(&mut self, rails: &[Vec<u32>], bandwidth: f64, what: &str) {
        let mut leaves = vec![];
        for (number, nics) in rails.iter().enumerate() {
            let name = if rails.len() == 1 { "switch".into() } else { format!("leaf{number}") };
            let leaf = self.vertex(VertexKind::Switch, &name);
            nics.iter().for_each(|&nic| self.join(nic, leaf, bandwidth, NETWORK_S / 2.0, Duplex::Full, what));
            leaves.push((leaf, nics.len() as f64 * bandwidth));
        }
        if leaves.len() > 1 {
            let spine = self.vertex(VertexKind::Switch, "spine");
            leaves.into_iter().for_each(|(leaf, width)| self.join(leaf, spine, width, SPINE_S, Duplex::Full, "spine"));
        }
    }

    /// Builds the topology.
    pub(super) fn topology(self, name: &str) -> Result<Topology, TopologyProblem> {
        Topology::new(name, self.vertices, self.links)
    }
}

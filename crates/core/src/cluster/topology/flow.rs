//! Maximum flow from some devices to others: Dinic's algorithm on bandwidths.
//!
//! `O(vertices² · links)` at worst; a few rounds on real topologies.

use super::graph::Topology;

/// Arc with its residual capacity. The index of its reverse has the last bit flipped.
#[derive(Debug, Clone, Copy)]
struct FlowArc {
    to: u32,
    left: f64,
    /// Channel, if the arc is one.
    channel: Option<u32>,
}

/// Network of arcs over the vertices of a topology, a source and a sink.
struct FlowNetwork {
    arcs: Vec<FlowArc>,
    from: Vec<Vec<u32>>,
    /// Capacity at or below which an arc is empty.
    least: f64,
}

impl FlowNetwork {
    fn add(&mut self, from: u32, to: u32, capacity: f64, channel: Option<u32>) {
        for (from, to, left, channel) in [(from, to, capacity, channel), (to, from, 0.0, None)] {
            self.from[from as usize].push(self.arcs.len() as u32);
            self.arcs.push(FlowArc { to, left, channel });
        }
    }

    /// Distance from the source by vertex, over arcs with residual capacity.
    fn levels(&self, source: u32) -> Vec<u32> {
        let mut level = vec![u32::MAX; self.from.len()];
        level[source as usize] = 0;
        let mut queue = std::collections::VecDeque::from([source]);
        while let Some(v) = queue.pop_front() {
            for &arc in &self.from[v as usize] {
                let FlowArc { to, left, .. } = self.arcs[arc as usize];
                if left > self.least && level[to as usize] == u32::MAX {
                    level[to as usize] = level[v as usize] + 1;
                    queue.push_back(to);
                }
            }
        }
        level
    }

    /// Pushes up to `most` from a vertex to the sink along levels.
    fn push(&mut self, v: u32, sink: u32, most: f64, level: &[u32], next: &mut [usize]) -> f64 {
        if v == sink {
            return most;
        }
        while next[v as usize] < self.from[v as usize].len() {
            let arc = self.from[v as usize][next[v as usize]] as usize;
            let FlowArc { to, left, .. } = self.arcs[arc];
            if left > self.least && level[to as usize] == level[v as usize] + 1 {
                let pushed = self.push(to, sink, most.min(left), level, next);
                if pushed > 0.0 {
                    self.arcs[arc].left -= pushed;
                    self.arcs[arc ^ 1].left += pushed;
                    return pushed;
                }
            }
            next[v as usize] += 1;
        }
        0.0
    }
}

/// Bytes per second that the marked devices send to the others if all links are used at once, and the channels that are
/// then full. Devices relay data only if the topology allows it.
pub(super) fn between(topology: &Topology, sends: &[bool]) -> (f64, Vec<u32>) {
    let vertices = topology.vertices().len() as u32;
    let (source, sink) = (vertices, vertices + 1);
    let widest = topology.links().iter().map(|link| link.bandwidth).fold(0.0, f64::max);
    let from = vec![vec![]; vertices as usize + 2];
    let mut network = FlowNetwork { arcs: vec![], from, least: 1e-9 * widest };
    let mut role: Vec<Option<bool>> = vec![None; vertices as usize];
    for (device, &sends) in sends.iter().enumerate() {
        let vertex = topology.vertex_of(device);
        role[vertex as usize] = Some(sends);
        let (from, to) = if sends { (source, vertex) } else { (vertex, sink) };
        network.add(from, to, f64::INFINITY, None);
    }
    for v in 0..vertices {
        for hop in topology.hops(v) {
            let (out, into) = (role[v as usize], role[hop.to as usize]);
            if !topology.relay && (out == Some(false) || into == Some(true)) {
                continue;
            }
            network.add(v, hop.to, hop.bandwidth, Some(hop.channel));
        }
    }
    let mut total = 0.0;
    loop {
        let level = network.levels(source);
        if level[sink as usize] == u32::MAX {
            let cut = |v: &u32| {
                let arcs = &network.from[*v as usize];
                let across = arcs.iter().map(|&arc| network.arcs[arc as usize]);
                let across = across.filter(|arc| level[arc.to as usize] == u32::MAX);
                across.filter_map(|arc| arc.channel).collect::<Vec<u32>>()
            };
            let mut full: Vec<u32> =
                (0..vertices).filter(|&v| level[v as usize] != u32::MAX).flat_map(|v| cut(&v)).collect();
            full.sort_unstable();
            full.dedup();
            return (total, full);
        }
        let mut next = vec![0; network.from.len()];
        loop {
            let pushed = network.push(source, sink, f64::INFINITY, &level, &mut next);
            if pushed <= 0.0 {
                break;
            }
            total += pushed;
        }
    }
}

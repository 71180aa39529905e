//! Measured pairs as a topology: one link per pair, which shares nothing with the others.

use super::{csv::PRIVATE, joined, refused};
use crate::{
    cluster::topology::graph::{Duplex, Link, Topology, Vertex, VertexKind},
    source::LoadError,
};

/// Measurements of all pairs.
pub(super) struct PairMeasurements<'a> {
    /// Bandwidths in GB/s. Rows are senders.
    pub(super) bandwidth: &'a [Vec<f64>],
    /// Latencies in microseconds, if measured.
    pub(super) latency: Option<&'a [Vec<f64>]>,
    /// True if both directions of a pair share its link.
    pub(super) shared: &'a dyn Fn(usize, usize) -> bool,
}

impl PairMeasurements<'_> {
    /// Builds the topology, with the method of measurement as a note.
    pub(super) fn topology(&self, source: &str, name: &str, how: String) -> Result<Topology, LoadError> {
        let count = self.bandwidth.len();
        let mut links = vec![];
        for a in 0..count {
            for b in a + 1..count {
                let (there, back) = (self.bandwidth[a][b], self.bandwidth[b][a]);
                let link = |from: usize, to: usize, bandwidth: f64, duplex: Duplex| Link {
                    from: from as u32,
                    to: to as u32,
                    bandwidth: bandwidth * 1e9,
                    latency_s: self.latency.map_or(0.0, |latency| latency[from][to] * 1e-6),
                    duplex,
                    what: String::new(),
                };
                if (self.shared)(a, b) {
                    links.push(link(a, b, there.min(back), Duplex::Half));
                } else {
                    links.extend([link(a, b, there, Duplex::OneWay), link(b, a, back, Duplex::OneWay)]);
                }
            }
        }
        let vertex =
            |device: usize| Vertex { name: format!("gpu{device}"), kind: VertexKind::Device, machine: Some(0) };
        let topology = Topology::new(name, (0..count).map(vertex).collect(), links);
        let mut topology = topology.map_err(|problem| refused(source, &problem))?;
        topology.notes = vec![how, PRIVATE.into()];
        joined(topology, source)
    }
}

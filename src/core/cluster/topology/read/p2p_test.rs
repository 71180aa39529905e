//! What NVIDIA's sample `p2pBandwidthLatencyTest` prints: measured bandwidths of all pairs, in GB/s, and latencies in µs.
//!
//! Read are the unidirectional bandwidths with peer access (without it where that is all there is), and the latencies
//! beside them. Where both directions at once are less than a quarter faster than one, they share a link (half duplex).

use super::{csv::PRIVATE, joined, refused};
use crate::{
    cluster::topology::{Duplex, Link, Topology, Vertex, VertexKind},
    source::LoadError,
    text::printable,
};

/// So much faster must both directions at once be than one of them to have a channel each.
const FULL_DUPLEX: f64 = 1.25;

/// The matrix below the first line that begins so.
fn matrix(text: &str, source: &str, heading: &str) -> Result<Option<Vec<Vec<f64>>>, LoadError> {
    let mut lines = (1..).zip(text.lines()).skip_while(|(_, line)| !line.trim_start().starts_with(heading));
    if lines.next().is_none() {
        return Ok(None);
    }
    let refuse =
        |line: usize, problem: String, repair: &str| Err(LoadError::file(source, problem, repair).on_line(Some(line)));
    let Some((_, head)) = lines.next() else {
        return Err(LoadError::file(source, format!("ends after `{heading}`"), "copy all that the test prints"));
    };
    let count = head.split_whitespace().skip(1).count();
    let mut rows: Vec<Vec<f64>> = vec![];
    for (line, row) in lines.by_ref().take(count) {
        let cells: Vec<&str> = row.split_whitespace().skip(1).collect();
        if cells.len() != count || row.split_whitespace().next() != Some(rows.len().to_string().as_str()) {
            let problem = format!("is not the row of device {} with {count} columns", rows.len());
            return refuse(line, problem, "copy all that the test prints");
        }
        let from = rows.len();
        let mut values = vec![];
        for (to, cell) in cells.into_iter().enumerate() {
            match cell.parse::<f64>() {
                Ok(value) if value.is_finite() && (value > 0.0 || from == to) => values.push(value),
                _ => {
                    let problem = format!("device {from} to {to} is {}, and must be above 0", printable(cell));
                    return refuse(line, problem, "run the test again, or write what the pair attains");
                }
            }
        }
        rows.push(values);
    }
    if rows.len() < count || count == 0 {
        let problem = format!("ends before the row of device {} below `{heading}`", rows.len());
        return Err(LoadError::file(source, problem, "copy all that the test prints"));
    }
    Ok(Some(rows))
}

/// Reads the matrices.
pub(super) fn read(text: &str, source: &str, name: &str) -> Result<Topology, LoadError> {
    let mut found = None;
    for mode in ["P2P=Enabled", "P2P=Disabled"] {
        if let Some(bandwidth) = matrix(text, source, &format!("Unidirectional {mode}"))? {
            found = Some((mode, bandwidth));
            break;
        }
    }
    let Some((mode, bandwidth)) = found else {
        let problem = "has no matrix `Unidirectional P2P=Enabled Bandwidth`";
        return Err(LoadError::file(source, problem, "copy all that the test prints"));
    };
    let same_size = |matrix: &Vec<Vec<f64>>| matrix.len() == bandwidth.len();
    let both = matrix(text, source, &format!("Bidirectional {mode}"))?.filter(same_size);
    let latency = matrix(text, source, &format!("{mode} Latency"))?.filter(same_size);
    let mut links = vec![];
    for a in 0..bandwidth.len() {
        for b in a + 1..bandwidth.len() {
            let (there, back) = (bandwidth[a][b], bandwidth[b][a]);
            let together = both.as_ref().map(|both| both[a][b].min(both[b][a]));
            let link = |from: usize, to: usize, bandwidth: f64, duplex: Duplex| Link {
                from: from as u32,
                to: to as u32,
                bandwidth: bandwidth * 1e9,
                latency_s: latency.as_ref().map_or(0.0, |latency| latency[from][to] * 1e-6),
                duplex,
                what: String::new(),
            };
            if together.is_some_and(|together| together < FULL_DUPLEX * there.max(back)) {
                links.push(link(a, b, there.min(back), Duplex::Half));
            } else {
                links.extend([link(a, b, there, Duplex::OneWay), link(b, a, back, Duplex::OneWay)]);
            }
        }
    }
    let vertex = |device: usize| Vertex { name: format!("gpu{device}"), kind: VertexKind::Device, machine: Some(0) };
    let topology = Topology::new(name, (0..bandwidth.len()).map(vertex).collect(), links);
    let mut topology = topology.map_err(|problem| refused(source, &problem))?;
    topology.notes = vec![format!("measured with {mode}"), PRIVATE.into()];
    joined(topology, source)
}

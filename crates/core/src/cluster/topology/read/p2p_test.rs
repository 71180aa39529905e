//! Output of NVIDIA's sample `p2pBandwidthLatencyTest`: measured bandwidths of all pairs in GB/s, and latencies in µs.
//!
//! It reads the unidirectional bandwidths with peer access (without it if there are no others), and the latencies of
//! the same mode. If both directions at once are less than a quarter faster than one, they share a link (half duplex).

use super::matrix::PairMeasurements;
use crate::{cluster::topology::graph::Topology, source::LoadError, text::printable};

/// Minimum ratio of both directions at once to one direction for a channel per direction.
pub(super) const FULL_DUPLEX: f64 = 1.25;

/// Minimum speed-up of a pair without peer access for a note.
const NOTED: f64 = 1.1;

/// Matrix below the first line that begins with `heading`.
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
                    return refuse(line, problem, "run the test again, or write the bandwidth of the pair");
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
    let shared = |a: usize, b: usize| {
        let there = bandwidth[a][b].max(bandwidth[b][a]);
        both.as_ref().is_some_and(|both| both[a][b].min(both[b][a]) < FULL_DUPLEX * there)
    };
    let measured = PairMeasurements { bandwidth: &bandwidth, latency: latency.as_deref(), shared: &shared };
    let mut topology = measured.topology(source, name, format!("measured with {mode}"))?;
    if mode == "P2P=Enabled" {
        let without = matrix(text, source, "Unidirectional P2P=Disabled")?.filter(same_size);
        topology.notes.extend(without.and_then(|without| faster_without(&bandwidth, &without)));
    }
    Ok(topology)
}

/// Note about pairs that are faster through the host than with peer access.
fn faster_without(with: &[Vec<f64>], without: &[Vec<f64>]) -> Option<String> {
    let count = with.len();
    let pairs = (0..count).flat_map(|a| (0..count).filter(move |&b| a != b).map(move |b| (a, b)));
    let faster: Vec<(usize, usize)> = pairs.filter(|&(a, b)| without[a][b] > NOTED * with[a][b]).collect();
    let ratio = |&(a, b): &(usize, usize)| without[a][b] / with[a][b];
    let &(a, b) = faster.iter().max_by(|one, other| ratio(one).total_cmp(&ratio(other)))?;
    Some(format!(
        "{} of {} pairs are faster without peer access, device {a} to {b} most: {} instead of {} GB/s; NCCL_P2P_DISABLE=1 \
         may help",
        faster.len(),
        count * (count - 1),
        without[a][b],
        with[a][b]
    ))
}

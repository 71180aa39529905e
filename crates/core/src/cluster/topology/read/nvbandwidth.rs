//! Output of NVIDIA's `nvbandwidth`: measured bandwidths of all pairs, in GB/s.
//!
//! It reads the first matrix of copies between devices in one direction; the heading states whether the row or the
//! column sends. A matrix of both directions at once shows links that the directions share (half duplex).

use super::{matrix::PairMeasurements, p2p_test::FULL_DUPLEX};
use crate::{cluster::topology::graph::Topology, source::LoadError, text::printable};

/// GB/s of all pairs. Rows are senders.
type PairBandwidths = Vec<Vec<f64>>;

/// True if a line is the heading of a matrix between devices.
pub(super) fn is_heading(line: &str) -> bool {
    line.starts_with("memcpy ") && line.contains("GPU(row)") && line.contains("GPU(column)")
}

/// Reads the matrices.
pub(super) fn read(text: &str, source: &str, name: &str) -> Result<Topology, LoadError> {
    let lines: Vec<&str> = text.lines().collect();
    let mut test = String::new();
    let mut one_way: Option<(String, PairBandwidths)> = None;
    let mut both_ways: Option<PairBandwidths> = None;
    for (at, line) in lines.iter().enumerate() {
        if let Some(running) = line.trim().strip_prefix("Running ") {
            test = running.trim_end_matches('.').to_string();
        }
        if !is_heading(line.trim()) {
            continue;
        }
        let mut rows = square(&lines, at + 1, source)?;
        if line.contains("<-") {
            rows = (0..rows.len()).map(|to| rows.iter().map(|row| row[to]).collect()).collect();
        }
        if line.contains("<->") || test.contains("bidirectional") {
            // Two copies run at once. The comparison uses the sum of both.
            both_ways = both_ways.or(Some(rows));
        } else if one_way.is_none() {
            one_way = Some((test.clone(), rows));
        }
    }
    let Some((test, bandwidth)) = one_way else {
        let repair = "run nvbandwidth -t device_to_device_memcpy_write_ce, and copy all that it prints";
        return Err(LoadError::file(source, "has no matrix of copies in one direction", repair));
    };
    let both = both_ways.filter(|both| both.len() == bandwidth.len());
    let shared = |a: usize, b: usize| {
        let there = bandwidth[a][b].max(bandwidth[b][a]);
        both.as_ref().is_some_and(|both| both[a][b].min(both[b][a]) < FULL_DUPLEX * there)
    };
    let measured = PairMeasurements { bandwidth: &bandwidth, latency: None, shared: &shared };
    let test = if test.is_empty() { "device to device".into() } else { printable(&test) };
    measured.topology(source, name, format!("measured by nvbandwidth, {test}"))
}

/// Matrix whose columns are named on this line.
fn square(lines: &[&str], head: usize, source: &str) -> Result<PairBandwidths, LoadError> {
    let count = lines.get(head).map_or(0, |line| line.split_whitespace().count());
    let refuse = |at: usize, problem: String| {
        let repair = "copy all that nvbandwidth prints";
        Err(LoadError::file(source, problem, repair).on_line(Some(at + 1)))
    };
    let mut rows = vec![];
    for from in 0..count {
        let at = head + 1 + from;
        let words: Vec<&str> = lines.get(at).map_or(vec![], |line| line.split_whitespace().collect());
        if words.len() != count + 1 || words[0] != from.to_string() {
            return refuse(at, format!("is not the row of device {from} with {count} columns"));
        }
        let mut row = vec![];
        for (to, cell) in words[1..].iter().enumerate() {
            match cell.parse::<f64>() {
                Ok(value) if value.is_finite() && value > 0.0 => row.push(value),
                _ if from == to => row.push(0.0),
                _ => return refuse(at, format!("device {from} to {to} is {}, and must be above 0", printable(cell))),
            }
        }
        rows.push(row);
    }
    if count == 0 {
        return refuse(head, "names no devices".into());
    }
    Ok(rows)
}

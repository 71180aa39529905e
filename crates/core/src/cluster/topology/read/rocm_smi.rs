//! Output of `rocm-smi --showtopo` and `amd-smi topology`: the kind of link between any two devices.
//!
//! Two tables are read: the link types, and the bandwidths in MB/s of `amd-smi`, if present. An xGMI link without a
//! bandwidth is taken as [`XGMI`], and PCIe as 12 GB/s. The notes state all assumptions.

use super::{AssumedBandwidths, joined, refused};
use crate::{
    cluster::topology::graph::{Duplex, Link, Topology, Vertex, VertexKind},
    source::LoadError,
    text::printable,
    units,
};

/// Bytes per second of an xGMI link, per direction (MI200; MI300X has 64 GB/s).
const XGMI: f64 = 50e9;
const PCIE: f64 = 12e9;
const LATENCY: (f64, f64) = (0.3e-6, 0.5e-6);

/// True if a line is the heading of the table of link types.
pub(super) fn is_heading(line: &str) -> bool {
    let line = line.trim_matches(|c: char| c == '=' || c.is_whitespace());
    line.starts_with("Link Type between two GPUs") || line.starts_with("LINK TYPE TABLE")
}

/// True if a line is the heading of another table of the two programs.
fn is_other_heading(line: &str) -> bool {
    line.contains("between two GPUs") || line.contains("Numa Nodes") || line.trim_end().ends_with("TABLE:")
}

/// True if a text is from one of the two programs, whatever part of it was copied.
pub(super) fn is_of(text: &str) -> bool {
    text.lines().any(|line| is_heading(line) || is_other_heading(line))
}

/// Reads the tables.
pub(super) fn read(text: &str, source: &str, name: &str, assumed: &AssumedBandwidths) -> Result<Topology, LoadError> {
    let lines: Vec<&str> = text.lines().collect();
    let Some(head) = lines.iter().position(|line| is_heading(line)) else {
        let repair = "copy the table `Link Type between two GPUs` of rocm-smi --showtopo, or LINK TYPE TABLE of \
            amd-smi topology";
        return Err(LoadError::file(source, "has no table of link types", repair));
    };
    let kinds = table(&lines, head, source)?;
    let rates = lines.iter().position(|line| line.trim_start().starts_with("NUMA BW TABLE"));
    let rates = rates.map(|at| table(&lines, at, source)).transpose()?;
    let count = kinds.len();
    let vertex = |device: usize| Vertex { name: format!("gpu{device}"), kind: VertexKind::Device, machine: Some(0) };
    let mut vertices: Vec<Vertex> = (0..count).map(vertex).collect();
    let mut links = vec![];
    let mut link = |from: usize, to: usize, bandwidth: f64, latency_s: f64, what: &str| {
        let (from, to, what) = (from as u32, to as u32, what.into());
        links.push(Link { from, to, bandwidth, latency_s, duplex: Duplex::Full, what });
    };
    let (mut over_pcie, mut told) = (false, 0);
    for (a, row) in kinds.iter().enumerate() {
        for (b, (line, kind)) in row.iter().enumerate().skip(a + 1) {
            match &**kind {
                "XGMI" => {
                    let rate = rates.as_ref().and_then(|rates| megabytes(&rates.get(a)?.get(b)?.1));
                    told += usize::from(rate.is_some());
                    link(a, b, rate.or(assumed.nvlink).unwrap_or(XGMI), LATENCY.0, "xGMI");
                }
                "PCIE" => over_pcie = true,
                other => {
                    let problem = format!("GPU{a} to GPU{b} is `{}`", printable(other));
                    let repair = "write XGMI or PCIE, and 0 or SELF on the diagonal";
                    return Err(LoadError::file(source, problem, repair).on_line(Some(*line)));
                }
            }
        }
    }
    let pcie = assumed.pcie.unwrap_or(PCIE);
    if over_pcie {
        vertices.push(Vertex { name: "host".into(), kind: VertexKind::Host, machine: Some(0) });
        (0..count).for_each(|device| link(device, count, pcie, LATENCY.1, "PCIe"));
    }
    let rate = |rate: f64| format!("{} GB/s", units::exact_number(rate / 1e9));
    let mut notes = vec![];
    let xgmi = links.iter().filter(|link| link.what == "xGMI").count();
    if told < xgmi {
        let taken = rate(assumed.nvlink.unwrap_or(XGMI));
        let why = if assumed.nvlink.is_some() {
            "as was given"
        } else {
            "as on MI250X; --nvlink-gbps sets another, 64 on MI300X"
        };
        notes.push(format!("the table has no bandwidths: an xGMI link is assumed to carry {taken} each way, {why}"));
    } else if told > 0 {
        notes.push("xGMI links have the largest bandwidth that amd-smi states".into());
    }
    if over_pcie {
        let why = if assumed.pcie.is_some() { "as was given" } else { "--pcie sets another" };
        notes.push(format!("PCIe is assumed to carry {} per device, all on one host bridge ({why})", rate(pcie)));
    }
    let mut topology = Topology::new(name, vertices, links).map_err(|problem| refused(source, &problem))?;
    topology.notes = notes;
    joined(topology, source)
}

/// Larger value of `50000-64000`, megabytes per second.
fn megabytes(cell: &str) -> Option<f64> {
    let most = cell.rsplit('-').next()?.parse::<f64>().ok()?;
    (most > 0.0).then_some(most * 1e6)
}

/// Cell with its line number.
type TableCell = (usize, String);

/// Reads the square table below a heading.
fn table(lines: &[&str], heading: usize, source: &str) -> Result<Vec<Vec<TableCell>>, LoadError> {
    let refuse = |at: usize, problem: String| {
        Err(LoadError::file(source, problem, "copy the whole table").on_line(Some(at + 1)))
    };
    let head = (heading + 1..lines.len()).find(|&at| !lines[at].trim().is_empty()).unwrap_or(heading);
    let names: Vec<&str> = lines[head].split_whitespace().collect();
    let mut rows = vec![];
    for (row, name) in names.iter().enumerate() {
        let at = head + 1 + row;
        let words: Vec<&str> = lines.get(at).map_or(vec![], |line| line.split_whitespace().collect());
        if words.len() != names.len() + 1 || words[0] != *name {
            return refuse(at, format!("is not the row of {} with {} columns", printable(name), names.len()));
        }
        rows.push(words[1..].iter().map(|cell| (at + 1, cell.to_string())).collect());
    }
    if names.len() < 2 {
        return refuse(head, "names fewer than two devices".into());
    }
    Ok(rows)
}

//! Matrix of bandwidths from the row's device to the column's device, in GB/s unless a cell has a unit.
//!
//! The separator is a comma, semicolon, tab or space. A first row and a first column of names are optional. The
//! diagonal is ignored. Lines that begin with `#` are remarks. Three of them are read: `# symmetric` checks that the
//! matrix is symmetric, `# machines 2x8` assigns devices to machines, `# memory 16GB` gives the memory per device.

use super::{joined, refused};
use crate::{
    cluster::{
        machines::Machines,
        topology::graph::{Duplex, Link, Topology, Vertex, VertexKind},
    },
    source::LoadError,
    text::printable,
    units,
};

/// Note about the limits of a matrix.
pub(super) const PRIVATE: &str = "a matrix does not state shared links: every pair is assumed to have its own";

/// Row with its line number.
struct CsvRow<'a> {
    line: usize,
    cells: Vec<&'a str>,
}

/// Values of the remarks.
#[derive(Default)]
struct Remarks {
    symmetric: bool,
    machines: Option<(usize, Machines)>,
    memory: Option<f64>,
}

fn number(cell: &str) -> Option<f64> {
    match cell.parse::<f64>() {
        Ok(value) => Some(value * 1e9),
        Err(_) => units::parse_bandwidth(cell).ok(),
    }
}

fn cells(line: &str) -> Vec<&str> {
    let separator = [',', ';', '\t'].into_iter().find(|&separator| line.contains(separator));
    match separator {
        Some(separator) => line.split(separator).map(|cell| cell.trim().trim_matches('"')).collect(),
        None => line.split_whitespace().collect(),
    }
}

fn remarks(text: &str, source: &str) -> Result<Remarks, LoadError> {
    let mut remarks = Remarks::default();
    for (line, words) in (1..).zip(text.lines()) {
        let Some(words) = words.trim().strip_prefix('#') else { continue };
        let (word, rest) = words.trim().split_once([' ', ':']).unwrap_or((words.trim(), ""));
        let refuse = |error: units::UnitError| {
            LoadError::file(source, error.to_string(), "correct the comment, or leave it out").on_line(Some(line))
        };
        match word {
            "symmetric" => remarks.symmetric = true,
            "machines" => remarks.machines = Some((line, Machines::parse(rest).map_err(refuse)?)),
            "memory" => remarks.memory = Some(units::parse_bytes(rest.trim()).map_err(refuse)?),
            _ => {}
        }
    }
    Ok(remarks)
}

/// Reads a matrix.
pub(super) fn read(text: &str, source: &str, name: &str) -> Result<Topology, LoadError> {
    let remarks = remarks(text, source)?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.trim().starts_with('#'));
    let mut rows: Vec<CsvRow<'_>> = lines.map(|(line, row)| CsvRow { line, cells: cells(row) }).collect();
    let names = names(&mut rows);
    let devices = rows.len();
    let refuse =
        |line: usize, problem: String, repair: &str| Err(LoadError::file(source, problem, repair).on_line(Some(line)));
    for row in &rows {
        let (columns, before) = (row.cells.len(), rows[0].cells.len());
        if columns != before {
            let problem = format!("has {columns} columns, and {before} before");
            return refuse(row.line, problem, "give every row as many");
        }
    }
    let columns = rows.first().map_or(0, |row| row.cells.len());
    if columns != devices || devices < 2 {
        let problem = format!("is a matrix that is not square: {devices} rows of {columns}");
        return Err(LoadError::file(source, problem, "give a row and a column for each device, at least two"));
    }
    let mut bandwidth = vec![vec![0.0; devices]; devices];
    for (from, row) in rows.iter().enumerate() {
        for (to, cell) in row.cells.iter().enumerate().filter(|&(to, _)| to != from) {
            let place = format!("row {}, column {}", from + 1, to + 1);
            let Some(value) = number(cell) else {
                return refuse(row.line, format!("{place} is `{}`", printable(cell)), "write GB/s, such as 25");
            };
            if !(value > 0.0 && value <= 1e30) {
                let problem = format!("{place} is {}, too slow for any pair of devices", printable(cell));
                return refuse(row.line, problem, "write the bandwidth of the pair in GB/s");
            }
            bandwidth[from][to] = value;
        }
    }
    let vertex = |device: usize| Vertex {
        name: names.get(device).cloned().unwrap_or_else(|| format!("gpu{device}")),
        kind: VertexKind::Device,
        machine: remarks
            .machines
            .as_ref()
            .and_then(|(_, machines)| machines.machine_of(device as u32))
            .map(|m| m as u32),
    };
    if let Some((line, machines)) =
        remarks.machines.as_ref().filter(|(_, machines)| machines.devices() as usize != devices)
    {
        let problem = format!("names {} devices, and the matrix has {devices}", machines.devices());
        return refuse(*line, problem, "give every device a machine");
    }
    let mut links = vec![];
    for a in 0..devices {
        for b in 0..a {
            let (there, back) = (bandwidth[a][b], bandwidth[b][a]);
            if there != back && remarks.symmetric {
                let say = |a: usize, b: usize| printable(rows[a].cells[b]);
                let problem = format!(
                    "row {}, column {} is {}, and {} in the other direction",
                    a + 1,
                    b + 1,
                    say(a, b),
                    say(b, a)
                );
                return refuse(rows[a].line, problem, "make them equal, or remove `# symmetric`");
            }
            let link = |from: usize, to: usize, bandwidth: f64, duplex| Link {
                from: from as u32,
                to: to as u32,
                bandwidth,
                latency_s: 0.0,
                duplex,
                what: String::new(),
            };
            if there == back {
                links.push(link(b, a, there, Duplex::Full));
            } else {
                links.extend([link(a, b, there, Duplex::OneWay), link(b, a, back, Duplex::OneWay)]);
            }
        }
    }
    let topology = Topology::new(name, (0..devices).map(vertex).collect(), links);
    let mut topology = topology.map_err(|problem| refused(source, &problem))?;
    topology.memory_bytes = remarks.memory;
    topology.notes = vec![PRIVATE.into()];
    joined(topology, source)
}

/// Removes the names in the first row and the first column, if there are any, and returns them.
fn names(rows: &mut Vec<CsvRow<'_>>) -> Vec<String> {
    let is_name = |cell: &str| !cell.is_empty() && cell != "-" && number(cell).is_none();
    let is_head =
        rows.len() > 2 && rows.first().is_some_and(|head| head.cells.iter().skip(1).all(|cell| is_name(cell)));
    let mut names: Vec<String> = vec![];
    if is_head {
        let head = rows.remove(0);
        let corner = head.cells.len() > rows.len();
        names = head.cells.iter().skip(usize::from(corner)).map(|cell| printable(cell)).collect();
    }
    if rows.len() > 1 && rows.iter().all(|row| row.cells.first().is_some_and(|cell| is_name(cell))) {
        let first: Vec<String> = rows.iter_mut().map(|row| printable(row.cells.remove(0))).collect();
        names = first;
    }
    names
}

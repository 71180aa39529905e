//! Scotch's graph partitioner (Pellegrini and Roman, HPCN 1996), run as the program `gpart`.
//!
//! The class graph is written in Scotch's own format. Vertex weights are accelerator times; arc weights are the cost
//! for two classes to exchange their tensors; both are whole numbers of millionths. `gpart` balances the first and
//! minimises the second. Its result is scored like any other split; memory, capability and contiguity are ignored.
//! Debian installs the program as `scotch_gpart`, because another package owns the short name.
//!
//! Vertices are labelled 0, 1, 2, .. here. The published program labels them by colour. Nodes without a colour get
//! labels near 2^31, and Scotch then allocates a table over the whole range (gigabytes).

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use super::{
    DeviceKind, PlacementLimits, PlacementResult, Split,
    baselines::scored,
    classes::{ClassGraph, Partition},
};
use crate::Status;
use plantui_core::{graph::Dag, search::Search, workload::placement::PlacementProfile};

/// Names of the program; the first one found is used.
const NAMES: [&str; 2] = ["scotch_gpart", "gpart"];
/// Weights are whole numbers; a unit of time is this many.
const RESOLUTION: f64 = 1e6;
/// Interval at which a running program is polled.
const POLL: Duration = Duration::from_millis(5);

/// Path of the program, if it is on the PATH.
pub(crate) fn program() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let places: Vec<PathBuf> = env::split_paths(&path).collect();
    NAMES.iter().find_map(|name| places.iter().map(|place| place.join(name)).find(|file| is_program(file)))
}

fn is_program(file: &Path) -> bool {
    let Ok(metadata) = fs::metadata(file) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    metadata.is_file()
}

/// Runs `program` on the class graph and scores its result.
///
/// # Errors
/// A sentence on what went wrong with the program.
pub(crate) fn plan(
    program: &Path,
    dag: &Dag,
    profile: &PlacementProfile,
    limits: &PlacementLimits,
    search: &Search,
) -> Result<PlacementResult, String> {
    if limits.accelerators == 0 {
        return Err("Scotch uses accelerators only: allow at least one.".into());
    }
    let partition = ClassGraph::new(dag, profile, &Partition::by_colour(profile)).partition;
    let parts = match run(program, &graph(dag, profile, &partition), partition.len(), limits.accelerators, search) {
        Ok(parts) => parts,
        Err(ScotchFailure::Cancelled) => return Ok(PlacementResult::without(Status::Cancelled)),
        Err(ScotchFailure::Failed(problem)) => {
            return Err(format!("{} {problem}.", program.display()));
        }
    };
    let mut stages = vec![(DeviceKind::Accelerator, vec![]); limits.accelerators as usize];
    for node in 0..dag.len() {
        stages[parts[partition.class(node)] as usize].1.push(node);
    }
    stages.retain(|(_, nodes)| !nodes.is_empty());
    let mut placed = scored(dag, profile, limits, Split::from_stages(stages));
    placed.notes.push("Another version of Scotch may give another split.".into());
    placed.counts = vec![("classes", partition.len() as f64)];
    Ok(placed)
}

/// Class graph in Scotch's format: labels, vertex weights and arc weights, every edge as two arcs.
fn graph(dag: &Dag, profile: &PlacementProfile, partition: &Partition) -> String {
    let mut times = vec![0.0; partition.len()];
    let mut arcs: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); partition.len()];
    for (u, cost) in profile.nodes.iter().enumerate() {
        let a = partition.class(u);
        times[a] += cost.accelerator_time;
        let mut readers: Vec<usize> = dag.successors(u).map(|v| partition.class(v)).filter(|&b| b != a).collect();
        readers.sort_unstable();
        readers.dedup();
        for b in readers {
            *arcs[a].entry(b).or_insert(0.0) += cost.transfer;
            *arcs[b].entry(a).or_insert(0.0) += cost.transfer;
        }
    }
    let count: usize = arcs.iter().map(BTreeMap::len).sum();
    let mut text = format!("0\n{} {count}\n0 111\n", partition.len());
    for (class, (time, arcs)) in times.iter().zip(&arcs).enumerate() {
        let _ = write!(text, "{class} {} {}", weight(*time), arcs.len());
        for (other, cost) in arcs {
            let _ = write!(text, " {} {other}", weight(*cost));
        }
        text.push('\n');
    }
    text
}

/// A time as a whole number, cut off at the largest value of Scotch's integers.
fn weight(time: f64) -> i64 {
    ((time * RESOLUTION) as i64).min(i64::from(i32::MAX))
}

/// Reason why there is no result.
enum ScotchFailure {
    Cancelled,
    Failed(String),
}

impl From<io::Error> for ScotchFailure {
    fn from(error: io::Error) -> Self {
        ScotchFailure::Failed(format!("cannot be run: {error}"))
    }
}

/// Part of each vertex.
fn run(program: &Path, graph: &str, vertices: usize, parts: u32, search: &Search) -> Result<Vec<u32>, ScotchFailure> {
    let folder = tempfile::tempdir()?;
    let (input, output) = (folder.path().join("classes.grf"), folder.path().join("parts.map"));
    fs::write(&input, graph)?;
    let mut child = Command::new(program)
        .arg(parts.to_string())
        .args([&input, &output])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    // It writes a line or two while it runs, which a pipe can hold.
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if search.cancelled() {
            child.kill()?;
            child.wait()?;
            return Err(ScotchFailure::Cancelled);
        }
        thread::sleep(POLL);
    };
    if !status.success() {
        let mut said = String::new();
        if let Some(mut errors) = child.stderr.take() {
            // Output that is not text is treated as none.
            let _ = errors.read_to_string(&mut said);
        }
        let said = plantui_core::source::error::single_line(said.trim());
        return Err(ScotchFailure::Failed(format!("ended with {status}: {said}")));
    }
    read(&fs::read_to_string(output)?, vertices, parts).map_err(ScotchFailure::Failed)
}

/// Reads Scotch's mapping: a count, then a line of label and part for each vertex.
fn read(text: &str, vertices: usize, parts: u32) -> Result<Vec<u32>, String> {
    let mut part_of = vec![u32::MAX; vertices];
    let words: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    for pair in words.get(1..).unwrap_or_default().chunks_exact(2) {
        let (label, part) = (pair[0], pair[1]);
        match part_of.get_mut(label as usize) {
            Some(slot) if part < u64::from(parts) => *slot = part as u32,
            _ => return Err(format!("gave vertex {label} the part {part}, which does not exist")),
        }
    }
    match part_of.iter().position(|&part| part == u32::MAX) {
        Some(vertex) => Err(format!("gave vertex {vertex} no part")),
        None => Ok(part_of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::workload::PlacementNode;

    #[test]
    fn the_graph_is_written_with_small_labels_and_both_arcs() {
        let node = |colour_class: Option<i64>| PlacementNode {
            cpu_time: 1.0,
            accelerator_time: 0.5,
            supported: true,
            backward: false,
            size_bytes: 1.0,
            colour_class,
            layer: None,
            transfer: 0.25,
        };
        let profile = vec![node(Some(900)), node(Some(900)), node(None)].into();
        let dag = Dag::new(3, vec![(0, 1), (1, 2)]).unwrap();
        let text = graph(&dag, &profile, &Partition::by_colour(&profile));
        assert_eq!(text, "0\n2 2\n0 111\n0 1000000 1 250000 1\n1 500000 1 250000 0\n");
    }

    #[test]
    fn mappings_are_read_and_doubted() {
        assert_eq!(read("3\n2\t1\n0\t0\n1\t1\n", 3, 2), Ok(vec![0, 1, 1]));
        assert!(read("3\n0 0\n1 1\n", 3, 2).unwrap_err().contains("vertex 2 no part"));
        assert!(read("1\n0 2\n", 1, 2).unwrap_err().contains("vertex 0 the part 2"));
        assert!(read("1\n5 0\n", 1, 2).unwrap_err().contains("vertex 5"));
        assert!(read("", 1, 2).is_err());
    }
}

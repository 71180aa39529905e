//! Latency of any split, with its schedule (the published `-computeLatency`).
//!
//! Every accelerator's nodes are divided into contiguous *pieces*. The depth of a node counts how often a path to it
//! re-entered from outside; nodes of equal depth form a piece. Pieces and single CPU nodes are the units of the
//! schedule. A unit starts when all its inputs are ready. Any number of CPU nodes run at once.
//!
//! `O(k (n + m))` for `k` accelerators. Pieces of one accelerator may overlap in time, so a badly divided set looks
//! better than it would run; [`slots`](super::slots) is the stricter model. Colour classes and capability are not
//! checked. Excess of memory is reported, not refused.

use thiserror::Error;

use plantui_core::{
    graph::{Dag, GraphError},
    workload::placement::PlacementProfile,
};

/// Unit of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LatencyUnit {
    /// One node on a CPU, by node index.
    Cpu(u32),
    /// A piece, by its index in [`PieceSchedule::pieces`] (pieces are numbered by accelerator, then by depth).
    Piece(u32),
}

/// Contiguous part of an accelerator's nodes. Times are in the profile's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Accelerator, by its position in the split.
    pub accelerator: usize,
    /// Its nodes, ascending.
    pub nodes: Vec<u32>,
    /// Time at which its last input is ready on the host.
    pub start: f64,
    /// Time to receive the outputs of outside nodes.
    pub receive: f64,
    /// Time to compute.
    pub compute: f64,
    /// Time to send outputs that outside nodes need.
    pub send: f64,
    /// Time at which all its nodes count as finished.
    pub finish: f64,
}

/// One node on a CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuRun {
    /// Index of the node.
    pub node: u32,
    /// Time at which its last input is ready.
    pub start: f64,
    /// Time at which it finishes.
    pub finish: f64,
}

/// Accelerator whose nodes exceed its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryExcess {
    /// Accelerator, by its position in the split.
    pub accelerator: usize,
    /// Memory that its nodes need, bytes.
    pub bytes: f64,
}

/// A scored split.
#[derive(Debug, Clone, PartialEq)]
pub struct PieceSchedule {
    /// Finish of the last unit.
    pub latency: f64,
    /// Pieces, by accelerator, then by depth.
    pub pieces: Vec<Piece>,
    /// CPU nodes by node index.
    pub cpu: Vec<CpuRun>,
    /// Accelerators over the memory limit; empty if the split keeps it.
    pub memory_excess: Vec<MemoryExcess>,
}

/// Reason why a split has no latency. Nodes are indices; accelerators are positions in the split.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LatencyError {
    /// A node that is not in the graph.
    #[error("accelerator {accelerator} lists node {node}, but the graph has no such node")]
    UnknownNode {
        /// Accelerator that lists it.
        accelerator: usize,
        /// Node index.
        node: u32,
    },
    /// A node that is listed twice.
    #[error("node {node} is listed by accelerators {first} and {second}; it can be on one only")]
    NodeTwice {
        /// Node index.
        node: u32,
        /// Accelerator of the first entry.
        first: usize,
        /// Accelerator of the second entry.
        second: usize,
    },
    /// Units that wait for one another.
    #[error("{} parts of the split wait for one another in a cycle", .0.len())]
    Cycle(Vec<CycleUnit>),
}

/// A unit on a cycle; each waits for the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleUnit {
    /// Accelerator, or `None` for a CPU node.
    pub accelerator: Option<usize>,
    /// The unit's nodes, ascending.
    pub nodes: Vec<u32>,
}

/// Accelerator of every node; `None` for CPU nodes.
fn assignment(n: usize, accelerators: &[Vec<u32>]) -> Result<Vec<Option<usize>>, LatencyError> {
    let mut of = vec![None; n];
    for (accelerator, nodes) in accelerators.iter().enumerate() {
        for &node in nodes {
            let place = of.get_mut(node as usize).ok_or(LatencyError::UnknownNode { accelerator, node })?;
            if let Some(first) = *place {
                return Err(LatencyError::NodeTwice { node, first, second: accelerator });
            }
            *place = Some(accelerator);
        }
    }
    Ok(of)
}

/// Divides one accelerator's nodes into contiguous pieces, by ascending depth.
fn pieces_of(dag: &Dag, of: &[Option<usize>], accelerator: usize) -> Vec<Vec<u32>> {
    let mut depth = vec![0u32; dag.len()];
    let inside = |v: usize| of[v] == Some(accelerator);
    let mut found: Vec<(u32, u32)> = vec![];
    for &v in dag.topological_order() {
        let v = v as usize;
        if inside(v) {
            let reached = dag.predecessors(v).map(|u| depth[u] + u32::from(!inside(u))).max();
            depth[v] = reached.unwrap_or(1).max(1);
            found.push((depth[v], v as u32));
        } else {
            depth[v] = dag.predecessors(v).map(|u| depth[u]).max().unwrap_or(0);
        }
    }
    found.sort_unstable();
    found.chunk_by(|a, b| a.0 == b.0).map(|piece| piece.iter().map(|&(_, v)| v).collect()).collect()
}

/// Scores a split: `accelerators[a]` holds the node indices on accelerator `a`; every other node runs on a CPU.
///
/// # Errors
/// [`LatencyError`]: unknown or repeated nodes, or units that wait for one another.
pub fn evaluate(
    dag: &Dag,
    profile: &PlacementProfile,
    memory_bytes: f64,
    accelerators: &[Vec<u32>],
) -> Result<PieceSchedule, LatencyError> {
    let n = dag.len();
    let of = assignment(n, accelerators)?;
    let mut pieces: Vec<(usize, Vec<u32>)> = vec![];
    for accelerator in 0..accelerators.len() {
        pieces.extend(pieces_of(dag, &of, accelerator).into_iter().map(|nodes| (accelerator, nodes)));
    }
    // Units: pieces first, then CPU nodes.
    let mut unit = vec![0u32; n];
    for (index, (_, nodes)) in pieces.iter().enumerate() {
        nodes.iter().for_each(|&v| unit[v as usize] = index as u32);
    }
    let cpu_nodes: Vec<u32> = (0..n as u32).filter(|&v| of[v as usize].is_none()).collect();
    for (index, &v) in cpu_nodes.iter().enumerate() {
        unit[v as usize] = (pieces.len() + index) as u32;
    }
    let crossing = dag.edges().iter().map(|&(u, v)| (unit[u as usize], unit[v as usize])).filter(|(a, b)| a != b);
    let units = Dag::new(pieces.len() + cpu_nodes.len(), crossing.collect()).map_err(|GraphError::Cycle(cycle)| {
        let describe = |unit: usize| match pieces.get(unit) {
            Some((accelerator, nodes)) => CycleUnit { accelerator: Some(*accelerator), nodes: nodes.clone() },
            None => CycleUnit { accelerator: None, nodes: vec![cpu_nodes[unit - pieces.len()]] },
        };
        LatencyError::Cycle(cycle.into_iter().map(describe).collect())
    })?;
    let mut schedule = PieceSchedule { latency: 0.0, pieces: vec![], cpu: vec![], memory_excess: vec![] };
    for (accelerator, nodes) in pieces {
        let (receive, compute, send) = load(dag, profile, &unit, &nodes);
        schedule.pieces.push(Piece { accelerator, nodes, start: 0.0, receive, compute, send, finish: 0.0 });
    }
    schedule.cpu.extend(cpu_nodes.iter().map(|&node| CpuRun { node, start: 0.0, finish: 0.0 }));
    let mut finish = vec![0.0f64; units.len()];
    for &index in units.topological_order() {
        let index = index as usize;
        let start = units.predecessors(index).map(|u| finish[u]).fold(0.0, f64::max);
        finish[index] = if let Some(piece) = schedule.pieces.get_mut(index) {
            piece.start = start;
            piece.finish = start + piece.receive + piece.compute + piece.send;
            piece.finish
        } else {
            let run = &mut schedule.cpu[index - schedule.pieces.len()];
            run.start = start;
            run.finish = start + profile.nodes[run.node as usize].cpu_time;
            run.finish
        };
        schedule.latency = schedule.latency.max(finish[index]);
    }
    for (accelerator, nodes) in accelerators.iter().enumerate() {
        let mut nodes = nodes.clone();
        nodes.sort_unstable();
        let bytes: f64 = nodes.iter().map(|&v| profile.nodes[v as usize].size_bytes).sum();
        if bytes > memory_bytes {
            schedule.memory_excess.push(MemoryExcess { accelerator, bytes });
        }
    }
    Ok(schedule)
}

/// Receive, compute and send time of a piece. An outside node's output is received once, however many nodes read it.
fn load(dag: &Dag, profile: &PlacementProfile, unit: &[u32], nodes: &[u32]) -> (f64, f64, f64) {
    let here = unit[nodes[0] as usize];
    let outside = |v: &usize| unit[*v] != here;
    let mut heard: Vec<usize> = nodes.iter().flat_map(|&v| dag.predecessors(v as usize).filter(outside)).collect();
    heard.sort_unstable();
    heard.dedup();
    let receive = heard.iter().map(|&u| profile.nodes[u].transfer).sum();
    let compute = nodes.iter().map(|&v| profile.nodes[v as usize].accelerator_time).sum();
    let leaves = |v: &&u32| dag.successors(**v as usize).any(|w| outside(&w));
    let send = nodes.iter().filter(leaves).map(|&v| profile.nodes[v as usize].transfer).sum();
    (receive, compute, send)
}

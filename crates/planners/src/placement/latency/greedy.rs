//! The published greedy heuristic for latency: fills one accelerator after the other along a topological order.
//!
//! Linear time. It uses only sizes, and ignores times, transfers and capability. A block that does not fit closes the
//! accelerator, even if the next block would fit.

use super::blocks::Blocks;
use plantui_core::{graph::Dag, workload::placement::PlacementProfile};

/// Node indices by accelerator, at most `accelerators` of them; every other node runs on a CPU.
///
/// # Panics
/// If the profile has fewer nodes than the graph.
pub fn greedy(dag: &Dag, profile: &PlacementProfile, accelerators: usize, memory_bytes: f64) -> Vec<Vec<u32>> {
    let blocks = Blocks::new(dag, profile);
    let mut split: Vec<Vec<u32>> = vec![];
    // Bytes on the current accelerator; `None` if it is closed.
    let mut filling: Option<f64> = None;
    for block in blocks.dag.stack_order() {
        let nodes = &blocks.blocks[block as usize];
        let bytes: f64 = nodes.iter().map(|&v| profile.nodes[v as usize].size_bytes).sum();
        let filled = filling.map(|held| held + bytes).filter(|&held| held <= memory_bytes);
        if filled.is_none() && split.len() < accelerators && bytes <= memory_bytes {
            split.push(nodes.clone());
            filling = Some(bytes);
        } else {
            filling = filled;
            if let (Some(_), Some(accelerator)) = (filled, split.last_mut()) {
                accelerator.extend(nodes);
            }
        }
    }
    split.iter_mut().for_each(|nodes| nodes.sort_unstable());
    split
}

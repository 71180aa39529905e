//! Workload of six nodes with a branch, in round numbers for human readers.

use super::{
    cost::ModeCost,
    sketch::{Sketch, SketchNode},
};
use plantui_core::{
    cluster::Limits,
    workload::piper::{RECOMPUTE, VANILLA},
};

const MB: f64 = 1e6;

/// Name, milliseconds of forward, million parameters, and megabytes kept at degree 1.
const NODES: [(&str, f64, f64, f64); 6] = [
    ("input", 0.0, 0.0, 4.0),
    ("stem", 2.0, 10.0, 40.0),
    ("left branch", 6.0, 40.0, 60.0),
    ("right branch", 4.0, 20.0, 40.0),
    ("join", 2.0, 10.0, 40.0),
    ("head", 4.0, 40.0, 20.0),
];
const EDGES: [(usize, usize, f64); 6] = [(0, 1, 4.0), (1, 2, 8.0), (1, 3, 8.0), (2, 4, 8.0), (3, 4, 8.0), (4, 5, 8.0)];

/// Sketch of the workload; `command_line` becomes its provenance.
pub(super) fn sketch(command_line: &str) -> Sketch {
    let inputs = |v: usize| EDGES.iter().filter(|e| e.1 == v).map(|e| e.2).sum::<f64>();
    let nodes = NODES
        .iter()
        .enumerate()
        .map(|(v, &(name, forward_ms, million, kept))| {
            let cost = |t: u32, recompute: bool| {
                // Two devices halve work, weights and activations, plus a quarter of communication time.
                let share = if t == 1 { 1.0 } else { 0.625 };
                let forward_s = forward_ms * 1e-3 * share;
                let parameters = million * 1e6 / f64::from(t);
                let kept = kept * MB / if v == 0 { 1.0 } else { f64::from(t) };
                let input = (inputs(v) * MB).min(kept);
                ModeCost {
                    time_s: forward_s * if recompute { 4.0 } else { 3.0 },
                    forward_s,
                    parameters,
                    memory_a: if recompute && v > 0 { input } else { kept },
                    memory_b: 16.0 * parameters,
                }
            };
            let degrees = [1, 2].map(|t| (t, vec![(VANILLA, cost(t, false)), (RECOMPUTE, cost(t, true))])).to_vec();
            SketchNode { name: name.into(), degrees }
        })
        .collect();
    Sketch {
        nodes,
        edges: EDGES.iter().map(|&(u, v, mb)| (u, v, mb * MB)).collect(),
        limits: Limits {
            devices: 4,
            cpus: 0,
            memory_bytes: Some(1000.0 * MB),
            microbatches: 12,
            bandwidth_bytes_per_s: Some(4e9),
            ..Limits::NEUTRAL
        },
        provenance: command_line.into(),
        assumptions: vec![
            "A made-up network in round numbers: six nodes, one branch, two modes, degrees 1 and 2.".into(),
            "The backward pass takes twice the time of the forward pass; recomputation adds one forward pass and \
            keeps only a node's inputs."
                .into(),
            "Two devices take 5/8 of the time of one device, and half of its memory.".into(),
            "State takes 16 bytes per parameter.".into(),
        ],
        recipe: None,
        gathered: None,
    }
}

//! Input of the search: the graph with costs for one microbatch, and the machine that stages run on.
//!
//! The graph takes `O(nodes + edges)`. The machine takes all pairs of devices, and rings of every width. With more than
//! [`WEIGHED`] devices, only some devices are sampled.

use super::{coarsen::CostGraph, stages::MachineModel};
use crate::Problem;
use plantui_core::{
    cluster::{
        Limits,
        topology::{PairMatrix, Ring, Topology},
    },
    plan::SpeedupModel,
    search::Search,
    workload::{Workload, states},
};

/// Largest number of devices for which a stage may take any number; above it, powers of two and 1.5 times powers of
/// two. With all numbers, planning takes over 5 times the CPU time (alexnet, 32 devices).
const EVERY_WIDTH: usize = 16;
/// Largest number of devices for which all pairs are measured, and largest group whose all-reduce is measured. A group
/// of this size stands for larger ones.
pub(super) const WEIGHED: usize = 2048;
/// Number of devices whose pairs are measured above [`WEIGHED`]. It bounds the time of the median.
const SAMPLED: usize = 16;

/// Builds the graph with costs for one microbatch.
pub(super) fn fine(workload: &Workload, limits: &Limits, model: &SpeedupModel, microbatches: f64) -> CostGraph {
    let kept = states::planned_nodes(workload);
    let (dag, n) = (&workload.dag, workload.dag.len());
    let Some(profile) = workload.layers() else { return CostGraph::default() };
    let share = model.scale(limits.samples()) / microbatches;
    let node = |v: usize| &profile.nodes[v];
    let all: f64 = (0..n).filter(|&v| kept[v]).map(|v| node(v).activation()).sum();
    let per_sample = match model.peak_activation_per_sample {
        given if given > 0.0 => given,
        _ => all / f64::from(model.profile_batch.max(1)),
    };
    let held = per_sample * f64::from(limits.samples()) / microbatches / if all > 0.0 { all } else { 1.0 };
    let of =
        |value: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..n).map(|v| if kept[v] { value(v) } else { 0.0 }).collect() };
    let sorted = |list: &mut dyn Iterator<Item = usize>| {
        let mut list: Vec<usize> = list.collect();
        list.sort_unstable();
        list.dedup();
        list
    };
    CostGraph {
        out: (0..n).map(|v| sorted(&mut dag.successors(v))).collect(),
        into: (0..n).map(|v| sorted(&mut dag.predecessors(v))).collect(),
        seconds: of(&|v| node(v).seconds() * share),
        bytes: of(&|v| node(v).activation() * share),
        parameters: of(&|v| node(v).parameter_bytes),
        kept: of(&|v| node(v).activation() * held),
        order: dag.topological_order().iter().map(|&v| v as usize).collect(),
    }
}

/// Numbers of devices that a stage may have, ascending.
pub(super) fn widths(problem: &Problem, devices: usize) -> Vec<usize> {
    if !problem.options.flag("replicas") {
        return vec![1];
    }
    if devices <= EVERY_WIDTH {
        return (1..=devices).collect();
    }
    let powers = (0..).map(|power| 1usize << power).take_while(|&width| width <= devices);
    let mut widths: Vec<usize> = powers.flat_map(|width| [width, 3 * width / 2]).chain([devices]).collect();
    widths.retain(|&width| width >= 1 && width <= devices);
    widths.sort_unstable();
    widths.dedup();
    widths
}

/// Bandwidth of every pair of devices; `None` if there are too many devices to measure all pairs.
pub(super) fn pairs(topology: &Topology) -> Option<PairMatrix> {
    (topology.devices() <= WEIGHED).then(|| topology.pair_matrix())
}

/// Median bandwidth of the pairs for which `counts` is true. Without a matrix, only pairs from sampled devices are
/// measured.
fn median(topology: &Topology, matrix: Option<&PairMatrix>, counts: impl Fn(usize, usize) -> bool) -> f64 {
    let devices = topology.devices();
    let every = if matrix.is_some() { 1 } else { devices.div_ceil(SAMPLED) };
    let from: Vec<usize> = (0..devices).step_by(every.max(1)).collect();
    let row = |&from: &usize| -> Vec<f64> {
        let own = matrix.is_none().then(|| topology.pairs_from(from));
        let at = |to: usize| own.as_ref().map_or_else(|| matrix.map_or(0.0, |m| m.at(from, to)), |own| own[to]);
        (0..devices).filter(|&to| to != from && counts(from, to)).map(at).collect()
    };
    let mut all: Vec<f64> = from.iter().flat_map(row).collect();
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// Builds the machine model of the dynamic program; `None` if the search was cancelled.
pub(super) fn machine(
    problem: &Problem,
    (topology, matrix): (&Topology, Option<&PairMatrix>),
    model: &SpeedupModel,
    microbatches: f64,
    search: &Search,
) -> Option<MachineModel> {
    let devices = topology.devices();
    let widths = widths(problem, devices);
    // Devices in the order of the widest ring: consecutive devices of it give an optimistic all-reduce time.
    let ring = match matrix {
        Some(matrix) => Ring::widest(devices, |a, b| matrix.at(a, b)).order,
        None => (0..devices).collect(),
    };
    let reduced = |&width: &usize| -> f64 {
        const PROBE: f64 = 1e9;
        if width < 2 || search.cancelled() {
            return 0.0;
        }
        let own = width.min(WEIGHED);
        let group = |start: usize| topology.collectives(&ring[start..start + own]).all_reduce_s(PROBE) / PROBE;
        let in_order: Vec<usize> = (0..own).collect();
        let natural = topology.collectives(&in_order).all_reduce_s(PROBE) / PROBE;
        [0, devices - own].into_iter().map(group).fold(natural, f64::min)
    };
    let by_width: Vec<f64> = widths.iter().map(reduced).collect();
    if search.cancelled() {
        return None;
    }
    let mut reduce_s = vec![0.0; devices + 1];
    widths.iter().zip(by_width).for_each(|(&width, seconds)| reduce_s[width] = seconds);
    let bandwidth = median(topology, matrix, |_, _| true);
    Some(MachineModel {
        devices,
        widths,
        bandwidth: Some(bandwidth).filter(|width| width.is_finite() && *width > 0.0).unwrap_or(1e30),
        reduce_s,
        microbatches,
        overlap: problem.options.flag("concurrent_copy_comp"),
        memory: problem.limits.memory(),
        state: model.optimizer_memory_scaling,
    })
}

/// Two variants of the model, if devices sit in several machines; else none. The first uses the median bandwidth of the
/// pairs inside a machine, because the median of all pairs may be a link that few cuts use. The second is one machine
/// alone, so that more machines never make a pipeline slower.
pub(super) fn inner(machine: &MachineModel, (topology, matrix): (&Topology, Option<&PairMatrix>)) -> Vec<MachineModel> {
    let largest = usize::from(topology.machines().sizes().iter().copied().max().unwrap_or(1));
    if largest >= machine.devices || largest < 2 {
        return vec![];
    }
    let bandwidth = median(topology, matrix, |a, b| topology.machine_of(a) == topology.machine_of(b));
    if !bandwidth.is_finite() || bandwidth <= 0.0 {
        return vec![];
    }
    let all = MachineModel { bandwidth, ..machine.clone() };
    let one = MachineModel {
        devices: largest,
        widths: machine.widths.iter().copied().filter(|&width| width <= largest).collect(),
        ..all.clone()
    };
    vec![all, one]
}

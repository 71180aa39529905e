//! What the search reads of a problem: the graph with costs for a microbatch, and what stages run on.
//!
//! `O(nodes + edges)` for the graph; all pairs of devices, and rings of every width, for the machine.

use super::{coarsen::Fine, stages::Machine};
use crate::{
    cluster::{
        Limits,
        topology::{Collectives, Ring, Topology},
    },
    plan::SpeedupModel,
    planner::Problem,
    workload::{Workload, states},
};

/// Above so many devices stages take powers of two of them.
const EVERY_WIDTH: usize = 16;

/// The graph with costs for a microbatch.
pub(super) fn fine(workload: &Workload, limits: &Limits, model: &SpeedupModel, microbatches: f64) -> Fine {
    let kept = states::kept(workload);
    let (dag, n) = (&workload.dag, workload.dag.len());
    let Some(profile) = workload.layers() else { return Fine::default() };
    let share = model.scale(limits.batch) / microbatches;
    let node = |v: usize| &profile.nodes[v];
    let all: f64 = (0..n).filter(|&v| kept[v]).map(|v| node(v).activation()).sum();
    let per_sample = match model.peak_activation_per_sample {
        given if given > 0.0 => given,
        _ => all / f64::from(model.profile_batch.max(1)),
    };
    let held = per_sample * f64::from(limits.batch) / microbatches / if all > 0.0 { all } else { 1.0 };
    let of =
        |value: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..n).map(|v| if kept[v] { value(v) } else { 0.0 }).collect() };
    let sorted = |list: &mut dyn Iterator<Item = usize>| {
        let mut list: Vec<usize> = list.collect();
        list.sort_unstable();
        list.dedup();
        list
    };
    Fine {
        out: (0..n).map(|v| sorted(&mut dag.successors(v))).collect(),
        into: (0..n).map(|v| sorted(&mut dag.predecessors(v))).collect(),
        seconds: of(&|v| node(v).seconds() * share),
        bytes: of(&|v| node(v).activation() * share),
        parameters: of(&|v| node(v).parameter_bytes),
        kept: of(&|v| node(v).activation() * held),
        order: dag.topological_order().iter().map(|&v| v as usize).collect(),
    }
}

/// What stages run on, as the dynamic program sees it.
pub(super) fn machine(problem: &Problem, topology: &Topology, model: &SpeedupModel, microbatches: f64) -> Machine {
    let devices = topology.devices();
    let matrix = topology.pair_matrix();
    let widths: Vec<usize> = if !problem.options.flag("replicas") {
        vec![1]
    } else if devices <= EVERY_WIDTH {
        (1..=devices).collect()
    } else {
        let powers = (0..).map(|power| 1usize << power).take_while(|&width| width <= devices);
        let mut widths: Vec<usize> = powers.flat_map(|width| [width, 3 * width / 2]).chain([devices]).collect();
        widths.retain(|&width| width >= 1 && width <= devices);
        widths.sort_unstable();
        widths.dedup();
        widths
    };
    // The devices of the widest ring, one after the other: what so many of them in a row attain is what is hoped for.
    let ring = Ring::widest(devices, |a, b| matrix.at(a, b)).order;
    let mut reduce_s = vec![0.0; devices + 1];
    for &width in widths.iter().filter(|&&width| width > 1) {
        const PROBE: f64 = 1e9;
        let starts = [0, devices - width];
        let group = |start: usize| Collectives::new(topology, &ring[start..start + width]).all_reduce_s(PROBE) / PROBE;
        let in_order: Vec<usize> = (0..width).collect();
        let natural = Collectives::new(topology, &in_order).all_reduce_s(PROBE) / PROBE;
        reduce_s[width] = starts.into_iter().map(group).fold(natural, f64::min);
    }
    Machine {
        devices,
        widths,
        bandwidth: Some(matrix.median()).filter(|width| width.is_finite() && *width > 0.0).unwrap_or(1e30),
        reduce_s,
        microbatches,
        overlap: problem.options.flag("concurrent_copy_comp"),
        memory: problem.limits.memory_bytes,
        state: model.optimizer_memory_scaling,
    }
}

/// Where devices sit in several machines: the same with the median of the pairs within them in place of all pairs, whose
/// median may be a link that few cuts need; and one machine alone, so that more machines never make a pipeline slower.
pub(super) fn inner(machine: &Machine, topology: &Topology) -> Vec<Machine> {
    let largest = usize::from(topology.machines().sizes().iter().copied().max().unwrap_or(1));
    if largest >= machine.devices || largest < 2 {
        return vec![];
    }
    let matrix = topology.pair_matrix();
    let same = |a: usize, b: usize| a != b && topology.machine_of(a) == topology.machine_of(b);
    let pairs = (0..machine.devices).flat_map(|a| (0..machine.devices).map(move |b| (a, b)));
    let mut widths: Vec<f64> = pairs.filter(|&(a, b)| same(a, b)).map(|(a, b)| matrix.at(a, b)).collect();
    widths.sort_unstable_by(f64::total_cmp);
    let Some(&bandwidth) = widths.get(widths.len() / 2).filter(|width| width.is_finite() && **width > 0.0) else {
        return vec![];
    };
    let all = Machine { bandwidth, ..machine.clone() };
    let one = Machine {
        devices: largest,
        widths: machine.widths.iter().copied().filter(|&width| width <= largest).collect(),
        ..all.clone()
    };
    vec![all, one]
}

//! Why no plan exists, and the least change of one limit that allows one.
//!
//! With an infinite load, a probe decides about memory and devices alone. The least memory is found by bisection like the
//! load: each "yes" names the memory that its plan really needs. The fewest devices come from one probe with many devices.

use super::{
    Sets, WARM_START_SETS,
    decide::{Answer, FoundStage, Prober},
    model::PiperModel,
    search::{RESOLUTION, probe},
    settings::{Knapsack, PiperSettings},
    suffixes,
};
use crate::{Infeasible, outcome::feasible_with, pipeline_options::Recompute};
use plantui_core::{
    cluster::{LimitKind, Limits},
    search::Search,
    units,
    workload::{PiperProfile, Workload, formats::piper::MAX_DEVICES},
};

/// Relative difference of the bounds on the memory below which the probe just below the best is decided.
const CLOSE: f64 = 1e-3;

/// Limits that stand in the way and values that would do; `None` if cancelled.
pub(super) fn explain(
    workload: &Workload,
    profile: &PiperProfile,
    limits: &Limits,
    settings: &PiperSettings,
    sets: &Sets,
    search: &Search,
) -> Option<Infeasible> {
    // Memory does not depend on how modes are picked: the smallest modes decide.
    let recompute = match settings.recompute {
        Recompute::AllOrNone => Recompute::Auto,
        other => other,
    };
    let settings = PiperSettings { knapsack: Knapsack::Exact, recompute, ..*settings };
    let model = PiperModel::new(workload, profile, limits, &settings, sets.family.clone(), search)?;
    let smallest_memory_bytes = if sets.family.len() > WARM_START_SETS {
        let few = suffixes(&workload.dag, WARM_START_SETS);
        let narrow = PiperModel::new(workload, profile, limits, &settings, few, search)?;
        // A plan of a smaller family is one of the whole.
        match smallest_memory(&narrow, &settings, None, search)? {
            Some(known) => smallest_memory(&model, &settings, Some(known), search)?,
            None => None,
        }
    } else {
        smallest_memory(&model, &settings, None, search)?
    };
    let many = Limits { devices: MAX_DEVICES as u32, ..limits.clone() };
    let wide = PiperModel::new(workload, profile, &many, &settings, sets.family.clone(), search)?;
    let (node, node_bytes) = heaviest_node(&wide);
    let fewest_devices = if node_bytes > limits.memory() {
        None
    } else {
        fits_into(&wide, &settings, limits.memory(), search)?.map(|stages| {
            let devices = |stage: &FoundStage| stage.d * wide.degrees[stage.degree].t;
            stages.iter().map(devices).sum()
        })
    };
    let mut infeasible =
        Infeasible { limits: vec![], smallest_memory_bytes, fewest_devices, explanation: String::new() };
    if smallest_memory_bytes.is_some() {
        infeasible.limits.push(LimitKind::Memory);
    }
    if fewest_devices.is_some() {
        infeasible.limits.push(LimitKind::Devices);
    }
    infeasible.explanation = sentence(limits, &settings, &infeasible, &workload.nodes[node].label(), node_bytes);
    Some(infeasible)
}

fn sentence(limits: &Limits, settings: &PiperSettings, found: &Infeasible, node: &str, node_bytes: f64) -> String {
    let memory = units::bytes_exact(limits.memory_limit());
    let devices = limits.devices;
    let plural = if devices == 1 { "device" } else { "devices" };
    let replicas = match settings.replica_limit() {
        Some(most) => format!(" with at most {most} {}", if most == 1 { "replica" } else { "replicas" }),
        None => String::new(),
    };
    let mut text = format!("No feasible plan{replicas} on {devices} {plural} of {memory}.");
    text += &feasible_with(limits, found.smallest_memory_bytes, found.fewest_devices);
    match found.fewest_devices {
        Some(_) => {}
        None if node_bytes > limits.memory() => {
            text += &format!(
                " With {memory} each, no number of devices is enough: {node} alone needs {}.",
                units::bytes(node_bytes)
            );
        }
        None => {
            text += &format!(" With {memory} each, no number of devices up to {MAX_DEVICES} is enough.");
        }
    }
    text
}

/// Node that needs the most memory in its smallest mode, and that memory.
pub(super) fn heaviest_node(model: &PiperModel<'_>) -> (usize, f64) {
    let least = |v: usize| {
        let modes = model.degrees.iter().flat_map(|degree| &degree.modes[v]);
        modes.map(|mode| mode.memory(1.0)).fold(f64::INFINITY, f64::min)
    };
    (0..model.dag.len()).map(|v| (v, least(v))).fold((0, f64::NEG_INFINITY), |a, b| if b.1 > a.1 { b } else { a })
}

/// Memory into which every plan fits, bytes.
fn ample_memory(model: &PiperModel<'_>) -> f64 {
    let in_flight = f64::from(2 * model.most_replicas);
    let most = |v: usize| {
        let modes = model.degrees.iter().flat_map(|degree| &degree.modes[v]);
        modes.map(|mode| mode.memory(in_flight)).fold(0.0, f64::max)
    };
    (0..model.dag.len()).map(most).sum::<f64>() * 2.0
}

/// Memory of the fullest device, every node in its smallest mode.
fn memory_of(model: &PiperModel<'_>, settings: &PiperSettings, stages: &[FoundStage]) -> f64 {
    let in_flight = settings.in_flight(stages.iter().map(|stage| stage.d), model.limits.microbatches);
    let mut most: f64 = 0.0;
    for (stage, y) in stages.iter().zip(in_flight) {
        let modes = &model.degrees[stage.degree].modes;
        let least = |v: usize| modes[v].iter().map(|mode| mode.memory(f64::from(y))).fold(f64::INFINITY, f64::min);
        most = most.max(model.sets.beyond(stage.outer as usize, stage.inner as usize).map(least).sum());
    }
    most
}

/// Stages that fit into `memory_bytes` with the fewest devices; the inner option is `None` if there are none.
fn fits_into(
    model: &PiperModel<'_>,
    settings: &PiperSettings,
    memory_bytes: f64,
    search: &Search,
) -> Option<Option<Vec<FoundStage>>> {
    let probe = probe(model.limits.devices, model, settings, f64::INFINITY, (0.0, 1.0));
    match Prober::new(model, settings, memory_bytes).decide(&probe, search) {
        Answer::Yes(stages) => Some(Some(stages)),
        Answer::No => Some(None),
        Answer::Cancelled => None,
    }
}

/// Least memory with which the devices of the limits suffice; the inner option is `None` if no memory does. `known` is a memory
/// that suffices and is probably the least.
fn smallest_memory(
    model: &PiperModel<'_>,
    settings: &PiperSettings,
    known: Option<f64>,
    search: &Search,
) -> Option<Option<f64>> {
    let (_, mut lower) = heaviest_node(model);
    if let Some(known) = known {
        let just_below = known * (1.0 - RESOLUTION);
        return match fits_into(model, settings, just_below, search)? {
            Some(stages) => shrink(model, settings, lower, memory_of(model, settings, &stages), search),
            None => Some(Some(known)),
        };
    }
    let ample = ample_memory(model);
    // Doubled from below: with little memory stages are short, and a probe is quick.
    let mut memory = lower.max(ample * f64::EPSILON);
    let upper = loop {
        match fits_into(model, settings, memory, search)? {
            Some(stages) => break memory_of(model, settings, &stages),
            None if memory >= ample => return Some(None),
            None => lower = memory,
        }
        memory = (2.0 * memory).min(ample);
    };
    shrink(model, settings, lower, upper, search)
}

/// Least memory between `lower`, which does not suffice, and `upper`, which does.
fn shrink(
    model: &PiperModel<'_>,
    settings: &PiperSettings,
    mut lower: f64,
    mut upper: f64,
    search: &Search,
) -> Option<Option<f64>> {
    while upper > 0.0 {
        let just_below = upper <= lower * (1.0 + CLOSE);
        let memory = if just_below { upper * (1.0 - RESOLUTION) } else { (lower + upper) / 2.0 };
        match fits_into(model, settings, memory, search)? {
            Some(stages) => upper = memory_of(model, settings, &stages),
            None if just_below => break,
            None => lower = memory,
        }
    }
    Some(Some(upper))
}

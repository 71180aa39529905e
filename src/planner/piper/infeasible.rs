//! Why nothing works, and the smallest change of one limit with which something would.
//!
//! With an infinite load the probe asks about memory and devices alone. The smallest memory is searched like the load:
//! each yes names the memory its plan really needs. The fewest devices come out of one probe with many devices.

use super::{
    bisection::{RESOLUTION, allowed},
    model::PiperModel,
    probe::{Answer, Crew, FoundStage, Question},
    settings::{Knapsack, PiperSettings},
};
use crate::planner::pipeline_options::Recompute;
use crate::{
    cluster::{LimitKind, Limits},
    graph::SuccessorSets,
    planner::{Infeasible, Outcome, Search, Status},
    units,
    workload::{PiperProfile, Workload, formats::piper::MAX_DEVICES},
};

/// When the bounds on the memory are this close, the best is put to the question.
const CLOSE: f64 = 1e-3;
/// Above this many sets only the last question is asked of all of them; until then chains of sets do.
const MANY_SETS: usize = 3_000;

/// What stands in the way and what would do. `None` if cancelled.
pub(super) fn explain(
    workload: &Workload,
    profile: &PiperProfile,
    limits: &Limits,
    settings: &PiperSettings,
    sets: &SuccessorSets,
    chains: &SuccessorSets,
    search: &Search,
) -> Option<Infeasible> {
    // Memory does not depend on how modes are picked: the smallest modes decide.
    let settings =
        PiperSettings { knapsack: Knapsack::Exact, recompute: memory_recompute(settings.recompute), ..*settings };
    let sets_here = || sets.clone();
    let model = PiperModel::new(workload, profile, limits, &settings, sets_here(), search)?;
    let smallest_memory_bytes = smallest_memory(workload, profile, limits, &settings, &model, chains, search)?;
    let many = Limits { devices: MAX_DEVICES as u32, ..limits.clone() };
    let wide = PiperModel::new(workload, profile, &many, &settings, sets_here(), search)?;
    let fewest_devices = fewest_devices(&wide, &settings, limits.memory(), search)?;
    let (node, node_bytes) = heaviest_node(&wide);
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

/// The outcome where devices have less memory than any plan of a network too large to search needs.
pub(super) fn lacking(limits: &Limits, least_bytes: f64) -> Outcome {
    let (devices, memory) = (limits.devices, units::bytes_exact(limits.memory_limit()));
    let explanation = format!(
        "No plan fits on {devices} {} with {memory} each: wherever the stages are cut, parameters and the activations in flight need more than {} on some device.",
        if devices == 1 { "device" } else { "devices" },
        units::bytes(least_bytes)
    );
    let limits = vec![LimitKind::Memory, LimitKind::Devices];
    let infeasible = Infeasible { limits, explanation, ..Infeasible::default() };
    Outcome { infeasible: Some(infeasible), ..Outcome::new(Status::Infeasible) }
}

fn memory_recompute(recompute: Recompute) -> Recompute {
    if recompute == Recompute::AllOrNone { Recompute::Auto } else { recompute }
}

fn sentence(limits: &Limits, settings: &PiperSettings, found: &Infeasible, node: &str, node_bytes: f64) -> String {
    let memory = units::bytes_exact(limits.memory_limit());
    let devices = limits.devices;
    let plural = if devices == 1 { "device" } else { "devices" };
    let replicas = match settings.asked_replicas() {
        Some(most) => format!(", of at most {most} {},", if most == 1 { "replica" } else { "replicas" }),
        None => String::new(),
    };
    let mut text = format!("No plan{replicas} fits on {devices} {plural} with {memory} each.");
    if let Some(bytes) = found.smallest_memory_bytes {
        let enough = units::bytes_enough(bytes, limits.memory_limit());
        text += &format!(" With {devices} {plural}, {enough} each would do.");
    }
    match found.fewest_devices {
        Some(fewest) => text += &format!(" With {memory} each, {fewest} devices would do."),
        None if node_bytes > limits.memory() => {
            text += &format!(
                " With {memory} each, no number of devices would do: {node} alone needs {}.",
                units::bytes(node_bytes)
            );
        }
        None => {
            text += &format!(" With {memory} each, no number of devices up to {MAX_DEVICES} would do.");
        }
    }
    text
}

/// The node that needs the most memory even at its smallest, and how much.
fn heaviest_node(model: &PiperModel<'_>) -> (usize, f64) {
    let least = |v: usize| {
        let choices = model.degrees.iter().flat_map(|degree| &degree.choices[v]);
        choices.map(|choice| choice.memory(1.0)).fold(f64::INFINITY, f64::min)
    };
    (0..model.dag.len()).map(|v| (v, least(v))).fold((0, f64::NEG_INFINITY), |a, b| if b.1 > a.1 { b } else { a })
}

/// Memory that the stages need on their fullest device, every node in its smallest mode.
fn memory_of(model: &PiperModel<'_>, settings: &PiperSettings, stages: &[FoundStage]) -> f64 {
    let in_flight = settings.in_flight(stages.iter().map(|stage| stage.d), model.limits.microbatches);
    let mut most: f64 = 0.0;
    for (stage, y) in stages.iter().zip(in_flight) {
        let y = f64::from(y);
        let choices = &model.degrees[stage.degree].choices;
        let nodes = model.sets.difference(stage.outer as usize, stage.inner as usize);
        let least = |v: &usize| choices[*v].iter().map(|choice| choice.memory(y)).fold(f64::INFINITY, f64::min);
        most = most.max(nodes.iter().map(least).sum());
    }
    most
}

/// A cut that fits into `memory_bytes`, with the fewest devices; the inner option is `None` if there is none.
fn ask_memory(
    model: &PiperModel<'_>,
    settings: &PiperSettings,
    memory_bytes: f64,
    search: &Search,
) -> Option<Option<Vec<FoundStage>>> {
    let mut crew = Crew::new(model, settings, memory_bytes, search)?;
    let allowed = allowed(model);
    let devices = model.limits.devices;
    let question = Question {
        target: f64::INFINITY,
        devices,
        most_replicas: settings.replicas(model.most_replicas.min(devices)),
        allowed: &allowed,
        stages: settings.stages,
        progress: (0.0, 1.0),
    };
    match crew.ask(&question, search) {
        Answer::Yes(stages) => Some(Some(stages)),
        Answer::No => Some(None),
        Answer::Cancelled => None,
    }
}

fn devices_of(model: &PiperModel<'_>, stages: &[FoundStage]) -> u32 {
    stages.iter().map(|stage| stage.d * model.degrees[stage.degree].t).sum()
}

/// The least memory with which the limits' devices suffice; the inner option is `None` if no memory does.
fn smallest_memory(
    workload: &Workload,
    profile: &PiperProfile,
    limits: &Limits,
    settings: &PiperSettings,
    model: &PiperModel<'_>,
    chains: &SuccessorSets,
    search: &Search,
) -> Option<Option<f64>> {
    let (_, mut lower) = heaviest_node(model);
    let mut upper = f64::INFINITY;
    if model.sets.len() > MANY_SETS {
        let narrow = PiperModel::new(workload, profile, limits, settings, chains.clone(), search)?;
        let mut chain_lower = lower;
        upper = match shrink(&narrow, settings, &mut chain_lower, upper, false, search)? {
            None => return Some(None),
            Some(bytes) => bytes,
        };
    }
    let direct = upper.is_finite();
    shrink(model, settings, &mut lower, upper, direct, search)
}

/// Lowers `upper` to the least memory for which there is a cut. `direct` asks below `upper` first.
fn shrink(
    model: &PiperModel<'_>,
    settings: &PiperSettings,
    lower: &mut f64,
    mut upper: f64,
    direct: bool,
    search: &Search,
) -> Option<Option<f64>> {
    let mut direct = direct;
    loop {
        let memory = if upper.is_infinite() {
            1e300
        } else if direct || upper <= *lower * (1.0 + CLOSE) {
            direct = true;
            upper * (1.0 - RESOLUTION)
        } else {
            *lower + (upper - *lower) / 2.0
        };
        match ask_memory(model, settings, memory, search)? {
            Some(stages) => {
                upper = memory_of(model, settings, &stages);
                direct = false;
            }
            None if upper.is_infinite() => return Some(None),
            None if direct => return Some(Some(upper)),
            None => *lower = memory,
        }
        if upper <= 0.0 {
            return Some(Some(upper));
        }
    }
}

fn fewest_devices(
    model: &PiperModel<'_>,
    settings: &PiperSettings,
    memory_bytes: f64,
    search: &Search,
) -> Option<Option<u32>> {
    let found = ask_memory(model, settings, memory_bytes, search)?;
    Some(found.map(|stages| devices_of(model, &stages)))
}

//! Scores a device placement by the loads of its devices, and checks the rules that all its measures share.
//!
//! Tarnawski et al., NeurIPS 2020, sections on throughput. A stage is one device, an accelerator or a CPU according to
//! its nodes' choices. The load of a CPU is the sum of its nodes' CPU times. The load of an accelerator is the sum of
//! its nodes' accelerator times and of transfers. It pays the transfer of each of its nodes with an edge that leaves
//! the device, and of each outside node with an edge into it: once per producing node, not per edge. A transfer belongs
//! to the pass of its producer. An accelerator of a kind with another speed takes its nodes' times divided by it; the
//! transfers stay. `O(nodes + edges)`.
//!
//! Times in the file are taken as milliseconds, as in its authors' files, and scored in seconds.

use std::collections::BTreeSet;

use super::{accelerator_memory::AcceleratorMemory, check_latency};
use crate::{
    cluster::Limits,
    plan::{Measure, NodeScore, Plan, Score, Stage, StageScore, Violation},
    workload::{Choice, PlacementProfile, Workload, placement::SECONDS},
};

/// Scores the split and reports violations.
pub(crate) fn check(
    workload: &Workload,
    profile: &PlacementProfile,
    limits: &Limits,
    plan: &Plan,
    stage_of: &[Option<usize>],
    score: &mut Score,
) {
    if let Measure::Latency { subgraphs } = plan.measure {
        return check_latency::check(workload, profile, limits, plan, subgraphs, stage_of, score);
    }
    let memory = profile.accelerator_memory(limits);
    let (mut accelerators, mut cpus) = (0, 0);
    for (i, stage) in plan.stages.iter().enumerate() {
        if stage.data_parallel != 1 || stage.tensor_parallel != 1 {
            let problem = "a device has no replicas and no tensor degree".into();
            score.violations.push(Violation::DeviceList { stage: i + 1, problem });
        }
        let cpu = stage.on_cpus();
        if cpu {
            cpus += 1;
        } else {
            accelerators += 1;
        }
        kinds(workload, profile, stage, i, cpu, &mut score.violations);
        let scored = load(workload, profile, stage, i, cpu, stage_of);
        let limit_bytes = profile.memory_on(limits, stage);
        if !cpu && !memory.fits(counted_bytes(profile, stage, &memory), limit_bytes) {
            let needed_bytes = scored.memory_bytes;
            score.violations.push(Violation::OutOfMemory { stage: i + 1, needed_bytes, limit_bytes });
        }
        score.stages.push(scored);
    }
    if accelerators > limits.devices {
        score.violations.push(Violation::TooManyDevices { used: accelerators, devices: limits.devices });
    }
    if cpus > limits.cpus {
        score.violations.push(Violation::TooManyCpus { used: cpus, cpus: limits.cpus });
    }
    devices(profile, limits, plan, &mut score.violations);
    classes(workload, profile, stage_of, Some, &mut score.violations);
    let most = |part: fn(&StageScore) -> f64| score.stages.iter().map(part).fold(0.0, f64::max);
    score.slowest_s = most(|stage| stage.load_s);
    score.value = match plan.measure {
        Measure::SeparateMaxima => {
            (most(|stage| stage.load_s - stage.backward_s) + most(|stage| stage.backward_s)) / SECONDS
        }
        _ => score.slowest_s / SECONDS,
    };
    if !matches!(plan.measure, Measure::MaxLoad | Measure::SeparateMaxima) {
        score.violations.push(Violation::UnknownMeasure { name: plan.measure.name() });
    }
}

/// Checks that every stage names one existing device of its own. A plan that names none at all leaves the numbers open,
/// if accelerators are alike.
fn devices(profile: &PlacementProfile, limits: &Limits, plan: &Plan, violations: &mut Vec<Violation>) {
    if profile.kinds.is_empty() && plan.stages.iter().all(|stage| stage.devices.is_empty()) {
        return;
    }
    let accelerators = profile.accelerators(limits);
    let all = accelerators.saturating_add(limits.cpus);
    let mut taken = std::collections::BTreeMap::new();
    for (i, stage) in plan.stages.iter().enumerate() {
        let mut refuse = |problem: String| violations.push(Violation::DeviceList { stage: i + 1, problem });
        if stage.devices.len() != 1 {
            refuse(format!("lists {} devices, must list one", stage.devices.len()));
        }
        for &device in &stage.devices {
            if device >= all {
                refuse(format!("device {device} does not exist: there are {all}, counted from 0"));
            } else if stage.on_cpus() && device < accelerators {
                refuse(check_latency::no_cpu(device, accelerators, limits.cpus));
            } else if !stage.on_cpus() && device >= accelerators {
                refuse(format!(
                    "device {device} is a CPU: accelerators have numbers from 0, and there are {accelerators}"
                ));
            }
            if let Some(first) = taken.insert(device, i) {
                refuse(format!("device {device} is already used by stage {}", first + 1));
            }
        }
    }
}

/// Checks that all nodes of a device have its kind as their choice, and that it can run them.
pub(crate) fn kinds(
    workload: &Workload,
    profile: &PlacementProfile,
    stage: &Stage,
    index: usize,
    cpu: bool,
    violations: &mut Vec<Violation>,
) {
    let wanted = if cpu { Choice::Cpu } else { Choice::Accelerator };
    for (&node, choice) in stage.nodes.iter().zip(&stage.choices) {
        let Some(cost) = profile.nodes.get(node.index()) else { continue };
        if *choice != wanted || (!cpu && !cost.supported) {
            violations.push(Violation::UnknownChoice {
                stage: index + 1,
                node: workload.nodes[node].label(),
                choice: choice.to_string(),
                tensor_parallel: 1,
            });
        }
    }
}

/// Sum of the sizes of a stage's nodes, as `memory` counts them.
fn counted_bytes(profile: &PlacementProfile, stage: &Stage, memory: &AcceleratorMemory) -> f64 {
    let nodes = stage.nodes.iter().filter_map(|node| profile.nodes.get(node.index()));
    nodes.map(|node| memory.counted(node.size_bytes)).sum()
}

fn load(
    workload: &Workload,
    profile: &PlacementProfile,
    stage: &Stage,
    index: usize,
    cpu: bool,
    stage_of: &[Option<usize>],
) -> StageScore {
    let mut scored = StageScore { in_flight: 1, ..StageScore::default() };
    let mut received = BTreeSet::new();
    let speed = profile.speed_on(stage);
    for &node in &stage.nodes {
        let Some(cost) = profile.nodes.get(node.index()) else { continue };
        let compute = cost.compute(cpu) / speed;
        let mut backward = if cost.backward { compute } else { 0.0 };
        scored.backward_compute_s += backward * SECONDS;
        let mut own = NodeScore { compute_s: compute, ..NodeScore::default() };
        if !cpu {
            own.memory_bytes = cost.size_bytes;
            if workload.successors(node).any(|w| stage_of[w.index()] != Some(index)) {
                own.communication_s += cost.transfer;
                backward += if cost.backward { cost.transfer } else { 0.0 };
            }
            for u in workload.predecessors(node).filter(|u| stage_of[u.index()] != Some(index)) {
                // Received once, by the first node that reads it.
                if received.insert(u) {
                    let sender = &profile.nodes[u];
                    own.communication_s += sender.transfer;
                    scored.received_s += sender.transfer * SECONDS;
                    backward += if sender.backward { sender.transfer } else { 0.0 };
                }
            }
        }
        own.compute_s *= SECONDS;
        own.communication_s *= SECONDS;
        scored.compute_s += own.compute_s;
        scored.communication_s += own.communication_s;
        scored.backward_s += backward * SECONDS;
        scored.memory_bytes += own.memory_bytes;
        scored.nodes.push(own);
    }
    scored.load_s = scored.compute_s + scored.communication_s;
    scored
}

/// Checks that nodes of one colour class share a place; `place` gives that of a stage.
pub(crate) fn classes(
    workload: &Workload,
    profile: &PlacementProfile,
    stage_of: &[Option<usize>],
    place: impl Fn(usize) -> Option<usize>,
    violations: &mut Vec<Violation>,
) {
    let mut home: std::collections::BTreeMap<i64, usize> = std::collections::BTreeMap::new();
    for (node, cost) in profile.nodes.iter().enumerate() {
        let (Some(class), Some(stage)) = (cost.colour_class, stage_of[node]) else { continue };
        let first = *home.entry(class).or_insert(stage);
        if place(first) != place(stage) {
            violations.push(Violation::TornClass {
                class,
                node: workload.nodes[node].label(),
                stage: stage + 1,
                other: first + 1,
            });
        }
    }
}

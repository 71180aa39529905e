//! Scores the latency of a device placement, in both readings of [`Measure::Latency`](crate::plan::Measure::Latency),
//! and reports violations.
//!
//! [`SingleSample`] has the times of all parts. Any number of nodes run on CPUs at once, as in the paper's latency
//! model, so the number of CPUs matters only if it is 0. A stage's costs are in seconds, with the part of the latency
//! during which everything waits for it. Following the waits back from the part that finishes last, every moment of the
//! latency belongs to one stage.

use std::collections::BTreeMap;

use super::{
    check::{classes, kinds},
    single_sample::{self, WaitCycle},
};
use crate::{
    cluster::Limits,
    plan::{NodeScore, Plan, SampleTimes, Score, SingleSample, Stage, StageScore, Violation},
    workload::{NodeIndex, PlacementProfile, Workload, placement::SECONDS},
};

/// Scores the latency and reports violations. `subgraphs` is that of the plan's measure.
pub(crate) fn check(
    workload: &Workload,
    profile: &PlacementProfile,
    limits: &Limits,
    plan: &Plan,
    subgraphs: Option<u32>,
    stage_of: &[Option<usize>],
    score: &mut Score,
) {
    for (i, stage) in plan.stages.iter().enumerate() {
        kinds(workload, profile, stage, i, stage.on_cpus(), &mut score.violations);
    }
    let accelerators = devices(profile, limits, plan, subgraphs, &mut score.violations);
    let bytes = memory(profile, limits, plan, &accelerators, stage_of, &mut score.violations);
    // All CPUs are one place; the stages of one accelerator are another.
    let place = |stage: usize| match accelerators[stage] {
        Some(device) if subgraphs.is_some() => {
            Some(accelerators.iter().position(|&d| d == Some(device)).unwrap_or(stage))
        }
        Some(_) => Some(stage),
        None => None,
    };
    classes(workload, profile, stage_of, place, &mut score.violations);
    score.stages = vec![StageScore { in_flight: 1, ..StageScore::default() }; plan.stages.len()];
    match single_sample::of(&workload.dag, profile, plan, subgraphs.is_some()) {
        Ok(sample) => {
            score.value = sample.latency;
            loads(&sample, plan, profile, score);
        }
        Err(WaitCycle(parts)) => {
            score.value = f64::INFINITY;
            for (stage, scored) in plan.stages.iter().zip(&mut score.stages) {
                scored.nodes = vec![NodeScore::default(); stage.nodes.len()];
            }
            let name = |(stage, nodes): &(usize, Vec<NodeIndex>)| match nodes.as_slice() {
                [node] => format!("{} on stage {}", workload.nodes[*node].label(), stage + 1),
                _ => format!("stage {}", stage + 1),
            };
            score.violations.push(Violation::Circle { parts: parts.iter().map(name).collect() });
        }
    }
    for (stage, bytes) in score.stages.iter_mut().zip(bytes) {
        stage.memory_bytes = bytes;
    }
    score.slowest_s = score.stages.iter().map(|stage| stage.load_s).fold(0.0, f64::max);
}

/// Accelerator of every stage, `None` for stages on CPUs. Reports those that do not exist or are used too often.
fn devices(
    profile: &PlacementProfile,
    limits: &Limits,
    plan: &Plan,
    subgraphs: Option<u32>,
    violations: &mut Vec<Violation>,
) -> Vec<Option<u32>> {
    let all = profile.accelerators(limits);
    let mut stages_on: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut accelerators = vec![];
    for (i, stage) in plan.stages.iter().enumerate() {
        let mut refuse = |problem: String| violations.push(Violation::DeviceList { stage: i + 1, problem });
        if stage.data_parallel != 1 || stage.tensor_parallel != 1 {
            refuse("a device has no replicas and no tensor degree".into());
        }
        if stage.devices.len() != 1 {
            refuse(format!("lists {} devices, must list one", stage.devices.len()));
        }
        // A stage without a device gets a unique number.
        let device = stage.devices.first().copied().unwrap_or(u32::MAX - i as u32);
        accelerators.push((!stage.on_cpus()).then_some(device));
        if !stage.on_cpus() {
            stages_on.entry(device).or_default().push(i);
        }
    }
    // CPUs run any number of nodes at once, but at least one CPU must exist.
    if limits.cpus == 0 && plan.stages.iter().any(Stage::on_cpus) {
        violations.push(Violation::TooManyCpus { used: 1, cpus: 0 });
    }
    cpu_numbers(all, limits.cpus, plan, &stages_on, violations);
    let most = subgraphs.unwrap_or(1);
    for (&device, stages) in &stages_on {
        match subgraphs {
            Some(_) if stages.len() > most as usize => {
                violations.push(Violation::TooManySubgraphs { device, used: stages.len(), most });
            }
            None if stages.len() > 1 => {
                let problem = format!("device {device} is already used by stage {}", stages[0] + 1);
                violations.push(Violation::DeviceList { stage: stages[1] + 1, problem });
            }
            _ => {}
        }
    }
    if stages_on.len() > limits.devices as usize {
        violations.push(Violation::TooManyDevices { used: stages_on.len() as u32, devices: limits.devices });
    } else if let Some((&device, stages)) =
        // A stage without a device is already reported; its number here is artificial.
        stages_on.range(all..).find(|(_, stages)| !plan.stages[stages[0]].devices.is_empty())
    {
        let problem = format!("device {device} is not an accelerator: there are {all}, counted from 0");
        violations.push(Violation::DeviceList { stage: stages[0] + 1, problem });
    }
    accelerators
}

/// Checks that CPUs have the numbers after the accelerators.
fn cpu_numbers(
    accelerators: u32,
    cpus: u32,
    plan: &Plan,
    stages_on: &BTreeMap<u32, Vec<usize>>,
    violations: &mut Vec<Violation>,
) {
    let numbers = accelerators..accelerators.saturating_add(cpus);
    for (i, stage) in plan.stages.iter().enumerate().filter(|(_, stage)| stage.on_cpus()) {
        let Some(device) = stage.devices.first() else { continue };
        let problem = match stages_on.get(device) {
            Some(other) => format!("is on CPUs, but its device is the accelerator of stage {}", other[0] + 1),
            // If there are no CPUs, that is already reported.
            None if numbers.is_empty() || numbers.contains(device) => continue,
            None => no_cpu(*device, accelerators, cpus),
        };
        violations.push(Violation::DeviceList { stage: i + 1, problem });
    }
}

/// Reason why a number is not that of a CPU.
pub(crate) fn no_cpu(device: u32, accelerators: u32, cpus: u32) -> String {
    let what = if device < accelerators { "an accelerator" } else { "no device" };
    let (first, last) = (accelerators, accelerators.saturating_add(cpus).saturating_sub(1));
    let numbers = if first < last { format!("{first} to {last}") } else { first.to_string() };
    format!("is on CPUs, but its device {device} is {what}: CPUs have the numbers after the accelerators, {numbers}")
}

/// By stage, the bytes on its accelerator, including the accelerator's other stages.
fn memory(
    profile: &PlacementProfile,
    limits: &Limits,
    plan: &Plan,
    accelerators: &[Option<u32>],
    stage_of: &[Option<usize>],
    violations: &mut Vec<Violation>,
) -> Vec<f64> {
    let memory = profile.accelerator_memory(limits);
    // By device: its bytes, and the bytes as `memory` counts them.
    let mut bytes: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (node, stage) in profile.nodes.iter().zip(stage_of) {
        if let Some(device) = stage.and_then(|stage| accelerators[stage]) {
            let (sum, counted) = bytes.entry(device).or_default();
            *sum += node.size_bytes;
            *counted += memory.counted(node.size_bytes);
        }
    }
    for (&device, &(needed_bytes, counted)) in &bytes {
        let stages: Vec<usize> =
            (0..plan.stages.len()).filter(|&i| accelerators[i] == Some(device)).map(|i| i + 1).collect();
        let limit_bytes = stages.first().map_or(f64::INFINITY, |&i| profile.memory_on(limits, &plan.stages[i - 1]));
        if memory.fits(counted, limit_bytes) {
            continue;
        }
        violations.push(match stages.as_slice() {
            [stage] => Violation::OutOfMemory { stage: *stage, needed_bytes, limit_bytes },
            _ => Violation::SharedMemory { stages, needed_bytes, limit_bytes },
        });
    }
    accelerators.iter().map(|device| device.and_then(|d| bytes.get(&d)).map_or(0.0, |&(sum, _)| sum)).collect()
}

/// Costs and times of the stages.
fn loads(sample: &SingleSample, plan: &Plan, profile: &PlacementProfile, score: &mut Score) {
    let mut of_node: BTreeMap<NodeIndex, NodeScore> = BTreeMap::new();
    for part in &sample.parts {
        let scored = &mut score.stages[part.stage];
        let cpu = plan.stages[part.stage].on_cpus();
        for (&node, cost) in part.nodes.iter().zip(&part.costs) {
            let own = NodeScore {
                compute_s: cost.compute * SECONDS,
                communication_s: (cost.receive + cost.send) * SECONDS,
                sync_s: 0.0,
                memory_bytes: if cpu { 0.0 } else { profile.nodes[node].size_bytes },
            };
            scored.compute_s += own.compute_s;
            scored.communication_s += own.communication_s;
            of_node.insert(node, own);
        }
        let (start_s, finish_s) = (part.start * SECONDS, part.finish() * SECONDS);
        let times = scored.sample.get_or_insert(SampleTimes { start_s, finish_s, critical_s: 0.0 });
        times.start_s = times.start_s.min(start_s);
        times.finish_s = times.finish_s.max(finish_s);
    }
    for (stage, scored) in plan.stages.iter().zip(&mut score.stages) {
        scored.load_s = scored.compute_s + scored.communication_s;
        scored.nodes = stage.nodes.iter().map(|node| of_node.get(node).copied().unwrap_or_default()).collect();
    }
    let last = (0..sample.parts.len()).find(|&part| sample.parts[part].finish() == sample.latency);
    let mut on_path = last;
    while let Some(part) = on_path {
        let part = &sample.parts[part];
        if let Some(times) = &mut score.stages[part.stage].sample {
            times.critical_s += part.duration() * SECONDS;
        }
        on_path = part.waits_for;
    }
}

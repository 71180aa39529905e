//! Check of a training plan: refusals of engines, agreement of stages and configuration, memory, and the simulated
//! iteration time.
//!
//! `O(layers + devices log devices)` plus the simulation.

use std::collections::BTreeMap;

use super::{
    check, configured,
    iteration::{IterationCosts, StageTime},
    layer::PassTime,
    memory, program, wiring,
};
use crate::{
    cluster::Limits,
    plan::{NodeScore, Plan, Score, Stage, StageScore, Violation},
    workload::TrainingProfile,
};

/// Checks and scores a plan whose nodes are each in one stage.
pub(super) fn check(profile: &TrainingProfile, limits: &Limits, plan: &Plan, score: &mut Score) {
    let (configuration, run) = wiring::run_of(profile, plan, limits.samples());
    let layout = &configuration.layout;
    let wanted = layout.devices();
    if wanted > u64::from(limits.devices) {
        let used = u32::try_from(wanted).unwrap_or(u32::MAX);
        score.violations.push(Violation::TooManyDevices { used, devices: limits.devices });
    }
    let split = match check::check(&profile.model, &run, &profile.accelerator, wanted) {
        Ok(split) => split,
        Err(refusal) => {
            score.violations.push(Violation::Refused { rule: format!("{}; {}", refusal.problem, refusal.repair) });
            return;
        }
    };
    // The stages must follow from the configuration, so a second plan is made from it and compared.
    let own = configured::plan(profile, configuration, &split);
    same_stages(plan, &own, &mut score.violations);
    devices(limits, plan, &mut score.violations);
    let costs = IterationCosts::of(&profile.model, &run, &profile.accelerator, &profile.constants, &split);
    let held = memory::stages(&profile.model, &run, &split);
    let reserve = run.settings.reserve_bytes;
    let waits = costs.transfer * f64::from(costs.virtual_stages);
    for (index, stage) in plan.stages.iter().enumerate() {
        let (Some(time), Some(held)) = (costs.stages.get(index), held.get(index)) else { break };
        let after = &costs.reductions[index];
        let m = costs.microbatches.max(1) as f64;
        let mut scored = stage_score(time, waits, after.data_parallel / m);
        scored.in_flight = memory::in_flight(&run, index).ceil() as u32;
        scored.memory_bytes = held.total() + reserve;
        scored.activation_bytes = held.activations;
        scored.nodes = nodes(stage, &scored);
        if scored.memory_bytes > limits.memory_limit() {
            let (needed_bytes, limit_bytes) = (scored.memory_bytes, limits.memory_limit());
            score.violations.push(Violation::OutOfMemory { stage: index + 1, needed_bytes, limit_bytes });
        }
        score.slowest_s = score.slowest_s.max(scored.load_s);
        score.stages.push(scored);
    }
    score.value = program::iteration(&profile.model, &run, &costs, &held);
}

/// Seconds of a stage for one microbatch.
fn stage_score(time: &StageTime, waits: f64, sync_s: f64) -> StageScore {
    let sent = |pass: &PassTime| pass.tensor_parallel + pass.context_parallel + pass.expert_parallel;
    let backward_sent = sent(&time.backward) + sent(&time.again);
    let all_sent = sent(&time.forward) + backward_sent;
    // Between warm-up and drain, passes side by side hide a part of it.
    let communication_s = all_sent - time.saved + waits;
    let compute_s = time.total() - all_sent;
    StageScore {
        compute_s,
        communication_s,
        sync_s,
        load_s: compute_s + communication_s + sync_s,
        backward_s: time.backward_s() + waits / 2.0,
        backward_compute_s: time.backward_s() - backward_sent,
        received_s: waits / 2.0,
        ..StageScore::default()
    }
}

/// Equal parts of a stage's costs: a stage's nodes are layers of about equal cost.
fn nodes(stage: &Stage, scored: &StageScore) -> Vec<NodeScore> {
    let count = stage.nodes.len().max(1) as f64;
    let one = NodeScore {
        compute_s: scored.compute_s / count,
        communication_s: scored.communication_s / count,
        sync_s: scored.sync_s / count,
        memory_bytes: scored.memory_bytes / count,
    };
    vec![one; stage.nodes.len()]
}

fn same_stages(plan: &Plan, own: &Plan, violations: &mut Vec<Violation>) {
    if plan.stages.len() != own.stages.len() {
        let problem = format!("the plan has {} stages, not {}", plan.stages.len(), own.stages.len());
        violations.push(Violation::NotConfigured { stage: plan.stages.len().min(own.stages.len()) + 1, problem });
    }
    for (index, (stage, other)) in plan.stages.iter().zip(&own.stages).enumerate() {
        let problem = if stage.nodes != other.nodes {
            format!("it holds {} nodes, but the layout puts {} on it", stage.nodes.len(), other.nodes.len())
        } else if (stage.data_parallel, stage.tensor_parallel) != (other.data_parallel, other.tensor_parallel) {
            let [a, b] = [stage, other].map(|stage| format!("{} x {}", stage.data_parallel, stage.tensor_parallel));
            format!("its degrees are {a}, not {b}")
        } else if stage.choices != other.choices {
            "its recomputed layers differ".into()
        } else {
            continue;
        };
        violations.push(Violation::NotConfigured { stage: index + 1, problem });
    }
}

/// Checks that every device is in one stage, and that there are as many as the degrees need.
fn devices(limits: &Limits, plan: &Plan, violations: &mut Vec<Violation>) {
    let mut taken = BTreeMap::new();
    for (index, stage) in plan.stages.iter().enumerate() {
        let mut wrong = |problem: String| violations.push(Violation::DeviceList { stage: index + 1, problem });
        if !stage.devices.is_empty() && stage.devices.len() != stage.device_count() as usize {
            let (d, t) = (stage.data_parallel, stage.tensor_parallel);
            wrong(format!("lists {} devices for {d} x {t}", stage.devices.len()));
        }
        for &device in &stage.devices {
            if device >= limits.devices && plan.devices_used() <= limits.devices {
                wrong(format!("device {device} does not exist: there are {}, counted from 0", limits.devices));
                break;
            }
            if let Some(first) = taken.insert(device, index) {
                wrong(format!("device {device} is already used by stage {}", first + 1));
            }
        }
    }
}
